//! Steps: `sp_add_jobstep`, `sp_update_jobstep`, `sp_delete_jobstep`.

use windlass_base::Guid;
use windlass_base::message::table;
use windlass_catalog::{AgentTables, JobRecord, StepRecord};

use super::arguments::{Arguments, not_supported};
use super::{job_of, refuse_other_server};
use crate::agent::Now;
use crate::{Failure, Session};

const TSQL: &str = "TSQL";

/// The flag that puts the rows of a step into the history.
pub(in crate::agent) const ROWS_IN_HISTORY: i64 = 4;

/// Continues with the step that is named.
const GO_TO_STEP: i64 = 4;

/// `sp_add_jobstep`
pub(super) fn add(session: &mut Session, mut arguments: Arguments<'_>) -> Result<(), Failure> {
    refuse_other_server(session, &arguments, "@server")?;
    let name = arguments.required_name("@step_name")?;
    let mut step = StepRecord {
        job_id: String::new(),
        step_id: 0,
        step_uid: Guid::random().to_string(),
        step_name: name,
        command: String::new(),
        flags: 0,
        cmdexec_success_code: 0,
        on_success_action: 1,
        on_success_step_id: 0,
        on_fail_action: 2,
        on_fail_step_id: 0,
        database_name: "master".to_owned(),
        retry_attempts: 0,
        retry_interval: 0,
        os_run_priority: 0,
        last_run_outcome: 0,
        last_run_duration: 0,
        last_run_retries: 0,
        last_run_date: 0,
        last_run_time: 0,
    };
    let now = Now::here();
    let is_remote = session.principal().is_remote();
    session.instance.catalog_mut().change_agent(|tables| {
        let job = job_of(tables, &arguments)?;
        let mut steps = tables.steps(&job.job_id)?;
        refuse_name(&steps, &step.step_name, None)?;
        let last = steps.len() as i64 + 1;
        let place = arguments.number("@step_id").unwrap_or(last);
        if !(1..=last).contains(&place) {
            return Err(Failure::from(table::agent_value_not_among(
                "@step_id",
                format!("1..{last}"),
            )));
        }
        step.job_id.clone_from(&job.job_id);
        change(&mut step, &arguments)?;
        // Whoever goes to a step that is yet to come goes to this one, if it is the last.
        if place < last {
            for other in &mut steps {
                other.redirect(|id| if id >= place { id + 1 } else { id });
            }
        }
        steps.insert(usize::try_from(place - 1).unwrap_or(0), step.clone());
        store(tables, job, steps, &now, is_remote)
    })?;
    arguments.give_identity("@step_uid", &step.step_uid)
}

/// `sp_update_jobstep`
pub(super) fn update(session: &mut Session, arguments: &Arguments<'_>) -> Result<(), Failure> {
    refuse_other_server(session, arguments, "@server")?;
    let now = Now::here();
    let is_remote = session.principal().is_remote();
    session.instance.catalog_mut().change_agent(|tables| {
        let job = job_of(tables, arguments)?;
        let mut steps = tables.steps(&job.job_id)?;
        let id = arguments.number("@step_id").unwrap_or(0);
        if let Some(name) = arguments.name("@step_name")? {
            refuse_name(&steps, &name, Some(id))?;
        }
        let step = steps.iter_mut().find(|step| step.step_id == id);
        let step = step.ok_or_else(|| table::agent_object_unknown("@step_id", id))?;
        if let Some(name) = arguments.name("@step_name")? {
            step.step_name = name;
        }
        change(step, arguments)?;
        store(tables, job, steps, &now, is_remote)
    })
}

/// `sp_delete_jobstep`: a step, or all with number 0.
pub(super) fn delete(session: &mut Session, arguments: &Arguments<'_>) -> Result<(), Failure> {
    let now = Now::here();
    let is_remote = session.principal().is_remote();
    session.instance.catalog_mut().change_agent(|tables| {
        let job = job_of(tables, arguments)?;
        let mut steps = tables.steps(&job.job_id)?;
        let id = arguments.number("@step_id").unwrap_or(0);
        if id != 0 && steps.iter().all(|step| step.step_id != id) {
            return Err(Failure::from(table::agent_object_unknown("@step_id", id)));
        }
        steps.retain(|step| id != 0 && step.step_id != id);
        for step in &mut steps {
            // Whoever went to the step that is gone ends instead.
            for (action, target, ends) in [
                (&mut step.on_success_action, &mut step.on_success_step_id, 1),
                (&mut step.on_fail_action, &mut step.on_fail_step_id, 2),
            ] {
                if *action == GO_TO_STEP && *target == id {
                    (*action, *target) = (ends, 0);
                }
            }
            step.redirect(|other| if other > id { other - 1 } else { other });
        }
        store(tables, job, steps, &now, is_remote)
    })
}

/// Stores the steps in their order, numbered from 1.
fn store(
    tables: AgentTables<'_>,
    mut job: JobRecord,
    mut steps: Vec<StepRecord>,
    now: &Now,
    is_remote: bool,
) -> Result<(), Failure> {
    if is_remote {
        tables.mark_remote(&job.job_id)?;
    }
    for (step, id) in steps.iter_mut().zip(1..) {
        step.step_id = id;
    }
    tables.set_steps(&job.job_id, &steps)?;
    job.date_modified = now.text();
    job.version_number += 1;
    Ok(tables.put_job(&job)?)
}

fn refuse_name(steps: &[StepRecord], name: &str, own: Option<i64>) -> Result<(), Failure> {
    let is_taken = |step: &StepRecord| {
        Some(step.step_id) != own && step.step_name.to_lowercase() == name.to_lowercase()
    };
    match steps.iter().any(is_taken) {
        true => Err(table::agent_object_exists("@step_name", name).into()),
        false => Ok(()),
    }
}

/// Takes over what is given, but not the name.
fn change(step: &mut StepRecord, arguments: &Arguments<'_>) -> Result<(), Failure> {
    let subsystem = arguments.text("@subsystem");
    if let Some(subsystem) = subsystem.filter(|subsystem| !subsystem.eq_ignore_ascii_case(TSQL)) {
        return Err(table::subsystem_not_supported(&step.step_name, subsystem).into());
    }
    let as_server = "steps run with the rights of the server";
    for (name, reason) in [
        ("@database_user_name", as_server),
        ("@proxy_id", as_server),
        ("@proxy_name", as_server),
        ("@output_file_name", "what a step prints is in the history"),
        ("@additional_parameters", "SQL Server gives it no meaning"),
    ] {
        arguments.refuse(name, reason)?;
    }
    if let Some(command) = arguments.text("@command") {
        step.command = command;
    }
    if let Some(database) = arguments.name("@database_name")? {
        step.database_name = database;
    }
    arguments.replace("@flags", &mut step.flags);
    if step.flags & !ROWS_IN_HISTORY != 0 {
        let reason = "steps write no file and no table; 4 puts their rows into the history";
        return Err(not_supported("@flags", reason).into());
    }
    arguments.replace("@cmdexec_success_code", &mut step.cmdexec_success_code);
    let actions = (1, 4);
    let success = &mut step.on_success_action;
    arguments.replace_within("@on_success_action", success, actions, "1, 2, 3, 4")?;
    let fail = &mut step.on_fail_action;
    arguments.replace_within("@on_fail_action", fail, actions, "1, 2, 3, 4")?;
    arguments.replace("@on_success_step_id", &mut step.on_success_step_id);
    arguments.replace("@on_fail_step_id", &mut step.on_fail_step_id);
    for (name, action, target) in [
        (
            "@on_success_step_id",
            step.on_success_action,
            step.on_success_step_id,
        ),
        (
            "@on_fail_step_id",
            step.on_fail_action,
            step.on_fail_step_id,
        ),
    ] {
        // The step may be added later, but is none before the first.
        if action == GO_TO_STEP && target < 1 {
            return Err(table::agent_value_invalid(name).into());
        }
    }
    let most = i64::from(i32::MAX);
    let attempts = &mut step.retry_attempts;
    arguments.replace_within("@retry_attempts", attempts, (0, most), "0..2147483647")?;
    let interval = &mut step.retry_interval;
    arguments.replace_within("@retry_interval", interval, (0, most), "0..2147483647")?;
    let priorities = "-15, -1, 0, 1, 15";
    arguments.replace("@os_run_priority", &mut step.os_run_priority);
    match step.os_run_priority {
        -15 | -1 | 0 | 1 | 15 => Ok(()),
        _ => Err(table::agent_value_not_among("@os_run_priority", priorities).into()),
    }
}

/// Steps that go to others.
trait Redirect {
    fn redirect(&mut self, place: impl Fn(i64) -> i64);
}

impl Redirect for StepRecord {
    fn redirect(&mut self, place: impl Fn(i64) -> i64) {
        if self.on_success_action == GO_TO_STEP {
            self.on_success_step_id = place(self.on_success_step_id);
        }
        if self.on_fail_action == GO_TO_STEP {
            self.on_fail_step_id = place(self.on_fail_step_id);
        }
    }
}
