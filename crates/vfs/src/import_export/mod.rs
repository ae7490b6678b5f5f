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
use std::sync::Arc;

pub use export::export;
pub use import::{Imported, PageChecksums, import, prepare};

use windlass_io::{DirectFile, own};

use crate::error::VfsError;

/// Bytes moved at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// A claimed file under its temporary name; removed on drop, unless it is kept.
#[derive(Debug)]
struct Claimed {
    file: Arc<DirectFile>,
    is_kept: bool,
}

impl Claimed {
    fn new(file: DirectFile) -> Self {
        Self {
            file: Arc::new(file),
            is_kept: false,
        }
    }

    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        if !self.is_kept {
            // Report the first error.
            let _left = own::remove_held(self.file.as_file(), self.file.path());
        }
    }
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
