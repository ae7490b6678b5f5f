//! Potential data loss: for each database the periods in which a failure would have lost more than
//! a recovery point objective allows.
//!
//! At any time the newest restorable backup decides: changes since that backup *started* would be
//! lost. So a gap begins when the newest backup's start is older than the objective, and ends when
//! the next restorable backup is *finished*. [`crate::chain`] determines which backups
//! are restorable. For the past, a backup counts if it was restorable then, even if it was deleted
//! since; for the time from the newest backup until now, only what can be restored now counts.

use crate::standing::{Restorable, Standing};
use windlass_base::Moment;
use windlass_catalog::{KnownDamage, PastBackup};

use super::seconds;

/// A period in which a failure would have lost too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// When the potential loss exceeded the objective.
    pub from: Moment,
    /// When a restorable backup was finished; now, for an open gap.
    pub to: Moment,
    /// Whether it continues.
    pub is_open: bool,
    /// Start of the newest restorable backup at that time.
    pub newest: Moment,
    /// The maximum loss in seconds: from the newest backup's start to the end of the gap.
    pub loss: i64,
}

/// The backups of a database, evaluated.
#[derive(Debug)]
pub struct Exposure<'a> {
    pub database: &'a str,
    /// All its backups, oldest first.
    pub backups: Vec<&'a PastBackup>,
    /// Those that do not count, with the reason: they cannot be restored, or are dated in the future. Missing media of backups older than the
    /// newest state are not listed: they may have been deleted on purpose.
    pub unusable: Vec<(&'a PastBackup, String)>,
    /// The newest backup whose media are not missing and that is not dated in the future.
    pub newest: Option<&'a PastBackup>,
    /// Whether backups are dated in the future.
    pub is_ahead: bool,
    /// What is known to be damaged in the database itself.
    pub ill: Option<KnownDamage>,
    /// Why it is not known whether that can be restored now.
    pub unknown: Option<String>,
    pub gaps: Vec<Gap>,
    /// The maximum potential loss at any time since the first restorable backup, in seconds.
    pub worst: i64,
}

impl<'a> Exposure<'a> {
    /// The newest restorable backup of a kind (`D`, `I`, `L`).
    pub fn last(&self, kind: &str) -> Option<&'a PastBackup> {
        let is_usable =
            |backup: &PastBackup| !self.unusable.iter().any(|(other, _)| other.id == backup.id);
        let found = self.backups.iter().rev();
        let mut found = found.filter(|backup| backup.kind == kind && is_usable(backup));
        found.next().copied()
    }
}

/// Why a backup that is dated in the future does not count.
pub const AHEAD: &str = "dated in the future: the clock was wrong then, or is now";

/// Evaluates the backups of each database.
pub(super) fn judge(
    standings: Vec<Standing<'_>>,
    rpo_seconds: i64,
    now: Moment,
) -> Vec<Exposure<'_>> {
    let judged = standings.into_iter();
    judged
        .map(|standing| judge_one(standing, rpo_seconds, now))
        .collect()
}

fn judge_one(standing: Standing<'_>, rpo_seconds: i64, now: Moment) -> Exposure<'_> {
    let newest = standing.newest();
    let unknown = match standing.restorable() {
        Restorable::Unknown(why) => Some(why.to_owned()),
        Restorable::Yes | Restorable::No => None,
    };
    let mut exposure = Exposure {
        database: standing.database,
        backups: standing.backups.iter().map(|(backup, _)| *backup).collect(),
        unusable: standing.lost,
        newest,
        is_ahead: !standing.ahead.is_empty(),
        ill: standing.ill,
        unknown,
        gaps: Vec::new(),
        worst: 0,
    };
    // The start of the newest restorable backup.
    let mut covered: Option<Moment> = None;
    for (backup, verdict) in standing.backups {
        if let Err(reason) = verdict {
            let mut known = exposure.unusable.iter();
            if !known.any(|(other, _)| other.id == backup.id) {
                exposure.unusable.push((backup, reason));
            }
            continue;
        }
        let (Some(started), Some(finished)) = (backup.started, backup.finished) else {
            continue;
        };
        if standing.ahead.iter().any(|other| other.id == backup.id) {
            exposure.unusable.push((backup, AHEAD.to_owned()));
            continue;
        }
        if let Some(since) = covered {
            exposure.note(since, finished, false, rpo_seconds);
        }
        covered = covered.max(Some(started));
    }
    exposure.unusable.sort_by_key(|(backup, _)| backup.id);
    if let Some(since) = newest.and_then(|newest| newest.started) {
        exposure.note(since, now, true, rpo_seconds);
    }
    exposure
}

impl Exposure<'_> {
    /// Records that until `to` everything changed since `since` would have been lost.
    fn note(&mut self, since: Moment, to: Moment, is_open: bool, rpo_seconds: i64) {
        let loss = seconds(since, to);
        self.worst = self.worst.max(loss);
        if loss <= rpo_seconds {
            return;
        }
        let allowed = jiff::Span::new().seconds(rpo_seconds);
        self.gaps.push(Gap {
            from: Moment::new(since.to_civil().saturating_add(allowed)),
            to,
            is_open,
            newest: since,
            loss,
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::standing::standings;
    use windlass_base::Guid;

    use super::*;

    fn judge_all(past: &[PastBackup], rpo_seconds: i64, now: Moment) -> Vec<Exposure<'_>> {
        let utc = crate::chain::Times::of(Some(now), None, 0);
        let at = crate::retention::Now {
            local: now,
            utc: utc.unwrap().started,
        };
        judge(standings(past, None, at), rpo_seconds, now)
    }

    fn moment(text: &str) -> Moment {
        format!("2026-11-{text}").parse().unwrap()
    }

    /// A backup that took an hour, with a log from one slot to another.
    fn backup(
        kind: &str,
        finished: &str,
        guid: u8,
        base: Option<u8>,
        log: (u32, u32),
    ) -> PastBackup {
        let finished = moment(finished);
        let lsn = |slot: u32| Some(format!("1:{slot}:1").parse().unwrap());
        let hour = jiff::Span::new().hours(1);
        PastBackup {
            id: i64::from(guid),
            set_guid: Some(Guid::from_stored([guid; 16])),
            database: "app".to_owned(),
            of: windlass_catalog::Provenance {
                family_guid: Guid::NIL,
                database_guid: Guid::NIL,
                name: "app".to_owned(),
                path: String::new(),
                machine: String::new(),
                created_ns: None,
                at: None,
            },
            kind: kind.to_owned(),
            started: Some(Moment::new(finished.to_civil().saturating_sub(hour))),
            finished: Some(finished),
            database_bytes: None,
            raw_bytes: 100,
            stored_bytes: 10,
            compression: String::new(),
            is_copy_only: false,
            is_damaged: false,
            first_lsn: lsn(log.0),
            last_lsn: lsn(log.1),
            checkpoint_lsn: None,
            base_guid: base.map(|base| Guid::from_stored([base; 16])),
            position: 1,
            devices: vec!["/b/1.bak".to_owned()],
            media_set_guid: None,
            media: Vec::new(),
            recovery_fork: None,
            time_zone: 0,
            seconds: Some(3600.0),
            is_overwritten: false,
            missing_since: None,
            is_forgotten: false,
            is_by_path: false,
            expires: None,
        }
    }

    const DAY: i64 = 24 * 3600;

    #[test]
    fn a_gap_goes_from_the_objective_to_the_next_backup_that_can_be_restored() {
        let mut past = vec![
            backup("D", "01 02:00:00", 1, None, (1, 1)),
            backup("I", "02 01:00:00", 2, Some(1), (2, 2)),
            // Based on a full backup that is not in the history.
            backup("I", "03 02:00:00", 3, Some(9), (3, 3)),
            backup("D", "04 02:00:00", 4, None, (4, 4)),
        ];
        let now = moment("04 12:00:00");
        let judged = judge_all(&past, DAY, now);
        let [app] = judged.as_slice() else { panic!() };
        assert_eq!(
            app.gaps,
            [Gap {
                from: moment("03 00:00:00"),
                to: moment("04 02:00:00"),
                is_open: false,
                newest: moment("02 00:00:00"),
                loss: 50 * 3600,
            }]
        );
        assert_eq!(app.worst, 50 * 3600);
        assert_eq!(app.unusable.len(), 1);
        assert_eq!(app.newest.unwrap().id, 4);
        assert_eq!(app.last("I").unwrap().id, 2, "the other cannot be restored");
        // The gap continues if the last full backup is unusable.
        past[3].is_damaged = true;
        let judged = judge_all(&past, DAY, now);
        assert_eq!(judged[0].gaps.len(), 1);
        assert!(judged[0].gaps[0].is_open);
        assert_eq!(judged[0].gaps[0].to, now);
        // Nothing is missed if two days are allowed and the next backup starts 49 hours later.
        past[3].is_damaged = false;
        assert!(judge_all(&past, 50 * 3600, now)[0].gaps.is_empty());
        assert_eq!(judge_all(&past, 50 * 3600 - 1, now)[0].gaps.len(), 1);
    }

    #[test]
    fn a_log_backup_counts_when_the_log_before_it_is_there() {
        let past = [
            backup("L", "01 01:00:00", 1, None, (1, 5)),
            backup("D", "01 02:00:00", 2, None, (4, 6)),
            backup("L", "01 03:00:00", 3, None, (5, 9)),
            backup("L", "01 05:00:00", 5, None, (12, 14)),
            backup("L", "01 06:00:00", 6, None, (14, 15)),
            backup("I", "01 07:00:00", 7, Some(2), (15, 16)),
            backup("L", "01 08:00:00", 8, None, (15, 20)),
        ];
        let judged = judge_all(&past, DAY, moment("01 09:00:00"));
        let unusable: Vec<i64> = judged[0].unusable.iter().map(|(one, _)| one.id).collect();
        assert_eq!(unusable, [1, 5, 6], "the fourth is missing");
        assert_eq!(judged[0].newest.unwrap().id, 8);
        assert!(judged[0].gaps.is_empty());
    }

    #[test]
    fn a_backup_that_takes_longer_than_the_objective_always_misses_it() {
        let past = [
            backup("D", "01 02:00:00", 1, None, (1, 1)),
            backup("D", "01 02:30:00", 2, None, (2, 2)),
        ];
        let judged = judge_all(&past, 1800, moment("01 02:30:00"));
        let gaps: Vec<(bool, i64)> = judged[0]
            .gaps
            .iter()
            .map(|gap| (gap.is_open, gap.loss))
            .collect();
        assert_eq!(gaps, [(false, 5400), (true, 3600)]);
    }
}
