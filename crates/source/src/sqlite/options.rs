//! Options for opening a database, and how to wait for locks.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use windlass_base::{Guid, Lsn};

use crate::Error;

/// Options for opening a database for a backup.
#[derive(Debug, Clone)]
pub struct SnapshotOptions {
    /// The database's name; by default the file's name without extension.
    pub database_name: Option<String>,
    /// The name of its one file within the database; by default the database's name.
    pub logical_name: Option<String>,
    /// The family's identity, if the caller stores it; by default the file's own.
    pub family_guid: Option<Guid>,
    /// The newest known position of this database; the snapshot's will be later.
    pub after: Lsn,
    /// How long to wait for a connection that has locked the database.
    pub busy_timeout: Duration,
    /// Cancels waiting and copying when set.
    pub cancel: Option<Arc<AtomicBool>>,
    /// The user guarantees that no program writes: no lock is taken.
    pub frozen: bool,
    /// The folder of the spool, if the log of the database is kept: the snapshot is pinned in order with its log backups.
    pub spool: Option<PathBuf>,
    /// Whether the backup may become the base of differentials: then its spool keeps what changes from then on.
    pub is_new_base: bool,
    /// Whether to make a temporary copy of a database whose writers would wait.
    pub temporary_copy: CopyPolicy,
}

impl Default for SnapshotOptions {
    fn default() -> Self {
        Self {
            database_name: None,
            logical_name: None,
            family_guid: None,
            after: Lsn::ZERO,
            busy_timeout: Duration::from_secs(10),
            cancel: None,
            frozen: false,
            spool: None,
            is_new_base: false,
            temporary_copy: CopyPolicy::Off("not asked for"),
        }
    }
}

impl SnapshotOptions {
    pub(super) fn is_cancelled(&self) -> bool {
        let cancel = self.cancel.as_ref();
        cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }
}

/// Whether a database in rollback mode is copied first, so that its writers wait only for a plain
/// copy and not for the whole backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyPolicy {
    /// No, and the reason.
    Off(&'static str),
    /// Yes: a clone next to the database, or a copy in the first folder with enough space.
    Into(Vec<CopyFolder>),
}

/// A folder for temporary copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyFolder {
    pub path: PathBuf,
    /// Whether the user named it: then it may be in memory.
    pub is_given: bool,
}

/// The first sleep while waiting for a lock. Gaps between two transactions can be short.
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// The longest sleep.
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Waits for another connection until a time limit or cancellation.
pub(super) struct Wait<'a> {
    options: &'a SnapshotOptions,
    begun: Instant,
    pause: Duration,
}

impl<'a> Wait<'a> {
    pub(super) fn begin(options: &'a SnapshotOptions) -> Self {
        Self {
            options,
            begun: Instant::now(),
            pause: PAUSE_MIN,
        }
    }

    /// How long to wait in all.
    pub(super) fn limit(&self) -> Duration {
        self.options.busy_timeout
    }

    /// Sleeps before the next attempt to lock the database at `path`.
    pub(super) fn pause(&mut self, path: &Path) -> Result<(), Error> {
        let limit = self.options.busy_timeout;
        let left = limit.saturating_sub(self.begun.elapsed());
        if left.is_zero() {
            return Err(Error::Busy {
                path: path.to_owned(),
                waited: limit,
            });
        }
        let pause = self.pause.min(left);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        self.sleep(pause)
    }

    /// Sleeps for a time unrelated to locks.
    pub(super) fn sleep(&self, time: Duration) -> Result<(), Error> {
        let begun = Instant::now();
        loop {
            if self.options.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let left = time.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(PAUSE_MAX));
        }
    }
}
