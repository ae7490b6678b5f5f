//! `SQLite` database files, backed up where they lie and restored beside their target.
//!
//! # Why a copy of a database in use is one committed state
//!
//! A connection of our own begins a read transaction and keeps it for the whole copy; the bytes are
//! then read around `SQLite`, in large direct reads. What must be shown is that these bytes stay
//! those of the transaction.
//!
//! *Rollback journal.* The transaction holds the SHARED lock. Whoever wants to change the file needs
//! EXCLUSIVE and waits (or gets `SQLITE_BUSY`) until the copy is done. The image is the whole file,
//! including what lies behind the last page.
//!
//! *Write-ahead log.* `sqlite3_snapshot_get` as the first thing in the transaction makes `SQLite` take
//! a read mark and tells the mark (a frame number), the salts of the log and the size of the
//! database at the mark.
//!
//! 1. *The log is empty (mark 0).* `SQLite` holds read lock 0, or a mark of 0. A checkpoint needs lock
//!    0 exclusively, and copies no frame beyond any mark, so the file is frozen, and it alone is the
//!    snapshot: the image is the whole file. Writers append to the log, which we do not read.
//! 2. *The log holds frames.* The mark is locked at 1..4, never at 0: asked for a snapshot, `SQLite`
//!    does so even if everything is checkpointed already. A writer may begin the log anew only when
//!    no such lock is held, so the frames up to the mark stay where they are; later frames go behind
//!    them. A checkpoint copies only frames up to the lowest locked mark. So while we read, the
//!    database file may change in pages that have a frame up to our mark, and in no others. We take
//!    the former from the log (the last frame up to the mark) and the latter from the file: either
//!    way the bytes of the snapshot, and torn bytes of a page that is being checkpointed are
//!    overwritten before anybody sees them. The image is page count times page size. A page beyond
//!    the end of the file that has no frame was never written (`SQLite` does not write pages that
//!    were freed in the transaction that made them) and reads as zero, as in `SQLite`.
//!
//! The file is never shortened while the mark is held: a checkpoint does that only when it has
//! copied the newest frame, that is, when its header is the snapshot's own or the mark is ours.
//!
//! Belt and braces: frame headers must carry the snapshot's salts and the last one its checksum; on
//! closing, the log's header must still be the one from the beginning, a file that cannot have changed
//! must have the length and the time of change that it had, and file and log still be those that the
//! names lead to. A failure is an error, never a warning.
//!
//! *A log without locks.* Where `SQLite` cannot pin a database in WAL mode, or only by leaving files that
//! lock its owner out, it is watched: see `watched.rs`.
//!
//! # Temporary copies
//!
//! In rollback mode writers wait for as long as the transaction is held. A backup that takes longer than a
//! plain copy clones or copies the file first, ends the transaction, and reads the copy: see `temporary_copy.rs`.
//!
//! # What is not `SQLite`
//!
//! Content that `SQLite` refuses (`SQLITE_NOTADB`, `SQLITE_CORRUPT`: encrypted, damaged, cut off) is
//! copied as it is under the same SHARED lock, provided that no journal or log lies beside it.
//!
//! # Descriptors
//!
//! See `descriptors.rs`: no descriptor of a live database is ever closed here. For the same reason
//! nothing else in a process may open and close a database file except through `SQLite`.

mod descriptors;
mod ffi;
mod header;
mod identity;
mod made;
mod mount;
mod open;
mod options;
mod restore;
mod snapshot;
mod temporary_copy;
mod uri;
mod wal;
mod watched;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

pub use identity::FileIdentity;
pub use options::{CopyFolder, CopyPolicy, SnapshotOptions};
pub use restore::{
    Existing, RequiredBase, RestoreProgress, RestoreRequest, RestoringState, SqliteTarget, forget,
    recover, restoring,
};
pub use snapshot::SqliteSnapshot;

use crate::{Content, Error};

/// What the file at `path` looks like. Unlike [`SqliteSnapshot`], this takes no lock, so it is not for a
/// decision about a file that is being written: what lies in a write-ahead log is not seen.
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

/// Name of a file beside a database: the database's own name and a suffix.
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
