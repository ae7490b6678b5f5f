//! Removes the -wal and -shm files that a backup had to create.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::ffi::{self, FileLock};
use super::open::connect;
use super::{beside, wal_path};

/// Which files existed next to a database before it was opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct SideFiles {
    pub(super) has_wal: bool,
    pub(super) has_shm: bool,
}

impl SideFiles {
    pub(super) fn beside(path: &Path) -> Self {
        Self {
            has_wal: wal_path(path).exists(),
            has_shm: beside(path, "-shm").exists(),
        }
    }

    /// Removes files created since then that are empty and unused. All connections of this process
    /// that may have created them must be closed.
    pub(super) fn remove_others(self, path: &Path) {
        let now = Self::beside(path);
        let has_come = (now.has_wal && !self.has_wal) || (now.has_shm && !self.has_shm);
        if !has_come {
            return;
        }
        let Ok(connection) = connect(path) else {
            return;
        };
        // Every connection in WAL mode holds the shared lock as long as it is open.
        let is_unused = [FileLock::Shared, FileLock::Exclusive]
            .into_iter()
            .all(|lock| ffi::lock_file(&connection, lock).is_ok());
        if !is_unused {
            return;
        }
        let is_empty = std::fs::metadata(wal_path(path)).map_or(true, |log| log.len() == 0);
        // A file that cannot be removed stays; empty, it is harmless.
        if is_empty && !self.has_wal {
            let _kept = std::fs::remove_file(wal_path(path));
        }
        if is_empty && !self.has_shm {
            let _kept = std::fs::remove_file(beside(path, "-shm"));
        }
    }
}

/// Lets the closing of `connection` remove the log that it created, if that is still empty: closing
/// the last connection does so, with a checkpoint of nothing. Any other log stays unchanged.
pub(super) fn remove_log_with(connection: &Connection, path: &Path, made_log: bool) {
    let is_empty = || std::fs::metadata(wal_path(path)).is_ok_and(|log| log.len() == 0);
    if made_log && is_empty() {
        // On failure an empty file stays, which is harmless.
        let _kept = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
    }
}
