//! The state of an unfinished restore sequence.
//!
//! The state file is stored next to the log's target. It is written to a temporary name after the
//! data files are synced, and renamed, so it is always complete.

use std::collections::BTreeMap;
use std::iter::repeat;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windlass_base::{Guid, Lsn};
use windlass_engine::storage::StorageFile;
use windlass_engine::{BackupDescription, Reached, Restore};
use windlass_io::{directory, own};

use super::{collected_log, describe, engine_error, io_error, staged, with_suffix};
use crate::ownership::WAITS_FOR_OTHER;
use crate::{Error, Left, Protection};

/// What a restore WITH NORECOVERY left.
#[derive(Debug)]
pub struct PendingRestore {
    /// The set that was restored last.
    pub set_guid: Guid,
    pub checkpoint_lsn: Lsn,
    /// Paths of the data files, in the order of their numbers.
    pub data: Vec<PathBuf>,
    pub log: PathBuf,
    /// Length of the log file to create.
    pub log_bytes: u64,
    /// Protection of the base; later backups of the sequence must not have less.
    pub(super) protection: Protection,
    /// Permissions of the data files and the log, by number, for files that replace none.
    pub(super) modes: BTreeMap<u16, u16>,
    /// Whether the content may be something other than a database.
    pub(super) as_is: bool,
    /// The registered database that the files are made for.
    pub made_for: Option<Guid>,
    pub(super) description: BackupDescription,
    /// The numbers of the data files under their temporary names: a file that has taken the name of one is
    /// not continued with.
    pub(super) staged: Vec<u64>,
    /// The numbers of the files that the data files and then the log replace; none for a name that was free.
    pub(super) replaced: Vec<Option<u64>>,
    /// How far the data files have been restored.
    pub(super) reached: Reached,
    /// The log by which they are read meanwhile.
    pub(super) standby: Option<PathBuf>,
    pub(super) progress: Progress,
}

/// The files that a sequence of restores is to replace: those that were there when it began.
#[derive(Debug)]
pub(super) struct Approved(Vec<(PathBuf, Option<u64>)>);

impl Approved {
    pub(super) fn of(state: &PendingRestore) -> Self {
        let replacing = state.replacing();
        Self(
            replacing
                .map(|(path, number)| (path.clone(), number))
                .collect(),
        )
    }

    /// Whether it may replace the file of this number at a path. Of one that a backup adds, the caller knows.
    pub(super) fn has(&self, path: &Path, number: Option<u64>) -> bool {
        let mut known = self.0.iter();
        let known = known.find(|(known, _)| known == path);
        known.is_none_or(|(_, approved)| *approved == number)
    }
}

/// Progress of a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Progress {
    /// Its data files are whole, and wait for a differential or for the end of the sequence.
    Ready,
    /// They may be half way between two backups.
    Applying,
    /// A log backup may have been applied to them in part: it can be applied again, up to the same point or further.
    Rolling,
    /// All files are complete, including the log, and are being renamed: the next program that finds the
    /// old log removed continues.
    Placing,
    /// The data files of a database that was closed are being given their temporary names: the next program gives them
    /// back.
    Leaving,
}

/// Maximum length of a state file; most of it is the description, one page per file.
const STATE_BYTES_MAX: u64 = 64 << 20;

#[derive(Serialize, Deserialize)]
struct Stored {
    set_guid: String,
    checkpoint_lsn: String,
    /// Where the log is to be, and so this file: a copy of it says nothing about the files beside the copy.
    #[serde(default)]
    log: PathBuf,
    data: Vec<PathBuf>,
    log_bytes: u64,
    protection: Protection,
    modes: BTreeMap<u16, u16>,
    as_is: bool,
    made_for: Option<String>,
    description: Vec<u8>,
    staged: Vec<u64>,
    replaced: Vec<Option<u64>>,
    #[serde(default)]
    checksum: Option<u64>,
    #[serde(default)]
    unix_ms: u64,
    #[serde(default)]
    applied: u64,
    #[serde(default)]
    standby: Option<PathBuf>,
    progress: Progress,
}

fn state_path(log: &Path) -> PathBuf {
    with_suffix(log, ".windlass-state")
}

/// The unfinished restore for this log path; `None` if there is none.
///
/// # Errors
/// If its state cannot be read or is invalid.
pub fn pending(log: &Path) -> Result<Option<PendingRestore>, Error> {
    // A missing folder contains no state.
    let followed = directory::follow(log).unwrap_or_else(|_| log.to_owned());
    let log = followed.as_path();
    let path = state_path(log);
    let text = match own::read(&path, STATE_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("read", &path, error)),
    };
    let unreadable = |source| Error::StateUnreadable {
        path: path.clone(),
        source,
    };
    let stored: Stored = serde_json::from_slice(&text).map_err(unreadable)?;
    let is_own =
        stored.log.as_os_str().is_empty() || stored.log == log || is_same(&stored.log, log);
    if !is_own {
        return Err(Error::StateOfOtherPlace {
            path: log.to_owned(),
            other: stored.log,
        });
    }
    let wrong = |what: &str| unreadable(serde::de::Error::custom(what));
    Ok(Some(PendingRestore {
        set_guid: stored
            .set_guid
            .parse()
            .map_err(|_| wrong("set_guid is no identity"))?,
        checkpoint_lsn: stored
            .checkpoint_lsn
            .parse()
            .map_err(|_| wrong("checkpoint_lsn is no LSN"))?,
        data: stored.data,
        log: log.to_owned(),
        log_bytes: stored.log_bytes,
        protection: stored.protection,
        modes: stored.modes,
        as_is: stored.as_is,
        made_for: stored
            .made_for
            .map(|text| text.parse().map_err(|_| wrong("made_for is no identity")))
            .transpose()?,
        description: describe(&stored.description)?,
        staged: stored.staged,
        replaced: stored.replaced,
        reached: Reached {
            checksum: stored.checksum,
            unix_ms: stored.unix_ms,
            applied: stored.applied,
        },
        standby: stored.standby,
        progress: stored.progress,
    }))
}

/// Whether two logs have one state file, as where a folder is mounted twice.
fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |log: &Path| {
        let found = state_path(log).symlink_metadata().ok()?;
        Some((found.dev(), found.ino()))
    };
    identity(one).is_some_and(|one| Some(one) == identity(other))
}

impl PendingRestore {
    /// Whether data files may be in a state between two backups.
    pub fn is_interrupted(&self) -> bool {
        self.progress == Progress::Applying
    }

    /// The position of the log up to which the data files have been restored.
    pub fn reached_lsn(&self) -> Lsn {
        self.description.last_lsn()
    }

    /// The checksum of the log before that position, if known.
    pub fn reached_checksum(&self) -> Option<u64> {
        self.reached.checksum
    }

    /// The identity of the database, and its recovery fork.
    pub fn history(&self) -> (Guid, Guid) {
        (self.description.guid(), self.description.recovery_fork())
    }

    /// The time up to which the data files have been restored, in milliseconds since 1970, UTC; 0 if unknown.
    pub fn reached_ms(&self) -> u64 {
        self.reached.unix_ms
    }

    /// The standby file, while it belongs to the data files.
    pub(super) fn readable_standby(self) -> Option<PathBuf> {
        self.standby.filter(|_| self.progress == Progress::Ready)
    }

    /// Writes the state file of data files that wait for the next restore.
    pub(super) fn store_ready(&self) -> Result<(), Error> {
        self.store(Progress::Ready)
    }

    /// Writes the state file.
    pub(super) fn store(&self, progress: Progress) -> Result<(), Error> {
        let stored = Stored {
            set_guid: self.set_guid.to_string(),
            checkpoint_lsn: self.checkpoint_lsn.to_string(),
            log: self.log.clone(),
            data: self.data.clone(),
            log_bytes: self.log_bytes,
            protection: self.protection.clone(),
            modes: self.modes.clone(),
            as_is: self.as_is,
            made_for: self.made_for.map(|guid| guid.to_string()),
            description: self.description.encode().map_err(engine_error)?,
            staged: self.staged.clone(),
            replaced: self.replaced.clone(),
            checksum: self.reached.checksum,
            unix_ms: self.reached.unix_ms,
            applied: self.reached.applied,
            standby: self.standby.clone(),
            progress,
        };
        let path = state_path(&self.log);
        let write = || own::replace(&path, &serde_json::to_vec(&stored)?);
        write().map_err(|error| io_error("write", &path, error))
    }

    /// The final paths: those of the data files, and then that of the log.
    pub(super) fn targets(&self) -> impl Iterator<Item = &PathBuf> {
        self.data.iter().chain([&self.log])
    }

    /// The targets, each with the number of the file that it replaces.
    pub(super) fn replacing(&self) -> impl Iterator<Item = (&PathBuf, Option<u64>)> {
        let replaced = self.replaced.iter().copied().chain(repeat(None));
        self.targets().zip(replaced)
    }

    /// Takes note of the data files that are being written.
    pub(super) fn note_staged(&mut self, restore: &Restore) -> Result<(), Error> {
        self.staged = numbers(restore.data_files(), &self.staged_data())?;
        Ok(())
    }

    /// Fails if another restore has taken the name of one of the data files since.
    pub(super) fn check_staged(&self, files: Vec<Arc<dyn StorageFile>>) -> Result<(), Error> {
        let found = numbers(files, &self.staged_data())?;
        // A differential may have more files than its base.
        match found.starts_with(&self.staged) {
            true => Ok(()),
            false => Err(Error::RestoreInterrupted {
                path: self.log.clone(),
            }),
        }
    }

    /// The temporary paths of the data files.
    pub(super) fn staged_data(&self) -> Vec<PathBuf> {
        self.data.iter().map(|path| staged(path)).collect()
    }
}

/// The numbers of the data files of a restore in their file system.
fn numbers(files: Vec<Arc<dyn StorageFile>>, paths: &[PathBuf]) -> Result<Vec<u64>, Error> {
    let files = files.into_iter().zip(paths);
    let number = |(file, path): (Arc<dyn StorageFile>, &PathBuf)| match file.direct() {
        Some(file) => {
            let found = file.as_file().metadata();
            let found = found.map_err(|error| io_error("examine", path, error))?;
            Ok(found.ino())
        }
        None => Ok(0),
    };
    files.map(number).collect()
}

/// Removes the files of an unfinished restore of a database, or of one that was killed. Those of a restore
/// that waits for another database are kept and returned.
///
/// # Errors
/// If a file cannot be removed; [`Error::RestoreRunning`].
pub fn forget(log: &Path, made_for: Guid) -> Result<Option<Left>, Error> {
    let is_of_other = match pending(log) {
        Err(Error::StateOfOtherPlace { .. }) => true,
        found => found?.is_some_and(|state| state.made_for != Some(made_for)),
    };
    if is_of_other {
        return Ok(Some(Left {
            path: log.to_owned(),
            why: WAITS_FOR_OTHER.to_owned(),
        }));
    }
    let followed = directory::follow(log).unwrap_or_else(|_| log.to_owned());
    let collected = collected_log(&followed);
    own::remove_unheld(&collected).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Error::RestoreRunning {
            path: log.to_owned(),
        },
        _ => io_error("remove", &collected, error),
    })?;
    forget_files(log).map(|()| None)
}

/// As [`forget`], for a caller that has the collected log open.
pub(super) fn forget_files(log: &Path) -> Result<(), Error> {
    super::forget_pages(log)?;
    super::forget_waiting_files(log)?;
    match pending(log) {
        Ok(Some(pending)) => {
            remove_unheld(&pending.staged_data())?;
            remove_unheld(pending.standby.as_slice())?;
            remove_state(&pending.log)
        }
        Ok(None) | Err(Error::StateOfOtherPlace { .. }) => remove_state(log),
        Err(error) => Err(error),
    }
}

/// Leaves the collected log, because the caller still has it open.
pub(super) fn remove_state(log: &Path) -> Result<(), Error> {
    remove_all(&[staged(log), state_path(log)])
}

/// Removes temporary files. Those that another restore writes stay.
pub(super) fn remove_unheld(paths: &[PathBuf]) -> Result<(), Error> {
    for path in paths {
        match own::remove_unheld(path) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            removed => removed.map_err(|error| io_error("remove", path, error))?,
        }
    }
    Ok(())
}

pub(super) fn remove_all(paths: &[PathBuf]) -> Result<(), Error> {
    for path in paths {
        own::remove(path).map_err(|error| io_error("remove", path, error))?;
    }
    Ok(())
}
