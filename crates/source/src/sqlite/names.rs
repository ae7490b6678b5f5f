//! Refuses a database whose log or journal may lie beside another name of its file.
//!
//! `SQLite` looks for them beside the name by which the file was opened. Through another name (a mount of
//! the file alone, a hard link, the name after a rename) they are not seen: the file alone may be a
//! mixture of states, and nothing shows it.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Flock, FlockOffsetType, FlockType, fcntl_getlk};
use windlass_io::other_name;

use super::header::{HEADER_BYTES, Header};
use super::options::{SnapshotOptions, Wait};
use super::{beside, descriptors, file_error};
use crate::Error;
use crate::error::Alias;

/// The bytes that `SQLite` locks for a reader: `SHARED_FIRST` and `SHARED_SIZE` in its `os.h`.
const SHARED_BYTES: (u64, u64) = (0x4000_0002, 510);

/// How long a connection may have a database open without its -shm.
const MOMENT: Duration = Duration::from_secs(1);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Refuses a database whose log may lie beside another name of its file, for a program that reads it through
/// SQLite itself.
///
/// # Errors
/// [`Error::Aliased`]; those of the operating system.
pub fn check_name(path: &Path, options: &SnapshotOptions) -> Result<(), Error> {
    let followed = std::fs::canonicalize(path);
    let followed = followed.map_err(|error| file_error("examine", path, error))?;
    refuse_other(&followed, &Wait::begin(options))
}

/// Refuses to read the database at `path`, which must be free of links, if its log may be elsewhere.
pub(super) fn refuse_other(path: &Path, wait: &Wait<'_>) -> Result<(), Error> {
    let found = other_name::of(path).map_err(|error| file_error("examine", path, error))?;
    if let Some(found) = found {
        return Err(aliased(path, Alias::Name(found)));
    }
    let begun = Instant::now();
    while is_open_elsewhere(path)? {
        // A connection that is opening or closing has the lock for a moment without the -shm. Whoever has it
        // for longer uses another name, and a log beside that; it stays there when the program is gone.
        if begun.elapsed() >= MOMENT.min(wait.limit()) {
            return Err(aliased(path, Alias::Open));
        }
        wait.sleep(PAUSE)?;
    }
    Ok(())
}

/// Refuses to replace the file at `path`, if that would fail or leave the old file under another name.
///
/// # Errors
/// [`Error::NotReplaceable`]; those of the operating system.
pub fn refuse_to_replace(path: &Path) -> Result<(), Error> {
    match other_name::of(path).map_err(|error| file_error("examine", path, error))? {
        None => Ok(()),
        Some(found) => Err(Error::NotReplaceable {
            path: path.to_owned(),
            found,
        }),
    }
}

fn aliased(path: &Path, alias: Alias) -> Error {
    Error::Aliased {
        path: path.to_owned(),
        alias,
    }
}

/// Whether another process uses the database in WAL mode without a -shm beside this name. Every
/// connection in WAL mode holds the SHARED lock, and has a -shm beside the name that it uses.
fn is_open_elsewhere(path: &Path) -> Result<bool, Error> {
    if beside(path, "-shm").exists() {
        return Ok(false);
    }
    let mut header = [0; HEADER_BYTES];
    let file = descriptors::open(path)?;
    let read = file.read_at(&mut header, 0);
    let bytes = read.map_err(|error| file_error("read", path, error))?;
    if !Header::parse(header.get(..bytes).unwrap_or_default()).is_wal {
        return Ok(false);
    }
    let (start, length) = SHARED_BYTES;
    let wanted = Flock {
        start,
        length,
        pid: None,
        typ: FlockType::WriteLock,
        offset_type: FlockOffsetType::Set,
    };
    // A file system without locks proves nothing; whoever writes is none of its business.
    let held = fcntl_getlk(file.as_file(), &wanted).ok().flatten();
    // The exclusive lock is of a program that needs no -shm; SQLite waits for it.
    Ok(held.is_some_and(|held| held.typ == FlockType::ReadLock) && !beside(path, "-shm").exists())
}
