//! What can be restored to what, from which backup sets, and if not, why: the one place that knows.
//!
//! Pure: sets in, answer out. It opens nothing; the caller says what is wrong with each set
//! ([`Obstacle`]: unfinished, damaged, its media gone). RESTORE's newest state, retention, the report,
//! `check`, LATEST and the search for a differential's base all ask here.
//!
//! | question | answer |
//! |---|---|
//! | can this set be restored, and which sets before it? | [`Chains::path`] |
//! | if not, why? | [`Why`] |
//! | what is this set based on, restorable or not? | [`Chains::before`] |
//! | from which state does a log backup lead to every moment in it? | [`Chains::begin`] |
//! | the newest state that these sets can restore? | [`Chains::newest_state`]: the sets in the order of their restores, and each other set with the reason why it is left out |
//! | the newest base of a differential? | [`Chains::newest`] with [`ChainSet::can_be_base`] |
//!
//! Sets on media become [`ChainSet`]s by [`ChainSet::of`], rows of the history by [`ChainSet::of_past`].
//! A family GUID is shared by a database and all its copies: where sets may be those of several databases,
//! the caller says which ones are meant.
//!
//! Rules:
//! 1. A full backup needs no other set. A differential is based on the full backup with its base's GUID; a copy
//!    of one of SQL Server on a copy of that backup, because copies have GUIDs of their own.
//!    A log backup continues any state of its family and recovery fork whose end lies within its log: where the
//!    ends of the log before are known ([`LogEnd`]), one with the same; otherwise one of its own machine and file, if there is one.
//!    If it continues one for sure, another log backup that ends within it is of another history, and so is a state
//!    that ended before that one, or a full backup behind the last one that it knows. Which of the others within it are of
//!    its history, only its log tells: restores and deletions read it where they depend on that ([`Within`]).
//! 2. A set is restorable if it has no obstacle of its own and the set it is based on is restorable.
//! 3. The newer of two states is the one whose backup began after the other had finished; if they
//!    overlapped, the one with the higher LSN. Time comes first because the log of a database that was
//!    restored to an older state numbers its records from there again. Times are UTC, so the end of
//!    daylight saving time does not matter. A clock that was set back does matter: so on one media set the
//!    later position is newer, and the LSN of a SQLite file, which is a time that never goes back, takes
//!    precedence over the date. The state of a log backup of a SQLite file is that of its last LSN, whenever and
//!    behind whatever it was written: it ends before a gap, and a full backup made behind the gap is newer. An empty
//!    database is older than any that holds something: it has lost its content, or never had any. A page-engine
//!    database begins a new recovery fork with each restore, and within one its LSNs only grow; of two states within
//!    one second the milliseconds in their descriptions tell which is the newer, or of two forks the order of the history. What a log backup
//!    continues and what a differential is based on is older than it: where its date says otherwise and earlier ones do not,
//!    the clock was ahead, and the date does not count ([`settle_dates`]); where nothing earlier is there, only that it is older
//!    than these counts. A backup that is dated before an earlier
//!    one of its database says so, if the history knew that one. Where these contradict the dates
//!    ([`rivals`]), nobody knows which state is the newer, so no restore chooses one, and retention keeps both.
//!
//! If there are several copies of one set, any that can be restored is used.

mod order;
#[cfg(test)]
mod order_tests;
mod set;
#[cfg(test)]
mod tests;
mod within;

use std::collections::BTreeMap;

use windlass_base::{Guid, Lsn};
use windlass_media::SetType;

pub use order::{is_newer, rivals, settle_dates};
pub(crate) use order::{proofs, unsurpassed};
pub(crate) use set::is_empty;
pub use set::{ChainSet, Obstacle, Times};
pub use within::{Ends, LogEnd, Within};

/// Why a set cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// The set has a problem of its own.
    #[error("{0}")]
    Obstacle(Obstacle),
    /// The full backup it is based on was not given.
    #[error("the full backup it needs was not found")]
    BaseMissing {
        /// The GUID of that backup.
        base: Guid,
    },
    /// The full backup it is based on cannot be restored.
    #[error("the full backup it needs cannot be restored: {why}")]
    BaseUnusable {
        /// Its index.
        base: usize,
        /// The problem.
        why: Obstacle,
    },
    /// No restorable state ends within its log.
    #[error("the log before it is missing")]
    LogMissing,
}

/// The newest state that can be restored from some sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The sets to restore, in order.
    pub steps: Vec<usize>,
    /// Every other requested set, and why it is left out.
    pub left_out: Vec<(usize, LeftOut)>,
}

/// Why a set is not part of the newest state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftOut {
    /// Its state is older, or it leads only to older ones.
    Older,
    /// It is of an empty database, and others hold something.
    Empty,
    /// It cannot be restored.
    Unrestorable(Why),
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Older => f.write_str("its state is older"),
            Self::Empty => f.write_str("it is of an empty database"),
            Self::Unrestorable(why) => why.fmt(f),
        }
    }
}

/// The chains that some sets form. Sets are identified by their index in the slice.
#[derive(Debug, Clone)]
pub struct Chains<'a> {
    sets: &'a [ChainSet],
    before: Vec<Option<usize>>,
    /// Of log backups: the first state that they continue, and the first restorable one.
    begins: Vec<[Option<usize>; 2]>,
    verdicts: Vec<Result<(), Why>>,
}

impl<'a> Chains<'a> {
    /// Finds the chains in `sets`, which may come in any order.
    pub fn of(sets: &'a [ChainSet]) -> Self {
        let mut chains = Self {
            sets,
            before: vec![None; sets.len()],
            begins: vec![[None; 2]; sets.len()],
            verdicts: sets
                .iter()
                .map(|set| match &set.obstacle {
                    Some(obstacle) => Err(Why::Obstacle(obstacle.clone())),
                    None => Ok(()),
                })
                .collect(),
        };
        chains.stand_on_bases();
        chains.continue_logs();
        chains
    }

    fn stand_on_bases(&mut self) {
        // Copies of sets of SQL Server are based on copies.
        let mut fulls: BTreeMap<(bool, Guid), usize> = BTreeMap::new();
        for (index, set) in self.sets.iter().enumerate() {
            if set.kind != SetType::Full {
                continue;
            }
            let name = (set.original_guid.is_some(), set.name_as_base());
            let known = fulls.entry(name).or_insert(index);
            // Of several copies, prefers one that can be restored.
            if self.verdicts[*known].is_err() && self.verdicts[index].is_ok() {
                *known = index;
            }
        }
        for (index, set) in self.sets.iter().enumerate() {
            if set.kind != SetType::Differential {
                continue;
            }
            let base = set.base.unwrap_or(Guid::NIL);
            let found = fulls.get(&(set.original_guid.is_some(), base)).copied();
            self.before[index] = found;
            if self.verdicts[index].is_ok() {
                self.verdicts[index] = match found {
                    None => Err(Why::BaseMissing { base }),
                    Some(base) => match &self.sets[base].obstacle {
                        Some(why) => Err(Why::BaseUnusable {
                            base,
                            why: why.clone(),
                        }),
                        None => Ok(()),
                    },
                };
            }
        }
    }

    fn continue_logs(&mut self) {
        type End = (Guid, Guid, Lsn);
        let end_of = |set: &ChainSet, lsn| -> End { (set.family_guid, set.fork, lsn) };
        let mut logs = Vec::new();
        // Also of those that cannot be restored, perhaps because their base is elsewhere.
        let mut ends: BTreeMap<End, Vec<usize>> = BTreeMap::new();
        for (index, set) in self.sets.iter().enumerate() {
            match set.kind {
                SetType::Log => logs.push(index),
                SetType::Full | SetType::Differential => {
                    let at = ends.entry(end_of(set, set.last_lsn));
                    at.or_default().push(index);
                }
            }
        }
        // In log order, so that each set finds the earlier ones done.
        logs.sort_by_key(|index| (self.sets[*index].last_lsn, self.sets[*index].first_lsn));
        for index in logs {
            let set = &self.sets[index];
            let (from, to) = (end_of(set, set.first_lsn), end_of(set, set.last_lsn));
            let mut states = Vec::new();
            if from <= to {
                states.extend(ends.range(from..=to).flat_map(|(_, at)| at).copied());
            }
            let states = self.continued(index, states);
            let usable = states.iter().copied();
            let usable: Vec<usize> = usable
                .filter(|state| self.verdicts[*state].is_ok())
                .collect();
            self.begins[index] = [states.first().copied(), usable.first().copied()];
            self.before[index] = self.last_of(&usable).or_else(|| self.last_of(&states));
            ends.entry(to).or_default().push(index);
            if self.verdicts[index].is_ok() && usable.is_empty() {
                self.verdicts[index] = Err(Why::LogMissing);
            }
        }
    }

    /// Of states that end within a log backup, those that it can continue. Databases with the same history can have
    /// different logs at the same LSNs: clones of a machine, or files that were put back from an earlier moment.
    fn continued(&self, log: usize, states: Vec<usize>) -> Vec<usize> {
        let log = &self.sets[log];
        let mut own = Vec::new();
        let mut others = Vec::new();
        // The state that the log begins at for sure, and the other states that it can continue.
        let mut beginning = None;
        for index in states {
            let state = &self.sets[index];
            let found = log.seen_of(state);
            if found.contains(&Some(false)) {
                continue;
            }
            if found[0] == Some(true) && self.verdicts[index].is_ok() {
                beginning = Some(state);
            }
            let is_seen = found.contains(&Some(true));
            let is_next = state.kind != SetType::Log || state.last_lsn == log.first_lsn;
            match state.is_of_one_lineage(log) || is_seen {
                true => own.push((index, is_seen)),
                false if is_next => others.push(index),
                false => {}
            }
        }
        if own.is_empty() {
            return others;
        }
        if let Some(beginning) = beginning {
            own.retain(|(index, is_seen)| {
                *is_seen || self.sets[*index].can_be_between(beginning, log)
            });
        }
        own.into_iter().map(|(index, _)| index).collect()
    }

    /// The one furthest in the log; of several there, the first.
    fn last_of(&self, states: &[usize]) -> Option<usize> {
        let later =
            |one: usize, other: usize| match self.sets[other].last_lsn > self.sets[one].last_lsn {
                true => other,
                false => one,
            };
        states.iter().copied().reduce(later)
    }

    /// Whether a set can be restored.
    ///
    /// # Errors
    /// Why not.
    pub fn verdict(&self, index: usize) -> Result<(), &Why> {
        self.verdicts[index].as_ref().copied()
    }

    /// The set that a set is based on, whether or not either can be restored; `None` for a full
    /// backup.
    pub fn before(&self, index: usize) -> Option<usize> {
        self.before[index]
    }

    /// The first state that a log backup continues, and the first restorable one: from there it leads to every moment in
    /// it. [`Chains::before`] is the last one, from which it leads to its end.
    pub fn begin(&self, index: usize) -> impl Iterator<Item = usize> {
        self.begins[index].into_iter().flatten()
    }

    /// The log backups among `indices` that have to be read, because only their log tells whether they continue the state
    /// that they are restored upon, or the first that leads to every moment in them.
    pub(crate) fn unread(&self, indices: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let must_be_read = |index: &usize| {
            let states = self.begin(*index).chain(self.before[*index]);
            self.sets[*index].is_unread_for(states.map(|state| &self.sets[state]))
        };
        indices.into_iter().filter(must_be_read).collect()
    }

    /// The sets that lead to a state, in the order of their restores; the last is the set itself.
    ///
    /// # Errors
    /// Why the state cannot be restored.
    pub fn path(&self, index: usize) -> Result<Vec<usize>, &Why> {
        self.verdict(index)?;
        let mut path: Vec<usize> = std::iter::successors(Some(index), |at| self.before[*at])
            .take(self.sets.len())
            .collect();
        path.reverse();
        Ok(path)
    }

    /// The restorable set with the newest state among those that `wanted` selects.
    pub fn newest(&self, wanted: impl Fn(&ChainSet) -> bool) -> Option<usize> {
        self.newest_among((0..self.sets.len()).filter(|index| wanted(&self.sets[*index])))
    }

    /// The newest restorable set among `indices`.
    pub fn newest_among(&self, indices: impl Iterator<Item = usize>) -> Option<usize> {
        let restorable: Vec<usize> = indices
            .filter(|index| self.verdicts[*index].is_ok())
            .collect();
        let restorable = unsurpassed(self.sets, &restorable);
        let newer = |one: usize, other: usize| match is_newer(&self.sets[other], &self.sets[one]) {
            true => other,
            false => one,
        };
        let newest = restorable.iter().copied().reduce(newer)?;
        // Where dates contradict the order on a media set, it may not be the last one there.
        let media_set = |index: usize| self.sets[index].place.map(|(media_set, _)| media_set);
        let beside = restorable.iter().copied();
        let beside = beside.filter(|other| {
            *other == newest
                || media_set(newest).is_some() && media_set(*other) == media_set(newest)
        });
        beside.reduce(newer)
    }

    /// The newest state among the sets in `wanted`, how to restore it, and why the other sets in
    /// `wanted` are not part of it; `None` if none of them can be restored.
    pub fn newest_state(&self, wanted: impl Fn(&ChainSet) -> bool) -> Option<State> {
        let newest = self.newest(&wanted)?;
        let steps = self.path(newest).ok()?;
        let is_left = |(index, set): &(usize, &ChainSet)| wanted(set) && !steps.contains(index);
        let left_out = self.sets.iter().enumerate().filter(is_left);
        let left_out = left_out
            .map(|(index, set)| match &self.verdicts[index] {
                Ok(()) if set.is_empty && !self.sets[newest].is_empty => (index, LeftOut::Empty),
                Ok(()) => (index, LeftOut::Older),
                Err(why) => (index, LeftOut::Unrestorable(why.clone())),
            })
            .collect();
        Some(State { steps, left_out })
    }
}
