//! `windlass fleet`: all servers that share a folder of object storage, from listings alone.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use serde_json::json;
use windlass_base::Moment;
use windlass_instance::fleet::{Fleet, Kept};
use windlass_instance::overview::tables::object_of;
use windlass_report::{Cell, Column, Fact, Report, Row, Section, Table};

use super::history::parse_rpo;
use super::report::write;
use crate::args::Common;
use crate::command::{Outcome, ended, existing_session, misused};
use crate::output::{Console, Layout, error_line, result_json, result_text};

const NOTES: &str = "\
Backups to a folder of a store (windlass backup app.db --to s3://host/bucket/prefix/) get keys that say of which server and
database they are, of what kind, when they began and in how many stripes. This command lists them and opens none: a backup
counts if all of its stripes are there, and if a full backup was made before it. Whether it can be restored, verify and
drill prove.

The exit code is 1 if a database has no backup that is younger than --rpo.";

/// `windlass fleet`
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct FleetArguments {
    /// Folder of a store: s3://host:port/bucket/prefix/
    folder: String,
    /// Recovery point objective: minutes, or 24h, or 7d
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_rpo)]
    rpo: i64,
    /// HTML page to write
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(arguments: &FleetArguments, common: &Common) -> Outcome {
    if !windlass_instance::is_url(&arguments.folder) {
        return misused(&format!(
            "'{}' is no URL; for folders of files, use windlass check --media",
            arguments.folder
        ));
    }
    let mut console = Console::new(common.json, Layout::Table);
    let Some(session) = existing_session(common, &mut console) else {
        return Outcome::Failed;
    };
    crate::cancel::ends_reads(session.cancel_flag());
    let folder = match session.folders(std::slice::from_ref(&arguments.folder)) {
        Ok(mut folders) => folders.remove(0),
        Err(failure) => return ended(Err::<(), _>(failure), &mut console),
    };
    let fleet = match Fleet::of(&folder) {
        Ok(fleet) => fleet,
        Err(error) => {
            error_line(&format!("'{folder}' cannot be listed: {error}"));
            return Outcome::Failed;
        }
    };
    let now = Timestamp::now().as_second();
    let is_late = |kept: &Kept| {
        let newest = kept.newest();
        newest.is_none_or(|began| now - began > arguments.rpo.saturating_mul(60))
    };
    let table = table(&fleet, now, &is_late);
    let late = fleet
        .databases
        .values()
        .filter(|kept| is_late(kept))
        .count();
    if common.json {
        let rows = table.rows.iter().map(|row| object_of(&table, row));
        let object = json!({
            "folder": folder.to_string(),
            "rpo_minutes": arguments.rpo,
            "late": late,
            "other_objects": fleet.others,
            "databases": rows.collect::<Vec<_>>(),
        });
        result_json(&object.to_string());
    } else {
        result_text(&table.to_text());
    }
    let facts = vec![
        Fact::new("folder", folder.to_string()),
        Fact::new("objective (minutes)", arguments.rpo.to_string()),
        Fact::new("databases late", late.to_string()),
        Fact::new("made", Moment::now().0.to_string()),
    ];
    let written = match &arguments.to {
        Some(path) => write(path, &page(table, facts).to_html()),
        None => Outcome::Succeeded,
    };
    match written {
        Outcome::Succeeded if late > 0 || fleet.databases.is_empty() => Outcome::Failed,
        written => written,
    }
}

/// A row for each database.
fn table(fleet: &Fleet, now: i64, is_late: &dyn Fn(&Kept) -> bool) -> Table {
    let at = |began: Option<i64>| {
        let began = began.and_then(|began| Timestamp::from_second(began).ok());
        began.map_or(Cell::Missing, |began| {
            began.strftime("%Y-%m-%d %H:%M:%S").to_string().into()
        })
    };
    let row = |((server, database), kept): (&(String, String), &Kept)| {
        let age = kept.newest().map(|began| (now - began) as f64 / 3600.0);
        let state = match (is_late(kept), kept.newest()) {
            (false, _) => "in time",
            (true, Some(_)) => "LATE",
            (true, None) => "NO BACKUP",
        };
        Row::new(vec![
            server.as_str().into(),
            database.as_str().into(),
            state.into(),
            age.map_or(Cell::Missing, Cell::from),
            at(kept.newest()),
            at(kept.full),
            (kept.backups as f64).into(),
            (kept.incomplete as f64).into(),
            (kept.bytes as f64 / f64::from(1 << 20)).into(),
        ])
        .marked(is_late(kept))
    };
    Table {
        key: "databases",
        caption: format!("{} databases", fleet.databases.len()),
        columns: vec![
            Column::text("server", "Server"),
            Column::text("database", "Database"),
            Column::text("state", "State"),
            Column::number("age_hours", "Age", "h", 1),
            Column::moment("newest_utc", "Newest (UTC)"),
            Column::moment("full_utc", "Full (UTC)"),
            Column::number("backups", "Backups", "", 0),
            Column::number("incomplete", "Incomplete", "", 0),
            Column::number("stored_mb", "Stored", "MB", 1),
        ],
        rows: fleet.databases.iter().map(row).collect(),
    }
}

fn page(table: Table, facts: Vec<Fact>) -> Report {
    Report {
        title: "Fleet".to_owned(),
        subtitle: table.caption.clone(),
        figures: Vec::new(),
        facts,
        sections: vec![Section {
            heading: "Databases".to_owned(),
            tables: vec![table],
            ..Section::default()
        }],
        notes: vec![
            "Made from listings: a backup counts if all of its stripes are there and a full backup was made before it. Whether \
             it can be restored, windlass verify and windlass drill prove."
                .to_owned(),
        ],
    }
}
