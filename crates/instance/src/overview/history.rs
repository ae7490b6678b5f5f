//! The backups of the history with the state of their media, as a result set and as JSON.

use serde_json::{Map, Value as Json, json};
use windlass_base::Moment;
use windlass_catalog::PastBackup;

use super::{kind, seconds};
use crate::presence::{Looker, Presence};
use crate::{Column, ColumnType, ResultSet, Value};

/// The state of a backup's media.
pub(super) fn media(backup: &PastBackup, looker: &mut Looker, now: Moment) -> String {
    if backup.is_overwritten {
        return "overwritten".to_owned();
    }
    match looker.look(backup) {
        Presence::There => "there".to_owned(),
        Presence::Unknown(reason) => format!("not seen: {reason}"),
        Presence::Damaged { reason, .. } => format!("damaged: {reason}"),
        Presence::Gone(reason) => {
            let since = backup.missing_since.unwrap_or(now);
            format!("missing, noticed on {since}: {reason}")
        }
    }
}

/// The backups with what is known of their media, a row each.
pub fn backups(past: &[PastBackup], looker: &mut Looker, now: Moment) -> ResultSet {
    let text = |name: &str| Column::new(name, ColumnType::NVarChar(260));
    let number = |name: &str| Column::new(name, ColumnType::Float);
    let rows = past.iter().map(|backup| {
        let elapsed = match (backup.started, backup.finished) {
            (Some(started), Some(finished)) => seconds(started, finished) as f64,
            _ => 0.0,
        };
        let elapsed = backup.seconds.unwrap_or(elapsed);
        let mb =
            |bytes: u64| Value::Float((bytes as f64 / f64::from(1 << 20) * 100.0).round() / 100.0);
        let ratio = backup.raw_bytes as f64 / backup.stored_bytes.max(1) as f64;
        vec![
            Value::optional_moment(backup.finished),
            Value::text(&backup.database),
            Value::text(kind(&backup.kind)),
            mb(backup.raw_bytes),
            mb(backup.stored_bytes),
            Value::Float((ratio * 100.0).round() / 100.0),
            Value::Float(elapsed),
            Value::text(if backup.compression.is_empty() {
                "NONE"
            } else {
                backup.compression.as_str()
            }),
            Value::Integer(backup.position.into()),
            Value::Text(backup.devices.join(", ")),
            Value::Text(media(backup, looker, now)),
        ]
    });
    ResultSet {
        columns: vec![
            Column::new("finished", ColumnType::DateTime),
            text("database"),
            text("type"),
            number("size_mb"),
            number("stored_mb"),
            number("ratio"),
            number("seconds"),
            text("compression"),
            Column::new("position", ColumnType::Int),
            text("devices"),
            Column::new("media", ColumnType::NVarChar(4000)),
        ],
        rows: rows.collect(),
    }
}

/// The same as a JSON array of objects.
pub fn to_json(rows: &ResultSet) -> Json {
    let object = |row: &Vec<Value>| {
        let cells = rows.columns.iter().zip(row);
        let cells = cells.map(|(column, value)| {
            let value = match value {
                Value::Null => Json::Null,
                Value::Integer(number) => json!(number),
                Value::Float(number) => json!(number),
                other => json!(other.to_string()),
            };
            (column.name.clone(), value)
        });
        Json::Object(cells.collect::<Map<_, _>>())
    };
    Json::Array(rows.rows.iter().map(object).collect())
}
