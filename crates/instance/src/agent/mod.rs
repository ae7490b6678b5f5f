//! Jobs, with the words of SQL Server Agent.
//!
//! | module | what |
//! |---|---|
//! | [`schedule`] | when a schedule is due next: pure |
//! | `procedure` | `sp_add_job` and its relatives, for T-SQL |
//! | `runner` | the agent: a thread that waits for what is due, and one for each job that runs |
//! | `execution` | one run of a job: steps, retries, outcome |
//! | `hook` | tells an operator that a job failed |
//! | `lock` | one agent for each instance |
//!
//! Neighbours: the tables are in `catalog`; their views in `query/views/jobs.txt`.
//!
//! Invariants:
//! 1. Jobs may be changed and asked for in any process; one process runs them, the holder of `agent.lock`.
//! 2. What is due next is in the catalog, so that an agent that starts finds what it missed, and runs it once.
//! 3. No job runs twice at a time.

mod execution;
mod hook;
mod lock;
pub(crate) mod procedure;
mod runner;
pub mod schedule;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use windlass_base::local_now;
use windlass_catalog::{AgentTables, Error as CatalogError, JobRecord, JobScheduleRecord};

pub use self::hook::Hook;
pub use self::lock::is_running;
pub use self::runner::{Agent, Clock, Options, SystemClock, start};
use self::schedule::Schedule;
use crate::Session;
use crate::query::TransactionEnd;

/// The time and its zone.
#[derive(Debug, Clone)]
pub(crate) struct Now {
    pub(crate) at: Timestamp,
    pub(crate) zone: TimeZone,
}

impl Now {
    pub(crate) fn here() -> Self {
        let now = local_now();
        Self {
            at: now.timestamp(),
            zone: now.time_zone().clone(),
        }
    }

    /// As the catalog keeps it.
    pub(crate) fn text(&self) -> String {
        text(self.at, &self.zone)
    }
}

fn text(at: Timestamp, zone: &TimeZone) -> String {
    zone.to_datetime(at)
        .strftime("%Y-%m-%d %H:%M:%S")
        .to_string()
}

/// Computes when the schedules of a job start it next, as of now.
pub(crate) fn schedule_job(
    tables: AgentTables<'_>,
    job: &JobRecord,
    now: &Now,
) -> Result<(), CatalogError> {
    for link in tables.links_of_job(&job.job_id)? {
        schedule_link(tables, job.enabled, &link, now)?;
    }
    Ok(())
}

/// The same for one of its schedules.
pub(crate) fn schedule_link(
    tables: AgentTables<'_>,
    job_is_enabled: bool,
    link: &JobScheduleRecord,
    now: &Now,
) -> Result<(), CatalogError> {
    let record = tables.schedule(link.schedule_id)?;
    let next = record
        .filter(|record| record.enabled && job_is_enabled)
        .and_then(|record| Schedule::of(&record)?.next_after(now.at, &now.zone));
    let (date, time) = next.map_or((0, 0), |next| schedule::numbers(now.zone.to_datetime(next)));
    tables.put_link(&JobScheduleRecord {
        next_run: next.map(Timestamp::as_second),
        next_run_date: date,
        next_run_time: time,
        ..link.clone()
    })
}

/// Lets the changes of jobs follow the transaction of the session in which they were made, if it has ended.
pub(crate) fn follow_transaction(session: &mut Session) {
    let Some(end) = session.queries.take_end() else {
        return;
    };
    let catalog = session.instance.catalog_mut();
    let followed = match end {
        TransactionEnd::Committed => catalog.keep_agent_changes(),
        TransactionEnd::RolledBack => catalog.take_back_agent_changes(),
    };
    if let Err(error) = followed {
        tracing::error!(%error, "changes of jobs do not follow their transaction");
    }
}
