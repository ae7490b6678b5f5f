//! The databases of the page engine on the page: their pool, logs and checkpoints.

use serde_json::Value as Json;
use windlass_base::PAGE_BYTES;
use windlass_report::{Cell, Column, ColumnKind, Row, Section, Table};

/// Columns with a number: name, heading, unit, digits, counter, and what a unit is.
const NUMBERS: [(&str, &str, &str, usize, &str, f64); 10] = [
    (
        "dirty_mb",
        "Changed in memory",
        "MB",
        1,
        "dirty_page_count",
        MB / PAGE,
    ),
    ("log_used_mb", "Log used", "MB", 1, "log_used_bytes", MB),
    ("log_mb", "Log", "MB", 1, "log_size_bytes", MB),
    ("commits", "Commits", "", 0, "commit_count", 1.0),
    ("checkpoints", "Checkpoints", "", 0, "checkpoint_count", 1.0),
    (
        "checkpoint_ms",
        "Last checkpoint",
        "ms",
        1,
        "last_checkpoint_ms",
        1.0,
    ),
    (
        "target_s",
        "Recovery target",
        "s",
        0,
        "target_recovery_time_in_seconds",
        1.0,
    ),
    (
        "recovery_ms",
        "Recovery would take",
        "ms",
        1,
        "estimated_recovery_ms",
        1.0,
    ),
    ("read_mb", "Read", "MB", 1, "pages_read", MB / PAGE),
    ("written_mb", "Written", "MB", 1, "pages_written", MB / PAGE),
];

const MB: f64 = (1 << 20) as f64;
const PAGE: f64 = PAGE_BYTES as f64;

/// The open databases; `None` if there is none.
pub(super) fn section(engines: &Json) -> Option<Section> {
    let databases = engines["databases"].as_array()?;
    if databases.is_empty() {
        return None;
    }
    let row = |database: &Json| {
        let name = database["database_name"].as_str().unwrap_or_default();
        let numbers = NUMBERS.iter().map(|(.., counter, unit)| {
            let number = database[*counter].as_f64();
            number.map_or(Cell::Missing, |number| Cell::Number(number / unit))
        });
        Row::new(std::iter::once(name.into()).chain(numbers).collect())
    };
    let number =
        |(key, heading, unit, decimals, ..): &(&'static str, &str, &'static str, usize, _, _)| {
            Column {
                key,
                heading: (*heading).to_owned(),
                kind: ColumnKind::Number {
                    unit,
                    decimals: *decimals,
                },
            }
        };
    let first = Column::text("database", "Database");
    let columns = std::iter::once(first).chain(NUMBERS.iter().map(number));
    let pool = engines["pool_pages"].as_f64();
    let pool = pool.map(|pages| format!("They share a pool of {:.0} MB.", pages * PAGE / MB));
    Some(Section {
        heading: "Page engine".to_owned(),
        text: pool.into_iter().collect(),
        tables: vec![Table {
            key: "engines",
            caption: "Open databases, their logs and checkpoints since they were opened".to_owned(),
            columns: columns.collect(),
            rows: databases.iter().map(row).collect(),
        }],
        ..Section::default()
    })
}
