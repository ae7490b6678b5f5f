//! A restore that waits for more: what its data files are.
//!
//! The state file lies where the log will be staged. It is written after the data files are synced, to
//! a temporary name, and renamed: it is there as a whole or not at all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windlass_base::{Guid, Lsn};
use windlass_engine::BackupDescription;
use windlass_io::{directory, own};

use super::{collected_log, describe, engine_error, io_error, staged, with_suffix};
use crate::{Error, Protection};

/// What a restore WITH NORECOVERY left.
#[derive(Debug)]
pub struct PendingRestore {
    /// The set that was restored last.
    pub set_guid: Guid,
    /// Its checkpoint.
    pub checkpoint_lsn: Lsn,
    /// The data files' names, in the order of their numbers.
    pub data: Vec<PathBuf>,
    /// The log file's name.
    pub log: PathBuf,
    /// Bytes of the log file to be made.
    pub log_bytes: u64,
    /// How the base of the sequence is protected: nothing less may follow.
    pub(super) protection: Protection,
    /// Permissions of the data files and the log, by number, for those that replace none.
    pub(super) modes: BTreeMap<u16, u16>,
    /// Whether the content need not be a database.
    pub(super) as_is: bool,
    pub(super) description: BackupDescription,
    /// Whether data files may be half way between two backups.
    pub(super) is_interrupted: bool,
}

/// Longest state file that is read: most of it is the description, a page for each file.
const STATE_BYTES_MAX: u64 = 64 << 20;

#[derive(Serialize, Deserialize)]
struct Stored {
    set_guid: String,
    checkpoint_lsn: String,
    data: Vec<PathBuf>,
    log_bytes: u64,
    protection: Protection,
    modes: BTreeMap<u16, u16>,
    as_is: bool,
    description: Vec<u8>,
    is_interrupted: bool,
}

fn state_path(log: &Path) -> PathBuf {
    with_suffix(log, ".windlass-state")
}

/// The restore that waits where the log is to be; `None` when there is none.
///
/// # Errors
/// When its state cannot be read or makes no sense.
pub fn pending(log: &Path) -> Result<Option<PendingRestore>, Error> {
    // A folder that is not there holds no state.
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
        description: describe(&stored.description)?,
        is_interrupted: stored.is_interrupted,
    }))
}

impl PendingRestore {
    /// Writes the state file; `is_interrupted` until the data files are whole.
    pub(super) fn store(&self, is_interrupted: bool) -> Result<(), Error> {
        let stored = Stored {
            set_guid: self.set_guid.to_string(),
            checkpoint_lsn: self.checkpoint_lsn.to_string(),
            data: self.data.clone(),
            log_bytes: self.log_bytes,
            protection: self.protection,
            modes: self.modes.clone(),
            as_is: self.as_is,
            description: self.description.encode().map_err(engine_error)?,
            is_interrupted,
        };
        let path = state_path(&self.log);
        let write = || own::replace(&path, &serde_json::to_vec(&stored)?);
        write().map_err(|error| io_error("write", &path, error))
    }

    /// Where the data files lie.
    pub(super) fn staged_data(&self) -> Vec<PathBuf> {
        self.data.iter().map(|path| staged(path)).collect()
    }
}

/// Removes what a restore that waits for more, or one that was killed, has left.
///
/// # Errors
/// When a file cannot be removed; [`Error::RestoreRunning`].
pub fn forget(log: &Path) -> Result<(), Error> {
    let followed = directory::follow(log).unwrap_or_else(|_| log.to_owned());
    let collected = collected_log(&followed);
    own::remove_unheld(&collected).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Error::RestoreRunning {
            path: log.to_owned(),
        },
        _ => io_error("remove", &collected, error),
    })?;
    forget_files(log)
}

/// The same for whoever holds the collected log.
pub(super) fn forget_files(log: &Path) -> Result<(), Error> {
    match pending(log)? {
        Some(pending) => {
            remove_all(&pending.staged_data())?;
            remove_state(&pending.log)
        }
        None => remove_state(log),
    }
}

/// The collected log stays: whoever works on the target holds it.
pub(super) fn remove_state(log: &Path) -> Result<(), Error> {
    remove_all(&[staged(log), state_path(log)])
}

pub(super) fn remove_all(paths: &[PathBuf]) -> Result<(), Error> {
    for path in paths {
        own::remove(path).map_err(|error| io_error("remove", path, error))?;
    }
    Ok(())
}
