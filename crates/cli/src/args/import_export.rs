//! `windlass import` and `windlass export`.

use std::path::PathBuf;

use clap::Args;

/// `windlass import`
#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// SQLite file; it may be in use and is not changed
    pub(crate) file: PathBuf,
    /// Name of the new database in the instance
    #[arg(long, value_name = "NAME")]
    pub(crate) into: String,
    /// Data file of the new database, repeatable: its extents are spread over all of them. The log is placed next to
    /// the first, with -log appended to the name [default: one file in the instance directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) data: Vec<PathBuf>,
    /// Give every page a checksum from the start. If the file's pages have no room for one, SQLite
    /// rewrites them, which may renumber rowids of tables without INTEGER PRIMARY KEY
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
