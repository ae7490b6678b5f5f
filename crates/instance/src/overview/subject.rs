//! The data of each database.

use crate::standing::Standing;
use jiff::civil::DateTime;
use windlass_base::Moment;
use windlass_catalog::{KnownDamage, PastBackup};
use windlass_report::Moments;

use super::exposure::{Exposure, Gap, judge};
use super::seconds;

/// All databases, and the objective.
#[derive(Debug)]
pub struct Subjects<'a> {
    /// The databases, ordered by name.
    pub all: Vec<Subject<'a>>,
    pub rpo_minutes: i64,
    pub now: Moment,
    /// The period shown.
    pub moments: Moments,
}

/// A database.
#[derive(Debug)]
pub struct Subject<'a> {
    pub name: &'a str,
    /// Whether it is registered with the instance or named by its path, not only in the history.
    pub is_kept: bool,
    /// Its evaluated backups; `None` if there were none.
    pub exposure: Option<Exposure<'a>>,
}

impl Subject<'_> {
    /// What is known to be damaged in the database itself.
    pub fn ill(&self) -> Option<&KnownDamage> {
        self.exposure.as_ref()?.ill.as_ref()
    }

    /// Why it is not known whether its newest state can be restored now.
    pub fn unknown(&self) -> Option<&str> {
        self.exposure.as_ref()?.unknown.as_deref()
    }
}

/// How a database meets the objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No period without a restorable backup.
    Kept,
    /// Whether there is one now cannot be told: media cannot be examined.
    Unknown,
    /// There were such periods, but none is open now.
    Missed,
    /// Such a period is open now.
    Exposed,
    /// The only backups that can be restored are dated in the future.
    Ahead,
    /// There are backups, but none can be restored.
    Lost,
    /// There is no backup.
    Never,
    /// The database itself is damaged.
    Damaged,
}

impl Verdict {
    pub fn text(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Unknown => "unknown",
            Self::Missed => "missed",
            Self::Exposed => "missed now",
            Self::Ahead => "dated in the future",
            Self::Lost => "nothing restorable",
            Self::Never => "never backed up",
            Self::Damaged => "database damaged",
        }
    }
}

impl<'a> Subjects<'a> {
    /// All databases with backups, and those of `kept` without: [`crate::watched::kept_names`] tells these.
    pub fn new(
        standings: Vec<Standing<'a>>,
        kept: &[&'a str],
        rpo_minutes: i64,
        days: Option<u32>,
        now: Moment,
    ) -> Self {
        let first = standings.iter().flat_map(|standing| &standing.backups);
        let first = first.filter_map(|(backup, _)| backup.started).min();
        let judged = judge(standings, rpo_minutes.saturating_mul(60), now);
        let mut all: Vec<Subject<'a>> = judged
            .into_iter()
            .map(|exposure| Subject {
                name: exposure.database,
                is_kept: kept
                    .iter()
                    .any(|name| name.eq_ignore_ascii_case(exposure.database)),
                exposure: Some(exposure),
            })
            .collect();
        for name in kept {
            if !all
                .iter()
                .any(|subject| subject.name.eq_ignore_ascii_case(name))
            {
                all.push(Subject {
                    name,
                    is_kept: true,
                    exposure: None,
                });
            }
        }
        all.sort_by_key(|subject| subject.name.to_lowercase());
        let to = now.to_civil();
        let from = match days {
            Some(days) => to.saturating_sub(jiff::Span::new().days(i64::from(days.min(36_500)))),
            None => first.map_or(to, Moment::to_civil),
        };
        // The charts need a period of some length.
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

    /// The databases without a restorable backup that counts, and those that are damaged themselves.
    pub fn never(&self) -> impl Iterator<Item = &Subject<'a>> {
        let is_never = |subject: &&Subject<'a>| {
            let verdict = self.verdict(subject);
            matches!(
                verdict,
                Verdict::Never | Verdict::Lost | Verdict::Ahead | Verdict::Damaged
            )
        };
        self.all.iter().filter(is_never)
    }

    /// Whether all databases are known to meet the objective now. A database that is no longer registered is reported
    /// but does not count; one that is backed up by its path does.
    pub fn is_met(&self) -> bool {
        let is_due = |subject: &&Subject<'_>| {
            let all_pass = !self.all.iter().any(|subject| subject.is_kept);
            subject.is_kept || all_pass
        };
        let mut due = self.all.iter().filter(is_due);
        due.all(|subject| matches!(self.verdict(subject), Verdict::Kept | Verdict::Missed))
    }

    /// The gaps of a database in the period shown.
    pub fn gaps(&self, subject: &Subject<'a>) -> Vec<Gap> {
        let gaps = subject.exposure.iter().flat_map(|judged| &judged.gaps);
        gaps.filter(|gap| gap.to.to_civil() > self.moments.from)
            .copied()
            .collect()
    }

    pub fn verdict(&self, subject: &Subject<'a>) -> Verdict {
        if subject.ill().is_some() {
            return Verdict::Damaged;
        }
        let newest = subject.exposure.as_ref().and_then(|judged| judged.newest);
        let is_ahead = subject
            .exposure
            .as_ref()
            .is_some_and(|judged| judged.is_ahead);
        let gaps = self.gaps(subject);
        match (newest, gaps.last()) {
            (None, _) if is_ahead => Verdict::Ahead,
            (None, _) if subject.exposure.is_some() => Verdict::Lost,
            (None, _) => Verdict::Never,
            (_, Some(gap)) if gap.is_open => Verdict::Exposed,
            _ if subject.unknown().is_some() => Verdict::Unknown,
            (_, None) => Verdict::Kept,
            _ => Verdict::Missed,
        }
    }

    /// The backups of a database in the period shown.
    pub fn backups(&self, subject: &Subject<'a>) -> Vec<&'a PastBackup> {
        let all = subject.exposure.iter().flat_map(|judged| &judged.backups);
        let is_shown = |backup: &&PastBackup| {
            let finished = backup.finished.map(Moment::to_civil);
            finished.is_some_and(|at| (self.moments.from..=self.moments.to).contains(&at))
        };
        all.copied().filter(is_shown).collect()
    }
}

/// Duration of a backup in seconds; `None` if the history, which may have only whole seconds, has
/// none.
pub(super) fn duration(backup: &PastBackup) -> Option<f64> {
    let whole = || Some(seconds(backup.started?, backup.finished?) as f64);
    let elapsed = backup.seconds.or_else(whole)?;
    (elapsed > 0.0).then_some(elapsed)
}

/// Megabytes of a database per second.
pub(super) fn rate(backup: &PastBackup) -> Option<f64> {
    let elapsed = duration(backup)?;
    Some(backup.raw_bytes as f64 / f64::from(1 << 20) / elapsed)
}

/// Compression ratio of a backup.
pub(super) fn ratio(backup: &PastBackup) -> Option<f64> {
    let stored = (backup.stored_bytes > 0).then_some(backup.stored_bytes as f64)?;
    (backup.raw_bytes > 0).then_some(backup.raw_bytes as f64 / stored)
}

/// Whether the files of the newest restorable backup, and of those it needs, still exist.
pub(super) fn files(judged: &Exposure<'_>) -> String {
    match &judged.unknown {
        _ if judged.newest.is_none() => String::new(),
        None => "there".to_owned(),
        Some(why) => format!("not seen: {why}"),
    }
}
