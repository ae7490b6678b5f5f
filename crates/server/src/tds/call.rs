//! Remote procedure calls: a call becomes a batch whose variables are the call's parameters.
//!
//! `sp_executesql` and the procedures for prepared statements run the text that they are given; every other name
//! is executed as `EXEC name @parameter = @value`. So a call does what the same words in a batch do.

use std::collections::HashMap;
use std::fmt::Write as _;

use windlass_base::Message;
use windlass_base::message::table;
use windlass_instance::{BatchEnd, DataType, Session, Value, Variables};
use windlass_tds::answer::done;
use windlass_tds::request::{Call, Parameter, Procedure};
use windlass_tds::value::Value as Sent;

use super::parameter::{data_type, returned, returned_type, value};
use super::reply::Reply;

/// The variable of the return status.
const STATUS: &str = "@windlass_return_status";

const EXECUTE_SQL: &str = "sp_executesql";

/// A prepared statement.
#[derive(Debug, Clone)]
struct Prepared {
    definition: Option<Parameter>,
    text: Parameter,
}

/// The prepared statements of a session, by handle.
#[derive(Debug)]
pub(crate) struct Statements {
    max: usize,
    next: i32,
    prepared: HashMap<i32, Prepared>,
}

impl Statements {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            next: 1,
            prepared: HashMap::new(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.prepared.clear();
    }

    fn keep(&mut self, prepared: Prepared) -> Option<i32> {
        if self.prepared.len() >= self.max {
            return None;
        }
        let handle = self.next;
        self.next = self.next.checked_add(1).unwrap_or(1);
        self.prepared.insert(handle, prepared);
        Some(handle)
    }
}

/// What runs for a call.
struct Words<'a> {
    /// The procedure, as written in EXEC.
    procedure: &'a str,
    /// Its arguments, and for each the ordinal and parameter of the call that wants its value back.
    arguments: Vec<(&'a Parameter, Option<u16>)>,
    /// A handle that the call returns, for its first parameter.
    handle: Option<(i32, &'a Parameter)>,
}

/// Runs a call and writes its answer, except for its DONE: returns the status of that.
pub(crate) fn run(
    call: &Call,
    statements: &mut Statements,
    session: &mut Session,
    reply: &mut Reply<'_>,
) -> u16 {
    match prepare(call, statements) {
        Err(message) => {
            reply.message(&message);
            done::ERROR
        }
        Ok(None) => {
            reply.tokens().return_status(0);
            0
        }
        Ok(Some(words)) => execute(&words, session, reply),
    }
}

type Refused = Box<Message>;

/// What to run; nothing for a call that only changes the list of prepared statements.
fn prepare<'a>(
    call: &'a Call,
    statements: &'a mut Statements,
) -> Result<Option<Words<'a>>, Refused> {
    let parameters = &call.parameters;
    let missing = |procedure: &str, name: &str| Box::new(table::parameter_missing(procedure, name));
    Ok(Some(match &call.procedure {
        Procedure::Named(name) => Words {
            procedure: name,
            arguments: positional(parameters, 0).collect(),
            handle: None,
        },
        Procedure::ExecuteSql => Words {
            procedure: EXECUTE_SQL,
            arguments: positional(parameters, 0).collect(),
            handle: None,
        },
        Procedure::Prepare | Procedure::PrepareExecute => return keep(call, statements).map(Some),
        Procedure::Execute => {
            let handle = parameters.first().map(|first| &first.value);
            let Some(Sent::Integer(number)) = handle else {
                return Err(missing("sp_execute", "@handle"));
            };
            let found = i32::try_from(*number)
                .ok()
                .and_then(|number| statements.prepared.get(&number));
            let prepared = found.ok_or_else(|| Box::new(table::no_prepared(number)))?;
            let mut arguments = vec![(&prepared.text, None)];
            arguments.extend(prepared.definition.iter().map(|found| (found, None)));
            arguments.extend(positional(parameters, 1));
            Words {
                procedure: EXECUTE_SQL,
                arguments,
                handle: None,
            }
        }
        Procedure::Unprepare => {
            if let Some(Sent::Integer(number)) = parameters.first().map(|first| &first.value) {
                let number = i32::try_from(*number).unwrap_or(0);
                statements.prepared.remove(&number);
            }
            return Ok(None);
        }
        Procedure::Cursor(_) => return Err(Box::new(table::api_cursor_not_supported())),
    }))
}

/// Keeps the text of `sp_prepare` or `sp_prepexec`, and what the latter runs.
fn keep<'a>(call: &'a Call, statements: &mut Statements) -> Result<Words<'a>, Refused> {
    let [handle, definition, text, ..] = call.parameters.as_slice() else {
        return Err(Box::new(table::parameter_missing("sp_prepexec", "@stmt")));
    };
    let definition = Some(definition).filter(|definition| !is_empty(&definition.value));
    let prepared = Prepared {
        definition: definition.cloned(),
        text: text.clone(),
    };
    let kept = statements
        .keep(prepared)
        .ok_or_else(|| Box::new(table::too_many_prepared()))?;
    let mut words = Words {
        procedure: "",
        arguments: Vec::new(),
        handle: Some((kept, handle)),
    };
    if call.procedure == Procedure::PrepareExecute {
        words.procedure = EXECUTE_SQL;
        words.arguments.push((text, None));
        words
            .arguments
            .extend(definition.map(|found| (found, None)));
        words.arguments.extend(positional(&call.parameters, 3));
    }
    Ok(words)
}

/// The parameters from a position on, with the ordinals of those whose values are wanted back.
fn positional(
    parameters: &[Parameter],
    from: usize,
) -> impl Iterator<Item = (&Parameter, Option<u16>)> {
    let rest = parameters.iter().enumerate().skip(from);
    rest.map(|(at, parameter)| (parameter, wanted(at, parameter)))
}

fn is_empty(value: &Sent) -> bool {
    match value {
        Sent::Null => true,
        Sent::Text(text) => text.trim().is_empty(),
        _ => false,
    }
}

fn wanted(at: usize, parameter: &Parameter) -> Option<u16> {
    u16::try_from(at).ok().filter(|_| parameter.is_output)
}

/// Runs the words; the status bits for the DONE.
fn execute(words: &Words<'_>, session: &mut Session, reply: &mut Reply<'_>) -> u16 {
    let mut failed = 0;
    let mut status = 0;
    if !words.procedure.is_empty() {
        let (text, variables) = match batch(words) {
            Ok(found) => found,
            Err(message) => {
                reply.message(&message);
                return done::ERROR;
            }
        };
        let end = session.execute_batch_with(&text, 1, variables, reply);
        if end != BatchEnd::Clean {
            failed = done::ERROR;
        }
        status = match session.variable_value(STATUS) {
            Some(Value::Integer(number)) => i32::try_from(number).unwrap_or(-1),
            _ => 0,
        };
    }
    let values: Vec<_> = words
        .arguments
        .iter()
        .enumerate()
        .filter_map(|(at, (parameter, ordinal))| {
            let value = session.variable_value(&variable(at))?;
            Some(((*ordinal)?, *parameter, value))
        })
        .collect();
    let answer = reply.tokens();
    answer.return_status(status);
    if let Some((handle, parameter)) = words.handle {
        let value = Sent::Integer(i64::from(handle));
        // The type of a handle is the driver's own.
        let _sent = answer.return_value(0, &parameter.name, parameter.data_type, &value);
    }
    for (ordinal, parameter, value) in values {
        let data_type = returned_type(parameter.data_type);
        let is_sent = returned(&value, data_type).is_some_and(|value| {
            let answer = reply.tokens();
            let written = answer.return_value(ordinal, &parameter.name, data_type, &value);
            written.is_ok()
        });
        if !is_sent {
            let name = super::parameter::data_type(parameter.data_type).name();
            reply.message(&table::arithmetic_overflow(name));
            failed = done::ERROR;
        }
    }
    failed
}

fn variable(at: usize) -> String {
    format!("@windlass_{at}")
}

/// The batch for a call, and its variables.
fn batch(words: &Words<'_>) -> Result<(String, Variables), Refused> {
    let mut variables = Variables::default();
    let declared = variables.declare(
        STATUS,
        DataType::Integer(windlass_instance::IntegerType::Int),
        None,
    );
    declared.map_err(|failure| Box::new(first(failure)))?;
    let mut text = format!("EXEC {STATUS} = {}", words.procedure);
    for (at, (parameter, ordinal)) in words.arguments.iter().enumerate() {
        let separator = if at == 0 { " " } else { ", " };
        text.push_str(separator);
        let name = parameter.name.as_str();
        // The text and the definition are known by their place: tiberius calls them "stmt" and "params".
        let is_placed = at < 2 && words.procedure == EXECUTE_SQL;
        if !name.is_empty() && !is_placed {
            if !is_name(name) {
                return Err(Box::new(table::syntax_near(name)));
            }
            // Writing to a String cannot fail.
            let _ = write!(text, "{name} = ");
        }
        if parameter.is_default {
            text.push_str("DEFAULT");
            continue;
        }
        let given =
            value(parameter).ok_or_else(|| Box::new(table::value_does_not_fit_column(name, 0)))?;
        let own = data_type(parameter.data_type);
        variables
            .declare(&variable(at), own, Some((given, own)))
            .map_err(|failure| Box::new(first(failure)))?;
        text.push_str(&variable(at));
        if ordinal.is_some() {
            text.push_str(" OUTPUT");
        }
    }
    Ok((text, variables))
}

fn first(failure: windlass_instance::Failure) -> Message {
    let message = failure.messages.into_iter().next();
    message.unwrap_or_else(table::internal_consistency)
}

fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next() == Some('@')
        && name.len() > 1
        && letters.all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '@' | '#' | '$'))
}
