//! `windlass inspect` and `windlass extract`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

const INSPECT_NOTES: &str = "\
The file is recognised by its content: SQL Server 2005 to 2025, plain or compressed. It is read once, from
front to back, so that a pipe will do: - is standard input.";

/// `windlass inspect`
#[derive(Debug, Args)]
#[command(after_help = INSPECT_NOTES)]
pub(crate) struct InspectArguments {
    /// Backup file of SQL Server; - is standard input
    pub(crate) file: PathBuf,
    /// Only the summary: no list of all blocks and streams
    #[arg(long)]
    pub(crate) summary: bool,
    /// The allocation units of each file with their bytes, the largest first: so many
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) units: usize,
}

const EXTRACT_NOTES: &str = "\
The files are told apart by their content: all stripes of a full backup, differentials on it, in any order;
or the .mdf and .ndf files of a database. Rows are counted against the server's own counters, and whatever
cannot be read is named: the exit code is 0 only when every row of every table was written. Rows are as they
lie on the pages; the log is not applied.";

/// What tables become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExtractFormat {
    /// One SQLite file
    Sqlite,
    /// A folder with a CSV file for each table
    Csv,
    /// A folder with the data files and the log file: .mdf, .ndf, .ldf
    Files,
}

/// `windlass extract`
#[derive(Debug, Args)]
#[command(after_help = EXTRACT_NOTES)]
pub(crate) struct ExtractArguments {
    /// Backups of one database, or its data files
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Where the tables go; an existing file or folder is not touched
    #[arg(long, value_name = "PATH")]
    pub(crate) to: PathBuf,
    /// What they become
    #[arg(long, value_enum, default_value = "sqlite")]
    pub(crate) format: ExtractFormat,
    /// Only this table: name, or schema.name; several may be given
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Vec<String>,
    /// Position of the full backup on its media
    #[arg(long, visible_alias = "file", value_name = "N", default_value_t = 1)]
    pub(crate) set: u16,
    /// Go on with a damaged backup; the damage is named
    #[arg(long)]
    pub(crate) continue_after_error: bool,
}
