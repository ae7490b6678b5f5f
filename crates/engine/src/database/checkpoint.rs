//! Checkpoints of both kinds, and the recovery writer.
//!
//! A checkpoint writes dirty pages, then moves the redo start forward: it takes the redo start
//! under the commit gate, logs the differential map, writes the stamps of the data files, syncs
//! them, stores the header, and frees the log before the redo start.
//!
//! Invariants:
//! - One checkpoint at a time: [`Checkpointing`] is its lock.
//! - The redo start is taken before the data files are synced: every page not listed at that point
//!   was written before, and the sync covers it.
//! - Stamps name a checkpoint whose record is in the log, and are durable before the header that
//!   expects them; so are the lengths and the first page that it names.
//! - If a write failed in the meantime, the redo start does not move.
//! - An indirect checkpoint visits only entries of this database's lists; its cost does not depend
//!   on the size of the pool. An automatic one visits every descriptor.
//! - A failed sync of a data file takes the database offline: the kernel may have dropped the pages
//!   it could not write, and only the log, which is complete from the old redo start on, still has
//!   them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use windlass_base::Guid;
use windlass_base::PageNumber;
use windlass_base::panic::contained;

use super::Database;
use crate::error::Result;
use crate::log::record::{Group, MAP_PART_BYTES};
use crate::log::writer::AppendError;
use crate::log::{Position, block};
use crate::stamps::Moment;

/// Pages written between two checks of the lists.
const BATCH_PAGES: usize = 2048;

/// Percentages of the target at which the recovery writer starts and stops.
const BEGIN_PERCENT: u32 = 70;
const BACK_PERCENT: u32 = 30;

/// Share of the log in use at which the recovery writer runs a checkpoint.
const LOG_USED_PERCENT: u64 = 60;

/// Log bytes replayed per second, assumed until a recovery has measured it.
const REDO_RATE: u64 = 200 << 20;

/// The lock of checkpoints, and when they are due.
#[derive(Debug)]
pub(super) struct Checkpointer {
    running: Mutex<()>,
    /// 0: automatic checkpoints.
    target_ms: AtomicU64,
    /// Bytes per second measured by the last recovery; 0 before the first.
    redo_rate: AtomicU64,
}

/// While this exists, no checkpoint runs.
#[derive(Debug)]
pub(super) struct Checkpointing<'a> {
    _held: MutexGuard<'a, ()>,
}

impl Checkpointer {
    /// With a target as the header stores it.
    pub(super) fn new(target_ms: u64) -> Self {
        Self {
            running: Mutex::default(),
            target_ms: AtomicU64::new(target_ms),
            redo_rate: AtomicU64::new(0),
        }
    }

    /// Waits for the checkpoint that is running.
    pub(super) fn lock(&self) -> Checkpointing<'_> {
        Checkpointing {
            _held: self.running.lock(),
        }
    }

    pub(super) fn measured_redo_rate(&self, bytes_per_second: u64) {
        self.redo_rate.store(bytes_per_second, Ordering::Relaxed);
    }
}

/// A target as the header stores it; 0 for none.
pub(super) fn milliseconds(target: Option<Duration>) -> u64 {
    target.map_or(0, |target| target.as_millis().max(1) as u64)
}

/// How dirty pages are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointKind {
    /// By a sweep over every descriptor of the pool.
    Automatic,
    /// From the dirty page lists of the database.
    Indirect,
}

#[derive(Debug, Clone, Copy)]
pub struct CheckpointReport {
    pub kind: CheckpointKind,
    /// Descriptors or list entries visited.
    pub visited: u64,
    pub written: u64,
    pub duration: Duration,
    /// Where recovery begins from now on.
    pub redo_start: Position,
}

impl Database {
    /// Writes all dirty pages and moves the redo start to the end of the log, by the kind that the
    /// target recovery time chooses.
    pub fn checkpoint(&self) -> Result<CheckpointReport> {
        let kind = match self.target_recovery_time() {
            Some(_) => CheckpointKind::Indirect,
            None => CheckpointKind::Automatic,
        };
        self.checkpoint_before(kind, None)
    }

    /// An automatic checkpoint of the dirty pages that a sweep of the pool has just found.
    pub(super) fn checkpoint_of(&self, mut dirty: Vec<PageNumber>) -> Result<CheckpointReport> {
        dirty.sort_unstable();
        self.checkpoint_by(CheckpointKind::Automatic, || {
            Ok((0, self.write_pages(&dirty)?))
        })
    }

    /// Writes all pages that became dirty before `limit` (all dirty pages if `None`) and moves the
    /// redo start.
    fn checkpoint_before(
        &self,
        kind: CheckpointKind,
        limit: Option<Position>,
    ) -> Result<CheckpointReport> {
        self.checkpoint_by(kind, || match kind {
            CheckpointKind::Automatic => {
                let mut swept = self.shared.pool.sweep(self.number);
                swept.dirty.sort_unstable();
                Ok((swept.visited, self.write_pages(&swept.dirty)?))
            }
            CheckpointKind::Indirect => self.write_listed(limit.unwrap_or_else(|| self.log.end())),
        })
    }

    /// Writes pages as `write` does, which returns how many buffers it visited and how many pages it wrote, and
    /// moves the redo start.
    fn checkpoint_by(
        &self,
        kind: CheckpointKind,
        write: impl FnOnce() -> Result<(u64, u64)>,
    ) -> Result<CheckpointReport> {
        self.check_online()?;
        let checkpointing = self.checkpointer.lock();
        let start = Instant::now();
        let (visited, written) = write()?;
        self.advance_redo(&checkpointing)?;
        let duration = start.elapsed();
        let figures = &self.figures;
        figures.checkpoints.fetch_add(1, Ordering::Relaxed);
        figures.checkpoint_visited.store(visited, Ordering::Relaxed);
        figures.visited.fetch_add(visited, Ordering::Relaxed);
        figures
            .checkpoint_us
            .store(duration.as_micros() as u64, Ordering::Relaxed);
        Ok(CheckpointReport {
            kind,
            visited,
            written,
            duration,
            redo_start: self.log.redo(),
        })
    }

    fn write_listed(&self, limit: Position) -> Result<(u64, u64)> {
        let (mut visited, mut written) = (0, 0);
        loop {
            let (mut pages, seen) = self.dirty.before(limit, BATCH_PAGES);
            visited += seen;
            if pages.is_empty() {
                return Ok((visited, written));
            }
            pages.sort_unstable();
            written += self.write_pages(&pages)?;
        }
    }

    /// Moves the redo start forward as far as the lists allow, durably, and frees the log before
    /// it.
    pub(super) fn advance_redo(&self, _alone: &Checkpointing<'_>) -> Result<()> {
        // The database may have been closed while this waited.
        self.check_online()?;
        let (redo, latest, failures, map) = {
            let _gate = self.commits.gate();
            let failures = self.dirty.failures();
            let redo = self.dirty.redo_start(self.log.end());
            (redo, self.versions.latest(), failures, self.maps.current())
        };
        let identity = Guid::random();
        let mut group = Group::default();
        group.checkpoint(redo, identity, map.bytes());
        let appended = loop {
            match self.log.append(&group, latest.sequence, 0) {
                Ok(appended) => break appended,
                Err(AppendError::NoRoom(room)) => self.grow_log(room)?,
                Err(AppendError::Failed(error)) => return Err(error),
            }
        };
        self.log.flush_to(appended.end)?;
        let moment = Moment {
            guid: self.guid,
            position: appended.first,
            identity,
        };
        // The sync makes durable what this has seen.
        let (fingerprint, lengths) = moment.mark(&self.data, latest.page_count)?;
        self.data.sync().map_err(|error| self.log.fail(error))?;
        if self.dirty.failures() != failures {
            return Ok(());
        }
        self.header.write(&self.log, &self.data, |header| {
            header.redo = redo;
            header.checkpoint = appended.first;
            header.checkpoint_identity = identity;
            header.fingerprint = fingerprint;
            header.lengths = lengths;
            header.page_count = latest.page_count;
            header.sequence = latest.sequence;
            header.clean = false;
        })?;
        self.log.truncate(redo);
        Ok(())
    }

    /// Bytes of log that must stay free for the record of a checkpoint.
    pub(super) fn checkpoint_reserve(&self) -> u64 {
        let map = self.maps.look(|map| map.bytes().len());
        let records = map + map / MAP_PART_BYTES * 8 + 64;
        let blocks = records / (block::BLOCK_BYTES_MAX / 2) + 2;
        (records + blocks * (block::HEADER_BYTES + 1024)) as u64
    }

    /// [`Database::recovery_writer_step`] on a background thread. A panic takes the database
    /// offline; opening it again replays the log.
    pub(crate) fn guarded_recovery_writer_step(&self) {
        let stepped = contained("recovery writer", || self.recovery_writer_step());
        if let Err(panicked) = stepped {
            self.log.fail(panicked.into());
        }
    }

    /// One step of the recovery writer: keeps the estimated recovery time below the target, and the
    /// log from filling up. Instances with background threads call it themselves; otherwise the
    /// owner calls it.
    pub fn recovery_writer_step(&self) -> Result<()> {
        self.check_online()?;
        let is_filling = self.log.usage().exceeds(LOG_USED_PERCENT) && !self.log.is_held();
        if is_filling && self.dirty.count() > 0 {
            self.checkpoint()?;
            return Ok(());
        }
        let estimate = self.estimated_recovery();
        match self.target_recovery_time() {
            Some(target) if estimate > target * BEGIN_PERCENT / 100 => {
                let kept = target.as_secs_f64() * f64::from(BACK_PERCENT) / 100.0;
                let bytes = (kept * self.redo_rate() as f64) as u64;
                let limit = self.log.back_from_end(bytes);
                self.checkpoint_before(CheckpointKind::Indirect, Some(limit))?;
            }
            None if estimate > self.shared.recovery_interval() => {
                self.checkpoint()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Estimated recovery time after a crash now: the log bytes to replay at the rate of the last
    /// recovery.
    pub(super) fn estimated_recovery(&self) -> Duration {
        let bytes = self.log.distance(self.log.redo());
        Duration::from_secs_f64(bytes as f64 / self.redo_rate() as f64)
    }

    fn redo_rate(&self) -> u64 {
        match self.checkpointer.redo_rate.load(Ordering::Relaxed) {
            0 => REDO_RATE,
            measured => measured,
        }
    }

    /// Sets indirect checkpoints with this target, or automatic ones (`None`).
    pub fn set_target_recovery_time(&self, target: Option<Duration>) -> Result<()> {
        let target_ms = milliseconds(target);
        self.header.write(&self.log, &self.data, |header| {
            header.target_recovery_ms = target_ms;
            let current = &self.checkpointer.target_ms;
            current.store(target_ms, Ordering::Relaxed);
        })
    }

    /// The target of indirect checkpoints; `None` for automatic ones.
    pub fn target_recovery_time(&self) -> Option<Duration> {
        match self.checkpointer.target_ms.load(Ordering::Relaxed) {
            0 => None,
            milliseconds => Some(Duration::from_millis(milliseconds)),
        }
    }
}
