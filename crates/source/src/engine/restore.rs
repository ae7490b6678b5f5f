//! A database of the page engine being put together again.
//!
//! Order at the end: the log is applied, data files are synced; the old log is removed (from here on the
//! old database does not open any more); data files take their names; the new log takes its name. A
//! crash between leaves data files without a log, which no engine opens; the restore is repeated.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_base::{Guid, Lsn};
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{BackupDescription, BackupRange, FileSpec, Restore};
use windlass_io::{Access, DirectFile, directory};

use super::pending::{PendingRestore, forget, pending, remove_all, remove_state};
use super::{LOG_FILE_ID, collected_log, data_index, describe, engine_error, io_error, staged};
use crate::{Error, Recovery, RestoreTarget};

/// Octets of log applied at a time.
const APPLY_BYTES: usize = 1 << 20;

/// Where a file of the set goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedFile {
    /// Its number in the set.
    pub file_id: u16,
    /// Its final path.
    pub path: PathBuf,
}

/// What a differential counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineBase {
    /// The full backup's set.
    pub set_guid: Guid,
    /// Its checkpoint.
    pub checkpoint_lsn: Lsn,
}

/// A restore to be begun.
#[derive(Debug, Clone)]
pub struct EngineRestoreRequest {
    /// The set's description of the database.
    pub description: Vec<u8>,
    /// Where each file goes, the log too.
    pub files: Vec<PlacedFile>,
    /// Name of the database in its instance.
    pub database_name: String,
    /// Octets of the log file to be made.
    pub log_bytes: u64,
    /// The set being restored.
    pub set_guid: Guid,
    /// Its checkpoint.
    pub checkpoint_lsn: Lsn,
    /// For a differential, the set that must have been restored before.
    pub base: Option<EngineBase>,
}

/// The restore of an engine database. See the module of [`super`] for what lies where meanwhile.
#[derive(Debug)]
pub struct EngineTarget {
    /// Taken out when the restore is finished or given up.
    restore: Option<Restore>,
    log_octets: DirectFile,
    state: PendingRestore,
    name: String,
    /// The log of the database that is replaced, locked so that nobody opens it meanwhile.
    _replaced: Option<DirectFile>,
}

impl EngineTarget {
    /// Makes the files beside their targets, or, for a differential, goes on with those that the base
    /// left.
    ///
    /// # Errors
    /// [`Error::InUse`], [`Error::NotRestoring`], [`Error::WrongBase`], [`Error::RestoreInterrupted`],
    /// those of the engine.
    pub fn begin(request: &EngineRestoreRequest) -> Result<Self, Error> {
        let description = describe(&request.description)?;
        let (data, log) = places(&description, &request.files)?;
        let mut state = PendingRestore {
            set_guid: request.set_guid,
            checkpoint_lsn: request.checkpoint_lsn,
            data,
            log,
            log_bytes: request.log_bytes,
            description,
            is_interrupted: true,
        };
        let replaced = seize(&state.log)?;
        let files = Arc::new(RealFileSystem);
        let staged_data = state.staged_data();
        let restore = if state.description.is_differential() {
            check_base(&state.log, request.base)?;
            // A crash from here on leaves data files that are neither the base nor the differential.
            state.store()?;
            Restore::onto(files, &state.description, &staged_data)
        } else {
            forget(&state.log)?;
            remove_all(&staged_data)?;
            Restore::begin(files, &state.description, &staged_data)
        }
        .map_err(engine_error)?;
        let collected = collected_log(&state.log);
        remove_all(std::slice::from_ref(&collected))?;
        let log_octets = DirectFile::open(&collected, Access::CreateNew)
            .map_err(|error| io_error("create", &collected, error))?;
        state.is_interrupted = false;
        Ok(Self {
            restore: Some(restore),
            log_octets,
            state,
            name: request.database_name.clone(),
            _replaced: replaced,
        })
    }

    /// Applies the collected log, piece by piece.
    fn apply_log(&self, restore: &mut Restore) -> Result<(), Error> {
        let path = self.log_octets.path();
        let fail = |error| io_error("read", path, error);
        let mut piece = vec![0; APPLY_BYTES];
        let mut offset = 0;
        loop {
            let bytes = self.log_octets.read_at(&mut piece, offset).map_err(fail)?;
            if bytes == 0 {
                break;
            }
            restore.apply_log(&piece[..bytes]).map_err(engine_error)?;
            offset += bytes as u64;
        }
        restore.settle().map_err(engine_error)
    }

    fn give_up(&mut self) -> Result<(), Error> {
        if self.restore.take().is_none() {
            return Ok(());
        }
        remove_all(&[collected_log(&self.state.log)])?;
        // The base's files stay, marked as interrupted: only a full backup makes them whole again.
        if self.state.description.is_differential() {
            return Ok(());
        }
        remove_all(&self.state.staged_data())
    }
}

impl RestoreTarget for EngineTarget {
    fn write(&self, file_id: u16, offset: u64, octets: &[u8]) -> Result<(), Error> {
        if file_id == LOG_FILE_ID {
            let path = self.log_octets.path();
            return self
                .log_octets
                .write_at(octets, offset)
                .map_err(|error| io_error("write", path, error));
        }
        let range = data_index(file_id).map(|file| BackupRange {
            file,
            offset,
            bytes: octets.len(),
        });
        match (range, &self.restore) {
            (Some(range), Some(restore)) => {
                restore.write_range(&range, octets).map_err(engine_error)
            }
            _ => Err(Error::OutOfRange {
                file_id,
                offset,
                bytes: octets.len() as u64,
                size_bytes: 0,
            }),
        }
    }

    fn finish(mut self: Box<Self>, recovery: Recovery) -> Result<(), Error> {
        let Some(mut restore) = self.restore.take() else {
            return Ok(());
        };
        self.apply_log(&mut restore)?;
        match recovery {
            Recovery::NoRecovery => self.state.store(),
            Recovery::Recovery => put_in_place(restore, &self.state, &self.name),
        }
    }

    fn abandon(mut self: Box<Self>) -> Result<(), Error> {
        self.give_up()
    }
}

impl Drop for EngineTarget {
    fn drop(&mut self) {
        // Nobody is left to tell; the next restore removes what is left.
        let _left = self.give_up();
    }
}

/// Locks the log of an existing database; whoever has it open has it locked.
fn seize(log: &Path) -> Result<Option<DirectFile>, Error> {
    let file = match DirectFile::open(log, Access::ReadWrite) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("open", log, error)),
    };
    match file.lock_exclusive() {
        Ok(()) => Ok(Some(file)),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Err(Error::InUse {
            path: log.to_owned(),
            process_id: None,
        }),
        Err(error) => Err(io_error("lock", log, error)),
    }
}

/// Ends a sequence of restores: what waits at `log` becomes the database `name`.
///
/// # Errors
/// [`Error::NotRestoring`], [`Error::RestoreInterrupted`], those of the engine.
pub fn recover(log: &Path, name: &str) -> Result<(), Error> {
    let state = waiting(log)?;
    let _replaced = seize(log)?;
    let restore = Restore::resume(
        Arc::new(RealFileSystem),
        &state.description,
        &state.staged_data(),
    )
    .map_err(engine_error)?;
    put_in_place(restore, &state, name)
}

/// The restore that waits at `log` and may go on.
fn waiting(log: &Path) -> Result<PendingRestore, Error> {
    let state = pending(log)?.ok_or_else(|| Error::NotRestoring {
        path: log.to_owned(),
    })?;
    if state.is_interrupted {
        return Err(Error::RestoreInterrupted {
            path: log.to_owned(),
        });
    }
    Ok(state)
}

fn check_base(log: &Path, base: Option<EngineBase>) -> Result<(), Error> {
    let state = waiting(log)?;
    let expected = base.unwrap_or(EngineBase {
        set_guid: Guid::NIL,
        checkpoint_lsn: Lsn::ZERO,
    });
    if (state.set_guid, state.checkpoint_lsn) == (expected.set_guid, expected.checkpoint_lsn) {
        return Ok(());
    }
    Err(Error::WrongBase {
        path: log.to_owned(),
        found: state.set_guid,
        found_lsn: state.checkpoint_lsn,
        expected: expected.set_guid,
        expected_lsn: expected.checkpoint_lsn,
    })
}

/// The data files' places in order, and the log's.
fn places(
    description: &BackupDescription,
    files: &[PlacedFile],
) -> Result<(Vec<PathBuf>, PathBuf), Error> {
    let path_of = |file_id: u16| files.iter().find(|file| file.file_id == file_id);
    let mut data = Vec::new();
    for index in 0..description.data_files().len() {
        let file_id = if index == 0 { 1 } else { index as u16 + 2 };
        let missing = Error::OutOfRange {
            file_id,
            offset: 0,
            bytes: 0,
            size_bytes: 0,
        };
        data.push(path_of(file_id).ok_or(missing)?.path.clone());
    }
    let log = match path_of(LOG_FILE_ID) {
        Some(file) => file.path.clone(),
        None => description.log_file().path.clone(),
    };
    Ok((data, log))
}

/// Makes the log, and gives all files their names.
fn put_in_place(mut restore: Restore, state: &PendingRestore, name: &str) -> Result<(), Error> {
    let staged_log = staged(&state.log);
    remove_all(std::slice::from_ref(&staged_log))?;
    restore.rename_to(&state.data, state.log.clone());
    let mut log = FileSpec {
        path: staged_log.clone(),
        ..state.description.log_file().clone()
    };
    log.size = log.size.max(state.log_bytes);
    // Of a differential, the extents that differ from the base are not known any more.
    let base =
        (!state.description.is_differential()).then_some((state.set_guid, state.checkpoint_lsn));
    restore.finish(name, &log, base).map_err(engine_error)?;
    remove_all(std::slice::from_ref(&state.log))?;
    sync_folder(&state.log)?;
    for (from, to) in state.staged_data().iter().zip(&state.data) {
        std::fs::rename(from, to).map_err(|error| io_error("rename", from, error))?;
        sync_folder(to)?;
    }
    std::fs::rename(&staged_log, &state.log)
        .map_err(|error| io_error("rename", &staged_log, error))?;
    sync_folder(&state.log)?;
    remove_state(&state.log)
}

pub(super) fn sync_folder(path: &Path) -> Result<(), Error> {
    let folder = directory::parent(path);
    directory::sync(&folder).map_err(|error| io_error("sync", &folder, error))
}
