//! Columns, each declared once: its name in a result, its name in `msdb`, its type, and how to get its
//! value.
//!
//! The lists are in `media_rows`. A result has all columns of its list, a row of the history those with
//! a name in `msdb`.

use windlass_base::Moment;
use windlass_catalog::{NamedValues, StoredValue};

use crate::{Column, ColumnType, ResultSet, Value};

/// A column of a statement that describes media: its name, its type, its getter, and its name in the
/// history.
pub(super) struct ColumnOf<S> {
    pub(super) name: &'static str,
    kept_as: Option<&'static str>,
    column_type: ColumnType,
    value: fn(&S) -> Value,
}

pub(super) const fn column<S>(
    name: &'static str,
    column_type: ColumnType,
    value: fn(&S) -> Value,
) -> ColumnOf<S> {
    ColumnOf {
        name,
        kept_as: None,
        column_type,
        value,
    }
}

/// A column that `msdb` has too, under the name `kept_as`.
pub(super) const fn kept<S>(
    name: &'static str,
    kept_as: &'static str,
    column_type: ColumnType,
    value: fn(&S) -> Value,
) -> ColumnOf<S> {
    ColumnOf {
        kept_as: Some(kept_as),
        ..column(name, column_type, value)
    }
}

pub(super) fn history_row<S>(list: &[ColumnOf<S>], subject: &S) -> NamedValues {
    list.iter()
        .filter_map(|column| Some((column.kept_as?, stored(&(column.value)(subject)))))
        .collect()
}

pub(super) fn stored(value: &Value) -> StoredValue {
    match value {
        Value::Null => StoredValue::NULL,
        Value::Bit(bit) => StoredValue::from(*bit),
        Value::Integer(number) => StoredValue::from(*number),
        Value::Float(number) => StoredValue::from(*number),
        Value::Text(text) => StoredValue::from(text.as_str()),
        Value::Binary(bytes) => StoredValue::from(bytes.as_slice()),
        Value::Guid(guid) => StoredValue::from(*guid),
        Value::DateTime(at) | Value::DateTime2(at) => StoredValue::from(Moment::new(*at)),
        Value::Decimal(_) | Value::Date(_) | Value::Time(_) => {
            let text = value.to_string();
            match text.parse::<i64>() {
                Ok(number) => StoredValue::from(number),
                Err(_) => StoredValue::from(text.as_str()),
            }
        }
    }
}

pub(super) fn headings<S>(list: &[ColumnOf<S>]) -> Vec<Column> {
    list.iter()
        .map(|column| Column::new(column.name, column.column_type))
        .collect()
}

pub(super) fn result<S>(list: &[ColumnOf<S>], subjects: &[S]) -> ResultSet {
    let row = |subject| list.iter().map(|column| (column.value)(subject)).collect();
    ResultSet {
        columns: headings(list),
        rows: subjects.iter().map(row).collect(),
    }
}
