//! `windlass import` and `windlass export`.

use std::path::PathBuf;

use clap::Args;

/// `windlass import`
#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// SQLite file, which may be in use and stays as it is
    pub(crate) file: PathBuf,
    /// Name of the new database in the instance
    #[arg(long, value_name = "NAME")]
    pub(crate) into: String,
    /// Its data file; the log lies beside it, with -log behind the name. In the instance's directory
    /// when absent
    #[arg(long, value_name = "FILE")]
    pub(crate) data: Option<PathBuf>,
    /// Every page carries a checksum from the start. A file whose pages have no room for them is written
    /// anew by SQLite, which may renumber rowids of tables without INTEGER PRIMARY KEY
    #[arg(long)]
    pub(crate) page_checksums: bool,
}

/// `windlass export`
#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// Database of the page engine, registered with the instance
    pub(crate) database: String,
    /// New SQLite file; an existing one is not overwritten
    #[arg(long, value_name = "FILE")]
    pub(crate) to: PathBuf,
}
