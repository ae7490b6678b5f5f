//! `windlass demo`.

use std::path::PathBuf;

use clap::Args;

use super::parse_size;

/// `windlass demo`
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// SQLite database to take a copy of, instead of one that is made up
    pub(crate) database: Option<PathBuf>,
    /// Folder to work in; removed afterwards
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Size of the database that is made up
    #[arg(long, value_name = "BYTES", default_value = "100M", value_parser = parse_size)]
    pub(crate) size: i64,
}

/// The hidden writer of the demonstration.
#[derive(Debug, Args)]
pub(crate) struct DemoWriterArguments {
    /// The database to write to, until standard input ends
    pub(crate) database: PathBuf,
}
