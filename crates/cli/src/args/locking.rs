//! How a backup treats other users of the database.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use windlass_instance::operation::CopyChoice;

/// How to treat other users of the database.
#[derive(Debug, Args)]
#[command(next_help_heading = "Other users of the database")]
pub(crate) struct LockingArguments {
    /// How long to wait for locks of other programs, in seconds; may be fractional [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) lock_timeout: Option<Duration>,
    /// Take no locks: I guarantee that nothing writes to the database during the backup
    #[arg(long)]
    pub(crate) frozen: bool,
    /// Folder for the temporary copy that lets writers of a rollback-journal database continue
    /// [default: the folder of the backup file]
    #[arg(long, value_name = "DIR")]
    pub(crate) temp_copy_dir: Option<PathBuf>,
    /// Make no temporary copy: writers wait until the backup has read the database
    #[arg(long, conflicts_with = "temp_copy_dir")]
    pub(crate) no_temp_copy: bool,
}

impl LockingArguments {
    pub(crate) fn temporary_copy(&self) -> CopyChoice {
        match (&self.temp_copy_dir, self.no_temp_copy) {
            (_, true) => CopyChoice::Off,
            (Some(folder), false) => CopyChoice::Folder(folder.clone()),
            (None, false) => CopyChoice::Auto,
        }
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok();
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "it is no number of seconds from 0 on".to_owned())
}
