//! `windlass jobs`: what ran, what runs, and what comes.

use clap::{Args, Subcommand};
use windlass_catalog::{
    ActivityRecord, AgentTables, Error as CatalogError, HistoryRecord, JobRecord, ServerRecord,
};
use windlass_instance::agent::{is_running, schedule};
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

/// The moment that two numbers of SQL Server Agent mean; NULL for none.
fn moment(date: i64, time: i64) -> Value {
    match (schedule::date(date), schedule::time(time)) {
        (Some(date), Some(time)) => Value::DateTime(date.to_datetime(time)),
        _ => Value::Null,
    }
}

fn outcome(status: i64) -> &'static str {
    match status {
        0 => "failed",
        1 => "succeeded",
        2 => "retried",
        3 => "cancelled",
        _ => "unknown",
    }
}

/// One row for each job.
fn list(tables: AgentTables<'_>, agent_runs: bool) -> Result<ResultSet, CatalogError> {
    let activity = tables.activity()?;
    let mut rows = Vec::new();
    for job in tables.jobs()? {
        let own = activity
            .iter()
            .find(|activity| activity.job_id == job.job_id);
        let own = own.filter(|_| agent_runs);
        rows.push(row(tables, &job, own)?);
    }
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
        rows,
    })
}

fn row(
    tables: AgentTables<'_>,
    job: &JobRecord,
    activity: Option<&ActivityRecord>,
) -> Result<Vec<Value>, CatalogError> {
    let server = tables.server(&job.job_id)?;
    let ran = server.as_ref().filter(|server| server.last_run_date > 0);
    let of_ran = |value: fn(&ServerRecord) -> Value| ran.map_or(Value::Null, value);
    let links = tables.links_of_job(&job.job_id)?;
    let next = links
        .iter()
        .filter(|link| link.next_run.is_some())
        .min_by_key(|link| link.next_run);
    let message = match &server {
        None => Value::text("not run by any server: sp_add_jobserver is missing"),
        Some(server) => Value::optional_text(server.last_outcome_message.as_deref()),
    };
    Ok(vec![
        Value::text(&job.name),
        Value::Bit(job.enabled),
        of_ran(|server| moment(server.last_run_date, server.last_run_time)),
        of_ran(|server| Value::text(outcome(server.last_run_outcome))),
        of_ran(|server| Value::Integer(schedule::duration_seconds(server.last_run_duration))),
        next.map_or(Value::Null, |next| {
            moment(next.next_run_date, next.next_run_time)
        }),
        match activity {
            Some(activity) => running(tables, activity)?,
            None => Value::Null,
        },
        message,
    ])
}

/// The step that runs, and since when the job does; NULL if it does not.
fn running(tables: AgentTables<'_>, activity: &ActivityRecord) -> Result<Value, CatalogError> {
    let (Some(since), None) = (
        &activity.start_execution_date,
        &activity.stop_execution_date,
    ) else {
        return Ok(Value::Null);
    };
    let steps = tables.steps(&activity.job_id)?;
    let step = steps
        .iter()
        .find(|step| Some(step.step_id) == activity.last_executed_step_id);
    Ok(Value::Text(match step {
        Some(step) => format!("step {} ({}), since {since}", step.step_id, step.step_name),
        None => format!("since {since}"),
    }))
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
            moment(record.run_date, record.run_time),
            name(record),
            Value::Integer(record.step_id),
            Value::text(&record.step_name),
            Value::text(outcome(record.run_status)),
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
