//! DECLARE, SET, PRINT, EXEC of a text, WAITFOR and transactions.

use std::time::{Duration, Instant};

use windlass_base::message::table;
use windlass_base::{Message, local_of_unix_ms};
use windlass_catalog::MarkRecord;
use windlass_source::RecoveryModel;
use windlass_tsql::ast::{
    AssignmentOperator, Body, Declaration, Expr, InfixOperator, Name, SetOption, SetOptionValue,
    SetVariable, Sql, SqlTree, Switch, Transaction, TransactionMark, Value as Written,
};
use windlass_tsql::span::Spanned;

use crate::query::{Marked, PendingMark};
use crate::tsql::option;

use crate::tsql::evaluate::evaluate;
use crate::tsql::expression::{convert_from, integer, text_of};
use crate::tsql::option::value_of;
use crate::{DataType, Event, Failure, Session, Sink, Value, Variables};

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
            Some(expression) => Some(evaluate(session, expression)?),
            None => None,
        };
        session
            .variables
            .declare(&declaration.variable.name, data_type, value)?;
    }
    Ok(())
}

/// `SET @x = ...`; `+=` and the like are the operator with the old value on its left.
pub(super) fn set_variable(session: &mut Session, set: &SetVariable) -> Result<(), Failure> {
    let name = &set.variable.name;
    let operator = match set.operator {
        AssignmentOperator::Assign => None,
        AssignmentOperator::Add => Some(InfixOperator::Add),
        AssignmentOperator::Subtract => Some(InfixOperator::Subtract),
        AssignmentOperator::Multiply => Some(InfixOperator::Multiply),
        AssignmentOperator::Divide => Some(InfixOperator::Divide),
        AssignmentOperator::Modulo => Some(InfixOperator::Modulo),
    };
    // Undeclared before the value is computed, as on SQL Server.
    session.variables.data_type(name)?;
    let (value, ty) = match operator {
        None => evaluate(session, &set.value)?,
        Some(operator) => {
            let before = Expr::Variable(set.variable.node.clone());
            let whole = Expr::Infix {
                operator,
                left: Box::new(Spanned::unplaced(before)),
                right: Box::new(set.value.clone()),
            };
            evaluate(session, &Spanned::unplaced(whole))?
        }
    };
    session.variables.set(name, &value, ty)
}

/// `PRINT`
pub(super) fn print(
    session: &mut Session,
    expression: &Spanned<Expr>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let (value, ty) = evaluate(session, expression)?;
    let text = match convert_from(&value, ty, DataType::TEXT, None)? {
        Value::Null => String::new(),
        value => text_of(&value)?,
    };
    sink.message(Message::print(
        text.chars().take(PRINT_CHARACTERS_MAX).collect::<String>(),
    ));
    Ok(())
}

/// `EXEC ('...')`
pub(super) fn execute_text(
    session: &mut Session,
    text: &Spanned<Expr>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let (value, ty) = evaluate(session, text)?;
    match convert_from(&value, ty, DataType::TEXT, None)? {
        Value::Text(text) => {
            session.execute_nested(&text, Variables::default(), sink)?;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// `SET NOCOUNT ON` and similar: settings that always hold are accepted, unsupported ones are
/// refused.
pub(super) fn set_option(
    session: &mut Session,
    set: &SetOption,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    for name in &set.names {
        set_one(session, &name.node, &set.value)?;
    }
    sink.event(Event::CountsShown(!session.settings.hides_counts));
    Ok(())
}

fn set_one(session: &mut Session, name: &str, value: &SetOptionValue) -> Result<(), Failure> {
    let on = matches!(value, SetOptionValue::Switch(Switch::On));
    match (name, value) {
        ("NOCOUNT", _) => session.settings.hides_counts = on,
        ("XACT_ABORT", _) => session.settings.aborts_transactions = on,
        ("IMPLICIT_TRANSACTIONS", _) => session.settings.begins_transactions = on,
        ("CURSOR_CLOSE_ON_COMMIT", _) => session.settings.closes_cursors = on,
        ("NOEXEC", _) => session.settings.skips_statements = on,
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
        // The others hold whatever they say: `is_followed`.
        _ => {}
    }
    Ok(())
}

/// Whether the session behaves as `SET` of this value asks.
pub(super) fn is_followed(name: &str, value: &SetOptionValue) -> bool {
    match value {
        SetOptionValue::Switch(Switch::On) => matches!(
            name,
            "NOCOUNT"
                | "XACT_ABORT"
                | "NOEXEC"
                | "CURSOR_CLOSE_ON_COMMIT"
                | "IMPLICIT_TRANSACTIONS"
                | "ANSI_NULLS"
                | "ANSI_PADDING"
                | "ANSI_WARNINGS"
                | "ARITHABORT"
                | "QUOTED_IDENTIFIER"
                | "CONCAT_NULL_YIELDS_NULL"
                | "ANSI_NULL_DFLT_ON"
                | "ANSI_DEFAULTS"
        ),
        SetOptionValue::Switch(Switch::Off) => !matches!(
            name,
            "ANSI_NULLS"
                | "ANSI_PADDING"
                | "ANSI_WARNINGS"
                | "ARITHABORT"
                | "QUOTED_IDENTIFIER"
                | "CONCAT_NULL_YIELDS_NULL"
                | "ANSI_NULL_DFLT_ON"
                | "ANSI_DEFAULTS"
        ),
        // SQLite isolates transactions fully, which satisfies every level.
        SetOptionValue::Words(_) if name == "TRANSACTION ISOLATION LEVEL" => true,
        SetOptionValue::Words(word) => is_default_word(name, word),
        SetOptionValue::Value(Written::Text { text, .. }) => {
            is_default_word(name, &text.to_uppercase())
        }
        SetOptionValue::Value(value) => match name {
            "LOCK_TIMEOUT" => true,
            "DATEFIRST" => *value == Written::Number(7),
            "ROWCOUNT" | "QUERY_GOVERNOR_COST_LIMIT" => *value == Written::Number(0),
            "TEXTSIZE" => matches!(value, Written::Number(0 | -1 | 2_147_483_647)),
            _ => false,
        },
    }
}

fn is_default_word(name: &str, word: &str) -> bool {
    match name {
        "DATEFORMAT" => word == "MDY",
        "LANGUAGE" => matches!(word, "US_ENGLISH" | "ENGLISH"),
        "DEADLOCK_PRIORITY" => word == "NORMAL",
        _ => false,
    }
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
pub(super) fn transaction(
    session: &mut Session,
    transaction: &Transaction,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    match transaction {
        Transaction::Begin {
            name: Some(name),
            mark: Some(mark),
        } => begin_marked(session, &name.node, mark, sink),
        Transaction::Begin { .. } => session.queries.begin(session.instance.catalog()),
        Transaction::Commit { .. } => {
            let marked = session.queries.commit(session.instance.catalog())?;
            if let Some(marked) = marked {
                record_mark(session, &marked, sink);
            }
            close_cursors(session);
            Ok(())
        }
        Transaction::Rollback { .. } => {
            session.queries.roll_back(session.instance.catalog())?;
            close_cursors(session);
            Ok(())
        }
    }
}

/// `BEGIN TRAN x WITH MARK`: the commit of the outermost transaction will have this mark in the log. The first mark
/// of a transaction counts.
fn begin_marked(
    session: &mut Session,
    name: &Name,
    mark: &TransactionMark,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let name = option::name(name, session)?;
    let description = match &mark.description {
        Some(written) => option::text(written, session)?.unwrap_or_default(),
        None => String::new(),
    };
    // SQL Server cuts a description at the length of its column.
    let description: String = description.chars().take(MARK_CHARACTERS_MAX).collect();
    let database = session.current_database().to_owned();
    let engine = session.queries.engine();
    let keeps = engine.is_some_and(|engine| engine.recovery_model() == RecoveryModel::Full);
    if !keeps {
        return Err(table::mark_not_kept(name, database).into());
    }
    if name.contains(['\n', '\r']) {
        return Err(table::mark_name_invalid().into());
    }
    session.queries.begin(session.instance.catalog())?;
    let pending = PendingMark { name, description };
    if !session.queries.mark(session.instance.catalog(), pending)? {
        sink.message(table::mark_ignored());
    }
    Ok(())
}

/// Maximum length of the description of a mark, in characters.
const MARK_CHARACTERS_MAX: usize = 255;

/// The transaction is committed, and its mark in the log: a history that cannot be written changes neither.
fn record_mark(session: &mut Session, marked: &Marked, sink: &mut dyn Sink) {
    let database = session.current_database().to_owned();
    let user_name = session.instance.identity().user.clone();
    let recorded = session.instance.catalog_mut().record_mark(&MarkRecord {
        database: &database,
        name: &marked.mark.name,
        description: &marked.mark.description,
        user_name: &user_name,
        lsn: marked.lsn,
        marked: &local_of_unix_ms(marked.unix_ms),
    });
    if let Err(error) = recorded {
        tracing::warn!(%error, "the mark of a transaction is not in logmarkhistory");
        sink.message(table::history_not_written());
    }
}

/// With `SET IMPLICIT_TRANSACTIONS ON`, a statement that reads or changes tables begins a transaction if none is
/// open. A SELECT of constants does not.
pub(super) fn begin_implicitly(session: &mut Session, sql: &Sql) -> Result<(), Failure> {
    let reads_nothing = match &sql.tree {
        SqlTree::Query(query) => {
            matches!(&query.body, Body::Select(select) if select.from.is_empty())
        }
        _ => false,
    };
    let is_due = session.settings.begins_transactions && !reads_nothing;
    match is_due && !session.queries.is_in_transaction() {
        true => session.queries.begin(session.instance.catalog()),
        false => Ok(()),
    }
}

/// With `SET CURSOR_CLOSE_ON_COMMIT ON`, cursors do not outlive the transaction.
fn close_cursors(session: &mut Session) {
    if session.settings.closes_cursors && session.queries.transaction_depth() == 0 {
        session.cursors.close_all();
    }
}
