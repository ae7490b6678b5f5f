//! Jobs: `sp_add_job`, `sp_update_job`, `sp_delete_job`, the servers and categories of jobs.

use windlass_base::Guid;
use windlass_base::message::table;
use windlass_catalog::{AgentTables, JobRecord, ServerRecord};

use super::arguments::Arguments;
use super::{job_of, refuse_other_server};
use crate::agent::{Now, schedule_job};
use crate::{Failure, Session};

/// The class of the categories of jobs.
const OF_JOBS: i64 = 1;

/// The outcome of a job that has not run.
const UNKNOWN: i64 = 5;

const NO_DESCRIPTION: &str = "No description available.";

/// `sp_add_job`
pub(super) fn add(session: &mut Session, mut arguments: Arguments<'_>) -> Result<(), Failure> {
    refuse_other_server(session, &arguments, "@originating_server")?;
    if arguments.value("@job_id").is_some() {
        return Err(table::job_id_for_new_job().into());
    }
    let now = Now::here();
    let mut job = JobRecord {
        job_id: Guid::random().to_string(),
        name: String::new(),
        enabled: true,
        description: Some(NO_DESCRIPTION.to_owned()),
        start_step_id: 1,
        category_id: 0,
        owner_login_name: session.instance.identity().user.clone(),
        notify_level_eventlog: 0,
        notify_level_email: 0,
        notify_level_netsend: 0,
        notify_level_page: 0,
        delete_level: 0,
        date_created: now.text(),
        date_modified: now.text(),
        version_number: 1,
    };
    let name = arguments.required_name("@job_name")?;
    let is_remote = session.principal().is_remote();
    session.instance.catalog_mut().change_agent(|tables| {
        if tables.job_named(&name)?.is_some() {
            return Err(Failure::from(table::agent_object_exists(
                "@job_name",
                &name,
            )));
        }
        job.name = name;
        change(tables, &mut job, &arguments)?;
        if is_remote {
            tables.mark_remote(&job.job_id)?;
        }
        Ok(tables.put_job(&job)?)
    })?;
    arguments.give_identity("@job_id", &job.job_id)
}

/// `sp_update_job`
pub(super) fn update(session: &mut Session, arguments: &Arguments<'_>) -> Result<(), Failure> {
    let now = Now::here();
    session.instance.catalog_mut().change_agent(|tables| {
        let mut job = job_of(tables, arguments)?;
        let was_enabled = job.enabled;
        if let Some(name) = arguments.name("@new_name")? {
            let other = tables.job_named(&name)?;
            if other.is_some_and(|other| other.job_id != job.job_id) {
                return Err(table::agent_object_exists("@new_name", name).into());
            }
            job.name = name;
        }
        change(tables, &mut job, arguments)?;
        job.date_modified = now.text();
        job.version_number += 1;
        tables.put_job(&job)?;
        match job.enabled == was_enabled {
            true => Ok(()),
            false => Ok(schedule_job(tables, &job, &now)?),
        }
    })
}

/// Takes over what is given, but not the name.
fn change(
    tables: AgentTables<'_>,
    job: &mut JobRecord,
    arguments: &Arguments<'_>,
) -> Result<(), Failure> {
    arguments.replace_choice("@enabled", &mut job.enabled)?;
    if let Some(text) = arguments.text("@description") {
        job.description = Some(text);
    }
    let ids = (1, i64::from(i32::MAX));
    arguments.replace_within(
        "@start_step_id",
        &mut job.start_step_id,
        ids,
        "1..2147483647",
    )?;
    job.category_id = category(tables, job, arguments)?;
    if let Some(owner) = arguments.name("@owner_login_name")? {
        job.owner_login_name = owner;
    }
    for (name, level) in [
        ("@notify_level_eventlog", &mut job.notify_level_eventlog),
        ("@notify_level_email", &mut job.notify_level_email),
        ("@notify_level_netsend", &mut job.notify_level_netsend),
        ("@notify_level_page", &mut job.notify_level_page),
        ("@delete_level", &mut job.delete_level),
    ] {
        arguments.replace_within(name, level, (0, 3), "0, 1, 2, 3")?;
    }
    for name in [
        "@notify_email_operator_name",
        "@notify_netsend_operator_name",
        "@notify_page_operator_name",
    ] {
        // There are no operators, so none of this name. SSMS gives an empty name for none.
        if arguments.text(name).is_some_and(|name| !name.is_empty()) {
            return Err(table::agent_name_invalid(name, "sp_help_operator").into());
        }
    }
    Ok(())
}

fn category(
    tables: AgentTables<'_>,
    job: &JobRecord,
    arguments: &Arguments<'_>,
) -> Result<i64, Failure> {
    if let Some(name) = arguments.name("@category_name")? {
        let found = tables.category(OF_JOBS, &name)?;
        let found = found.map(|category| category.category_id);
        return found
            .ok_or_else(|| table::agent_name_invalid("@category_name", "sp_help_category").into());
    }
    let Some(number) = arguments.number("@category_id") else {
        return Ok(job.category_id);
    };
    let with_number = JobRecord {
        category_id: number,
        ..job.clone()
    };
    match tables.category_of(&with_number)? {
        Some(category) if category.category_class == OF_JOBS => Ok(number),
        _ => Err(table::agent_name_invalid("@category_id", "sp_help_category").into()),
    }
}

/// `sp_delete_job`
pub(super) fn delete(session: &mut Session, arguments: &Arguments<'_>) -> Result<(), Failure> {
    refuse_other_server(session, arguments, "@originating_server")?;
    session.instance.catalog_mut().change_agent(|tables| {
        let job = job_of(tables, arguments)?;
        let links = tables.links_of_job(&job.job_id)?;
        tables.delete_job(&job.job_id, arguments.is_set("@delete_history"))?;
        if arguments.is_set("@delete_unused_schedule") {
            for link in links {
                if tables.links_of_schedule(link.schedule_id)?.is_empty() {
                    tables.delete_schedule(link.schedule_id)?;
                }
            }
        }
        Ok(())
    })
}

/// `sp_add_jobserver`
pub(super) fn add_server(session: &mut Session, arguments: &Arguments<'_>) -> Result<(), Failure> {
    refuse_other_server(session, arguments, "@server_name")?;
    let server = session.instance.identity().server.clone();
    session.instance.catalog_mut().change_agent(|tables| {
        let job = job_of(tables, arguments)?;
        if tables.server(&job.job_id)?.is_some() {
            return Err(Failure::from(table::job_has_server(&job.name, server)));
        }
        Ok(tables.put_server(&ServerRecord {
            job_id: job.job_id,
            last_run_outcome: UNKNOWN,
            last_outcome_message: None,
            last_run_date: 0,
            last_run_time: 0,
            last_run_duration: 0,
        })?)
    })
}

/// `sp_delete_jobserver`
pub(super) fn delete_server(
    session: &mut Session,
    arguments: &Arguments<'_>,
) -> Result<(), Failure> {
    refuse_other_server(session, arguments, "@server_name")?;
    let server = session.instance.identity().server.clone();
    session.instance.catalog_mut().change_agent(|tables| {
        let job = job_of(tables, arguments)?;
        match tables.delete_server(&job.job_id)? {
            true => Ok(()),
            false => Err(Failure::from(table::job_lacks_server(&job.name, server))),
        }
    })
}

/// `sp_add_category`
pub(super) fn add_category(
    session: &mut Session,
    arguments: &Arguments<'_>,
) -> Result<(), Failure> {
    let among = |parameter: &str, words: &[(&str, i64)]| {
        let word = arguments.text(parameter).unwrap_or_default();
        let found = words
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(word.trim()));
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        found
            .map(|(_, number)| *number)
            .ok_or_else(|| Failure::from(table::agent_value_not_among(parameter, names.join(", "))))
    };
    let classes = [("JOB", 1), ("ALERT", 2), ("OPERATOR", 3)];
    let class = among("@class", &classes)?;
    let kind = among("@type", &[("LOCAL", 1), ("MULTI-SERVER", 2), ("NONE", 3)])?;
    let name = arguments.required_name("@name")?;
    session.instance.catalog_mut().change_agent(|tables| {
        if tables.category(class, &name)?.is_some() {
            return Err(Failure::from(table::agent_object_exists("@name", &name)));
        }
        Ok(tables.add_category(class, kind, &name)?)
    })
}
