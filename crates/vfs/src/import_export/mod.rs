//! SQLite files to and from the engine, at the speed of the disk.
//!
//! [`import`] takes one committed state of a SQLite file that may be in use; [`export`] writes one
//! committed state of an engine database, which may be in use, to a plain SQLite file. Pages are
//! copied, not rows; only a source with another page size, with a write-ahead log in use, or without
//! the requested room for page checksums is rewritten by SQLite.
//!
//! Both write under a temporary name and rename after the last sync: a file with the final name is
//! complete.

mod export;
mod import;
mod source;

use std::io;
use std::path::{Path, PathBuf};

pub use export::export;
pub use import::{Imported, PageChecksums, import, prepare};

use crate::error::VfsError;

/// Bytes moved at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// The temporary path of an incomplete file.
fn unfinished(path: &Path) -> PathBuf {
    beside(path, ".windlass-unfinished")
}

/// The path of a file next to another: its name plus a suffix.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn io_error(action: &'static str, path: &Path, error: &io::Error) -> VfsError {
    VfsError::Io {
        action,
        path: path.to_owned(),
        reason: error.to_string(),
    }
}
