//! What an instance's history says now: for each database its backups against a recovery point objective, as
//! tables, charts and metrics.
//!
//! | module | what |
//! |---|---|
//! | `exposure` | potential data loss over time |
//! | `subject` | the databases, each with its evaluated history |
//! | [`figures`], [`tables`], [`charts`], [`media`] | the same for people, as parts of a page |
//! | [`history`] | the backups with the state of their media |
//! | [`metrics`] | the same for Prometheus |
//! | [`jobs`] | what ran last, what runs, what comes |
//! | `now` | what runs now |
//!
//! Neighbours: [`crate::standing`] tells what can be restored; `windlass report`, `history`, `check` and
//! `metrics`, and the server's page, show what this says.

pub mod charts;
mod exposure;
pub mod figures;
pub mod history;
pub mod jobs;
mod log_metrics;
pub mod media;
pub mod metrics;
mod now;
mod subject;
pub mod tables;

use windlass_base::Moment;

pub use exposure::{AHEAD, Exposure, Gap};
pub use subject::{Subject, Subjects, Verdict};

/// Seconds from one moment to another.
pub fn seconds(from: Moment, to: Moment) -> i64 {
    let span = to.to_civil() - from.to_civil();
    let total = span.total((
        jiff::Unit::Second,
        jiff::SpanRelativeTo::days_are_24_hours(),
    ));
    total.map_or(0, |seconds| seconds as i64)
}

/// The meaning of SQL Server's letters.
pub fn kind(letter: &str) -> &str {
    match letter {
        "D" => "full",
        "I" => "differential",
        "L" => "log",
        other => other,
    }
}
