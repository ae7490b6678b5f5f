//! `windlass sql`.

use std::path::PathBuf;

use clap::Args;
use windlass_base::range;

use super::number::number;
use super::{LayoutArguments, parse_move, parse_variable};

const SQL_NOTES: &str = "\
A batch ends with GO on a line of its own. At the prompt, :quit exits and :reset discards the input.
BACKUP, RESTORE and related statements are T-SQL; any other SQL runs on the current database through
SQLite, with sys and msdb attached. Of sqlcmd's words there are :r, :setvar, $(NAME), :on error,
:exit(query). As with sqlcmd, a failed statement does not stop the script unless -b is given.";

/// `windlass sql`
#[expect(clippy::struct_excessive_bools, reason = "each is a switch")]
#[derive(Debug, Args)]
#[command(after_help = SQL_NOTES, disable_help_flag = true)]
pub(crate) struct SqlArguments {
    /// Script to run; - reads standard input
    #[arg(
        short = 'i',
        long = "input",
        value_name = "FILE",
        conflicts_with = "query"
    )]
    pub(crate) input: Vec<PathBuf>,
    /// Batch to run
    #[arg(short = 'Q', long = "query", value_name = "BATCH")]
    pub(crate) query: Vec<String>,
    /// Initial database
    #[arg(short = 'd', long, value_name = "NAME")]
    pub(crate) database: Option<String>,
    /// SQLite file to attach under a name for this run: --attach app=/srv/app.db
    #[arg(long, value_name = "NAME=FILE", value_parser = parse_move)]
    pub(crate) attach: Vec<(String, String)>,
    /// SQL Server backups of one database, or its data files, to query: the tables that -Q names (all of them if it
    /// names none, with -i and at the prompt) are read into a temporary file, which scripts cannot change
    #[arg(long, value_name = "FILE", num_args = 1, conflicts_with_all = ["attach", "database"])]
    pub(crate) on: Vec<String>,
    /// Position of the backup set on the media of the first --on file; needed if there are several
    #[arg(long, value_name = "N", requires = "on", value_parser = number::<u16>(range::POSITION))]
    pub(crate) set: Option<u16>,
    /// Variables for $(NAME) in scripts: -v NAME=VALUE ... They precede those of the environment
    #[arg(short = 'v', long = "variable", value_name = "NAME=VALUE", num_args = 1.., value_parser = parse_variable)]
    pub(crate) variable: Vec<(String, String)>,
    /// Leave $(NAME) in scripts as it is
    #[arg(short = 'x', long)]
    pub(crate) keep_references: bool,
    /// Errors below this severity neither stop nor fail; the exit code is the greatest severity
    #[arg(short = 'V', long, value_name = "SEVERITY", value_parser = clap::value_parser!(u8).range(1..=25))]
    pub(crate) severity: Option<u8>,
    /// Name of this machine or instance, as sqlcmd takes it; any other is refused
    #[arg(short = 'S', long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Trusted connection: always so, everything runs as the user of the process
    #[arg(short = 'E', long)]
    pub(crate) trusted: bool,
    /// User; any other than that of the process is refused
    #[arg(short = 'U', long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Refused: there are no passwords
    #[arg(short = 'P', long, value_name = "PASSWORD", hide = true)]
    pub(crate) password: Option<String>,
    /// Seconds to wait for a login: there is none to wait for
    #[arg(short = 'l', long, value_name = "SECONDS")]
    pub(crate) login_timeout: Option<u16>,
    /// -1: print no column headings
    #[arg(short = 'h', long, value_name = "ROWS", allow_negative_numbers = true, value_parser = clap::value_parser!(i8).range(-1..=0))]
    pub(crate) headers: Option<i8>,
    /// Print columns only as wide as their values
    #[arg(short = 'W', long)]
    pub(crate) trim: bool,
    /// What to print between columns
    #[arg(short = 's', long, value_name = "TEXT")]
    pub(crate) separator: Option<String>,
    /// Print help
    #[arg(id = "help", long = "help", action = clap::ArgAction::Help)]
    pub(crate) _help: Option<bool>,
    /// Stop at the first error
    #[arg(short = 'b', long)]
    pub(crate) stop_on_error: bool,
    /// As -o vertical
    #[arg(long, conflicts_with = "output")]
    pub(crate) vertical: bool,
    #[command(flatten)]
    pub(crate) layout: LayoutArguments,
}
