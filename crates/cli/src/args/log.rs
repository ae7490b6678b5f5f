//! Arguments of log backups.

use std::path::PathBuf;

use clap::Args;

/// Which log is backed up, and what becomes of it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Log backups")]
pub(crate) struct LogArguments {
    /// Back up only the log since the last log backup, of a database with the recovery model FULL
    #[arg(long, conflicts_with_all = ["differential", "as_is", "integrity", "no_write", "no_compress_write"])]
    pub(crate) log: bool,
    /// With --log, of a SQLite file: folder of the spool that has its log (windlass follow FILE --to DIR), if that is not
    /// the instance's. A full or differential backup with it is made in order with the log backups
    #[arg(long, value_name = "DIR", conflicts_with_all = ["no_write", "no_compress_write"])]
    pub(crate) follow: Option<PathBuf>,
    /// Leave the log as it is; works also if the data files are lost
    #[arg(long, requires = "log", conflicts_with = "no_recovery")]
    pub(crate) no_truncate: bool,
    /// Back up the end of the log, and leave the database in the restoring state
    #[arg(long, requires = "log")]
    pub(crate) no_recovery: bool,
}
