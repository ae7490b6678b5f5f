//! Values and messages as JSON, for the command line and for programs that load the extension.
//!
//! Log sequence numbers do not fit 53 bits and are strings: many readers of JSON would change them. The type
//! of the column decides, so that a column has one type in JSON. Dates are `YYYY-MM-DDThh:mm:ss.mmm`.

use serde_json::{Map, Value as Json, json};
use windlass_base::Message;

use crate::{Column, ColumnType, ResultSet, Value};

/// Whole numbers of more digits are strings; `numeric(20,0)` are sizes, which are smaller than their type.
const DIGITS_OF_NUMBERS: u8 = 20;

fn value(value: &Value, column_type: ColumnType) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bit(bit) => Json::Bool(*bit),
        Value::Integer(number) => json!(number),
        Value::Float(number) => json!(number),
        Value::DateTime(_) | Value::DateTime2(_) => {
            Json::String(value.to_string().replacen(' ', "T", 1))
        }
        Value::Decimal(_) => decimal(value.to_string(), column_type),
        Value::Text(_) | Value::Binary(_) | Value::Guid(_) | Value::Date(_) | Value::Time(_) => {
            Json::String(value.to_string())
        }
    }
}

fn decimal(text: String, column_type: ColumnType) -> Json {
    let is_number = match column_type {
        ColumnType::Numeric(digits) | ColumnType::Decimal(digits, 0) => digits <= DIGITS_OF_NUMBERS,
        ColumnType::Any => text.contains('.') || text.len() <= usize::from(DIGITS_OF_NUMBERS),
        _ => true,
    };
    let number = is_number.then(|| serde_json::from_str(&text).ok());
    number.flatten().unwrap_or(Json::String(text))
}

/// A row as an object keyed by column names.
///
/// Columns without a name, or with a repeated one, get a number appended.
pub fn row(columns: &[Column], row: &[Value]) -> Json {
    let mut object = Map::new();
    for (index, (column, cell)) in columns.iter().zip(row).enumerate() {
        let mut key = column.name.clone();
        if key.is_empty() || object.contains_key(&key) {
            key = format!("{key}{}", index + 1);
        }
        object.insert(key, value(cell, column.column_type));
    }
    Json::Object(object)
}

/// All rows of a result.
pub fn rows(result: &ResultSet) -> Vec<Json> {
    result
        .rows
        .iter()
        .map(|cells| row(&result.columns, cells))
        .collect()
}

/// A message as an object.
pub fn message(message: &Message) -> Json {
    json!({
        "number": message.number,
        "severity": message.severity.0,
        "state": message.state,
        "line": message.line,
        "procedure": message.procedure,
        "text": message.text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_share_a_name_keep_their_values() {
        let columns = ["a", "a", ""].map(|name| Column::new(name, ColumnType::Any));
        let row = row(
            &columns,
            &[Value::Integer(1), Value::Bit(true), Value::Null],
        );
        assert_eq!(row.to_string(), r#"{"a":1,"a2":true,"3":null}"#);
    }

    #[test]
    fn a_log_sequence_number_keeps_its_digits() {
        let lsn = Value::lsn("39:992:1".parse().unwrap());
        for ty in [ColumnType::Numeric(25), ColumnType::Decimal(25, 0)] {
            assert_eq!(value(&lsn, ty), json!("39000000099200001"));
            assert_eq!(
                value(&"0".parse().map(Value::Decimal).unwrap(), ty),
                json!("0")
            );
        }
    }

    #[test]
    fn a_size_and_a_fraction_are_numbers() {
        let decimal = |text: &str| Value::Decimal(text.parse().unwrap());
        let size = value(&decimal("2831155200"), ColumnType::Numeric(20));
        assert_eq!(size, json!(2_831_155_200_u64));
        let fraction = value(&decimal("-2.70"), ColumnType::Decimal(31, 9));
        assert_eq!(fraction.to_string(), "-2.7");
        let small = value(&decimal("0.05"), ColumnType::Money);
        assert_eq!(small.to_string(), "0.05");
    }
}
