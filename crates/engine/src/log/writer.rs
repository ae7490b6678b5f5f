//! Appends groups, with one sync for all waiting commits.
//!
//! Invariants:
//! - If `append` fails for lack of space, it changes nothing.
//! - When `flush_to(p)` returns without error, everything before `p` is on disk.
//! - One thread at a time writes and syncs (the leader); the others wait for its result. Everything
//!   it writes was appended before it started, so its sync covers it.
//! - After a failed write or sync the database is offline for good: nothing more is appended or
//!   written, and no sync is retried. Closing the database ends its log in the same way. The files
//!   are then as a crash would leave them, and opening them recovers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use windlass_base::panic::contained;
use windlass_base::{Guid, Lsn};

use super::block::BlockHeader;
use super::record::Group;
use super::space::{Cursor, LogUsage, State};
use super::vlf::{VLF_COUNT_MAX, Vlf, divide};
use super::{LogReuseWait, Position, Tail, reader::LogReader};
use crate::error::{EngineError, Result};
use crate::options::{FileSpec, Growth};
use crate::storage::{SECTOR_BYTES, StorageFile};
use crate::sync::{Condvar, Mutex};

/// Bytes that wait in memory before `append` writes them to the file without a sync.
const PENDING_BYTES_MAX: usize = 4 << 20;

/// Bytes of zeros written at a time when the log file grows.
const ZEROS_BYTES: usize = 1 << 20;

/// The position of an appended group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Appended {
    pub(crate) first: Position,
    /// After its last block: flushing to here makes it durable.
    pub(crate) end: Position,
    pub(crate) lsn: Lsn,
}

/// Not enough free virtual log files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoRoom {
    /// Bytes of the group and its reserve.
    pub(crate) needed: u64,
    pub(crate) free: u64,
}

/// Why a group was not appended.
#[derive(Debug)]
pub(crate) enum AppendError {
    NoRoom(NoRoom),
    /// The log has failed, and the database is offline.
    Failed(EngineError),
}

#[derive(Debug)]
struct Flush {
    durable: Position,
    leading: bool,
    failed: Option<EngineError>,
    syncs: u64,
}

/// The log of one database.
#[derive(Debug)]
pub(crate) struct Log {
    file: Arc<dyn StorageFile>,
    path: PathBuf,
    guid: Guid,
    state: Mutex<State>,
    flush: Mutex<Flush>,
    flushed: Condvar,
    /// Why `flush` has failed, for readers that take no lock.
    offline: OnceLock<String>,
}

/// Where a log continues.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resume {
    /// The next block; block 0 of virtual log file 0 for a log that was never used.
    pub(crate) position: Position,
    /// Checksum of the last block.
    pub(crate) previous: u64,
    /// Epoch for new blocks.
    pub(crate) epoch: u32,
    /// First position that recovery needs.
    pub(crate) redo: Position,
    /// What no log backup has yet.
    pub(crate) tail: Option<Tail>,
}

impl Log {
    /// Continues after the last complete group. `vlfs` have their sequence numbers.
    pub(crate) fn resume(
        file: Arc<dyn StorageFile>,
        path: &Path,
        guid: Guid,
        vlfs: Vec<Vlf>,
        at: Resume,
    ) -> Self {
        let current = vlfs
            .iter()
            .position(|vlf| vlf.sequence == at.position.vlf() && vlf.sequence != 0);
        let cursor = Cursor {
            index: current.unwrap_or(0),
            // Without a current virtual log file, a full placeholder makes the first append start
            // the next.
            block: current.map_or(u32::MAX, |_| at.position.block()),
            sequence: at.position.vlf(),
        };
        let mut state = State {
            vlfs,
            cursor,
            previous: at.previous,
            epoch: at.epoch,
            floor: 0,
            holds: BTreeMap::new(),
            next_hold: 0,
            redo: at.redo,
            tail: at.tail,
            pending: Vec::new(),
            pending_bytes: 0,
        };
        state.lower_floor();
        Self {
            file,
            path: path.to_owned(),
            guid,
            state: Mutex::new(state),
            flush: Mutex::new(Flush {
                durable: at.position,
                leading: false,
                failed: None,
                syncs: 0,
            }),
            flushed: Condvar::new(),
            offline: OnceLock::new(),
        }
    }

    /// Position of the next block, if it fits there.
    pub(crate) fn end(&self) -> Position {
        self.state.lock().end()
    }

    /// The tail that begins with the next block.
    pub(crate) fn next_tail(&self) -> Tail {
        let state = self.state.lock();
        Tail {
            start: state.end(),
            previous: state.previous,
        }
    }

    /// The position up to which everything is on disk.
    pub(crate) fn durable(&self) -> Position {
        self.flush.lock().durable
    }

    /// Syncs so far; commits divided by this is the gain of group commit.
    pub(crate) fn syncs(&self) -> u64 {
        self.flush.lock().syncs
    }

    /// Virtual log files and their sequence numbers.
    pub(crate) fn vlfs(&self) -> Vec<Vlf> {
        self.state.lock().vlfs.clone()
    }

    pub(crate) fn usage(&self) -> LogUsage {
        self.state.lock().usage()
    }

    /// Bytes of log from `from` to the end.
    pub(crate) fn distance(&self, from: Position) -> u64 {
        self.state.lock().distance(from)
    }

    /// The position about `bytes` before the end.
    pub(crate) fn back_from_end(&self, bytes: u64) -> Position {
        let state = self.state.lock();
        let mut rest = (bytes / SECTOR_BYTES as u64) as u32;
        let mut at = state.end();
        loop {
            if at.block() > rest {
                return Position::new(at.vlf(), at.block() - rest);
            }
            rest -= at.block();
            let before = at.vlf().wrapping_sub(1);
            match state
                .vlfs
                .iter()
                .find(|vlf| vlf.sequence == before && before != 0)
            {
                Some(vlf) => at = Position::new(before, vlf.blocks),
                None => return Position::new(at.vlf(), 0),
            }
        }
    }

    /// Appends a group. `reserve` bytes must stay free after it.
    pub(crate) fn append(
        &self,
        group: &Group,
        sequence: u64,
        reserve: u64,
    ) -> std::result::Result<Appended, AppendError> {
        let mut state = self.state.lock();
        if let Some(failed) = &self.flush.lock().failed {
            return Err(AppendError::Failed(failed.clone()));
        }
        let blocks = state
            .pack(&group.ends, reserve)
            .map_err(AppendError::NoRoom)?;
        let mut lsn = Lsn::ZERO;
        let mut start = 0;
        let count = blocks.len();
        for (index, &(cursor, records)) in blocks.iter().enumerate() {
            state.enter(cursor, self.guid);
            let end = group.ends[records - 1];
            let before = blocks[..index].last().map_or(0, |&(_, records)| records);
            let header = BlockHeader {
                first: index == 0,
                last: index + 1 == count,
                records: (records - before) as u16,
                position: Position::new(cursor.sequence, cursor.block),
                previous: state.previous,
                sequence,
                epoch: state.epoch,
                payload: (end - start) as u32,
                guid: self.guid,
                checksum: 0,
            };
            let offset = state.offset(cursor);
            let bytes = state.piece(offset);
            let length = bytes.len();
            let checksum = header.write(&group.bytes[start..end], bytes);
            state.pending_bytes += state.pending.last().map_or(0, |piece| piece.1.len()) - length;
            state.previous = checksum;
            state.cursor.block += (header.stored_bytes() / SECTOR_BYTES) as u32;
            lsn = header.position.lsn(header.records);
            start = end;
            if state.pending_bytes > PENDING_BYTES_MAX {
                self.write_pieces(&mut state)?;
            }
        }
        let (first, _) = blocks[0];
        Ok(Appended {
            first: Position::new(first.sequence, first.block),
            end: state.end(),
            lsn,
        })
    }

    fn write_pieces(&self, state: &mut State) -> std::result::Result<(), AppendError> {
        state.pending_bytes = 0;
        for (offset, bytes) in std::mem::take(&mut state.pending) {
            if let Err(error) = self.file.write_at(&bytes, offset) {
                let error = EngineError::io("write", &self.path, error);
                return Err(AppendError::Failed(self.fail(error)));
            }
        }
        Ok(())
    }

    /// Takes the database offline for good because of `error`, and returns the error. The first
    /// reason is kept.
    pub(crate) fn fail(&self, error: EngineError) -> EngineError {
        self.end_with(&mut self.flush.lock(), &error);
        self.flushed.notify_all();
        error
    }

    fn end_with(&self, flush: &mut Flush, error: &EngineError) {
        let reason = match error {
            EngineError::Offline { reason, .. } => reason.clone(),
            failure => failure.to_string(),
        };
        flush.failed.get_or_insert_with(|| error.clone());
        let _first = self.offline.set(reason);
    }

    /// Whether, and why, nothing more is written.
    pub(crate) fn offline_reason(&self) -> Option<&str> {
        self.offline.get().map(String::as_str)
    }

    /// Fails if the database, which has this name, is offline.
    pub(crate) fn check_online(&self, database: &str) -> Result<()> {
        match self.offline_reason() {
            None => Ok(()),
            Some(reason) => Err(EngineError::Offline {
                database: database.to_owned(),
                reason: reason.to_owned(),
            }),
        }
    }

    /// Returns when everything before `position` is on disk.
    ///
    /// # Errors
    /// The failure of the write or sync that would have covered it, or an earlier one.
    pub(crate) fn flush_to(&self, position: Position) -> Result<()> {
        let mut flush = self.flush.lock();
        loop {
            if flush.durable >= position {
                return Ok(());
            }
            if let Some(failed) = &flush.failed {
                return Err(failed.clone());
            }
            if flush.leading {
                self.flushed.wait(&mut flush);
                continue;
            }
            flush.leading = true;
            drop(flush);
            // Other threads wait for this one to end, also if it panics.
            let led = contained("writer of the log", || self.lead());
            let outcome = led.unwrap_or_else(|panicked| Err(panicked.into()));
            flush = self.flush.lock();
            flush.leading = false;
            flush.syncs += 1;
            match outcome {
                Ok(end) => flush.durable = flush.durable.max(end),
                Err(error) => self.end_with(&mut flush, &error),
            }
            self.flushed.notify_all();
        }
    }

    fn lead(&self) -> Result<Position> {
        let (pieces, end) = {
            let mut state = self.state.lock();
            state.pending_bytes = 0;
            (std::mem::take(&mut state.pending), state.end())
        };
        let fail = |error| EngineError::io("sync", &self.path, error);
        for (offset, bytes) in pieces {
            self.file.write_at(&bytes, offset).map_err(fail)?;
        }
        self.file.sync().map_err(fail)?;
        Ok(end)
    }

    /// Frees the log before `redo`, which a durable header contains, unless a hold needs it.
    pub(crate) fn truncate(&self, redo: Position) {
        let mut state = self.state.lock();
        state.redo = redo;
        state.lower_floor();
    }

    /// Redo start of the last checkpoint.
    pub(crate) fn redo(&self) -> Position {
        self.state.lock().redo
    }

    /// Keeps everything from the redo start on until released; returns the number of the hold and
    /// its position.
    pub(crate) fn hold(&self) -> (u64, Position) {
        let mut state = self.state.lock();
        let number = state.next_hold;
        state.next_hold += 1;
        let redo = state.redo;
        state.holds.insert(number, redo);
        (number, redo)
    }

    /// Keeps everything from the start of the tail on until released; `None` if there is no tail.
    pub(crate) fn hold_tail(&self) -> Option<(u64, Tail)> {
        let mut state = self.state.lock();
        let tail = state.tail?;
        let number = state.next_hold;
        state.next_hold += 1;
        state.holds.insert(number, tail.start);
        Some((number, tail))
    }

    pub(crate) fn tail(&self) -> Option<Tail> {
        self.state.lock().tail
    }

    /// Frees the log before the tail, which a durable header contains, or keeps it from there on.
    pub(crate) fn set_tail(&self, tail: Option<Tail>) {
        let mut state = self.state.lock();
        state.tail = tail;
        state.lower_floor();
    }

    pub(crate) fn reuse_wait(&self) -> LogReuseWait {
        self.state.lock().reuse_wait()
    }

    pub(crate) fn move_hold(&self, number: u64, position: Position) {
        let mut state = self.state.lock();
        state.holds.insert(number, position);
        state.lower_floor();
    }

    pub(crate) fn release(&self, number: u64) {
        let mut state = self.state.lock();
        state.holds.remove(&number);
        state.lower_floor();
    }

    /// Whether a backup under way, or the wait for one, keeps the log: a checkpoint would free nothing.
    pub(crate) fn is_held(&self) -> bool {
        let state = self.state.lock();
        let kept = state.kept();
        kept.is_some_and(|kept| kept.vlf() <= state.redo.vlf())
    }

    /// A reader from `position` on, over the log written so far.
    pub(crate) fn reader(&self, position: Position) -> LogReader {
        LogReader::new(
            Arc::clone(&self.file),
            &self.path,
            self.guid,
            &self.vlfs(),
            position,
        )
    }

    /// A reader of the tail, whose first block must continue the one before.
    pub(crate) fn tail_reader(&self, tail: Tail) -> LogReader {
        self.reader(tail.start).after(tail.previous)
    }

    /// Adds at least `needed` bytes of space as `spec` allows. `store` makes the new size and list
    /// durable before the space is used. One thread at a time.
    pub(crate) fn grow(
        &self,
        spec: FileSpec,
        needed: u64,
        store: impl FnOnce(FileSpec, Vec<Vlf>) -> Result<()>,
    ) -> std::result::Result<(), String> {
        let step = match spec.growth {
            Growth::Fixed => return Err("its size is fixed".to_owned()),
            Growth::Bytes(bytes) => bytes,
            Growth::Percent(percent) => spec.size / 100 * u64::from(percent),
        };
        let step = step
            .max(super::vlf::VLF_BYTES_MIN)
            .next_multiple_of(1 << 16);
        // Some space is lost at the end of each part, so half as much again.
        let growth = (needed + needed / 2).next_multiple_of(step);
        let size = spec.size + growth;
        if spec.max_size.is_some_and(|limit| size > limit) {
            return Err(format!(
                "it may not grow beyond {} bytes",
                spec.max_size.unwrap_or(0)
            ));
        }
        let mut vlfs = self.vlfs();
        let parts = divide(spec.size, growth);
        if vlfs.len() + parts.len() > VLF_COUNT_MAX {
            return Err(format!("it has {VLF_COUNT_MAX} virtual log files"));
        }
        zero(self.file.as_ref(), spec.size, growth).map_err(|error| error.to_string())?;
        vlfs.extend(parts.iter().copied());
        store(FileSpec { size, ..spec }, vlfs).map_err(|error| error.to_string())?;
        self.state.lock().vlfs.extend(parts);
        Ok(())
    }
}

/// Writes zeros, so that later syncs of the log need no metadata.
pub(crate) fn zero(file: &dyn StorageFile, offset: u64, bytes: u64) -> std::io::Result<()> {
    file.reserve(offset, bytes)?;
    let zeros = vec![0; ZEROS_BYTES.min(bytes as usize)];
    let mut done = 0;
    while done < bytes {
        let length = (bytes - done).min(zeros.len() as u64);
        file.write_at(&zeros[..length as usize], offset + done)?;
        done += length;
    }
    Ok(())
}
