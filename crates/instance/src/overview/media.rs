//! The media of the history, with what they hold and until when it is kept.

use std::collections::BTreeMap;

use windlass_base::Moment;
use windlass_catalog::PastBackup;
use windlass_report::{Cell, Column, Row, Table};

use super::history::media;
use crate::presence::Looker;

/// Maximum number of media in the table; the newest are listed.
const MEDIA_MAX: usize = 100;

/// A row for each medium that holds backups, the newest first.
pub fn table(past: &[PastBackup], looker: &mut Looker, now: Moment) -> Table {
    let mut all: BTreeMap<&[String], Vec<&PastBackup>> = BTreeMap::new();
    let held = past
        .iter()
        .filter(|backup| !backup.is_overwritten && !backup.is_forgotten);
    for backup in held {
        all.entry(&backup.devices).or_default().push(backup);
    }
    let mut all: Vec<_> = all.into_iter().collect();
    let newest = |sets: &[&PastBackup]| sets.iter().filter_map(|set| set.finished).max();
    all.sort_by_key(|(_, sets)| std::cmp::Reverse(newest(sets)));
    let count = all.len();
    let rows = all.into_iter().take(MEDIA_MAX).map(|(devices, sets)| {
        let stored: u64 = sets.iter().map(|set| set.stored_bytes).sum();
        let mut databases: Vec<&str> = sets.iter().map(|set| set.database.as_str()).collect();
        databases.sort_unstable();
        databases.dedup();
        // What is on a medium is kept as long as the set that expires last.
        let expires = sets.iter().filter_map(|set| set.expires).max();
        let state = sets.last().map(|last| media(last, looker, now));
        let state = state.unwrap_or_default();
        let at = |moment: Option<Moment>| {
            moment.map_or(Cell::Missing, |moment| moment.to_string().into())
        };
        let is_there = state == "there";
        Row::new(vec![
            devices.join(", ").into(),
            databases.join(", ").into(),
            (sets.len() as f64).into(),
            (stored as f64 / f64::from(1 << 20)).into(),
            at(newest(&sets)),
            at(expires),
            state.into(),
        ])
        .marked(!is_there)
    });
    Table {
        key: "media",
        caption: match count {
            0..=MEDIA_MAX => "Media of the history".to_owned(),
            _ => format!("The {MEDIA_MAX} newest of {count} media of the history"),
        },
        columns: vec![
            Column::text("devices", "Files"),
            Column::text("databases", "Databases"),
            Column::number("sets", "Sets", "", 0),
            Column::number("stored_mb", "Stored", "MB", 1),
            Column::moment("newest", "Newest set"),
            Column::moment("expires", "Kept until"),
            Column::text("state", "State"),
        ],
        rows: rows.collect(),
    }
}
