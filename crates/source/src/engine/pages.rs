//! The pages of a restore that waits for log backups, while its database is in use.
//!
//! They are kept next to the log, complete or not at all. They belong to one recovery fork: after a restore of the whole
//! database they are those of no database any more.

use std::path::{Path, PathBuf};

use windlass_base::Guid;
use windlass_engine::PageRoll;
use windlass_io::{directory, own};

use super::{engine_error, io_error, with_suffix};
use crate::Error;

/// Maximum bytes that are read: of a thousand pages in each of some files.
const BYTES_MAX: u64 = 512 << 20;

fn path_of(log: &Path) -> PathBuf {
    let followed = directory::follow(log).unwrap_or_else(|_| log.to_owned());
    with_suffix(&followed, ".windlass-pages")
}

/// The pages that wait for log backups of the database with this log and recovery fork.
///
/// # Errors
/// Those of the operating system; they are damaged.
pub fn waiting_pages(log: &Path, fork: Guid) -> Result<Option<PageRoll>, Error> {
    let path = path_of(log);
    let bytes = match own::read(&path, BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("read", &path, error)),
    };
    let pages = PageRoll::decode(&bytes).map_err(engine_error)?;
    Ok(Some(pages).filter(|pages| pages.recovery_fork() == fork))
}

/// Keeps pages until the next log backup; those of an earlier restore are replaced.
///
/// # Errors
/// Those of the operating system.
pub fn keep_pages(log: &Path, pages: &PageRoll) -> Result<(), Error> {
    let path = path_of(log);
    let bytes = pages.encode().map_err(engine_error)?;
    own::replace(&path, &bytes).map_err(|error| io_error("write", &path, error))
}

/// The restore of the pages has ended.
///
/// # Errors
/// Those of the operating system.
pub fn forget_pages(log: &Path) -> Result<(), Error> {
    let path = path_of(log);
    own::remove(&path).map_err(|error| io_error("remove", &path, error))
}
