//! The report as tables, and as JSON.

use crate::damage;
use serde_json::{Map, Value as Json, json};
use windlass_base::Moment;
use windlass_base::json_time;
use windlass_catalog::PastBackup;
use windlass_report::{Cell, Column, ColumnKind, Row, Table};

use super::kind;
use super::subject::{Subject, Subjects, Verdict, duration, files, rate, ratio};

/// Maximum number of backups in a table; the newest are listed.
const BACKUPS_MAX: usize = 200;

fn at(moment: Option<Moment>) -> Cell {
    moment.map_or(Cell::Missing, |moment| moment.to_string().into())
}

fn hours(seconds: i64) -> Cell {
    Cell::Number((seconds as f64 / 36.0).round() / 100.0)
}

/// A row for each database.
pub fn databases(subjects: &Subjects<'_>) -> Table {
    let row = |subject: &Subject<'_>| {
        let judged = subject.exposure.as_ref();
        let last = |kind: &str| at(judged.and_then(|judged| judged.last(kind)?.finished));
        let verdict = subjects.verdict(subject);
        Row::new(vec![
            subject.name.into(),
            verdict.text().into(),
            (subjects.gaps(subject).len() as f64).into(),
            judged.map_or(Cell::Missing, |judged| hours(judged.worst)),
            last("D"),
            last("I"),
            last("L"),
            judged.map_or(Cell::Missing, |judged| files(judged).into()),
            judged
                .map_or(0.0, |judged| judged.unusable.len() as f64)
                .into(),
        ])
        .marked(matches!(
            verdict,
            Verdict::Never
                | Verdict::Lost
                | Verdict::Ahead
                | Verdict::Damaged
                | Verdict::Exposed
                | Verdict::Unknown
        ))
    };
    Table {
        key: "databases",
        caption: format!(
            "Databases against a recovery point objective of {}",
            objective(subjects.rpo_minutes)
        ),
        columns: vec![
            Column::text("database", "Database"),
            Column::text("verdict", "Objective"),
            Column::number("gaps", "Gaps", "", 0),
            Column::number("worst_hours", "Worst loss", "h", 2),
            Column::moment("last_full", "Last full"),
            Column::moment("last_differential", "Last differential"),
            Column::moment("last_log", "Last log"),
            Column::text("files", "Newest backup's files"),
            Column::number("unusable", "Not counted", "", 0),
        ],
        rows: subjects.all.iter().map(row).collect(),
    }
}

/// A row for each period in which too much would have been lost.
pub fn gaps(subjects: &Subjects<'_>) -> Table {
    let rows = subjects.all.iter().flat_map(|subject| {
        subjects.gaps(subject).into_iter().map(|gap| {
            Row::new(vec![
                subject.name.into(),
                at(Some(gap.from)),
                at(Some(gap.to)),
                if gap.is_open { "goes on" } else { "over" }.into(),
                at(Some(gap.newest)),
                hours(gap.loss),
            ])
            .marked(gap.is_open)
        })
    });
    let mut rows: Vec<Row> = rows.collect();
    for subject in subjects.never() {
        let name = subject.name.into();
        let missing = Cell::Missing;
        let state = subject.ill().map(damage::summary);
        let state = state.unwrap_or_else(|| subjects.verdict(subject).text().to_owned());
        rows.push(
            Row::new(vec![
                name,
                missing.clone(),
                at(Some(subjects.now)),
                state.into(),
                missing.clone(),
                missing,
            ])
            .marked(true),
        );
    }
    Table {
        key: "gaps",
        caption: "Periods without a recent enough restorable backup".to_owned(),
        columns: vec![
            Column::text("database", "Database"),
            Column::moment("from", "From"),
            Column::moment("to", "To"),
            Column::text("state", "State"),
            Column::moment("newest", "Newest backup begun"),
            Column::number("loss_hours", "Loss at the end", "h", 2),
        ],
        rows,
    }
}

/// The backups that do not count.
pub fn unusable(subjects: &Subjects<'_>) -> Table {
    let rows = subjects.all.iter().flat_map(|subject| {
        let judged = subject.exposure.iter();
        judged
            .flat_map(|judged| &judged.unusable)
            .map(|(backup, reason)| {
                Row::new(vec![
                    subject.name.into(),
                    kind(&backup.kind).into(),
                    at(backup.finished),
                    reason.clone().into(),
                    backup.devices.join(", ").into(),
                ])
            })
    });
    Table {
        key: "unusable",
        caption: "Backups that cannot be restored, or are dated in the future".to_owned(),
        columns: vec![
            Column::text("database", "Database"),
            Column::text("type", "Type"),
            Column::moment("finished", "Finished"),
            Column::text("reason", "Reason"),
            Column::text("files", "Files"),
        ],
        rows: rows.collect(),
    }
}

/// The backups of a database, newest first.
pub fn backups(backups: &[&PastBackup]) -> Table {
    let mb = |bytes: u64| Cell::Number(bytes as f64 / f64::from(1 << 20));
    let row = |backup: &&PastBackup| {
        let mut what = kind(&backup.kind).to_owned();
        if backup.is_copy_only {
            what.push_str(", copy-only");
        }
        Row::new(vec![
            at(backup.finished),
            what.into(),
            mb(backup.raw_bytes),
            mb(backup.stored_bytes),
            ratio(backup).into(),
            duration(backup).into(),
            rate(backup).into(),
            if backup.compression.is_empty() {
                "NONE"
            } else {
                &backup.compression
            }
            .into(),
        ])
    };
    let shown = backups.iter().rev().take(BACKUPS_MAX);
    Table {
        key: "backups",
        caption: if backups.len() > BACKUPS_MAX {
            format!("The last {BACKUPS_MAX} of {} backups", backups.len())
        } else {
            "Backups".to_owned()
        },
        columns: vec![
            Column::moment("finished", "Finished"),
            Column::text("type", "Type"),
            Column::number("size_mb", "Size", "MB", 1),
            Column::number("stored_mb", "Stored", "MB", 1),
            Column::number("ratio", "Ratio", "", 2),
            Column::number("seconds", "Time", "s", 0),
            Column::number("rate", "Rate", "MB/s", 1),
            Column::text("compression", "Compression"),
        ],
        rows: shown.map(row).collect(),
    }
}

/// A duration in human-readable form.
pub fn objective(minutes: i64) -> String {
    match minutes {
        minutes if minutes % 1440 == 0 && minutes > 1440 => format!("{} days", minutes / 1440),
        minutes if minutes % 60 == 0 => format!("{} h", minutes / 60),
        minutes => format!("{minutes} min"),
    }
}

/// The tables as one object.
pub fn json(subjects: &Subjects<'_>, tables: &[&Table]) -> Json {
    let mut object = Map::new();
    object.insert(
        "now".to_owned(),
        json!(json_time(&subjects.now.to_string())),
    );
    object.insert("rpo_minutes".to_owned(), json!(subjects.rpo_minutes));
    for table in tables {
        let rows: Vec<Json> = table.rows.iter().map(|row| object_of(table, row)).collect();
        object.insert(table.key.to_owned(), Json::Array(rows));
    }
    Json::Object(object)
}

/// A row as an object, by the names of the columns.
pub fn object_of(table: &Table, row: &Row) -> Json {
    let cells = table.columns.iter().zip(&row.cells);
    let cells = cells.map(|(column, cell)| {
        let value = match cell {
            Cell::Text(text) if column.kind == ColumnKind::Moment => json!(json_time(text)),
            Cell::Text(text) => json!(text),
            Cell::Number(number) => match column.kind {
                ColumnKind::Number { decimals: 0, .. } => json!(number.round() as i64),
                _ => json!(number),
            },
            Cell::Missing => Json::Null,
        };
        (column.key.to_owned(), value)
    });
    Json::Object(cells.collect())
}
