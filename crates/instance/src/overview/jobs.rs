//! The jobs: what ran last, what runs, and what comes next.

use jiff::civil::DateTime;
use serde_json::{Value as Json, json};
use windlass_catalog::{ActivityRecord, AgentTables, Error, JobRecord};
use windlass_report::{Cell, Column, ColumnKind, Row, Table};

use crate::agent::schedule;

/// A job as it stands now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobState {
    pub name: String,
    pub is_enabled: bool,
    pub last_run: Option<LastRun>,
    pub next_run: Option<DateTime>,
    /// The step that runs, and since when the job does.
    pub running: Option<String>,
    /// What the last run, or the agent, says of it.
    pub message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastRun {
    pub started: Option<DateTime>,
    /// One of the words of [`outcome`].
    pub outcome: &'static str,
    pub seconds: i64,
}

/// SQL Server Agent's numbers for how a run ended, in words.
pub fn outcome(status: i64) -> &'static str {
    match status {
        0 => "failed",
        1 => "succeeded",
        2 => "retried",
        3 => "cancelled",
        _ => "unknown",
    }
}

/// The moment that two numbers of SQL Server Agent mean.
pub fn moment(date: i64, time: i64) -> Option<DateTime> {
    Some(schedule::date(date)?.to_datetime(schedule::time(time)?))
}

/// All jobs. What they did counts as running only while an agent runs.
///
/// # Errors
/// Those of the catalog.
pub fn list(tables: AgentTables<'_>, agent_runs: bool) -> Result<Vec<JobState>, Error> {
    let activity = match agent_runs {
        true => tables.activity()?,
        false => Vec::new(),
    };
    let jobs = tables.jobs()?.into_iter();
    jobs.map(|job| {
        let own = activity.iter().find(|found| found.job_id == job.job_id);
        state(tables, &job, own)
    })
    .collect()
}

fn state(
    tables: AgentTables<'_>,
    job: &JobRecord,
    activity: Option<&ActivityRecord>,
) -> Result<JobState, Error> {
    let server = tables.server(&job.job_id)?;
    let ran = server.as_ref().filter(|server| server.last_run_date > 0);
    let links = tables.links_of_job(&job.job_id)?;
    let next = links
        .iter()
        .filter(|link| link.next_run.is_some())
        .min_by_key(|link| link.next_run);
    Ok(JobState {
        name: job.name.clone(),
        is_enabled: job.enabled,
        last_run: ran.map(|server| LastRun {
            started: moment(server.last_run_date, server.last_run_time),
            outcome: outcome(server.last_run_outcome),
            seconds: schedule::duration_seconds(server.last_run_duration),
        }),
        next_run: next.and_then(|next| moment(next.next_run_date, next.next_run_time)),
        running: match activity {
            Some(activity) => running(tables, activity)?,
            None => None,
        },
        message: match server {
            None => Some("not run by any server: sp_add_jobserver is missing".to_owned()),
            Some(server) => server.last_outcome_message,
        },
    })
}

fn running(tables: AgentTables<'_>, activity: &ActivityRecord) -> Result<Option<String>, Error> {
    let (Some(since), None) = (
        &activity.start_execution_date,
        &activity.stop_execution_date,
    ) else {
        return Ok(None);
    };
    let steps = tables.steps(&activity.job_id)?;
    let step = steps
        .iter()
        .find(|step| Some(step.step_id) == activity.last_executed_step_id);
    Ok(Some(match step {
        Some(step) => format!("step {} ({}), since {since}", step.step_id, step.step_name),
        None => format!("since {since}"),
    }))
}

/// The jobs as a table of a page.
pub fn table(jobs: &[JobState]) -> Table {
    let optional = |text: &Option<String>| text.as_deref().map_or(Cell::Missing, Cell::from);
    let shown = |at: Option<DateTime>| {
        at.map_or(Cell::Missing, |at| at.strftime("%F %T").to_string().into())
    };
    let row = |job: &JobState| {
        let last = job.last_run;
        Row::new(vec![
            job.name.as_str().into(),
            if job.is_enabled { "yes" } else { "no" }.into(),
            shown(last.and_then(|last| last.started)),
            last.map_or(Cell::Missing, |last| last.outcome.into()),
            last.map(|last| last.seconds as f64).into(),
            shown(job.next_run),
            optional(&job.running),
            optional(&job.message),
        ])
        .marked(last.is_some_and(|last| last.outcome == "failed"))
    };
    Table {
        key: "jobs",
        caption: "What ran last, and what comes".to_owned(),
        columns: vec![
            Column::text("job", "Job"),
            Column::text("enabled", "Enabled"),
            Column::moment("last_run", "Last run"),
            Column::text("outcome", "Outcome"),
            Column {
                key: "seconds",
                heading: "Took".to_owned(),
                kind: ColumnKind::Number {
                    unit: "s",
                    decimals: 0,
                },
            },
            Column::moment("next_run", "Next run"),
            Column::text("running", "Runs"),
            Column::text("message", "Message"),
        ],
        rows: jobs.iter().map(row).collect(),
    }
}

/// The jobs as JSON.
pub fn to_json(jobs: &[JobState]) -> Json {
    let one = |job: &JobState| {
        json!({
            "job": job.name,
            "enabled": job.is_enabled,
            "last_run": job.last_run.and_then(|last| last.started).map(|at| at.to_string()),
            "outcome": job.last_run.map(|last| last.outcome),
            "seconds": job.last_run.map(|last| last.seconds),
            "next_run": job.next_run.map(|at| at.to_string()),
            "running": job.running,
            "message": job.message,
        })
    };
    Json::Array(jobs.iter().map(one).collect())
}
