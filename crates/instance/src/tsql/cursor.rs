//! Cursors: every one is a copy of the rows of its query, made by OPEN.

use std::collections::BTreeMap;

use windlass_base::message::table;
use windlass_tsql::ast::{Cursor, FetchDirection, Query, Variable};
use windlass_tsql::span::Spanned;

use super::copied::{ROWS_MB_MAX, Room};
use super::query::read;
use crate::{Column, Event, Failure, Session, Sink, Value};

/// The cursors of a session.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    by_name: BTreeMap<String, Declared>,
    /// `@@FETCH_STATUS`
    pub(crate) fetch_status: i64,
    /// `@@CURSOR_ROWS`
    pub(crate) rows: i64,
}

#[derive(Debug)]
pub(crate) struct Declared {
    query: Box<Query>,
    is_local: bool,
    copy: Option<Copy>,
}

#[derive(Debug)]
struct Copy {
    columns: Vec<Column>,
    rows: Vec<Vec<Value>>,
    /// The row that was fetched last, from 1; 0 before the first.
    position: usize,
}

impl Cursors {
    /// Forgets the cursors that end with their batch.
    pub(crate) fn end_batch(&mut self) {
        self.by_name.retain(|_, cursor| !cursor.is_local);
    }

    /// Hides the cursors that are local to the batch around a new one.
    pub(crate) fn begin_scope(&mut self) -> BTreeMap<String, Declared> {
        let (local, global) = std::mem::take(&mut self.by_name)
            .into_iter()
            .partition(|(_, cursor)| cursor.is_local);
        self.by_name = global;
        local
    }

    /// Forgets the cursors of the batch that ends, and shows `outer` again.
    pub(crate) fn end_scope(&mut self, outer: BTreeMap<String, Declared>) {
        self.end_batch();
        self.by_name.extend(outer);
    }

    /// Closes all open cursors.
    pub(crate) fn close_all(&mut self) {
        for cursor in self.by_name.values_mut() {
            cursor.copy = None;
        }
    }

    fn named(&mut self, name: &str) -> Result<&mut Declared, Failure> {
        let found = self.by_name.get_mut(&name.to_lowercase());
        found.ok_or_else(|| table::cursor_unknown(name).into())
    }
}

pub(super) fn execute(
    session: &mut Session,
    cursor: &Cursor,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    match cursor {
        Cursor::Declare {
            name,
            query,
            options,
            ..
        } => {
            let key = name.text.to_lowercase();
            if session.cursors.by_name.contains_key(&key) {
                return Err(table::cursor_exists(&name.text).into());
            }
            let declared = Declared {
                query: query.clone(),
                is_local: options.iter().any(|option| option == "LOCAL"),
                copy: None,
            };
            session.cursors.by_name.insert(key, declared);
            Ok(())
        }
        Cursor::Open(name) => open(session, &name.text),
        Cursor::Fetch {
            direction,
            name,
            into,
        } => fetch(session, &name.text, *direction, into, sink),
        Cursor::Close(name) => {
            let cursor = session.cursors.named(&name.text)?;
            match cursor.copy.take() {
                Some(_) => Ok(()),
                None => Err(table::cursor_closed().into()),
            }
        }
        Cursor::Deallocate(name) => {
            session.cursors.named(&name.text)?;
            session.cursors.by_name.remove(&name.text.to_lowercase());
            Ok(())
        }
    }
}

fn open(session: &mut Session, name: &str) -> Result<(), Failure> {
    let cursor = session.cursors.named(name)?;
    if cursor.copy.is_some() {
        return Err(table::cursor_open().into());
    }
    let query = cursor.query.clone();
    let mut copy = Copy {
        columns: Vec::new(),
        rows: Vec::new(),
        position: 0,
    };
    let mut room = Room::new();
    read(session, &query, &mut |event| match event {
        Event::Columns(columns) => copy.columns = columns.to_vec(),
        Event::Row(row) => copy.rows.extend(room.copy(row)),
        _ => {}
    })?;
    if !room.is_whole() {
        let hint = "Choose fewer rows, or number them and read them in parts.";
        let what = format!("A cursor over more than {ROWS_MB_MAX} MB");
        return Err(table::statement_not_supported(what, hint).into());
    }
    session.cursors.rows = i64::try_from(copy.rows.len()).unwrap_or(i64::MAX);
    session.cursors.named(name)?.copy = Some(copy);
    Ok(())
}

fn fetch(
    session: &mut Session,
    name: &str,
    direction: FetchDirection,
    into: &[Spanned<Variable>],
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let cursor = session.cursors.named(name)?;
    let copy = cursor
        .copy
        .as_mut()
        .ok_or_else(|| Failure::from(table::cursor_closed()))?;
    let count = copy.rows.len();
    copy.position = match direction {
        FetchDirection::Next => (copy.position + 1).min(count + 1),
        FetchDirection::Prior => copy.position.saturating_sub(1),
        FetchDirection::First => 1,
        FetchDirection::Last => count,
    };
    let row = copy
        .position
        .checked_sub(1)
        .and_then(|at| copy.rows.get(at))
        .cloned();
    let columns = copy.columns.clone();
    session.cursors.fetch_status = if row.is_some() { 0 } else { -1 };
    session.row_count = i64::from(row.is_some());
    if into.is_empty() {
        sink.event(Event::Columns(&columns));
        if let Some(row) = &row {
            sink.event(Event::Row(row));
        }
        sink.event(Event::RowsEnd(u64::from(row.is_some())));
        return Ok(());
    }
    if into.len() != columns.len() {
        return Err(table::cursor_columns().into());
    }
    for (variable, value) in into.iter().zip(row.unwrap_or_default()) {
        let ty = crate::tsql::expression::type_of(&value);
        session.variables.set(&variable.node.name, &value, ty)?;
    }
    Ok(())
}
