//! The restore of a page engine database.
//!
//! The files are written under temporary names here; [`super::ending`] renames them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use windlass_base::{FileId, Guid, Lsn};
use windlass_engine::storage::OwnFiles;
use windlass_engine::{BackupDescription, BackupRange, EngineError, Reached, Restore, StopAt};
use windlass_io::succession::Predecessor;
use windlass_io::{Access, DirectFile, directory, own, succession};

use super::ending::{check_names, complete, make_whole, place};
use super::pending::{
    Approved, PendingRestore, Progress, forget_files, pending, remove_all, remove_unheld,
};
use super::room::check_room;
use super::standby::Standby;
use super::{LOG_FILE_ID, collected_log, describe, engine_error, io_error, staged};
use crate::sqlite::{Existing, refuse_to_replace};
use crate::{Error, Protection, Recovery, RestoreTarget};

/// Bytes of log applied at a time.
const APPLY_BYTES: usize = 1 << 20;

/// The target of a file of the set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlacedFile {
    /// Its number in the set.
    pub file_id: u16,
    /// Its final path.
    pub path: PathBuf,
    /// Its permissions, if it replaces no file; owner-only if unknown.
    pub mode: Option<u16>,
}

/// The base of a differential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineBase {
    /// The full backup's set.
    pub set_guid: Guid,
    pub checkpoint_lsn: Lsn,
}

#[derive(Debug, Clone, Default)]
pub struct EngineRestoreRequest {
    /// The set's description of the database.
    pub description: Vec<u8>,
    /// The target of each file, including the log.
    pub files: Vec<PlacedFile>,
    /// Name of the database in its instance.
    pub database_name: String,
    /// Length of the log file to create.
    pub log_bytes: u64,
    /// The set being restored.
    pub set_guid: Guid,
    pub checkpoint_lsn: Lsn,
    /// For a differential, the set that must have been restored before.
    pub base: Option<EngineBase>,
    /// Bytes of log in the set.
    pub redo_bytes: u64,
    /// Of a log backup: where to stop.
    pub stop: StopAt,
    /// Whether files at the targets may be replaced.
    pub existing: Existing,
    /// How the set is protected.
    pub protection: Protection,
    /// Whether a differential may follow a base that is better protected.
    pub allow_less_protected: bool,
    /// Whether the content may be something other than a database.
    pub as_is: bool,
    /// The registered database that the files are made for, see [`crate::ownership`].
    pub made_for: Option<Guid>,
}

/// The restore of a page engine database. For its temporary files, see [`super`].
#[derive(Debug)]
pub struct EngineTarget {
    /// Created at the start of a full restore, or before the first byte of a differential.
    restore: OnceLock<Restore>,
    /// Held while creating it.
    making: Mutex<()>,
    /// The file that collects the log of the set; locked, so that no second restore of the target
    /// starts.
    log_bytes: DirectFile,
    state: PendingRestore,
    name: String,
    /// Whether nothing is left to undo.
    is_over: bool,
    /// Of the sequence that goes on, or begins again.
    standby: Standby,
    _replaced: Replaced,
}

/// The files that a restore replaces.
#[derive(Debug)]
pub(super) struct Replaced {
    /// The log of the replaced database, locked so that no program opens it.
    _log: Option<DirectFile>,
    _files: Vec<Option<Predecessor>>,
}

impl Replaced {
    /// Takes note of the files at the targets, and keeps programs from opening the database. `approved` are those that a
    /// sequence of restores under way is to replace.
    pub(super) fn seize(
        state: &mut PendingRestore,
        existing: Existing,
        approved: Option<&Approved>,
    ) -> Result<Self, Error> {
        let number = |file: &Option<Predecessor>| file.as_ref().map(Predecessor::number);
        let mut files = Vec::new();
        for path in state.targets() {
            refuse_to_replace(path)?;
            let found = Predecessor::of(path).map_err(|error| io_error("examine", path, error))?;
            let is_refused = match existing {
                Existing::Refuse => true,
                Existing::Approved => {
                    approved.is_some_and(|approved| !approved.has(path, number(&found)))
                }
                Existing::Replace => false,
            };
            if found.is_some() && is_refused {
                return Err(Error::TargetExists { path: path.clone() });
            }
            files.push(found);
        }
        state.replaced = files.iter().map(number).collect();
        let log = seize(&state.log)?;
        let replaced = state.replaced.last().copied().flatten();
        succession::check(&state.log, replaced)
            .map_err(|error| io_error("replace", &state.log, error))?;
        Ok(Self {
            _log: log,
            _files: files,
        })
    }
}

impl EngineTarget {
    /// Claims the target for this restore and, for a full backup, creates the files next to their
    /// targets. A refusal leaves everything unchanged.
    ///
    /// # Errors
    /// [`Error::RestoreRunning`], [`Error::InUse`], [`Error::NoSpace`], [`Error::NotRestoring`],
    /// [`Error::WrongBase`], [`Error::LessProtected`], [`Error::RestoreInterrupted`], those of the
    /// engine.
    pub fn begin(request: &EngineRestoreRequest) -> Result<Self, Error> {
        let description = describe(&request.description)?;
        let (data, log) = places(&description, &request.files)?;
        let is_differential = description.is_differential();
        let mut state = PendingRestore {
            set_guid: request.set_guid,
            checkpoint_lsn: request.checkpoint_lsn,
            data,
            log,
            log_bytes: request.log_bytes,
            protection: request.protection.clone(),
            modes: modes(&request.files),
            as_is: request.as_is,
            made_for: request.made_for,
            description,
            staged: Vec::new(),
            replaced: Vec::new(),
            reached: Reached::default(),
            standby: None,
            progress: Progress::Ready,
        };
        complete(&state.log)?;
        let log_bytes = claim(&state.log)?;
        let begun = (|| {
            // What cannot be read cannot be continued.
            let earlier = pending(&state.log).ok().flatten();
            let approved = earlier.as_ref().map(Approved::of);
            let replaced = Replaced::seize(&mut state, request.existing, approved.as_ref())?;
            let mut standby = Standby::default();
            if is_differential {
                let base = check_base(&state.log, request)?;
                standby = Standby::hold(&base)?;
                state.staged = base.staged;
                state.protection = base.protection;
                state.as_is |= base.as_is;
                state.made_for = state.made_for.or(base.made_for);
                state.modes = base
                    .modes
                    .into_iter()
                    .chain(modes(&request.files))
                    .collect();
            }
            check_room(&state, request.redo_bytes)?;
            if !is_differential {
                standby = Standby::hold_if_there(&state.log)?;
            }
            Ok((replaced, standby))
        })();
        let (replaced, standby) = begun.inspect_err(|_| drop(own::remove(log_bytes.path())))?;
        // From here on, created files are removed if the restore fails.
        let target = Self {
            restore: OnceLock::new(),
            making: Mutex::new(()),
            log_bytes,
            state,
            name: request.database_name.clone(),
            is_over: false,
            standby,
            _replaced: replaced,
        };
        if !is_differential {
            target.files()?;
        }
        Ok(target)
    }

    /// The files being restored, created by the first call.
    fn files(&self) -> Result<&Restore, Error> {
        if let Some(restore) = self.restore.get() {
            return Ok(restore);
        }
        let _one = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(restore) = self.restore.get() {
            return Ok(restore);
        }
        let (files, state) = (Arc::new(OwnFiles), &self.state);
        let staged_data = state.staged_data();
        let restore = if state.description.is_differential() {
            let restore = Restore::onto(files, &state.description, &staged_data);
            let restore = restore.map_err(engine_error)?;
            state.check_staged(restore.data_files())?;
            // A crash from here on leaves data files that are neither the base nor the differential.
            state.store(Progress::Applying)?;
            restore
        } else {
            forget_files(&state.log)?;
            Restore::begin(files, &state.description, &staged_data).map_err(engine_error)?
        };
        Ok(self.restore.get_or_init(|| restore))
    }

    /// Applies the collected log piece by piece.
    fn apply_log(&self, restore: &mut Restore) -> Result<(), Error> {
        each_piece(&self.log_bytes, |piece| restore.apply_log(piece))?;
        restore.settle().map_err(engine_error)
    }

    /// Removes created files. The files of a differential's base stay: intact if nothing was
    /// written to them, otherwise marked as interrupted, so that only a full backup can continue.
    fn give_up(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.is_over, true) {
            return Ok(());
        }
        let is_full = !self.state.description.is_differential();
        drop(self.restore.take());
        remove_unheld(&[staged(&self.state.log)])?;
        let removed = match is_full {
            // The sequence that was begun again is forgotten.
            true => remove_unheld(&self.state.staged_data()).and_then(|()| self.standby.remove()),
            false => Ok(()),
        };
        remove_all(&[self.log_bytes.path().to_owned()])?;
        removed
    }
}

impl RestoreTarget for EngineTarget {
    fn write(&self, file_id: u16, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        if file_id == LOG_FILE_ID {
            let path = self.log_bytes.path();
            return self
                .log_bytes
                .write_at(bytes, offset)
                .map_err(|error| io_error("write", path, error));
        }
        let file = FileId(file_id);
        match file.data_index() {
            Some(_) => {
                let range = BackupRange {
                    file,
                    offset,
                    bytes: bytes.len(),
                };
                let files = self.files()?;
                files.write_range(&range, bytes).map_err(engine_error)
            }
            None => Err(Error::OutOfRange {
                file_id,
                offset,
                bytes: bytes.len() as u64,
                size_bytes: 0,
            }),
        }
    }

    fn finish(mut self: Box<Self>, recovery: Recovery) -> Result<(), Error> {
        self.files()?;
        let Some(mut restore) = self.restore.take() else {
            return Ok(());
        };
        self.apply_log(&mut restore)?;
        self.standby.remove()?;
        self.state.reached = restore.reached();
        self.state.note_staged(&restore)?;
        match recovery {
            Recovery::NoRecovery => self.state.store(Progress::Ready)?,
            Recovery::Recovery => {
                if self.state.description.is_differential() {
                    // From here on a failure does not cost the sequence: RECOVERY alone can be repeated.
                    self.state.store(Progress::Ready)?;
                }
                let restored = make_whole(restore, &self.state, &self.name)?;
                check_names(&self.state)?;
                self.state.store(Progress::Placing)?;
                // From here on what was made is all that there is.
                self.is_over = true;
                place(&self.state, &restored)?;
            }
        }
        self.is_over = true;
        remove_all(&[self.log_bytes.path().to_owned()])
    }

    fn abandon(mut self: Box<Self>) -> Result<(), Error> {
        self.give_up()
    }
}

impl Drop for EngineTarget {
    fn drop(&mut self) {
        // The error cannot be returned from a drop; the next restore removes the remains.
        let _left = self.give_up();
    }
}

/// Passes on the collected log piece by piece.
pub(super) fn each_piece(
    log: &DirectFile,
    mut each: impl FnMut(&[u8]) -> Result<(), EngineError>,
) -> Result<(), Error> {
    let fail = |error| io_error("read", log.path(), error);
    let mut piece = vec![0; APPLY_BYTES];
    let mut offset = 0;
    loop {
        let bytes = log.read_at(&mut piece, offset).map_err(fail)?;
        if bytes == 0 {
            return Ok(());
        }
        each(&piece[..bytes]).map_err(engine_error)?;
        offset += bytes as u64;
    }
}

/// Creates the file that collects the log; only one restore of a target can have it.
pub(super) fn claim(log: &Path) -> Result<DirectFile, Error> {
    let collected = collected_log(log);
    own::claim(&collected).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Error::RestoreRunning {
            path: log.to_owned(),
        },
        _ => io_error("create", &collected, error),
    })
}

pub(super) fn modes(files: &[PlacedFile]) -> BTreeMap<u16, u16> {
    let known = files
        .iter()
        .filter_map(|file| Some((file.file_id, file.mode?)));
    known.collect()
}

/// Locks the log of an existing database; fails if the database is open.
pub(super) fn seize(log: &Path) -> Result<Option<DirectFile>, Error> {
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

/// Ends a sequence of restores: the restored files at `log` become the database `name`.
///
/// # Errors
/// [`Error::TargetExists`], [`Error::NotRestoring`], [`Error::RestoreInterrupted`], those of the engine.
pub fn recover(log: &Path, name: &str, existing: Existing) -> Result<(), Error> {
    if complete(log)? {
        return Ok(());
    }
    let mut state = waiting(log)?;
    let held = claim(&state.log)?;
    let approved = Approved::of(&state);
    let replaced = Replaced::seize(&mut state, existing, Some(&approved));
    let recovered = replaced.and_then(|_replaced| {
        let files = Arc::new(OwnFiles);
        let mut standby = Standby::hold(&state)?;
        let restore = Restore::resume(files, &state.description, &state.staged_data());
        let restore = restore.map_err(engine_error)?;
        state.check_staged(restore.data_files())?;
        let restored = make_whole(restore, &state, name)?;
        check_names(&state)?;
        state.standby = None;
        state.store(Progress::Placing)?;
        standby.remove()?;
        place(&state, &restored)
    });
    remove_all(&[held.path().to_owned()])?;
    recovered
}

/// The unfinished restore at `log`, if it can continue.
pub(super) fn waiting(log: &Path) -> Result<PendingRestore, Error> {
    let state = pending(log)?.ok_or_else(|| Error::NotRestoring {
        path: log.to_owned(),
    })?;
    match state.progress {
        Progress::Ready => Ok(state),
        Progress::Applying => Err(Error::RestoreInterrupted {
            path: log.to_owned(),
        }),
        Progress::Rolling => Err(Error::RollInterrupted {
            path: log.to_owned(),
        }),
        // Its files have their final names, or the restore must be repeated.
        Progress::Placing | Progress::Leaving => Err(Error::NotRestoring {
            path: log.to_owned(),
        }),
    }
}

fn check_base(log: &Path, request: &EngineRestoreRequest) -> Result<PendingRestore, Error> {
    let state = waiting(log)?;
    let expected = request.base.unwrap_or(EngineBase {
        set_guid: Guid::NIL,
        checkpoint_lsn: Lsn::ZERO,
    });
    if (state.set_guid, state.checkpoint_lsn) != (expected.set_guid, expected.checkpoint_lsn) {
        return Err(Error::WrongBase {
            path: log.to_owned(),
            found: state.set_guid,
            found_lsn: state.checkpoint_lsn,
            expected: expected.set_guid,
            expected_lsn: expected.checkpoint_lsn,
        });
    }
    check_protection(&state, request)?;
    Ok(state)
}

/// What follows may not be less protected than the base.
pub(super) fn check_protection(
    state: &PendingRestore,
    request: &EngineRestoreRequest,
) -> Result<(), Error> {
    match state.protection.admits(&request.protection) || request.allow_less_protected {
        true => Ok(()),
        false => Err(Error::LessProtected {
            path: state.log.clone(),
            base: state.protection.clone(),
            found: request.protection.clone(),
        }),
    }
}

/// Follows links: the link stays and its target is replaced.
fn follow(path: &Path) -> Result<PathBuf, Error> {
    directory::follow(path).map_err(|error| io_error("find", path, error))
}

/// The paths of the data files in order, and of the log.
pub(super) fn places(
    description: &BackupDescription,
    files: &[PlacedFile],
) -> Result<(Vec<PathBuf>, PathBuf), Error> {
    let path_of = |file_id: u16| files.iter().find(|file| file.file_id == file_id);
    let mut data = Vec::new();
    for index in 0..description.data_files().len() {
        let file_id = FileId::of_data(index).0;
        let missing = Error::OutOfRange {
            file_id,
            offset: 0,
            bytes: 0,
            size_bytes: 0,
        };
        data.push(follow(&path_of(file_id).ok_or(missing)?.path)?);
    }
    let log = match path_of(LOG_FILE_ID) {
        Some(file) => &file.path,
        None => &description.log_file().path,
    };
    Ok((data, follow(log)?))
}
