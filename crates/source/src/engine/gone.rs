//! The end of a database: its files are removed.
//!
//! The log goes first: without it no engine opens the others, so that no crash leaves a database that
//! opens and is not whole. What a crash leaves is removed by the next attempt: any of the files may be
//! missing.

use std::path::{Path, PathBuf};

use super::ending::sync_folder;
use super::pending::{forget, remove_all};
use super::restore::seize;
use crate::Error;

/// Removes the log and the data files of a database that nobody has open, and what an unfinished restore
/// has left beside them. Returns how many of the files there were.
///
/// # Errors
/// [`Error::InUse`], [`Error::RestoreRunning`], those of the operating system.
pub fn remove(log: &Path, data: &[PathBuf]) -> Result<usize, Error> {
    // Nobody opens the database while its log is locked.
    let seized = seize(log)?;
    forget(log)?;
    let mut removed = 0;
    for path in std::iter::once(log).chain(data.iter().map(PathBuf::as_path)) {
        if !windlass_io::own::is_there(path) {
            continue;
        }
        remove_all(&[path.to_owned()])?;
        sync_folder(path)?;
        removed += 1;
    }
    drop(seized);
    Ok(removed)
}
