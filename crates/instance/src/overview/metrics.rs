//! Metrics for Prometheus.
//!
//! The numbers come from the instance's history, so that they are independent of the program that
//! made the backups, and from examining the media.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::tz::TimeZone;
use windlass_base::{Moment, visible};
use windlass_catalog::{Catalog, DatabaseRecord, Failures, PastBackup};

use super::{kind, seconds};
use crate::chain::Times;
use crate::damage::Damages;
use crate::presence::Looker;
use crate::retention::Now;
use crate::standing::{Restorable, Standing, standings, tell_apart};
use crate::verified::Verifications;

/// The metrics of an instance, as text.
///
/// # Errors
/// Those of the catalog.
pub fn text(catalog: &Catalog, machine: &str) -> Result<String, windlass_catalog::Error> {
    let mut past = catalog.past_backups(None)?;
    let registered = catalog.databases()?;
    tell_apart(&mut past, &registered, machine);
    let now = Now::here();
    let mut text = String::new();
    backups(&past, now, &mut text);
    let mut looker = Looker::of(catalog)?;
    let standings = standings(&past, Some(&mut looker), now);
    databases(&standings, &registered, &mut text);
    damages(&standings, &registered, looker.damages(), &mut text);
    failures(&catalog.failures()?, &registered, &mut text);
    super::log_metrics::followers(catalog, &registered, &mut text);
    verifications(&past, looker.verifications(), &mut text);
    let queued = catalog.queued_copies()?;
    heading(&mut text, "windlass_copies_queued", "Copies not made yet.");
    // Writing to a String cannot fail.
    let _ = writeln!(text, "windlass_copies_queued {}", queued.len());
    let failing = queued.iter().filter(|copy| copy.attempts > 0).count();
    heading(
        &mut text,
        "windlass_copies_failing",
        "Copies that have failed at least once.",
    );
    let _ = writeln!(text, "windlass_copies_failing {failing}");
    Ok(text)
}

/// The last backup of each database and kind that is not dated in the future, in whatever state.
fn backups(past: &[PastBackup], now: Now, text: &mut String) {
    let mut last: BTreeMap<(&str, &str), &PastBackup> = BTreeMap::new();
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for backup in past {
        let key = (backup.database.as_str(), kind(&backup.kind));
        let times = Times::of(backup.started, backup.finished, backup.time_zone);
        if !times.is_some_and(|times| times.is_future(now.utc)) {
            last.insert(key, backup);
        }
        *counts.entry(key).or_default() += u64::from(!backup.is_forgotten);
    }
    let mut family = |name: &str, help: &str, value: &dyn Fn(&PastBackup) -> Option<f64>| {
        heading(text, name, help);
        for ((database, kind), backup) in &last {
            if let Some(value) = value(backup) {
                sample(text, name, database, Some(kind), value);
            }
        }
    };
    let utc = |backup: &PastBackup, at: Option<Moment>| {
        Some(Times::of(at, at, backup.time_zone)?.finished as f64)
    };
    family(
        "windlass_backup_last_started_timestamp_seconds",
        "Start of the last backup.",
        &|backup| utc(backup, backup.started),
    );
    family(
        "windlass_backup_last_finished_timestamp_seconds",
        "End of the last backup.",
        &|backup| utc(backup, backup.finished),
    );
    family(
        "windlass_backup_last_duration_seconds",
        "Duration of the last backup.",
        &|backup| {
            let whole = || Some(seconds(backup.started?, backup.finished?) as f64);
            backup.seconds.or_else(whole)
        },
    );
    family(
        "windlass_backup_last_size_bytes",
        "Size of the last backup before compression.",
        &|backup| Some(backup.raw_bytes as f64),
    );
    family(
        "windlass_backup_last_stored_bytes",
        "Size of the last backup on media.",
        &|backup| Some(backup.stored_bytes as f64),
    );
    family(
        "windlass_backup_last_damaged",
        "Whether the last backup was made of a damaged database.",
        &|backup| Some(f64::from(u8::from(backup.is_damaged))),
    );
    heading(text, "windlass_backups", "Backups in the history.");
    for ((database, kind), count) in &counts {
        sample(
            text,
            "windlass_backups",
            database,
            Some(kind),
            *count as f64,
        );
    }
}

/// The restorability of each database, including those never backed up.
fn databases(standings: &[Standing<'_>], registered: &[DatabaseRecord], text: &mut String) {
    let mut all: BTreeMap<&str, Option<&Standing<'_>>> = standings
        .iter()
        .map(|one| (one.database, Some(one)))
        .collect();
    for record in registered {
        let name = record.name.as_str();
        if !all.keys().any(|known| known.eq_ignore_ascii_case(name)) {
            all.insert(name, None);
        }
    }
    let mut family = |name: &str, help: &str, value: &dyn Fn(&Standing<'_>) -> f64| {
        heading(text, name, help);
        for (database, standing) in &all {
            sample(text, name, database, None, standing.map_or(0.0, value));
        }
    };
    family(
        "windlass_database_restorable",
        "Whether the database has a restorable backup whose media exist and can be examined.",
        &|standing| f64::from(u8::from(standing.restorable() == Restorable::Yes)),
    );
    family(
        "windlass_database_restorable_timestamp_seconds",
        "Start of the newest restorable backup that is not dated in the future; 0 if there is none, or if its media cannot be examined.",
        &|standing| {
            let is_seen = standing.restorable() == Restorable::Yes;
            let newest = standing.newest().filter(|_| is_seen);
            let began = newest
                .and_then(|newest| Times::of(newest.started, newest.started, newest.time_zone));
            began.map_or(0.0, |began| began.started as f64)
        },
    );
    family(
        "windlass_database_backups_lost",
        "Newer backups that cannot be restored.",
        &|standing| standing.lost.len() as f64,
    );
    family(
        "windlass_database_backups_dated_in_future",
        "Backups that are dated in the future and therefore do not count.",
        &|standing| standing.ahead.len() as f64,
    );
    family(
        "windlass_database_media_unseen",
        "Backups needed for it whose media could not be examined.",
        &|standing| standing.unseen.len() as f64,
    );
}

/// Whether each database is known to be damaged.
fn damages(
    standings: &[Standing<'_>],
    registered: &[DatabaseRecord],
    known: &Damages,
    text: &mut String,
) {
    let mut all: BTreeMap<&str, bool> = standings
        .iter()
        .map(|one| (one.database, one.ill.is_some()))
        .collect();
    for record in registered {
        *all.entry(record.name.as_str()).or_default() |= known.of(record).is_some();
    }
    let name = "windlass_database_damaged";
    let help = "Whether the database itself is known to be damaged.";
    heading(text, name, help);
    for (database, is_damaged) in all {
        sample(text, name, database, None, f64::from(u8::from(is_damaged)));
    }
}

/// The failed backups of each database.
fn failures(failures: &[Failures], registered: &[DatabaseRecord], text: &mut String) {
    let mut all: BTreeMap<&str, Option<&Failures>> = registered
        .iter()
        .map(|record| (record.name.as_str(), None))
        .collect();
    for failure in failures {
        let name = failure.last.database.as_str();
        all.retain(|known, _| !known.eq_ignore_ascii_case(name));
        all.insert(name, Some(failure));
    }
    let mut family = |name: &str, help: &str, value: &dyn Fn(&Failures) -> f64| {
        heading(text, name, help);
        for (database, failures) in &all {
            sample(text, name, database, None, failures.map_or(0.0, value));
        }
    };
    family(
        "windlass_backup_failures",
        "Failed backups in the history.",
        &|failures| failures.count as f64,
    );
    family(
        "windlass_backup_failing",
        "Whether the last run failed.",
        &|failures| f64::from(u8::from(failures.is_latest)),
    );
    family(
        "windlass_backup_last_failure_timestamp_seconds",
        "When a backup last failed; 0 for never.",
        &|failures| unix_time(failures.last.failed).unwrap_or(0.0),
    );
    family(
        "windlass_backup_last_failure_number",
        "Message number of the last failed backup; 0 for none.",
        &|failures| f64::from(failures.last.error_number),
    );
}

/// When a backup of each database was last verified.
fn verifications(past: &[PastBackup], known: &Verifications, text: &mut String) {
    let mut last: BTreeMap<&str, Moment> = BTreeMap::new();
    for backup in past {
        if let Some((at, _)) = known.valid(backup) {
            let newest = last.entry(&backup.database).or_insert(at);
            *newest = (*newest).max(at);
        }
    }
    let name = "windlass_backup_last_verified_timestamp_seconds";
    heading(text, name, "When a backup was last verified or restored.");
    for (database, at) in last {
        if let Some(at) = unix_time(at) {
            sample(text, name, database, None, at);
        }
    }
}

pub(super) fn heading(text: &mut String, name: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
}

pub(super) fn sample(
    text: &mut String,
    name: &str,
    database: &str,
    kind: Option<&str>,
    value: f64,
) {
    let label = visible(database)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    let kind = kind.map_or_else(String::new, |kind| format!(",type=\"{kind}\""));
    let _ = writeln!(text, "{name}{{database=\"{label}\"{kind}}} {value}");
}

/// Seconds since 1970 of a local date and time.
fn unix_time(moment: Moment) -> Option<f64> {
    let zoned = moment.to_civil().to_zoned(TimeZone::system()).ok()?;
    Some(zoned.timestamp().as_second() as f64)
}
