//! A backup set with the facts that chains need.

use windlass_base::{Guid, Lsn, Moment};
use windlass_catalog::{PastBackup, Provenance};
use windlass_engine::BackupDescription;
use windlass_media::{SetConfiguration, SetType, SourceKind};
use windlass_pipeline::PartlyFinished;
use windlass_source::engine::describe;
use windlass_source::sqlite::LogDescription;

use super::{LogEnd, Within};
use crate::provenance::of_set;

/// Why a set cannot be restored, regardless of other sets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// The end of the set is not on every family.
    #[error("it has no end: it was never finished, or was cut off")]
    Incomplete,
    /// The end of the set is on some families only.
    #[error("{0}")]
    Partly(PartlyFinished),
    /// Kept by `CONTINUE_AFTER_ERROR` although its database was damaged.
    #[error("it was made of a damaged database")]
    Damaged,
    /// Overwritten by a later backup.
    #[error("a later backup has overwritten it")]
    Overwritten,
    /// The time of the backup is unknown.
    #[error("its dates are missing")]
    Undated,
    /// The media are gone or have changed; the text says how.
    #[error("{0}")]
    Media(String),
}

/// When a backup started and finished: seconds since 1970, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    pub started: i64,
    pub finished: i64,
}

/// Seconds by which clocks may differ.
const CLOCKS_DIFFER: i64 = 300;

impl Times {
    /// Whether the backup started after `now_utc`, in seconds since 1970: the clock was wrong then, or is now.
    pub fn is_future(self, now_utc: i64) -> bool {
        self.started > now_utc.saturating_add(CLOCKS_DIFFER)
    }

    /// Converts local times with their offset from UTC, in quarter hours.
    pub fn of(started: Option<Moment>, finished: Option<Moment>, time_zone: i32) -> Option<Self> {
        let finished = finished.or(started)?;
        let started = started.unwrap_or(finished);
        Some(Self {
            started: started.utc_seconds(time_zone),
            finished: finished.utc_seconds(time_zone),
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainSet {
    pub set_guid: Guid,
    /// Of a copy of a SQL Server backup set: the identity of that set.
    pub original_guid: Option<Guid>,
    /// Shared by a database and everything restored from its backups.
    pub family_guid: Guid,
    /// The recovery fork: a log backup continues only states of its own fork.
    pub fork: Guid,
    pub kind: SetType,
    /// A full backup that cannot be a differential base.
    pub is_copy_only: bool,
    /// The full backup on which a differential is based.
    pub base: Option<Guid>,
    /// Where its log begins.
    pub first_lsn: Lsn,
    /// The LSN of its state.
    pub last_lsn: Lsn,
    pub times: Option<Times>,
    /// When its state ended, in milliseconds since 1970, UTC, if a set of the page engine says so.
    pub ended_ms: Option<u64>,
    /// Its number in the history, where that is known: what finished later has a greater one.
    pub recorded: Option<i64>,
    /// The end of an earlier backup whose date is later than its own, in seconds since 1970, UTC: a clock was wrong.
    pub contradicted_until: Option<i64>,
    /// The media set that contains it, and its position there, from 1: the later one is newer. 0 if it was overwritten: then it is
    /// older than all that is there now, wherever it was.
    pub place: Option<(Guid, u32)>,
    /// Whether its database was empty: its state is older than any that holds something.
    pub is_empty: bool,
    /// Tells databases apart that have the same history, as clones of a machine: of the machine and the first file. 0 if
    /// it is unknown, and may be any.
    pub lineage: u64,
    /// Of a log backup, the end of the log before its first LSN; unknown from the history.
    pub previous: Option<LogEnd>,
    /// The end of the log before its last LSN.
    pub ending: Option<LogEnd>,
    /// Of a log backup, the full backup that its database had last, and the LSN where that begins.
    pub last_full: Option<(Guid, Lsn)>,
    /// Of a log backup, what is known of the log within it.
    pub within: Within,
    /// Why it cannot be restored, regardless of other sets.
    pub obstacle: Option<Obstacle>,
}

/// See [`ChainSet::lineage`].
fn lineage_of(of: &Provenance) -> u64 {
    windlass_base::checksum(format!("{}\0{}", of.machine, of.path).as_bytes())
}

impl ChainSet {
    /// A set found on media; `is_complete` if its end is on every family.
    pub fn of(set: &SetConfiguration, is_complete: bool) -> Self {
        let obstacle = if !is_complete {
            Some(Obstacle::Incomplete)
        } else if set.is_damaged {
            Some(Obstacle::Damaged)
        } else {
            None
        };
        let is_engine = set.source_kind == SourceKind::Engine;
        let described = is_engine.then(|| describe(&set.source_description).ok());
        let described = described.flatten();
        let [previous, ending] = match &described {
            Some(described) => {
                [described.previous(), described.ending()].map(|block| block.map(LogEnd::Block))
            }
            None => positions_of(set),
        };
        Self {
            lineage: lineage_of(&of_set(set)),
            previous,
            ending,
            last_full: (described.as_ref())
                .filter(|described| described.is_log())
                .map(BackupDescription::base)
                .map(|base| (base.set, base.first_lsn)),
            within: Within::Unread,
            set_guid: set.set_guid,
            original_guid: set.original_guid,
            family_guid: set.family_guid,
            fork: set.recovery_fork_guid,
            kind: set.set_type,
            is_copy_only: set.is_copy_only,
            base: (set.set_type == SetType::Differential).then_some(set.differential_base_guid),
            first_lsn: set.first_lsn,
            last_lsn: set.last_lsn,
            times: Times::of(set.started, set.finished, i32::from(set.time_zone)),
            ended_ms: (described.as_ref().map(BackupDescription::ended_ms)).filter(|ms| *ms > 0),
            recorded: None,
            contradicted_until: (set.contradicted_until)
                .and_then(|until| i64::try_from(until.get()).ok()),
            place: None,
            is_empty: is_empty(set),
            obstacle,
        }
    }

    /// The same set, found on a media set.
    #[must_use]
    pub fn on(self, media_set: Guid, position: u16) -> Self {
        Self {
            place: Some((media_set, u32::from(position))),
            ..self
        }
    }

    /// A row of the history; `None` if it is not a backup of a whole database.
    pub fn of_past(past: &PastBackup) -> Option<Self> {
        let kind = match past.kind.as_str() {
            "D" => SetType::Full,
            "I" => SetType::Differential,
            "L" => SetType::Log,
            _ => return None,
        };
        let times = past
            .started
            .and(Times::of(past.started, past.finished, past.time_zone));
        let obstacle = if past.is_damaged {
            Some(Obstacle::Damaged)
        } else if past.is_overwritten {
            Some(Obstacle::Overwritten)
        } else if times.is_none() || past.finished.is_none() {
            Some(Obstacle::Undated)
        } else {
            None
        };
        Some(Self {
            lineage: lineage_of(&past.of),
            previous: None,
            ending: None,
            last_full: None,
            within: Within::Unread,
            set_guid: past.set_guid.unwrap_or(Guid::NIL),
            original_guid: None,
            family_guid: past.of.family_guid,
            fork: past.recovery_fork.unwrap_or(Guid::NIL),
            kind,
            is_copy_only: past.is_copy_only,
            base: past.base_guid,
            first_lsn: past.first_lsn.unwrap_or(Lsn::ZERO),
            last_lsn: past.last_lsn.unwrap_or(Lsn::ZERO),
            times,
            ended_ms: None,
            recorded: Some(past.id),
            contradicted_until: None,
            // INIT keeps the media set, and its positions begin again.
            place: past
                .media_set_guid
                .map(|media_set| match past.is_overwritten {
                    true => (media_set, 0),
                    false => (media_set, past.position),
                }),
            is_empty: kind != SetType::Log && past.database_bytes == Some(0),
            obstacle,
        })
    }

    /// Whether it is a log backup of a `SQLite` file. Its LSNs are times, and the last one is that of its state: before a
    /// gap, that can be long before the backup was made.
    pub(super) fn is_log_of_file(&self) -> bool {
        self.kind == SetType::Log && self.fork == self.family_guid && self.fork != Guid::NIL
    }

    /// Whether both can be of one database on one machine.
    pub(crate) fn is_of_one_lineage(&self, other: &Self) -> bool {
        self.lineage == other.lineage || self.lineage == 0 || other.lineage == 0
    }

    /// Whether it can have been made while `log` was, which begins where `before` ends: log backups follow one another,
    /// and each knows the last full backup.
    pub(super) fn can_be_between(&self, before: &Self, log: &Self) -> bool {
        let is_after = |one: Option<u64>, other: Option<u64>| {
            one.zip(other).is_none_or(|(one, other)| one >= other)
        };
        let is_known =
            |(last, first_lsn): (Guid, Lsn)| last == self.set_guid || first_lsn > self.first_lsn;
        self.kind != SetType::Log
            && (!self.can_be_base() || log.last_full.is_none_or(is_known))
            && is_after(self.ended_ms, before.ended_ms)
            && is_after(log.ended_ms, self.ended_ms)
    }

    /// The GUID by which differentials name it as their base. Copies of sets of SQL Server name originals.
    pub fn name_as_base(&self) -> Guid {
        self.original_guid.unwrap_or(self.set_guid)
    }

    /// Whether it is a full backup on which `differential` is based.
    pub fn is_base_of(&self, differential: &Self) -> bool {
        self.kind == SetType::Full
            && differential.base == Some(self.name_as_base())
            && differential.original_guid.is_some() == self.original_guid.is_some()
    }

    /// Whether it can be a differential base.
    pub fn can_be_base(&self) -> bool {
        self.kind == SetType::Full && !self.is_copy_only
    }
}

/// Of a set of a `SQLite` file, the positions where its log begins and where its state ends.
fn positions_of(set: &SetConfiguration) -> [Option<LogEnd>; 2] {
    if set.source_kind != SourceKind::Sqlite {
        return [None; 2];
    }
    let is_log = set.set_type == SetType::Log;
    let log = is_log.then(|| LogDescription::parse(&set.source_description));
    let begin = log.flatten().map(|log| log.begin_position());
    [begin, set.wal_position].map(|position| position.and_then(LogEnd::of_position))
}

/// Whether a set is of a database without any content: a file that a program has made, or made again, and not
/// written to yet. A log backup without commits says nothing of that.
pub(crate) fn is_empty(set: &SetConfiguration) -> bool {
    let is_of_data = set.set_type != SetType::Log;
    is_of_data && !set.files.is_empty() && set.files.iter().all(|file| file.size_bytes == 0)
}
