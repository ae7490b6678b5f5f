//! Online backup: a fuzzy copy of the data files plus the log that makes it one commit.
//!
//! ```text
//!  begin_backup                                                     finish_data     complete
//!  clear map --> checkpoint --> sync object --> [ranges, parallel] --> end of log --> base is set
//!      |             |              |                  |                   |
//!      |  modifiers  |  this        |  pending writes  |  failure or drop at any point: the older
//!      |  drained by |  database's  |  known from the  |  base and its map stay in force
//!      |  prepare-   |  dirty page  |  I/O dispenser   |
//!      |  to-dirty   |  lists       |                  |
//!      +-- automatic checkpoints: the first and the last step sweep the whole pool instead
//! ```
//!
//! Invariants:
//! - Writers never stop, and no page is read through the pool.
//! - The log is held from the redo start of the backup's own checkpoint on. Every page that is
//!   written while it is copied has its whole image in the log after that position, so a torn copy
//!   is repaired by the log.
//! - The backup shows the last commit at `finish_data`.
//! - An extent whose content may differ from the base at the end of the next restore of this backup
//!   is marked in the map that `complete` puts into effect.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use windlass_base::page::{PAGE_BYTES, checksum};
use windlass_base::{FileId, Guid, Lsn};
use windlass_io::DirectFile;

use super::Database;
use super::checkpoint::CheckpointKind;
use super::copies::CopyInProgress;
use super::log_chain::ModelThen;
use crate::backup::{BackupDescription, BackupMode, BackupRange};
use crate::differential::ExtentMap;
use crate::error::{EngineError, Result};
use crate::log::Position;
use crate::log::block::{BLOCK_BYTES_MAX, stored_bytes};
use crate::log::header::{DifferentialBase, Header};
use crate::log::reader::LogReader;

/// Bytes of log that [`Backup::read_log`] passes on at a time.
const LOG_PIECE_BYTES: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupPhase {
    /// Clears the differential map for the new base, and waits for earlier modifiers.
    ClearDifferentialMap,
    /// The backup's own checkpoint.
    Checkpoint,
    /// Waits for pending page writes; from then on, page writes are recorded.
    SyncObject,
    /// From the end of the previous step to `finish_data`.
    DataCopy,
    LogCopy,
}

/// Duration and work of a step.
#[derive(Debug, Clone, Copy)]
pub struct PhaseReport {
    pub phase: BackupPhase,
    pub duration: Duration,
    /// Buffer descriptors or list entries visited.
    pub visited: u64,
}

/// A backup in progress. Dropping it before [`Backup::complete`] changes nothing.
#[derive(Debug)]
pub struct Backup {
    database: Arc<Database>,
    kind: BackupMode,
    number: u64,
    first: Position,
    page_count: u32,
    map: Option<ExtentMap>,
    /// Number of times page checksums had been turned on or off before the checkpoint.
    checksum_changes: u64,
    model_then: ModelThen,
    copy: CopyInProgress,
    copy_started: Instant,
    description: Option<BackupDescription>,
    phases: Mutex<Vec<PhaseReport>>,
}

impl Database {
    /// Starts a backup: clears the differential map (full backups only), runs a checkpoint and
    /// waits for pending writes. After that, several threads can read [`Backup::ranges`].
    ///
    /// # Errors
    /// Fails for a differential backup without a base.
    pub fn begin_backup(self: &Arc<Self>, kind: BackupMode) -> Result<Backup> {
        self.check_writable()?;
        if kind == BackupMode::Differential && self.differential_base().set.is_nil() {
            return Err(EngineError::Invalid(format!(
                "database '{}' has no full backup that a differential one could refer to",
                self.name()
            )));
        }
        let (number, first) = self.log.hold();
        let mut backup = Backup {
            database: Arc::clone(self),
            kind,
            number,
            first,
            page_count: 0,
            map: None,
            checksum_changes: 0,
            model_then: self.model_now(),
            copy: self.copies.begin(),
            copy_started: Instant::now(),
            description: None,
            phases: Mutex::default(),
        };
        backup.prepare()?;
        Ok(backup)
    }

    /// The backup that differential ones are based on.
    pub fn differential_base(&self) -> DifferentialBase {
        self.header.base()
    }
}

impl Backup {
    fn prepare(&mut self) -> Result<()> {
        let database = Arc::clone(&self.database);
        let sweeps = database.target_recovery_time().is_none();
        let pool = &database.shared.pool;
        let mut found = None;
        if self.kind == BackupMode::Full {
            let start = Instant::now();
            database.maps.begin(self.number);
            // Pages marked only in the older map are on the lists when this returns, and the
            // checkpoint writes them.
            let drained = database.dirty.drain_preparing();
            let mut visited = drained;
            if sweeps {
                let swept = pool.sweep(database.number);
                visited = swept.visited;
                found = Some(swept.dirty);
            }
            self.phase(BackupPhase::ClearDifferentialMap, start, visited);
        }
        self.checksum_changes = database.checksums.changes();
        let start = Instant::now();
        // The pages that the first sweep found are those that the checkpoint has to write.
        let report = match found {
            Some(dirty) => database.checkpoint_of(dirty)?,
            None => database.checkpoint()?,
        };
        self.first = database.log.redo();
        database.log.move_hold(self.number, self.first);
        debug_assert_eq!(report.kind == CheckpointKind::Automatic, sweeps);
        self.phase(BackupPhase::Checkpoint, start, report.visited);

        let start = Instant::now();
        self.copy.watch();
        let mut visited = database.shared.dispenser.drain(database.number);
        if sweeps {
            let swept = pool.sweep(database.number);
            database.dirty.wait_written(&swept.writing);
            visited = swept.visited;
        }
        self.phase(BackupPhase::SyncObject, start, visited);
        self.page_count = database.versions.latest().page_count;
        if self.kind == BackupMode::Differential {
            self.map = Some(database.maps.current());
        }
        self.copy_started = Instant::now();
        Ok(())
    }

    fn phase(&self, phase: BackupPhase, start: Instant, visited: u64) {
        self.database
            .figures
            .visited
            .fetch_add(visited, Ordering::Relaxed);
        self.phases.lock().push(PhaseReport {
            phase,
            duration: start.elapsed(),
            visited,
        });
    }

    /// Duration and work of the steps so far.
    pub fn phases(&self) -> Vec<PhaseReport> {
        self.phases.lock().clone()
    }

    /// First log record that a restore needs.
    pub fn first_lsn(&self) -> Lsn {
        self.first.lsn(1)
    }

    /// Ranges of the data files to copy, at most `bytes_max` bytes each, in file order.
    pub fn ranges(&self, bytes_max: usize) -> Vec<BackupRange> {
        let map = self.map.as_ref();
        self.database.data.ranges(self.page_count, map, bytes_max)
    }

    /// Reads a range directly from its file into the first `range.bytes` bytes of `buffer`. Memory
    /// aligned for direct I/O bypasses the page cache.
    pub fn read_range(&self, range: &BackupRange, buffer: &mut [u8]) -> Result<()> {
        let database = &self.database;
        database.check_online()?;
        let buffer = buffer.get_mut(..range.bytes).ok_or_else(|| {
            EngineError::Invalid(format!("a buffer of less than {} bytes", range.bytes))
        })?;
        database.data.read_range(range, buffer)
    }

    /// The data file with this number, for copies that keep many reads in flight. Reads from it
    /// return the same as [`Backup::read_range`]; past its end, data counts as zeros.
    pub fn data_file(&self, id: FileId) -> Result<Option<Arc<DirectFile>>> {
        self.database.check_online()?;
        self.database.data.direct(id)
    }

    /// Whether pages carry checksums that can be verified.
    pub fn has_checksums(&self) -> bool {
        // If pages got checksums only after the checkpoint, those on disk have none yet.
        let checksums = &self.database.checksums;
        checksums.are_on() && checksums.changes() == self.checksum_changes
    }

    /// Verifies a range that was just read and calls `on_bad` for each page whose checksum is
    /// wrong.
    pub fn verify(&self, range: &BackupRange, bytes: &[u8], on_bad: &mut dyn FnMut(EngineError)) {
        if !self.has_checksums() {
            return;
        }
        let database = &self.database;
        for (index, content) in bytes.chunks_exact(PAGE_BYTES).enumerate() {
            let Some((expected, found)) = checksum::mismatch(content) else {
                continue;
            };
            let offset = range.offset + (index * PAGE_BYTES) as u64;
            let page = database.data.page_at(range.file, offset);
            let Some(page) = page.filter(|page| page.is_within(self.page_count)) else {
                continue;
            };
            // Written while it was read: the log contains its whole image.
            if !self.copy.is_noted(page.extent()) {
                on_bad(database.damaged(page, expected, found));
            }
        }
    }

    /// Call after all ranges are copied: the backup shows the commit that is the latest now.
    pub fn finish_data(&mut self) -> Result<&BackupDescription> {
        let database = &self.database;
        let (end, latest, ended_ms) = database.end_latest_and_time();
        database.log.flush_to(end.start)?;
        self.phase(BackupPhase::DataCopy, self.copy_started, 0);
        let header = Header {
            redo: self.first,
            page_count: latest.page_count,
            sequence: latest.sequence,
            ..database.header.current(&database.log, &database.data)
        };
        let description = BackupDescription::new(header, end, self.kind, ended_ms);
        Ok(self.description.insert(description))
    }

    /// The log from the first needed record to the end of the backup, to be read in pieces and
    /// returned to [`Backup::finish_log`].
    ///
    /// # Errors
    /// Fails before [`Backup::finish_data`], because the end is not yet known.
    pub fn log_copy(&self) -> Result<LogCopy> {
        let end = self.description()?.end();
        Ok(LogCopy::new(
            self.database.log.reader(self.first),
            self.first,
            end,
        ))
    }

    /// Call after the log has been copied.
    pub fn finish_log(&self, copy: &LogCopy) {
        self.phase(BackupPhase::LogCopy, copy.started, 0);
    }

    /// Passes the log from the first needed record to the end of the backup to `sink`, in pieces.
    ///
    /// # Errors
    /// Fails before [`Backup::finish_data`], because the end is not yet known; returns errors of
    /// `sink`.
    pub fn read_log(&self, mut sink: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut copy = self.log_copy()?;
        let mut piece = vec![0; LOG_PIECE_BYTES];
        loop {
            let bytes = copy.read(&mut piece)?;
            if bytes == 0 {
                self.finish_log(&copy);
                return Ok(());
            }
            sink(&piece[..bytes])?;
        }
    }

    /// The description to store with the backup.
    ///
    /// # Errors
    /// Fails before [`Backup::finish_data`], because it is not yet known.
    pub fn description(&self) -> Result<&BackupDescription> {
        self.description
            .as_ref()
            .ok_or_else(|| EngineError::Invalid("the data copy has not been finished".to_owned()))
    }

    /// Call after the backup is safely on its media. A full backup becomes the differential base as
    /// set `set`, unless a backup that started later already has. In the recovery model FULL, a full or
    /// differential one begins the chain of log backups, if there is none. Returns the steps.
    pub fn complete(self, set: Guid) -> Result<Vec<PhaseReport>> {
        self.description()?;
        let database = &self.database;
        let begins = self.kind != BackupMode::CopyOnly
            && database.begin_chain(self.first, self.model_then)?;
        if begins && self.kind == BackupMode::Differential {
            database
                .header
                .write(&database.log, &database.data, |_| {})?;
        }
        if self.kind == BackupMode::Full {
            {
                let _gate = database.commits.gate();
                let first_lsn = self.first_lsn();
                if database.differential_base().first_lsn > first_lsn {
                    // Then the chain has begun before, and a header says so.
                    return Ok(self.phases());
                }
                database.maps.become_base(self.number);
                database.header.rebase(DifferentialBase { set, first_lsn });
            }
            // One header write makes the map and the base take effect together.
            database.advance_redo(&database.checkpointer.lock())?;
        }
        Ok(self.phases())
    }
}

/// Reads the log that belongs to a backup, in pieces of whole blocks.
#[derive(Debug)]
pub struct LogCopy {
    started: Instant,
    reader: LogReader,
    /// After the last block that was passed on.
    reached: Position,
    end: Position,
    /// The next block, which did not fit any more.
    rest: Vec<u8>,
}

impl LogCopy {
    /// The smallest buffer that any block fits.
    pub const BUFFER_BYTES_MIN: usize = stored_bytes(BLOCK_BYTES_MAX);

    /// From `first` to `end`, which is on disk.
    pub(super) fn new(reader: LogReader, first: Position, end: Position) -> Self {
        Self {
            started: Instant::now(),
            reader,
            reached: first,
            end,
            rest: Vec::new(),
        }
    }

    /// Fills `buffer`, of at least [`LogCopy::BUFFER_BYTES_MIN`], with the next blocks; returns 0 only at the end.
    ///
    /// # Errors
    /// The log breaks off before its end, or cannot be read.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = self.rest.len();
        let head = buffer.get_mut(..filled).ok_or_else(|| {
            EngineError::Invalid(format!("a buffer of less than {filled} bytes for the log"))
        })?;
        head.copy_from_slice(&self.rest);
        self.rest.clear();
        while self.reached != self.end {
            let Some((header, block)) = self.reader.next()? else {
                break;
            };
            if header.position >= self.end {
                break;
            }
            self.reached = header.end();
            match buffer.get_mut(filled..filled + block.len()) {
                Some(place) => place.copy_from_slice(block),
                None => {
                    self.rest.extend_from_slice(block);
                    return Ok(filled);
                }
            }
            filled += block.len();
        }
        if self.reached != self.end {
            return Err(EngineError::Corrupt {
                path: self.reader.path().to_owned(),
                what: format!(
                    "the log breaks off after {:?}, before the end of the backup at {:?}",
                    self.reached, self.end
                ),
            });
        }
        Ok(filled)
    }
}

impl Drop for Backup {
    fn drop(&mut self) {
        self.database.maps.abandon(self.number);
        self.database.log.release(self.number);
    }
}
