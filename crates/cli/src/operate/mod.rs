//! Commands for operators.
//!
//! | file | what |
//! |---|---|
//! | [`settings`] | the configuration files and their precedence |
//! | `history` | the backup history of the instance |
//! | `jobs` | the jobs of the instance |
//! | `report` | potential data loss over time, with the history as one page |
//! | `top` | what runs on the instance |
//! | `expire` | retention on folders |
//! | `fleet` | all servers that share a folder of object storage |
//! | `sqlbackup`, `copies` | the dialect of SQL Backup, and its copy queue |
//! | `credential` | the keys of object storage |
//! | [`metrics`] | a text file for Prometheus |
//! | `check` | the state of all backups, for monitoring systems |
//! | `drill` | proves by restores that databases can be restored |
//! | `ship` | keeps a copy current from log backups |
//! | `doctor` | checks a set-up and reports problems |
//! | `generate`, `man` | completions and manual pages |

pub(crate) mod check;
mod copies;
mod credential;
mod doctor;
mod drill;
mod expire;
mod fleet;
mod generate;
mod history;
mod jobs;
mod man;
pub(crate) mod metrics;
mod remains;
mod report;
pub(crate) mod settings;
mod ship;
mod sqlbackup;
mod top;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use windlass_instance::overview::Subjects;
use windlass_instance::{Column, ColumnType, ResultSet, Value};

use crate::args::Common;
use crate::args::number::{COUNT, number};
use crate::command::Outcome;
use crate::output::error_line;
pub(crate) use history::parse_rpo;
use settings::Settings;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the backup history of the instance
    History(HistoryArguments),
    /// Report the times without a restorable backup, with the history as one HTML page
    Report(ReportArguments),
    /// Show the jobs of the instance: their last run, the next, and what runs now
    Jobs(jobs::JobsArguments),
    /// Watch the backups and restores running on the instance
    Top(TopArguments),
    /// Show or delete the backups that no retention rule keeps
    Expire(ExpireArguments),
    /// Run a SQL Backup Pro command
    Sqlbackup(SqlbackupArguments),
    /// Show or process the copy queue
    Copies(CopiesArguments),
    /// Keep, list or remove the keys of object storage
    Credential(credential::CredentialArguments),
    /// Show the settings and the source of each
    Config(ConfigArguments),
    /// Write the backup history as Prometheus metrics
    Metrics(MetricsArguments),
    /// Show every database of every server that backs up to one folder of object storage
    Fleet(fleet::FleetArguments),
    /// Check that every database can be restored to a recent enough state (Nagios plugin)
    Check(check::CheckArguments),
    /// Prove that databases can be restored: restore each to a scratch folder, check it, delete it
    Drill(drill::DrillArguments),
    /// Keep a copy of a database current from its log backups
    Ship(ship::ShipArguments),
    /// Check the set-up and report problems
    Doctor(doctor::DoctorArguments),
    /// Print shell completions
    Completions(CompletionsArguments),
    /// Write the manual pages to a folder
    Man(ManArguments),
}

/// `windlass history`
#[derive(Debug, Args)]
pub(crate) struct HistoryArguments {
    /// Show only this database
    pub(crate) database: Option<String>,
    /// Show only the newest N
    #[arg(long, value_name = "N", value_parser = number::<usize>(COUNT))]
    pub(crate) last: Option<usize>,
    /// For each database, compare the longest time without a backup with a limit: minutes, or 24h,
    /// or 7d. The exit code is 1 if a database exceeds it now, or if its media cannot be examined
    #[arg(long, value_name = "TIME", value_parser = history::parse_rpo)]
    pub(crate) rpo: Option<i64>,
}

const REPORT_NOTES: &str = "\
A gap is a period in which a failure would have lost more than --rpo allows: it begins when the newest
restorable backup is that old, counted from its start, and ends when the next backup finishes.
A differential counts only if its full backup is in the history, a log backup only if the log before it
is. For the current state, only backups count whose media are where the history says.
The exit code is 1 if a database misses the objective now, has no restorable backup, or if the media of its
newest state cannot be examined.
Deleted databases stay in the report until sp_delete_database_backuphistory removes them.";

/// `windlass report`
#[derive(Debug, Args)]
#[command(after_help = REPORT_NOTES)]
pub(crate) struct ReportArguments {
    /// Report only this database
    pub(crate) database: Option<String>,
    /// Recovery point objective: minutes, or 24h, or 7d
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = history::parse_rpo)]
    pub(crate) rpo: i64,
    /// Report only the last N days
    #[arg(long, value_name = "N", value_parser = number::<u32>(COUNT))]
    pub(crate) days: Option<u32>,
    /// HTML page to write
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
}

/// `windlass top`
#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    /// Print what runs now and exit
    #[arg(long)]
    pub(crate) once: bool,
    /// Seconds between updates
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = number::<u32>(COUNT))]
    pub(crate) every: u32,
}

const EXPIRE_NOTES: &str = "\
Without --delete, nothing is deleted: each file is listed with the reason to keep or delete it. A backup
is kept if any rule keeps it. A full backup is kept as long as a differential based on it is. The newest
restorable backup of each database is always kept, and so is everything that has not expired, cannot be
read, or was not written by Windlass. Name folders together if their backups depend on each other.
Backups elsewhere that the instance knows keep what they need here, and what needs them, also while their
folder cannot be seen.

With --delete, the backups that stay in the place of deleted ones (the newest, those counted by a rule, and
what they are based on) are first read back and checked byte by byte, an encrypted one without its key. One
that is damaged counts for nothing: an older one stays instead, and the exit code is 1. In an instance, a
backup that was verified or restored within --verified-within days, from files that have not changed since, is
not read again.";

/// `windlass expire`
#[derive(Debug, Args)]
#[command(after_help = EXPIRE_NOTES)]
pub(crate) struct ExpireArguments {
    /// Folders with backups, whose subfolders are not searched, or URLs of objects, below which everything is
    #[arg(required = true, value_name = "FOLDER|URL")]
    pub(crate) folders: Vec<String>,
    /// Delete only backups of this database
    #[arg(long, value_name = "NAME")]
    pub(crate) database: Option<String>,
    /// SQL Backup's ERASEFILES: n days, nh hours, or nb backups of each kind
    #[arg(long, value_name = "N[h|b]", conflicts_with_all = ["within", "last"])]
    pub(crate) erasefiles: Option<String>,
    /// Keep backups younger than N days
    #[arg(long, value_name = "DAYS", value_parser = history::parse_days)]
    pub(crate) within: Option<u32>,
    /// Keep the newest N of each database
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) last: u32,
    /// Keep the newest of each of the last N days that have any
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) daily: u32,
    /// Keep the newest of each of the last N weeks
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) weekly: u32,
    /// Keep the newest of each of the last N months
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) monthly: u32,
    /// Keep the newest of each of the last N years
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) yearly: u32,
    /// Delete the backups that no rule keeps
    #[arg(long)]
    pub(crate) delete: bool,
    /// Do not read back again what was verified in the last N days and has not changed since; 0: read all
    #[arg(long, value_name = "DAYS", default_value_t = 7, value_parser = history::parse_days)]
    pub(crate) verified_within: u32,
    /// Delete without reading back the backups that stay in the place of the deleted ones
    #[arg(long, conflicts_with = "verified_within")]
    pub(crate) trust_headers: bool,
    /// Say that a folder, with those below it, is gone for good: what the history knows there, and is missing, keeps
    /// nothing here. Without it, a folder that looks as if something were not mounted does
    #[arg(long, value_name = "FOLDER|URL")]
    pub(crate) gone: Vec<String>,
    /// Even with --delete, delete nothing and leave the instance unchanged
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `windlass sqlbackup`
#[derive(Debug, Args)]
pub(crate) struct SqlbackupArguments {
    /// The command, as given to -SQL of SQL Backup's program
    #[arg(
        long = "sql",
        short = 'S',
        visible_alias = "SQL",
        value_name = "COMMAND"
    )]
    pub(crate) sql: String,
    /// SQLite file to attach under a name for this run: --attach app=/srv/app.db
    #[arg(long, value_name = "NAME=FILE", value_parser = crate::args::parse_move)]
    pub(crate) attach: Vec<(String, String)>,
    /// Print what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Erase old backups without reading back those that stay in their place (see expire)
    #[arg(long)]
    pub(crate) trust_headers: bool,
    /// Create missing COPYTO folders; without it, a copy waits until its folder exists
    #[arg(long)]
    pub(crate) make_folders: bool,
    /// Command to run on success, with the report as its input
    #[arg(long, value_name = "COMMAND")]
    pub(crate) on_success: Option<String>,
    /// Command to run after errors or warnings, with the report as its input
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
    /// With --run: try all copies now, even those not yet due
    #[arg(long, requires = "run")]
    pub(crate) now: bool,
    /// With --run: print what would be copied, and copy nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// With --run: create missing folders
    #[arg(long, requires = "run")]
    pub(crate) make_folders: bool,
}

/// `windlass config`
#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    /// Show all effective settings, including built-in defaults
    #[arg(long)]
    pub(crate) effective: bool,
}

/// `windlass metrics`
#[derive(Debug, Args)]
pub(crate) struct MetricsArguments {
    /// File to write, for the textfile collector of Prometheus' node exporter [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// `windlass completions`
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    pub(crate) shell: clap_complete::Shell,
}

/// `windlass man`
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Folder for the pages, created if it is missing
    pub(crate) folder: PathBuf,
}

pub(crate) fn run(command: Command, common: &Common, settings: &Settings) -> Outcome {
    match command {
        Command::History(arguments) => history::run(&arguments, common),
        Command::Report(arguments) => report::run(&arguments, common),
        Command::Jobs(arguments) => jobs::run(&arguments, common),
        Command::Top(arguments) => top::run(&arguments, common),
        Command::Expire(arguments) => expire::run(&arguments, common),
        Command::Sqlbackup(arguments) => sqlbackup::run(&arguments, common, settings),
        Command::Copies(arguments) => copies::run(&arguments, common),
        Command::Credential(arguments) => credential::run(&arguments, common),
        Command::Config(arguments) => settings::show(settings, arguments.effective, common),
        Command::Metrics(arguments) => metrics::run(&arguments, common),
        Command::Fleet(arguments) => fleet::run(&arguments, common),
        Command::Check(arguments) => check::run(&arguments, common),
        Command::Drill(arguments) => drill::run(&arguments, common),
        Command::Ship(arguments) => ship::run(&arguments, common),
        Command::Doctor(arguments) => doctor::run(&arguments, common, settings),
        Command::Completions(arguments) => generate::completions(arguments.shell, common),
        Command::Man(arguments) => generate::man(&arguments.folder, common),
    }
}

/// Whether all databases meet the objective now. Where there is none, nobody knows.
fn met(subjects: &Subjects<'_>) -> Outcome {
    if subjects.all.is_empty() {
        error_line("the instance has no databases and no backups: is it the right one?");
        return Outcome::Failed;
    }
    match subjects.is_met() {
        true => Outcome::Succeeded,
        false => Outcome::Failed,
    }
}

/// A result set of text columns.
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
