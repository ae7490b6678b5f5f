//! Events of a session as JSON lines, and back.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use windlass_base::message::Severity;
use windlass_base::{Guid, Message};
use windlass_instance::{Column, ColumnType, Completed, Decimal, Event, Progress, Sink, Value};

use crate::completed;

/// The line for an event.
pub(super) fn line(event: &Event<'_>) -> Json {
    match event {
        Event::Message(message) => json!({ "message": of_message(message) }),
        Event::Columns(columns) => {
            let columns = columns
                .iter()
                .map(|column| json!([column.name, of_type(column.column_type)]));
            json!({ "columns": columns.collect::<Vec<_>>() })
        }
        Event::Row(row) => json!({ "row": row.iter().map(of_value).collect::<Vec<_>>() }),
        Event::RowsEnd(count) => json!({ "rows_end": count }),
        Event::RowsAffected(count) => json!({ "rows_affected": count }),
        Event::CountsShown(are_shown) => json!({ "counts_shown": are_shown }),
        Event::Progress(progress) => json!({ "progress": {
            "operation": progress.operation,
            "database": &*progress.database,
            "done_bytes": progress.done_bytes,
            "total_bytes": progress.total_bytes,
            "stored_bytes": progress.stored_bytes,
            "elapsed_us": u64::try_from(progress.elapsed.as_micros()).unwrap_or(u64::MAX),
        }}),
        Event::Planned(plan) => json!({ "plan": plan.to_string() }),
        Event::Completed(completed) => {
            let line = match completed {
                Completed::Rehearsal(rehearsal) => rehearsal.lines().join("\n"),
                completed => completed::line(*completed),
            };
            let object = completed::object(*completed);
            json!({ "report": { "line": line, "json": object.to_string() } })
        }
        Event::Reported { line, json } => json!({ "report": { "line": line, "json": json } }),
        Event::PlannedElsewhere(plan) => json!({ "plan": plan }),
    }
}

/// Sends the event of a line; `None` if the line is none.
pub(super) fn replay(line: &Json, sink: &mut dyn Sink) -> Option<()> {
    let (name, content) = line.as_object()?.iter().next()?;
    match name.as_str() {
        "message" => sink.event(Event::Message(to_message(content)?)),
        "columns" => {
            let columns: Option<Vec<Column>> = content
                .as_array()?
                .iter()
                .map(|column| Some(Column::new(column[0].as_str()?, to_type(&column[1])?)))
                .collect();
            sink.event(Event::Columns(&columns?));
        }
        "row" => {
            let row: Option<Vec<Value>> = content.as_array()?.iter().map(to_value).collect();
            sink.event(Event::Row(&row?));
        }
        "rows_end" => sink.event(Event::RowsEnd(content.as_u64()?)),
        "rows_affected" => sink.event(Event::RowsAffected(content.as_u64()?)),
        "counts_shown" => sink.event(Event::CountsShown(content.as_bool()?)),
        "progress" => {
            let number = |name: &str| content[name].as_u64();
            let progress = Progress {
                operation: known_operation(content["operation"].as_str()?),
                database: Arc::from(content["database"].as_str()?),
                done_bytes: number("done_bytes")?,
                total_bytes: number("total_bytes")?,
                stored_bytes: number("stored_bytes")?,
                elapsed: Duration::from_micros(number("elapsed_us")?),
            };
            sink.event(Event::Progress(&progress));
        }
        "plan" => sink.event(Event::PlannedElsewhere(content.as_str()?)),
        "report" => sink.event(Event::Reported {
            line: content["line"].as_str()?,
            json: content["json"].as_str()?,
        }),
        _ => return None,
    }
    Some(())
}

/// Operations are named by constants.
fn known_operation(name: &str) -> &'static str {
    const KNOWN: [&str; 6] = [
        "BACKUP DATABASE",
        "RESTORE DATABASE",
        "VERIFY DATABASE",
        "RESTORE VERIFYONLY",
        "BACKUP LOG",
        "RESTORE LOG",
    ];
    KNOWN
        .into_iter()
        .find(|known| *known == name)
        .unwrap_or("OPERATION")
}

fn of_message(message: &Message) -> Json {
    json!({
        "number": message.number,
        "severity": message.severity.0,
        "state": message.state,
        "line": message.line,
        "procedure": message.procedure.as_deref(),
        "text": message.text,
    })
}

fn to_message(json: &Json) -> Option<Message> {
    let number = |name: &str| json[name].as_u64();
    Some(Message {
        number: u32::try_from(number("number")?).ok()?,
        severity: Severity(u8::try_from(number("severity")?).ok()?),
        state: u8::try_from(number("state")?).ok()?,
        line: u32::try_from(number("line")?).ok()?,
        procedure: json["procedure"].as_str().map(Box::from),
        text: json["text"].as_str()?.to_owned(),
    })
}

fn of_type(column_type: ColumnType) -> Json {
    match column_type {
        ColumnType::Bit => json!(["bit"]),
        ColumnType::TinyInt => json!(["tinyint"]),
        ColumnType::SmallInt => json!(["smallint"]),
        ColumnType::Int => json!(["int"]),
        ColumnType::BigInt => json!(["bigint"]),
        ColumnType::Numeric(precision) => json!(["numeric", precision]),
        ColumnType::Decimal(precision, scale) => json!(["decimal", precision, scale]),
        ColumnType::Money => json!(["money"]),
        ColumnType::Float => json!(["float"]),
        ColumnType::NVarChar(length) => json!(["nvarchar", length]),
        ColumnType::VarChar(length) => json!(["varchar", length]),
        ColumnType::NChar(length) => json!(["nchar", length]),
        ColumnType::VarBinary(length) => json!(["varbinary", length]),
        ColumnType::UniqueIdentifier => json!(["uniqueidentifier"]),
        ColumnType::DateTime => json!(["datetime"]),
        ColumnType::DateTime2 => json!(["datetime2"]),
        ColumnType::Date => json!(["date"]),
        ColumnType::Time => json!(["time"]),
        ColumnType::Any => json!(["any"]),
    }
}

fn to_type(json: &Json) -> Option<ColumnType> {
    let number = |at: usize| {
        json[at]
            .as_u64()
            .and_then(|found| u16::try_from(found).ok())
    };
    let digits = |at: usize| number(at).and_then(|found| u8::try_from(found).ok());
    Some(match json[0].as_str()? {
        "bit" => ColumnType::Bit,
        "tinyint" => ColumnType::TinyInt,
        "smallint" => ColumnType::SmallInt,
        "int" => ColumnType::Int,
        "bigint" => ColumnType::BigInt,
        "numeric" => ColumnType::Numeric(digits(1)?),
        "decimal" => ColumnType::Decimal(digits(1)?, digits(2)?),
        "money" => ColumnType::Money,
        "float" => ColumnType::Float,
        "nvarchar" => ColumnType::NVarChar(number(1)?),
        "varchar" => ColumnType::VarChar(number(1)?),
        "nchar" => ColumnType::NChar(number(1)?),
        "varbinary" => ColumnType::VarBinary(number(1)?),
        "uniqueidentifier" => ColumnType::UniqueIdentifier,
        "datetime" => ColumnType::DateTime,
        "datetime2" => ColumnType::DateTime2,
        "date" => ColumnType::Date,
        "time" => ColumnType::Time,
        "any" => ColumnType::Any,
        _ => return None,
    })
}

/// Text as itself; everything else as an object that names its type.
fn of_value(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Text(text) => json!(text),
        Value::Bit(bit) => json!(bit),
        Value::Integer(number) => json!(number),
        Value::Decimal(number) => {
            json!({ "decimal": [number.unscaled().to_string(), number.scale()] })
        }
        // All bits, which decimal digits do not always keep.
        Value::Float(number) => json!({ "float": number.to_bits() }),
        Value::Binary(bytes) => {
            let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
            json!({ "binary": digits.collect::<String>() })
        }
        Value::Guid(guid) => json!({ "guid": guid.to_string() }),
        Value::DateTime(at) => json!({ "datetime": at.to_string() }),
        Value::DateTime2(at) => json!({ "datetime2": at.to_string() }),
        Value::Date(date) => json!({ "date": date.to_string() }),
        Value::Time(time) => json!({ "time": time.to_string() }),
    }
}

fn to_value(json: &Json) -> Option<Value> {
    match json {
        Json::Null => return Some(Value::Null),
        Json::String(text) => return Some(Value::Text(text.clone())),
        Json::Bool(bit) => return Some(Value::Bit(*bit)),
        Json::Number(number) => return number.as_i64().map(Value::Integer),
        _ => {}
    }
    let (name, content) = json.as_object()?.iter().next()?;
    let text = || content.as_str();
    Some(match name.as_str() {
        "decimal" => {
            let scale = u8::try_from(content[1].as_u64()?).ok()?;
            Value::Decimal(Decimal::scaled(content[0].as_str()?.parse().ok()?, scale)?)
        }
        "float" => Value::Float(f64::from_bits(content.as_u64()?)),
        "binary" => Value::Binary(bytes(text()?)?),
        "guid" => Value::Guid(text()?.parse::<Guid>().ok()?),
        "datetime" => Value::DateTime(text()?.parse().ok()?),
        "datetime2" => Value::DateTime2(text()?.parse().ok()?),
        "date" => Value::Date(text()?.parse().ok()?),
        "time" => Value::Time(text()?.parse().ok()?),
        _ => return None,
    })
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use windlass_instance::Collected;

    use super::*;

    #[test]
    fn results_survive_the_way() {
        let at = jiff::civil::date(2026, 11, 23).at(1, 2, 3, 456_789_100);
        let row = vec![
            Value::Null,
            Value::Bit(true),
            Value::Integer(i64::MIN),
            Value::Decimal(Decimal::scaled(-12_345, 2).unwrap()),
            Value::Float(0.1 + 0.2),
            Value::Float(f64::NEG_INFINITY),
            Value::text("a\n'ä\u{0}"),
            Value::Binary(vec![0, 255]),
            Value::Guid(Guid::random()),
            Value::DateTime(at),
            Value::DateTime2(at),
            Value::Date(at.date()),
            Value::Time(at.time()),
        ];
        let columns = [
            Column::new("a", ColumnType::Decimal(38, 3)),
            Column::new("", ColumnType::NVarChar(0)),
        ];
        let message = Message::print("x").at_line(3);
        let events = [
            Event::Message(message.clone()),
            Event::Columns(&columns),
            Event::Row(&row),
            Event::RowsEnd(1),
            Event::RowsAffected(7),
        ];
        let mut heard = Collected::default();
        for event in &events {
            let text = line(event).to_string();
            let json: Json = serde_json::from_str(&text).unwrap();
            replay(&json, &mut heard).unwrap();
        }
        assert_eq!(heard.messages, [message]);
        assert_eq!(heard.results[0].columns, columns);
        assert_eq!(heard.results[0].rows, [row]);
        assert_eq!(heard.rows_affected, [7]);
    }

    #[test]
    fn what_is_no_event_is_none() {
        let mut heard = Collected::default();
        for line in [
            "{}",
            "[]",
            "1",
            r#"{"row": 1}"#,
            r#"{"row": [{"guid": 1}]}"#,
            r#"{"what": 1}"#,
        ] {
            let json: Json = serde_json::from_str(line).unwrap();
            assert!(replay(&json, &mut heard).is_none(), "{line}");
        }
    }
}
