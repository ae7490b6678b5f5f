//! Figures of a database, for views, tests and benchmarks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use windlass_base::Lsn;

use super::Database;

/// Log bytes replayed per second, assumed until a recovery has measured it.
const REDO_RATE: u64 = 200 << 20;

/// Counters that the parts of a database add to.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) commits: AtomicU64,
    /// Commits up to this one are on disk.
    pub(crate) durable_sequence: AtomicU64,
    /// Number of times that page checksums were turned on or off.
    pub(crate) checksum_changes: AtomicU64,
    pub(crate) pages_written: AtomicU64,
    pub(crate) write_requests: AtomicU64,
    pub(crate) pages_read: AtomicU64,
    pub(crate) checkpoints: AtomicU64,
    pub(crate) checkpoint_visited: AtomicU64,
    pub(crate) visited: AtomicU64,
    pub(crate) checkpoint_us: AtomicU64,
    /// Bytes per second measured by the last recovery; 0 before the first.
    pub(crate) redo_rate: AtomicU64,
    pub(crate) recovery_us: AtomicU64,
}

/// Figures of a database at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Pages changed since they were last written to the data files.
    pub dirty_pages: u64,
    /// First change of the oldest dirty page; zero if there is none.
    pub oldest_dirty_lsn: Lsn,
    /// Where recovery would begin after a crash now.
    pub redo_start_lsn: Lsn,
    /// How long recovery would take after a crash now.
    pub estimated_recovery: Duration,
    /// How long the recovery at opening took.
    pub last_recovery: Duration,
    /// Commits since opening.
    pub commits: u64,
    /// Syncs of the log since opening.
    pub log_syncs: u64,
    /// Bytes of log in use.
    pub log_used: u64,
    /// Bytes of log in all.
    pub log_size: u64,
    /// Pages written to the data files since opening.
    pub pages_written: u64,
    /// Write requests used for them.
    pub write_requests: u64,
    /// Pages read from the data files since opening.
    pub pages_read: u64,
    /// Checkpoints since opening, those of the recovery writer included.
    pub checkpoints: u64,
    /// Buffers visited by the last checkpoint.
    pub checkpoint_visited: u64,
    /// Buffers visited by all checkpoints and backups.
    pub buffers_visited: u64,
    /// Duration of the last checkpoint.
    pub checkpoint_duration: Duration,
    /// Bytes of old page versions kept for readers.
    pub version_bytes: u64,
    /// Open snapshots.
    pub readers: u64,
    /// Extents changed since the differential base.
    pub changed_extents: u64,
}

impl Database {
    /// Estimated recovery time after a crash now: the log bytes to replay at the rate of the last
    /// recovery.
    pub(crate) fn estimated_recovery(&self) -> Duration {
        let bytes = self.log.distance(self.log.redo());
        Duration::from_secs_f64(bytes as f64 / self.redo_rate() as f64)
    }

    pub(crate) fn redo_rate(&self) -> u64 {
        match self.figures.redo_rate.load(Relaxed) {
            0 => REDO_RATE,
            measured => measured,
        }
    }

    /// Current figures.
    pub fn counters(&self) -> Counters {
        let figures = &self.figures;
        let get = |value: &AtomicU64| value.load(Relaxed);
        let (log_used, log_size) = self.log.usage();
        Counters {
            dirty_pages: self.dirty.count(),
            oldest_dirty_lsn: self.dirty.oldest().map_or(Lsn::ZERO, |first| first.lsn(1)),
            redo_start_lsn: self.log.redo().lsn(1),
            estimated_recovery: self.estimated_recovery(),
            last_recovery: Duration::from_micros(get(&figures.recovery_us)),
            commits: get(&figures.commits),
            log_syncs: self.log.syncs(),
            log_used,
            log_size,
            pages_written: get(&figures.pages_written),
            write_requests: get(&figures.write_requests),
            pages_read: get(&figures.pages_read),
            checkpoints: get(&figures.checkpoints),
            checkpoint_visited: get(&figures.checkpoint_visited),
            buffers_visited: get(&figures.visited),
            checkpoint_duration: Duration::from_micros(get(&figures.checkpoint_us)),
            version_bytes: self.versions.bytes(),
            readers: self.versions.reader_count() as u64,
            changed_extents: self.maps.lock().current.count(),
        }
    }
}
