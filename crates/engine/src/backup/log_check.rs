//! Checks the log of a log backup without applying it: pieces of whole blocks, in any order.
//!
//! Invariant: a set is good only if its blocks, taken together, continue the block that its description names, and
//! one another without a gap, up to the end in it.

use std::collections::BTreeMap;

use windlass_base::Lsn;

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
    /// The first block seen at or behind each LSN that is asked for.
    asked: BTreeMap<Lsn, Option<BlockHeader>>,
    /// Offset, and LSN of the last block, up to which no piece is missing.
    without_gap: (u64, Lsn),
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
            asked: BTreeMap::new(),
            without_gap: (0, Lsn::ZERO),
        }
    }

    /// The same, which also finds what is before some LSNs within the log: [`LogCheck::before`].
    #[must_use]
    pub fn asking(mut self, lsns: impl IntoIterator<Item = Lsn>) -> Self {
        self.asked = lsns.into_iter().map(|lsn| (lsn, None)).collect();
        self
    }

    /// For each LSN that was asked for, the checksum of the last block before it, which that of a state is that ends there;
    /// `None` if that block does not end a group, or none behind it was seen.
    pub fn before(&self) -> BTreeMap<Lsn, Option<u64>> {
        let asked = self.asked.iter();
        let answer = |(lsn, block): (&Lsn, &Option<BlockHeader>)| {
            let first = block.filter(|block| block.first);
            (*lsn, first.map(|block| block.previous))
        };
        asked.map(answer).collect()
    }

    /// Whether the pieces so far tell all that was asked for.
    pub fn knows_before(&self) -> bool {
        let last = self.asked.last_key_value();
        last.is_none_or(|(lsn, _)| self.without_gap.1 >= *lsn)
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
            self.answer(found.map(|(_, last)| last), header);
            chain.follow(&header);
            found = Some((found.map_or(header, |(first, _)| first), header));
            rest = &rest[header.stored_bytes()..];
        }
        if let Some((first, last)) = found {
            let bytes = bytes.len() as u64;
            self.pieces.insert(offset, Piece { bytes, first, last });
        }
        while let Some(piece) = self.pieces.get(&self.without_gap.0) {
            self.without_gap = (self.without_gap.0 + piece.bytes, piece.last.position.lsn(1));
        }
        Ok(())
    }

    /// Takes a block, behind another one if that is known, as the first one behind the LSNs before it.
    fn answer(&mut self, last: Option<BlockHeader>, block: BlockHeader) {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let from = last.map_or(Unbounded, |last| Excluded(last.position.lsn(1)));
        let to = Included(block.position.lsn(1));
        let is_asked = last.is_none_or(|last| last.position < block.position);
        let asked = is_asked.then(|| self.asked.range_mut((from, to)));
        for first in asked.into_iter().flatten().map(|(_, first)| first) {
            if first.is_none_or(|first| first.position > block.position) {
                *first = Some(block);
            }
        }
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
