//! `windlass demo`.

use std::path::PathBuf;

use clap::Args;

use super::parse_size_in_mb;

/// `windlass demo`
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// SQLite database to copy, instead of a generated one
    pub(crate) database: Option<PathBuf>,
    /// Existing folder for the working folder, which is removed afterwards
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Size of the generated database: 20 and 20M are 20 MB, 1G is one GB
    #[arg(long, value_name = "MB", default_value = "100", value_parser = parse_size_in_mb)]
    pub(crate) size: i64,
}

/// The hidden writer of the demo.
#[derive(Debug, Args)]
pub(crate) struct DemoWriterArguments {
    /// Database to write to until standard input ends
    pub(crate) database: PathBuf,
}
