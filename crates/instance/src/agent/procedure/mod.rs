//! The procedures of SQL Server Agent: `sp_add_job` and its relatives, in `msdb`.
//!
//! `definitions.sql` has their parameters as T-SQL, so that a call is bound and checked like that of any stored
//! procedure. Their bodies are here, except for those that are queries.
//!
//! As on SQL Server, an error makes the return code 1, and the batch goes on.

mod arguments;
mod job;
mod run;
mod schedule;
mod step;

pub(super) use self::step::ROWS_IN_HISTORY;

use windlass_base::message::table;
use windlass_catalog::{AgentTables, JobRecord};
use windlass_tsql::ast::{DefineProcedure, Execute, Statement};

use self::arguments::Arguments;
use crate::failure::AfterFailure;
use crate::login::Right;
use crate::tsql::procedure::stored::{Call, bound, finish};
use crate::{Failure, Session, Sink};

const DEFINITIONS: &str = include_str!("definitions.sql");

const DATABASE: &str = "msdb";

/// The definition of a procedure; `None` if there is none of that name.
fn definition_of(name: &str) -> Option<&'static str> {
    DEFINITIONS
        .split("\nGO\n")
        .map(|text| match text.strip_prefix("--") {
            Some(commented) => commented.split_once('\n').map_or("", |(_, rest)| rest),
            None => text,
        })
        .find(|text| {
            let own = text.split_whitespace().nth(2);
            own.is_some_and(|own| own.eq_ignore_ascii_case(name))
        })
}

/// Whether EXEC means one of the procedures; `current` is the current database.
fn is_one(execute: &Execute, current: &str) -> Option<&'static str> {
    let written = &execute.procedure.node;
    let database = written
        .database()
        .map_or(current, |database| &database.text);
    let is_here = database.eq_ignore_ascii_case(DATABASE)
        && written.schema().is_none_or(|schema| schema.is("dbo"));
    is_here
        .then(|| definition_of(&written.object.text))
        .flatten()
}

/// What EXEC of one of the procedures needs; `None` if it is none of them. Steps run as the administrator, so who may
/// write them is one.
pub(crate) fn right(execute: &Execute, current: &str) -> Option<Right> {
    is_one(execute, current)?;
    let name = execute.procedure.node.object.text.to_ascii_lowercase();
    Some(match name.as_str() {
        "sp_help_job" | "sp_help_jobhistory" => Right::History,
        _ => Right::Server,
    })
}

/// EXEC of one of the procedures; `None` if the name, in that database, is none of them.
pub(crate) fn call(
    session: &mut Session,
    execute: &Execute,
    sink: &mut dyn Sink,
) -> Result<Option<i64>, Failure> {
    let Some(text) = is_one(execute, session.current_database()) else {
        return Ok(None);
    };
    session.refuse_nesting()?;
    let mut parsed = windlass_tsql::parse_batch(text)?;
    let Some(Statement::DefineProcedure(definition)) = parsed.pop().map(|parsed| parsed.node)
    else {
        return Err(table::internal_consistency().into());
    };
    let name = definition.name.node.object.text.clone();
    let call = bound(session, &name, &definition.parameters, &execute.arguments)?;
    let outer = session.procedure.replace(name.as_str().into());
    let ran = run(session, &name, &definition, call, sink);
    session.procedure = outer;
    ran.map(Some)
}

fn run(
    session: &mut Session,
    name: &str,
    definition: &DefineProcedure,
    mut call: Call,
    sink: &mut dyn Sink,
) -> Result<i64, Failure> {
    if definition.body.len() > 1 {
        let ran = session.execute_scope(&definition.body, call.variables, sink)?;
        session.keeps_error = Some(session.last_error);
        return Ok(ran.return_code.unwrap_or(0));
    }
    match own(session, name, Arguments(&mut call.variables), sink) {
        Ok(()) => {
            finish(session, &call.outputs, &call.variables)?;
            Ok(0)
        }
        Err(failure) if session.tries > 0 => Err(failure.placed(1, Some(name))),
        Err(failure) => {
            let failure = Failure {
                batch: AfterFailure::Raised,
                ..failure
            };
            session.failed(failure, 1, sink);
            session.keeps_error = Some(session.last_error);
            Ok(1)
        }
    }
}

fn own(
    session: &mut Session,
    name: &str,
    arguments: Arguments<'_>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    if session.queries.transaction_depth() > 0 {
        session.instance.catalog_mut().note_agent_changes()?;
    }
    match name {
        "sp_add_category" => job::add_category(session, &arguments),
        "sp_add_job" => job::add(session, arguments),
        "sp_update_job" => job::update(session, &arguments),
        "sp_delete_job" => job::delete(session, &arguments),
        "sp_add_jobserver" => job::add_server(session, &arguments),
        "sp_delete_jobserver" => job::delete_server(session, &arguments),
        "sp_add_jobstep" => step::add(session, arguments),
        "sp_update_jobstep" => step::update(session, &arguments),
        "sp_delete_jobstep" => step::delete(session, &arguments),
        "sp_add_schedule" => schedule::add(session, arguments),
        "sp_add_jobschedule" => schedule::add_to_job(session, arguments),
        "sp_update_schedule" => schedule::update(session, &arguments),
        "sp_delete_schedule" => schedule::delete(session, &arguments),
        "sp_attach_schedule" => schedule::attach(session, &arguments),
        "sp_detach_schedule" => schedule::detach(session, &arguments),
        "sp_delete_jobschedule" => schedule::delete_of_job(session, &arguments),
        "sp_start_job" => run::start(session, &arguments, sink),
        "sp_stop_job" => run::stop(session, &arguments, sink),
        "sp_purge_jobhistory" => run::purge(session, &arguments, sink),
        _ => Err(table::procedure_not_found(name).into()),
    }
}

/// The job that `@job_id` or `@job_name` names.
fn job_of(tables: AgentTables<'_>, arguments: &Arguments<'_>) -> Result<JobRecord, Failure> {
    let (id, name) = (arguments.text("@job_id"), arguments.text("@job_name"));
    match (id, name) {
        (Some(id), None) => tables
            .job(&id)?
            .ok_or_else(|| table::agent_object_unknown("@job_id", id).into()),
        (None, Some(name)) => tables
            .job_named(&name)?
            .ok_or_else(|| table::agent_object_unknown("@job_name", name).into()),
        _ => Err(table::job_not_identified("@job_id", "@job_name").into()),
    }
}

/// Refuses a server that is not this one.
fn refuse_other_server(
    session: &Session,
    arguments: &Arguments<'_>,
    parameter: &str,
) -> Result<(), Failure> {
    let own = &session.instance.identity().server;
    let is_own = |server: &str| {
        server.is_empty()
            || server.eq_ignore_ascii_case("(local)")
            || server.eq_ignore_ascii_case("local")
            || server == "."
            || server.eq_ignore_ascii_case(own)
    };
    match arguments.text(parameter).filter(|server| !is_own(server)) {
        Some(server) => Err(table::agent_object_unknown(parameter, server).into()),
        None => Ok(()),
    }
}
