//! Figures of a database, for views, tests and benchmarks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use windlass_base::Lsn;

use super::Database;
use crate::differential::ExtentMap;

/// Counters that the parts of a database add to.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) commits: AtomicU64,
    pub(super) pages_written: AtomicU64,
    pub(super) write_requests: AtomicU64,
    pub(super) pages_read: AtomicU64,
    pub(super) checkpoints: AtomicU64,
    pub(super) checkpoint_visited: AtomicU64,
    pub(super) visited: AtomicU64,
    pub(super) checkpoint_us: AtomicU64,
    pub(super) recovery_us: AtomicU64,
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
    pub fn counters(&self) -> Counters {
        let figures = &self.figures;
        let get = |value: &AtomicU64| value.load(Relaxed);
        let log = self.log.usage();
        Counters {
            dirty_pages: self.dirty.count(),
            oldest_dirty_lsn: self.dirty.oldest().map_or(Lsn::ZERO, |first| first.lsn(1)),
            redo_start_lsn: self.log.redo().lsn(1),
            estimated_recovery: self.estimated_recovery(),
            last_recovery: Duration::from_micros(get(&figures.recovery_us)),
            commits: get(&figures.commits),
            log_syncs: self.log.syncs(),
            log_used: log.used,
            log_size: log.size,
            pages_written: get(&figures.pages_written),
            write_requests: get(&figures.write_requests),
            pages_read: get(&figures.pages_read),
            checkpoints: get(&figures.checkpoints),
            checkpoint_visited: get(&figures.checkpoint_visited),
            buffers_visited: get(&figures.visited),
            checkpoint_duration: Duration::from_micros(get(&figures.checkpoint_us)),
            version_bytes: self.versions.bytes(),
            readers: self.versions.reader_count() as u64,
            changed_extents: self.maps.look(ExtentMap::count),
        }
    }
}
