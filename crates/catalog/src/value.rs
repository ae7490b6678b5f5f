//! Storage of GUIDs, LSNs and dates in the catalog.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Row, ToSql};
use windlass_base::{Guid, Lsn, Moment};

use crate::Error;

/// A value of a row, as SQLite stores it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredValue(Value);

impl StoredValue {
    pub const NULL: Self = Self(Value::Null);
}

impl ToSql for StoredValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl From<bool> for StoredValue {
    fn from(value: bool) -> Self {
        Self(Value::from(value))
    }
}

impl From<i64> for StoredValue {
    fn from(value: i64) -> Self {
        Self(Value::from(value))
    }
}

impl From<f64> for StoredValue {
    fn from(value: f64) -> Self {
        Self(Value::from(value))
    }
}

impl From<&str> for StoredValue {
    fn from(value: &str) -> Self {
        Self(Value::from(value.to_owned()))
    }
}

impl From<&[u8]> for StoredValue {
    fn from(value: &[u8]) -> Self {
        Self(Value::from(value.to_owned()))
    }
}

impl From<Guid> for StoredValue {
    fn from(value: Guid) -> Self {
        Self(Value::from(value.to_string()))
    }
}

impl From<Lsn> for StoredValue {
    fn from(value: Lsn) -> Self {
        Self(lsn_value(value))
    }
}

impl From<Moment> for StoredValue {
    fn from(value: Moment) -> Self {
        Self(Value::from(value.to_string()))
    }
}

/// A value in the form stored by SQLite.
pub(crate) struct Stored<T>(pub(crate) T);

impl ToSql for Stored<Guid> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.0.to_string()))
    }
}

impl ToSql for Stored<Option<Guid>> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(optional(self.0.map(|guid| Value::Text(guid.to_string()))))
    }
}

impl ToSql for Stored<Lsn> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Owned(lsn_value(self.0)))
    }
}

impl ToSql for Stored<Option<Lsn>> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(optional(self.0.map(lsn_value)))
    }
}

impl ToSql for Stored<Moment> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.0.to_string()))
    }
}

impl ToSql for Stored<Option<Moment>> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(optional(
            self.0.map(|moment| Value::Text(moment.to_string())),
        ))
    }
}

fn optional(value: Option<Value>) -> ToSqlOutput<'static> {
    ToSqlOutput::Owned(value.unwrap_or(Value::Null))
}

fn lsn_value(lsn: Lsn) -> Value {
    match i64::try_from(lsn.to_decimal()) {
        Ok(number) => Value::Integer(number),
        Err(_) => Value::Text(lsn.to_string()),
    }
}

/// Reads a column with text of a known form; `None` for NULL.
pub(crate) fn read<T: FromStr>(
    row: &Row<'_>,
    column: &str,
    expected: &'static str,
) -> Result<Option<T>, Error> {
    let value = row.get_ref(column).map_err(|source| Error::Sqlite {
        doing: "reading a column",
        source,
    })?;
    let text = match value {
        ValueRef::Null => return Ok(None),
        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(_) | ValueRef::Blob(_) => String::new(),
    };
    match text.parse() {
        Ok(value) => Ok(Some(value)),
        Err(_) => Err(Error::Stored {
            found: text,
            expected,
        }),
    }
}

/// The stored text of a path: the path itself, or a lossy form if it is not UTF-8.
pub(crate) fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The path of a stored text.
pub(crate) fn text_path(text: String) -> PathBuf {
    PathBuf::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_beyond_64_bits_keeps_its_digits() {
        let small = Lsn {
            vlf: 39,
            block: 992,
            slot: 1,
        };
        assert_eq!(lsn_value(small), Value::Integer(39_000_000_099_200_001));
        let large = Lsn {
            vlf: u32::MAX,
            block: 1,
            slot: 1,
        };
        assert_eq!(
            lsn_value(large),
            Value::Text("4294967295000000000100001".to_owned())
        );
    }
}
