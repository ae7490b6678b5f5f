//! Writes tables to a SQLite file.
//!
//! Values stay exact. Numbers with more digits than a float can represent are stored as text, and
//! their columns have no declared type, so that SQLite does not convert that text to a float; every
//! other column keeps its declared type. The table `windlass_columns` records each column's type in
//! SQL Server.
//!
//! A foreign key is written if the table that it references is, with the key that it names: SQLite refuses to change
//! the rows of a table whose foreign keys lead nowhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::types::{ToSqlOutput, Value as SqliteValue};
use rusqlite::{Connection, Transaction, params_from_iter};
use windlass_bak::table::{Column, ForeignKey, Table, Value};

use crate::Error;
use crate::extract::Fill;

/// Decimals below this have at most 15 digits, which a float represents exactly.
const FLOAT_DIGITS_MAX: u128 = 1_000_000_000_000_000;

/// A SQLite file that is being written.
#[derive(Debug)]
pub(crate) struct SqliteWriter {
    connection: Connection,
    /// The names of the tables that are written, by object.
    names: BTreeMap<u32, String>,
    /// Their primary and unique keys.
    keys: BTreeMap<u32, Vec<Vec<String>>>,
}

impl SqliteWriter {
    /// Creates the file, which must not exist, with a limit of its size. `tables` are those that will be written.
    pub(crate) fn create<'t>(
        path: &Path,
        bytes_max: Option<u64>,
        tables: impl Iterator<Item = &'t Table> + Clone,
    ) -> Result<Self, Error> {
        let connection = Connection::open(path)?;
        if let Some(bytes) = bytes_max {
            let page: u32 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
            let pages = u32::try_from(bytes / u64::from(page.max(1))).unwrap_or(u32::MAX);
            connection.pragma_update(None, "max_page_count", pages)?;
        }
        connection.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;
             PRAGMA foreign_keys = OFF;
             CREATE TABLE windlass_columns (
                 table_name TEXT NOT NULL, column_name TEXT NOT NULL, sql_type TEXT NOT NULL,
                 is_nullable INTEGER NOT NULL, is_identity INTEGER NOT NULL,
                 PRIMARY KEY (table_name, column_name)) WITHOUT ROWID;",
        )?;
        Ok(Self {
            connection,
            names: names(tables.clone()),
            keys: tables.map(|table| (table.object, keys(table))).collect(),
        })
    }

    /// Creates a table; `fill` gets the function that adds rows. Returns the table's name.
    pub(crate) fn table<T>(
        &mut self,
        table: &Table,
        fill: &mut Fill<'_, T>,
    ) -> Result<(String, T), Error> {
        let name = self.names.get(&table.object).cloned().unwrap_or_default();
        let create = self.create_statement(&name, table);
        let transaction = self.connection.transaction()?;
        transaction.execute_batch(&create)?;
        describe(&transaction, &name, table)?;
        let places = vec!["?"; table.columns.len()].join(", ");
        let mut insert =
            transaction.prepare(&format!("INSERT INTO {} VALUES ({places})", quoted(&name)))?;
        let reported = fill(&mut |row| {
            insert.execute(params_from_iter(row.iter().map(bound)))?;
            Ok(())
        })?;
        drop(insert);
        transaction.commit()?;
        Ok((name, reported))
    }

    /// Writes everything to disk.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.connection.close().map_err(|(_, error)| error)?;
        Ok(())
    }

    /// The foreign keys of a table that are not written, with the reason.
    pub(crate) fn left_out(&self, table: &Table) -> Vec<String> {
        let keys = table.foreign_keys.iter();
        let left = keys.filter_map(|key| {
            let why = self.refusal(key)?;
            Some(format!("{}: {why}", key.name))
        });
        left.collect()
    }

    fn refusal(&self, key: &ForeignKey) -> Option<&'static str> {
        let Some(keys) = self.keys.get(&key.referenced) else {
            return Some("the table that it references is not written");
        };
        if key.columns.is_empty() {
            return Some("its columns cannot be read");
        }
        let sorted = |columns: &[String]| columns.iter().cloned().collect::<BTreeSet<_>>();
        let referenced = sorted(&key.referenced_columns);
        let is_unique = keys.iter().any(|columns| sorted(columns) == referenced);
        (!is_unique).then_some("the columns that it references are not a key that is written")
    }

    fn create_statement(&self, name: &str, table: &Table) -> String {
        let column = |column: &Column| {
            let nullable = if column.is_nullable { "" } else { " NOT NULL" };
            format!("{} {}{nullable}", quoted(&column.name), declared(column))
        };
        let mut parts: Vec<String> = table.columns.iter().map(column).collect();
        if !table.primary_key.is_empty() {
            parts.push(format!("PRIMARY KEY ({})", listed(&table.primary_key)));
        }
        for columns in table.unique_keys.iter().filter(|key| !key.is_empty()) {
            parts.push(format!("UNIQUE ({})", listed(columns)));
        }
        for key in &table.foreign_keys {
            if let (None, Some(referenced)) = (self.refusal(key), self.names.get(&key.referenced)) {
                parts.push(format!(
                    "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {} ({})",
                    quoted(&key.name),
                    listed(&key.columns),
                    quoted(referenced),
                    listed(&key.referenced_columns)
                ));
            }
        }
        format!("CREATE TABLE {} ({});", quoted(name), parts.join(", "))
    }
}

/// Unique names: the plain name for a table in `dbo`, with the schema as prefix for others.
fn names<'t>(tables: impl Iterator<Item = &'t Table>) -> BTreeMap<u32, String> {
    let mut taken = BTreeSet::from(["windlass_columns".to_owned()]);
    let mut unique = |table: &Table| {
        let plain = if table.schema == "dbo" {
            table.name.clone()
        } else {
            format!("{}.{}", table.schema, table.name)
        };
        let plain = match plain.get(..7) {
            Some(begin) if begin.eq_ignore_ascii_case("sqlite_") => format!("dbo.{plain}"),
            _ => plain,
        };
        let mut name = plain.clone();
        let mut number = 2;
        while !taken.insert(name.to_lowercase()) {
            name = format!("{plain} ({number})");
            number += 1;
        }
        (table.object, name)
    };
    tables.map(&mut unique).collect()
}

fn keys(table: &Table) -> Vec<Vec<String>> {
    let primary = std::slice::from_ref(&table.primary_key).iter();
    primary.chain(&table.unique_keys).cloned().collect()
}

fn listed(columns: &[String]) -> String {
    let columns: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
    columns.join(", ")
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\"").replace('\0', ""))
}

/// The type in the column's declaration; empty where an affinity would change values.
fn declared(column: &Column) -> String {
    let declaration = column.sql_type.declaration();
    let base = declaration.split('(').next().unwrap_or_default();
    match base {
        _ if column.is_wide_decimal() || column.sql_type.is_opaque() => String::new(),
        "sql_variant" | "xml" => String::new(),
        "binary" | "varbinary" | "image" | "timestamp" => "BLOB".to_owned(),
        _ => declaration.replace("(max)", "").to_uppercase(),
    }
}

fn describe(transaction: &Transaction<'_>, name: &str, table: &Table) -> Result<(), Error> {
    let mut insert = transaction.prepare("INSERT INTO windlass_columns VALUES (?, ?, ?, ?, ?)")?;
    for column in &table.columns {
        insert.execute((
            name,
            &column.name,
            column.declaration(),
            column.is_nullable,
            column.is_identity,
        ))?;
    }
    Ok(())
}

/// A value as stored in SQLite.
fn bound(value: &Value) -> ToSqlOutput<'_> {
    use rusqlite::types::ValueRef;
    match value {
        Value::Null => ToSqlOutput::Borrowed(ValueRef::Null),
        Value::Integer(number) => ToSqlOutput::Borrowed(ValueRef::Integer(*number)),
        Value::Real(number) => ToSqlOutput::Borrowed(ValueRef::Real(*number)),
        Value::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        Value::Binary(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        Value::Decimal(digits, scale) => ToSqlOutput::Owned(decimal(*digits, *scale)),
    }
}

fn decimal(digits: i128, scale: u8) -> SqliteValue {
    let text = Value::Decimal(digits, scale).to_string();
    if digits.unsigned_abs() >= FLOAT_DIGITS_MAX {
        return SqliteValue::Text(text);
    }
    let unit = 10_i128.pow(u32::from(scale.min(38)));
    if digits % unit == 0 {
        return SqliteValue::Integer((digits / unit) as i64);
    }
    text.parse()
        .map_or(SqliteValue::Text(text), SqliteValue::Real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_become_floats_only_where_those_are_exact_enough() {
        assert_eq!(decimal(140_000, 4), SqliteValue::Integer(14));
        assert_eq!(decimal(-1, 2), SqliteValue::Real(-0.01));
        let exact = decimal(9_007_199_254_740_993, 1);
        assert_eq!(exact, SqliteValue::Text("900719925474099.3".to_owned()));
    }
}
