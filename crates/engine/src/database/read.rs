//! Reads pages: of the current version, and of the commit that a snapshot shows.
//!
//! Invariants:
//! - A snapshot shows one commit for its whole life, whatever is committed meanwhile.
//! - A page read from disk is checked, if the database uses page checksums, before anybody sees it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use windlass_base::page::{PAGE_BYTES, checksum};
use windlass_base::{FileId, FilePage, PageNumber};
use windlass_io::AlignedBuffer;

use super::Database;
use super::writer::WriterToken;
use crate::error::{EngineError, Result};
use crate::versions::Commit;

/// Number of times a page is read again because it was being written, before it is returned without
/// being cached.
const READ_ATTEMPTS: usize = 16;

thread_local! {
    static PAGE: RefCell<AlignedBuffer> = RefCell::new(AlignedBuffer::new(PAGE_BYTES));
}

/// Whether a page must match its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checksum {
    Verified,
    /// The caller replaces the page, or repairs it from the log.
    Ignored,
}

impl Database {
    /// The state at the last commit, for the life of the snapshot. Never waits.
    ///
    /// The log of that commit may still be on its way to disk. All commits reach the disk in order,
    /// so a transaction based on it cannot survive a crash without it. A caller that reports what
    /// it read to the outside first calls [`ReadSnapshot::wait_durable`], as a commit does for
    /// itself.
    pub fn begin_read(self: &Arc<Self>) -> ReadSnapshot {
        ReadSnapshot {
            commit: self.versions.begin(),
            database: Arc::clone(self),
        }
    }

    /// The state at the last commit that is on disk: no crash can undo anything it shows. It is
    /// older than [`Database::begin_read`] only while a commit is being synced. Waits only for a
    /// commit so large that the versions it replaced were not kept.
    pub fn begin_read_durable(self: &Arc<Self>) -> ReadSnapshot {
        let snapshot = ReadSnapshot {
            commit: self.versions.begin_durable(),
            database: Arc::clone(self),
        };
        // A failure takes the database offline, and reads of the snapshot fail.
        let _failed = snapshot.wait_durable();
        snapshot
    }

    /// Number of the last commit known to be on disk: the one that [`Database::begin_read_durable`]
    /// shows or is about to show.
    pub fn durable_sequence(&self) -> u64 {
        self.commits.durable()
    }

    /// Copies a part of the current version of a page, from the pool or from disk.
    pub(super) fn read_current(
        &self,
        page: PageNumber,
        offset: usize,
        buffer: &mut [u8],
        check: Checksum,
    ) -> Result<()> {
        let key = self.key(page);
        for attempt in 0.. {
            let Err(writes) = self.shared.pool.read(key, offset, buffer) else {
                return Ok(());
            };
            let done = PAGE.with_borrow_mut(|content| -> Result<bool> {
                let content = &mut content[..PAGE_BYTES];
                self.data.read(page, content)?;
                self.figures.pages_read.fetch_add(1, Ordering::Relaxed);
                let damage = if check == Checksum::Verified && self.carries_checksum(page) {
                    checksum::mismatch(content)
                } else {
                    None
                };
                if let Some((expected, found)) = damage {
                    // A concurrent write may have been seen in part.
                    if self.shared.pool.was_written(key, writes) && attempt < READ_ATTEMPTS {
                        return Ok(false);
                    }
                    let damage = self.damaged(page, expected, found);
                    *self.damage.lock() = Some(damage.clone());
                    return Err(damage);
                }
                let kept = self.shared.pool.install_clean(key, content, writes);
                buffer.copy_from_slice(&content[offset..offset + buffer.len()]);
                Ok(kept || attempt >= READ_ATTEMPTS)
            })?;
            if done {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether the page must have a valid checksum on disk. A page that was cut off and is still
    /// needed by an older snapshot may date from before checksums were turned on.
    fn carries_checksum(&self, page: PageNumber) -> bool {
        self.checksums.are_on() && page.is_within(self.versions.latest().page_count)
    }

    pub(super) fn damaged(&self, page: PageNumber, expected: u64, found: u64) -> EngineError {
        let place = self.data.place(page);
        EngineError::PageChecksum {
            database: self.name.clone(),
            page,
            file_page: FilePage::at_byte(FileId::of_data(place.index), place.offset, PAGE_BYTES),
            path: self.data.path(place.index),
            expected,
            found,
        }
    }

    fn read_at(
        &self,
        commit: Commit,
        page: PageNumber,
        offset: usize,
        buffer: &mut [u8],
    ) -> Result<()> {
        self.check_online()?;
        if !page.is_within(commit.page_count) || offset + buffer.len() > PAGE_BYTES {
            return Err(EngineError::NoSuchPage {
                database: self.name.clone(),
                page,
                page_count: commit.page_count,
            });
        }
        if !self.versions.is_newest(commit.sequence)
            && self.read_version(commit, page, offset, buffer)
        {
            return Ok(());
        }
        let outcome = self.read_current(page, offset, buffer, Checksum::Verified);
        // A commit that started in the meantime saved the old content before replacing it.
        if !self.versions.is_newest(commit.sequence)
            && self.read_version(commit, page, offset, buffer)
        {
            return Ok(());
        }
        outcome
    }

    fn read_version(
        &self,
        commit: Commit,
        page: PageNumber,
        offset: usize,
        buffer: &mut [u8],
    ) -> bool {
        let found = self.versions.find(page, commit.sequence);
        if let Some(content) = &found {
            buffer.copy_from_slice(&content[offset..offset + buffer.len()]);
        }
        found.is_some()
    }

    /// Reads from page 1 whether the database uses page checksums.
    pub(super) fn note_checksums(&self, writer: &WriterToken, page_count: u32) -> Result<()> {
        let mut head = [0; 100];
        if page_count > 0 {
            self.read_current(PageNumber::FIRST, 0, &mut head, Checksum::Ignored)?;
        }
        self.checksums.note(writer, &head);
        Ok(())
    }

    /// Takes the last damaged page that a reader found, because SQLite passes on only that a read
    /// failed.
    pub fn take_damage(&self) -> Option<EngineError> {
        self.damage.lock().take()
    }
}

/// A database at one commit. Can be read from any thread.
#[derive(Debug)]
pub struct ReadSnapshot {
    pub(super) database: Arc<Database>,
    pub(super) commit: Commit,
}

impl Clone for ReadSnapshot {
    fn clone(&self) -> Self {
        self.database.versions.again(self.commit);
        Self {
            database: Arc::clone(&self.database),
            commit: self.commit,
        }
    }
}

impl Drop for ReadSnapshot {
    fn drop(&mut self) {
        self.database.versions.end(self.commit.sequence);
    }
}

impl ReadSnapshot {
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Pages of the database at this commit.
    pub fn page_count(&self) -> u32 {
        self.commit.page_count
    }

    /// Number of the commit; two snapshots of one database with the same number are equal.
    pub fn sequence(&self) -> u64 {
        self.commit.sequence
    }

    pub fn is_latest(&self) -> bool {
        self.database.versions.latest() == self.commit
    }

    /// Copies a page into `buffer` of [`PAGE_BYTES`] bytes.
    pub fn read_page(&self, page: PageNumber, buffer: &mut [u8]) -> Result<()> {
        self.read_part(page, 0, buffer)
    }

    /// Copies a part of a page, from byte `offset` in it.
    pub fn read_part(&self, page: PageNumber, offset: usize, buffer: &mut [u8]) -> Result<()> {
        self.database.read_at(self.commit, page, offset, buffer)
    }

    /// Waits until the commit it shows is on disk; at most for one sync of the log.
    pub fn wait_durable(&self) -> Result<()> {
        self.database.wait_durable(self.commit.sequence)
    }
}
