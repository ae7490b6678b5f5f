//! Commands for operators.
//!
//! | file | what |
//! |---|---|
//! | [`settings`] | the configuration files, and what wins over what |
//! | `history` | the backups that the instance remembers |
//! | `exposure` | what a failure would have cost |
//! | `report` | both as one page |
//! | `top` | what runs on the instance |
//! | `expire` | retention on folders |
//! | `sqlbackup`, `copies` | the dialect of SQL Backup, and its queue of copies |
//! | [`metrics`] | a text file for Prometheus |
//! | `check` | the state of all backups, for monitoring systems |
//! | `doctor` | looks at a set-up and says what it found |
//! | `generate` | completions and manual pages |

mod check;
mod copies;
mod doctor;
mod expire;
mod exposure;
mod generate;
mod history;
pub(crate) mod metrics;
mod report;
pub(crate) mod settings;
mod sqlbackup;
mod top;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use windlass_instance::{Column, ColumnType, ResultSet, Value};

use crate::args::Common;
use crate::command::Outcome;
use settings::Settings;

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the backups that the instance remembers
    History(HistoryArguments),
    /// Say which times had no restorable backup, and draw the history as one HTML page
    Report(ReportArguments),
    /// Watch the backups and restores that run on the instance
    Top(TopArguments),
    /// Show or delete the backups in folders that no rule keeps
    Expire(ExpireArguments),
    /// Run a command of SQL Backup Pro
    Sqlbackup(SqlbackupArguments),
    /// Show the queue of copies, or work on it
    Copies(CopiesArguments),
    /// Show the settings and where each comes from
    Config(ConfigArguments),
    /// Write what the instance remembers as metrics for Prometheus
    Metrics(MetricsArguments),
    /// Say whether every database can be restored to a young enough state, as Nagios plugins do
    Check(check::CheckArguments),
    /// Check a set-up and say what was found
    Doctor,
    /// Print the completions of a shell
    Completions(CompletionsArguments),
    /// Write the manual pages to a folder
    Man(ManArguments),
}

/// `windlass history`
#[derive(Debug, Args)]
pub(crate) struct HistoryArguments {
    /// Only this database
    pub(crate) database: Option<String>,
    /// Only so many, the newest
    #[arg(long, value_name = "N")]
    pub(crate) last: Option<usize>,
    /// Say for each database how long the longest time without a backup was, against a limit:
    /// minutes, or 24h, or 7d. The exit code is 1 when one misses it now
    #[arg(long, value_name = "TIME", value_parser = history::parse_rpo)]
    pub(crate) rpo: Option<i64>,
}

const REPORT_NOTES: &str = "\
A gap is a time in which a failure would have lost more than --rpo allows: it begins when the newest
restorable backup is that old, counted from its beginning, and ends when the next one is finished.
A differential counts only with its full backup in the history, a log backup only with the log before it.
For the time until now only backups count whose media are where the history says.
The exit code is 1 when a database misses the objective now or has no backup that can be restored.
Databases that are gone stay in the report until sp_delete_database_backuphistory forgets them.";

/// `windlass report`
#[derive(Debug, Args)]
#[command(after_help = REPORT_NOTES)]
pub(crate) struct ReportArguments {
    /// Only this database
    pub(crate) database: Option<String>,
    /// The most that may be lost: minutes, or 24h, or 7d
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = history::parse_rpo)]
    pub(crate) rpo: i64,
    /// Only the last so many days
    #[arg(long, value_name = "N")]
    pub(crate) days: Option<u32>,
    /// HTML page to write
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
}

/// `windlass top`
#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    /// Show what runs now and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Seconds from one table to the next
    #[arg(long, value_name = "SECONDS", default_value_t = 1)]
    pub(crate) every: u32,
}

const EXPIRE_NOTES: &str = "\
Without --delete nothing is deleted: each file is listed with the reason for which it stays or goes. A
backup stays when any rule keeps it. A full backup stays as long as a differential on it does, the newest
restorable backup of each database stays always, and so does whatever has not expired, cannot be read, or
was not written by Windlass. Read folders together when their backups need each other.";

/// `windlass expire`
#[derive(Debug, Args)]
#[command(after_help = EXPIRE_NOTES)]
pub(crate) struct ExpireArguments {
    /// Folders with backups; folders below are not entered
    #[arg(required = true)]
    pub(crate) folders: Vec<PathBuf>,
    /// Only backups of this database go
    #[arg(long, value_name = "NAME")]
    pub(crate) database: Option<String>,
    /// SQL Backup's ERASEFILES: n days, nh hours, or nb backups of each kind
    #[arg(long, value_name = "N[h|b]", conflicts_with_all = ["within", "last"])]
    pub(crate) erasefiles: Option<String>,
    /// Keep what is younger than so many days
    #[arg(long, value_name = "DAYS")]
    pub(crate) within: Option<u32>,
    /// Keep the newest so many of each database
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) last: u32,
    /// Keep the newest of each of the last so many days that have any
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) daily: u32,
    /// Keep the newest of each of the last so many weeks
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) weekly: u32,
    /// Keep the newest of each of the last so many months
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) monthly: u32,
    /// Keep the newest of each of the last so many years
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) yearly: u32,
    /// Delete what goes
    #[arg(long)]
    pub(crate) delete: bool,
    /// With --delete too: delete nothing, and leave the instance untouched
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `windlass sqlbackup`
#[derive(Debug, Args)]
pub(crate) struct SqlbackupArguments {
    /// The command, as behind -SQL of `SQLBackupC`
    #[arg(
        long = "sql",
        short = 'S',
        visible_alias = "SQL",
        value_name = "COMMAND"
    )]
    pub(crate) sql: String,
    /// SQLite file to know under a name for this run: --attach app=/srv/app.db
    #[arg(long, value_name = "NAME=FILE", value_parser = crate::args::parse_move)]
    pub(crate) attach: Vec<(String, String)>,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Make the folders of COPYTO that are missing; without, a copy waits until they are there
    #[arg(long)]
    pub(crate) make_folders: bool,
    /// Command to run when all went well; the report is its input
    #[arg(long, value_name = "COMMAND")]
    pub(crate) on_success: Option<String>,
    /// Command to run when something failed or there were warnings; the report is its input
    #[arg(long, value_name = "COMMAND")]
    pub(crate) on_failure: Option<String>,
}

/// `windlass copies`
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch")]
pub(crate) struct CopiesArguments {
    /// Make the copies that are due
    #[arg(long)]
    pub(crate) run: bool,
    /// With --run: try all of them now, whenever they are due
    #[arg(long, requires = "run")]
    pub(crate) now: bool,
    /// With --run: say what would be copied, and copy nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// With --run: make the folders that are missing
    #[arg(long, requires = "run")]
    pub(crate) make_folders: bool,
}

/// `windlass config`
#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    /// Show all settings as they act, also those that are built in
    #[arg(long)]
    pub(crate) effective: bool,
}

/// `windlass metrics`
#[derive(Debug, Args)]
pub(crate) struct MetricsArguments {
    /// File to write, for `node_exporter`'s textfile collector; standard output when absent
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// `windlass completions`
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// `windlass man`
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Folder for the pages
    pub(crate) folder: PathBuf,
}

/// Runs a command.
pub(crate) fn run(command: Command, common: &Common, settings: &Settings) -> Outcome {
    match command {
        Command::History(arguments) => history::run(&arguments, common),
        Command::Report(arguments) => report::run(&arguments, common),
        Command::Top(arguments) => top::run(&arguments, common),
        Command::Expire(arguments) => expire::run(&arguments, common),
        Command::Sqlbackup(arguments) => sqlbackup::run(&arguments, common, settings),
        Command::Copies(arguments) => copies::run(&arguments, common),
        Command::Config(arguments) => settings::show(settings, arguments.effective, common),
        Command::Metrics(arguments) => metrics::run(&arguments, common),
        Command::Check(arguments) => check::run(&arguments, common),
        Command::Doctor => doctor::run(common, settings),
        Command::Completions(arguments) => generate::completions(arguments.shell),
        Command::Man(arguments) => generate::man(&arguments.folder),
    }
}

/// A result set of texts.
fn texts(columns: &[&str], rows: Vec<Vec<String>>) -> ResultSet {
    ResultSet {
        columns: columns
            .iter()
            .map(|name| Column::new(*name, ColumnType::NVarChar(4000)))
            .collect(),
        rows: rows
            .into_iter()
            .map(|row| row.into_iter().map(Value::Text).collect())
            .collect(),
    }
}
