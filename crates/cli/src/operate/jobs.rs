//! `windlass jobs`: what ran, what runs, and what comes.

use clap::{Args, Subcommand};
use jiff::civil::DateTime;
use windlass_catalog::{AgentTables, Error as CatalogError, HistoryRecord, JobRecord};
use windlass_instance::agent::{is_running, schedule};
use windlass_instance::overview::jobs::{self, JobState};
use windlass_instance::{Column, ColumnType, ResultSet, Value};

use crate::args::Common;
use crate::command::{Outcome, existing_session, failed, misused};
use crate::output::{Console, Layout};

/// `windlass jobs`
#[derive(Debug, Args)]
pub(crate) struct JobsArguments {
    #[command(subcommand)]
    command: Option<JobsCommand>,
}

#[derive(Debug, Subcommand)]
enum JobsCommand {
    /// Show the runs of a job, or of all, with their steps
    History {
        /// Name of the job
        job: Option<String>,
        /// Show only the newest N rows
        #[arg(long, value_name = "N")]
        last: Option<usize>,
    },
}

/// Runs the command.
pub(super) fn run(arguments: &JobsArguments, common: &Common) -> Outcome {
    if common.instance.is_none() {
        return misused("jobs need --instance");
    }
    let mut console = Console::new(common.json, Layout::Table);
    let Some(session) = existing_session(common, &mut console) else {
        return Outcome::Failed;
    };
    let instance = session.instance();
    let tables = instance.catalog().agent();
    let found = match &arguments.command {
        None => list(tables, instance.folder().is_some_and(is_running)),
        Some(JobsCommand::History { job, last }) => {
            let known = match job.as_deref().map(|name| tables.job_named(name)) {
                None => Ok(None),
                Some(Ok(Some(job))) => Ok(Some(job)),
                Some(Ok(None)) => {
                    let name = job.as_deref().unwrap_or_default();
                    return misused(&format!("there is no job '{name}'"));
                }
                Some(Err(error)) => Err(error),
            };
            known.and_then(|job| history(tables, job.as_ref(), *last))
        }
    };
    match found {
        Ok(rows) => {
            rows.send(&mut console);
            Outcome::Succeeded
        }
        Err(error) => failed(&error, &mut console),
    }
}

fn text(name: &str, length: u16) -> Column {
    Column::new(name, ColumnType::NVarChar(length))
}

/// One row for each job.
fn list(tables: AgentTables<'_>, agent_runs: bool) -> Result<ResultSet, CatalogError> {
    let moment = |at: Option<DateTime>| at.map_or(Value::Null, Value::DateTime);
    let row = |job: &JobState| {
        let last = job.last_run;
        vec![
            Value::text(&job.name),
            Value::Bit(job.is_enabled),
            moment(last.and_then(|last| last.started)),
            last.map_or(Value::Null, |last| Value::text(last.outcome)),
            last.map_or(Value::Null, |last| Value::Integer(last.seconds)),
            moment(job.next_run),
            Value::optional_text(job.running.as_deref()),
            Value::optional_text(job.message.as_deref()),
        ]
    };
    Ok(ResultSet {
        columns: vec![
            text("job", 128),
            Column::new("enabled", ColumnType::Bit),
            Column::new("last_run", ColumnType::DateTime),
            text("outcome", 20),
            Column::new("seconds", ColumnType::BigInt),
            Column::new("next_run", ColumnType::DateTime),
            text("running", 300),
            text("message", 4000),
        ],
        rows: jobs::list(tables, agent_runs)?.iter().map(row).collect(),
    })
}

/// The history, the newest last.
fn history(
    tables: AgentTables<'_>,
    job: Option<&JobRecord>,
    last: Option<usize>,
) -> Result<ResultSet, CatalogError> {
    let names = tables.jobs()?;
    let mut found = tables.history(job.map(|job| job.job_id.as_str()))?;
    found.truncate(last.unwrap_or(usize::MAX));
    found.reverse();
    let name = |record: &HistoryRecord| {
        let job = names.iter().find(|job| job.job_id == record.job_id);
        Value::optional_text(job.map(|job| job.name.as_str()))
    };
    let rows = found.iter().map(|record| {
        vec![
            jobs::moment(record.run_date, record.run_time).map_or(Value::Null, Value::DateTime),
            name(record),
            Value::Integer(record.step_id),
            Value::text(&record.step_name),
            Value::text(jobs::outcome(record.run_status)),
            Value::Integer(schedule::duration_seconds(record.run_duration)),
            Value::Integer(record.retries_attempted),
            Value::text(&record.message),
        ]
    });
    Ok(ResultSet {
        columns: vec![
            Column::new("started", ColumnType::DateTime),
            text("job", 128),
            Column::new("step", ColumnType::Int),
            text("name", 128),
            text("outcome", 20),
            Column::new("seconds", ColumnType::BigInt),
            Column::new("retries", ColumnType::Int),
            text("message", 4000),
        ],
        rows: rows.collect(),
    })
}
