//! Restoring a `SQLite` database beside its target.
//!
//! ```text
//! app.db                              the target: the old database, or nothing, until the very end
//! app.db.windlass-restoring           the new database while it is put together
//! app.db.windlass-restoring.json      only between NORECOVERY and RECOVERY: what was restored so far
//! ```
//!
//! Order of a restore WITH RECOVERY, and what a crash after each step leaves:
//!
//! | step | after a crash |
//! |---|---|
//! | exclusive access to the old database, held to the end | old |
//! | stage, sync, check the length, set identity, mode and owner | old, and a stage that the next restore removes |
//! | fold the old database's log into it, sync | old |
//! | look again for others who have the target open | old |
//! | remove the old -wal, -shm, -journal; sync the folder | old, without its (empty) log |
//! | rename over the target; sync the folder | old or new |
//! | remove the state file | new; the state file without a stage means nothing |
//!
//! The old log goes before the rename because `SQLite` would apply it to the new file after it. A
//! symbolic link as target stays: what it leads to is replaced.
//!
//! WITH NORECOVERY the stage stays, so the database does not open, and the state file says which
//! backup set it stands at. A differential first marks the state as *applying*: if it does not get
//! to its end the stage is neither the base nor the differential, and the sequence must begin again.

mod existing;
mod fault;
mod stage;
mod state;
#[cfg(test)]
mod tests;
mod users;

use std::io;
use std::path::{Path, PathBuf};

use windlass_base::{Guid, Lsn};
use windlass_io::{directory, own};

use existing::ExistingTarget;
use stage::Stage;
pub use state::{RestoreProgress, RestoringState};

use super::identity::FileIdentity;
use super::snapshot::FILE_ID;
use super::{beside, file_error};
use crate::{Error, Recovery, RestoreTarget};

/// What happens to a database that is at the target already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// The restore is refused.
    Refuse,
    /// It is replaced, provided that nobody has it open.
    Replace,
}

/// The full backup that a differential belongs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DifferentialBase {
    /// Its backup set.
    pub set_guid: Guid,
    /// Its checkpoint.
    pub checkpoint_lsn: Lsn,
}

/// What is restored, and where to.
#[derive(Debug, Clone)]
pub struct RestoreRequest {
    /// The database file.
    pub target: PathBuf,
    /// What happens to a file that is there.
    pub existing: Existing,
    /// Name of the database, for whoever finds the restore unfinished.
    pub database_name: String,
    /// Family of the database that was backed up.
    pub family_guid: Guid,
    /// The backup set.
    pub set_guid: Guid,
    /// Its checkpoint.
    pub checkpoint_lsn: Lsn,
    /// Length of the database file as of the backup.
    pub size_bytes: u64,
    /// For a differential, what it belongs on; a full backup begins a new sequence.
    pub base: Option<DifferentialBase>,
}

/// A `SQLite` database being restored.
#[derive(Debug)]
pub struct SqliteTarget {
    target: PathBuf,
    existing: Option<ExistingTarget>,
    /// Taken out when the restore ends, one way or the other.
    stage: Option<Stage>,
    /// What the state file will say after NORECOVERY.
    state: RestoringState,
    is_differential: bool,
}

impl SqliteTarget {
    /// Gets exclusive access to what is at the target and makes the stage.
    pub fn begin(request: &RestoreRequest) -> Result<Self, Error> {
        let target = resolve(&request.target)?;
        let existing = ExistingTarget::seize(&target, request.existing)?;
        let state = RestoringState {
            database_name: request.database_name.clone(),
            family_guid: request.family_guid,
            set_guid: request.set_guid,
            checkpoint_lsn: request.checkpoint_lsn,
            is_differential: request.base.is_some(),
            size_bytes: request.size_bytes,
            progress: RestoreProgress::Applying,
        };
        let stage = match request.base {
            None => Stage::create(&target, request.size_bytes)?,
            Some(base) => {
                let found = state::read_ready(&target)?;
                found.check_base(&target, base)?;
                let stage = Stage::reopen(&target, found.size_bytes)?;
                state.write(&target)?;
                fault::point("differential marked");
                if let Err(error) = stage.resize(found.size_bytes, request.size_bytes) {
                    // Nothing was changed: the base is as good as before.
                    found.write(&target)?;
                    return Err(error);
                }
                stage
            }
        };
        fault::point("staged");
        let is_differential = request.base.is_some();
        Ok(Self {
            target,
            existing,
            stage: Some(stage),
            state,
            is_differential,
        })
    }

    fn discard(&mut self) -> Result<(), Error> {
        let Some(stage) = self.stage.take() else {
            return Ok(());
        };
        if self.is_differential {
            state::remove(&self.target)?;
        }
        stage.remove()
    }
}

impl RestoreTarget for SqliteTarget {
    fn write(&self, file_id: u16, offset: u64, octets: &[u8]) -> Result<(), Error> {
        let (bytes, size_bytes) = (octets.len() as u64, self.state.size_bytes);
        let fits = offset
            .checked_add(bytes)
            .is_some_and(|end| end <= size_bytes);
        match &self.stage {
            Some(stage) if file_id == FILE_ID && fits => stage.write(offset, octets),
            _ => Err(Error::OutOfRange {
                file_id,
                offset,
                bytes,
                size_bytes,
            }),
        }
    }

    fn finish(mut self: Box<Self>, recovery: Recovery) -> Result<(), Error> {
        let Some(stage) = &self.stage else {
            return Err(Error::NotRestoring {
                path: self.target.clone(),
            });
        };
        stage.sync(self.state.size_bytes)?;
        fault::point("synced");
        if recovery == Recovery::NoRecovery || self.is_differential {
            // From here on a failure does not cost the sequence: RECOVERY alone can be repeated.
            self.state.progress = RestoreProgress::Ready;
            self.state.write(&self.target)?;
            fault::point("ready");
        }
        let Some(stage) = self.stage.take().filter(|_| recovery == Recovery::Recovery) else {
            return Ok(());
        };
        let placed = put_in_place(&self.target, self.existing.as_mut(), stage, &self.state);
        if placed.is_err() && !self.is_differential {
            stage::remove_stale(&self.target)?;
        }
        placed
    }

    fn abandon(mut self: Box<Self>) -> Result<(), Error> {
        self.discard()
    }
}

impl Drop for SqliteTarget {
    fn drop(&mut self) {
        // Nobody is left to tell; the next restore of this target removes what remains.
        drop(self.discard());
    }
}

/// `RESTORE DATABASE ... WITH RECOVERY` alone: ends a sequence whose last restore was WITH
/// NORECOVERY. What is at the target is replaced if `existing` says so.
pub fn recover(target: &Path, existing: Existing) -> Result<(), Error> {
    let target = resolve(target)?;
    let state = state::read_ready(&target)?;
    let mut old = ExistingTarget::seize(&target, existing)?;
    let stage = Stage::reopen(&target, state.size_bytes)?;
    stage.sync(state.size_bytes)?;
    put_in_place(&target, old.as_mut(), stage, &state)
}

/// What a sequence of restores to `target` stands at; `None` when none is under way.
pub fn restoring(target: &Path) -> Result<Option<RestoringState>, Error> {
    state::read(&resolve(target)?)
}

/// Ends a sequence of restores that will not be continued, and removes what was staged.
pub fn forget(target: &Path) -> Result<(), Error> {
    let target = resolve(target)?;
    state::remove(&target)?;
    stage::remove_stale(&target)
}

/// Gives a complete stage the target's name. On error the stage stays, to be tried again.
fn put_in_place(
    target: &Path,
    mut existing: Option<&mut ExistingTarget>,
    stage: Stage,
    state: &RestoringState,
) -> Result<(), Error> {
    prepare(target, existing.as_deref_mut(), &stage, state.family_guid)?;
    stage.publish(existing.is_some())?;
    conclude(target)
}

/// Everything that must be durable before the stage may take the target's name.
fn prepare(
    target: &Path,
    existing: Option<&mut ExistingTarget>,
    stage: &Stage,
    family_guid: Guid,
) -> Result<(), Error> {
    let identity = FileIdentity {
        family_guid,
        database_guid: Guid::random(),
    };
    stage.dress(identity, existing.as_deref().map(ExistingTarget::metadata))?;
    fault::point("dressed");
    if let Some(existing) = existing {
        existing.fold()?;
        fault::point("folded");
        existing.confirm_unused()?;
    } else if target.exists() {
        return Err(Error::TargetExists {
            path: target.to_owned(),
        });
    }
    remove_side_files(target)?;
    fault::point("side files removed");
    Ok(())
}

/// What is left to do when the target is the new database.
fn conclude(target: &Path) -> Result<(), Error> {
    fault::point("renamed");
    super::descriptors::close_unlinked();
    state::remove(target)
}

/// Removes what `SQLite` would apply to the new file, so that not even a power failure brings it back.
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

/// The file that `path` means: absolute, with all links followed, also one that leads to nothing yet.
fn resolve(path: &Path) -> Result<PathBuf, Error> {
    let file = directory::follow(path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => Error::NotAFile {
            path: path.to_owned(),
        },
        _ => file_error("find", path, error),
    })?;
    match std::fs::symlink_metadata(&file) {
        Ok(metadata) if !metadata.is_file() => Err(Error::NotAFile { path: file }),
        Ok(_) => Ok(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(file),
        Err(error) => Err(file_error("examine", &file, error)),
    }
}
