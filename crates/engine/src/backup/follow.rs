//! Follows the log of a backup: turns bytes, in pieces of any size, into page records.
//!
//! Invariant: each block is checked and must chain to the block before it; the log must reach the
//! end named in the description, or the restore does not finish.

use windlass_base::{Guid, PageNumber};

use super::BackupDescription;
use crate::error::{EngineError, Result};
use crate::log::Position;
use crate::log::block::{BlockHeader, HEADER_BYTES};
use crate::log::reader::Chain;
use crate::log::record::{Record, Records};

/// Called with each page record.
pub(crate) type OnPage<'a> = &'a mut dyn FnMut(PageNumber, &Record<'_>) -> Result<()>;

/// Called with each block, and its records as stored.
pub(crate) type OnBlock<'a> = &'a mut dyn FnMut(&BlockHeader, &[u8]) -> Result<()>;

/// The position reached in the log of a backup.
#[derive(Debug)]
pub(crate) struct LogFollower {
    database: String,
    guid: Guid,
    end: Position,
    chain: Chain,
    reached: Position,
    partial: Vec<u8>,
}

impl LogFollower {
    /// Starts at the first record that the backup needs.
    pub(crate) fn new(description: &BackupDescription) -> Self {
        Self {
            database: description.header.name.clone(),
            guid: description.header.guid,
            end: description.end(),
            // A log backup says which block its first one continues.
            chain: match description.is_log() {
                true => Chain::after(description.previous),
                false => Chain::default(),
            },
            reached: description.header.redo,
            partial: Vec::new(),
        }
    }

    /// Skips the log, because an earlier restore already replayed it.
    pub(crate) fn skip(&mut self) {
        self.reached = self.end;
    }

    /// Checksum of the last block; `None` before the first.
    pub(crate) fn checksum(&self) -> Option<u64> {
        self.chain.previous
    }

    /// Takes the next bytes of the log and passes on the page records that are complete.
    pub(crate) fn feed(&mut self, bytes: &[u8], on_page: OnPage<'_>) -> Result<()> {
        self.feed_records(bytes, &mut |record| match *record {
            Record::PageImage { page, .. } | Record::PageRanges { page, .. } => {
                on_page(page, record)
            }
            _ => Ok(()),
        })
    }

    /// The same with all records.
    pub(crate) fn feed_records(
        &mut self,
        bytes: &[u8],
        on_record: &mut dyn FnMut(&Record<'_>) -> Result<()>,
    ) -> Result<()> {
        let database = self.database.clone();
        self.feed_blocks(bytes, &mut |header, records| {
            for record in Records::new(records) {
                let record = record.ok_or_else(|| broken(&database, header.position, INVALID))?;
                on_record(&record)?;
            }
            Ok(())
        })
    }

    /// The same with whole blocks.
    pub(crate) fn feed_blocks(&mut self, bytes: &[u8], on_block: OnBlock<'_>) -> Result<()> {
        let mut input = std::mem::take(&mut self.partial);
        input.extend_from_slice(bytes);
        let mut rest = input.as_slice();
        while let Some(header) = BlockHeader::parse(rest) {
            let Some(block) = rest.get(..header.stored_bytes()) else {
                break;
            };
            self.follow(&header, block, on_block)?;
            rest = &rest[block.len()..];
        }
        if rest.len() >= HEADER_BYTES && BlockHeader::parse(rest).is_none() {
            return Err(self.broken("bytes that are not a block"));
        }
        self.partial = rest.to_vec();
        Ok(())
    }

    fn follow(&mut self, header: &BlockHeader, block: &[u8], on_block: OnBlock<'_>) -> Result<()> {
        let records = &block[HEADER_BYTES..HEADER_BYTES + header.payload as usize];
        if !header.covers(records) || header.guid != self.guid {
            return Err(self.broken("a checksum is wrong"));
        }
        if !self.chain.admits(header) || header.position < self.reached {
            return Err(self.broken("a block is missing"));
        }
        on_block(header, records)?;
        self.chain.follow(header);
        self.reached = header.end();
        Ok(())
    }

    /// Fails if the log did not reach the end of the backup.
    pub(crate) fn check_end(&self) -> Result<()> {
        if self.reached == self.end && self.partial.is_empty() && self.chain.is_between_groups() {
            return Ok(());
        }
        Err(self.broken("it ends before the end of the backup"))
    }

    fn broken(&self, what: &str) -> EngineError {
        broken(&self.database, self.reached, what)
    }
}

/// Of a record.
pub(crate) const INVALID: &str = "an invalid record";

/// The log of a backup is damaged after a position.
pub(crate) fn broken(database: &str, after: Position, what: &str) -> EngineError {
    EngineError::Invalid(format!(
        "the log of the backup of database '{database}' is damaged after {after:?}: {what}"
    ))
}
