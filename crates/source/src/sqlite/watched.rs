//! A database in WAL mode that is read without a lock on its log, and proved not to have changed.
//!
//! `SQLite` keeps the locks of a log in the -shm file. Where that file is not there and may not be made (a
//! read-only mount, a user who may only read, a full disk), no lock keeps a checkpoint from
//! copying newer pages into the database. This is what takes its place:
//!
//! 1. The SHARED lock of the database file itself, which a descriptor for reading can take. While it is
//!    held nobody changes the journal mode, and the last connection that closes neither folds its log
//!    nor removes it. Writers connect and write to the log as ever; only a checkpoint in the midst of
//!    their work can change the file.
//! 2. The file's identity, length, and times of change at the beginning. The state is that of the file
//!    and of the committed frames in the log (checksums verified) in a stretch of time in which the file
//!    did not change. The times have a grain: two changes within it look like one. So the last change
//!    must lie further back than the grain, or that long is waited.
//! 3. As soon as a writer has made a -shm: read lock 0 of the log, in that file, which shuts out checkpoints.
//! 4. At the end, and at each read until then: the file must be the one of the beginning, the log must have
//!    the header it had, and both must still be what the names lead to. Else the copy is refused.
//!    A change within the window between 2 and 3 costs the backup, never its truth.
//!
//! The proof needs a file system of which this kernel sees all changes. On any other (NFS, SMB, FUSE) it is
//! refused, unless the user vouches that nobody writes. Then point 4 still holds.
//!
//! A program that writes through a memory map changes no times while a page stays mapped; `SQLite` never
//! writes so.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use rustix::fs::{AtFlags, StatxFlags, StatxTimestamp};
use windlass_io::DirectFile;

use super::descriptors::{self, FileId};
use super::ffi;
use super::options::Wait;
use super::wal::Overlay;
use super::{beside, file_error, wal_path};
use crate::Error;

/// Longer than the grain of times on file systems that have fractions of seconds: a timer tick.
const GRAIN: Duration = Duration::from_millis(50);
/// Longer than the grain on those that have not: two seconds on FAT.
const COARSE_GRAIN: Duration = Duration::from_millis(2100);
/// A change this far back is beyond any grain.
const LONG_AGO: Duration = Duration::from_secs(3);

/// What the system says about a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    size_bytes: u64,
    modified: (i64, u32),
    changed: (i64, u32),
}

impl Stamp {
    /// Asks, past what is remembered of a file system on another machine.
    pub(super) fn of(file: &DirectFile) -> std::io::Result<Self> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
        let status = rustix::fs::statx(file.as_file(), c"", flags, StatxFlags::BASIC_STATS)?;
        let time = |time: StatxTimestamp| (time.tv_sec, time.tv_nsec);
        Ok(Self {
            size_bytes: status.stx_size,
            modified: time(status.stx_mtime),
            changed: time(status.stx_ctime),
        })
    }

    /// Whether the content is that of `earlier`, whatever became of owner, mode and links.
    pub(super) fn has_content_of(&self, earlier: &Self) -> bool {
        (self.size_bytes, self.modified) == (earlier.size_bytes, earlier.modified)
    }

    /// Whether the length is that of `earlier`.
    pub(super) fn has_length_of(&self, earlier: &Self) -> bool {
        self.size_bytes == earlier.size_bytes
    }

    /// How long must be waited before a later change is sure to leave another stamp.
    fn grain(&self) -> Duration {
        let (seconds, nanoseconds) = self.changed;
        let changed = u64::try_from(seconds)
            .ok()
            .and_then(|seconds| {
                SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
            })
            .and_then(|changed| changed.elapsed().ok());
        match (changed, nanoseconds) {
            (Some(ago), _) if ago > LONG_AGO => Duration::ZERO,
            (_, 0) => COARSE_GRAIN,
            _ => GRAIN,
        }
    }
}

/// A database under watch.
#[derive(Debug)]
pub(super) struct Watched {
    path: PathBuf,
    file: Arc<DirectFile>,
    start: Stamp,
    /// Whether checkpoints are shut out by now.
    holds_checkpoints: AtomicBool,
}

impl Watched {
    /// Begins to watch the database at `path` and reads the log beside it, in a moment without change.
    /// The caller holds the SHARED lock, unless nobody can write or the user says that nobody does
    /// (`is_unchanging`).
    pub(super) fn begin(
        path: &Path,
        is_unchanging: bool,
        wait: &mut Wait<'_>,
    ) -> Result<(Self, Option<Overlay>), Error> {
        let file = descriptors::open(path)?;
        let stamp = || Stamp::of(&file).map_err(|error| file_error("examine", path, error));
        loop {
            let start = stamp()?;
            if !is_unchanging {
                wait.sleep(start.grain())?;
            }
            let log = wal_path(path);
            let overlay = match log.exists() {
                true => Overlay::leftover(&log),
                false => Ok(None),
            };
            if stamp()? == start {
                let watched = Self {
                    path: path.to_owned(),
                    file: Arc::clone(&file),
                    start,
                    holds_checkpoints: AtomicBool::new(false),
                };
                return Ok((watched, overlay?));
            }
            wait.pause(path)?;
        }
    }

    /// Looks whether the file is still unchanged, and shuts out checkpoints once that is possible.
    pub(super) fn look(&self, connection: &Mutex<Option<Connection>>) -> Result<(), Error> {
        if !self.holds_checkpoints.load(Ordering::Acquire) && beside(&self.path, "-shm").exists() {
            let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(connection) = connection.as_ref()
                && !self.holds_checkpoints.load(Ordering::Acquire)
                && ffi::hold_checkpoints(connection)
            {
                self.holds_checkpoints.store(true, Ordering::Release);
            }
        }
        self.compare()
    }

    /// Whether the file is the one of the beginning.
    fn compare(&self) -> Result<(), Error> {
        let now = Stamp::of(&self.file);
        let now = now.map_err(|error| file_error("examine", &self.path, error))?;
        if now == self.start {
            Ok(())
        } else {
            Err(self.changed())
        }
    }

    /// Confirms that nothing changed from the beginning to now.
    pub(super) fn confirm(&self, overlay: Option<&Overlay>) -> Result<(), Error> {
        confirm_name(&self.path, &self.file)?;
        self.compare()?;
        match overlay.map(Overlay::confirm) {
            Some(Err(Error::ChangedWhileReading { .. })) => Err(self.changed()),
            Some(other) => other,
            None => Ok(()),
        }
    }

    /// Gives back what was locked, before the connection is closed.
    pub(super) fn release(&self, connection: &Connection) {
        if self.holds_checkpoints.swap(false, Ordering::AcqRel) {
            ffi::release_checkpoints(connection);
        }
    }

    fn changed(&self) -> Error {
        Error::ChangedUnlocked {
            path: self.path.clone(),
        }
    }
}

/// Confirms that `path` still leads to the file that was read.
pub(super) fn confirm_name(path: &Path, file: &DirectFile) -> Result<(), Error> {
    let opened = file.as_file().metadata();
    let opened = opened.map_err(|error| file_error("examine", path, error))?;
    let named = std::fs::metadata(path);
    if named.is_ok_and(|named| FileId::of(&named) == FileId::of(&opened)) {
        Ok(())
    } else {
        Err(Error::ChangedWhileReading {
            path: path.to_owned(),
        })
    }
}
