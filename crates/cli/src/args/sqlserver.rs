//! `windlass inspect` and `windlass extract`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use windlass_base::range;

use super::number::number;

const INSPECT_NOTES: &str = "\
The file is recognised by its content: SQL Server 2005 to 2025, plain or compressed. It is read once,
sequentially, so it may be a pipe: - is standard input.";

/// `windlass inspect`
#[derive(Debug, Args)]
#[command(after_help = INSPECT_NOTES)]
pub(crate) struct InspectArguments {
    /// SQL Server backup, a file or a URL; - is standard input
    pub(crate) file: String,
    /// Print only the summary, not the list of all blocks and streams
    #[arg(long)]
    pub(crate) summary: bool,
    /// Print this many objects with their sizes, the largest first; if the system tables cannot be read,
    /// allocation units of each file
    #[arg(long, visible_alias = "units", value_name = "N", default_value_t = 10)]
    pub(crate) objects: usize,
    /// Write the layout as one self-contained HTML file: what lies where, and the size of each object
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

const EXTRACT_NOTES: &str = "\
The files are recognised by their content: all stripes of a full backup and its differentials, in any
order; or the .mdf and .ndf files of a database. Row counts are compared with the server's own counters,
and everything that cannot be read is reported: the exit code is 0 only if every row of every table was
written. Rows are read as stored on the pages. The log in the backup is not applied, but read: transactions
that were open at its end are listed, with the tables that have their rows.";

/// Output format of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExtractFormat {
    /// One SQLite file
    Sqlite,
    /// A folder with a CSV file for each table
    Csv,
    /// A folder with a Parquet file for each table
    Parquet,
    /// A folder with the data files and the log file: .mdf, .ndf, .ldf
    Files,
}

/// `windlass extract`
#[derive(Debug, Args)]
#[command(after_help = EXTRACT_NOTES)]
pub(crate) struct ExtractArguments {
    /// Backups of one database, in files or at URLs, or its data files
    #[arg(required = true)]
    pub(crate) files: Vec<String>,
    /// Output file or folder; an existing one is not touched
    #[arg(long, value_name = "PATH")]
    pub(crate) to: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "sqlite")]
    pub(crate) format: ExtractFormat,
    /// Only this table: name, or schema.name; can be repeated
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Vec<String>,
    /// Position of the backup set on the media of the first file [default: 1; others are named]
    #[arg(long, visible_alias = "file", value_name = "N", value_parser = number::<u16>(range::POSITION))]
    pub(crate) set: Option<u16>,
    /// Continue with a damaged backup, and report the damage
    #[arg(long)]
    pub(crate) continue_after_error: bool,
}
