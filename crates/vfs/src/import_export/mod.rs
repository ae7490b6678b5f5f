//! SQLite files into the engine and out of it, at the speed of the disk.
//!
//! [`import`] takes one committed state of a SQLite file that may be in use; [`export`] writes one
//! committed state of an engine database, which may be in use, to a plain SQLite file. Neither goes
//! through SQL, except that SQLite converts a file with other pages than the engine's, or without the room
//! for page checksums that is asked for.
//!
//! Both write under a temporary name and rename after the last sync: what carries the final name is
//! whole.

mod export;
mod import;
mod source;

use std::io;
use std::path::{Path, PathBuf};

pub use export::export;
pub use import::{Imported, PageChecksums, import};

use crate::error::VfsError;

/// Bytes moved at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Where the file is written before it is whole.
fn unfinished(path: &Path) -> PathBuf {
    beside(path, ".windlass-unfinished")
}

/// Name of a file beside another: its own name and a suffix.
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
