//! The -wal and -shm that a backup had to make, and their removal.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::ffi::{self, FileLock};
use super::open::connect;
use super::{beside, wal_path};

/// What lay beside a database before it was opened.
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

    /// Removes what has come since and holds nothing, unless somebody uses it. All of this process's own
    /// connections that may have made it must be closed.
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
        // What cannot be removed stays: empty, it harms nobody.
        if is_empty && !self.has_wal {
            let _kept = std::fs::remove_file(wal_path(path));
        }
        if is_empty && !self.has_shm {
            let _kept = std::fs::remove_file(beside(path, "-shm"));
        }
    }
}

/// Lets the closing of `connection` remove the log that it made, while that is still empty: closing as
/// the last connection does so, which includes a checkpoint of nothing. Any other log stays as found.
pub(super) fn remove_log_with(connection: &Connection, path: &Path, made_log: bool) {
    let is_empty = || std::fs::metadata(wal_path(path)).is_ok_and(|log| log.len() == 0);
    if made_log && is_empty() {
        // If it fails an empty file stays, which harms nobody.
        let _kept = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
    }
}
