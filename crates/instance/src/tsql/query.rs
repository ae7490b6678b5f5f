//! Executes queries and changes with SQLite, on the current database.

use rusqlite::ErrorCode;
use windlass_base::Message;
use windlass_base::message::table;
use windlass_engine::EngineError;
use windlass_tsql::ast::{Body, Insert, InsertRows, Query, Select, SelectItem, Sql, SqlTree};

use super::bind::{Assignments, Binder, Changed};
use super::copied::{Executed, ROWS_MB_MAX};
use super::evaluate::facts;
use super::expression::eval::{Inputs, eval};
use super::expression::{Bound, Facts, StoredIn, store, type_of};
use super::program::{Program, decode, encode, kept, stored};
use super::temporary;
use crate::message_of::{engine_message, lock_not_granted};
use crate::{Column, ColumnType, DataType, Environment as _, Event, Failure};
use crate::{Session, Sink, Value, Variables};

/// Executes a statement and sends its rows, or the number of affected rows.
pub(super) fn execute(
    session: &mut Session,
    sql: &Sql,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let result = match &sql.tree {
        SqlTree::Query(query) => self::query(session, query, sink),
        SqlTree::Insert(insert) => self::insert(session, insert, sink),
        SqlTree::Update(update) => {
            let bind = |binder: &mut Binder<'_>| binder.update(update);
            change(session, bind, sink)
        }
        SqlTree::Delete(delete) => {
            let bind = |binder: &mut Binder<'_>| binder.delete(delete);
            change(session, bind, sink)
        }
        SqlTree::CreateTable(create) => temporary::create_table(session, create),
        SqlTree::DropTable { names, if_exists } => {
            temporary::drop_tables(session, names, *if_exists)
        }
        SqlTree::Truncate(name) => temporary::truncate(session, &name.node),
        SqlTree::Native => native(session, &sql.text, sink),
    };
    result.map_err(|failure| {
        session.queries.notice_rollback();
        let failure = damage_met(session, failure);
        let failure = full_met(session, failure);
        match session.is_cancelled() {
            true => wait_ended(failure),
            false => failure,
        }
    })
}

/// A wait for a lock that was cancelled was not too long.
fn wait_ended(mut failure: Failure) -> Failure {
    let is_timeout = |message: &&mut Message| message.number == table::lock_timeout().number;
    for message in failure.messages.iter_mut().filter(is_timeout) {
        *message = table::sqlite_failed("interrupted");
    }
    failure
}

/// SQLite's text for files that may not grow.
const FULL: &str = "database or disk is full";

/// The text of the engine for a full log begins so.
const LOG_FULL: &str = "the transaction log of database";

/// A full log or file of a page engine database is told as the engine tells it: SQLite has one text for all.
fn full_met(session: &mut Session, mut failure: Failure) -> Failure {
    let is_full = |message: &&mut Message| message.text.ends_with(FULL);
    let Some(message) = failure.messages.iter_mut().find(is_full) else {
        return failure;
    };
    let Some(reason) = session.queries.reason_of_engine() else {
        return failure;
    };
    let name = session.current_database();
    let open = session.instance.engines.open_databases().database(name);
    let wait = open.map(|database| database.log_reuse_wait());
    let told = match wait.filter(|_| reason.starts_with(LOG_FULL)) {
        Some(wait) => table::log_full(name, wait),
        None => message.clone(),
    };
    *message = told.with_advice(Some(format!("({reason})")));
    failure
}

/// SQLite's text for damage.
const MALFORMED: &str = "database disk image is malformed";

/// Records damage that a statement met. A damaged page of a page engine database is reported with 824, and recorded
/// in `suspect_pages`, too.
fn damage_met(session: &mut Session, failure: Failure) -> Failure {
    let name = session.current_database().to_owned();
    let is_malformed = |message: &&Message| message.text.ends_with(MALFORMED);
    if let Some(message) = failure.messages.iter().find(is_malformed)
        && let Ok(Some(record)) = session.instance.database(&name)
    {
        session.note_malformed(&record, message);
    }
    let is_read = |message: &Message| message.text.contains("disk I/O error");
    if !failure.messages.iter().any(is_read) {
        return failure;
    }
    let open = session.instance.engines.open_databases();
    let Some(damage) = open.take_damage(&name) else {
        return failure;
    };
    if let EngineError::PageChecksum { file_page, .. } = damage
        && let Ok(Some(record)) = session.instance.database(&name)
    {
        // If recording fails, the damage is still reported.
        let _noted = session.note_page(&record, file_page, &engine_message(&damage));
    }
    Failure {
        messages: vec![engine_message(&damage)],
        ..failure
    }
}

fn query(session: &mut Session, query: &Query, sink: &mut dyn Sink) -> Result<(), Failure> {
    if let Body::Select(select) = &query.body {
        let assigns = |item: &windlass_tsql::span::Spanned<SelectItem>| {
            matches!(item.node, SelectItem::Assign { .. })
        };
        if select.items.iter().any(assigns) {
            return assign(session, query, select);
        }
        if let Some(into) = &select.into {
            return temporary::select_into(session, query, &into.node, sink);
        }
    }
    let rows = read(session, query, &mut |event| sink.event(event))?;
    session.row_count = i64::try_from(rows).unwrap_or(i64::MAX);
    sink.event(Event::RowsEnd(rows));
    Ok(())
}

/// Runs a query; returns the number of rows.
pub(super) fn read(
    session: &mut Session,
    query: &Query,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<u64, Failure> {
    let mut binder = Binder::new(session);
    let bound = binder.query(query)?;
    let (trees, asks) = (std::mem::take(&mut binder.trees), binder.asks_databases);
    let facts = facts(session, asks)?;
    let columns: Vec<Column> = bound
        .outputs
        .iter()
        .map(|output| {
            Column::new(
                output.name.clone().unwrap_or_default(),
                output.ty.column_type(),
            )
        })
        .collect();
    let types: Vec<DataType> = bound.outputs.iter().map(|output| output.ty).collect();
    let program = session.queries.program.clone();
    program.load(trees, facts);
    let is_system = session.queries.is_system();
    let connection = session.queries.connection(session.instance.catalog())?;
    let failed = |error: rusqlite::Error| failed(&program, &error, is_system);
    let mut statement = connection.prepare(&bound.sql).map_err(failed)?;
    let mut rows = statement.raw_query();
    on_event(Event::Columns(&columns));
    let mut count = 0;
    while let Some(row) = rows.next().map_err(failed)? {
        let mut values = Vec::with_capacity(types.len());
        for (index, ty) in types.iter().enumerate() {
            values.push(decode(row.get_ref(index).map_err(failed)?, *ty));
        }
        on_event(Event::Row(&values));
        count += 1;
    }
    Ok(count)
}

/// `SELECT @x = ...`: the values are computed row by row, so that `@x + name` adds up.
fn assign(session: &mut Session, query: &Query, select: &Select) -> Result<(), Failure> {
    let mut binder = Binder::new(session);
    let bound = binder.assignments(query, select)?;
    let (trees, asks) = (std::mem::take(&mut binder.trees), binder.asks_databases);
    let facts = facts(session, asks)?;
    session.queries.program.load(trees, facts.clone());
    // Without rows there is nothing to read: no database needs to be open.
    if select.from.is_empty() && bound.leaf_types.is_empty() && select.condition.is_none() {
        for (name, tree) in &bound.variables {
            set(&mut session.variables, name, tree, &[], &facts)?;
        }
        session.row_count = 1;
        return Ok(());
    }
    // Taken out of the session, whose connection is read meanwhile.
    let mut variables = std::mem::take(&mut session.variables);
    let count = assign_rows(session, &bound, &facts, &mut variables);
    session.variables = variables;
    session.row_count = count?;
    Ok(())
}

fn assign_rows(
    session: &mut Session,
    bound: &Assignments,
    facts: &Facts,
    variables: &mut Variables,
) -> Result<i64, Failure> {
    let program = session.queries.program.clone();
    let is_system = session.queries.is_system();
    let connection = session.queries.connection(session.instance.catalog())?;
    let failed = |error: rusqlite::Error| failed(&program, &error, is_system);
    let mut statement = connection.prepare(&bound.sql).map_err(failed)?;
    let mut rows = statement.raw_query();
    let mut count = 0;
    while let Some(row) = rows.next().map_err(failed)? {
        let mut leaves = Vec::with_capacity(bound.leaf_types.len());
        for (index, ty) in bound.leaf_types.iter().enumerate() {
            leaves.push(decode(row.get_ref(index).map_err(failed)?, *ty));
        }
        for (name, tree) in &bound.variables {
            set(variables, name, tree, &leaves, facts)?;
        }
        count += 1;
    }
    Ok(count)
}

fn set(
    variables: &mut Variables,
    name: &str,
    tree: &Bound,
    leaves: &[Value],
    facts: &Facts,
) -> Result<(), Failure> {
    let inputs = Inputs {
        leaves,
        facts,
        variables: Some(&*variables),
    };
    let value = eval(tree, &inputs)?;
    variables.set(name, &value, tree.ty)
}

/// Binds and runs a change.
fn change(
    session: &mut Session,
    bind: impl FnOnce(&mut Binder<'_>) -> Result<Changed, Failure>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let rows = changed_rows(session, bind)?;
    session.row_count = i64::try_from(rows).unwrap_or(i64::MAX);
    if !session.settings.hides_counts {
        sink.event(Event::RowsAffected(rows));
    }
    Ok(())
}

pub(super) fn changed_rows(
    session: &mut Session,
    bind: impl FnOnce(&mut Binder<'_>) -> Result<Changed, Failure>,
) -> Result<u64, Failure> {
    let mut binder = Binder::new(session);
    let changed = bind(&mut binder)?;
    let (trees, asks) = (std::mem::take(&mut binder.trees), binder.asks_databases);
    let facts = facts(session, asks)?;
    session.queries.program.load(trees, facts);
    run_change(session, &changed.sql, changed.is_temporary)
}

/// Runs a statement without rows; returns how many it changed.
pub(super) fn run_change(
    session: &mut Session,
    sql: &str,
    is_temporary: bool,
) -> Result<u64, Failure> {
    let program = session.queries.program.clone();
    let is_system = session.queries.is_system() && !is_temporary;
    if is_system {
        return Err(nowhere());
    }
    session.queries.refuse_doomed()?;
    let connection = session.queries.connection(session.instance.catalog())?;
    let failed = |error: rusqlite::Error| failed(&program, &error, is_system);
    let before = connection.total_changes();
    let mut statement = connection.prepare(sql).map_err(failed)?;
    statement.raw_execute().map_err(failed)?;
    Ok(connection.total_changes() - before)
}

fn nowhere() -> Failure {
    table::sqlite_failed("there is no current database to store anything in. USE a database first.")
        .into()
}

fn insert(session: &mut Session, insert: &Insert, sink: &mut dyn Sink) -> Result<(), Failure> {
    let InsertRows::Execute(statement) = &insert.rows else {
        return change(session, |binder| binder.insert(insert), sink);
    };
    let mut executed = Executed::new(sink);
    let result = super::execute(session, statement, &mut executed);
    let (results, is_whole) = (executed.results, executed.rows.is_whole());
    result?;
    if !is_whole {
        let hint = "Insert the rows of its query: INSERT ... SELECT.";
        let what = format!("INSERT ... EXECUTE of more than {ROWS_MB_MAX} MB");
        return Err(table::statement_not_supported(what, hint).into());
    }
    session.queries.refuse_doomed()?;
    let mut count = 0;
    for (width, rows) in &results {
        let (sql, types, is_temporary) = Binder::new(session).row_inserter(insert, *width)?;
        count += rows_inserted(session, &sql, &types, is_temporary, rows)?;
    }
    session.row_count = i64::try_from(count).unwrap_or(i64::MAX);
    if !session.settings.hides_counts {
        sink.event(Event::RowsAffected(count));
    }
    Ok(())
}

/// Inserts all rows, or none.
fn rows_inserted(
    session: &mut Session,
    sql: &str,
    types: &[(StoredIn, DataType)],
    is_temporary: bool,
    rows: &[Vec<Value>],
) -> Result<u64, Failure> {
    let program = session.queries.program.clone();
    let is_system = session.queries.is_system();
    let connection = session.queries.connection(session.instance.catalog())?;
    let failed = |error: rusqlite::Error| failed(&program, &error, is_system);
    connection.execute_batch("SAVEPOINT windlass_insert")?;
    let insert_all = || -> Result<u64, Failure> {
        let mut statement = connection.prepare(sql).map_err(failed)?;
        let mut count = 0;
        for row in rows {
            let mut values = Vec::with_capacity(row.len());
            for (value, (column, ty)) in row.iter().zip(types) {
                let value = store(value, type_of(value), *ty, column)?;
                values.push(match is_temporary {
                    true => encode(&value, *ty),
                    false => kept(&value)?,
                });
            }
            statement
                .execute(rusqlite::params_from_iter(values))
                .map_err(failed)?;
            count += 1;
        }
        Ok(count)
    };
    let inserted = insert_all();
    if inserted.is_err() {
        // If that fails, the transaction has ended already.
        drop(connection.execute_batch("ROLLBACK TO windlass_insert"));
    }
    match (
        connection.execute_batch("RELEASE windlass_insert"),
        &inserted,
    ) {
        (Err(error), Ok(_)) => Err(failed(error)),
        _ => inserted,
    }
}

/// The parameters of a statement, which the session may run now.
fn parameter_names(session: &mut Session, text: &str) -> Result<Vec<Option<String>>, Failure> {
    let is_system = session.queries.is_system();
    let program = session.queries.program.clone();
    let connection = session.queries.connection(session.instance.catalog())?;
    let statement = connection
        .prepare(text)
        .map_err(|error| failed(&program, &error, is_system))?;
    if is_system && !statement.readonly() {
        return Err(nowhere());
    }
    let names = (1..=statement.parameter_count())
        .map(|index| statement.parameter_name(index).map(str::to_owned));
    let (names, is_readonly) = (names.collect(), statement.readonly());
    drop(statement);
    if !is_readonly {
        session.queries.refuse_doomed()?;
    }
    Ok(names)
}

/// SQL in SQLite's own words; variables are its parameters.
fn native(session: &mut Session, text: &str, sink: &mut dyn Sink) -> Result<(), Failure> {
    // Without a name, SQLite analyzes the views of the catalog as well, which nobody may write.
    let is_analyze = text
        .trim_end_matches([';', ' ', '\n'])
        .eq_ignore_ascii_case("ANALYZE");
    let text = if is_analyze { "ANALYZE main" } else { text };
    if let Some(encoding) = windlass_tsql::pragma::encoding_asked(text) {
        let catalog = session.instance.catalog();
        session.queries.set_encoding(catalog, &encoding)?;
    }
    let is_system = session.queries.is_system();
    let program = session.queries.program.clone();
    let names = parameter_names(session, text)?;
    let mut bindings = Vec::new();
    for name in names {
        let value = session.variable(&name.unwrap_or_default())?;
        bindings.push(stored(&value));
    }
    let connection = session.queries.connection(session.instance.catalog())?;
    let failed = |error: rusqlite::Error| failed(&program, &error, is_system);
    let mut statement = connection.prepare(text).map_err(failed)?;
    for (index, value) in bindings.iter().enumerate() {
        statement
            .raw_bind_parameter(index + 1, value)
            .map_err(failed)?;
    }
    let columns: Vec<Column> = statement
        .column_names()
        .map(|name| Column::new(name, ColumnType::Any))
        .collect();
    let before = connection.total_changes();
    let mut rows = statement.raw_query();
    if !columns.is_empty() {
        sink.event(Event::Columns(&columns));
    }
    let mut count = 0;
    while let Some(row) = rows.next().map_err(failed)? {
        let mut values = Vec::with_capacity(columns.len());
        for index in 0..columns.len() {
            values.push(decode(
                row.get_ref(index).map_err(failed)?,
                DataType::Variant,
            ));
        }
        sink.event(Event::Row(&values));
        count += 1;
    }
    drop(rows);
    if !columns.is_empty() {
        session.row_count = i64::try_from(count).unwrap_or(i64::MAX);
        sink.event(Event::RowsEnd(count));
        return Ok(());
    }
    let changed = connection.total_changes() - before;
    session.row_count = 0;
    if changes_rows(text) {
        session.row_count = i64::try_from(changed).unwrap_or(i64::MAX);
        if !session.settings.hides_counts {
            sink.event(Event::RowsAffected(changed));
        }
    }
    Ok(())
}

/// Whether T-SQL reports a row count after this statement.
fn changes_rows(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or("");
    ["INSERT", "UPDATE", "DELETE", "REPLACE", "WITH"]
        .iter()
        .any(|word| word.eq_ignore_ascii_case(first))
}

/// Why a statement failed: the tree that could not be computed, or what SQLite says.
pub(super) fn failed(program: &Program, error: &rusqlite::Error, is_system: bool) -> Failure {
    if let Some(failure) = program.take_failure() {
        return failure;
    }
    if let Some(message) = lock_not_granted(error) {
        return message.into();
    }
    let text = match error {
        rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
        other => other.to_string(),
    };
    if error.sqlite_error_code() == Some(ErrorCode::AuthorizationForStatementDenied) {
        return table::attach_denied().into();
    }
    if is_system && error.sqlite_error_code() == Some(ErrorCode::ReadOnly) {
        return nowhere();
    }
    if error.sqlite_error_code() == Some(ErrorCode::ReadOnly) {
        return table::database_read_only(program.database()).into();
    }
    if let Some(columns) = text.strip_prefix("UNIQUE constraint failed: ") {
        return table::key_violation(columns).into();
    }
    if let Some(column) = text.strip_prefix("NOT NULL constraint failed: ") {
        let (table_name, column) = column.rsplit_once('.').unwrap_or(("", column));
        return table::null_not_allowed(column, table_name).into();
    }
    match error {
        // The rest of the message repeats SQL that nobody wrote.
        rusqlite::Error::SqlInputError { msg, .. } => table::sqlite_failed(msg).into(),
        _ => table::sqlite_failed(text).into(),
    }
}
