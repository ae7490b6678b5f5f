//! `windlass drill`: proves by restores that databases can be restored.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::{Value as Json, json};
use windlass_base::message::table;
use windlass_base::size::Bytes;
use windlass_base::word::Depth;
use windlass_base::{Guid, Moment, json_time};
use windlass_instance::operation::{Aim, DrillOptions, DrillOutcome, DrilledSet, StopAt};
use windlass_instance::standing::tell_apart;
use windlass_instance::{Failure, Session};

use super::texts;
use crate::args::{Common, KeyArguments, Threads, parse_point};
use crate::command::{
    Outcome, absolute, disks, failed, io_method_refused, is_there, keys, misused, refused,
    reported, session_for,
};
use crate::output::{Console, Layout, result_json};

const NOTES: &str = "\
Each database is restored from its backups into a new folder in --scratch, opened, checked with SQLite's own check and
asked --query, then deleted. No database of the instance is touched. The exit code is 1 if any of them is not proven.
The ledger is in the instance: SELECT * FROM msdb.dbo.windlass_drill. What a killed drill has left in --scratch, the
next one there removes.";

/// `windlass drill`
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct DrillArguments {
    /// Databases [default: all in the history of the instance]
    pub(crate) databases: Vec<String>,
    /// Backup files, URLs of objects, or folders of either [default: those that the history names]
    #[arg(long, value_name = "MEDIA", num_args = 1.., requires = "databases")]
    pub(crate) from: Vec<String>,
    /// Folder for the restored files
    #[arg(long, value_name = "DIR")]
    pub(crate) scratch: PathBuf,
    /// Most bytes that a restored database may take: 50G
    #[arg(long, value_name = "BYTES", value_parser = parse_space)]
    pub(crate) space: Option<u64>,
    /// State to restore: latest, random (of all that the backups hold), a time, or lsn:N
    #[arg(long, value_name = "STATE", default_value = "latest", value_parser = parse_state)]
    pub(crate) at: State,
    /// How deep the restored database is checked
    #[arg(long, value_name = "quick|full", default_value = "full")]
    pub(crate) check: Depth,
    /// Question in SQL: the first value of its first row must be neither missing, NULL, 0 nor empty
    #[arg(long, value_name = "SQL")]
    pub(crate) query: Option<String>,
    /// Of all databases, take one in N, those whose last proof is the oldest: 1/7 every day proves each once a week
    #[arg(long, value_name = "1/N", conflicts_with = "databases", value_parser = parse_subset)]
    pub(crate) subset: Option<usize>,
    /// Keep the restored files
    #[arg(long)]
    pub(crate) keep: bool,
    /// Only say which backups would be restored
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) keys: KeyArguments,
    /// Refuse backup sets that were not signed with the key whose public half is in this file; can be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) signed_by: Vec<PathBuf>,
    /// Threads that check; auto uses as many as have work, at most one per core
    #[arg(long, value_name = "N|auto")]
    pub(crate) threads: Option<Threads>,
    /// I/O method; auto uses the ring where available
    #[arg(long, value_name = "auto|io_uring|threads", default_value = "auto")]
    pub(crate) io: windlass_io::queue::IoMethodChoice,
}

/// The state that is restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    Latest,
    Random,
    At(StopAt),
}

fn parse_state(text: &str) -> Result<State, String> {
    match text {
        "latest" => Ok(State::Latest),
        "random" => Ok(State::Random),
        _ => parse_point(text)
            .map(|point| State::At(point.stop()))
            .map_err(|reason| format!("latest, random, or a moment: {reason}")),
    }
}

fn parse_space(text: &str) -> Result<u64, String> {
    let bytes = windlass_base::size::parse_bytes(text).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| "a size such as 500M or 50G".to_owned())
}

fn parse_subset(text: &str) -> Result<usize, String> {
    let count = text.strip_prefix("1/").and_then(|count| count.parse().ok());
    count
        .filter(|count| (1..=1000).contains(count))
        .ok_or_else(|| "a part such as 1/7".to_owned())
}

/// Runs the command.
pub(super) fn run(arguments: &DrillArguments, common: &Common) -> Outcome {
    if common.instance.is_none() && arguments.from.is_empty() {
        return misused("name an instance by --instance, or databases and their backups by --from");
    }
    if let Some(outcome) = io_method_refused(arguments.io) {
        return outcome;
    }
    let mut console = Console::new(common.json, Layout::Table);
    if common.instance.is_some() && !is_there(common, &mut console) {
        return Outcome::Failed;
    }
    let Some(mut session) = session_for(arguments.dry_run, common, &mut console) else {
        return Outcome::Failed;
    };
    crate::cancel::ends_reads(session.cancel_flag());
    let keys = match keys::ring(&arguments.keys) {
        Ok(keys) => keys,
        Err(message) => return refused(message, &mut console),
    };
    let databases = match databases(&session, arguments) {
        Ok(databases) => databases,
        Err(error) => return failed(&error, &mut console),
    };
    if databases.is_empty() {
        return refused(table::nothing_to_prove(), &mut console);
    }
    let options = DrillOptions {
        media: disks(&arguments.from),
        aim: Aim::Newest,
        scratch: absolute(&arguments.scratch).into(),
        space_bytes_max: arguments.space,
        depth: arguments.check,
        query: arguments.query.clone(),
        keeps_files: arguments.keep,
        keys,
        signed_by: arguments
            .signed_by
            .iter()
            .map(|path| absolute(path))
            .collect(),
        threads: arguments.threads.and_then(Threads::count).map(i64::from),
        io_method: arguments.io,
    };
    let mut outcome = Outcome::Succeeded;
    let mut rows = Vec::new();
    let mut objects = Vec::new();
    for database in databases {
        let options = DrillOptions {
            aim: aim(&arguments.at),
            ..options.clone()
        };
        let result = session.drill(&database, &options, &mut console);
        rows.push(row(&database, result.as_ref()));
        objects.push(object(&database, result.as_ref()));
        if reported(result, &mut console).is_none() {
            outcome = Outcome::Failed;
        }
    }
    match common.json {
        true => result_json(&Json::Array(objects).to_string()),
        false => texts(&COLUMNS, rows).send(&mut console),
    }
    outcome
}

fn aim(state: &State) -> Aim {
    match state {
        State::Latest => Aim::Newest,
        State::At(stop) => Aim::At(stop.clone()),
        State::Random => {
            let mut chance = [0; 8];
            chance.copy_from_slice(&Guid::random().to_stored()[8..]);
            Aim::Any(u64::from_le_bytes(chance))
        }
    }
}

/// The databases to prove: those that were named, or those of the history, first the ones that were not drilled for the
/// longest time. One that fails each time takes no other one's turn.
fn databases(
    session: &Session,
    arguments: &DrillArguments,
) -> Result<Vec<String>, windlass_catalog::Error> {
    if !arguments.databases.is_empty() {
        return Ok(arguments.databases.clone());
    }
    let catalog = session.instance().catalog();
    let mut past = catalog.past_backups(None)?;
    let machine = &session.instance().identity().machine;
    tell_apart(&mut past, &catalog.databases()?, machine);
    let mut names: Vec<String> = Vec::new();
    for backup in past {
        let is_known = |name: &String| name.eq_ignore_ascii_case(&backup.database);
        if !backup.is_overwritten && !names.iter().any(is_known) {
            names.push(backup.database);
        }
    }
    let drilled = names
        .into_iter()
        .map(|name| Ok((catalog.last_drill(&name)?, name)));
    let mut drilled = drilled.collect::<Result<Vec<_>, windlass_catalog::Error>>()?;
    // One that never was comes before all others.
    drilled.sort();
    let count = drilled.len().div_ceil(arguments.subset.unwrap_or(1));
    let chosen = drilled.into_iter().take(count);
    Ok(chosen.map(|(_, name)| name).collect())
}

const COLUMNS: [&str; 8] = [
    "database",
    "result",
    "restored to",
    "backups",
    "size",
    "restore",
    "check",
    "answer",
];

/// The same for programs.
fn object(database: &str, result: Result<&DrillOutcome, &Failure>) -> Json {
    let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
    let time = |at: Option<Moment>| at.map(|at| json_time(&at.to_string()));
    let backup = |set: &DrilledSet| {
        json!({
            "type": set.set_type.name(),
            "started": time(set.started),
            "finished": time(set.finished),
        })
    };
    match result {
        Ok(outcome) => json!({
            "database": database,
            "result": if outcome.restore.is_some() { "proven" } else { "not tried" },
            "error": null,
            "restored_to": outcome.restored_to.as_deref().map(json_time),
            "backups": outcome.sets.iter().map(backup).collect::<Vec<_>>(),
            "size_bytes": outcome.database_bytes,
            "restore_seconds": seconds(outcome.restore),
            "check_seconds": seconds(outcome.check),
            "answer": outcome.answer,
        }),
        Err(failure) => json!({
            "database": database,
            "result": "not proven",
            "error": failure.messages.iter().find(|one| one.is_error()).map(|one| one.number),
        }),
    }
}

fn row(database: &str, result: Result<&DrillOutcome, &Failure>) -> Vec<String> {
    let seconds = |time: Option<Duration>| {
        time.map_or_else(String::new, |time| format!("{:.2} s", time.as_secs_f64()))
    };
    match result {
        Ok(outcome) => vec![
            database.to_owned(),
            match outcome.restore {
                Some(_) => "proven".to_owned(),
                None => "not tried".to_owned(),
            },
            outcome.restored_to.clone().unwrap_or_default(),
            outcome.sets_in_words(),
            Bytes(outcome.database_bytes).to_string(),
            seconds(outcome.restore),
            seconds(outcome.check),
            outcome.answer.clone().unwrap_or_default(),
        ],
        Err(failure) => {
            let number = failure.messages.iter().find(|message| message.is_error());
            let why = number.map_or_else(
                || "not proven".to_owned(),
                |error| format!("not proven: {}", error.number),
            );
            let mut row = vec![database.to_owned(), why];
            row.resize(COLUMNS.len(), String::new());
            row
        }
    }
}
