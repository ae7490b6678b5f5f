//! Checks for enough disk space before a restore creates its first file.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use windlass_io::directory;

use super::pending::PendingRestore;
use super::{io_error, staged};
use crate::Error;

/// The unit in which file systems count allocated space.
const BLOCK_BYTES: u64 = 512;

/// Bytes that the files need on one file system, and bytes freed there by removing files of an
/// earlier restore.
#[derive(Debug, Default)]
struct Need {
    folder: PathBuf,
    bytes: u64,
    freed_bytes: u64,
}

/// Refuses a restore whose complete files do not fit. `redo_bytes` of log are collected next to the
/// log.
///
/// # Errors
/// [`Error::NoSpace`]; those of the operating system.
pub(super) fn check_room(state: &PendingRestore, redo_bytes: u64) -> Result<(), Error> {
    let mut needs: BTreeMap<u64, Need> = BTreeMap::new();
    let is_differential = state.description.is_differential();
    for (path, spec) in state.data.iter().zip(state.description.data_files()) {
        let left = std::fs::symlink_metadata(staged(path));
        let left_bytes = left.map_or(0, |left| left.blocks() * BLOCK_BYTES);
        let need = need_at(&mut needs, path)?;
        if is_differential {
            // The files of the base stay in use.
            let more = spec.size.saturating_sub(left_bytes);
            need.bytes = need.bytes.saturating_add(more);
        } else {
            need.bytes = need.bytes.saturating_add(spec.size);
            need.freed_bytes = need.freed_bytes.saturating_add(left_bytes);
        }
    }
    let log_bytes = state.description.log_file().size.max(state.log_bytes);
    let need = need_at(&mut needs, &state.log)?;
    need.bytes = need.bytes.saturating_add(log_bytes);
    need.bytes = need.bytes.saturating_add(redo_bytes);
    enough(&needs)
}

/// Refuses a log backup whose `redo_bytes` of log, and the log file of the database, do not fit.
///
/// # Errors
/// As [`check_room`].
pub(super) fn check_log_room(state: &PendingRestore, redo_bytes: u64) -> Result<(), Error> {
    let mut needs: BTreeMap<u64, Need> = BTreeMap::new();
    let log_bytes = state.description.log_file().size.max(state.log_bytes);
    need_at(&mut needs, &state.log)?.bytes = log_bytes.saturating_add(redo_bytes);
    enough(&needs)
}

fn enough(needs: &BTreeMap<u64, Need>) -> Result<(), Error> {
    for need in needs.values() {
        let free = directory::free_bytes(&need.folder);
        let free = free.map_err(|error| io_error("examine", &need.folder, error))?;
        let Some(free) = free else {
            continue;
        };
        let available_bytes = free.saturating_add(need.freed_bytes);
        if need.bytes > available_bytes {
            return Err(Error::NoSpace {
                path: need.folder.clone(),
                needed_bytes: need.bytes,
                available_bytes,
            });
        }
    }
    Ok(())
}

/// The need so far on the file system of a file.
fn need_at<'a>(needs: &'a mut BTreeMap<u64, Need>, path: &Path) -> Result<&'a mut Need, Error> {
    let folder = directory::parent(path);
    let metadata = std::fs::metadata(&folder).map_err(|error| io_error("find", &folder, error))?;
    let need = needs.entry(metadata.dev()).or_default();
    need.folder = folder;
    Ok(need)
}
