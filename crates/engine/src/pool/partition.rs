//! A partition of the pool: descriptors, contents, hash chains, clock hand.
//!
//! Invariants, under the partition's lock:
//! - Slots below `used` are in a hash chain or in the free list; those above have never been
//!   touched.
//! - A descriptor is four words: page name; chain link and flags; first-dirty position; position up
//!   to which the log must be on disk before the page may be written.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use windlass_io::Reserved;

use super::{DatabaseNumber, PageKey, Swept};
use crate::log::Position;
use windlass_base::PageNumber;
use windlass_base::page::PAGE_BYTES;

const NAME: usize = 0;
const LINK: usize = 1;
const FIRST_DIRTY: usize = 2;
const LOG_END: usize = 3;

const DIRTY: u64 = 1;
const WRITING: u64 = 2;
const REFERENCED: u64 = 4;
const FLAGS: u64 = 0xFFFF;
const SCHEDULER_SHIFT: u32 = 16;

/// The buffers of one partition of the pool, by slot.
#[derive(Debug)]
pub(crate) struct Partition {
    descriptors: Reserved<[AtomicU64; 4]>,
    contents: Reserved<u8>,
    buckets: Reserved<AtomicU32>,
    capacity: u32,
    used: u32,
    free: Vec<u32>,
    hand: u32,
    writes: u64,
}

/// The dirty state of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    /// First change since it was clean.
    pub(crate) first: Position,
    /// The log must be on disk up to here before the page is written.
    pub(crate) end: Position,
    /// The dirty page list that contains it.
    pub(crate) scheduler: u8,
}

/// The result of [`super::Pool::pick`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Picked {
    /// Not in the pool or clean.
    Clean,
    /// An earlier write is in progress.
    Writing,
    Page(Change),
}

impl Partition {
    pub(super) fn new(capacity: u32) -> io::Result<Self> {
        let count = capacity as usize;
        Ok(Self {
            descriptors: Reserved::new(count)?,
            contents: Reserved::new(count * PAGE_BYTES)?,
            buckets: Reserved::new(count.next_power_of_two())?,
            capacity,
            used: 0,
            free: Vec::new(),
            hand: 0,
            writes: 0,
        })
    }

    fn word(&self, slot: u32, index: usize) -> u64 {
        self.descriptors[slot as usize][index].load(Relaxed)
    }

    fn set(&self, slot: u32, index: usize, value: u64) {
        self.descriptors[slot as usize][index].store(value, Relaxed);
    }

    fn has(&self, slot: u32, flag: u64) -> bool {
        self.word(slot, LINK) & flag != 0
    }

    fn change(&self, slot: u32, set: u64, clear: u64) {
        let word = &self.descriptors[slot as usize][LINK];
        word.store(word.load(Relaxed) & !clear | set, Relaxed);
    }

    fn next(&self, slot: u32) -> u32 {
        (self.word(slot, LINK) >> 32) as u32
    }

    fn bucket(&self, key: PageKey) -> &AtomicU32 {
        let mask = self.buckets.len() as u64 - 1;
        &self.buckets[(key.hash() & mask) as usize]
    }

    /// The page in a slot; `None` if the slot is free.
    fn key(&self, slot: u32) -> Option<PageKey> {
        PageKey::from_word(self.word(slot, NAME))
    }

    /// Writes begun in this partition so far.
    pub(super) fn writes(&self) -> u64 {
        self.writes
    }

    /// Counts a write that bypassed the pool.
    pub(super) fn count_write(&mut self) {
        self.writes += 1;
    }

    pub(super) fn find(&self, key: PageKey) -> Option<u32> {
        let mut link = self.bucket(key).load(Relaxed);
        while link != 0 {
            let slot = link - 1;
            if self.word(slot, NAME) == key.to_word() {
                return Some(slot);
            }
            link = self.next(slot);
        }
        None
    }

    /// Records a use for the clock. Readers share the lock; a lost mark does no harm.
    pub(super) fn touch(&self, slot: u32) {
        if !self.has(slot, REFERENCED) {
            self.descriptors[slot as usize][LINK].fetch_or(REFERENCED, Relaxed);
        }
    }

    pub(super) fn content(&self, slot: u32) -> &[u8] {
        &self.contents[slot as usize * PAGE_BYTES..][..PAGE_BYTES]
    }

    pub(super) fn content_mut(&mut self, slot: u32) -> &mut [u8] {
        &mut self.contents[slot as usize * PAGE_BYTES..][..PAGE_BYTES]
    }

    pub(super) fn first_dirty(&self, slot: u32) -> Option<Position> {
        self.has(slot, DIRTY)
            .then(|| Position(self.word(slot, FIRST_DIRTY)))
    }

    /// A clean buffer for `key`, which must not be in the pool; evicts by the clock.
    pub(super) fn allocate(&mut self, key: PageKey) -> Option<u32> {
        let slot = if let Some(slot) = self.free.pop() {
            slot
        } else if self.used < self.capacity {
            self.used += 1;
            self.used - 1
        } else {
            self.evict()?
        };
        self.set(slot, NAME, key.to_word());
        let bucket = self.bucket(key);
        let link = u64::from(bucket.load(Relaxed)) << 32 | REFERENCED;
        bucket.store(slot + 1, Relaxed);
        self.set(slot, LINK, link);
        Some(slot)
    }

    fn evict(&mut self) -> Option<u32> {
        for _ in 0..2 * u64::from(self.used) {
            let slot = self.hand;
            self.hand = (self.hand + 1) % self.used;
            if self.has(slot, DIRTY | WRITING) {
                continue;
            }
            if self.has(slot, REFERENCED) {
                self.change(slot, 0, REFERENCED);
                continue;
            }
            self.unlink(slot);
            return Some(slot);
        }
        None
    }

    fn unlink(&self, slot: u32) {
        let Some(key) = self.key(slot) else { return };
        let bucket = self.bucket(key);
        let after = self.next(slot);
        if bucket.load(Relaxed) == slot + 1 {
            bucket.store(after, Relaxed);
        } else {
            let mut before = bucket.load(Relaxed) - 1;
            while self.next(before) != slot + 1 {
                before = self.next(before) - 1;
            }
            let flags = self.word(before, LINK) & u64::from(u32::MAX);
            self.set(before, LINK, u64::from(after) << 32 | flags);
        }
        self.set(slot, NAME, 0);
    }

    pub(super) fn remove(&mut self, key: PageKey) {
        if let Some(slot) = self.find(key) {
            self.unlink(slot);
            self.set(slot, LINK, 0);
            self.free.push(slot);
        }
    }

    /// Returns whether the page became dirty; `None` if no buffer is free.
    pub(super) fn install_dirty(
        &mut self,
        key: PageKey,
        content: &[u8],
        change: Change,
    ) -> Option<bool> {
        let slot = match self.find(key) {
            Some(slot) => slot,
            None => self.allocate(key)?,
        };
        self.content_mut(slot).copy_from_slice(content);
        let became_dirty = !self.has(slot, DIRTY);
        if became_dirty {
            self.set(slot, FIRST_DIRTY, change.first.0);
            let mark = u64::from(change.scheduler) << SCHEDULER_SHIFT;
            self.change(slot, DIRTY | mark, 0xFF << SCHEDULER_SHIFT);
        }
        self.set(slot, LOG_END, change.end.0);
        self.touch(slot);
        Some(became_dirty)
    }

    pub(super) fn pick(&mut self, key: PageKey, buffer: &mut [u8]) -> Picked {
        let Some(slot) = self.find(key) else {
            return Picked::Clean;
        };
        if !self.has(slot, DIRTY) {
            return Picked::Clean;
        }
        if self.has(slot, WRITING) {
            return Picked::Writing;
        }
        self.writes += 1;
        buffer.copy_from_slice(self.content(slot));
        self.change(slot, WRITING, DIRTY);
        Picked::Page(Change {
            first: Position(self.word(slot, FIRST_DIRTY)),
            end: Position(self.word(slot, LOG_END)),
            scheduler: (self.word(slot, LINK) >> SCHEDULER_SHIFT) as u8,
        })
    }

    /// Ends a write. After a failed write the page is dirty from `restored` on. Returns its list,
    /// and the position at which a later change had listed it.
    pub(super) fn written(
        &mut self,
        key: PageKey,
        restored: Option<Position>,
    ) -> Option<(u8, Option<Position>)> {
        let slot = self.find(key)?;
        self.change(slot, 0, WRITING);
        let restored = restored?;
        let replaced = self.first_dirty(slot);
        self.set(slot, FIRST_DIRTY, restored.0);
        self.change(slot, DIRTY, 0);
        Some(((self.word(slot, LINK) >> SCHEDULER_SHIFT) as u8, replaced))
    }

    pub(super) fn dirty(&self, limit: usize) -> Vec<PageKey> {
        (0..self.used)
            .filter(|&slot| self.has(slot, DIRTY) && !self.has(slot, WRITING))
            .filter_map(|slot| self.key(slot))
            .take(limit)
            .collect()
    }

    /// Visits up to `count` descriptors from `start` on, used or not; `None` at the end.
    pub(super) fn sweep(
        &self,
        database: DatabaseNumber,
        start: usize,
        count: usize,
        swept: &mut Swept,
    ) -> Option<usize> {
        let rest = &self.descriptors[start.min(self.descriptors.len())..];
        if rest.is_empty() {
            return None;
        }
        let part = &rest[..count.min(rest.len())];
        for descriptor in part {
            let key = PageKey::from_word(descriptor[NAME].load(Relaxed));
            let Some(key) = key.filter(|key| key.database == database) else {
                continue;
            };
            let flags = descriptor[LINK].load(Relaxed) & FLAGS;
            if flags & DIRTY != 0 {
                swept.dirty.push(key.page);
            }
            if flags & WRITING != 0 {
                swept.writing.push(key.page);
            }
        }
        swept.visited += part.len() as u64;
        Some(part.len())
    }

    /// The pages of a database, and whether each is dirty.
    pub(super) fn cached(
        &self,
        database: DatabaseNumber,
    ) -> impl Iterator<Item = (PageNumber, bool)> + '_ {
        (0..self.used).filter_map(move |slot| {
            let key = self.key(slot).filter(|key| key.database == database)?;
            Some((key.page, self.has(slot, DIRTY)))
        })
    }

    pub(super) fn touch_descriptors(&self) {
        for descriptor in self.descriptors.iter() {
            descriptor[LOG_END].store(descriptor[LOG_END].load(Relaxed), Relaxed);
        }
    }
}
