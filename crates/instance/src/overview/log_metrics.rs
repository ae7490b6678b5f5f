//! Metrics of the followers of SQLite files.

use windlass_catalog::{Catalog, DatabaseRecord, FILE_NAME};

use super::metrics::Metrics;
use crate::followers::{FollowerShown, followers_of};

/// A metric: its name, what it is, and its value.
type Metric = (
    &'static str,
    &'static str,
    fn(&FollowerShown) -> Option<f64>,
);

const METRICS: [Metric; 11] = [
    (
        "windlass_log_followed",
        "Whether the log of the SQLite file, whose recovery model is FULL, is followed.",
        |shown| Some(f64::from(u8::from(shown.is_followed))),
    ),
    (
        "windlass_log_capturing",
        "Whether commits are captured.",
        |shown| flag(shown, "is_capturing"),
    ),
    (
        "windlass_log_gap_open",
        "Whether a gap in the log waits for a backup that closes it.",
        |shown| flag(shown, "is_gap_open"),
    ),
    (
        "windlass_log_spool_full",
        "Whether the spool has no room.",
        |shown| flag(shown, "is_full"),
    ),
    (
        "windlass_log_lag_seconds",
        "For how long commits have waited to become durable in the spool.",
        |shown| Some(number(shown, "lag_ms")? / 1000.0),
    ),
    (
        "windlass_log_lag_bytes",
        "Bytes of the database's log that are not in the spool yet.",
        |shown| number(shown, "lag_bytes"),
    ),
    (
        "windlass_log_bytes",
        "Bytes of the database's log.",
        |shown| number(shown, "log_bytes"),
    ),
    (
        "windlass_log_spool_bytes",
        "Bytes of the spool: the log since the last log backup.",
        |shown| number(shown, "spool_bytes"),
    ),
    (
        "windlass_log_let_goes",
        "How often nothing was held, so that the log could be restarted, since the follower began.",
        |shown| number(shown, "let_goes"),
    ),
    (
        "windlass_log_gaps",
        "Gaps since the follower began.",
        |shown| number(shown, "gaps"),
    ),
    (
        "windlass_log_cpu_seconds",
        "Processor time of the follower.",
        |shown| Some(number(shown, "cpu_ms")? / 1000.0),
    ),
];

fn number(shown: &FollowerShown, name: &str) -> Option<f64> {
    shown.told[name].as_f64()
}

fn flag(shown: &FollowerShown, name: &str) -> Option<f64> {
    shown.told[name]
        .as_bool()
        .map(|value| f64::from(u8::from(value)))
}

/// Appends the metrics of the followers of an instance.
pub(super) fn followers(catalog: &Catalog, registered: &[DatabaseRecord], found: &mut Metrics) {
    let path = catalog.path();
    let Some(folder) = path.parent().filter(|_| path.ends_with(FILE_NAME)) else {
        return;
    };
    let shown = followers_of(folder, registered);
    if shown.is_empty() {
        return;
    }
    for (name, help, value) in METRICS {
        found.family(name, help);
        for one in &shown {
            if let Some(value) = value(one) {
                found.sample(&one.database, None, value);
            }
        }
    }
}
