//! Values and messages as JSON.
//!
//! Numbers that do not fit 53 bits (log sequence numbers) are strings: many readers of JSON would
//! change them. Dates are `YYYY-MM-DDThh:mm:ss.mmm`.

use serde_json::{Map, Value as Json, json};
use windlass_base::Message;
use windlass_instance::{Column, Value};

pub(super) fn value(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bit(bit) => Json::Bool(*bit),
        Value::Integer(number) => json!(number),
        Value::Float(number) => json!(number),
        Value::DateTime(_) | Value::DateTime2(_) => {
            Json::String(value.to_string().replacen(' ', "T", 1))
        }
        Value::Decimal(_)
        | Value::Text(_)
        | Value::Binary(_)
        | Value::Guid(_)
        | Value::Date(_)
        | Value::Time(_) => Json::String(value.to_string()),
    }
}

/// A row as an object keyed by column names.
///
/// Columns without a name, or with a repeated one, get a number appended.
pub(super) fn row(columns: &[Column], row: &[Value]) -> Json {
    let mut object = Map::new();
    for (index, (column, cell)) in columns.iter().zip(row).enumerate() {
        let mut key = column.name.clone();
        if key.is_empty() || object.contains_key(&key) {
            key = format!("{key}{}", index + 1);
        }
        object.insert(key, value(cell));
    }
    Json::Object(object)
}

pub(super) fn message(message: &Message) -> Json {
    json!({
        "number": message.number,
        "severity": message.severity.0,
        "state": message.state,
        "line": message.line,
        "text": message.text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_instance::ColumnType;

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
        assert_eq!(value(&lsn), json!("39000000099200001"));
    }
}
