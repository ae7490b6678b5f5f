//! What readers and the writer hold: snapshots, and the one open write transaction.
//!
//! Invariants:
//! - A snapshot shows one commit for its whole life, whatever is committed meanwhile.
//! - The pages of a write transaction are private until commit; dropping it discards them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use windlass_base::Lsn;
use windlass_io::AlignedBuffer;

use super::Database;
use crate::error::{EngineError, Result};
use crate::options::PAGE_SIZE;
use crate::versions::Commit;
use windlass_base::page::checksum;

/// Number of times a page is read again because it was being written, before it is returned without
/// being cached.
const READ_ATTEMPTS: usize = 16;

thread_local! {
    static PAGE: RefCell<AlignedBuffer> = RefCell::new(AlignedBuffer::new(PAGE_SIZE));
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
        self.figures.durable_sequence.load(Ordering::Acquire)
    }

    /// Starts the only write transaction, based on a snapshot.
    ///
    /// # Errors
    /// [`EngineError::Busy`] if one is open, [`EngineError::BusySnapshot`] if something was
    /// committed after the snapshot; neither waits.
    pub fn begin_write(self: &Arc<Self>, snapshot: &ReadSnapshot) -> Result<WriteTransaction> {
        self.check_online()?;
        if !Arc::ptr_eq(self, &snapshot.database) {
            return Err(EngineError::Invalid(
                "a snapshot of another database".to_owned(),
            ));
        }
        if self.writing.swap(true, Ordering::Acquire) {
            return Err(EngineError::Busy {
                database: self.name.clone(),
            });
        }
        if self.versions.latest() != snapshot.commit {
            self.writing.store(false, Ordering::Release);
            return Err(EngineError::BusySnapshot {
                database: self.name.clone(),
            });
        }
        Ok(WriteTransaction {
            page_count: snapshot.commit.page_count,
            snapshot: snapshot.clone(),
            pages: BTreeMap::new(),
            open: true,
        })
    }

    /// Copies a part of the current version of a page, from the pool or from disk.
    pub(crate) fn read_current(
        &self,
        page: u32,
        offset: usize,
        buffer: &mut [u8],
        verify: bool,
    ) -> Result<()> {
        let key = self.key(page);
        for attempt in 0.. {
            let Err(writes) = self.shared.pool.read(key, offset, buffer) else {
                return Ok(());
            };
            let done = PAGE.with_borrow_mut(|content| -> Result<bool> {
                let content = &mut content[..PAGE_SIZE];
                self.data.read(page, content)?;
                self.figures.pages_read.fetch_add(1, Ordering::Relaxed);
                let damage = if verify && self.carries_checksum(page) {
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
    fn carries_checksum(&self, page: u32) -> bool {
        self.checksums.load(Ordering::Relaxed) && page <= self.versions.latest().page_count
    }

    pub(crate) fn damaged(&self, page: u32, expected: u64, found: u64) -> EngineError {
        let place = self.data.place(page);
        EngineError::PageChecksum {
            database: self.name.clone(),
            file: super::file_id(place.index),
            path: self.data.path(place.index),
            page,
            file_page: place.offset / PAGE_SIZE as u64,
            expected,
            found,
        }
    }

    fn read_at(&self, commit: Commit, page: u32, offset: usize, buffer: &mut [u8]) -> Result<()> {
        self.check_online()?;
        if page == 0 || page > commit.page_count || offset + buffer.len() > PAGE_SIZE {
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
        let outcome = self.read_current(page, offset, buffer, true);
        // A commit that started in the meantime saved the old content before replacing it.
        if !self.versions.is_newest(commit.sequence)
            && self.read_version(commit, page, offset, buffer)
        {
            return Ok(());
        }
        outcome
    }

    fn read_version(&self, commit: Commit, page: u32, offset: usize, buffer: &mut [u8]) -> bool {
        let found = self.versions.find(page, commit.sequence);
        if let Some(content) = &found {
            buffer.copy_from_slice(&content[offset..offset + buffer.len()]);
        }
        found.is_some()
    }
}

/// A database at one commit. Can be read from any thread.
#[derive(Debug)]
pub struct ReadSnapshot {
    database: Arc<Database>,
    commit: Commit,
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
    /// The database it belongs to.
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

    /// Whether nothing was committed since.
    pub fn is_latest(&self) -> bool {
        self.database.versions.latest() == self.commit
    }

    /// Copies page `page` (from 1) into `buffer` of [`PAGE_SIZE`] bytes.
    pub fn read_page(&self, page: u32, buffer: &mut [u8]) -> Result<()> {
        self.read_part(page, 0, buffer)
    }

    /// Copies a part of page `page`, from byte `offset` in it.
    pub fn read_part(&self, page: u32, offset: usize, buffer: &mut [u8]) -> Result<()> {
        self.database.read_at(self.commit, page, offset, buffer)
    }

    /// Waits until the commit it shows is on disk; at most for one sync of the log.
    pub fn wait_durable(&self) -> Result<()> {
        self.database.wait_durable(self.commit.sequence)
    }
}

/// The one open write transaction of a database. Dropping it without a commit discards it.
#[derive(Debug)]
pub struct WriteTransaction {
    pub(crate) snapshot: ReadSnapshot,
    pub(crate) page_count: u32,
    pub(crate) pages: BTreeMap<u32, Box<[u8]>>,
    open: bool,
}

impl WriteTransaction {
    /// The database it changes.
    pub fn database(&self) -> &Arc<Database> {
        &self.snapshot.database
    }

    /// Pages, with the changes of this transaction.
    pub fn page_count(&self) -> u32 {
        self.page_count
    }

    /// Copies page `page`, with the changes of this transaction.
    pub fn read_page(&self, page: u32, buffer: &mut [u8]) -> Result<()> {
        self.read_part(page, 0, buffer)
    }

    /// Copies a part of page `page`, from byte `offset` in it.
    pub fn read_part(&self, page: u32, offset: usize, buffer: &mut [u8]) -> Result<()> {
        let inside = page > 0 && page <= self.page_count && offset + buffer.len() <= PAGE_SIZE;
        match self.pages.get(&page) {
            Some(content) if inside => {
                buffer.copy_from_slice(&content[offset..offset + buffer.len()]);
                Ok(())
            }
            None if inside && page > self.snapshot.page_count() => {
                buffer.fill(0);
                Ok(())
            }
            None if inside => self.snapshot.read_part(page, offset, buffer),
            _ => Err(EngineError::NoSuchPage {
                database: self.snapshot.database.name.clone(),
                page,
                page_count: self.page_count,
            }),
        }
    }

    /// Replaces page `page` (from 1) with `content` of [`PAGE_SIZE`] bytes. A page after the last
    /// one extends the database; pages in between that are never written are zero.
    pub fn write_page(&mut self, page: u32, content: &[u8]) -> Result<()> {
        if page == 0 || content.len() != PAGE_SIZE {
            return Err(EngineError::Invalid(format!(
                "page {page} with {} bytes; pages are counted from 1 and have {PAGE_SIZE}",
                content.len()
            )));
        }
        if page > self.page_count {
            self.truncate(page)?;
        }
        match self.pages.get_mut(&page) {
            Some(kept) => kept.copy_from_slice(content),
            None => {
                self.pages.insert(page, content.into());
            }
        }
        Ok(())
    }

    /// Sets the number of pages; pages that are added are zero.
    pub fn truncate(&mut self, page_count: u32) -> Result<()> {
        let _cut = self.pages.split_off(&page_count.saturating_add(1));
        // Data on disk after the end may come from an earlier, longer state.
        for page in self.page_count + 1..=page_count {
            self.pages.insert(page, vec![0; PAGE_SIZE].into());
        }
        self.page_count = page_count;
        Ok(())
    }

    /// Makes all changes durable and visible, or none. Returns the log sequence number of the
    /// commit once it is on disk.
    ///
    /// The next writer may start before that: several commits share one sync of the log.
    ///
    /// # Errors
    /// [`EngineError::LogFull`], [`EngineError::FileFull`], [`EngineError::VersionsFull`] and
    /// [`EngineError::Offline`] are returned before anything changes: the transaction is discarded.
    /// After any other error the database is offline; whether the transaction was committed shows
    /// when it is opened again.
    pub fn commit(self) -> Result<Lsn> {
        Ok(self.commit_and_read()?.0)
    }

    /// Like [`WriteTransaction::commit`], and also starts a snapshot of exactly the committed
    /// state, even if another transaction commits right after it.
    pub fn commit_and_read(mut self) -> Result<(Lsn, ReadSnapshot)> {
        let pages = std::mem::take(&mut self.pages);
        let database = Arc::clone(&self.snapshot.database);
        let appended = database.commit_pages(pages, self.snapshot.commit, self.page_count)?;
        // No other writer can have started: the last commit is this one.
        let committed = database.begin_read();
        drop(self);
        let lsn = database.finish_commit(appended, committed.sequence())?;
        database.versions.set_durable(committed.commit);
        Ok((lsn, committed))
    }

    fn release(&mut self) {
        if std::mem::take(&mut self.open) {
            let writing = &self.snapshot.database.writing;
            writing.store(false, Ordering::Release);
        }
    }
}

impl Drop for WriteTransaction {
    fn drop(&mut self) {
        self.release();
    }
}
