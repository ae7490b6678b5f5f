//! Reads the log from a position to its end.
//!
//! The log ends where the chain of blocks breaks; [`find_end`] returns the end of the last complete
//! group. A read error of the disk is an error and never counts as the end.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_base::Guid;

use super::Position;
use super::block::{BlockHeader, HEADER_BYTES, stored_bytes};
use super::vlf::Vlf;
use crate::error::{EngineError, Result};
use crate::storage::{SECTOR_BYTES, StorageFile};

/// Bytes read from the file at once.
const WINDOW_BYTES: usize = 256 * 1024;

/// Iterates over the blocks of a log file.
#[derive(Debug)]
pub(crate) struct LogReader {
    file: Arc<dyn StorageFile>,
    path: PathBuf,
    guid: Guid,
    vlfs: HashMap<u32, (u64, u32)>,
    position: Position,
    chain: Chain,
    window: Vec<u8>,
    window_at: Option<(u32, u64)>,
}

/// What the next block must match.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Chain {
    /// Checksum of the last block; `None` before the first.
    pub(crate) previous: Option<u64>,
    pub(crate) epoch: u32,
    in_group: bool,
}

impl Chain {
    /// Continues a block with this checksum.
    pub(crate) fn after(previous: u64) -> Self {
        Self {
            previous: Some(previous),
            ..Self::default()
        }
    }

    /// Whether the last block ended its group.
    pub(crate) fn is_between_groups(&self) -> bool {
        !self.in_group
    }

    /// Whether `header` may follow.
    pub(crate) fn admits(&self, header: &BlockHeader) -> bool {
        header.first != self.in_group
            && self
                .previous
                .is_none_or(|previous| previous == header.previous && header.epoch >= self.epoch)
    }

    /// Accepts `header` as the last block.
    pub(crate) fn follow(&mut self, header: &BlockHeader) {
        *self = Self {
            previous: Some(header.checksum),
            epoch: header.epoch,
            in_group: !header.last,
        };
    }
}

impl LogReader {
    pub(crate) fn new(
        file: Arc<dyn StorageFile>,
        path: &Path,
        guid: Guid,
        vlfs: &[Vlf],
        position: Position,
    ) -> Self {
        Self {
            file,
            path: path.to_owned(),
            guid,
            vlfs: vlfs
                .iter()
                .filter(|vlf| vlf.sequence != 0)
                .map(|vlf| (vlf.sequence, (vlf.offset, vlf.blocks)))
                .collect(),
            position,
            chain: Chain::default(),
            window: Vec::new(),
            window_at: None,
        }
    }

    /// Of the log file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The same, if the block before has this checksum.
    pub(crate) fn after(mut self, previous: u64) -> Self {
        self.chain = Chain::after(previous);
        self
    }

    /// The next block, header and records as stored; `None` at the end of the chain.
    pub(crate) fn next(&mut self) -> Result<Option<(BlockHeader, &[u8])>> {
        let next_file = Position::new(self.position.vlf().wrapping_add(1), 1);
        let mut found = None;
        for position in [self.position, next_file] {
            if let Some(header) = self.look_at(position)? {
                found = Some(header);
                break;
            }
        }
        let Some(header) = found else {
            return Ok(None);
        };
        self.chain.follow(&header);
        self.position = header.end();
        let start = self.window_offset(header.position);
        Ok(Some((
            header,
            &self.window[start..start + header.stored_bytes()],
        )))
    }

    fn window_offset(&self, position: Position) -> usize {
        let at = self.window_at.map_or(0, |(_, offset)| offset);
        (u64::from(position.block()) * SECTOR_BYTES as u64 - at) as usize
    }

    fn look_at(&mut self, position: Position) -> Result<Option<BlockHeader>> {
        let Some(&(_, blocks)) = self.vlfs.get(&position.vlf()) else {
            return Ok(None);
        };
        if position.block() == 0 || position.block() >= blocks {
            return Ok(None);
        }
        self.fill(position, HEADER_BYTES)?;
        let start = self.window_offset(position);
        let Some(header) = BlockHeader::parse(&self.window[start..]) else {
            return Ok(None);
        };
        let sectors = (header.stored_bytes() / SECTOR_BYTES) as u64;
        if header.position != position
            || header.guid != self.guid
            || !self.chain.admits(&header)
            || u64::from(position.block()) + sectors > u64::from(blocks)
        {
            return Ok(None);
        }
        self.fill(position, stored_bytes(header.payload as usize))?;
        let start = self.window_offset(position) + HEADER_BYTES;
        let records = &self.window[start..start + header.payload as usize];
        Ok(header.covers(records).then_some(header))
    }

    /// Reads `bytes` from `position` on into the window.
    fn fill(&mut self, position: Position, bytes: usize) -> Result<()> {
        let offset = u64::from(position.block()) * SECTOR_BYTES as u64;
        if let Some((vlf, at)) = self.window_at
            && vlf == position.vlf()
            && offset >= at
            && offset + bytes as u64 <= at + self.window.len() as u64
        {
            return Ok(());
        }
        let (start, blocks) = self.vlfs[&position.vlf()];
        let length = (u64::from(blocks) * SECTOR_BYTES as u64 - offset).min(WINDOW_BYTES as u64);
        self.window.clear();
        self.window.resize(length as usize, 0);
        // If the file is shorter than its parts say, the missing bytes read as zeros, which are not
        // a valid block.
        self.file
            .read_at(&mut self.window, start + offset)
            .map_err(|error| EngineError::io("read", &self.path, error))?;
        self.window_at = Some((position.vlf(), offset));
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct LogEnd {
    /// After the last complete group.
    pub(crate) position: Position,
    /// Checksum of its last block.
    pub(crate) previous: u64,
    /// Highest epoch seen.
    pub(crate) epoch: u32,
}

/// Finds the end of the last complete group; returns `start` if there is none.
pub(crate) fn find_end(mut reader: LogReader, start: Position) -> Result<LogEnd> {
    let mut end = LogEnd {
        position: start,
        previous: 0,
        epoch: 0,
    };
    while let Some((header, _)) = reader.next()? {
        end.epoch = end.epoch.max(header.epoch);
        if header.last {
            end.position = header.end();
            end.previous = header.checksum;
        }
    }
    Ok(end)
}

/// Reads the sequence numbers of all virtual log files from their first sectors.
pub(crate) fn load_sequences(
    file: &dyn StorageFile,
    path: &Path,
    guid: Guid,
    vlfs: &mut [Vlf],
) -> Result<()> {
    for vlf in vlfs {
        let mut sector = [0; SECTOR_BYTES];
        file.read_at(&mut sector, vlf.offset)
            .map_err(|error| EngineError::io("read", path, error))?;
        vlf.sequence = Vlf::parse(&sector, guid).unwrap_or(0);
    }
    Ok(())
}
