//! Which of the states that end within a log backup are of its history.
//!
//! Two histories of one recovery fork can have states at the same LSNs: the files of the database were put back from a copy.
//! A set says what is before its last LSN, a log backup also what is before its first one ([`LogEnd`]). What is before an LSN
//! within it, only its log tells; it is read where a restore or a deletion depends on that.

use std::collections::BTreeMap;

use windlass_base::Lsn;
use windlass_media::{SetType, WalPosition};

use super::ChainSet;

/// What tells the log before an LSN from another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEnd {
    /// Of the page engine: the checksum of the block before it.
    Block(u64),
    /// Of a `SQLite` file: the position in its write-ahead log.
    Position(WalPosition),
}

impl LogEnd {
    /// Whether both are the end of one log. Of positions that differ, a log can still have both.
    fn is_same(self, other: Self) -> Option<bool> {
        match (self, other) {
            (Self::Block(one), Self::Block(other)) => Some(one == other),
            (Self::Position(one), Self::Position(other)) => {
                one.is_same_content(&other).then_some(true)
            }
            _ => None,
        }
    }

    /// A position, if it tells one state from others.
    pub(crate) fn of_position(position: WalPosition) -> Option<Self> {
        (!position.is_unknown()).then_some(Self::Position(position))
    }
}

/// Where states end, and the end of the log there.
pub type Ends = Vec<(Lsn, LogEnd)>;

/// What is known of the log within a log backup: its headers do not tell which of the states inside it are of its history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Within {
    #[default]
    Unread,
    /// Its key is not here, or it is damaged.
    Unreadable,
    /// The end of the log before some LSNs; `None` where no state ends.
    Before(BTreeMap<Lsn, Option<LogEnd>>),
}

impl ChainSet {
    /// Of a log backup: whether it has the same log as a state at its first LSN, within it, and at its last LSN; `None` where
    /// nothing says so.
    pub(crate) fn seen_of(&self, state: &Self) -> [Option<bool>; 3] {
        let is_same = |own: Option<LogEnd>| state.ending?.is_same(own?);
        let first = (state.last_lsn == self.first_lsn).then(|| is_same(self.previous));
        let last = (state.last_lsn == self.last_lsn).then(|| is_same(self.ending));
        let is_last_full = (self.last_full).is_some_and(|(last, _)| last == state.set_guid);
        let within = match &self.within {
            Within::Before(before) => match before.get(&state.last_lsn) {
                Some(None) => Some(false),
                Some(Some(end)) => (state.ending).map(|own| own.is_same(*end) == Some(true)),
                None => None,
            },
            Within::Unread | Within::Unreadable => None,
        };
        let within = within.or(is_last_full.then_some(true));
        [first.flatten(), within, last.flatten()]
    }

    /// Whether the log is known to end at the same place as that of another state: nothing was committed between them.
    pub(crate) fn ends_as(&self, other: &Self) -> bool {
        let ends = self.ending.zip(other.ending);
        ends.is_some_and(|(one, other)| one.is_same(other) == Some(true))
    }

    /// Whether a state ends within this log backup.
    fn is_around(&self, state: &Self) -> bool {
        self.kind == SetType::Log
            && (self.family_guid, self.fork) == (state.family_guid, state.fork)
            && self.first_lsn < state.last_lsn
            && state.last_lsn < self.last_lsn
    }

    /// Of a log backup: whether only its log tells if a state that ends within it is of its history.
    pub(crate) fn must_be_read_for(&self, state: &Self) -> bool {
        self.is_around(state)
            && state.ending.is_some()
            && !self.seen_of(state).contains(&Some(true))
    }

    /// Of a log backup: whether its log has not been read, and must be for one of some states.
    pub(crate) fn is_unread_for<'a>(&self, states: impl IntoIterator<Item = &'a Self>) -> bool {
        let mut states = states.into_iter();
        self.within == Within::Unread && states.any(|state| self.must_be_read_for(state))
    }

    /// Of a log backup: the ends of the states within it.
    pub(crate) fn ends_within<'a>(&self, states: impl IntoIterator<Item = &'a Self>) -> Ends {
        let states = states.into_iter().filter(|state| self.is_around(state));
        let ends = states.filter_map(|state| Some((state.last_lsn, state.ending?)));
        let mut ends: Ends = ends.collect();
        ends.sort_unstable_by_key(|(lsn, _)| *lsn);
        ends.dedup();
        ends
    }
}
