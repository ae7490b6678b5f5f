//! The backups that bring a waiting restore forward, or begin one: what log shipping applies.

use windlass_base::message::table;
use windlass_base::{Guid, Lsn, Message};
use windlass_media::{SetConfiguration, SetType, SourceKind};

use super::inventory::Inventory;
use super::moment::End;
use super::newest::{Beyond, Newest};
use crate::Failure;
use crate::chain::{ChainSet, Chains, LogEnd, Obstacle, Why, Within};

/// How far a restore WITH NORECOVERY has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// The database and its recovery fork.
    pub family: Guid,
    pub fork: Guid,
    /// The set that was restored last, if a differential can be based on it.
    pub set_guid: Guid,
    pub lsn: Lsn,
    /// The end of the log before the LSN, if known.
    pub ending: Option<LogEnd>,
    /// Milliseconds since 1970, UTC; 0 if unknown.
    pub unix_ms: u64,
}

impl Inventory {
    /// The restores that lead from `reached`, or from nothing, to the newest state that ended before `until_ms`, without
    /// recovery; none if there is nothing newer.
    pub(super) fn continuing(
        &self,
        reached: Option<Reached>,
        until_ms: u64,
        wanted: &[usize],
    ) -> Result<Newest, Failure> {
        let Some(reached) = reached else {
            return self.beginning(until_ms, wanted);
        };
        self.refuse_newer_fork(&reached, wanted)?;
        let mut sets: Vec<ChainSet> = self.held_until(until_ms);
        let state = Self::state_of(reached);
        // A round that was killed behind the full backup has its differential still before it.
        let leads_on = |set: &ChainSet| match set.kind {
            SetType::Full => false,
            SetType::Differential => state.is_base_of(set),
            SetType::Log => true,
        };
        for (index, set) in sets.iter_mut().enumerate() {
            if !leads_on(set) || !wanted.contains(&index) {
                set.obstacle = Some(Obstacle::Media("it leads nowhere from here".to_owned()));
            }
        }
        sets.push(state.clone());
        let here = sets.len() - 1;
        let chains = Chains::of(&sets);
        let is_newer = |index: &usize| {
            let set = &sets[*index];
            (set.family_guid, set.fork) == (reached.family, reached.fork)
                && leads_on(set)
                && set.last_lsn > reached.lsn
        };
        let newer = wanted.iter().copied().filter(is_newer);
        let (usable, barred): (Vec<usize>, Vec<usize>) =
            newer.partition(|index| chains.verdict(*index).is_ok());
        let last = self.newest_of(usable.into_iter());
        let path = match last {
            None => Vec::new(),
            Some(last) => chains
                .path(last)
                .map_err(|_| self.refusal(&chains, wanted))?,
        };
        let steps: Vec<usize> = path.into_iter().filter(|index| *index != here).collect();
        let end = last.map_or(reached.lsn, |last| sets[last].last_lsn);
        let is_behind = |index: &&usize| {
            let set = &sets[**index];
            set.obstacle.is_none() && set.first_lsn > end
        };
        let lacking = barred.iter().find(is_behind);
        let lacking = lacking.map(|lacking| table::ship_lacks_log(end, self.name_of(*lacking)));
        let passed = self
            .of_left_history(reached, wanted)
            .filter(|_| steps.is_empty());
        let passed = passed.map(|log| table::ship_other_fork(reached.lsn, self.name_of(log)));
        let unreadable = self.unreadable(barred.iter().copied());
        let last = last.map_or_else(|| Self::state_of(reached), |last| sets[last].clone());
        Ok(Newest {
            hindrance: unreadable.or(passed).or(lacking),
            beyond: self.beyond(&last, until_ms, wanted),
            ..self.newest(&steps, Vec::new())
        })
    }

    /// A log backup that was made after the state that the copy has reached, and is of another history: it ends before that, or
    /// has another log there. Files of the database were put back from a copy, and the copy follows the history that was left.
    fn of_left_history(&self, reached: Reached, wanted: &[usize]) -> Option<usize> {
        let ends = self.found.iter().map(|found| End::of(&found.set)).collect();
        let (ends, _) = self.believed(ends);
        let state = Self::state_of(reached);
        // Of the state, only its last commit is known; its log can have ended long after that.
        let own = (0..self.chain.len()).filter(|index| {
            let set = &self.chain[*index];
            (set.family_guid, set.fork, set.last_lsn)
                == (state.family_guid, state.fork, reached.lsn)
        });
        let ended = own
            .filter_map(|index| ends[index])
            .map(|end| end.unix_ms)
            .max();
        let is_one = |index: &usize| {
            let (set, end) = (&self.chain[*index], ends[*index]);
            let is_apart = set.seen_of(&state).contains(&Some(false));
            let is_later = |than: u64| end.is_some_and(|end| end.unix_ms > than);
            let is_before = set.last_lsn < reached.lsn && ended.is_some_and(is_later);
            (set.family_guid, set.fork) == (reached.family, reached.fork)
                && set.kind == SetType::Log
                && (is_before || is_apart && is_later(reached.unix_ms))
        };
        wanted.iter().copied().find(is_one)
    }

    /// Why the newer log backups among these cannot be read, if there are such.
    fn unreadable(&self, newer: impl IntoIterator<Item = usize>) -> Option<Message> {
        let mut newer = newer.into_iter();
        newer.find_map(|index| {
            let why = self.chain[index].obstacle.as_ref()?;
            Some(table::ship_log_unusable(self.name_of(index), why))
        })
    }

    /// The newest backup, if it is no log backup, and holds a state behind `last`: no log backup leads there. Of the page engine, its
    /// LSN can be higher although nothing was committed between.
    fn beyond(&self, last: &ChainSet, until_ms: u64, wanted: &[usize]) -> Option<Beyond> {
        let held = self.held_until(until_ms);
        let is_finished = |index: &usize| match &self.chain[*index].obstacle {
            None => held[*index].obstacle.is_none(),
            Some(obstacle) => *obstacle != Obstacle::Incomplete,
        };
        let newest = self.newest_of(wanted.iter().copied().filter(is_finished))?;
        let set = &self.chain[newest];
        let is_of_it = (set.family_guid, set.fork) == (last.family_guid, last.fork);
        let is_behind = set.last_lsn > last.last_lsn && !set.ends_as(last);
        let is_one = set.kind != SetType::Log && is_of_it && is_behind;
        is_one.then(|| Beyond {
            reached: last.last_lsn,
            set: self.name_of(newest),
        })
    }

    /// What a copy has reached that ends with this set.
    fn reached_by(&self, index: usize) -> Reached {
        let set = &self.chain[index];
        Reached {
            family: set.family_guid,
            fork: set.fork,
            set_guid: set.set_guid,
            lsn: set.last_lsn,
            ending: set.ending,
            unix_ms: End::of(&self.found[index].set).map_or(0, |end| end.unix_ms),
        }
    }

    fn refuse_newer_fork(&self, reached: &Reached, wanted: &[usize]) -> Result<(), Failure> {
        match self.of_newer_fork(reached, wanted) {
            Some(newest) => {
                let name = self.name_of(newest);
                Err(table::ship_other_fork(reached.lsn, name).into())
            }
            None => Ok(()),
        }
    }

    /// The newest backup, if the database had been restored to an earlier state before it was made: what the copy has
    /// reached then is part of a history that the database has left.
    fn of_newer_fork(&self, reached: &Reached, wanted: &[usize]) -> Option<usize> {
        let own = wanted.iter().copied();
        let own = own.filter(|index| self.chain[*index].family_guid == reached.family);
        let (own, others): (Vec<usize>, Vec<usize>) =
            own.partition(|index| self.chain[*index].fork == reached.fork);
        let ended = |index: &usize| End::of(&self.found[*index].set).map_or(0, |end| end.unix_ms);
        let newest = own.iter().map(ended).max().unwrap_or(0);
        let others = others.into_iter();
        // What a killed backup left tells nothing; what cannot be read now was there once.
        let finished =
            others.filter(|index| self.chain[*index].obstacle != Some(Obstacle::Incomplete));
        finished
            .max_by_key(ended)
            .filter(|other| ended(other) > newest.max(reached.unix_ms))
    }

    /// The newest state of a database with log backups, from its full backup on.
    fn beginning(&self, until_ms: u64, wanted: &[usize]) -> Result<Newest, Failure> {
        let sets = self.held_until(until_ms);
        let chains = Chains::of(&sets);
        let guids: Vec<Guid> = wanted.iter().map(|index| sets[*index].set_guid).collect();
        self.refuse_without_log(wanted)?;
        let state = chains.newest_state(|set| guids.contains(&set.set_guid));
        let Some(state) = state else {
            let later = Chains::of(&self.chain).newest_state(|set| guids.contains(&set.set_guid));
            return match later {
                Some(_) => Ok(self.newest(&[], vec![table::ship_waits_for_delay()])),
                None => Err(self.refusal(&chains, wanted)),
            };
        };
        let end = state.steps.last().map(|last| &sets[*last]);
        if let Some(last) = state.steps.last() {
            self.refuse_newer_fork(&self.reached_by(*last), wanted)?;
        }
        let is_newer = |index: &usize| {
            let set = &sets[*index];
            set.kind == SetType::Log && end.is_some_and(|end| set.last_lsn > end.last_lsn)
        };
        let is_behind = |index: &&usize| {
            let set = &sets[**index];
            let is_lacking = chains.verdict(**index) == Err(&Why::LogMissing);
            let is_of_one = |end: &&ChainSet| {
                (set.family_guid, set.fork) == (end.family_guid, end.fork)
                    && set.first_lsn > end.last_lsn
            };
            is_lacking && end.as_ref().is_some_and(is_of_one)
        };
        let lacking = wanted.iter().find(is_behind).zip(end);
        let lacking = lacking
            .map(|(lacking, end)| table::ship_lacks_log(end.last_lsn, self.name_of(*lacking)));
        let unreadable = self.unreadable(wanted.iter().copied().filter(is_newer));
        let beyond = end.and_then(|end| self.beyond(end, until_ms, wanted));
        Ok(Newest {
            hindrance: unreadable.or(lacking),
            beyond,
            ..self.newest(&state.steps, Vec::new())
        })
    }

    fn refuse_without_log(&self, wanted: &[usize]) -> Result<(), Failure> {
        let sets = wanted.iter().map(|index| &self.found[*index].set);
        let mut with_log = sets.filter(|set| End::of(set).is_some_and(|end| end.has_log));
        // A full backup of a SQLite file knows where in the log it is, and not whether log backups will follow.
        let is_enough = |set: &SetConfiguration| {
            set.source_kind == SourceKind::Engine || set.set_type == SetType::Log
        };
        match with_log.clone().any(is_enough) {
            true => Ok(()),
            false if with_log.next().is_some() => Err(table::ship_waits_for_log().into()),
            false => Err(table::ship_needs_log().into()),
        }
    }

    /// The restores that lead to the newest state that ended before or at a time.
    pub(super) fn before(&self, unix_ms: u64, wanted: &[usize]) -> Result<Newest, Failure> {
        let until_ms = unix_ms.saturating_add(1);
        let sets = self.ended_until(until_ms, "it ends after the moment");
        let chains = Chains::of(&sets);
        let guids: Vec<Guid> = wanted.iter().map(|index| sets[*index].set_guid).collect();
        let state = chains.newest_state(|set| guids.contains(&set.set_guid));
        let state = state.ok_or_else(|| self.refusal(&chains, wanted))?;
        let left = state.left_out.iter();
        let reasons: Vec<(usize, String)> = left
            .filter(|(index, _)| wanted.contains(index))
            .map(|(index, why)| (*index, why.to_string()))
            .collect();
        let notes = self.reported(&state.steps, "the newest state before the moment", &reasons);
        Ok(self.newest(&state.steps, notes))
    }

    fn held_until(&self, until_ms: u64) -> Vec<ChainSet> {
        self.ended_until(until_ms, "its delay has not passed")
    }

    /// The sets, of which those that ended at `until_ms` or later cannot be used, and why.
    fn ended_until(&self, until_ms: u64, why: &str) -> Vec<ChainSet> {
        let ends = self.found.iter().map(|found| End::of(&found.set)).collect();
        let (ends, _) = self.believed(ends);
        let held = self.chain.iter().zip(ends).map(|(set, end)| {
            let is_held = end.is_some_and(|end| end.unix_ms >= until_ms);
            let held = is_held.then(|| Obstacle::Media(why.to_owned()));
            ChainSet {
                obstacle: set.obstacle.clone().or(held),
                ..set.clone()
            }
        });
        held.collect()
    }

    /// The waiting restore, as a set that needs no other.
    pub(super) fn state_of(reached: Reached) -> ChainSet {
        ChainSet {
            set_guid: reached.set_guid,
            original_guid: None,
            family_guid: reached.family,
            fork: reached.fork,
            kind: SetType::Full,
            is_copy_only: true,
            base: None,
            first_lsn: reached.lsn,
            last_lsn: reached.lsn,
            times: None,
            lineage: 0,
            previous: None,
            ending: reached.ending,
            last_full: None,
            within: Within::Unread,
            ended_ms: None,
            recorded: None,
            contradicted_until: None,
            place: None,
            is_empty: false,
            obstacle: None,
        }
    }
}
