//! What is known of each database.

use std::path::Path;

use jiff::civil::DateTime;
use windlass_base::Moment;
use windlass_catalog::PastBackup;
use windlass_report::Moments;

use crate::operate::exposure::{Exposure, Gap, judge};
use crate::operate::history::seconds;

/// All databases, and what they are held against.
#[derive(Debug)]
pub(super) struct Subjects<'a> {
    /// The databases in the order of their names.
    pub(super) all: Vec<Subject<'a>>,
    pub(super) rpo_minutes: i64,
    pub(super) now: Moment,
    /// The time that is shown.
    pub(super) moments: Moments,
}

/// A database.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) name: &'a str,
    /// Whether the instance knows it, beside the history.
    pub(super) is_registered: bool,
    /// Its backups, judged; none when there were none.
    pub(super) exposure: Option<Exposure<'a>>,
}

/// How a database does against the objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No time without a restorable backup.
    Kept,
    /// There were such times; now all is well.
    Missed,
    /// It is such a time now.
    Exposed,
    /// There is no restorable backup.
    Never,
}

impl Verdict {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Missed => "missed",
            Self::Exposed => "missed now",
            Self::Never => "never backed up",
        }
    }
}

impl<'a> Subjects<'a> {
    pub(super) fn new(
        past: &'a [PastBackup],
        known: &[&'a str],
        rpo_minutes: i64,
        days: Option<u32>,
        now: Moment,
    ) -> Self {
        let judged = judge(past, rpo_minutes * 60, now);
        let mut all: Vec<Subject<'a>> = judged
            .into_iter()
            .map(|exposure| Subject {
                name: exposure.database,
                is_registered: known
                    .iter()
                    .any(|name| name.eq_ignore_ascii_case(exposure.database)),
                exposure: Some(exposure),
            })
            .collect();
        for name in known {
            if !all
                .iter()
                .any(|subject| subject.name.eq_ignore_ascii_case(name))
            {
                all.push(Subject {
                    name,
                    is_registered: true,
                    exposure: None,
                });
            }
        }
        all.sort_by_key(|subject| subject.name.to_lowercase());
        let to = now.to_civil();
        let first = past.iter().filter_map(|backup| backup.started).min();
        let from = match days {
            Some(days) => to.saturating_sub(jiff::Span::new().days(i64::from(days.min(36_500)))),
            None => first.map_or(to, Moment::to_civil),
        };
        // A chart needs some time to show.
        let least: DateTime = to.saturating_sub(jiff::Span::new().minutes(10));
        Self {
            all,
            rpo_minutes,
            now,
            moments: Moments {
                from: from.min(least),
                to,
            },
        }
    }

    /// The databases without a restorable backup.
    pub(super) fn never(&self) -> impl Iterator<Item = &Subject<'a>> {
        let all = self.all.iter();
        all.filter(|subject| self.verdict(subject) == Verdict::Never)
    }

    /// The gaps of a database in the time that is shown.
    pub(super) fn gaps(&self, subject: &Subject<'a>) -> Vec<Gap> {
        let gaps = subject.exposure.iter().flat_map(|judged| &judged.gaps);
        gaps.filter(|gap| gap.to.to_civil() > self.moments.from)
            .copied()
            .collect()
    }

    pub(super) fn verdict(&self, subject: &Subject<'a>) -> Verdict {
        let newest = subject.exposure.as_ref().and_then(|judged| judged.newest);
        let gaps = self.gaps(subject);
        match (newest, gaps.last()) {
            (None, _) => Verdict::Never,
            (_, None) => Verdict::Kept,
            (_, Some(gap)) if gap.is_open => Verdict::Exposed,
            _ => Verdict::Missed,
        }
    }

    /// The backups of a database in the time that is shown.
    pub(super) fn backups(&self, subject: &Subject<'a>) -> Vec<&'a PastBackup> {
        let all = subject.exposure.iter().flat_map(|judged| &judged.backups);
        let is_shown = |backup: &&PastBackup| {
            let finished = backup.finished.map(Moment::to_civil);
            finished.is_some_and(|at| (self.moments.from..=self.moments.to).contains(&at))
        };
        all.copied().filter(is_shown).collect()
    }
}

/// Seconds that a backup took; `None` when the history, which counts whole seconds, has none.
pub(super) fn duration(backup: &PastBackup) -> Option<i64> {
    let elapsed = seconds(backup.started?, backup.finished?);
    (elapsed > 0).then_some(elapsed)
}

/// Megabytes of a database in a second.
pub(super) fn rate(backup: &PastBackup) -> Option<f64> {
    let elapsed = duration(backup)? as f64;
    Some(backup.raw_bytes as f64 / f64::from(1 << 20) / elapsed)
}

/// What a backup holds for each octet it takes.
pub(super) fn ratio(backup: &PastBackup) -> Option<f64> {
    let stored = (backup.stored_bytes > 0).then_some(backup.stored_bytes as f64)?;
    (backup.raw_bytes > 0).then_some(backup.raw_bytes as f64 / stored)
}

/// Whether a backup's files are where it was written to.
pub(super) fn files(backup: &PastBackup) -> String {
    let missing = backup
        .devices
        .iter()
        .find(|device| !Path::new(device).exists());
    match missing {
        None => "there".to_owned(),
        Some(device) => format!("missing: {device}"),
    }
}
