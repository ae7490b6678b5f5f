//! Metrics, as Prometheus reads them and as JSON.
//!
//! The numbers come from the instance's history, so that they are independent of the program that
//! made the backups, and from examining the media.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::tz::TimeZone;
use serde_json::{Value as Json, json};
use windlass_base::{Moment, visible};
use windlass_catalog::{Catalog, DatabaseRecord, Failures, PastBackup};

use super::{kind, seconds};
use crate::chain::Times;
use crate::damage::Damages;
use crate::presence::Looker;
use crate::retention::Now;
use crate::standing::{Restorable, Standing, standings, tell_apart};
use crate::verified::Verifications;
use crate::watched;

/// What a metric measures, and its values.
#[derive(Debug, PartialEq)]
struct Family {
    name: &'static str,
    help: &'static str,
    samples: Vec<Sample>,
}

/// A value, and the labels that tell it from the others of its family.
#[derive(Debug, PartialEq)]
struct Sample {
    labels: Vec<(&'static str, String)>,
    value: f64,
}

/// All metrics of an instance.
#[derive(Debug, Default, PartialEq)]
pub struct Metrics(Vec<Family>);

impl Metrics {
    /// Begins a family; the samples that follow belong to it.
    pub(super) fn family(&mut self, name: &'static str, help: &'static str) {
        let samples = Vec::new();
        self.0.push(Family {
            name,
            help,
            samples,
        });
    }

    /// Adds a value of a database, and of a kind of backup, to the family.
    pub(super) fn sample(&mut self, database: &str, kind: Option<&str>, value: f64) {
        let mut labels = vec![("database", visible(database).into_owned())];
        labels.extend(kind.map(|kind| ("type", kind.to_owned())));
        self.push(Sample { labels, value });
    }

    /// Adds the value of the whole instance to the family.
    fn total(&mut self, value: f64) {
        let labels = Vec::new();
        self.push(Sample { labels, value });
    }

    fn push(&mut self, sample: Sample) {
        if let Some(family) = self.0.last_mut() {
            family.samples.push(sample);
        }
    }

    /// In Prometheus' text format.
    pub fn text(&self) -> String {
        let escaped = |value: &str| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            value.replace('\n', "\\n")
        };
        let mut text = String::new();
        for Family {
            name,
            help,
            samples,
        } in &self.0
        {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
            for Sample { labels, value } in samples {
                let pair =
                    |(label, value): &(&str, String)| format!("{label}=\"{}\"", escaped(value));
                let pairs: Vec<String> = labels.iter().map(pair).collect();
                let _ = match pairs.is_empty() {
                    true => writeln!(text, "{name} {value}"),
                    false => writeln!(text, "{name}{{{}}} {value}", pairs.join(",")),
                };
            }
        }
        text
    }

    /// One object for each value: its name, labels and value.
    pub fn json(&self) -> Json {
        let object = |name: &str, sample: &Sample| {
            let labels: serde_json::Map<String, Json> = sample
                .labels
                .iter()
                .map(|(label, value)| ((*label).to_owned(), Json::from(value.as_str())))
                .collect();
            json!({ "name": name, "labels": labels, "value": sample.value })
        };
        let families = self.0.iter();
        families
            .flat_map(|family| {
                family
                    .samples
                    .iter()
                    .map(|sample| object(family.name, sample))
            })
            .collect()
    }
}

/// All metrics of an instance.
///
/// # Errors
/// Those of the catalog.
pub fn metrics(catalog: &Catalog, machine: &str) -> Result<Metrics, windlass_catalog::Error> {
    let mut past = catalog.past_backups(None)?;
    let registered = catalog.databases()?;
    tell_apart(&mut past, &registered, machine);
    let now = Now::here();
    let mut found = Metrics::default();
    backups(&past, now, &mut found);
    let mut looker = Looker::of(catalog)?;
    let standings = standings(&past, Some(&mut looker), now);
    let failed = watched::failures(catalog, &past, &registered, machine)?;
    let kept = watched::kept_names(&registered, &standings, &failed);
    databases(&standings, &kept, &mut found);
    damages(&standings, &registered, looker.damages(), &mut found);
    failures(&failed, &registered, &mut found);
    super::log_metrics::followers(catalog, &registered, &mut found);
    verifications(&past, looker.verifications(), &mut found);
    let queued = catalog.queued_copies()?;
    found.family("windlass_copies_queued", "Copies not made yet.");
    found.total(queued.len() as f64);
    let failing = queued.iter().filter(|copy| copy.attempts > 0).count();
    found.family(
        "windlass_copies_failing",
        "Copies that have failed at least once.",
    );
    found.total(failing as f64);
    Ok(found)
}

/// The last backup of each database and kind that is not dated in the future, in whatever state.
fn backups(past: &[PastBackup], now: Now, found: &mut Metrics) {
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
    let mut family =
        |name: &'static str, help: &'static str, value: &dyn Fn(&PastBackup) -> Option<f64>| {
            found.family(name, help);
            for ((database, kind), backup) in &last {
                if let Some(value) = value(backup) {
                    found.sample(database, Some(kind), value);
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
    found.family("windlass_backups", "Backups in the history.");
    for ((database, kind), count) in &counts {
        found.sample(database, Some(kind), *count as f64);
    }
}

/// The restorability of each database, including those never backed up.
fn databases(standings: &[Standing<'_>], kept: &[&str], found: &mut Metrics) {
    let mut all: BTreeMap<&str, Option<&Standing<'_>>> = standings
        .iter()
        .map(|one| (one.database, Some(one)))
        .collect();
    for &name in kept {
        if !all.keys().any(|known| known.eq_ignore_ascii_case(name)) {
            all.insert(name, None);
        }
    }
    let mut family =
        |name: &'static str, help: &'static str, value: &dyn Fn(&Standing<'_>) -> f64| {
            found.family(name, help);
            for (database, standing) in &all {
                found.sample(database, None, standing.map_or(0.0, value));
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
    found: &mut Metrics,
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
    found.family(name, help);
    for (database, is_damaged) in all {
        found.sample(database, None, f64::from(u8::from(is_damaged)));
    }
}

/// The failed backups of each database.
fn failures(failures: &[Failures], registered: &[DatabaseRecord], found: &mut Metrics) {
    let mut all: BTreeMap<&str, Option<&Failures>> = registered
        .iter()
        .map(|record| (record.name.as_str(), None))
        .collect();
    for failure in failures {
        let name = failure.last.database.as_str();
        all.retain(|known, _| !known.eq_ignore_ascii_case(name));
        all.insert(name, Some(failure));
    }
    let mut family = |name: &'static str, help: &'static str, value: &dyn Fn(&Failures) -> f64| {
        found.family(name, help);
        for (database, failures) in &all {
            found.sample(database, None, failures.map_or(0.0, value));
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
fn verifications(past: &[PastBackup], known: &Verifications, found: &mut Metrics) {
    let mut last: BTreeMap<&str, Moment> = BTreeMap::new();
    for backup in past {
        if let Some((at, _)) = known.valid(backup) {
            let newest = last.entry(&backup.database).or_insert(at);
            *newest = (*newest).max(at);
        }
    }
    let name = "windlass_backup_last_verified_timestamp_seconds";
    found.family(name, "When a backup was last verified or restored.");
    for (database, at) in last {
        if let Some(at) = unix_time(at) {
            found.sample(database, None, at);
        }
    }
}

/// Seconds since 1970 of a local date and time.
fn unix_time(moment: Moment) -> Option<f64> {
    let zoned = moment.to_civil().to_zoned(TimeZone::system()).ok()?;
    Some(zoned.timestamp().as_second() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_lines_and_objects() {
        let mut found = Metrics::default();
        found.family("a", "What a is.");
        found.total(1.5);
        found.family("b", "What b is.");
        found.sample("x, \"y\"", Some("full"), 3.0);
        assert_eq!(
            found.text(),
            "# HELP a What a is.\n# TYPE a gauge\na 1.5\n# HELP b What b is.\n# TYPE b gauge\n\
             b{database=\"x, \\\"y\\\"\",type=\"full\"} 3\n"
        );
        assert_eq!(
            found.json(),
            json!([
                { "name": "a", "labels": {}, "value": 1.5 },
                { "name": "b", "labels": { "database": "x, \"y\"", "type": "full" }, "value": 3.0 },
            ])
        );
    }
}
