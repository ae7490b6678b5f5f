//! Control flow: which statement runs next.
//!
//! An error within TRY goes to its CATCH and is not sent; outside, it is sent, and the next statement
//! runs unless the error ends the batch. A cancel ends everything before the next statement.

use windlass_base::message::table::{self, Entry};
use windlass_base::{Message, Severity};
use windlass_tsql::ast::{RaiseError, Statement, Throw, TryCatch, Value as Written};
use windlass_tsql::span::Spanned;

use super::evaluate;
use super::expression::{integer, text_of};
use super::option::value_of;
use crate::failure::AfterFailure;
use crate::{Failure, Session, Sink, Value};

/// What happens after a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Flow {
    Next,
    Break,
    Continue,
    Return(i64),
    Goto(String),
    /// The batch has ended with an error, or was cancelled.
    Ended,
}

/// What came of a batch within a statement.
pub(crate) struct Ran {
    pub(crate) variables: crate::Variables,
    /// The code of its RETURN.
    pub(crate) return_code: Option<i64>,
    /// The greatest severity of its errors; 0 without any.
    pub(crate) worst: u8,
}

/// The greatest severity that RAISERROR has without WITH LOG.
const SEVERITY_MAX: i64 = 18;

/// Maximum length of a message of RAISERROR, in characters.
const MESSAGE_CHARACTERS_MAX: usize = 2047;

/// The number of a message that RAISERROR makes of a text.
const RAISED: u32 = 50_000;

/// Runs a list of statements.
pub(crate) fn run(
    session: &mut Session,
    statements: &[Spanned<Statement>],
    sink: &mut dyn Sink,
) -> Result<Flow, Failure> {
    let mut at = 0;
    while let Some(statement) = statements.get(at) {
        if session.is_cancelled() {
            return Ok(Flow::Ended);
        }
        match one(session, statement, sink)? {
            Flow::Next => at += 1,
            Flow::Goto(label) => {
                let is_label = |statement: &Spanned<Statement>| matches!(&statement.node, Statement::Label(own) if own.is(&label));
                match statements.iter().position(is_label) {
                    Some(found) => at = found,
                    None => return Ok(Flow::Goto(label)),
                }
            }
            other => return Ok(other),
        }
    }
    Ok(match session.is_cancelled() {
        true => Flow::Ended,
        false => Flow::Next,
    })
}

/// How the batch goes on without a statement that may not run, or is skipped.
fn held_back(
    session: &mut Session,
    statement: &Spanned<Statement>,
    sink: &mut dyn Sink,
) -> Result<Option<Flow>, Failure> {
    // Only SET NOEXEC OFF is executed then.
    let is_skipped =
        session.settings.skips_statements && !matches!(statement.node, Statement::SetOption(_));
    if !session.permits(&statement.node) || is_skipped {
        return Ok(Some(Flow::Next));
    }
    let allowed = session.authorize(&statement.node);
    Ok(guarded(session, statement, allowed, sink)?.err())
}

fn one(
    session: &mut Session,
    statement: &Spanned<Statement>,
    sink: &mut dyn Sink,
) -> Result<Flow, Failure> {
    if let Some(flow) = held_back(session, statement, sink)? {
        return Ok(flow);
    }
    match &statement.node {
        Statement::Block(statements) => run(session, statements, sink),
        Statement::If(choice) => {
            let decided = evaluate::condition(session, &choice.condition);
            session.row_count = 0;
            let chosen = match guarded(session, statement, decided, sink)? {
                Ok(true) => Some(&choice.then),
                Ok(false) => choice.otherwise.as_ref(),
                Err(flow) => return Ok(flow),
            };
            match chosen {
                Some(chosen) => one(session, chosen, sink),
                None => Ok(Flow::Next),
            }
        }
        Statement::While(repeated) => loop {
            if session.is_cancelled() || !session.permits(&statement.node) {
                return Ok(Flow::Ended);
            }
            let decided = evaluate::condition(session, &repeated.condition);
            session.row_count = 0;
            match guarded(session, statement, decided, sink)? {
                Ok(true) => {}
                Ok(false) => return Ok(Flow::Next),
                Err(flow) => return Ok(flow),
            }
            match one(session, &repeated.body, sink)? {
                Flow::Next | Flow::Continue => {}
                Flow::Break => return Ok(Flow::Next),
                other => return Ok(other),
            }
        },
        Statement::Break => Ok(Flow::Break),
        Statement::Continue => Ok(Flow::Continue),
        Statement::Label(_) => Ok(Flow::Next),
        Statement::Goto(label) => Ok(Flow::Goto(label.node.text.clone())),
        Statement::Return(code) => {
            let code = match code {
                Some(code) => {
                    evaluate::evaluate(session, code).and_then(|(value, _)| match value.is_null() {
                        true => Ok(0),
                        false => integer(&value),
                    })
                }
                None => Ok(0),
            };
            match guarded(session, statement, code, sink)? {
                Ok(code) => Ok(Flow::Return(code)),
                Err(flow) => Ok(flow),
            }
        }
        Statement::TryCatch(guard) => try_catch(session, guard, sink),
        _ => {
            let ran = session.execute_statement(statement, sink);
            match guarded(session, statement, ran, sink)? {
                Ok(()) => Ok(Flow::Next),
                Err(flow) => Ok(flow),
            }
        }
    }
}

/// Sends a failure and tells how the batch goes on; within TRY, returns it.
fn guarded<T>(
    session: &mut Session,
    statement: &Spanned<Statement>,
    result: Result<T, Failure>,
    sink: &mut dyn Sink,
) -> Result<Result<T, Flow>, Failure> {
    let failure = match result {
        Ok(value) => return Ok(Ok(value)),
        Err(failure) => failure,
    };
    let line = session.line_of(statement);
    if session.tries > 0 && !session.is_cancelled() {
        return Err(failure.placed(line, session.procedure.as_deref()));
    }
    match session.failed(failure, line, sink) {
        AfterFailure::Ends => Ok(Err(Flow::Ended)),
        AfterFailure::Continues | AfterFailure::Raised => Ok(Err(Flow::Next)),
    }
}

fn try_catch(
    session: &mut Session,
    guard: &TryCatch,
    sink: &mut dyn Sink,
) -> Result<Flow, Failure> {
    session.tries += 1;
    let result = run(session, &guard.body, sink);
    session.tries -= 1;
    let failure = match result {
        Ok(flow) => return Ok(flow),
        Err(failure) => failure,
    };
    session.doom_by(&failure);
    // As on SQL Server, the last error is the one that CATCH sees.
    let error = failure
        .messages
        .iter()
        .rev()
        .find(|message| message.is_error())
        .cloned();
    let Some(error) = error else {
        return Ok(Flow::Next);
    };
    for message in failure
        .messages
        .into_iter()
        .filter(|message| !message.is_error())
    {
        sink.message(message);
    }
    session.queries.notice_rollback();
    session.last_error = error.number;
    session.caught.push(error);
    let result = run(session, &guard.handler, sink);
    session.caught.pop();
    result
}

/// `THROW`
pub(super) fn throw(session: &mut Session, throw: Option<&Throw>) -> Result<(), Failure> {
    let Some(throw) = throw else {
        return Err(match session.caught.last() {
            Some(error) => Failure::ending(error.clone()),
            None => Failure::ending(table::throw_outside_catch()),
        });
    };
    let number = number(session, &throw.number)?;
    let text = text(session, &throw.message)?;
    let state = number_state(session, &throw.state)?;
    if !(50_000..=i64::from(i32::MAX)).contains(&number) {
        return Err(Failure::ending(table::throw_number(number)));
    }
    Err(Failure::ending(raised(
        u32::try_from(number).unwrap_or(RAISED),
        16,
        state,
        &text,
    )))
}

/// `RAISERROR`
pub(super) fn raise_error(
    session: &mut Session,
    raise: &RaiseError,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let severity = number(session, &raise.severity)?;
    let state = number_state(session, &raise.state)?;
    let message = value_of(&raise.message, session)?;
    let mut arguments = Vec::new();
    for argument in &raise.arguments {
        arguments.push(value_of(argument, session)?);
    }
    let (number, text) = match message {
        Value::Null => (RAISED, String::new()),
        Value::Integer(number) => {
            if !(13_000..=i64::from(i32::MAX)).contains(&number) || number == i64::from(RAISED) {
                return Err(table::error_number_invalid(number).into());
            }
            let known = u32::try_from(number).ok().and_then(Entry::of);
            let known = known
                .ok_or_else(|| Failure::from(table::message_unknown(number, severity, state)))?;
            (known.number, formatted(&known.pattern(), &arguments)?)
        }
        message => (RAISED, formatted(&text_of(&message)?, &arguments)?),
    };
    let logs = raise.options.iter().any(|option| option == "LOG");
    if severity > SEVERITY_MAX && !logs {
        return Err(table::severity_needs_log().into());
    }
    let level = u8::try_from(severity.clamp(0, 25)).unwrap_or(16);
    let message = raised(number, level, state, &text);
    if message.is_error() {
        return Err(match severity >= 20 {
            true => Failure::ending(message),
            false => Failure {
                batch: AfterFailure::Raised,
                ..Failure::from(message)
            },
        });
    }
    sink.message(message);
    if raise.options.iter().any(|option| option == "SETERROR") {
        session.keeps_error = Some(number);
    }
    Ok(())
}

fn raised(number: u32, severity: u8, state: u8, text: &str) -> Message {
    let text = text.chars().take(MESSAGE_CHARACTERS_MAX).collect();
    Message {
        number,
        severity: Severity(severity),
        state,
        line: 0,
        procedure: None,
        text,
    }
}

fn number(session: &mut Session, written: &Written) -> Result<i64, Failure> {
    match value_of(written, session)? {
        Value::Null => Ok(0),
        value => integer(&value),
    }
}

/// A state: 0 to 255.
fn number_state(session: &mut Session, written: &Written) -> Result<u8, Failure> {
    Ok(u8::try_from(number(session, written)?.clamp(0, 255)).unwrap_or(1))
}

fn text(session: &mut Session, written: &Written) -> Result<String, Failure> {
    match value_of(written, session)? {
        Value::Null => Ok(String::new()),
        value => text_of(&value),
    }
}

/// A message with `%s`, `%d` and the like filled in.
fn formatted(pattern: &str, arguments: &[Value]) -> Result<String, Failure> {
    let mut result = String::new();
    let mut arguments = arguments.iter();
    let mut rest = pattern.chars().peekable();
    while let Some(character) = rest.next() {
        if character != '%' {
            result.push(character);
            continue;
        }
        if rest.peek() == Some(&'%') {
            rest.next();
            result.push('%');
            continue;
        }
        let mut flags = String::new();
        while let Some(flag) = rest.next_if(|flag| "-+ #0".contains(*flag)) {
            flags.push(flag);
        }
        let mut width = count(&mut rest, &mut arguments)?.unwrap_or(0);
        let mut places = None;
        if rest.next_if_eq(&'.').is_some() {
            places = Some(count(&mut rest, &mut arguments)?.unwrap_or(0));
        }
        while rest.next_if(|size| "hlI64".contains(*size)).is_some() {}
        let Some(kind) = rest.next() else {
            return Err(table::format_invalid(pattern).into());
        };
        let argument = arguments.next().unwrap_or(&Value::Null);
        let shown = shown(kind, argument, &flags, places)
            .ok_or_else(|| Failure::from(table::format_invalid(pattern)))??;
        width = width.min(MESSAGE_CHARACTERS_MAX);
        let missing = width.saturating_sub(shown.chars().count());
        match (flags.contains('-'), flags.contains('0') && kind != 's') {
            (true, _) => result.extend(shown.chars().chain(std::iter::repeat_n(' ', missing))),
            (false, true) => {
                let (sign, digits) = match shown.strip_prefix('-') {
                    Some(digits) => ("-", digits),
                    None => ("", shown.as_str()),
                };
                result.push_str(sign);
                result.extend(std::iter::repeat_n('0', missing));
                result.push_str(digits);
            }
            (false, false) => result.extend(std::iter::repeat_n(' ', missing).chain(shown.chars())),
        }
    }
    Ok(result)
}

/// A width: digits, or `*` for the next argument.
fn count<'a>(
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    arguments: &mut impl Iterator<Item = &'a Value>,
) -> Result<Option<usize>, Failure> {
    if rest.next_if_eq(&'*').is_some() {
        let width = match arguments.next() {
            None | Some(Value::Null) => 0,
            Some(value) => integer(value)?,
        };
        return Ok(Some(usize::try_from(width).unwrap_or(0)));
    }
    let mut digits = String::new();
    while let Some(digit) = rest.next_if(char::is_ascii_digit) {
        digits.push(digit);
    }
    Ok(digits.parse().ok())
}

/// An argument in its form; `None` for a form that does not exist.
fn shown(
    kind: char,
    argument: &Value,
    flags: &str,
    places: Option<usize>,
) -> Option<Result<String, Failure>> {
    let number = || match argument {
        Value::Null => Ok(None),
        value => integer(value).map(Some),
    };
    let null = || "(null)".to_owned();
    Some(match kind {
        's' => match argument {
            Value::Null => Ok(null()),
            value => text_of(value).map(|text| match places {
                Some(places) => text.chars().take(places).collect(),
                None => text,
            }),
        },
        'd' | 'i' => number().map(|number| match number {
            None => null(),
            Some(number) if flags.contains('+') && number >= 0 => format!("+{number}"),
            Some(number) => number.to_string(),
        }),
        'u' => {
            number().map(|number| number.map_or_else(null, |number| (number as u32).to_string()))
        }
        'x' => {
            number().map(|number| number.map_or_else(null, |number| format!("{:x}", number as u32)))
        }
        'X' => {
            number().map(|number| number.map_or_else(null, |number| format!("{:X}", number as u32)))
        }
        'o' => {
            number().map(|number| number.map_or_else(null, |number| format!("{:o}", number as u32)))
        }
        _ => return None,
    })
}
