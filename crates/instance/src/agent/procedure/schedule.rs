//! Schedules: `sp_add_schedule`, `sp_attach_schedule`, `sp_add_jobschedule` and their relatives.

use windlass_base::message::table;
use windlass_base::{Guid, Message};
use windlass_catalog::{AgentTables, JobRecord, JobScheduleRecord, ScheduleRecord};

use super::arguments::{Arguments, not_supported};
use super::{job_of, refuse_other_server};
use crate::agent::schedule::{date, numbers, time};
use crate::agent::{Now, schedule_link};
use crate::{Failure, Session, Value};

/// The last day of the calendar of SQL Server.
const LAST_DATE: i64 = 99_991_231;

const LAST_TIME: i64 = 235_959;

/// The shortest interval in seconds.
const SECONDS_MIN: i64 = 10;

/// `sp_add_schedule`
pub(super) fn add(session: &mut Session, mut arguments: Arguments<'_>) -> Result<(), Failure> {
    refuse_other_server(session, &arguments, "@originating_server")?;
    let now = Now::here();
    let mut record = new(session, &arguments, "@schedule_name", &now)?;
    record.schedule_id = session
        .instance
        .catalog_mut()
        .change_agent(|tables| Ok::<_, Failure>(tables.add_schedule(&record)?))?;
    give(&mut arguments, &record)
}

/// `sp_add_jobschedule`: a schedule of its own for a job.
pub(super) fn add_to_job(
    session: &mut Session,
    mut arguments: Arguments<'_>,
) -> Result<(), Failure> {
    let now = Now::here();
    let mut record = new(session, &arguments, "@name", &now)?;
    session.instance.catalog_mut().change_agent(|tables| {
        let job = job_of(tables, &arguments)?;
        record.schedule_id = tables.add_schedule(&record)?;
        link(tables, &job, record.schedule_id, &now)
    })?;
    give(&mut arguments, &record)
}

fn give(arguments: &mut Arguments<'_>, record: &ScheduleRecord) -> Result<(), Failure> {
    arguments.give("@schedule_id", &Value::Integer(record.schedule_id))?;
    arguments.give_identity("@schedule_uid", &record.schedule_uid)
}

/// A schedule of the arguments, without a number yet.
fn new(
    session: &Session,
    arguments: &Arguments<'_>,
    name: &str,
    now: &Now,
) -> Result<ScheduleRecord, Failure> {
    let identity = arguments.text("@schedule_uid");
    let mut record = ScheduleRecord {
        schedule_id: 0,
        schedule_uid: identity.unwrap_or_else(|| Guid::random().to_string()),
        name: arguments.required_name(name)?,
        owner_login_name: session.instance.identity().user.clone(),
        enabled: true,
        freq_type: 0,
        freq_interval: 0,
        freq_subday_type: 0,
        freq_subday_interval: 0,
        freq_relative_interval: 0,
        freq_recurrence_factor: 0,
        active_start_date: 0,
        active_end_date: LAST_DATE,
        active_start_time: 0,
        active_end_time: LAST_TIME,
        date_created: now.text(),
        date_modified: now.text(),
        version_number: 1,
    };
    change(&mut record, arguments, now)?;
    Ok(record)
}

/// `sp_update_schedule`
pub(super) fn update(session: &mut Session, arguments: &Arguments<'_>) -> Result<(), Failure> {
    let now = Now::here();
    session.instance.catalog_mut().change_agent(|tables| {
        let mut record = schedule_of(tables, arguments, "@name")?;
        if let Some(name) = arguments.name("@new_name")? {
            record.name = name;
        }
        change(&mut record, arguments, &now)?;
        record.date_modified = now.text();
        record.version_number += 1;
        tables.put_schedule(&record)?;
        for link in tables.links_of_schedule(record.schedule_id)? {
            if let Some(job) = tables.job(&link.job_id)? {
                schedule_link(tables, job.enabled, &link, &now)?;
            }
        }
        Ok(())
    })
}

/// `sp_delete_schedule`
pub(super) fn delete(session: &mut Session, arguments: &Arguments<'_>) -> Result<(), Failure> {
    session.instance.catalog_mut().change_agent(|tables| {
        let record = schedule_of(tables, arguments, "@schedule_name")?;
        let is_used = !tables.links_of_schedule(record.schedule_id)?.is_empty();
        if is_used && !arguments.is_set("@force_delete") {
            return Err(Failure::from(table::schedule_in_use()));
        }
        Ok(tables.delete_schedule(record.schedule_id)?)
    })
}

/// `sp_attach_schedule`
pub(super) fn attach(session: &mut Session, arguments: &Arguments<'_>) -> Result<(), Failure> {
    let now = Now::here();
    session.instance.catalog_mut().change_agent(|tables| {
        let job = job_of(tables, arguments)?;
        let record = schedule_of(tables, arguments, "@schedule_name")?;
        let links = tables.links_of_job(&job.job_id)?;
        // As on SQL Server, once more does nothing.
        match links
            .iter()
            .any(|link| link.schedule_id == record.schedule_id)
        {
            true => Ok(()),
            false => link(tables, &job, record.schedule_id, &now),
        }
    })
}

/// `sp_detach_schedule`
pub(super) fn detach(session: &mut Session, arguments: &Arguments<'_>) -> Result<(), Failure> {
    session.instance.catalog_mut().change_agent(|tables| {
        let job = job_of(tables, arguments)?;
        let record = schedule_of(tables, arguments, "@schedule_name")?;
        let deletes = arguments.is_set("@delete_unused_schedule");
        unlink(tables, &job, &record, deletes)
    })
}

/// `sp_delete_jobschedule`: detaches a schedule of the job, and deletes it if no other job uses it.
pub(super) fn delete_of_job(
    session: &mut Session,
    arguments: &Arguments<'_>,
) -> Result<(), Failure> {
    let name = arguments.required_name("@name")?;
    session.instance.catalog_mut().change_agent(|tables| {
        let job = job_of(tables, arguments)?;
        let links = tables.links_of_job(&job.job_id)?;
        let mut found = tables.schedules_named(&name)?;
        found.retain(|record| {
            links
                .iter()
                .any(|link| link.schedule_id == record.schedule_id)
        });
        if found.is_empty() {
            return Err(Failure::from(table::schedule_not_of_job(&name, &job.name)));
        }
        let deletes = !arguments.is_set("@keep_schedule");
        found
            .iter()
            .try_for_each(|record| unlink(tables, &job, record, deletes))
    })
}

fn link(
    tables: AgentTables<'_>,
    job: &JobRecord,
    schedule_id: i64,
    now: &Now,
) -> Result<(), Failure> {
    let link = JobScheduleRecord {
        job_id: job.job_id.clone(),
        schedule_id,
        next_run: None,
        next_run_date: 0,
        next_run_time: 0,
    };
    Ok(schedule_link(tables, job.enabled, &link, now)?)
}

fn unlink(
    tables: AgentTables<'_>,
    job: &JobRecord,
    record: &ScheduleRecord,
    deletes: bool,
) -> Result<(), Failure> {
    if !tables.delete_link(&job.job_id, record.schedule_id)? {
        return Err(table::schedule_not_of_job(&record.name, &job.name).into());
    }
    if deletes && tables.links_of_schedule(record.schedule_id)?.is_empty() {
        tables.delete_schedule(record.schedule_id)?;
    }
    Ok(())
}

/// The schedule that `@schedule_id` or a name names.
fn schedule_of(
    tables: AgentTables<'_>,
    arguments: &Arguments<'_>,
    parameter: &str,
) -> Result<ScheduleRecord, Failure> {
    match (arguments.number("@schedule_id"), arguments.text(parameter)) {
        (Some(id), None) => tables
            .schedule(id)?
            .ok_or_else(|| table::agent_object_unknown("@schedule_id", id).into()),
        (None, Some(name)) => {
            let mut found = tables.schedules_named(&name)?;
            match (found.pop(), found.is_empty()) {
                (Some(record), true) => Ok(record),
                (Some(_), false) => {
                    Err(table::schedules_of_one_name(name, "@schedule_id", parameter).into())
                }
                (None, _) => Err(table::agent_object_unknown(parameter, name).into()),
            }
        }
        _ => Err(table::schedule_not_identified("@schedule_id", parameter).into()),
    }
}

/// Takes over what is given, but not the name, and checks the whole.
fn change(
    record: &mut ScheduleRecord,
    arguments: &Arguments<'_>,
    now: &Now,
) -> Result<(), Failure> {
    arguments.replace_choice("@enabled", &mut record.enabled)?;
    if let Some(owner) = arguments.name("@owner_login_name")? {
        record.owner_login_name = owner;
    }
    for (name, number) in [
        ("@freq_type", &mut record.freq_type),
        ("@freq_interval", &mut record.freq_interval),
        ("@freq_subday_type", &mut record.freq_subday_type),
        ("@freq_subday_interval", &mut record.freq_subday_interval),
        (
            "@freq_relative_interval",
            &mut record.freq_relative_interval,
        ),
        (
            "@freq_recurrence_factor",
            &mut record.freq_recurrence_factor,
        ),
        ("@active_start_date", &mut record.active_start_date),
        ("@active_end_date", &mut record.active_end_date),
        ("@active_start_time", &mut record.active_start_time),
        ("@active_end_time", &mut record.active_end_time),
    ] {
        arguments.replace(name, number);
    }
    if record.name.eq_ignore_ascii_case("ALL") {
        return Err(table::agent_value_invalid("@name").into());
    }
    check_words(record)?;
    check_times(record, now)?;
    check_days(record)
}

fn check_words(record: &ScheduleRecord) -> Result<(), Failure> {
    let among = |name, words| Err(table::agent_value_not_among(name, words).into());
    match record.freq_type {
        1 | 4 | 8 | 16 | 32 | 64 => {}
        2 => return Err(table::on_demand_schedule().into()),
        128 => {
            let reason = "the server does not watch how idle the processors are";
            return Err(not_supported("@freq_type 128", reason).into());
        }
        _ => return among("@freq_type", "1, 4, 8, 16, 32, 64"),
    }
    match record.freq_subday_type {
        0 | 1 | 2 | 4 | 8 => Ok(()),
        _ => among("@freq_subday_type", "0x1, 0x2, 0x4, 0x8"),
    }
}

fn check_times(record: &mut ScheduleRecord, now: &Now) -> Result<(), Failure> {
    for (number, default) in [
        (
            &mut record.active_start_date,
            numbers(now.zone.to_datetime(now.at)).0,
        ),
        (&mut record.active_end_date, LAST_DATE),
        (&mut record.active_end_time, LAST_TIME),
    ] {
        if *number == 0 {
            *number = default;
        }
    }
    for (name, number, is_valid, part) in [
        (
            "@active_end_date",
            record.active_end_date,
            date(record.active_end_date).is_some(),
            "date",
        ),
        (
            "@active_start_date",
            record.active_start_date,
            date(record.active_start_date).is_some(),
            "date",
        ),
        (
            "@active_end_time",
            record.active_end_time,
            time(record.active_end_time).is_some(),
            "time",
        ),
        (
            "@active_start_time",
            record.active_start_time,
            time(record.active_start_time).is_some(),
            "time",
        ),
    ] {
        if !is_valid || number < 0 {
            return Err(table::agent_part_invalid(name, part).into());
        }
    }
    if record.active_end_date < record.active_start_date {
        return Err(table::agent_order_invalid("@active_end_date", "@active_start_date").into());
    }
    let repeats = matches!(record.freq_subday_type, 2 | 4 | 8);
    if repeats && record.active_start_time == record.active_end_time {
        let values = "before or after @active_start_time";
        return Err(table::agent_value_not_among("@active_end_time", values).into());
    }
    Ok(())
}

fn check_days(record: &mut ScheduleRecord) -> Result<(), Failure> {
    if matches!(record.freq_type, 1 | 64) {
        for number in [
            &mut record.freq_interval,
            &mut record.freq_subday_type,
            &mut record.freq_subday_interval,
            &mut record.freq_relative_interval,
            &mut record.freq_recurrence_factor,
        ] {
            *number = 0;
        }
        return Ok(());
    }
    if record.freq_subday_type == 0 {
        record.freq_subday_type = 1;
    }
    if record.freq_type == 4 {
        record.freq_recurrence_factor = 0;
    }
    match wrong(record) {
        Some(reason) => Err(table::schedule_invalid(reason.text).into()),
        None => Ok(()),
    }
}

fn wrong(record: &ScheduleRecord) -> Option<Message> {
    let least = match record.freq_subday_type {
        1 => i64::MIN,
        2 => SECONDS_MIN,
        _ => 1,
    };
    if record.freq_subday_interval < least {
        return Some(table::agent_value_invalid("@freq_subday_interval"));
    }
    let interval = record.freq_interval;
    match record.freq_type {
        4 if interval < 1 => Some(table::daily_interval()),
        8 if !(1..=127).contains(&interval) => Some(table::weekly_interval()),
        16 if !(1..=31).contains(&interval) => Some(table::monthly_interval()),
        32 if !matches!(record.freq_relative_interval, 1 | 2 | 4 | 8 | 16) => {
            Some(table::relative_which())
        }
        32 if !(1..=10).contains(&interval) => Some(table::relative_kind()),
        8 | 16 | 32 if record.freq_recurrence_factor < 1 => Some(table::recurrence_factor()),
        _ => None,
    }
}
