//! `windlass inspect`.

use std::path::PathBuf;

use clap::Args;

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
