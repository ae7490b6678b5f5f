//! Executes all other SQL with SQLite, on the current database.

use rusqlite::types::Value as SqliteValue;
use windlass_base::message::table;
use windlass_base::{Message, Moment};
use windlass_engine::EngineError;
use windlass_tsql::ast::Sql;
use windlass_tsql::sqlite::Parameter;

use crate::message_of::engine_message;
use crate::operation::backup::BAD_CHECKSUM;
use crate::query::{to_sqlite, value_of};
use crate::{Column, ColumnType, Environment as _, Event, Failure, Session, Sink, Value};

/// Executes a statement and sends its rows, or the number of affected rows.
pub(super) fn execute(
    session: &mut Session,
    sql: &Sql,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let result = run(session, &sql.text, &mut |event| sink.event(event));
    let ran = match result {
        Ok(ran) => ran,
        Err(failure) => {
            session.queries.notice_rollback();
            return Err(damage_met(session, failure));
        }
    };
    session.row_count = i64::try_from(ran.rows).unwrap_or(i64::MAX);
    match ran.kind {
        Kind::Rows => sink.event(Event::RowsEnd(ran.rows)),
        Kind::Change if !session.settings.hides_counts => sink.event(Event::RowsAffected(ran.rows)),
        Kind::Change | Kind::Other => {}
    }
    Ok(())
}

/// Handles a read that failed because of a damaged page of a page engine database: reports the page with
/// 824, and records it in `suspect_pages`.
fn damage_met(session: &mut Session, failure: Failure) -> Failure {
    let is_read = |message: &Message| message.text.contains("disk I/O error");
    if !failure.messages.iter().any(is_read) {
        return failure;
    }
    let name = session.current_database().to_owned();
    let open = session.instance.engines.open_databases();
    let Some(damage) = open.take_damage(&name) else {
        return failure;
    };
    if let EngineError::PageChecksum { file_page, .. } = damage
        && let Ok(Some(record)) = session.instance.database(&name)
    {
        let catalog = session.instance.catalog_mut();
        // If recording fails, the damage is still reported.
        let _noted =
            catalog.suspect_page(record.database_id, file_page, BAD_CHECKSUM, Moment::now().0);
    }
    Failure {
        messages: vec![engine_message(&damage)],
        ..failure
    }
}

/// The first value of the first row of a query; NULL if it has no row.
pub(crate) fn scalar(session: &mut Session, text: &str) -> Result<Value, Failure> {
    let mut first = None;
    run(session, text, &mut |event| {
        if let (Event::Row(row), None) = (event, &first) {
            first = row.first().cloned();
        }
    })?;
    Ok(first.unwrap_or(Value::Null))
}

struct Ran {
    rows: u64,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It has a result set.
    Rows,
    /// It changes rows.
    Change,
    /// It changes the schema or a setting.
    Other,
}

fn run(
    session: &mut Session,
    text: &str,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<Ran, Failure> {
    let translated = windlass_tsql::dialect::translate(text)
        .map_err(|refusal| table::statement_not_supported(refusal.what, refusal.hint))?;
    let rewritten = windlass_tsql::sqlite::rewrite(&translated);
    if let Some(encoding) = windlass_tsql::sqlite::encoding_asked(&rewritten.text) {
        let catalog = session.instance.catalog();
        session.queries.set_encoding(catalog, &encoding)?;
    }
    let is_system = session.queries.is_system();
    let bindings = bindings(session, &rewritten.parameters)?;
    let connection = session.queries.connection(session.instance.catalog())?;
    let failed = |error: rusqlite::Error| sqlite_failure(&error, is_system);
    let mut statement = connection.prepare(&rewritten.text).map_err(failed)?;
    for (name, value) in &bindings {
        if let Some(index) = statement.parameter_index(name).map_err(failed)? {
            statement.raw_bind_parameter(index, value).map_err(failed)?;
        }
    }
    let columns: Vec<Column> = statement
        .column_names()
        .map(|name| Column::new(shown_name(name, &rewritten.parameters), ColumnType::Any))
        .collect();
    let before = connection.total_changes();
    let mut rows = statement.raw_query();
    if !columns.is_empty() {
        on_event(Event::Columns(&columns));
    }
    let mut count = 0;
    while let Some(row) = rows.next().map_err(failed)? {
        let values = (0..columns.len())
            .map(|index| row.get_ref(index).map(value_of))
            .collect::<Result<Vec<_>, _>>()
            .map_err(failed)?;
        on_event(Event::Row(&values));
        count += 1;
    }
    drop(rows);
    if !columns.is_empty() {
        return Ok(Ran {
            rows: count,
            kind: Kind::Rows,
        });
    }
    let kind = if changes_rows(text) {
        Kind::Change
    } else {
        Kind::Other
    };
    let rows = if kind == Kind::Change {
        connection.total_changes() - before
    } else {
        0
    };
    Ok(Ran { rows, kind })
}

/// The name of a column: the variable's name where SQLite only knows its placeholder.
fn shown_name<'a>(name: &'a str, parameters: &'a [Parameter]) -> &'a str {
    let parameter = parameters
        .iter()
        .find(|parameter| parameter.placeholder == name);
    parameter.map_or(name, |parameter| &parameter.variable.name)
}

/// Whether T-SQL reports a row count after this statement.
fn changes_rows(text: &str) -> bool {
    let first = text
        .split_whitespace()
        .next()
        .unwrap_or("")
        .to_ascii_uppercase();
    matches!(
        first.as_str(),
        "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "WITH" | "TRUNCATE"
    )
}

fn bindings(
    session: &mut Session,
    parameters: &[Parameter],
) -> Result<Vec<(String, SqliteValue)>, Failure> {
    parameters
        .iter()
        .map(|parameter| {
            let value = session.variable(&parameter.variable.name)?;
            Ok((parameter.placeholder.clone(), to_sqlite(&value)))
        })
        .collect()
}

fn sqlite_failure(error: &rusqlite::Error, is_system: bool) -> Failure {
    let read_only = error.sqlite_error_code() == Some(rusqlite::ErrorCode::ReadOnly);
    if is_system && read_only {
        return table::sqlite_failed(
            "there is no current database to store anything in. USE a database first.",
        )
        .into();
    }
    error.into()
}
