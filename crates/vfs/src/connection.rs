//! One SQLite connection to one engine database: the meaning of its locks, reads and writes.
//!
//! Neighbours: `file` translates the C calls; the engine stores the pages.
//!
//! # The states of a transaction
//!
//! ```text
//! NONE --lock(SHARED)--> SHARED ------lock(RESERVED)------> RESERVED .. EXCLUSIVE
//!  ^     snapshot begins  | ^           write transaction begins       |
//!  |                      | |                                          | write, truncate
//!  +----unlock(NONE)------+ +-----unlock(SHARED): drops what is left---+ commit (FCNTL_SYNC)
//! ```
//!
//! # Invariants
//!
//! 1. All reads between SHARED and NONE are of one snapshot, or of the transaction built on it.
//! 2. SQLite's page cache and `snapshot` show the same state: after a commit `snapshot` is replaced by
//!    exactly the committed state, never a later one.
//! 3. A page enters the database only by `commit`; every other transition drops the transaction.
//! 4. After a failed commit, SQLite writes the old pages back. The transaction is gone, so they are
//!    already in place: `Failed` ignores these writes instead of using log for them.
//! 5. SQLite keeps its page cache between transactions only if sixteen bytes of page 1 (change
//!    counter, size, freelist) are unchanged. Here the commit number decides the answer: it is right
//!    even if the bytes repeat, and needs no page read if the commit is still the same.

use std::ffi::c_int;
use std::sync::Arc;
use std::time::Instant;

use windlass_base::{Lsn, PAGE_BYTES, PageNumber};
use windlass_engine::{Committed, Database, Mark, ReadSnapshot, WriteTransaction};

use crate::abi;
use crate::error::{Result, VfsError};
use crate::snapshots::Snapshots;

/// The bytes of page 1 by which SQLite checks whether its cache is current: change counter, size,
/// freelist.
const VERSION_OFFSET: usize = 24;
const VERSION_BYTES: usize = 16;
/// Where page 1 repeats the change counter for which its size field is valid.
const VALID_FOR_OFFSET: usize = 92;
const HEADER_BYTES: usize = 100;

/// A commit of more written pages than this first releases the snapshot of its own connection: the
/// engine keeps the old versions of replaced pages while a snapshot may need them, and limits their
/// total size.
const LARGE_PAGES: usize = 64;

type Version = [u8; VERSION_BYTES];

/// The state of the open write transaction.
#[derive(Debug)]
enum Writing {
    Not,
    /// Open; pages may have been written.
    Open(Box<Changes>),
    /// Its commit failed; SQLite's writes to undo it are ignored.
    Failed,
}

#[derive(Debug)]
struct Changes {
    transaction: WriteTransaction,
    /// Pages written, in order, with repetitions.
    written: Vec<PageNumber>,
    /// The first bytes of page 1, if it was written.
    header: Option<[u8; HEADER_BYTES]>,
}

#[derive(Debug)]
pub(crate) struct Connection {
    snapshots: Arc<Snapshots>,
    lock: c_int,
    snapshot: Option<Arc<ReadSnapshot>>,
    writing: Writing,
    /// The commit that SQLite's page cache shows, if known.
    cached_commit: Option<u64>,
    /// The sixteen bytes that SQLite saw last.
    cached_version: Version,
    /// Set if the snapshot is later than what SQLite has read; nothing may be read then.
    is_lost: bool,
    /// When it last yielded the CPU.
    offered: Option<Instant>,
    last_error: Option<String>,
    /// Of the next commit.
    mark: Option<Mark>,
    /// The last commit with a mark: its LSN, and its time in milliseconds since 1970, UTC.
    marked: Option<(Lsn, u64)>,
}

impl Connection {
    pub(crate) fn new(snapshots: Arc<Snapshots>) -> Self {
        Self {
            snapshots,
            lock: abi::LOCK_NONE,
            snapshot: None,
            writing: Writing::Not,
            cached_commit: None,
            cached_version: [0; VERSION_BYTES],
            is_lost: false,
            offered: None,
            last_error: None,
            mark: None,
            marked: None,
        }
    }

    /// Sets the mark of the next commit that changes something, or none.
    pub(crate) fn set_mark(&mut self, mark: Option<Mark>) {
        self.mark = mark;
        self.marked = None;
    }

    /// The commit that got the mark: its LSN, and its time in milliseconds since 1970, UTC.
    pub(crate) fn marked(&self) -> Option<(Lsn, u64)> {
        self.marked
    }

    pub(crate) fn database(&self) -> &Arc<Database> {
        self.snapshots.database()
    }

    /// The lock that SQLite holds, as SQLite numbers it.
    pub(crate) fn lock_level(&self) -> c_int {
        self.lock
    }

    /// Stores an error for `PRAGMA windlass_last_error`.
    pub(crate) fn remember(&mut self, error: &VfsError) {
        self.last_error = Some(error.to_string());
    }

    pub(crate) fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// Raises the lock. Never waits: readers do not block writers, and a second writer is refused.
    ///
    /// # Errors
    /// `Busy` if another connection writes; `BusySnapshot` if the snapshot is no longer the newest
    /// state, because a write could then be based on outdated reads.
    pub(crate) fn lock(&mut self, level: c_int) -> Result<()> {
        if level <= self.lock {
            return Ok(());
        }
        if self.snapshot.is_none() {
            self.snapshots.offer_processor(&mut self.offered);
            self.snapshot = Some(self.snapshots.begin());
        }
        if level >= abi::LOCK_RESERVED && self.lock < abi::LOCK_RESERVED {
            self.begin_write()?;
        }
        self.lock = level;
        Ok(())
    }

    /// Lowers the lock; discards a transaction that was not committed.
    pub(crate) fn unlock(&mut self, level: c_int) {
        if level >= self.lock {
            return;
        }
        match std::mem::replace(&mut self.writing, Writing::Not) {
            Writing::Open(changes) if changes.written.is_empty() => {}
            Writing::Not => {}
            Writing::Open(_) | Writing::Failed => self.cached_commit = None,
        }
        if level == abi::LOCK_NONE {
            self.snapshot = None;
            self.is_lost = false;
        }
        self.lock = level;
    }

    fn begin_write(&mut self) -> Result<&mut Changes> {
        let snapshot = self.snapshot.as_ref().ok_or_else(|| {
            misuse(
                self.database(),
                "a write without a lock; a read lock comes first",
            )
        })?;
        let transaction = self.database().begin_write(snapshot)?;
        self.writing = Writing::Open(Box::new(Changes {
            transaction,
            written: Vec::new(),
            header: None,
        }));
        match &mut self.writing {
            Writing::Open(changes) => Ok(changes),
            Writing::Not | Writing::Failed => {
                Err(misuse(self.snapshots.database(), "no transaction"))
            }
        }
    }

    /// Bytes in the database as this connection sees it.
    pub(crate) fn size(&self) -> u64 {
        let pages = match (&self.writing, &self.snapshot) {
            (Writing::Open(changes), _) => changes.transaction.page_count(),
            (_, Some(snapshot)) => snapshot.page_count(),
            (_, None) => self.snapshots.begin().page_count(),
        };
        u64::from(pages) * PAGE_BYTES as u64
    }

    /// Reads at `offset`; returns how many bytes exist there. The rest of `buffer` stays unchanged.
    pub(crate) fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let asks_version = offset == VERSION_OFFSET as u64 && buffer.len() == VERSION_BYTES;
        if asks_version && self.lock == abi::LOCK_SHARED {
            return self.read_version(buffer);
        }
        let done = self.read_range(buffer, offset)?;
        if offset == 0 && done == PAGE_BYTES && self.lock >= abi::LOCK_SHARED {
            self.cached_version
                .copy_from_slice(&buffer[VERSION_OFFSET..VERSION_OFFSET + VERSION_BYTES]);
            if matches!(self.writing, Writing::Not) {
                self.cached_commit = self.snapshot.as_deref().map(ReadSnapshot::sequence);
            }
        }
        Ok(done)
    }

    fn read_range(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        if self.is_lost {
            let what = "the state that was read is no longer available after a failed commit; \
                        start again";
            return Err(misuse(self.database(), what));
        }
        let end = self.size().min(offset + buffer.len() as u64);
        let own;
        let snapshot = match &self.snapshot {
            Some(snapshot) => snapshot,
            None => {
                own = self.snapshots.begin();
                &own
            }
        };
        let mut done = 0;
        while offset + (done as u64) < end {
            let position = offset + done as u64;
            let page = page_number(position, self.database())?;
            let within = (position % PAGE_BYTES as u64) as usize;
            let length = (PAGE_BYTES - within).min((end - position) as usize);
            let part = &mut buffer[done..done + length];
            match &self.writing {
                Writing::Open(changes) => changes.transaction.read_part(page, within, part)?,
                Writing::Not | Writing::Failed => snapshot.read_part(page, within, part)?,
            }
            done += length;
        }
        Ok(done)
    }

    /// Answers SQLite's check whether its page cache still shows the database.
    fn read_version(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let commit = self.snapshot.as_deref().map(ReadSnapshot::sequence);
        if commit.is_some() && commit == self.cached_commit {
            buffer.copy_from_slice(&self.cached_version);
            return Ok(VERSION_BYTES);
        }
        let done = self.read_range(buffer, VERSION_OFFSET as u64)?;
        if done == VERSION_BYTES && buffer == self.cached_version {
            for byte in buffer.iter_mut() {
                *byte = !*byte;
            }
        }
        // SQLite compares with what it read in page 1, drops its cache if that differs, and reads
        // page 1 next; that read ties `cached_version` to this commit.
        Ok(done)
    }

    pub(crate) fn write(&mut self, content: &[u8], offset: u64) -> Result<()> {
        if content.len() != PAGE_BYTES || !offset.is_multiple_of(PAGE_BYTES as u64) {
            return Err(VfsError::NotAPage {
                database: self.database().name().to_owned(),
                bytes: content.len(),
                offset,
            });
        }
        let page = page_number(offset, self.database())?;
        let Some(changes) = self.changes()? else {
            return Ok(());
        };
        changes.transaction.write_page(page, content)?;
        changes.written.push(page);
        if page == PageNumber::FIRST {
            check_header(&changes.transaction, content)?;
            let mut header = [0; HEADER_BYTES];
            header.copy_from_slice(&content[..HEADER_BYTES]);
            changes.header = Some(header);
            self.cached_version
                .copy_from_slice(&content[VERSION_OFFSET..VERSION_OFFSET + VERSION_BYTES]);
        }
        Ok(())
    }

    /// The open transaction; `None` while a failed one is being undone.
    ///
    /// SQLite may write after a commit without a new lock: with `locking_mode=EXCLUSIVE`, or to
    /// undo a commit because another database of the same transaction failed.
    fn changes(&mut self) -> Result<Option<&mut Changes>> {
        if self.lock < abi::LOCK_RESERVED {
            return Err(misuse(self.database(), "a write without a write lock"));
        }
        match self.writing {
            Writing::Failed => Ok(None),
            Writing::Not => self.begin_write().map(Some),
            Writing::Open(ref mut changes) => Ok(Some(changes)),
        }
    }

    pub(crate) fn truncate(&mut self, bytes: u64) -> Result<()> {
        let page_count = bytes.div_ceil(PAGE_BYTES as u64);
        let page_count = u32::try_from(page_count)
            .map_err(|_| misuse(self.database(), "more pages than SQLite can have"))?;
        if self.size() == bytes {
            return Ok(());
        }
        let after_commit = matches!(self.writing, Writing::Not);
        let Some(changes) = self.changes()? else {
            return Ok(());
        };
        changes.transaction.truncate(page_count)?;
        if after_commit {
            // The commit left pages beyond the size in its header; no other sync will follow.
            self.commit()?;
        }
        Ok(())
    }

    /// Commits what was written, durably.
    ///
    /// # Errors
    /// The engine's. Nothing of the transaction remains then.
    pub(crate) fn commit(&mut self) -> Result<()> {
        let Writing::Open(mut changes) = std::mem::replace(&mut self.writing, Writing::Not) else {
            return Ok(());
        };
        if self.is_undone(&changes)? {
            self.cached_commit = None;
            return Ok(());
        }
        let base = self.snapshot.as_deref().map(ReadSnapshot::sequence);
        if changes.written.len() > LARGE_PAGES {
            self.snapshot = None;
        }
        let mark = self.mark.take();
        let is_marking = mark.is_some();
        changes.transaction.set_mark(mark);
        let committing = self.snapshots.committing();
        let result = match cut_to_header(&mut changes) {
            Ok(()) => changes
                .transaction
                .commit_and_read()
                .map_err(VfsError::from),
            Err(error) => Err(error),
        };
        drop(committing);
        match result {
            Ok(Committed {
                lsn,
                snapshot,
                marked_ms,
            }) => {
                if is_marking {
                    self.marked = marked_ms.map(|unix_ms| (lsn, unix_ms));
                }
                self.cached_commit = Some(snapshot.sequence());
                self.snapshot = Some(self.snapshots.share(snapshot));
                Ok(())
            }
            Err(error) => {
                let snapshots = &self.snapshots;
                let snapshot = self.snapshot.get_or_insert_with(|| snapshots.begin());
                self.is_lost = Some(snapshot.sequence()) != base;
                self.writing = Writing::Failed;
                self.cached_commit = None;
                Err(error)
            }
        }
    }

    /// Whether the transaction changes nothing. A ROLLBACK after pages were spilled writes all old
    /// pages back and ends with a sync, like a commit.
    ///
    /// A commit changes the change counter (unless SQLite locks exclusively), so pages are rarely
    /// compared in vain.
    fn is_undone(&self, changes: &Changes) -> Result<bool> {
        let Some(snapshot) = &self.snapshot else {
            return Ok(false);
        };
        let page_count = snapshot.page_count();
        if page_count != changes.transaction.page_count() {
            return Ok(false);
        }
        if page_count == 0 {
            return Ok(true);
        }
        if let Some(header) = &changes.header {
            let mut counter = [0; 4];
            snapshot.read_part(PageNumber::FIRST, VERSION_OFFSET, &mut counter)?;
            if header[VERSION_OFFSET..VERSION_OFFSET + 4] != counter {
                return Ok(false);
            }
        }
        let (mut before, mut after) = ([0; PAGE_BYTES], [0; PAGE_BYTES]);
        let written = changes.written.iter().copied();
        for page in written.filter(|page| page.is_within(page_count)) {
            snapshot.read_page(page, &mut before)?;
            changes.transaction.read_page(page, &mut after)?;
            if before != after {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Refuses a first page that declares another page size than the engine's.
fn check_header(transaction: &WriteTransaction, first_page: &[u8]) -> Result<()> {
    let found = u32::from(first_page[16]) << 8 | u32::from(first_page[17]) << 16;
    if found as usize == PAGE_BYTES || !first_page.starts_with(b"SQLite format 3\0") {
        return Ok(());
    }
    Err(VfsError::PageSize {
        database: transaction.database().name().to_owned(),
        found,
    })
}

/// Drops the pages beyond the size in page 1; SQLite itself does so only after the commit.
fn cut_to_header(changes: &mut Changes) -> Result<()> {
    let Some(header) = &changes.header else {
        return Ok(());
    };
    let word = |offset: usize| {
        u32::from_be_bytes([
            header[offset],
            header[offset + 1],
            header[offset + 2],
            header[offset + 3],
        ])
    };
    let page_count = word(VERSION_OFFSET + 4);
    let is_valid = word(VERSION_OFFSET) == word(VALID_FOR_OFFSET);
    if is_valid && page_count > 0 && page_count < changes.transaction.page_count() {
        changes.transaction.truncate(page_count)?;
    }
    Ok(())
}

fn page_number(offset: u64, database: &Database) -> Result<PageNumber> {
    PageNumber::at_byte(offset, PAGE_BYTES)
        .ok_or_else(|| misuse(database, "more pages than SQLite can have"))
}

fn misuse(database: &Database, what: &'static str) -> VfsError {
    VfsError::Misuse {
        database: database.name().to_owned(),
        what,
    }
}
