//! STANDBY: a database that waits for further restores, and is read meanwhile.
//!
//! The data files of a sequence show the database at a commit, under their temporary names. The *standby file* is a log
//! of the page engine that opens them there, for readers only: with it they are a database, without it they are not.
//! It has nothing to undo, because a log has no transaction that is not committed.
//!
//! Invariants:
//! - The state file names a standby file only if that is complete, and belongs to the data files as they are.
//! - A restore that continues the sequence locks the standby file before it changes a data file, so nobody reads them
//!   meanwhile. Once it changes them, the state names no standby file any more; at its end the file is removed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_base::page::EXTENT_PAGES;
use windlass_engine::storage::{OwnFiles, RealFileSystem};
use windlass_engine::{BackupDescription, FileSpec, Growth, LogIdentity, Restore};
use windlass_io::{Access, DirectFile, directory, own};

use super::ending::sync_folder;
use super::pending::{PendingRestore, pending, remove_all};
use super::restore::{claim, waiting};
use super::{STAGED, describe, engine_error, io_error, with_suffix};
use crate::Error;

/// Least length of a standby file, bytes.
const STANDBY_BYTES: u64 = 1 << 20;

/// The standby file of a sequence that is continued: locked, so that nobody has the database open.
#[derive(Debug, Default)]
pub(super) struct Standby(Option<(PathBuf, DirectFile)>);

impl Standby {
    /// Locks the standby file of a sequence, if it has one.
    ///
    /// # Errors
    /// [`Error::StandbyLost`], [`Error::InUse`].
    pub(super) fn hold(state: &PendingRestore) -> Result<Self, Error> {
        let Some(path) = &state.standby else {
            return Ok(Self::default());
        };
        let lost = |why: String| Error::StandbyLost {
            path: path.clone(),
            why,
        };
        let file =
            DirectFile::open(path, Access::ReadWrite).map_err(|error| lost(error.to_string()))?;
        match file.lock_exclusive() {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                return Err(Error::InUse {
                    path: path.clone(),
                    process_id: None,
                });
            }
            Err(error) => return Err(io_error("lock", path, error)),
        }
        match LogIdentity::of(&RealFileSystem, path) {
            Ok(Some(found)) if found.guid == state.description.guid() => {}
            Ok(_) => return Err(lost("it is not that of this database".to_owned())),
            Err(error) => return Err(lost(error.to_string())),
        }
        Ok(Self(Some((path.clone(), file))))
    }

    /// The same for a sequence that is begun again, which does not need it.
    pub(super) fn hold_if_there(log: &Path) -> Result<Self, Error> {
        let Ok(Some(state)) = pending(log) else {
            return Ok(Self::default());
        };
        match Self::hold(&state) {
            Err(Error::StandbyLost { .. }) => Ok(Self::default()),
            held => held,
        }
    }

    /// The data files have changed: it belongs to them no longer.
    pub(super) fn remove(&mut self) -> Result<(), Error> {
        match self.0.take() {
            None => Ok(()),
            Some((path, file)) => own::remove_held(file.as_file(), &path)
                .map_err(|error| io_error("remove", &path, error)),
        }
    }
}

/// The standby file of the sequence at `log`; `None` if its data files cannot be read now.
///
/// # Errors
/// Those of the state file.
pub fn standby_file(log: &Path) -> Result<Option<PathBuf>, Error> {
    Ok(pending(log)?.and_then(PendingRestore::readable_standby))
}

/// Lets the restored files at `log` be read as the database `name`, until the next restore, with `file` as the standby
/// file.
///
/// # Errors
/// [`Error::NotRestoring`], [`Error::StandbyExists`], those of the engine.
pub fn stand_by(log: &Path, name: &str, file: &Path) -> Result<(), Error> {
    let mut state = waiting(log)?;
    let held = claim(&state.log)?;
    let made = (|| {
        let mut before = Standby::hold(&state)?;
        let path = directory::follow(file).map_err(|error| io_error("find", file, error))?;
        if state.standby.as_ref() == Some(&path) {
            return Ok(());
        }
        free(&path, &state.description)?;
        let restore = Restore::resume(Arc::new(OwnFiles), &state.description, &state.staged_data());
        let restore = restore.map_err(engine_error)?;
        state.check_staged(restore.data_files())?;
        let making = with_suffix(&path, ".windlass-new");
        own::remove_unheld(&making).map_err(|error| io_error("remove", &making, error))?;
        let spec = FileSpec {
            path: making.clone(),
            size: bytes_of(&state.description),
            growth: Growth::Bytes(STANDBY_BYTES),
            max_size: None,
            ..state.description.log_file().clone()
        };
        let made = restore.finish(name, &spec, None).map_err(engine_error)?;
        let named = match made.log.direct() {
            Some(log) => own::take_name(log.as_file(), &making, &path),
            None => Err(std::io::Error::from(std::io::ErrorKind::Unsupported)),
        };
        named.map_err(|error| io_error("name", &path, error))?;
        sync_folder(&path)?;
        state.standby = Some(path);
        state.store_ready()?;
        before.remove()
    })();
    remove_all(&[held.path().to_owned()])?;
    made
}

/// Ends that they can be read: the restored files at `log` wait for the next restore, without a standby file.
///
/// # Errors
/// [`Error::NotRestoring`], [`Error::StandbyLost`], [`Error::InUse`].
pub fn end_stand_by(log: &Path) -> Result<(), Error> {
    let mut state = waiting(log)?;
    let held = claim(&state.log)?;
    let ended = Standby::hold(&state).and_then(|mut standby| {
        state.standby = None;
        state.store_ready()?;
        standby.remove()
    });
    remove_all(&[held.path().to_owned()])?;
    ended
}

/// A log for the checkpoints of readers: their groups hold at most the whole differential map.
fn bytes_of(description: &BackupDescription) -> u64 {
    let map_bytes = u64::from(description.page_count()) / u64::from(EXTENT_PAGES) / 8;
    STANDBY_BYTES + 8 * map_bytes.next_multiple_of(STANDBY_BYTES)
}

/// Fails if a standby file of the database in a set cannot have this name.
///
/// # Errors
/// [`Error::StandbyExists`].
pub fn check_standby(path: &Path, description: &[u8]) -> Result<(), Error> {
    let description = describe(description)?;
    match !own::is_there(path) || is_of(path, &description) {
        true => Ok(()),
        false => Err(Error::StandbyExists {
            path: path.to_owned(),
        }),
    }
}

/// Whether a file is a standby file of the database. The log of one that is no part of a sequence names its data files
/// as they are.
fn is_of(path: &Path, description: &BackupDescription) -> bool {
    let found = LogIdentity::of(&RealFileSystem, path).ok().flatten();
    let is_staged = |path: &PathBuf| path.to_string_lossy().ends_with(STAGED);
    found.is_some_and(|found| {
        found.guid == description.guid() && found.data_paths.iter().all(is_staged)
    })
}

/// Removes what a crash has left of an earlier standby file of the database; any other file stays.
fn free(path: &Path, of: &BackupDescription) -> Result<(), Error> {
    let taken = || Error::StandbyExists {
        path: path.to_owned(),
    };
    if !own::is_there(path) {
        return Ok(());
    }
    if !is_of(path, of) {
        return Err(taken());
    }
    let file = DirectFile::open(path, Access::ReadWrite).map_err(|_| taken())?;
    file.lock_exclusive().map_err(|_| taken())?;
    own::remove_held(file.as_file(), path).map_err(|error| io_error("remove", path, error))
}
