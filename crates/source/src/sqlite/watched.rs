//! A database in WAL mode that is read without a lock on its log, and proved unchanged.
//!
//! `SQLite` keeps the locks of a log in the -shm file. If that file does not exist and cannot be
//! created (a read-only mount, a user with read access only, a full disk), no lock prevents a
//! checkpoint from copying newer pages into the database. The following takes its place:
//!
//! 1. The SHARED lock of the database file itself, which a read-only descriptor can take. While it
//!    is held, no connection changes the journal mode, and the last connection to close neither folds its
//!    log nor removes it. Writers can still connect and write to the log; only a checkpoint during
//!    their work can change the file.
//! 2. The file's identity, length, and times of change at the beginning. The state consists of the
//!    file and of the committed frames in the log (checksums verified) during a period in which the
//!    file did not change. Times have a resolution: two changes within it look like one. So the
//!    last change must be older than the resolution, or we wait that long.
//! 3. As soon as a writer has created a -shm: read lock 0 of the log, in that file, which locks out
//!    checkpoints.
//! 4. At the end, and at each read before it: the file must be the one from the beginning, the log
//!    must have the same header, and both names must still lead to them. Otherwise the copy is
//!    refused. A change in the window between 2 and 3 fails the backup but never corrupts it.
//!
//! The proof needs a file system of which this kernel sees all changes. On any other (NFS, SMB,
//! FUSE) it is refused, unless the user guarantees that no program writes. Then point 4 still holds.
//!
//! A program that writes through a memory map changes no times while a page stays mapped; `SQLite`
//! never does so.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use rustix::fs::{AtFlags, StatxFlags, StatxTimestamp};
use windlass_io::DirectFile;
use windlass_media::WalPosition;

use super::descriptors::{self, FileId};
use super::ffi;
use super::mount::Mount;
use super::options::Wait;
use super::wal::Overlay;
use super::{beside, file_error, wal_path};
use crate::Error;

/// Longer than the resolution of times on file systems with fractions of seconds: a timer tick.
const GRAIN: Duration = Duration::from_millis(50);
/// Longer than the resolution on other file systems: two seconds on FAT.
const COARSE_GRAIN: Duration = Duration::from_millis(2100);
/// A change this long ago is beyond any resolution.
const LONG_AGO: Duration = Duration::from_secs(3);

/// What the system reports about a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    size_bytes: u64,
    modified: (i64, u32),
    changed: (i64, u32),
}

impl Stamp {
    /// Queries it, bypassing what is cached of a file system on another machine.
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

    /// Whether the content is that of `earlier`, whatever the owner, mode and links.
    pub(super) fn has_content_of(&self, earlier: &Self) -> bool {
        (self.size_bytes, self.modified) == (earlier.size_bytes, earlier.modified)
    }

    /// Whether the last change is known to be longer ago than `time`.
    pub(super) fn modified_before(&self, now: SystemTime, time: Duration) -> bool {
        let (seconds, nanoseconds) = self.modified;
        let modified = u64::try_from(seconds).ok().and_then(|seconds| {
            SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
        });
        let ago = modified.and_then(|modified| now.duration_since(modified).ok());
        ago.is_some_and(|ago| ago > time)
    }

    /// Whether the length is that of `earlier`.
    pub(super) fn has_length_of(&self, earlier: &Self) -> bool {
        self.size_bytes == earlier.size_bytes
    }

    /// How long to wait so that a later change is sure to change the stamp.
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

/// The position of a database to whose log nothing was written yet, while a lock keeps the file unchanged: what the file
/// system says of the file. A later change, which needs another lock, changes that, because the last change is older
/// than the resolution of times, or becomes so here. `None` where times of change are not reliable.
pub(super) fn position_of_file(path: &Path) -> Result<Option<WalPosition>, Error> {
    if !Mount::of(path).is_some_and(|mount| mount.is_local()) {
        return Ok(None);
    }
    let file = descriptors::open(path)?;
    let fail = |error| file_error("examine", path, error);
    let stamp = Stamp::of(&file).map_err(fail)?;
    std::thread::sleep(stamp.grain());
    let inode = file.as_file().metadata().map_err(fail)?.ino();
    let mut bytes = Vec::new();
    for number in [inode, stamp.size_bytes] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    for (seconds, nanoseconds) in [stamp.modified, stamp.changed] {
        bytes.extend_from_slice(&seconds.to_le_bytes());
        bytes.extend_from_slice(&nanoseconds.to_le_bytes());
    }
    let [a, b, c, d, e, f, g, h, ..] = windlass_base::digest(&bytes).0;
    Ok(Some(WalPosition {
        checksum: [
            u32::from_le_bytes([a, b, c, d]),
            u32::from_le_bytes([e, f, g, h]),
        ],
        ..WalPosition::default()
    }))
}

/// A database under watch.
#[derive(Debug)]
pub(super) struct Watched {
    path: PathBuf,
    file: Arc<DirectFile>,
    start: Stamp,
    /// Whether checkpoints are locked out by now.
    holds_checkpoints: AtomicBool,
}

impl Watched {
    /// Starts watching the database at `path` and reads the log next to it, at a moment without changes.
    /// The caller holds the SHARED lock, unless no process can write or the user guarantees that none
    /// does (`is_unchanging`).
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

    /// Checks that the file is still unchanged, and locks out checkpoints as soon as possible.
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

    /// Checks that the file is the one from the beginning.
    fn compare(&self) -> Result<(), Error> {
        let now = Stamp::of(&self.file);
        let now = now.map_err(|error| file_error("examine", &self.path, error))?;
        if now == self.start {
            Ok(())
        } else {
            Err(self.changed())
        }
    }

    /// Confirms that nothing changed since the beginning.
    pub(super) fn confirm(&self, overlay: Option<&Overlay>) -> Result<(), Error> {
        confirm_name(&self.path, &self.file)?;
        self.compare()?;
        match overlay.map(Overlay::confirm) {
            Some(Err(Error::ChangedWhileReading { .. })) => Err(self.changed()),
            Some(other) => other,
            None => Ok(()),
        }
    }

    /// Releases the locks before the connection is closed.
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
