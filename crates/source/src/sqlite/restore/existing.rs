//! The database that a restore replaces, locked exclusively until then.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, ffi as code};

use super::super::descriptors::FileId;
use super::super::ffi::{self, FileLock};
use super::super::made::remove_log_with;
use super::super::{file_error, journal_path, sqlite_error, wal_path};
use super::{Existing, users};
use crate::Error;

/// How long to wait for other users of the target when the restore is complete: longer than
/// connections usually wait for a lock.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 60 });

/// Exclusive access to the file at the target.
#[derive(Debug)]
pub(super) struct ExistingTarget {
    path: PathBuf,
    metadata: Metadata,
    /// Never used by two threads at once; the mutex only satisfies the compiler.
    connection: Mutex<Connection>,
    /// Whether `SQLite` recognises the file; if not, it has no log to fold.
    is_database: bool,
    /// Whether `SQLite` created an empty log that did not exist before.
    made_log: bool,
}

impl ExistingTarget {
    /// Locks the file at `path` exclusively; `None` if there is no file.
    ///
    /// Does not wait: a database in use is not replaced in the first idle moment of its users.
    pub(super) fn seize(path: &Path, existing: Existing) -> Result<Option<Self>, Error> {
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(file_error("examine", path, error)),
        };
        if existing == Existing::Refuse {
            return Err(Error::TargetExists {
                path: path.to_owned(),
            });
        }
        windlass_io::own::refuse_special(path)
            .map_err(|error| file_error("replace", path, error))?;
        let had_log = wal_path(path).exists();
        let (connection, is_database) = match lock_database(path)? {
            Some(connection) => (connection, true),
            None => (lock_content(path)?, false),
        };
        let target = Self {
            path: path.to_owned(),
            metadata,
            connection: Mutex::new(connection),
            is_database,
            made_log: !had_log,
        };
        target.confirm_unused()?;
        Ok(Some(target))
    }

    pub(super) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Confirms that no other process has the file open, and that it is still the file that was locked.
    pub(super) fn confirm_unused(&self) -> Result<(), Error> {
        let path = self.path.clone();
        let file = FileId::of(&self.metadata);
        let named = std::fs::metadata(&self.path);
        if !named.is_ok_and(|named| FileId::of(&named) == file) {
            return Err(Error::ChangedWhileReading { path });
        }
        // One descriptor belongs to the connection.
        match users::other_user(file, 1) {
            Some(process_id) => Err(Error::InUse {
                path,
                process_id: Some(process_id),
            }),
            None => Ok(()),
        }
    }

    /// Waits until no other process has the file open. Programs that wait for the lock have it open too:
    /// once released, they would use the replaced file. They give up soon.
    pub(super) fn await_unused(&self, cancel: &AtomicBool) -> Result<(), Error> {
        let begun = Instant::now();
        loop {
            // Each check takes a moment.
            let process_id = match self.confirm_unused() {
                Err(Error::InUse { process_id, .. }) => process_id,
                answer => return answer,
            };
            let path = self.path.clone();
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            let waited = begun.elapsed();
            if waited >= PATIENCE {
                return Err(Error::StillInUse {
                    path,
                    process_id,
                    waited,
                });
            }
        }
    }

    /// Copies the database's log into it, so that it is complete without the log. We may checkpoint
    /// it, because we may replace it.
    pub(super) fn fold(&mut self) -> Result<(), Error> {
        if !self.is_database {
            return Ok(());
        }
        let connection = self.connection.get_mut();
        let fold = connection
            .unwrap_or_else(PoisonError::into_inner)
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        let busy: i64 = fold.map_err(|error| sqlite_error("checkpoint", &self.path, error))?;
        let log_bytes = std::fs::metadata(wal_path(&self.path)).map_or(0, |log| log.len());
        if busy != 0 || log_bytes != 0 {
            return Err(Error::InUse {
                path: self.path.clone(),
                process_id: None,
            });
        }
        Ok(())
    }
}

impl Drop for ExistingTarget {
    /// If the database was not replaced after all, removes a log that did not exist before.
    fn drop(&mut self) {
        let is_there = std::fs::metadata(&self.path)
            .is_ok_and(|named| FileId::of(&named) == FileId::of(&self.metadata));
        if is_there {
            let connection = self
                .connection
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner);
            remove_log_with(connection, &self.path, self.made_log);
        }
    }
}

fn connect(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(std::time::Duration::ZERO)?;
        // Closing comes after the rename: it must not touch a log, which would be the new file's.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        Ok(connection)
    };
    open().map_err(|error| sqlite_error("open", path, error))
}

/// Locks a database permanently, after rolling back a crashed writer's transaction. `None` if
/// `SQLite` does not recognise the file as a database.
///
/// In exclusive locking mode the lock outlives the transaction, and the index of the log is kept in
/// memory instead of a -shm file.
fn lock_database(path: &Path) -> Result<Option<Connection>, Error> {
    roll_back(path)?;
    let connection = connect(path)?;
    let lock = || {
        connection.query_row("PRAGMA locking_mode = EXCLUSIVE", [], |_| Ok(()))?;
        connection.execute_batch("BEGIN EXCLUSIVE; COMMIT")
    };
    let Err(error) = lock() else {
        return Ok(Some(connection));
    };
    match error
        .sqlite_error()
        .map(|failure| failure.extended_code & 0xFF)
    {
        Some(code::SQLITE_BUSY | code::SQLITE_LOCKED) => Err(in_use(path)),
        Some(code::SQLITE_NOTADB | code::SQLITE_CORRUPT) => Ok(None),
        _ => Err(sqlite_error("lock", path, error)),
    }
}

/// Lets `SQLite` roll back a crashed writer's journal, on a connection that closes the journal
/// again: in exclusive locking mode it would stay open and be removed, by name, when the connection
/// closes.
fn roll_back(path: &Path) -> Result<(), Error> {
    if journal_path(path).exists() {
        // If it matters, the problem shows again when the database is locked.
        let _answer = connect(path)?.query_row("PRAGMA schema_version", [], |_| Ok(()));
    }
    Ok(())
}

/// Locks a file that is not a database, in case another program treats it as one.
fn lock_content(path: &Path) -> Result<Connection, Error> {
    let connection = connect(path)?;
    for lock in [FileLock::Shared, FileLock::Exclusive] {
        match ffi::lock_file(&connection, lock) {
            Ok(()) => {}
            Err(code::SQLITE_BUSY) => return Err(in_use(path)),
            Err(other) => {
                let error = rusqlite::Error::SqliteFailure(code::Error::new(other), None);
                return Err(sqlite_error("lock", path, error));
            }
        }
    }
    Ok(connection)
}

fn in_use(path: &Path) -> Error {
    let file = std::fs::metadata(path).map(|metadata| FileId::of(&metadata));
    let process_id = file.ok().and_then(|file| users::other_user(file, 1));
    Error::InUse {
        path: path.to_owned(),
        process_id,
    }
}
