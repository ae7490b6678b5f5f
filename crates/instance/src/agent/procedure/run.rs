//! What the agent is asked for, and its history: `sp_start_job`, `sp_stop_job`, `sp_purge_jobhistory`.

use windlass_base::message::table;
use windlass_catalog::{AgentTables, HistoryPurge, JobRecord, RequestRecord};

use super::arguments::Arguments;
use super::{job_of, refuse_other_server};
use crate::agent::{is_running, schedule};
use crate::{Failure, Session, Sink, Value};

const NOT_RUNNING: &str =
    "SQLServerAgent is not currently running so it cannot be notified of this action.";

/// `sp_start_job`
pub(super) fn start(
    session: &mut Session,
    arguments: &Arguments<'_>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let job = ask(session, arguments, false)?;
    if arguments.is_set("@output_flag") {
        sink.message(table::job_started(&job.name));
    }
    Ok(())
}

/// `sp_stop_job`
pub(super) fn stop(
    session: &mut Session,
    arguments: &Arguments<'_>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    refuse_other_server(session, arguments, "@originating_server")?;
    let job = ask(session, arguments, true)?;
    sink.message(table::job_stopped(&job.name));
    Ok(())
}

/// Leaves a request to the agent; returns its job.
fn ask(
    session: &mut Session,
    arguments: &Arguments<'_>,
    is_stop: bool,
) -> Result<JobRecord, Failure> {
    refuse_other_server(session, arguments, "@server_name")?;
    if session.queries.transaction_depth() > 0 {
        let procedure = if is_stop {
            "sp_stop_job"
        } else {
            "sp_start_job"
        };
        return Err(table::not_in_transaction(procedure).into());
    }
    let user = session.instance.identity().user.clone();
    let runs = session.instance.folder().is_some_and(is_running);
    session.instance.catalog_mut().change_agent(|tables| {
        let job = job_of(tables, arguments)?;
        let start_step_id = start_step(tables, &job, arguments)?;
        if !is_stop && tables.server(&job.job_id)?.is_none() {
            return Err(Failure::from(table::job_without_server(
                &job.name,
                &job.job_id,
            )));
        }
        if !runs {
            return Err(table::agent_refuses(NOT_RUNNING).into());
        }
        refuse(tables, &job, &user, is_stop)?;
        tables.add_request(&RequestRecord {
            request_id: 0,
            job_id: job.job_id.clone(),
            is_stop,
            start_step_id,
            user_name: user,
        })?;
        Ok(job)
    })
}

/// The step that `@step_name` names.
fn start_step(
    tables: AgentTables<'_>,
    job: &JobRecord,
    arguments: &Arguments<'_>,
) -> Result<Option<i64>, Failure> {
    let Some(name) = arguments.text("@step_name") else {
        return Ok(None);
    };
    let steps = tables.steps(&job.job_id)?;
    let found = steps
        .iter()
        .find(|step| step.step_name.to_lowercase() == name.to_lowercase());
    match found {
        Some(step) => Ok(Some(step.step_id)),
        None => Err(table::agent_object_unknown("@step_name", name).into()),
    }
}

/// Refuses to start what runs, and to stop what does not.
fn refuse(
    tables: AgentTables<'_>,
    job: &JobRecord,
    user: &str,
    is_stop: bool,
) -> Result<(), Failure> {
    let activity = tables.activity()?.into_iter().find(|activity| {
        activity.job_id == job.job_id
            && activity.start_execution_date.is_some()
            && activity.stop_execution_date.is_none()
    });
    let asked = tables.requests()?;
    let mut asked = asked.iter().filter(|request| request.job_id == job.job_id);
    let runs = activity.is_some();
    let name = &job.name;
    if is_stop && !runs && asked.next().is_none() {
        let reason = format!(
            "SQLServerAgent Error: Request to stop job {name} (from User {user}) refused because the job is not \
             currently running."
        );
        return Err(table::agent_refuses(reason).into());
    }
    if !is_stop && (runs || asked.any(|request| !request.is_stop)) {
        let source = activity.and_then(|activity| activity.run_requested_source);
        let source = match source.as_deref() {
            Some("1" | "3") => "a schedule",
            _ => "a user",
        };
        let reason = format!(
            "SQLServerAgent Error: Request to run job {name} (from User {user}) refused because the job is already \
             running from a request by {source}."
        );
        return Err(table::agent_refuses(reason).into());
    }
    Ok(())
}

/// `sp_purge_jobhistory`
pub(super) fn purge(
    session: &mut Session,
    arguments: &Arguments<'_>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let before = match arguments.value("@oldest_date") {
        Some(Value::DateTime(at) | Value::DateTime2(at)) => Some(schedule::numbers(at)),
        _ => None,
    };
    let is_of_job = arguments.value("@job_id").is_some() || arguments.value("@job_name").is_some();
    let deleted = session.instance.catalog_mut().change_agent(|tables| {
        let job = match is_of_job {
            true => Some(job_of(tables, arguments)?),
            false => None,
        };
        let job_id = job.as_ref().map(|job| job.job_id.as_str());
        Ok::<_, Failure>(tables.purge_history(HistoryPurge { job_id, before })?)
    })?;
    sink.message(table::history_purged(deleted));
    Ok(())
}
