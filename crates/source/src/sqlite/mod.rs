//! `SQLite` database files, backed up in place and restored next to their target.
//!
//! # Why a copy of a database in use is one committed state
//!
//! A connection of this process starts a read transaction and keeps it for the whole copy; the bytes are
//! read in large direct reads, bypassing `SQLite`. It remains to show that these bytes stay those of the
//! transaction.
//!
//! *Rollback journal.* The transaction holds the SHARED lock. A writer that changes the file needs
//! EXCLUSIVE and waits (or gets `SQLITE_BUSY`) until the copy is done. The image is the whole file,
//! including anything after the last page.
//!
//! *Write-ahead log.* `sqlite3_snapshot_get` as the first call in the transaction makes `SQLite`
//! take a read mark and returns the mark (a frame number), the salts of the log and the size of the
//! database at the mark.
//!
//! 1. *The log is empty (mark 0).* `SQLite` holds read lock 0, or a mark of 0. A checkpoint needs
//!    lock 0 exclusively, and copies no frame beyond any mark, so the file is frozen and is itself
//!    the snapshot: the image is the whole file. Writers append to the log, which we do not read.
//! 2. *The log has frames.* The mark is locked at 1..4, never at 0: `sqlite3_snapshot_get` does so
//!    even if everything is already checkpointed. A writer may restart the log only if no such lock
//!    is held, so the frames up to the mark stay in place; later frames are appended. A checkpoint
//!    copies only frames up to the lowest locked mark. So while we read, the database file may
//!    change only in pages that have a frame up to our mark. These pages are taken from the log
//!    (the last frame up to the mark) and all others from the file. Either way they are the bytes
//!    of the snapshot: torn bytes of a page that is being checkpointed are overwritten before they
//!    are used. The image is page count times page size. A page beyond the end of the file that has
//!    no frame was never written (`SQLite` does not write pages that were freed in the transaction
//!    that made them) and reads as zero, as in `SQLite`.
//!
//! The file is never truncated while the mark is held: a checkpoint does that only after copying
//! the newest frame, that is, if its header is the snapshot's own or the mark is that of this snapshot.
//!
//! In addition, frame headers must have the snapshot's salts, and the last one its checksum. On
//! closing, the log's header must be unchanged, a file that cannot have changed must have the same
//! length and modification time, and both names must still lead to the same file and log. A failure
//! is an error, never a warning.
//!
//! *A log without locks.* If `SQLite` cannot pin a database in WAL mode, or only by leaving files
//! that lock its owner out, the database is watched: see `watched.rs`.
//!
//! # Temporary copies
//!
//! In rollback mode writers wait as long as the transaction is held. A backup that takes longer
//! than a plain copy clones or copies the file first, ends the transaction, and reads the copy: see
//! `temporary_copy.rs`.
//!
//! # What is not `SQLite`
//!
//! Content that `SQLite` rejects (`SQLITE_NOTADB`, `SQLITE_CORRUPT`: encrypted, damaged, truncated)
//! is copied unchanged under the same SHARED lock, unless there is a journal or log next to it.
//!
//! # Descriptors
//!
//! See `descriptors.rs`: no descriptor of a live database is ever closed here. For the same reason
//! nothing else in a process may open and close a database file except through `SQLite`.

mod descriptors;
mod extent;
mod ffi;
mod follower;
mod header;
pub(crate) mod identity;
mod log_description;
mod log_snapshot;
mod made;
mod mount;
mod names;
mod open;
mod options;
mod overwritten;
mod restore;
mod snapshot;
mod spool;
mod temporary_copy;
mod uri;
mod wal;
mod watched;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

pub use follower::{FollowOptions, FollowStatus, Follower, Following, SentAway, WhenFull};
pub use identity::FileIdentity;
pub use log_description::LogDescription;
pub use log_snapshot::{CutLog, LogOf, SpooledLog, SqliteLogSnapshot};
pub use names::{check_name, refuse_to_replace};
pub use options::{CopyFolder, CopyPolicy, SnapshotOptions};
pub use restore::{
    Existing, ForwardRequest, LogReading, LogRestoreRequest, RequiredBase, RestoreProgress,
    RestoreRequest, RestoringState, Seized, SqliteLogTarget, SqliteTarget, forget, forward,
    forward_reach, recover, restoring,
};
pub use snapshot::SqliteSnapshot;
pub use spool::{
    Listed, Order, Reach, Slice, SpoolError, Stop, fuzz_spool, is_followed, list, lsn_of_time,
    remove_spool,
};

use crate::{Content, Error};

/// What the content of the file at `path` is. Unlike [`SqliteSnapshot`], this takes no lock and
/// ignores the write-ahead log, so it must not be used for decisions about a file that is being
/// written.
///
/// # Errors
/// Those of the file.
pub fn content(path: &Path) -> Result<Content, Error> {
    let file = descriptors::open(path)?;
    let found = file
        .len()
        .map_err(|error| file_error("examine", path, error))?;
    let mut bytes = [0; header::HEADER_BYTES];
    let read = file.read_at(&mut bytes, 0);
    let count = read.map_err(|error| file_error("read", path, error))?;
    let header = header::Header::parse(bytes.get(..count).unwrap_or_default());
    Ok(header.content(found))
}

/// Path of a file next to a database: the database's own name and a suffix.
fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(suffix);
    PathBuf::from(name)
}

fn wal_path(database: &Path) -> PathBuf {
    beside(database, "-wal")
}

fn journal_path(database: &Path) -> PathBuf {
    beside(database, "-journal")
}

fn file_error(action: &'static str, path: &Path, source: io::Error) -> Error {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::NotFound => Error::NotFound { path },
        _ => Error::Io {
            action,
            path,
            source,
        },
    }
}

fn sqlite_error(action: &'static str, path: &Path, source: rusqlite::Error) -> Error {
    Error::Sqlite {
        action,
        path: path.to_owned(),
        source,
    }
}
