//! What can be restored to what, from which backup sets, and if not, why: the one place that knows.
//!
//! Pure: sets in, answer out. It opens nothing; whoever asks tells of each set what stands in its way
//! ([`Obstacle`]: unfinished, damaged, its media gone). RESTORE's newest state, retention, the report,
//! `check`, LATEST and the search for a differential's base all ask here.
//!
//! | question | answer |
//! |---|---|
//! | can this set be restored, and which sets before it? | [`Chains::path`] |
//! | if not, why? | [`Why`] |
//! | what does this set stand on, restorable or not? | [`Chains::before`] |
//! | the newest state that these sets can give? | [`Chains::newest_state`]: the sets in the order of their restores, and each other set with the reason why it is left out |
//! | the newest base of a differential? | [`Chains::newest`] with [`ChainSet::can_be_base`] |
//!
//! Sets on media become [`ChainSet`]s by [`ChainSet::of`], rows of the history by
//! [`ChainSet::of_past`]. A database is told from others by its family: ask with
//! `|set| set.family_guid == family` where sets of several databases may lie together.
//!
//! Rules:
//! 1. A full backup stands alone. A differential stands on the full backup with its base's identity. A
//!    log backup continues the log of any state of its family and recovery fork whose end lies within it.
//! 2. A set is restorable when nothing stands in its own way and what it stands on is restorable.
//! 3. Of two states the one is newer that began after the other was finished; where they overlapped,
//!    the one further in the log. Time comes first because a database restored to an older state
//!    counts its log from there again; times are UTC, so that the end of summer time turns nothing round.
//!    A clock that was set back does: so on one media set the later position is newer, and a SQLite file's
//!    log sequence number, which is a time that never goes back, counts before the date.
//!
//! Several copies of one set may be given: whichever can be restored serves.

mod set;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use windlass_base::{Guid, Lsn};
use windlass_media::SetType;

pub use set::{ChainSet, Obstacle, Times, is_newer};

/// Why a set cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// The set has a problem of its own.
    #[error("{0}")]
    Obstacle(Obstacle),
    /// The full backup that it counts from was not given.
    #[error("the full backup it needs was not found")]
    BaseMissing {
        /// That set.
        base: Guid,
    },
    /// The full backup that it counts from cannot be restored.
    #[error("the full backup it needs cannot be restored: {why}")]
    BaseUnusable {
        /// That set's index.
        base: usize,
        /// The problem.
        why: Obstacle,
    },
    /// No restorable state ends where its log begins or later.
    #[error("the log before it is missing")]
    LogMissing,
}

/// The newest state that some sets can give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The sets to restore, in this order.
    pub steps: Vec<usize>,
    /// Every other set that was asked about, and why it is left out.
    pub left_out: Vec<(usize, LeftOut)>,
}

/// Why a set is not part of the newest state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftOut {
    /// It gives an older state, or leads only to one.
    Older,
    /// It cannot be restored.
    Unrestorable(Why),
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Older => f.write_str("its state is older"),
            Self::Unrestorable(why) => why.fmt(f),
        }
    }
}

/// The chains that some sets form. Sets are named by their index in the slice.
#[derive(Debug, Clone)]
pub struct Chains<'a> {
    sets: &'a [ChainSet],
    before: Vec<Option<usize>>,
    verdicts: Vec<Result<(), Why>>,
}

impl<'a> Chains<'a> {
    /// Finds the chains in `sets`, which may come in any order.
    pub fn of(sets: &'a [ChainSet]) -> Self {
        let mut chains = Self {
            sets,
            before: vec![None; sets.len()],
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
        let mut fulls: BTreeMap<Guid, usize> = BTreeMap::new();
        for (index, set) in self.sets.iter().enumerate() {
            if set.kind != SetType::Full {
                continue;
            }
            let known = fulls.entry(set.set_guid).or_insert(index);
            // If there are several copies, the one that can be restored.
            if self.verdicts[*known].is_err() && self.verdicts[index].is_ok() {
                *known = index;
            }
        }
        for (index, set) in self.sets.iter().enumerate() {
            if set.kind != SetType::Differential {
                continue;
            }
            let base = set.base.unwrap_or(Guid::NIL);
            let found = fulls.get(&base).copied();
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
        let (mut logs, mut ends): (Vec<usize>, BTreeMap<End, usize>) = Default::default();
        for (index, set) in self.sets.iter().enumerate() {
            if set.kind == SetType::Log {
                logs.push(index);
            } else if self.verdicts[index].is_ok() {
                ends.entry(end_of(set, set.last_lsn)).or_insert(index);
            }
        }
        // In the order of the log, each finds those before it done.
        logs.sort_by_key(|index| (self.sets[*index].last_lsn, self.sets[*index].first_lsn));
        for index in logs {
            let set = &self.sets[index];
            let (from, to) = (end_of(set, set.first_lsn), end_of(set, set.last_lsn));
            let found = (from <= to).then(|| ends.range(from..=to).next_back());
            self.before[index] = found.flatten().map(|(_, before)| *before);
            if self.verdicts[index].is_err() {
                continue;
            }
            if self.before[index].is_none() {
                self.verdicts[index] = Err(Why::LogMissing);
            } else {
                ends.entry(to).or_insert(index);
            }
        }
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

    /// The sets that lead to a state, in the order of their restores; the set itself is the last.
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

    /// The restorable set with the newest state among those wanted.
    pub fn newest(&self, wanted: impl Fn(&ChainSet) -> bool) -> Option<usize> {
        self.newest_among((0..self.sets.len()).filter(|index| wanted(&self.sets[*index])))
    }

    /// The same among sets that are named.
    pub fn newest_among(&self, indices: impl Iterator<Item = usize>) -> Option<usize> {
        let restorable: Vec<usize> = indices
            .filter(|index| self.verdicts[*index].is_ok())
            .collect();
        let newer = |one: usize, other: usize| match is_newer(&self.sets[other], &self.sets[one]) {
            true => other,
            false => one,
        };
        let newest = restorable.iter().copied().reduce(newer)?;
        // Where dates contradict the order on some media, it may not be the last one of its own.
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
        let steps = self.path(self.newest(&wanted)?).ok()?;
        let is_left = |(index, set): &(usize, &ChainSet)| wanted(set) && !steps.contains(index);
        let left_out = self.sets.iter().enumerate().filter(is_left);
        let left_out = left_out
            .map(|(index, _)| match &self.verdicts[index] {
                Ok(()) => (index, LeftOut::Older),
                Err(why) => (index, LeftOut::Unrestorable(why.clone())),
            })
            .collect();
        Some(State { steps, left_out })
    }

    /// The families of databases among the sets, in the order in which they appear.
    pub fn families(&self) -> Vec<Guid> {
        let mut families = Vec::new();
        for set in self.sets {
            if !families.contains(&set.family_guid) {
                families.push(set.family_guid);
            }
        }
        families
    }
}
