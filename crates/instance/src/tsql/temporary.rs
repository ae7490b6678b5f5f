//! Tables: `CREATE TABLE`, `#temp` tables, table variables, SELECT INTO.
//!
//! Temporary tables are in a database in memory of their own, which outlives the session's connection:
//! BACKUP and RESTORE close that.

use std::collections::BTreeMap;

use windlass_base::message::table as messages;
use windlass_tsql::ast::{
    ColumnDefinition, CreateTable, Expr, Identifier, Insert, InsertRows, ObjectName, Query, Target,
};
use windlass_tsql::span::Spanned;

use super::bind::{Binder, BoundQuery, TEMPORARY, Table, quoted};
use super::query::{changed_rows, run_change};
use crate::{DataType, Event, Failure, Session, Sink, Value};

/// The table variables of a batch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tables(BTreeMap<String, Table>);

impl Tables {
    /// The table of `@t`.
    pub(crate) fn variable(&self, name: &str) -> Result<Table, Failure> {
        let found = self.0.get(&name.to_lowercase()).cloned();
        found.ok_or_else(|| Failure::ending(messages::table_variable_unknown(name)))
    }
}

/// Removes the table variables of a batch that ends.
pub(crate) fn drop_variables(session: &mut Session) {
    for table in std::mem::take(&mut session.tables).0.into_values() {
        // If that fails, the table ends with the session.
        let _dropped = run_change(
            session,
            &format!("DROP TABLE IF EXISTS {}", table.sql),
            true,
        );
    }
}

/// Removes the `#temp` tables that were made since `kept` were all.
pub(crate) fn drop_since(session: &mut Session, kept: &[String]) {
    for name in session.queries.temporary_tables() {
        if !kept.contains(&name) {
            let table = format!("{}.{}", quoted(TEMPORARY), quoted(&name));
            // If that fails, the table ends with the session.
            let _dropped = run_change(session, &format!("DROP TABLE IF EXISTS {table}"), true);
        }
    }
}

/// `DECLARE @t TABLE (...)`
pub(super) fn declare(session: &mut Session, create: &CreateTable) -> Result<(), Failure> {
    let Target::Variable(name) = &create.target.node else {
        return Err(messages::internal_consistency().into());
    };
    let key = name.name.to_lowercase();
    // In a loop, the declaration runs again: the table stays.
    if session.tables.0.contains_key(&key) {
        return Ok(());
    }
    session.table_count += 1;
    let sql = format!(
        "{}.{}",
        quoted(TEMPORARY),
        quoted(&format!("{} {}", name.name, session.table_count))
    );
    let definition = definition(session, create, true)?;
    run_change(session, &format!("CREATE TABLE {sql} {definition}"), true)?;
    let columns = create.columns.iter().map(|column| {
        let written = column.node.data_type.as_ref();
        let ty = written.and_then(|written| DataType::of(written, 1));
        (
            column.node.name.text.clone(),
            ty.unwrap_or(DataType::Variant),
        )
    });
    let table = Table {
        sql,
        columns: columns.collect(),
        schema: TEMPORARY.to_owned(),
    };
    session.tables.0.insert(key, table);
    Ok(())
}

/// `CREATE TABLE`
pub(super) fn create_table(session: &mut Session, create: &CreateTable) -> Result<(), Failure> {
    let Target::Table(name) = &create.target.node else {
        return Err(messages::internal_consistency().into());
    };
    let (sql, is_temporary) = place(session, name)?;
    let definition = definition(session, create, is_temporary)?;
    let options = match create.options.is_empty() {
        true => String::new(),
        false => format!(" {}", create.options),
    };
    let text = format!("CREATE TABLE {sql} {definition}{options}");
    run_change(session, &text, is_temporary).map_err(|failure| existing(failure, name))?;
    session.row_count = 0;
    Ok(())
}

fn existing(failure: Failure, name: &ObjectName) -> Failure {
    let exists = |message: &windlass_base::Message| message.text.contains("already exists");
    match failure.messages.iter().any(exists) {
        true => messages::object_exists(&name.object.text).into(),
        false => failure,
    }
}

/// Where a new table goes.
fn place(session: &mut Session, name: &ObjectName) -> Result<(String, bool), Failure> {
    let binder = Binder::new(session);
    let schema = binder.schema_of(name)?;
    if matches!(schema.as_str(), "sys" | "msdb") && !session.queries.is_system() {
        return Err(messages::catalog_read_only().into());
    }
    let is_temporary = schema == TEMPORARY;
    Ok((
        format!("{}.{}", quoted(&schema), quoted(&name.object.text)),
        is_temporary,
    ))
}

/// `(columns)` in SQLite's words.
fn definition(
    session: &mut Session,
    create: &CreateTable,
    is_temporary: bool,
) -> Result<String, Failure> {
    let mut parts = Vec::new();
    for column in &create.columns {
        parts.push(column_definition(session, &column.node, is_temporary)?);
    }
    parts.extend(
        create
            .constraints
            .iter()
            .map(|constraint| plain_constraint(constraint)),
    );
    Ok(format!("({})", parts.join(", ")))
}

/// SQLite has no clustered keys.
fn plain_constraint(constraint: &str) -> String {
    let words = constraint.split_whitespace();
    let kept = words.filter(|word| {
        !["CLUSTERED", "NONCLUSTERED"]
            .iter()
            .any(|other| word.eq_ignore_ascii_case(other))
    });
    kept.collect::<Vec<_>>().join(" ")
}

fn column_definition(
    session: &mut Session,
    column: &ColumnDefinition,
    is_temporary: bool,
) -> Result<String, Failure> {
    let mut sql = quoted(&column.name.text);
    let ty = column
        .data_type
        .as_ref()
        .and_then(|written| DataType::of(written, 1));
    // Only an INTEGER PRIMARY KEY counts up in SQLite.
    match &column.data_type {
        _ if column.is_identity => sql.push_str(" INTEGER"),
        Some(written) => {
            sql.push(' ');
            sql.push_str(&type_name(&written.to_string()));
        }
        None => {}
    }
    if column.is_primary || column.is_identity {
        sql.push_str(" PRIMARY KEY");
    }
    if column.is_identity {
        sql.push_str(" AUTOINCREMENT");
    }
    if column.is_required && !column.is_identity {
        sql.push_str(" NOT NULL");
    }
    if ty.is_some_and(DataType::is_text) && is_temporary {
        sql.push_str(" COLLATE windlass_ci");
    }
    if let Some(default) = &column.default {
        sql.push_str(" DEFAULT ");
        let exact = ty.filter(|ty| is_temporary && ty.is_exact());
        sql.push_str(&default_value(session, default, exact)?);
    }
    for constraint in &column.constraints {
        sql.push(' ');
        sql.push_str(&plain_constraint(constraint));
    }
    Ok(sql)
}

/// A default that every program can compute, or that a temporary table keeps as a number of the type `exact`.
fn default_value(
    session: &mut Session,
    default: &Spanned<Expr>,
    exact: Option<DataType>,
) -> Result<String, Failure> {
    if let Expr::Call { function, .. } = &default.node {
        let name = function.object.text.to_ascii_uppercase();
        match name.as_str() {
            "GETDATE" | "SYSDATETIME" | "CURRENT_TIMESTAMP" => {
                return Ok("(strftime('%Y-%m-%d %H:%M:%f', 'now', 'localtime'))".to_owned());
            }
            "GETUTCDATE" | "SYSUTCDATETIME" => {
                return Ok("(strftime('%Y-%m-%d %H:%M:%f', 'now'))".to_owned());
            }
            "NEWID" | "SUSER_SNAME" | "DB_NAME" => {
                let hint = "Give the value in INSERT.";
                let what = format!("DEFAULT {name}()");
                return Err(messages::statement_not_supported(what, hint).into());
            }
            _ => {}
        }
    }
    let (value, _) = super::evaluate::evaluate(session, default)?;
    let kept = match exact {
        Some(ty) => super::program::encode(&crate::convert(&value, ty, None)?, ty),
        None => super::program::kept(&value)?,
    };
    Ok(match kept {
        rusqlite::types::Value::Null => "NULL".to_owned(),
        rusqlite::types::Value::Integer(number) => format!("({number})"),
        rusqlite::types::Value::Real(number) => format!("({number:?})"),
        rusqlite::types::Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        rusqlite::types::Value::Blob(bytes) => {
            let digits = Value::Binary(bytes).to_string();
            format!("x'{}'", digits.trim_start_matches("0x"))
        }
    })
}

/// `DROP TABLE`
pub(super) fn drop_tables(
    session: &mut Session,
    names: &[Spanned<ObjectName>],
    if_exists: bool,
) -> Result<(), Failure> {
    for name in names {
        let (sql, is_temporary) = place(session, &name.node)?;
        let dropped = run_change(session, &format!("DROP TABLE {sql}"), is_temporary);
        if let Err(failure) = dropped {
            let is_missing = failure
                .messages
                .iter()
                .any(|message| message.text.contains("no such table"));
            match (is_missing, if_exists) {
                (true, true) => {}
                (true, false) => return Err(messages::cannot_drop("table", &name.node).into()),
                (false, _) => return Err(failure),
            }
        }
    }
    session.row_count = 0;
    Ok(())
}

/// `TRUNCATE TABLE`
pub(super) fn truncate(session: &mut Session, name: &ObjectName) -> Result<(), Failure> {
    let (sql, is_temporary) = place(session, name)?;
    run_change(session, &format!("DELETE FROM {sql}"), is_temporary)?;
    session.row_count = 0;
    Ok(())
}

/// `SELECT ... INTO table`
pub(super) fn select_into(
    session: &mut Session,
    query: &Query,
    name: &ObjectName,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let mut plain = query.clone();
    if let windlass_tsql::ast::Body::Select(select) = &mut plain.body {
        select.into = None;
    }
    let bound: BoundQuery = Binder::new(session).query(&plain)?;
    let mut columns = Vec::new();
    for (index, output) in bound.outputs.iter().enumerate() {
        let column = output.name.as_ref().ok_or_else(|| {
            Failure::from(messages::column_without_name(index + 1, &name.object.text))
        })?;
        columns.push(format!("{} {}", quoted(column), declared(output.ty)));
    }
    let (sql, is_temporary) = place(session, name)?;
    let create = format!("CREATE TABLE {sql} ({})", columns.join(", "));
    run_change(session, &create, is_temporary).map_err(|failure| existing(failure, name))?;
    let insert = Insert {
        tables: Vec::new(),
        target: Spanned::unplaced(Target::Table(name.clone())),
        columns: Vec::<Spanned<Identifier>>::new(),
        rows: InsertRows::Query(Box::new(plain)),
    };
    let rows = changed_rows(session, |binder| binder.insert(&insert))?;
    session.row_count = i64::try_from(rows).unwrap_or(i64::MAX);
    if !session.settings.hides_counts {
        sink.event(Event::RowsAffected(rows));
    }
    Ok(())
}

/// A type as SQLite reads it, which knows no `max`.
fn type_name(written: &str) -> String {
    match written.to_ascii_lowercase().contains("max") {
        true => quoted(written),
        false => written.to_owned(),
    }
}

/// How a type is declared in a table.
fn declared(ty: DataType) -> String {
    let length = |limit: Option<usize>| limit.map_or("max".to_owned(), |limit| limit.to_string());
    match ty {
        DataType::Null => "int".to_owned(),
        DataType::Variant => String::new(),
        DataType::Decimal { precision, scale } => format!("numeric({precision}, {scale})"),
        DataType::Text { limit, .. } | DataType::Binary { limit, .. } => {
            type_name(&format!("{}({})", ty.name(), length(limit)))
        }
        other => other.name().to_owned(),
    }
}
