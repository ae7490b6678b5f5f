//! Arguments of backups of many databases.

use clap::Args;

/// Which databases are backed up together.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Many databases")]
pub(crate) struct ManyArguments {
    /// Back up every database of the instance, or every SQLite file in the folder that is named. --to is a folder: each
    /// database has its file there, NAME.bak
    #[arg(long, conflicts_with_all = ["log", "base", "mirror", "plan"])]
    pub(crate) all: bool,
    /// With --all: only databases whose name matches, such as 'shop*'; can be repeated
    #[arg(long, value_name = "PATTERN", requires = "all")]
    pub(crate) only: Vec<String>,
    /// With --all: no database whose name matches; can be repeated
    #[arg(long, value_name = "PATTERN", requires = "all")]
    pub(crate) except: Vec<String>,
    /// With --all: how many at the same time; they share the cores [default: one per two cores]
    #[arg(long, value_name = "N", requires = "all", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) parallel: Option<u16>,
}
