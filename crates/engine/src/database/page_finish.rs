//! The pages of a restore that rolls forward, in a database in use: which they are, and how they end.
//!
//! Invariants:
//! - All pages are written or none: every check that can refuse comes before the first write.
//! - No commit, checkpoint or copy of the data files runs while pages are written. A page that is dirty in the pool is
//!   not written: its content there is that of the last commit, and gets to its file as always.
//! - Readers continue. During the write they see a page either as before or restored.
//! - A crash leaves each page as it was, restored, or torn; then the restore is ended again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use windlass_base::page::{PAGE_BYTES, checksum};
use windlass_base::{FilePage, Lsn, PageNumber};
use windlass_io::AlignedBuffer;

use super::Database;
use crate::backup::BackupDescription;
use crate::backup::page_roll::{PageRoll, PageRollBegin};
use crate::backup::roll_state::check_continued;
use crate::error::{EngineError, LogRefusal, Result};
use crate::log::Position;
use crate::log::block::HEADER_BYTES;
use crate::log::record::Records;

/// How a restore of pages has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PagesEnded {
    /// So many pages are restored.
    Written(u64),
    /// Nothing was written: log backups are needed up to here.
    LogNeeded(Lsn),
}

impl Database {
    /// Starts to restore `pages` from a full backup of this database, to be rolled forward with log backups and its log.
    ///
    /// # Errors
    /// [`EngineError::NoLogChain`], [`EngineError::LogRefused`] for a set of another history,
    /// [`EngineError::PageRefused`].
    pub fn begin_page_roll(
        &self,
        description: &BackupDescription,
        pages: &[FilePage],
    ) -> Result<PageRollBegin> {
        self.check_writable()?;
        self.check_page_roll(description)?;
        let mut wanted = BTreeMap::new();
        for &name in pages {
            wanted.insert(self.page_named(name)?, name);
        }
        Ok(PageRollBegin::new(description, wanted))
    }

    /// Fails if the log of this database does not lead from a backup to its last commit.
    fn check_page_roll(&self, description: &BackupDescription) -> Result<()> {
        let own = (self.guid, self.recovery_fork);
        let named = (self.name.as_str(), self.recovery_model());
        check_continued(named, self.log.tail(), own, description)
    }

    /// Rolls the pages forward to the last commit, if the log has the rest, and writes them. Waits up to `patience`
    /// for an open write transaction.
    ///
    /// # Errors
    /// Before anything is written: [`EngineError::Busy`], [`EngineError::BackupRunning`], pages that are damaged, those
    /// of [`Database::begin_page_roll`].
    pub fn finish_page_roll(
        self: &Arc<Self>,
        mut roll: PageRoll,
        patience: Duration,
    ) -> Result<PagesEnded> {
        let writer = self.writer.take_within(patience);
        let writer = writer.ok_or_else(|| self.busy())?;
        let checkpointing = self.checkpointer.lock();
        self.check_writable()?;
        self.check_page_roll(&roll.roll.state)?;
        // The checkpoint of a backup that starts now waits for this lock before the backup copies anything.
        if self.copies.any() {
            return Err(EngineError::BackupRunning {
                database: self.name.clone(),
            });
        }
        let tail = self
            .log
            .tail()
            .map_or(Position::default(), |tail| tail.start);
        if roll.roll.state.end() < tail {
            return Ok(PagesEnded::LogNeeded(tail.lsn(1)));
        }
        self.roll_to_end(&mut roll)?;
        let page_count = self.versions.latest().page_count;
        // What was cut off meanwhile is no page any more.
        roll.pages.retain(|page, _| page.is_within(page_count));
        let first = roll.pages.get(&PageNumber::FIRST);
        let first = first.and_then(|rolled| rolled.content.as_deref());
        roll.verify(match first {
            Some(first) => checksum::is_reserved(first),
            None => self.checksums.are_on(),
        })?;
        self.shared.dispenser.drain(self.number);
        let mut aligned = AlignedBuffer::new(PAGE_BYTES);
        let mut written = Vec::new();
        for (&page, rolled) in &roll.pages {
            let looked = self
                .shared
                .pool
                .look(self.key(page), |_, first| first.is_some());
            if let (Some(content), false) = (&rolled.content, looked == Some(true)) {
                aligned[..PAGE_BYTES].copy_from_slice(content);
                self.data.write(page, &aligned[..PAGE_BYTES])?;
                written.push(page);
            }
        }
        let synced = self.data.sync();
        synced.map_err(|error| self.log.fail(error))?;
        for &page in &written {
            self.shared.pool.replaced(self.key(page));
        }
        if roll.pages.contains_key(&PageNumber::FIRST) {
            self.note_checksums(&writer, page_count)?;
            // The header knows its first bytes.
            self.advance_redo(&checkpointing)?;
        }
        Ok(PagesEnded::Written(roll.pages.len() as u64))
    }

    /// Applies the log of the database from where the pages are. The caller has the writer's token.
    fn roll_to_end(&self, roll: &mut PageRoll) -> Result<()> {
        let end = self.log.next_tail().start;
        self.log.flush_to(end)?;
        let from = roll.roll.state.end();
        let mut reader = self.log.reader(from);
        if let Some(checksum) = roll.roll.reached.checksum {
            reader = reader.after(checksum);
        }
        let mut reached = from;
        while reached < end {
            let Some((block, bytes)) = reader.next()? else {
                break;
            };
            let records = &bytes[HEADER_BYTES..HEADER_BYTES + block.payload as usize];
            for record in Records::new(records) {
                let record = record.ok_or_else(|| EngineError::Corrupt {
                    path: self.log_path(),
                    what: format!("block {:?} has an invalid record", block.position),
                })?;
                roll.apply(&record)?;
            }
            reached = block.end();
        }
        match reached >= end {
            true => Ok(()),
            false => Err(EngineError::LogRefused {
                database: self.name.clone(),
                refusal: LogRefusal::Discontinuous {
                    reached: reached.lsn(1),
                },
            }),
        }
    }
}
