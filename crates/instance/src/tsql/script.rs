//! DECLARE, SET, PRINT, WAITFOR and transactions.

use std::time::{Duration, Instant};

use windlass_base::Message;
use windlass_base::message::table;
use windlass_tsql::ast::{
    AssignmentOperator, Declaration, Expr, InfixOperator, SetOption, SetOptionValue, SetVariable,
    Switch, Transaction, Value as Written,
};
use windlass_tsql::span::Spanned;

use crate::tsql::expression::{infix, integer, text_of};
use crate::tsql::option::value_of;
use crate::{DataType, Environment as _, Failure, Session, Sink, Value, evaluate};

/// Maximum length of a text that PRINT sends, in characters.
const PRINT_CHARACTERS_MAX: usize = 4000;

/// `DECLARE`
pub(super) fn declare(
    session: &mut Session,
    declarations: &[Spanned<Declaration>],
) -> Result<(), Failure> {
    for declaration in declarations {
        let written = &declaration.data_type;
        let data_type = DataType::of(written, 1).ok_or_else(|| {
            Failure::ending(table::data_type_not_found(&written.name.object.text))
        })?;
        let value = match &declaration.value {
            Some(expression) => evaluate(expression, session)?,
            None => Value::Null,
        };
        session
            .variables
            .declare(&declaration.variable.name, data_type, &value)?;
    }
    Ok(())
}

/// `SET @x = ...`
pub(super) fn set_variable(session: &mut Session, set: &SetVariable) -> Result<(), Failure> {
    let value = evaluate(&set.value, session)?;
    let name = &set.variable.name;
    let operator = match set.operator {
        AssignmentOperator::Assign => return session.variables.set(name, &value),
        AssignmentOperator::Add => InfixOperator::Add,
        AssignmentOperator::Subtract => InfixOperator::Subtract,
        AssignmentOperator::Multiply => InfixOperator::Multiply,
        AssignmentOperator::Divide => InfixOperator::Divide,
        AssignmentOperator::Modulo => InfixOperator::Modulo,
    };
    let before = session.variable(name)?;
    session
        .variables
        .set(name, &infix(operator, before, value)?)
}

/// `PRINT`
pub(super) fn print(
    session: &mut Session,
    expression: &Spanned<Expr>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let text = match evaluate(expression, session)? {
        Value::Null => String::new(),
        value => text_of(&value)?,
    };
    sink.message(Message::print(
        text.chars().take(PRINT_CHARACTERS_MAX).collect::<String>(),
    ));
    Ok(())
}

/// `SET NOCOUNT ON` and similar: settings that always hold are accepted, unsupported ones are
/// refused.
pub(super) fn set_option(session: &mut Session, set: &SetOption) -> Result<(), Failure> {
    for name in &set.names {
        set_one(session, &name.node, &set.value)?;
    }
    Ok(())
}

fn set_one(session: &mut Session, name: &str, value: &SetOptionValue) -> Result<(), Failure> {
    let on = matches!(value, SetOptionValue::Switch(Switch::On));
    match (name, value) {
        ("NOCOUNT", SetOptionValue::Switch(_)) => session.settings.hides_counts = on,
        ("XACT_ABORT", SetOptionValue::Switch(_)) => session.settings.aborts_transactions = on,
        ("LOCK_TIMEOUT", SetOptionValue::Value(value)) => {
            let millis = integer(&value_of(value, session)?)?;
            // -1 waits forever; for SQLite that is a very long time.
            let millis = u64::try_from(millis)
                .unwrap_or(i32::MAX as u64)
                .min(i32::MAX as u64);
            let timeout = Duration::from_millis(millis);
            session.settings.lock_timeout = Some(timeout);
            session.queries.set_lock_timeout(timeout)?;
        }
        // These always hold.
        (
            "ANSI_NULLS"
            | "ANSI_PADDING"
            | "ANSI_WARNINGS"
            | "ARITHABORT"
            | "QUOTED_IDENTIFIER"
            | "CONCAT_NULL_YIELDS_NULL"
            | "ANSI_NULL_DFLT_ON"
            | "ANSI_DEFAULTS",
            SetOptionValue::Switch(Switch::On),
        )
        | (
            "NUMERIC_ROUNDABORT"
            | "IMPLICIT_TRANSACTIONS"
            | "PARSEONLY"
            | "NOEXEC"
            | "FMTONLY"
            | "CURSOR_CLOSE_ON_COMMIT"
            | "ARITHIGNORE",
            SetOptionValue::Switch(Switch::Off),
        )
        // SQLite isolates transactions fully, which satisfies every level.
        | ("TRANSACTION ISOLATION LEVEL", _)
        | ("DATEFIRST", SetOptionValue::Value(Written::Number(7)))
        | ("ROWCOUNT" | "TEXTSIZE", SetOptionValue::Value(Written::Number(0 | -1))) => {}
        ("DATEFORMAT", SetOptionValue::Words(words)) if words == "MDY" => {}
        ("LANGUAGE", SetOptionValue::Words(words))
            if words == "US_ENGLISH" || words == "ENGLISH" => {}
        _ => {
            return Err(table::set_value_not_supported(name)
            .into());
        }
    }
    Ok(())
}

/// `WAITFOR DELAY 'hh:mm:ss'`
pub(super) fn wait_for(session: &mut Session, delay: &Spanned<Written>) -> Result<(), Failure> {
    let value = value_of(&delay.node, session)?;
    let delay = match crate::convert(&value, DataType::Time, None)? {
        Value::Time(time) => time - jiff::civil::Time::midnight(),
        _ => return Ok(()),
    };
    let duration = Duration::try_from(delay).unwrap_or_default();
    let begun = Instant::now();
    while begun.elapsed() < duration && !session.is_cancelled() {
        let left = duration.saturating_sub(begun.elapsed());
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
    Ok(())
}

/// `BEGIN`, `COMMIT` and `ROLLBACK TRANSACTION`
pub(super) fn transaction(session: &mut Session, transaction: &Transaction) -> Result<(), Failure> {
    let catalog = session.instance.catalog();
    match transaction {
        Transaction::Begin { mark: Some(_), .. } => {
            Err(table::marked_transaction_not_built().into())
        }
        Transaction::Begin { .. } => session.queries.begin(catalog),
        Transaction::Commit { .. } => session.queries.commit(catalog),
        Transaction::Rollback { .. } => session.queries.roll_back(catalog),
    }
}
