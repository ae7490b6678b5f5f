//! Procedures that scripts define: CREATE, ALTER, DROP, EXEC, `sp_helptext`.

use windlass_base::message::table;
use windlass_catalog::{Existing, ProcedureText, StoredProcedure};
use windlass_tsql::ast::{
    Argument, ArgumentDirection, ArgumentValue, DefineAction, DefineProcedure, DropProcedure,
    Execute, ObjectName, Parameter, Statement, Value as Written,
};
use windlass_tsql::span::Spanned;

use super::argument_value;
use crate::tsql::database;
use crate::tsql::expression::type_of;
use crate::{Column, ColumnType, DataType, Failure, ResultSet, Session, Sink, Value, Variables};

/// The greatest length of a row of `sp_helptext`, in characters.
const ROW_CHARACTERS_MAX: usize = 255;

/// The database of a procedure, and its name there.
struct Place {
    database: String,
    name: String,
}

impl Place {
    /// `None` for a schema that does not exist.
    fn of(session: &Session, name: &ObjectName) -> Option<Self> {
        if name.schema().is_some_and(|schema| !schema.is("dbo")) {
            return None;
        }
        let database = name.database().map(|database| database.text.clone());
        Some(Self {
            database: database.unwrap_or_else(|| session.current_database().to_owned()),
            name: name.object.text.clone(),
        })
    }
}

/// `CREATE`, `ALTER`, `CREATE OR ALTER PROCEDURE`
pub(crate) fn define(session: &mut Session, definition: &DefineProcedure) -> Result<(), Failure> {
    let written = &definition.name.node;
    if written.database().is_some() {
        return Err(table::no_database_prefix("CREATE/ALTER PROCEDURE").into());
    }
    let Some(place) = Place::of(session, written) else {
        let schema = written.schema().map_or("", |schema| schema.text.as_str());
        return Err(table::schema_unknown(schema).into());
    };
    for parameter in &definition.parameters {
        data_type(parameter)?;
    }
    let is_remote = session.principal().is_remote();
    let catalog = session.instance.catalog_mut();
    let known = catalog.procedure(&place.database, &place.name)?;
    let existing = match (definition.action, known) {
        (DefineAction::Create, Some(_)) => {
            return Err(table::object_exists(&place.name).into());
        }
        (DefineAction::Alter, None) => return Err(table::object_unknown(written).into()),
        (DefineAction::Create, None) => Existing::Kept,
        _ => Existing::Replaced,
    };
    let text = ProcedureText {
        definition: &definition.text,
        is_recompiled: definition.is_recompiled,
        is_remote,
    };
    let stored = catalog.store_procedure(&place.database, &place.name, text, existing)?;
    match stored {
        true => Ok(()),
        false => Err(table::object_exists(&place.name).into()),
    }
}

/// `DROP PROCEDURE`
pub(crate) fn drop(session: &mut Session, drop: &DropProcedure) -> Result<(), Failure> {
    let mut missing = Vec::new();
    for name in &drop.names {
        let dropped = match Place::of(session, &name.node) {
            Some(place) => {
                let catalog = session.instance.catalog_mut();
                catalog.drop_procedure(&place.database, &place.name)?
            }
            None => false,
        };
        if !dropped && !drop.if_exists {
            missing.push(table::cannot_drop("procedure", &name.node));
        }
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(missing.into()),
    }
}

/// The procedures of the server that are written in T-SQL.
const SYSTEM: &str = include_str!("system.sql");

/// A procedure of the server, which come before those of scripts.
fn of_system(name: &str) -> Option<StoredProcedure> {
    let texts = SYSTEM.split("\nGO\n");
    texts.map(str::trim).find_map(|text| {
        let own = text.split_whitespace().nth(2)?;
        own.eq_ignore_ascii_case(name).then(|| StoredProcedure {
            object_id: -1,
            is_remote: false,
            name: own.to_owned(),
            definition: text.to_owned(),
        })
    })
}

/// The procedure that a name means, and the database in which it runs.
fn found(
    session: &mut Session,
    name: &ObjectName,
) -> Result<Option<(String, StoredProcedure)>, Failure> {
    if let Some(procedure) = of_system(&name.object.text) {
        let database = name.database().map(|database| database.text.clone());
        let current = session.current_database().to_owned();
        return Ok(Some((database.unwrap_or(current), procedure)));
    }
    let Some(place) = Place::of(session, name) else {
        return Ok(None);
    };
    let catalog = session.instance.catalog();
    if let Some(own) = catalog.procedure(&place.database, &place.name)? {
        return Ok(Some((place.database, own)));
    }
    // Procedures of master whose names begin with sp_ are everywhere, and run where they are called.
    if !place.name.to_ascii_lowercase().starts_with("sp_") {
        return Ok(None);
    }
    let everywhere = catalog.procedure("master", &place.name)?;
    Ok(everywhere.map(|procedure| (place.database, procedure)))
}

/// EXEC of a stored procedure; the return code, or `None` if there is none of that name.
pub(super) fn call(
    session: &mut Session,
    execute: &Execute,
    sink: &mut dyn Sink,
) -> Result<Option<i64>, Failure> {
    if let Some(code) = crate::agent::procedure::call(session, execute, sink)? {
        return Ok(Some(code));
    }
    let Some((database, procedure)) = found(session, &execute.procedure.node)? else {
        return Ok(None);
    };
    session.refuse_nesting()?;
    let statements = windlass_tsql::parse_batch(&procedure.definition)?;
    let Some(Statement::DefineProcedure(definition)) =
        statements.first().map(|statement| &statement.node)
    else {
        return Err(table::internal_consistency().into());
    };
    let call = bound(
        session,
        &procedure.name,
        &definition.parameters,
        &execute.arguments,
    )?;
    let outer = session.queries.place();
    let depth = session.queries.transaction_depth();
    if !database.eq_ignore_ascii_case(&outer.name) {
        if session.queries.is_in_transaction() {
            return Err(table::not_in_transaction("EXECUTE in another database").into());
        }
        let place = database::location(session, &database)?;
        session.queries.use_database(place);
    }
    let name = session.procedure.replace(procedure.name.as_str().into());
    let ran = match procedure.is_remote {
        true => session.within_remote_limits(|session| {
            session.execute_scope(&definition.body, call.variables, sink)
        }),
        false => session.execute_scope(&definition.body, call.variables, sink),
    };
    session.procedure = name;
    if !session
        .queries
        .database_name()
        .eq_ignore_ascii_case(&outer.name)
        && !session.queries.is_in_transaction()
    {
        session.queries.use_database(outer);
    }
    let ran = ran?;
    finish(session, &call.outputs, &ran.variables)?;
    // The EXEC succeeds; @@ERROR stays that of the last statement within.
    session.keeps_error = Some(session.last_error);
    let after = session.queries.transaction_depth();
    if depth != after && after > 0 {
        return Err(table::transaction_count_differs(depth, after).into());
    }
    // As on SQL Server, a procedure without RETURN gives 0, or tells how bad its worst error was.
    let code = match ran.worst {
        0..=10 => 0,
        worst => 10 - i64::from(worst),
    };
    Ok(Some(ran.return_code.unwrap_or(code)))
}

/// The variables of a call, and which of them go back: parameter, its type, the caller's variable.
pub(crate) struct Call {
    pub(crate) variables: Variables,
    pub(crate) outputs: Vec<(String, DataType, String)>,
}

/// Gives the caller's variables what the procedure left in its OUTPUT parameters.
pub(crate) fn finish(
    session: &mut Session,
    outputs: &[(String, DataType, String)],
    variables: &Variables,
) -> Result<(), Failure> {
    for (parameter, ty, variable) in outputs {
        let value = variables.value(parameter)?;
        session.variables.set(variable, &value, *ty)?;
    }
    Ok(())
}

pub(crate) fn bound(
    session: &mut Session,
    procedure: &str,
    parameters: &[Spanned<Parameter>],
    arguments: &[Spanned<Argument>],
) -> Result<Call, Failure> {
    let mut given: Vec<Option<&Argument>> = vec![None; parameters.len()];
    let mut by_name = false;
    for (index, argument) in arguments.iter().enumerate() {
        let at = match &argument.name {
            Some(name) => {
                by_name = true;
                let is_own = |parameter: &Spanned<Parameter>| {
                    parameter.variable.name.eq_ignore_ascii_case(&name.name)
                };
                let at = parameters.iter().position(is_own);
                at.ok_or_else(|| Failure::from(table::not_a_parameter(&name.name, procedure)))?
            }
            None if by_name => return Err(table::must_pass_by_name(index + 1).into()),
            None => index,
        };
        let slot = given.get_mut(at);
        let slot = slot.ok_or_else(|| Failure::from(table::too_many_arguments(procedure)))?;
        if slot.replace(&argument.node).is_some() {
            let name = parameters
                .get(at)
                .map_or("", |own| own.variable.name.as_str());
            return Err(table::parameter_twice(name).into());
        }
    }
    let mut call = Call {
        variables: Variables::default(),
        outputs: Vec::new(),
    };
    for (parameter, argument) in parameters.iter().zip(given) {
        bind_one(session, procedure, parameter, argument, &mut call)?;
    }
    Ok(call)
}

fn bind_one(
    session: &mut Session,
    procedure: &str,
    parameter: &Parameter,
    argument: Option<&Argument>,
    call: &mut Call,
) -> Result<(), Failure> {
    let name = &parameter.variable.name;
    let ty = data_type(parameter)?;
    let given = argument.filter(|argument| argument.value != ArgumentValue::Default);
    let missing = || Failure::from(table::parameter_missing(procedure, name));
    let written = match given {
        Some(argument) => &argument.value,
        None => parameter.default.as_ref().ok_or_else(missing)?,
    };
    let value = argument_value(session, written)?;
    let from = match written {
        ArgumentValue::Value(Written::Variable(variable)) if !variable.is_global() => {
            session.variables.data_type(&variable.name)?
        }
        _ => type_of(&value),
    };
    let declared = call.variables.declare(name, ty, Some((value, from)));
    declared.map_err(|failure| match failure.ends_transaction() {
        true => table::data_type_conversion(from.name(), ty.name()).into(),
        false => failure,
    })?;
    let Some(argument) = argument.filter(|own| own.direction == ArgumentDirection::Output) else {
        return Ok(());
    };
    let ArgumentValue::Value(Written::Variable(variable)) = &argument.value else {
        return Err(table::output_of_constant().into());
    };
    if !parameter.is_output {
        return Err(table::not_an_output(name).into());
    }
    call.outputs.push((name.clone(), ty, variable.name.clone()));
    Ok(())
}

fn data_type(parameter: &Parameter) -> Result<DataType, Failure> {
    let written = &parameter.data_type;
    DataType::of(written, 1)
        .ok_or_else(|| table::data_type_not_found(&written.name.object.text).into())
}

/// `sp_helptext`
pub(super) fn help_text(
    session: &mut Session,
    name: &str,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let written = object_name(name);
    let procedure = match &written {
        Some(written) => found(session, written)?,
        None => None,
    };
    let Some((_, procedure)) = procedure else {
        let database = session.current_database();
        return Err(table::object_without_text(name, database).into());
    };
    let mut rows = Vec::new();
    for line in procedure.definition.lines() {
        let characters: Vec<char> = line.chars().collect();
        if characters.is_empty() {
            rows.push(vec![Value::text("")]);
        }
        let parts = characters.chunks(ROW_CHARACTERS_MAX);
        rows.extend(parts.map(|part| vec![Value::Text(part.iter().collect())]));
    }
    let columns = vec![Column::new("Text", ColumnType::NVarChar(255))];
    ResultSet { columns, rows }.send(sink);
    Ok(())
}

/// The name that a text holds, as `OBJECT_ID` takes it.
fn object_name(text: &str) -> Option<ObjectName> {
    let parsed = windlass_tsql::parse_batch(&format!("DROP PROCEDURE {text}"));
    match parsed.ok()?.pop()?.node {
        Statement::DropProcedure(mut drop) if drop.names.len() == 1 => {
            drop.names.pop().map(|name| name.node)
        }
        _ => None,
    }
}

/// The number of the procedure that a text names.
pub(crate) fn object_id(session: &mut Session, text: &str) -> Result<Option<i64>, Failure> {
    let Some(name) = object_name(text) else {
        return Ok(None);
    };
    Ok(found(session, &name)?.map(|(_, procedure)| procedure.object_id))
}
