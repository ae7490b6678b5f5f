//! The one open write transaction.
//!
//! Invariant: the pages of a write transaction are private until commit; dropping it discards them.

use std::sync::Arc;
use std::time::Duration;

use windlass_base::{Lsn, PageNumber};

use super::Database;
use super::commit::Pages;
use super::read::ReadSnapshot;
use super::writer::WriterToken;
use crate::error::{EngineError, Result};
use crate::log::record::Mark;
use windlass_base::page::PAGE_BYTES;

impl Database {
    /// Starts the only write transaction, based on a snapshot.
    ///
    /// # Errors
    /// [`EngineError::Busy`] if one is open, [`EngineError::BusySnapshot`] if something was
    /// committed after the snapshot; neither waits.
    pub fn begin_write(self: &Arc<Self>, snapshot: &ReadSnapshot) -> Result<WriteTransaction> {
        self.check_writable()?;
        if !Arc::ptr_eq(self, &snapshot.database) {
            return Err(EngineError::Invalid(
                "a snapshot of another database".to_owned(),
            ));
        }
        let writer = self.writer_token()?;
        if self.versions.latest() != snapshot.commit {
            return Err(EngineError::BusySnapshot {
                database: self.name.clone(),
            });
        }
        Ok(WriteTransaction {
            writer,
            page_count: snapshot.commit.page_count,
            snapshot: snapshot.clone(),
            pages: Pages::new(),
            mark: None,
        })
    }
}

impl Database {
    /// Waits until it is this thread's turn to write and the last commit is on disk, in the order of those who wait,
    /// at most as long as `patience` and until `is_cancelled`. Whether the turn came: a transaction that begins
    /// soon, upon a new snapshot, is not refused.
    pub fn await_writer(
        self: &Arc<Self>,
        patience: Duration,
        is_cancelled: &dyn Fn() -> bool,
    ) -> bool {
        // A failure takes the database offline, and the beginning of a transaction says why.
        self.writer.wait(patience, is_cancelled) && self.begin_read().wait_durable().is_ok()
    }
}

/// The one open write transaction of a database. Dropping it without a commit discards it.
#[derive(Debug)]
pub struct WriteTransaction {
    // Dropped first: the next writer does not wait for the snapshot to end.
    writer: WriterToken,
    snapshot: ReadSnapshot,
    page_count: u32,
    pages: Pages,
    mark: Option<Mark>,
}

/// A transaction that is committed.
#[derive(Debug)]
pub struct Committed {
    pub lsn: Lsn,
    /// Exactly the committed state, even if another transaction commits right after it.
    pub snapshot: ReadSnapshot,
    /// When, in milliseconds since 1970, UTC, if the log has its mark.
    pub marked_ms: Option<u64>,
}

impl WriteTransaction {
    /// Gives it a mark, which a restore of log backups can stop at. It is in the log only if the transaction changes
    /// something, and in the recovery model FULL.
    pub fn set_mark(&mut self, mark: Option<Mark>) {
        self.mark = mark;
    }

    pub fn database(&self) -> &Arc<Database> {
        &self.snapshot.database
    }

    /// Pages, with the changes of this transaction.
    pub fn page_count(&self) -> u32 {
        self.page_count
    }

    /// Copies a page, with the changes of this transaction.
    pub fn read_page(&self, page: PageNumber, buffer: &mut [u8]) -> Result<()> {
        self.read_part(page, 0, buffer)
    }

    /// Copies a part of a page, from byte `offset` in it.
    pub fn read_part(&self, page: PageNumber, offset: usize, buffer: &mut [u8]) -> Result<()> {
        let inside = page.is_within(self.page_count) && offset + buffer.len() <= PAGE_BYTES;
        match self.pages.get(&page) {
            Some(content) if inside => {
                buffer.copy_from_slice(&content[offset..offset + buffer.len()]);
                Ok(())
            }
            None if inside && !page.is_within(self.snapshot.page_count()) => {
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

    /// Replaces a page with `content` of [`PAGE_BYTES`] bytes. A page after the last
    /// one extends the database; pages in between that are never written are zero.
    pub fn write_page(&mut self, page: PageNumber, content: &[u8]) -> Result<()> {
        if content.len() != PAGE_BYTES {
            return Err(EngineError::Invalid(format!(
                "page {page} with {} bytes; pages have {PAGE_BYTES}",
                content.len()
            )));
        }
        if !page.is_within(self.page_count) {
            self.truncate(page.sqlite())?;
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
        if let Some(end) = PageNumber::from_index(page_count) {
            let _cut = self.pages.split_off(&end);
        }
        // Data on disk after the end may come from an earlier, longer state.
        for page in (self.page_count..page_count).filter_map(PageNumber::from_index) {
            self.pages.insert(page, vec![0; PAGE_BYTES].into());
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
        Ok(self.commit_and_read()?.lsn)
    }

    /// Like [`WriteTransaction::commit`], and also starts a snapshot of the committed state.
    pub fn commit_and_read(mut self) -> Result<Committed> {
        let pages = std::mem::take(&mut self.pages);
        let database = Arc::clone(&self.snapshot.database);
        let base = self.snapshot.commit;
        let mark = self.mark.take();
        let published =
            database.publish(&self.writer, pages, base, self.page_count, mark.as_ref())?;
        // No other writer can have started: the last commit is this one.
        let committed = database.begin_read();
        drop(self);
        let lsn = database.acknowledge(published, committed.sequence())?;
        database.versions.set_durable(committed.commit);
        let marked = published.filter(|published| published.is_marked);
        Ok(Committed {
            lsn,
            snapshot: committed,
            marked_ms: marked.map(|published| published.unix_ms),
        })
    }
}
