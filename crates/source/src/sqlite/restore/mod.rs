//! Restores a `SQLite` database next to its target.
//!
//! ```text
//! app.db                              the target: the old database, or nothing, until the very end
//! app.db.windlass-restoring           the new database during the restore
//! app.db.windlass-restoring.log       while a log backup is applied
//! app.db.windlass-restoring.json      only between NORECOVERY and RECOVERY: what was restored so far
//! ```
//!
//! Order of a restore WITH RECOVERY, and what a crash after each step leaves:
//!
//! | step | after a crash |
//! |---|---|
//! | claim the staging file, so that no second restore of the target starts | old |
//! | lock the old database exclusively, until the end | old |
//! | write the staging file, sync, check that it is a database, set identity, mode and owner | old, and a staging file that the next restore removes |
//! | checkpoint the old database's log, sync | old |
//! | wait for programs that have the target open and wait for our lock | old |
//! | remove the old -wal, -shm, -journal; sync the folder | old, without its (empty) log |
//! | rename over the target; sync the folder | old or new |
//! | remove the state file | new; the state file without a staging file means nothing |
//!
//! The old log is removed before the rename because `SQLite` would otherwise apply it to the new
//! file. If the target is a symbolic link, the file it leads to is replaced.
//!
//! WITH NORECOVERY the staging file stays, so the database does not open, and the state file says
//! which backup set was restored last. A differential marks the state as *applying* before its
//! first byte: if it is interrupted, the staging file is neither the base nor the differential, and
//! the sequence must start again. A differential that is refused before that leaves the sequence
//! unchanged. A log marks the state as *rolling*: it can be applied again (`log_target`).

mod collected_log;
mod content;
mod existing;
mod fault;
mod forward;
mod log_target;
mod log_verify;
mod request;
mod staging_file;
mod state;
#[cfg(test)]
mod tests;
mod users;

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use windlass_base::Guid;
use windlass_io::{directory, own};

pub use collected_log::LogReading;
use existing::ExistingTarget;
pub use forward::{ForwardRequest, forward, forward_reach};
pub use log_target::{LogRestoreRequest, SqliteLogTarget};
pub use request::{Existing, RequiredBase, RestoreRequest};
use staging_file::{Claim, StagingFile};
pub use state::{RestoreProgress, RestoringState};

use super::identity::FileIdentity;
use super::snapshot::FILE_ID;
use super::{beside, file_error, names};
use crate::ownership::WAITS_FOR_OTHER;
use crate::{Error, Left, Protection, Recovery, RestoreTarget};

/// A file that something other than a `SQLite` database will replace. If it is a database, no other
/// process can open it while this value exists.
#[derive(Debug)]
pub struct Seized(ExistingTarget);

impl Seized {
    /// `None` when there is no file.
    ///
    /// # Errors
    /// [`Error::InUse`].
    pub fn of(path: &Path) -> Result<Option<Self>, Error> {
        Ok(ExistingTarget::seize(path, Existing::Replace)?.map(Self))
    }

    /// Confirms that still no other process has it open.
    ///
    /// # Errors
    /// [`Error::InUse`].
    pub fn confirm(&self) -> Result<(), Error> {
        self.0.confirm_unused()
    }
}

/// A `SQLite` database being restored.
#[derive(Debug)]
pub struct SqliteTarget {
    target: PathBuf,
    existing: Option<ExistingTarget>,
    /// Taken when the restore ends, successfully or not.
    staging: Option<StagingFile>,
    /// The content of the state file after NORECOVERY.
    state: RestoringState,
    /// For a differential, the state its base left; valid until the first byte is written.
    base: Option<RestoringState>,
    /// Whether the differential has been marked as being applied.
    is_marked: OnceLock<()>,
    /// Held while marking it.
    marking: Mutex<()>,
    cancel: Arc<AtomicBool>,
}

impl SqliteTarget {
    /// Claims the staging file, locks the existing target and, for a full backup, recreates the
    /// staging file. A refusal leaves everything unchanged.
    pub fn begin(request: &RestoreRequest) -> Result<Self, Error> {
        let target = resolve(&request.target)?;
        match request.base {
            None => Self::begin_full(target, request),
            Some(base) => Self::begin_differential(target, base, request),
        }
    }

    fn begin_full(target: PathBuf, request: &RestoreRequest) -> Result<Self, Error> {
        let claim = Claim::new(&target)?;
        // What cannot be read cannot be continued.
        let earlier = state::read(&target).ok().flatten();
        let existing = replaceable(&target, request.existing, earlier.as_ref())?;
        let staging = claim.create(request.size_bytes)?;
        fault::point("staged");
        let protection = request.protection.clone();
        Ok(Self {
            state: RestoringState {
                replaced: number_of(existing.as_ref()),
                ..state_of(request, protection, request.mode, request.as_is)
            },
            existing,
            staging: Some(staging),
            base: None,
            is_marked: OnceLock::new(),
            marking: Mutex::new(()),
            cancel: Arc::clone(&request.cancel),
            target,
        })
    }

    fn begin_differential(
        target: PathBuf,
        wanted: RequiredBase,
        request: &RestoreRequest,
    ) -> Result<Self, Error> {
        let base = state::read_ready(&target)?;
        base.check_base(&target, wanted)?;
        if !base.protection.admits(&request.protection) && !request.allow_less_protected {
            return Err(Error::LessProtected {
                path: target,
                base: base.protection,
                found: request.protection.clone(),
            });
        }
        let staging = StagingFile::reopen(&target, base.size_bytes)?;
        let existing = replaceable(&target, request.existing, Some(&base))?;
        let mode = request.mode.or(base.mode);
        let as_is = request.as_is || base.as_is;
        Ok(Self {
            staging: Some(staging),
            state: RestoringState {
                replaced: number_of(existing.as_ref()),
                made_for: request.made_for.unwrap_or(base.made_for),
                ..state_of(request, base.protection.clone(), mode, as_is)
            },
            existing,
            base: Some(base),
            is_marked: OnceLock::new(),
            marking: Mutex::new(()),
            cancel: Arc::clone(&request.cancel),
            target,
        })
    }

    /// Called before the first byte of a differential: from here until it is complete, the staging
    /// file is neither the base nor the differential.
    fn mark(&self, staging: &StagingFile) -> Result<(), Error> {
        let Some(base) = self
            .base
            .as_ref()
            .filter(|_| self.is_marked.get().is_none())
        else {
            return Ok(());
        };
        let _one = self.marking.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_marked.get().is_some() {
            return Ok(());
        }
        self.state.write(&self.target)?;
        fault::point("differential marked");
        if let Err(error) = staging.resize(base.size_bytes, self.state.size_bytes) {
            // Nothing of the differential is in the staging file yet.
            staging.resize(self.state.size_bytes, base.size_bytes)?;
            base.write(&self.target)?;
            return Err(error);
        }
        fault::point("staged");
        self.is_marked.get_or_init(|| ());
        Ok(())
    }

    fn discard(&mut self) -> Result<(), Error> {
        let Some(staging) = self.staging.take() else {
            return Ok(());
        };
        match (&self.base, self.is_marked.get()) {
            // Nothing was written: the sequence is unchanged.
            (Some(_), None) => return Ok(()),
            (Some(_), Some(())) => state::remove(&self.target)?,
            (None, _) => {}
        }
        staging.remove()
    }

    fn is_differential(&self) -> bool {
        self.base.is_some()
    }
}

fn state_of(
    request: &RestoreRequest,
    protection: Protection,
    mode: Option<u16>,
    as_is: bool,
) -> RestoringState {
    RestoringState {
        database_name: request.database_name.clone(),
        family_guid: request.family_guid,
        set_guid: request.set_guid,
        checkpoint_lsn: request.checkpoint_lsn,
        is_differential: request.base.is_some(),
        size_bytes: request.size_bytes,
        protection,
        mode,
        as_is,
        made_for: request.made_for.unwrap_or(Guid::NIL),
        replaced: None,
        wal_position: (request.wal_position)
            .map_or_else(String::new, |position| position.to_string()),
        rolling_us: 0,
        reached_us: 0,
        progress: RestoreProgress::Applying,
    }
}

impl RestoreTarget for SqliteTarget {
    fn write(&self, file_id: u16, offset: u64, content: &[u8]) -> Result<(), Error> {
        let (bytes, size_bytes) = (content.len() as u64, self.state.size_bytes);
        let fits = offset
            .checked_add(bytes)
            .is_some_and(|end| end <= size_bytes);
        match &self.staging {
            Some(staging) if file_id == FILE_ID && fits => {
                self.mark(staging)?;
                staging.write(offset, content)
            }
            _ => Err(Error::OutOfRange {
                file_id,
                offset,
                bytes,
                size_bytes,
            }),
        }
    }

    fn finish(mut self: Box<Self>, recovery: Recovery) -> Result<(), Error> {
        let Some(staging) = &self.staging else {
            return Err(Error::NotRestoring {
                path: self.target.clone(),
            });
        };
        // A differential without changes.
        self.mark(staging)?;
        staging.sync(self.state.size_bytes)?;
        fault::point("synced");
        if recovery == Recovery::Recovery {
            staging.check_content(&self.target, self.state.as_is)?;
        }
        if recovery == Recovery::NoRecovery || self.is_differential() {
            // From here on, a failure does not cost the sequence: RECOVERY alone can be repeated.
            self.state.progress = RestoreProgress::Ready;
            self.state.write(&self.target)?;
            fault::point("ready");
        }
        let Some(staging) = self
            .staging
            .take()
            .filter(|_| recovery == Recovery::Recovery)
        else {
            return Ok(());
        };
        let publish = Publish {
            target: &self.target,
            state: &self.state,
            cancel: &self.cancel,
        };
        let placed = publish.run(self.existing.as_mut(), staging);
        match &placed {
            Err(Error::StillInUse { .. }) => {
                // The work is not lost: RECOVERY alone can be repeated.
                self.state.progress = RestoreProgress::Ready;
                self.state.write(&self.target)?;
            }
            Err(_) if !self.is_differential() => staging_file::remove_stale(&self.target)?,
            _ => {}
        }
        placed
    }

    fn abandon(mut self: Box<Self>) -> Result<(), Error> {
        self.discard()
    }
}

impl Drop for SqliteTarget {
    fn drop(&mut self) {
        // The error cannot be returned from a drop; the next restore of this target removes the
        // remains.
        drop(self.discard());
    }
}

/// Locks the file to be replaced, if there is one, and confirms that a rename replaces it. `earlier` is the state of the
/// sequence of restores, if one is under way.
fn replaceable(
    target: &Path,
    existing: Existing,
    earlier: Option<&RestoringState>,
) -> Result<Option<ExistingTarget>, Error> {
    let number = || std::fs::metadata(target).ok().map(|found| found.ino());
    let is_new = earlier.is_some_and(|earlier| earlier.replaced != number());
    let existing = match existing {
        Existing::Approved if is_new => Existing::Refuse,
        existing => existing,
    };
    if existing != Existing::Refuse {
        names::refuse_to_replace(target)?;
    }
    ExistingTarget::seize(target, existing)
}

/// The number of the file that is to be replaced, in its file system.
fn number_of(existing: Option<&ExistingTarget>) -> Option<u64> {
    existing.map(|existing| existing.metadata().ino())
}

/// `RESTORE DATABASE ... WITH RECOVERY` alone: ends a sequence whose last restore was WITH
/// NORECOVERY. Replaces the file at the target if `existing` allows it.
pub fn recover(target: &Path, existing: Existing, cancel: &AtomicBool) -> Result<(), Error> {
    let target = resolve(target)?;
    let state = state::read_ready(&target)?;
    let staging = StagingFile::reopen(&target, state.size_bytes)?;
    let mut old = replaceable(&target, existing, Some(&state))?;
    staging.sync(state.size_bytes)?;
    staging.check_content(&target, state.as_is)?;
    let publish = Publish {
        target: &target,
        state: &state,
        cancel,
    };
    publish.run(old.as_mut(), staging)
}

/// The state of a sequence of restores to `target`; `None` if none is in progress.
pub fn restoring(target: &Path) -> Result<Option<RestoringState>, Error> {
    state::read(&resolve(target)?)
}

/// Ends a sequence of restores of a database that will not be continued, and removes its files. Those of a
/// sequence that waits for another database are kept and returned.
///
/// # Errors
/// [`Error::RestoreRunning`], those of the operating system.
pub fn forget(target: &Path, made_for: Guid) -> Result<Option<Left>, Error> {
    let target = resolve(target)?;
    let held = staging_file::hold(&target)?;
    match state::read(&target) {
        Ok(Some(state)) if state.made_for != made_for => {
            let why = WAITS_FOR_OTHER.to_owned();
            return Ok(Some(Left { path: target, why }));
        }
        // What cannot be read cannot be continued.
        Ok(_) | Err(Error::StateUnreadable { .. }) => {}
        Err(error) => return Err(error),
    }
    state::remove(&target)?;
    if held.is_some() {
        remove_file(&staging_file::staging_path(&target))?;
    }
    Ok(None)
}

/// Renames a complete staging file to the target's name.
struct Publish<'a> {
    target: &'a Path,
    state: &'a RestoringState,
    cancel: &'a AtomicBool,
}

impl Publish<'_> {
    /// On error the staging file stays, to be tried again.
    fn run(
        &self,
        mut existing: Option<&mut ExistingTarget>,
        staging: StagingFile,
    ) -> Result<(), Error> {
        self.prepare(existing.as_deref_mut(), &staging)?;
        staging.publish(existing.as_deref().map(ExistingTarget::metadata))?;
        conclude(self.target)
    }

    /// Everything that must be durable before the staging file may get the target's name.
    fn prepare(
        &self,
        existing: Option<&mut ExistingTarget>,
        staging: &StagingFile,
    ) -> Result<(), Error> {
        let identity = FileIdentity {
            family_guid: self.state.family_guid,
            database_guid: Guid::random(),
        };
        let replaced = existing.as_deref().map(ExistingTarget::metadata);
        staging.set_attributes(identity, replaced, self.state.mode, self.state.made_for)?;
        fault::point("dressed");
        if let Some(existing) = existing {
            existing.fold()?;
            fault::point("folded");
            existing.await_unused(self.cancel)?;
        } else if own::is_there(self.target) {
            return Err(Error::TargetExists {
                path: self.target.to_owned(),
            });
        }
        remove_side_files(self.target)?;
        fault::point("side files removed");
        Ok(())
    }
}

/// Steps after the target is the new database.
fn conclude(target: &Path) -> Result<(), Error> {
    fault::point("renamed");
    super::descriptors::close_unlinked();
    state::remove(target)
}

/// Removes files that `SQLite` would apply to the new file, durably.
fn remove_side_files(target: &Path) -> Result<(), Error> {
    for suffix in ["-wal", "-shm", "-journal"] {
        remove_file(&beside(target, suffix))?;
    }
    let folder = directory::parent(target);
    directory::sync(&folder).map_err(|error| file_error("sync", &folder, error))
}

fn remove_file(path: &Path) -> Result<(), Error> {
    own::remove(path).map_err(|error| file_error("remove", path, error))
}

/// The absolute path of `path` with all links followed, even if the last one is dangling.
fn resolve(path: &Path) -> Result<PathBuf, Error> {
    let is_circle =
        |error: &io::Error| error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
    let file = directory::follow(path).map_err(|error| {
        if error.kind() == io::ErrorKind::InvalidInput || is_circle(&error) {
            let path = path.to_owned();
            return Error::NotAFile { path };
        }
        file_error("find", path, error)
    })?;
    match std::fs::symlink_metadata(&file) {
        Ok(metadata) if !metadata.is_file() => Err(Error::NotAFile { path: file }),
        Ok(_) => Ok(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(file),
        Err(error) => Err(file_error("examine", &file, error)),
    }
}
