//! A partition of the pool: descriptors, frames, hash chains, clock hand.
//!
//! Invariants, under the partition's lock:
//! - Frames below `used` are in a hash chain or in the free list; those above have never been
//!   touched.
//! - A descriptor is four words: page name; chain link and flags; first-dirty position; position up
//!   to which the log must be on disk before the page may be written.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use windlass_io::Reserved;

use super::{PageKey, Swept};
use crate::log::Position;
use crate::options::PAGE_SIZE;

const NAME: usize = 0;
const LINK: usize = 1;
const FIRST_DIRTY: usize = 2;
const LOG_END: usize = 3;

const DIRTY: u64 = 1;
const WRITING: u64 = 2;
const REFERENCED: u64 = 4;
const FLAGS: u64 = 0xFFFF;
const SCHEDULER_SHIFT: u32 = 16;

/// Frames of one partition of the pool.
#[derive(Debug)]
pub(crate) struct Partition {
    descriptors: Reserved<[AtomicU64; 4]>,
    frames: Reserved<u8>,
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
    /// To be written.
    Page(Change),
}

impl Partition {
    pub(super) fn new(capacity: u32) -> io::Result<Self> {
        let count = capacity as usize;
        Ok(Self {
            descriptors: Reserved::new(count)?,
            frames: Reserved::new(count * PAGE_SIZE)?,
            buckets: Reserved::new(count.next_power_of_two())?,
            capacity,
            used: 0,
            free: Vec::new(),
            hand: 0,
            writes: 0,
        })
    }

    fn word(&self, frame: u32, index: usize) -> u64 {
        self.descriptors[frame as usize][index].load(Relaxed)
    }

    fn set(&self, frame: u32, index: usize, value: u64) {
        self.descriptors[frame as usize][index].store(value, Relaxed);
    }

    fn has(&self, frame: u32, flag: u64) -> bool {
        self.word(frame, LINK) & flag != 0
    }

    fn change(&self, frame: u32, set: u64, clear: u64) {
        let word = &self.descriptors[frame as usize][LINK];
        word.store(word.load(Relaxed) & !clear | set, Relaxed);
    }

    fn next(&self, frame: u32) -> u32 {
        (self.word(frame, LINK) >> 32) as u32
    }

    fn bucket(&self, key: PageKey) -> &AtomicU32 {
        let mask = self.buckets.len() as u64 - 1;
        &self.buckets[(key.hash() & mask) as usize]
    }

    fn name(key: PageKey) -> u64 {
        u64::from(key.database) << 32 | u64::from(key.page)
    }

    fn key(&self, frame: u32) -> PageKey {
        let name = self.word(frame, NAME);
        PageKey {
            database: (name >> 32) as u32,
            page: name as u32,
        }
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
            let frame = link - 1;
            if self.word(frame, NAME) == Self::name(key) {
                return Some(frame);
            }
            link = self.next(frame);
        }
        None
    }

    /// Records a use for the clock. Readers share the lock; a lost mark does no harm.
    pub(super) fn touch(&self, frame: u32) {
        if !self.has(frame, REFERENCED) {
            self.descriptors[frame as usize][LINK].fetch_or(REFERENCED, Relaxed);
        }
    }

    pub(super) fn content(&self, frame: u32) -> &[u8] {
        &self.frames[frame as usize * PAGE_SIZE..][..PAGE_SIZE]
    }

    pub(super) fn content_mut(&mut self, frame: u32) -> &mut [u8] {
        &mut self.frames[frame as usize * PAGE_SIZE..][..PAGE_SIZE]
    }

    pub(super) fn first_dirty(&self, frame: u32) -> Option<Position> {
        self.has(frame, DIRTY)
            .then(|| Position(self.word(frame, FIRST_DIRTY)))
    }

    /// A clean buffer for `key`, which must not be in the pool; evicts by the clock.
    pub(super) fn allocate(&mut self, key: PageKey) -> Option<u32> {
        let frame = if let Some(frame) = self.free.pop() {
            frame
        } else if self.used < self.capacity {
            self.used += 1;
            self.used - 1
        } else {
            self.evict()?
        };
        self.set(frame, NAME, Self::name(key));
        let bucket = self.bucket(key);
        let link = u64::from(bucket.load(Relaxed)) << 32 | REFERENCED;
        bucket.store(frame + 1, Relaxed);
        self.set(frame, LINK, link);
        Some(frame)
    }

    fn evict(&mut self) -> Option<u32> {
        for _ in 0..2 * u64::from(self.used) {
            let frame = self.hand;
            self.hand = (self.hand + 1) % self.used;
            if self.has(frame, DIRTY | WRITING) {
                continue;
            }
            if self.has(frame, REFERENCED) {
                self.change(frame, 0, REFERENCED);
                continue;
            }
            self.unlink(frame);
            return Some(frame);
        }
        None
    }

    fn unlink(&self, frame: u32) {
        let bucket = self.bucket(self.key(frame));
        let after = self.next(frame);
        if bucket.load(Relaxed) == frame + 1 {
            bucket.store(after, Relaxed);
        } else {
            let mut before = bucket.load(Relaxed) - 1;
            while self.next(before) != frame + 1 {
                before = self.next(before) - 1;
            }
            let flags = self.word(before, LINK) & u64::from(u32::MAX);
            self.set(before, LINK, u64::from(after) << 32 | flags);
        }
        self.set(frame, NAME, 0);
    }

    pub(super) fn remove(&mut self, key: PageKey) {
        if let Some(frame) = self.find(key) {
            self.unlink(frame);
            self.set(frame, LINK, 0);
            self.free.push(frame);
        }
    }

    /// Returns whether the page became dirty; `None` if no buffer is free.
    pub(super) fn install_dirty(
        &mut self,
        key: PageKey,
        content: &[u8],
        change: Change,
    ) -> Option<bool> {
        let frame = match self.find(key) {
            Some(frame) => frame,
            None => self.allocate(key)?,
        };
        self.content_mut(frame).copy_from_slice(content);
        let became_dirty = !self.has(frame, DIRTY);
        if became_dirty {
            self.set(frame, FIRST_DIRTY, change.first.0);
            let mark = u64::from(change.scheduler) << SCHEDULER_SHIFT;
            self.change(frame, DIRTY | mark, 0xFF << SCHEDULER_SHIFT);
        }
        self.set(frame, LOG_END, change.end.0);
        self.touch(frame);
        Some(became_dirty)
    }

    pub(super) fn pick(&mut self, key: PageKey, buffer: &mut [u8]) -> Picked {
        let Some(frame) = self.find(key) else {
            return Picked::Clean;
        };
        if !self.has(frame, DIRTY) {
            return Picked::Clean;
        }
        if self.has(frame, WRITING) {
            return Picked::Writing;
        }
        self.writes += 1;
        buffer.copy_from_slice(self.content(frame));
        self.change(frame, WRITING, DIRTY);
        Picked::Page(Change {
            first: Position(self.word(frame, FIRST_DIRTY)),
            end: Position(self.word(frame, LOG_END)),
            scheduler: (self.word(frame, LINK) >> SCHEDULER_SHIFT) as u8,
        })
    }

    /// Ends a write. After a failed write the page is dirty from `restored` on. Returns its list,
    /// and the position at which a later change had listed it.
    pub(super) fn written(
        &mut self,
        key: PageKey,
        restored: Option<Position>,
    ) -> Option<(u8, Option<Position>)> {
        let frame = self.find(key)?;
        self.change(frame, 0, WRITING);
        let restored = restored?;
        let replaced = self.first_dirty(frame);
        self.set(frame, FIRST_DIRTY, restored.0);
        self.change(frame, DIRTY, 0);
        Some(((self.word(frame, LINK) >> SCHEDULER_SHIFT) as u8, replaced))
    }

    pub(super) fn dirty(&self, limit: usize) -> Vec<PageKey> {
        (0..self.used)
            .filter(|&frame| self.has(frame, DIRTY) && !self.has(frame, WRITING))
            .take(limit)
            .map(|frame| self.key(frame))
            .collect()
    }

    /// Visits up to `count` descriptors from `start` on, used or not; `None` at the end.
    pub(super) fn sweep(
        &self,
        database: u32,
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
            let name = descriptor[NAME].load(Relaxed);
            if (name >> 32) as u32 != database || name == 0 {
                continue;
            }
            let flags = descriptor[LINK].load(Relaxed) & FLAGS;
            if flags & DIRTY != 0 {
                swept.dirty.push(name as u32);
            }
            if flags & WRITING != 0 {
                swept.writing.push(name as u32);
            }
        }
        swept.visited += part.len() as u64;
        Some(part.len())
    }

    pub(super) fn touch_descriptors(&self) {
        for descriptor in self.descriptors.iter() {
            descriptor[LOG_END].store(descriptor[LOG_END].load(Relaxed), Relaxed);
        }
    }
}
