//! What a backup may say about how a database is opened, and how it waits for others.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use windlass_base::{Guid, Lsn};

use crate::Error;

/// What a backup may say about how a database is opened.
#[derive(Debug, Clone)]
pub struct SnapshotOptions {
    /// The database's name; the file's name without extension when absent.
    pub database_name: Option<String>,
    /// The family's identity, where the caller keeps it; else the file's own.
    pub family_guid: Option<Guid>,
    /// The newest position that is known of this database: the snapshot's is later.
    pub after: Lsn,
    /// How long to wait for a connection that has locked the database.
    pub busy_timeout: Duration,
    /// Ends the waiting, and the copying, as soon as it is set.
    pub cancel: Option<Arc<AtomicBool>>,
    /// The user vouches that nobody writes: no lock is taken.
    pub frozen: bool,
    /// Whether a database whose writers wait for the copy is copied aside first.
    pub temporary_copy: CopyPolicy,
}

impl Default for SnapshotOptions {
    fn default() -> Self {
        Self {
            database_name: None,
            family_guid: None,
            after: Lsn::ZERO,
            busy_timeout: Duration::from_secs(10),
            cancel: None,
            frozen: false,
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

/// Whether a database in rollback mode is copied aside, so that its writers wait for a plain copy and
/// not for the backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyPolicy {
    /// It is not, and why.
    Off(&'static str),
    /// It is, by a clone beside the database or a copy in the first folder that has room.
    Into(Vec<CopyFolder>),
}

/// A folder for temporary copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyFolder {
    /// The folder.
    pub path: PathBuf,
    /// Whether the user named it: then it may be in memory.
    pub is_given: bool,
}

/// The first sleep while a lock is waited for. Gaps between two transactions can be short.
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// The longest.
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Waiting for another connection, until it is too long or nobody wants the result any more.
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

    /// Sleeps a moment before the next attempt at the database at `path`.
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

    /// Sleeps for a time that has nothing to do with locks.
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
