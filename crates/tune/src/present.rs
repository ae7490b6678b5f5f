//! Results as a report, as text for a terminal, and as JSON. The tables are the same in all three.

use serde_json::{Map, Value as Json, json};
use windlass_base::size::Bytes;
use windlass_pipeline::{Stage, StageCounters, Stages, TimesIn};
use windlass_report::{
    Cell, ChartKind, Column, Fact, Report, StageBars, StageGroup, StageShares, Table, TableOf,
};

use crate::database::{CachePolicy, Database};
use crate::experiment::megabytes;
use crate::measure::{Measured, processors};
use crate::rounds::Runs;

/// The results of a measurement.
#[derive(Debug)]
pub struct Outcome {
    /// What was measured, for programs: `compression`, `devices`, `stages`, `restore`, `tune`.
    pub kind: &'static str,
    /// The results for people.
    pub report: Report,
    /// Every run, for programs.
    pub runs: Vec<Json>,
    /// Additional data for programs besides tables and runs.
    pub extra: Map<String, Json>,
}

impl Outcome {
    /// The tables as text, with the text above and below them.
    pub fn to_text(&self) -> String {
        let mut parts = Vec::new();
        for section in &self.report.sections {
            parts.extend(section.tables.iter().map(Table::to_text));
            let listings = section.listings.iter();
            parts.extend(listings.map(|listing| format!("{}\n{}", listing.caption, listing.text)));
        }
        let facts = self.report.facts.iter();
        let facts = facts.map(|fact| format!("{}: {}", fact.name, fact.value));
        parts.insert(0, facts.collect::<Vec<_>>().join("\n"));
        parts.extend(self.report.notes.iter().cloned());
        parts.join("\n\n")
    }

    /// The tables as arrays of objects, and every single run.
    pub fn to_json(&self) -> Json {
        let facts = self.report.facts.iter();
        let facts: Map<String, Json> = facts
            .map(|fact| (fact.name.clone(), json!(fact.value)))
            .collect();
        let tables = self
            .report
            .sections
            .iter()
            .flat_map(|section| &section.tables);
        let tables: Map<String, Json> = tables
            .map(|table| (table.key.to_owned(), rows(table)))
            .collect();
        let mut object = Map::new();
        object.insert("experiment".to_owned(), json!(self.kind));
        object.insert("facts".to_owned(), Json::Object(facts));
        object.extend(self.extra.clone());
        object.insert("tables".to_owned(), Json::Object(tables));
        object.insert("runs".to_owned(), json!(self.runs));
        Json::Object(object)
    }
}

fn rows(table: &Table) -> Json {
    let row = |row: &windlass_report::Row| {
        let cells = table.columns.iter().zip(&row.cells);
        let cells: Map<String, Json> = cells
            .map(|(column, cell)| {
                let value = match cell {
                    Cell::Text(text) => json!(text),
                    Cell::Number(number) => json!(number),
                    Cell::Missing => Json::Null,
                };
                (column.key.to_owned(), value)
            })
            .collect();
        Json::Object(cells)
    };
    table.rows.iter().map(row).collect()
}

/// The facts about the measurements in every report.
pub(crate) fn facts(database: &Database, cache: CachePolicy, repetition: String) -> Vec<Fact> {
    vec![
        Fact::new("database", database.name()),
        Fact::new("files", database.files_in_words()),
        Fact::new("size", Bytes(database.bytes()).to_string()),
        Fact::new("processors", processors().to_string()),
        Fact::new("repetition", repetition),
        Fact::new("page cache", cache.to_string()),
        Fact::new("version", concat!("Windlass ", env!("CARGO_PKG_VERSION"))),
    ]
}

/// The notes common to all measurements.
pub(crate) fn notes() -> Vec<String> {
    [
        "1 MB is 2^20 bytes. A run lasts from opening the database or media to the last sync.",
        "CPU is the processor time of the whole run, as a share of all processors.",
        "Windlass bypasses the page cache where the file system allows it, so the cache makes \
         little difference.",
        "Charts show medians; whiskers extend from the slowest to the fastest run.",
    ]
    .map(str::to_owned)
    .to_vec()
}

pub(crate) fn runs_json<'a>(named: impl Iterator<Item = (String, &'a Runs)>) -> Vec<Json> {
    let all = named.flat_map(|(name, runs)| {
        let runs = runs.iter().enumerate();
        runs.map(move |(round, run)| run_json(&name, round + 1, run))
            .collect::<Vec<_>>()
    });
    all.collect()
}

pub(crate) fn run_json(name: &str, round: usize, run: &Measured) -> Json {
    let stage = |counters: &StageCounters| counters.to_json(TimesIn::Seconds);
    json!({
        "variant": name,
        "round": round,
        "seconds": run.elapsed.as_secs_f64(),
        "opening_seconds": run.opening.as_secs_f64(),
        "megabytes_per_second": run.rate(),
        "cpu_seconds": run.cpu.as_secs_f64(),
        "processed_bytes": run.processed_bytes,
        "stored_bytes": run.stored_bytes,
        "limit": limit(&run.stages),
        "stages": {
            "read": stage(&run.stages.read),
            "transform": stage(&run.stages.transform),
            "write": stage(&run.stages.write),
        },
    })
}

/// The name in reports of the stage that limited a run.
pub(crate) fn limit(stages: &Stages) -> &'static str {
    match stages.limiting() {
        Some(Stage::Transform) => TRANSFORM,
        Some(other) => other.name(),
        None => "too short",
    }
}

const TRANSFORM: &str = "compress";

/// A chart of how the stages of runs spent their time.
pub(crate) fn stage_chart<'a>(named: impl Iterator<Item = (String, &'a Runs)>) -> ChartKind {
    let group = |(label, runs): (String, &Runs)| {
        let run = runs.typical()?;
        let limit = limit(&run.stages);
        let stage = |name: &str, counters: &StageCounters| {
            let whole = run.elapsed.as_secs_f64() * f64::from(counters.threads.max(1));
            let share = |time: std::time::Duration| {
                if whole > 0.0 {
                    (time.as_secs_f64() / whole).clamp(0.0, 1.0)
                } else {
                    0.0
                }
            };
            StageShares {
                name: name.to_owned(),
                busy: share(counters.busy),
                wait_input: share(counters.wait_input),
                wait_output: share(counters.wait_output),
                is_limit: name == limit,
            }
        };
        let stages = [
            ("read", &run.stages.read),
            (TRANSFORM, &run.stages.transform),
            ("write", &run.stages.write),
        ];
        let present = stages
            .into_iter()
            .filter(|(_, counters)| counters.threads > 0);
        Some(StageGroup {
            label,
            stages: present
                .map(|(name, counters)| stage(name, counters))
                .collect(),
        })
    };
    ChartKind::Stages(StageBars {
        groups: named.filter_map(group).collect(),
    })
}

/// The columns that every table of runs has.
pub(crate) fn run_columns<'a, S>(
    table: TableOf<'a, S>,
    runs: impl Fn(&S) -> &Runs + Copy + 'a,
) -> TableOf<'a, S> {
    table
        .column(Column::number("seconds", "Time", "s", 2), move |subject| {
            runs(subject).seconds().median
        })
        .column(
            Column::number("spread_percent", "Spread", "%", 0),
            move |subject| runs(subject).spread_percent(),
        )
        .column(
            Column::number("megabytes_per_second", "Throughput", "MB/s", 0),
            move |subject| runs(subject).rate().median,
        )
        .column(
            Column::number("cpu_percent", "CPU", "%", 0),
            move |subject| runs(subject).cpu_percent(),
        )
}

/// Bytes on media.
pub(crate) fn size_column<'a, S>(
    table: TableOf<'a, S>,
    runs: impl Fn(&S) -> &Runs + 'a,
) -> TableOf<'a, S> {
    table.column(
        Column::number("megabytes", "Size", "MB", 1),
        move |subject| megabytes(runs(subject).stored_bytes()),
    )
}
