//! Which ends of log backups are believed: a log backup says when it ended by the clock of its machine, which may have been
//! ahead.
//!
//! Invariant: the believed end of a log backup is not later than that of any log backup that continues it.

use windlass_base::Message;
use windlass_base::message::table;
use windlass_media::{SetType, SourceKind};

use super::inventory::Inventory;
use super::moment::End;
use crate::chain::Chains;

impl Inventory {
    /// The ends as they are believed, and which of them are not what their sets say.
    pub(super) fn believed(&self, mut ends: Vec<Option<End>>) -> (Vec<Option<End>>, Vec<Message>) {
        let mut doubts = Vec::new();
        let logs = self.logs(&ends);
        // The later ones first, so that each end is known when the log before it asks.
        for (at, &index) in logs.iter().enumerate().rev() {
            let Some(end) = ends[index].filter(|end| end.unix_ms > 0) else {
                continue;
            };
            let first = self.chain[index].first_lsn;
            let before = logs[..at].iter().rev();
            let before = before.take_while(|before| self.chain[**before].last_lsn >= first);
            for &before in before.filter(|before| self.goes_on(**before, index)) {
                if let Some(earlier) = &mut ends[before]
                    && earlier.unix_ms > end.unix_ms
                {
                    earlier.unix_ms = end.unix_ms;
                    let (set, next) = (self.name_of(before), self.name_of(index));
                    doubts.push(table::end_not_believed(set, next));
                }
            }
        }
        (ends, doubts)
    }

    /// The log backups that continue a log backup, in order.
    pub(super) fn behind(
        &self,
        log: usize,
        chains: &Chains<'_>,
        ends: &[Option<End>],
    ) -> Vec<usize> {
        let logs = self.logs(ends).into_iter();
        let mut behind = Vec::new();
        let mut last = log;
        for index in logs.skip_while(|index| *index != log).skip(1) {
            let is_more = self.goes_on(last, index) && !self.is_copy_of(last, index);
            if is_more && chains.verdict(index).is_ok() {
                behind.push(index);
                last = index;
            }
        }
        behind
    }

    /// The log backups of page engine databases in the order of their logs.
    fn logs(&self, ends: &[Option<End>]) -> Vec<usize> {
        let is_log = |index: &usize| {
            let set = &self.found[*index].set;
            set.set_type == SetType::Log && set.source_kind == SourceKind::Engine
        };
        let mut logs: Vec<usize> = (0..ends.len()).filter(is_log).collect();
        logs.sort_by_key(|index| {
            let set = &self.chain[*index];
            let ended = ends[*index].map_or(0, |end| end.unix_ms);
            (set.last_lsn, set.first_lsn, ended)
        });
        logs
    }

    pub(super) fn is_copy_of(&self, one: usize, other: usize) -> bool {
        self.chain[one].set_guid == self.chain[other].set_guid
    }

    /// Whether the log of one set continues that of another, of the same database.
    pub(super) fn goes_on(&self, log: usize, next: usize) -> bool {
        let (log, next) = (&self.chain[log], &self.chain[next]);
        let is_behind = next.first_lsn <= log.last_lsn && log.last_lsn <= next.last_lsn;
        let seen = next.seen_of(log);
        let is_joined = match log.last_lsn == next.first_lsn {
            true => seen[0].unwrap_or_else(|| log.is_of_one_lineage(next)),
            // It can also be the log of a history that was left: nothing but the log itself says that it is not.
            false => seen.contains(&Some(true)),
        };
        (log.family_guid, log.fork) == (next.family_guid, next.fork) && is_behind && is_joined
    }
}
