//! The backups that bring a waiting restore forward, or begin one: what log shipping applies.

use windlass_base::message::table;
use windlass_base::{Guid, Lsn, Message};
use windlass_media::{SetType, SourceKind};

use super::moment::End;
use super::newest::{Inventory, Newest};
use crate::Failure;
use crate::chain::{ChainSet, Chains, Obstacle, Within};

/// How far a restore WITH NORECOVERY has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// The database and its recovery fork.
    pub family: Guid,
    pub fork: Guid,
    pub lsn: Lsn,
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
        if let Some(newest) = self.of_newer_fork(reached, wanted) {
            let name = self.name_of(newest);
            return Err(table::ship_other_fork(reached.lsn, name).into());
        }
        let mut sets: Vec<ChainSet> = self.held_until(until_ms);
        for (index, set) in sets.iter_mut().enumerate() {
            if set.kind != SetType::Log || !wanted.contains(&index) {
                set.obstacle = Some(Obstacle::Media("it is no log backup".to_owned()));
            }
        }
        sets.push(Self::state_of(reached));
        let here = sets.len() - 1;
        let chains = Chains::of(&sets);
        let is_newer = |index: &usize| {
            let set = &sets[*index];
            (set.family_guid, set.fork) == (reached.family, reached.fork)
                && set.kind == SetType::Log
                && set.last_lsn > reached.lsn
        };
        let newer = wanted.iter().copied().filter(is_newer);
        let (usable, barred): (Vec<usize>, Vec<usize>) =
            newer.partition(|index| chains.verdict(*index).is_ok());
        let last = usable.into_iter().max_by_key(|index| sets[*index].last_lsn);
        let path = match last {
            None => Vec::new(),
            Some(last) => chains
                .path(last)
                .map_err(|_| self.refusal(&chains, wanted))?,
        };
        let steps: Vec<usize> = path.into_iter().filter(|index| *index != here).collect();
        let end = last.map_or(reached.lsn, |last| sets[last].last_lsn);
        let lacking = barred.iter().find(|index| sets[**index].obstacle.is_none());
        let lacking = lacking.map(|lacking| table::ship_lacks_log(end, self.name_of(*lacking)));
        Ok(Newest {
            hindrance: self.unreadable(barred.iter().copied()).or(lacking),
            ..self.newest(&steps, Vec::new())
        })
    }

    /// Why the newer log backups among these cannot be read, if there are such.
    fn unreadable(&self, newer: impl IntoIterator<Item = usize>) -> Option<Message> {
        let mut newer = newer.into_iter();
        newer.find_map(|index| {
            let why = self.chain[index].obstacle.as_ref()?;
            Some(table::ship_log_unusable(self.name_of(index), why))
        })
    }

    /// The newest backup, if the database had been restored to an earlier state before it was made: what the copy has
    /// reached then is part of a history that the database has left.
    fn of_newer_fork(&self, reached: Reached, wanted: &[usize]) -> Option<usize> {
        let own = wanted.iter().copied();
        let own = own.filter(|index| self.chain[*index].family_guid == reached.family);
        let (own, others): (Vec<usize>, Vec<usize>) =
            own.partition(|index| self.chain[*index].fork == reached.fork);
        let ended = |index: &usize| End::of(&self.found[*index].set).map_or(0, |end| end.unix_ms);
        let newest = own.iter().map(ended).max().unwrap_or(0);
        let others = others.into_iter();
        let restorable = others.filter(|index| self.chain[*index].obstacle.is_none());
        restorable
            .max_by_key(ended)
            .filter(|other| ended(other) > newest.max(reached.unix_ms))
    }

    /// The newest state of a database with log backups, from its full backup on.
    fn beginning(&self, until_ms: u64, wanted: &[usize]) -> Result<Newest, Failure> {
        let sets = self.held_until(until_ms);
        let chains = Chains::of(&sets);
        let guids: Vec<Guid> = wanted.iter().map(|index| sets[*index].set_guid).collect();
        // A full backup of a SQLite file does not say whether log backups will follow.
        let can_ship = |index: usize| {
            let set = &self.found[index].set;
            let is_enough = set.source_kind == SourceKind::Engine || set.set_type == SetType::Log;
            is_enough && End::of(set).is_some_and(|end| end.has_log)
        };
        if !wanted.iter().any(|index| can_ship(*index)) {
            return Err(table::ship_needs_log().into());
        }
        let state = chains.newest_state(|set| guids.contains(&set.set_guid));
        let state = state.ok_or_else(|| self.refusal(&chains, wanted))?;
        let end = state.steps.last().map(|last| &sets[*last]);
        let is_newer = |index: &usize| {
            let set = &sets[*index];
            set.kind == SetType::Log && end.is_some_and(|end| set.last_lsn > end.last_lsn)
        };
        Ok(Newest {
            hindrance: self.unreadable(wanted.iter().copied().filter(is_newer)),
            ..self.newest(&state.steps, Vec::new())
        })
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
    fn state_of(reached: Reached) -> ChainSet {
        ChainSet {
            set_guid: Guid::NIL,
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
            ending: None,
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
