//! The buffer pool: the current version of pages of all databases of an instance.
//!
//! ```text
//!                 read from disk                 commit
//!      (absent) ----------------> clean ---------------------> dirty <--+
//!         ^                        |  ^                          |      | commit (ranges)
//!         |        clock           |  |  write done              +------+
//!         +------------------------+  |                          |
//!                                     |      write begins        v
//!                                     +----------------------- writing
//!                          commit while writing: dirty and writing, image in the log
//!                          write failed: dirty again, with the older first-dirty position
//! ```
//!
//! Invariants:
//! - A page is in at most one buffer, and holds committed content only.
//! - A buffer that is dirty or being written is not given to another page.
//! - A clean buffer that is not being written equals the page on disk.
//! - A page read from disk enters the pool only if no page of its partition was written since the
//!   read began; otherwise the content may be older than the disk's.
//!
//! The pool is divided into partitions by a hash of the page; each has its own lock, descriptors of
//! 32 bytes, contents, hash chains and clock hand. Memory is not touched before it is used: a pool of
//! terabytes costs only address space.

mod partition;

use partition::Partition;
pub(crate) use partition::{Change, Picked};

use windlass_base::PageNumber;

use crate::dirty::{DirtyPages, WriteEnd};
use crate::error::{EngineError, Result};
use crate::log::Position;
use crate::sync::RwLock;

/// Number of a database in its instance, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DatabaseNumber(pub(crate) u32);

/// Identifies a page within an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PageKey {
    pub(crate) database: DatabaseNumber,
    pub(crate) page: PageNumber,
}

impl PageKey {
    /// The key in one word, which is never 0.
    fn to_word(self) -> u64 {
        u64::from(self.database.0) << 32 | u64::from(self.page.sqlite())
    }

    fn from_word(word: u64) -> Option<Self> {
        let page = PageNumber::from_sqlite(word as u32)?;
        let database = DatabaseNumber((word >> 32) as u32);
        Some(Self { database, page })
    }

    fn hash(self) -> u64 {
        let mixed = self.to_word().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ (mixed >> 32)
    }
}

/// Minimum pages of a partition, so that pages in use rarely fill it.
const PARTITION_PAGES_MIN: u64 = 64;
const PARTITIONS_MAX: u64 = 1024;

/// Descriptors a sweep visits before it releases the partition's lock for a moment.
const SWEEP_STEP: usize = 8192;

/// All buffers of an instance.
#[derive(Debug)]
pub(crate) struct Pool {
    partitions: Box<[RwLock<Partition>]>,
    pages: u64,
}

/// The result of a sweep over all descriptors.
#[derive(Debug, Default)]
pub(crate) struct Swept {
    /// Dirty pages of the database, in no order.
    pub(crate) dirty: Vec<PageNumber>,
    /// Pages of the database being written.
    pub(crate) writing: Vec<PageNumber>,
    pub(crate) visited: u64,
}

impl Pool {
    /// Of one buffer: four words.
    pub(crate) const DESCRIPTOR_BYTES: u64 = 4 * 8;

    /// Reserves a pool of `pages` buffers.
    pub(crate) fn new(pages: u64) -> Result<Self> {
        let invalid = || EngineError::Invalid(format!("a buffer pool of {pages} pages"));
        if pages < 8 {
            return Err(invalid());
        }
        let count = (pages / PARTITION_PAGES_MIN).clamp(1, PARTITIONS_MAX);
        let count = if count.is_power_of_two() {
            count
        } else {
            count.next_power_of_two() / 2
        };
        let mut partitions = Vec::new();
        for index in 0..count {
            let own = pages / count + u64::from(index < pages % count);
            let own = u32::try_from(own).map_err(|_| invalid())?;
            let partition = Partition::new(own).map_err(|error| {
                EngineError::Invalid(format!("a buffer pool of {pages} pages: {error}"))
            })?;
            partitions.push(RwLock::new(partition));
        }
        Ok(Self {
            partitions: partitions.into(),
            pages,
        })
    }

    /// Buffers in the pool.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    fn partition(&self, key: PageKey) -> &RwLock<Partition> {
        let index = key.hash() >> 48 & (self.partitions.len() as u64 - 1);
        &self.partitions[index as usize]
    }

    /// Copies a part of a page. If it is not in the pool, returns the partition's number of writes,
    /// to be passed to [`Pool::install_clean`] with the page read from disk.
    pub(crate) fn read(
        &self,
        key: PageKey,
        offset: usize,
        buffer: &mut [u8],
    ) -> std::result::Result<(), u64> {
        let partition = self.partition(key).read();
        match partition.find(key) {
            Some(slot) => {
                partition.touch(slot);
                let content = &partition.content(slot)[offset..offset + buffer.len()];
                buffer.copy_from_slice(content);
                Ok(())
            }
            None => Err(partition.writes()),
        }
    }

    /// Calls `look` with a page's content and, if it is dirty, its first-dirty position.
    pub(crate) fn look<T>(
        &self,
        key: PageKey,
        look: impl FnOnce(&[u8], Option<Position>) -> T,
    ) -> Option<T> {
        let partition = self.partition(key).read();
        let slot = partition.find(key)?;
        Some(look(partition.content(slot), partition.first_dirty(slot)))
    }

    /// Whether pages of the partition were written since the number was returned.
    pub(crate) fn was_written(&self, key: PageKey, writes: u64) -> bool {
        self.partition(key).read().writes() != writes
    }

    /// Installs a page read from disk, unless it is already in the pool, no buffer is free, or a
    /// page of its partition was written since. Returns false in the last case: the content may be
    /// stale.
    pub(crate) fn install_clean(&self, key: PageKey, content: &[u8], writes: u64) -> bool {
        let mut partition = self.partition(key).write();
        if partition.writes() != writes {
            return false;
        }
        if partition.find(key).is_none()
            && let Some(slot) = partition.allocate(key)
        {
            partition.content_mut(slot).copy_from_slice(content);
        }
        true
    }

    /// Installs the content that a commit gives a page, and puts the page on a dirty page list.
    /// Returns false if no buffer is free.
    pub(crate) fn install_dirty(
        &self,
        key: PageKey,
        content: &[u8],
        change: Change,
        dirty: &DirtyPages,
    ) -> bool {
        let mut partition = self.partition(key).write();
        match partition.install_dirty(key, content, change) {
            None => false,
            Some(false) => true,
            Some(true) => {
                dirty.add(change.scheduler, change.first, key.page);
                true
            }
        }
    }

    /// Starts to write a dirty page: copies its content, and moves it from its list to the pending
    /// list.
    pub(crate) fn pick(&self, key: PageKey, buffer: &mut [u8], dirty: &DirtyPages) -> Picked {
        let mut partition = self.partition(key).write();
        let picked = partition.pick(key, buffer);
        if let Picked::Page(change) = picked {
            dirty.begin_write(change.scheduler, key.page, change.first);
        }
        picked
    }

    /// Ends a write. If it failed, the page is dirty again from `restored` on.
    pub(crate) fn written(&self, key: PageKey, restored: Option<Position>, dirty: &DirtyPages) {
        let mut partition = self.partition(key).write();
        let again = partition.written(key, restored);
        if let (Some((scheduler, replaced)), Some(first)) = (again, restored) {
            dirty.relist(scheduler, key.page, first, replaced);
        }
        let end = restored.map_or(WriteEnd::Written, |_| WriteEnd::Failed);
        dirty.end_write(key.page, end);
    }

    /// Dirty pages in the partition of `key`, at most `limit`.
    pub(crate) fn dirty_neighbours(&self, key: PageKey, limit: usize) -> Vec<PageKey> {
        self.partition(key).read().dirty(limit)
    }

    /// Visits every descriptor of the pool and lists those of a database that are dirty or being
    /// written, as an automatic checkpoint does.
    pub(crate) fn sweep(&self, database: DatabaseNumber) -> Swept {
        let mut swept = Swept::default();
        for partition in &self.partitions {
            let mut start = 0;
            loop {
                let partition = partition.read();
                let Some(visited) = partition.sweep(database, start, SWEEP_STEP, &mut swept) else {
                    break;
                };
                start += visited;
            }
        }
        swept
    }

    /// The pages of a database in the pool, and whether each is dirty.
    pub(crate) fn cached(&self, database: DatabaseNumber) -> Vec<(PageNumber, bool)> {
        let mut pages = Vec::new();
        for partition in &self.partitions {
            pages.extend(partition.read().cached(database));
        }
        pages
    }

    /// Drops all pages of a closed database; no dirty page may still be needed.
    pub(crate) fn forget(&self, database: DatabaseNumber, pages: impl Iterator<Item = PageNumber>) {
        for page in pages {
            let key = PageKey { database, page };
            self.partition(key).write().remove(key);
        }
    }

    /// Drops a clean page that was written on disk without the pool. A concurrent read from disk
    /// does not install what it read.
    pub(crate) fn replaced(&self, key: PageKey) {
        let mut partition = self.partition(key).write();
        partition.count_write();
        partition.remove(key);
    }

    /// Touches every descriptor, so that a sweep costs as much as on a pool in use.
    pub(crate) fn touch_descriptors(&self) {
        for partition in &self.partitions {
            partition.read().touch_descriptors();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_base::page::PAGE_BYTES;

    const OWN: DatabaseNumber = DatabaseNumber(1);
    const OTHER: DatabaseNumber = DatabaseNumber(2);

    fn key(page: u32) -> PageKey {
        PageKey {
            database: OWN,
            page: PageNumber::from_sqlite(page).unwrap(),
        }
    }

    fn at(block: u32) -> Change {
        let position = Position::new(1, block);
        Change {
            first: position,
            end: position,
            scheduler: 0,
        }
    }

    #[test]
    fn a_dirty_page_is_never_evicted_and_a_clean_one_is() {
        let (pool, dirty) = (Pool::new(8).unwrap(), DirtyPages::new(1));
        let install =
            |page: u32| pool.install_dirty(key(page), &[page as u8; PAGE_BYTES], at(page), &dirty);
        assert!((1..=8).all(install));
        assert!(!install(9));
        let mut buffer = [0; PAGE_BYTES];
        let picked = pool.pick(key(3), &mut buffer, &dirty);
        assert_eq!(picked, Picked::Page(at(3)));
        assert!(!install(9), "being written");
        pool.written(key(3), None, &dirty);
        assert!(install(9));
        assert!(pool.read(key(3), 0, &mut buffer).is_err());
        pool.read(key(9), 0, &mut buffer).unwrap();
        assert_eq!(buffer, [9; PAGE_BYTES]);
        assert_eq!(pool.sweep(OWN).dirty.len(), 8);
        assert_eq!(pool.sweep(OTHER).dirty.len(), 0);
        assert_eq!((pool.sweep(OWN).visited, dirty.count()), (8, 8));
    }

    #[test]
    fn a_page_read_before_a_write_of_its_partition_is_not_taken() {
        let (pool, dirty) = (Pool::new(8).unwrap(), DirtyPages::new(1));
        let mut buffer = [0; PAGE_BYTES];
        let writes = pool.read(key(1), 0, &mut buffer).unwrap_err();
        pool.install_dirty(key(1), &[2; PAGE_BYTES], at(1), &dirty);
        pool.pick(key(1), &mut buffer, &dirty);
        pool.written(key(1), None, &dirty);
        pool.forget(OWN, PageNumber::all(1));
        assert!(pool.was_written(key(1), writes));
        assert!(!pool.install_clean(key(1), &[0; PAGE_BYTES], writes));
        assert!(pool.read(key(1), 0, &mut buffer).is_err());
    }

    #[test]
    fn a_change_during_a_write_keeps_the_page_dirty_from_the_change_on() {
        let (pool, dirty) = (Pool::new(8).unwrap(), DirtyPages::new(1));
        let mut buffer = [0; PAGE_BYTES];
        let first = |pool: &Pool| pool.look(key(1), |_, first| first).flatten();
        pool.install_dirty(key(1), &[1; PAGE_BYTES], at(1), &dirty);
        pool.pick(key(1), &mut buffer, &dirty);
        pool.install_dirty(key(1), &[2; PAGE_BYTES], at(9), &dirty);
        assert_eq!(dirty.redo_start(Position::new(2, 0)), at(1).first);
        assert_eq!(pool.pick(key(1), &mut buffer, &dirty), Picked::Writing);
        pool.written(key(1), None, &dirty);
        assert_eq!(first(&pool), Some(at(9).first));
        assert_eq!(dirty.redo_start(Position::new(2, 0)), at(9).first);
    }

    #[test]
    fn a_failed_write_makes_the_page_dirty_from_its_old_position() {
        let (pool, dirty) = (Pool::new(8).unwrap(), DirtyPages::new(1));
        let mut buffer = [0; PAGE_BYTES];
        pool.install_dirty(key(1), &[1; PAGE_BYTES], at(1), &dirty);
        pool.pick(key(1), &mut buffer, &dirty);
        pool.install_dirty(key(1), &[2; PAGE_BYTES], at(9), &dirty);
        pool.written(key(1), Some(at(1).first), &dirty);
        assert_eq!(dirty.redo_start(Position::new(2, 0)), at(1).first);
        assert_eq!((dirty.count(), dirty.failures()), (1, 1));
        pool.pick(key(1), &mut buffer, &dirty);
        pool.written(key(1), None, &dirty);
        assert_eq!((dirty.count(), buffer[0]), (0, 2));
    }
}
