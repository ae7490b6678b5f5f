//! The dirty page manager of a database, used by indirect checkpoints and backups instead of a
//! sweep of the pool.
//!
//! A change moves through three places, always forward, and enters each before it leaves the
//! previous one: the prepare-to-dirty list (a commit is about to change pages), a dirty page list
//! (changed, not yet being written), the pending list (being written).
//!
//! Invariants:
//! - A page is on the list of the scheduler that made it dirty, at its first-dirty position.
//! - If the end of the log is read first and then all lists in forward order, their minimum is a
//!   position from which the log can be replayed: every change before it is in the data files once
//!   they are synced. Only a failed write moves a page backward; such failures are counted, and the
//!   caller that took a minimum compares the count.

use std::collections::{BTreeMap, BTreeSet};

use windlass_base::PageNumber;

use crate::log::Position;
use crate::sync::{Condvar, Mutex};

/// Pages by their first change since they were clean.
type List = BTreeSet<(Position, PageNumber)>;

/// How the write of a page ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteEnd {
    Written,
    Failed,
}

/// Dirty pages of one database.
#[derive(Debug)]
pub(crate) struct DirtyPages {
    lists: Box<[Mutex<List>]>,
    preparing: Mutex<Preparing>,
    prepared: Condvar,
    pending: Mutex<Pending>,
    written: Condvar,
}

/// An entry of the prepare-to-dirty list, until it is dropped.
#[derive(Debug)]
pub(crate) struct Prepared<'a> {
    dirty: &'a DirtyPages,
    number: u64,
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        self.dirty.preparing.lock().entries.remove(&self.number);
        self.dirty.prepared.notify_all();
    }
}

#[derive(Debug, Default)]
struct Preparing {
    next: u64,
    entries: BTreeMap<u64, Position>,
}

#[derive(Debug, Default)]
struct Pending {
    pages: BTreeMap<PageNumber, Position>,
    failures: u64,
}

impl DirtyPages {
    pub(crate) fn new(schedulers: usize) -> Self {
        let count = schedulers.clamp(1, 255);
        Self {
            lists: (0..count).map(|_| Mutex::default()).collect(),
            preparing: Mutex::default(),
            prepared: Condvar::new(),
            pending: Mutex::default(),
            written: Condvar::new(),
        }
    }

    /// The list for the calling thread.
    pub(crate) fn scheduler(&self) -> u8 {
        thread_local!(static NUMBER: usize = {
            static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
            NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
        });
        (NUMBER.with(|number| *number) % self.lists.len()) as u8
    }

    /// A commit is about to change pages; nothing it changes becomes dirty before `position`. The
    /// entry is dropped when its pages are on the lists, or it failed.
    pub(crate) fn prepare(&self, position: Position) -> Prepared<'_> {
        let mut preparing = self.preparing.lock();
        preparing.next += 1;
        let number = preparing.next;
        preparing.entries.insert(number, position);
        let dirty = self;
        Prepared { dirty, number }
    }

    /// Waits for all modifiers that started before the call; returns how many entries were checked.
    pub(crate) fn drain_preparing(&self) -> u64 {
        let mut preparing = self.preparing.lock();
        let last = preparing.next;
        let visited = preparing.entries.len() as u64;
        while preparing
            .entries
            .keys()
            .next()
            .is_some_and(|&first| first <= last)
        {
            self.prepared.wait(&mut preparing);
        }
        visited
    }

    /// Adds a page that became dirty. Like the next two methods, called under the lock of the
    /// page's buffer.
    pub(crate) fn add(&self, scheduler: u8, first: Position, page: PageNumber) {
        self.lists[usize::from(scheduler)]
            .lock()
            .insert((first, page));
    }

    /// Lists a page whose write failed as dirty from `first` on, whatever `replaced` says.
    pub(crate) fn relist(
        &self,
        scheduler: u8,
        page: PageNumber,
        first: Position,
        replaced: Option<Position>,
    ) {
        let mut list = self.lists[usize::from(scheduler)].lock();
        list.insert((first, page));
        if let Some(replaced) = replaced.filter(|&replaced| replaced != first) {
            list.remove(&(replaced, page));
        }
    }

    /// A page is being written.
    pub(crate) fn begin_write(&self, scheduler: u8, page: PageNumber, first: Position) {
        self.pending.lock().pages.insert(page, first);
        self.lists[usize::from(scheduler)]
            .lock()
            .remove(&(first, page));
    }

    /// Ends a write. After a failure, the page must already be on a list again.
    pub(crate) fn end_write(&self, page: PageNumber, end: WriteEnd) {
        let mut pending = self.pending.lock();
        pending.pages.remove(&page);
        pending.failures += u64::from(end == WriteEnd::Failed);
        self.written.notify_all();
    }

    /// Waits until none of `pages` is being written.
    pub(crate) fn wait_written(&self, pages: &[PageNumber]) {
        let mut pending = self.pending.lock();
        while pages.iter().any(|page| pending.pages.contains_key(page)) {
            self.written.wait(&mut pending);
        }
    }

    /// Failed writes so far.
    pub(crate) fn failures(&self) -> u64 {
        self.pending.lock().failures
    }

    /// The position from which the log must be replayed, given the end of the log before the call.
    pub(crate) fn redo_start(&self, end: Position) -> Position {
        let preparing = self.preparing.lock().entries.values().copied().min();
        let listed = self.oldest();
        let pending = self.pending.lock().pages.values().copied().min();
        [preparing, listed, pending]
            .into_iter()
            .flatten()
            .fold(end, Position::min)
    }

    /// First-dirty position of the oldest listed page.
    pub(crate) fn oldest(&self) -> Option<Position> {
        let firsts = self
            .lists
            .iter()
            .map(|list| list.lock().first().map(|entry| entry.0));
        firsts.flatten().min()
    }

    /// The last of the dirty pages, listed and pending.
    pub(crate) fn last_page(&self) -> Option<PageNumber> {
        let last = |list: &Mutex<List>| list.lock().iter().map(|&(_, page)| page).max();
        let listed = self.lists.iter().filter_map(last).max();
        let pending = self
            .pending
            .lock()
            .pages
            .last_key_value()
            .map(|(&page, _)| page);
        listed.max(pending)
    }

    /// Dirty pages, listed and pending.
    pub(crate) fn count(&self) -> u64 {
        let listed: usize = self.lists.iter().map(|list| list.lock().len()).sum();
        (listed + self.pending.lock().pages.len()) as u64
    }

    /// Pages that became dirty before `position`, oldest first within each list, at most `limit`;
    /// and the number of entries visited.
    pub(crate) fn before(&self, position: Position, limit: usize) -> (Vec<PageNumber>, u64) {
        let mut found: Vec<(Position, PageNumber)> = Vec::new();
        for list in &self.lists {
            let list = list.lock();
            found.extend(list.range(..(position, PageNumber::FIRST)).take(limit));
        }
        let visited = found.len() as u64;
        found.sort_unstable();
        found.truncate(limit);
        (found.into_iter().map(|(_, page)| page).collect(), visited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_redo_start_is_the_oldest_of_all_three_places() {
        let at = |block| Position::new(1, block);
        let dirty = DirtyPages::new(2);
        assert_eq!(dirty.redo_start(at(50)), at(50));
        let prepared = dirty.prepare(at(20));
        assert_eq!(dirty.redo_start(at(50)), at(20));
        let [seven, eight] = [7, 8].map(|number| PageNumber::from_sqlite(number).unwrap());
        dirty.add(1, at(20), seven);
        dirty.add(1, at(30), eight);
        drop(prepared);
        assert_eq!(dirty.before(at(30), 10), (vec![seven], 1));
        dirty.begin_write(1, seven, at(20));
        assert_eq!(dirty.redo_start(at(50)), at(20));
        dirty.end_write(seven, WriteEnd::Written);
        assert_eq!(dirty.redo_start(at(50)), at(30));
        assert_eq!((dirty.count(), dirty.drain_preparing()), (1, 0));
    }
}
