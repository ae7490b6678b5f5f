//! `windlass demo`.

use std::path::PathBuf;

use clap::Args;

use super::parse_size;

/// `windlass demo`
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// SQLite database to copy, instead of a generated one
    pub(crate) database: Option<PathBuf>,
    /// Working folder; removed afterwards
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Size of the generated database
    #[arg(long, value_name = "BYTES", default_value = "100M", value_parser = parse_size)]
    pub(crate) size: i64,
}

/// The hidden writer of the demo.
#[derive(Debug, Args)]
pub(crate) struct DemoWriterArguments {
    /// Database to write to until standard input ends
    pub(crate) database: PathBuf,
}
