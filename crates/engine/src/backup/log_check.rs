//! Checks the log of a log backup without applying it: pieces of whole blocks, in any order.
//!
//! Invariant: a set is good only if its blocks, taken together, continue the block that its description names, and
//! one another without a gap, up to the end in it.

use std::collections::BTreeMap;

use super::BackupDescription;
use super::follow::broken;
use crate::error::{EngineError, Result};
use crate::log::block::{BlockHeader, HEADER_BYTES};
use crate::log::reader::Chain;
use crate::log::record::Records;

/// The log of a backup, piece by piece.
#[derive(Debug)]
pub struct LogCheck {
    description: BackupDescription,
    /// By their offsets in the log of the set.
    pieces: BTreeMap<u64, Piece>,
}

/// Blocks that continue one another.
#[derive(Debug)]
struct Piece {
    bytes: u64,
    first: BlockHeader,
    last: BlockHeader,
}

impl LogCheck {
    pub fn new(description: BackupDescription) -> Self {
        Self {
            description,
            pieces: BTreeMap::new(),
        }
    }

    /// Checks a piece.
    ///
    /// # Errors
    /// It is not made of whole blocks of the database, or they do not continue one another.
    pub fn piece(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        let mut found: Option<(BlockHeader, BlockHeader)> = None;
        let mut chain = Chain::default();
        while !rest.is_empty() {
            let header = BlockHeader::parse(rest)
                .filter(|header| header.stored_bytes() <= rest.len())
                .ok_or_else(|| self.broken(found, "bytes that are not a block"))?;
            let records = &rest[HEADER_BYTES..HEADER_BYTES + header.payload as usize];
            if !header.covers(records) || header.guid != self.description.guid() {
                return Err(self.broken(found, "a checksum is wrong"));
            }
            if Records::new(records).any(|record| record.is_none()) {
                return Err(self.broken(found, super::follow::INVALID));
            }
            let is_next = found
                .is_none_or(|(_, last)| chain.admits(&header) && header.position >= last.end());
            if !is_next {
                return Err(self.broken(found, "a block is missing"));
            }
            chain.follow(&header);
            found = Some((found.map_or(header, |(first, _)| first), header));
            rest = &rest[header.stored_bytes()..];
        }
        if let Some((first, last)) = found {
            let bytes = bytes.len() as u64;
            self.pieces.insert(offset, Piece { bytes, first, last });
        }
        Ok(())
    }

    /// Checks all of them together.
    ///
    /// # Errors
    /// A block is missing.
    pub fn finish(&self) -> Result<()> {
        let mut chain = Chain::after(self.description.previous);
        let (mut reached, mut offset) = (self.description.header.redo, 0);
        for (&at, piece) in &self.pieces {
            let first = &piece.first;
            if at != offset || !chain.admits(first) || first.position < reached {
                let database = self.description.name();
                return Err(broken(database, reached, "a block is missing"));
            }
            chain.follow(&piece.last);
            (reached, offset) = (piece.last.end(), at + piece.bytes);
        }
        match reached == self.description.end() && chain.is_between_groups() {
            true => Ok(()),
            false => {
                let what = "it ends before the end of the backup";
                Err(broken(self.description.name(), reached, what))
            }
        }
    }

    fn broken(&self, found: Option<(BlockHeader, BlockHeader)>, what: &str) -> EngineError {
        let after = found.map_or(self.description.header.redo, |(_, last)| last.end());
        broken(self.description.name(), after, what)
    }
}
