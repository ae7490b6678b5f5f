//! The rows of the system tables that name and describe the user tables.
//!
//! What is damaged or missing is never taken for empty. It is a problem of the database, and an error if no table is known
//! without it: a server always has objects in `sysschobjs`.

use std::collections::HashMap;

use super::catalog::Database;
use super::layout::Field;
use super::pages::Pages;
use super::rows::RowReader;
use super::system::{Rowset, other_count};
use super::value::Value;
use crate::error::Error;

/// A system table.
#[derive(Debug, Clone, Copy)]
pub(super) struct SystemTable {
    object: u32,
    name: &'static str,
    /// What is unknown without it.
    holds: &'static str,
    /// The number of its columns that are read, from the first.
    columns: usize,
    /// The version of the first databases that have it.
    since: u16,
}

impl SystemTable {
    const fn new(object: u32, name: &'static str, holds: &'static str, columns: usize) -> Self {
        Self {
            object,
            name,
            holds,
            columns,
            since: 0,
        }
    }
}

/// The version of databases of SQL Server 2012.
const VERSION_2012: u16 = 706;

pub(super) const SYSSEOBJVALUES: SystemTable = SystemTable {
    since: VERSION_2012,
    ..SystemTable::new(
        9,
        "sysseobjvalues",
        "values of columns that were added later",
        5,
    )
};
pub(super) const SYSSCHOBJS: SystemTable =
    SystemTable::new(34, "sysschobjs", "the names of tables and foreign keys", 7);
pub(super) const SYSCOLPARS: SystemTable =
    SystemTable::new(41, "syscolpars", "the names and types of columns", 11);
pub(super) const SYSSCALARTYPES: SystemTable =
    SystemTable::new(50, "sysscalartypes", "the names of alias types", 3);
pub(super) const SYSIDXSTATS: SystemTable =
    SystemTable::new(54, "sysidxstats", "which indexes are keys", 4);
pub(super) const SYSISCOLS: SystemTable =
    SystemTable::new(55, "sysiscols", "the columns of keys", 5);
pub(super) const SYSCLSOBJS: SystemTable =
    SystemTable::new(64, "sysclsobjs", "the names of schemas", 3);
pub(super) const SYSSINGLEOBJREFS: SystemTable =
    SystemTable::new(74, "syssingleobjrefs", "the columns of foreign keys", 5);

/// A row of a system table; columns are numbered from 1.
pub(super) struct SystemRow<'a>(&'a [Value]);

impl SystemRow<'_> {
    pub(super) fn number(&self, column: usize) -> i64 {
        match self.0.get(column - 1) {
            Some(Value::Integer(number)) => *number,
            _ => 0,
        }
    }

    pub(super) fn text(&self, column: usize) -> String {
        match self.0.get(column - 1) {
            Some(Value::Text(text)) => text.clone(),
            _ => String::new(),
        }
    }

    pub(super) fn value(&self, column: usize) -> Value {
        self.0.get(column - 1).cloned().unwrap_or(Value::Null)
    }
}

impl Database {
    /// Passes the rows of a system table to `take`, and returns their number.
    ///
    /// A table that is missing, or has another number of rows than the server counts, is a problem.
    pub(super) fn system_rows(
        &mut self,
        pages: &mut dyn Pages,
        table: SystemTable,
        take: &mut dyn FnMut(&SystemRow<'_>),
    ) -> Result<u64, Error> {
        if self.version < table.since {
            return Ok(0);
        }
        let SystemTable { name, holds, .. } = table;
        let of_table = |rowset: &&Rowset| rowset.object == table.object && rowset.index <= 1;
        let rowset = self.system.rowsets.iter().find(of_table).copied();
        let Some((rowset, unit)) =
            rowset.and_then(|rowset| Some((rowset, self.row_unit(&rowset)?)))
        else {
            let what = format!("{name} is missing, and with it {holds}");
            self.problems.push(what);
            return Ok(0);
        };
        let fields = self.visible_fields(&rowset);
        if !has_first(&fields, table.columns) {
            let what = format!(
                "{name} cannot be read, and with it {holds}: sysrscols does not list its first {} columns",
                table.columns
            );
            self.problems.push(what);
            return Ok(0);
        }
        let reader = RowReader {
            fields: &fields,
            defaults: &HashMap::new(),
        };
        let tally = reader.read(pages, &rowset, &unit, &mut |values| {
            take(&SystemRow(values));
            Ok(())
        })?;
        self.problems.extend(tally.problems);
        if tally.rows != rowset.rows {
            let what = other_count(name, tally.rows, rowset.rows);
            self.problems.push(what);
        }
        Ok(tally.rows)
    }

    /// Why no table is known although the base tables could be read.
    pub(super) fn no_objects(&self) -> Error {
        let reason = self.problems.texts.first().cloned();
        Error::Catalog {
            what: "the list of objects (sysschobjs)",
            reason: reason.unwrap_or_else(|| "it has no rows".to_owned()),
        }
    }
}

/// Whether the first columns are all there: rows are read by the numbers of their columns.
fn has_first(fields: &[Field], columns: usize) -> bool {
    let mut numbered = fields.iter().zip(1_u32..).take(columns);
    fields.len() >= columns && numbered.all(|(field, number)| field.column == number)
}
