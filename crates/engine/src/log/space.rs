//! The space of the log: which virtual log files are in use, and where the blocks of a group go.
//!
//! Invariants:
//! - All blocks are placed before anything is written; a group that does not fit changes nothing.
//! - A virtual log file at or above the floor is never reused, nor is the current one.

use std::collections::BTreeMap;

use windlass_base::Guid;

use super::block::{BLOCK_BYTES_MAX, HEADER_BYTES, stored_bytes};
use super::vlf::Vlf;
use super::writer::NoRoom;
use super::{LogReuseWait, Position, Tail};
use crate::storage::SECTOR_BYTES;

#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    pub(super) index: usize,
    pub(super) block: u32,
    pub(super) sequence: u32,
}

/// Bytes of a log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogUsage {
    pub(crate) used: u64,
    pub(crate) size: u64,
}

impl LogUsage {
    pub(crate) fn exceeds(self, percent: u64) -> bool {
        self.used * 100 > self.size * percent
    }
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) vlfs: Vec<Vlf>,
    pub(super) cursor: Cursor,
    pub(super) previous: u64,
    pub(super) epoch: u32,
    /// Virtual log files below this number are free.
    pub(super) floor: u32,
    /// Positions that readers still need, by the number of the hold.
    pub(super) holds: BTreeMap<u64, Position>,
    pub(super) next_hold: u64,
    /// Redo start of the last checkpoint.
    pub(super) redo: Position,
    /// What no log backup has yet; `None` if there are none.
    pub(super) tail: Option<Tail>,
    pub(super) pending: Vec<(u64, Vec<u8>)>,
    pub(super) pending_bytes: usize,
}

impl State {
    pub(super) fn end(&self) -> Position {
        let vlf = &self.vlfs[self.cursor.index];
        Position::new(self.cursor.sequence, self.cursor.block.min(vlf.blocks))
    }

    pub(super) fn offset(&self, cursor: Cursor) -> u64 {
        self.vlfs[cursor.index].offset + u64::from(cursor.block) * SECTOR_BYTES as u64
    }

    pub(super) fn is_free(&self, index: usize) -> bool {
        let vlf = &self.vlfs[index];
        vlf.sequence == 0 || (vlf.sequence < self.floor && index != self.cursor.index)
    }

    pub(super) fn rest(&self, cursor: Cursor) -> u64 {
        let blocks = self.vlfs[cursor.index].blocks;
        u64::from(blocks.saturating_sub(cursor.block)) * SECTOR_BYTES as u64
    }

    /// Chooses the position of each block, and the number of records up to its end.
    pub(super) fn pack(
        &self,
        ends: &[usize],
        reserve: u64,
    ) -> std::result::Result<Vec<(Cursor, usize)>, NoRoom> {
        let mut free: Vec<usize> = (0..self.vlfs.len()).filter(|&i| self.is_free(i)).collect();
        // Used from the end of the list: least recently used first, in file order if never used.
        free.sort_by_key(|&index| {
            std::cmp::Reverse((self.vlfs[index].sequence, self.vlfs[index].offset))
        });
        let available = self.rest(self.cursor) + self.free_bytes(&free);
        let full = || NoRoom {
            needed: ends.last().map_or(0, |&bytes| bytes as u64) + reserve,
            free: available,
        };
        let (mut cursor, mut blocks) = (self.cursor, Vec::new());
        let (mut start, mut done) = (0, 0);
        while done < ends.len() {
            let room = (self.rest(cursor) as usize).saturating_sub(HEADER_BYTES);
            let limit = start + room.min(BLOCK_BYTES_MAX);
            let fitting = ends[done..]
                .iter()
                .take(usize::from(u16::MAX))
                .take_while(|&&end| end <= limit && room > 0)
                .count();
            if fitting == 0 {
                let index = free.pop().ok_or_else(full)?;
                cursor = Cursor {
                    index,
                    block: 1,
                    sequence: cursor.sequence + 1,
                };
                continue;
            }
            done += fitting;
            blocks.push((cursor, done));
            let end = ends[done - 1];
            cursor.block += (stored_bytes(end - start) / SECTOR_BYTES) as u32;
            start = end;
        }
        if self.rest(cursor) + self.free_bytes(&free) < reserve {
            return Err(full());
        }
        Ok(blocks)
    }

    pub(super) fn free_bytes(&self, free: &[usize]) -> u64 {
        let sectors: u64 = free
            .iter()
            .map(|&index| u64::from(self.vlfs[index].blocks - 1))
            .sum();
        sectors * SECTOR_BYTES as u64
    }

    /// Moves to the position of the next block, starting its virtual log file if it is a new one.
    pub(super) fn enter(&mut self, cursor: Cursor, guid: Guid) {
        if cursor.index != self.cursor.index || cursor.sequence != self.cursor.sequence {
            self.vlfs[cursor.index].sequence = cursor.sequence;
            let header = Vlf::header(cursor.sequence, self.epoch, guid);
            let offset = self.vlfs[cursor.index].offset;
            self.piece(offset).extend_from_slice(&header);
            self.pending_bytes += header.len();
        }
        self.cursor = cursor;
    }

    /// The buffer that ends at `offset` of the file, to be appended to.
    pub(super) fn piece(&mut self, offset: u64) -> &mut Vec<u8> {
        let fits = self
            .pending
            .last()
            .is_some_and(|(start, bytes)| start + bytes.len() as u64 == offset);
        if !fits {
            self.pending.push((offset, Vec::new()));
        }
        let last = self.pending.len() - 1;
        &mut self.pending[last].1
    }

    pub(super) fn lower_floor(&mut self) {
        let kept = self.kept().unwrap_or(self.redo);
        self.floor = kept.min(self.redo).vlf();
    }

    /// The first position that a backup under way or the next log backup needs.
    pub(super) fn kept(&self) -> Option<Position> {
        let tail = self.tail.map(|tail| tail.start);
        self.held().into_iter().chain(tail).min()
    }

    fn held(&self) -> Option<Position> {
        self.holds.values().copied().min()
    }

    /// What keeps the log before the current virtual log file.
    pub(super) fn reuse_wait(&self) -> LogReuseWait {
        let end = self.end().vlf();
        let first = |at: Option<Position>| at.map_or(end, |at| at.vlf().min(end));
        let tail = first(self.tail.map(|tail| tail.start));
        let (held, redo) = (first(self.held()), first(Some(self.redo)));
        match tail.min(held).min(redo) {
            oldest if oldest == end => LogReuseWait::Nothing,
            oldest if oldest == tail => LogReuseWait::LogBackup,
            oldest if oldest == held => LogReuseWait::ActiveBackup,
            _ => LogReuseWait::Checkpoint,
        }
    }

    pub(super) fn usage(&self) -> LogUsage {
        let sector = SECTOR_BYTES as u64;
        let total: u64 = self.vlfs.iter().map(|vlf| u64::from(vlf.blocks)).sum();
        let free: u64 = (0..self.vlfs.len())
            .filter(|&index| self.is_free(index))
            .map(|index| u64::from(self.vlfs[index].blocks))
            .sum();
        let taken = (total - free) * sector;
        LogUsage {
            used: taken.saturating_sub(self.rest(self.cursor)),
            size: total * sector,
        }
    }

    pub(super) fn distance(&self, from: Position) -> u64 {
        let end = self.end();
        let mut blocks = 0;
        for vlf in &self.vlfs {
            if vlf.sequence == 0 || vlf.sequence < from.vlf() || vlf.sequence > end.vlf() {
                continue;
            }
            let first = if vlf.sequence == from.vlf() {
                from.block()
            } else {
                0
            };
            let last = if vlf.sequence == end.vlf() {
                end.block()
            } else {
                vlf.blocks
            };
            blocks += u64::from(last.saturating_sub(first));
        }
        blocks * SECTOR_BYTES as u64
    }
}
