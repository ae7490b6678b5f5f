//! Opening a database for a backup: which lock pins it, or why it cannot be pinned.

use std::ffi::c_int;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, ffi as code};
use windlass_base::{Guid, Lsn};

use super::ffi::{self, FileLock, WalIndexHeader};
use super::{file_error, journal_path, sqlite_error, wal_path};
use crate::Error;
use crate::error::Obstacle;

/// What a backup may say about how a database is opened.
#[derive(Debug, Clone)]
pub struct SnapshotOptions {
    /// The database's name; the file's name without extension when absent.
    pub database_name: Option<String>,
    /// The family's identity, where the caller keeps it; else the file's own.
    pub family_guid: Option<Guid>,
    /// The newest position that is known of this database: the snapshot's is later.
    pub after: Lsn,
    /// How long to wait for a connection that has locked the database.
    pub busy_timeout: Duration,
}

impl Default for SnapshotOptions {
    fn default() -> Self {
        Self {
            database_name: None,
            family_guid: None,
            after: Lsn::ZERO,
            busy_timeout: Duration::from_secs(10),
        }
    }
}

/// What keeps the state in place while it is read.
#[derive(Debug)]
pub(super) enum Pin {
    /// A read transaction; the file alone is the state.
    File,
    /// A read transaction; pages with frames up to the mark come from the log.
    Log(WalIndexHeader),
    /// `SQLite`'s SHARED lock around content that `SQLite` does not read.
    Raw,
    /// Nothing: the file system is mounted read-only.
    ReadOnlyMedium,
}

/// A pinned database.
#[derive(Debug)]
pub(super) struct Pinned {
    /// Holds the pin; absent on a read-only medium.
    pub(super) connection: Option<Connection>,
    pub(super) pin: Pin,
    pub(super) is_wal: bool,
    pub(super) is_read_only: bool,
    /// Whether there was no log before this connection made an empty one.
    pub(super) made_wal: bool,
}

/// Pins the newest committed state of the database at `path`, which must be free of links.
pub(super) fn pin(path: &Path, busy_timeout: Duration) -> Result<Pinned, Error> {
    let deadline = Instant::now() + busy_timeout;
    let had_wal = wal_path(path).exists();
    loop {
        let connection = connect(path, deadline)?;
        let refusal = match begin(&connection) {
            Ok((pin, is_wal)) => {
                let is_read_only = connection.is_readonly("main").unwrap_or(true);
                let made_wal = is_wal && !had_wal;
                let connection = Some(connection);
                return Ok(Pinned {
                    connection,
                    pin,
                    is_wal,
                    is_read_only,
                    made_wal,
                });
            }
            Err(refusal) => refusal,
        };
        remove_log_with(&connection, path, !had_wal);
        drop(connection);
        match Remedy::of(&refusal) {
            Remedy::Wait if Instant::now() < deadline => pause(),
            Remedy::Wait => {
                return Err(Error::Busy {
                    path: path.to_owned(),
                    waited: busy_timeout,
                });
            }
            Remedy::CopyRaw => return pin_raw(path, deadline, busy_timeout),
            Remedy::HotJournal => return Err(hot_journal(path, Obstacle::ReadOnly)),
            Remedy::ReadOnlyMedium => return pin_read_only_medium(path, refusal),
            Remedy::None => return Err(sqlite_error("read", path, refusal)),
        }
    }
}

/// What can be done when `SQLite` refuses to read.
enum Remedy {
    Wait,
    CopyRaw,
    HotJournal,
    ReadOnlyMedium,
    None,
}

impl Remedy {
    fn of(refusal: &rusqlite::Error) -> Self {
        let extended = extended_code(refusal);
        match (extended, extended & 0xFF) {
            (code::SQLITE_READONLY_ROLLBACK, _) => Self::HotJournal,
            (_, code::SQLITE_BUSY | code::SQLITE_LOCKED | code::SQLITE_PROTOCOL) => Self::Wait,
            (_, code::SQLITE_NOTADB | code::SQLITE_CORRUPT) => Self::CopyRaw,
            (_, code::SQLITE_CANTOPEN | code::SQLITE_READONLY) => Self::ReadOnlyMedium,
            _ => Self::None,
        }
    }
}

fn extended_code(error: &rusqlite::Error) -> c_int {
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => failure.extended_code,
        _ => code::SQLITE_ERROR,
    }
}

fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}

/// A connection that never checkpoints: not by itself, not when it is closed.
fn connect(path: &Path, deadline: Instant) -> Result<Connection, Error> {
    // Writable, so that SQLite can roll back what a crashed writer left; SQLite falls back to
    // reading by itself.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let connection = Connection::open_with_flags(path, flags)?;
        let wait = deadline.saturating_duration_since(Instant::now());
        connection.busy_timeout(wait)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        Ok(connection)
    };
    open().map_err(|error| sqlite_error("open", path, error))
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

/// Begins the read transaction. See the parent module for why in this order.
fn begin(connection: &Connection) -> Result<(Pin, bool), rusqlite::Error> {
    loop {
        // Outside of a transaction: rolls back a hot journal, finds and opens the log.
        touch(connection)?;
        let was_wal = ffi::is_wal(connection);
        connection.execute_batch("BEGIN")?;
        let mark = ffi::pin_snapshot(connection).map_err(failure)?;
        touch(connection)?;
        let is_wal = ffi::is_wal(connection);
        if was_wal == is_wal {
            let pin = match mark {
                Some(mark) if is_wal && mark.frame_max > 0 => Pin::Log(mark),
                _ => Pin::File,
            };
            return Ok((pin, is_wal));
        }
        // Somebody changed the journal mode between the two: the pin may be of the wrong kind.
        connection.execute_batch("ROLLBACK")?;
    }
}

/// The smallest read there is: it does not even look at the schema, which may be damaged.
fn touch(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.query_row("PRAGMA schema_version", [], |_| Ok(()))
}

fn failure(code: c_int) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(code::Error::new(code), None)
}

/// Takes the SHARED lock on content that `SQLite` refuses to read.
fn pin_raw(path: &Path, deadline: Instant, busy_timeout: Duration) -> Result<Pinned, Error> {
    let connection = connect(path, deadline)?;
    let failed = |code| sqlite_error("lock", path, failure(code));
    loop {
        match ffi::lock_file(&connection, FileLock::Shared) {
            Ok(()) => break,
            Err(code::SQLITE_BUSY) if Instant::now() < deadline => pause(),
            Err(code::SQLITE_BUSY) => {
                return Err(Error::Busy {
                    path: path.to_owned(),
                    waited: busy_timeout,
                });
            }
            Err(code) => return Err(failed(code)),
        }
    }
    // The journal of a transaction under way is no concern: its writer cannot get at the file.
    if !ffi::is_reserved(&connection).map_err(failed)? && is_hot(&journal_path(path))? {
        return Err(hot_journal(path, Obstacle::NotADatabase));
    }
    refuse_log(path)?;
    let is_read_only = connection.is_readonly("main").unwrap_or(true);
    let connection = Some(connection);
    Ok(Pinned {
        connection,
        pin: Pin::Raw,
        is_wal: false,
        is_read_only,
        made_wal: false,
    })
}

/// Content that `SQLite` does not read must not depend on a log.
pub(super) fn refuse_log(path: &Path) -> Result<(), Error> {
    let journal = wal_path(path);
    match std::fs::metadata(&journal) {
        Ok(log) if log.len() > 0 => {
            let (path, obstacle) = (path.to_owned(), Obstacle::NotADatabase);
            Err(Error::HotJournal {
                path,
                journal,
                obstacle,
            })
        }
        _ => Ok(()),
    }
}

/// Without a -shm file `SQLite` cannot pin a database in WAL mode. Where nobody can write, nothing
/// needs to be pinned.
fn pin_read_only_medium(path: &Path, refusal: rusqlite::Error) -> Result<Pinned, Error> {
    let mounted = rustix::fs::statvfs(path)
        .map_err(|error| file_error("examine", path, error.into()))?
        .f_flag;
    if mounted.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
        return frozen(path);
    }
    match extended_code(&refusal) & 0xFF {
        code::SQLITE_CANTOPEN | code::SQLITE_READONLY => Err(Error::WalNotAccessible {
            path: path.to_owned(),
        }),
        _ => Err(sqlite_error("read", path, refusal)),
    }
}

/// A database that cannot change.
pub(super) fn frozen(path: &Path) -> Result<Pinned, Error> {
    if is_hot(&journal_path(path))? {
        return Err(hot_journal(path, Obstacle::ReadOnly));
    }
    Ok(Pinned {
        connection: None,
        pin: Pin::ReadOnlyMedium,
        is_wal: true,
        is_read_only: true,
        made_wal: false,
    })
}

fn hot_journal(path: &Path, obstacle: Obstacle) -> Error {
    Error::HotJournal {
        path: path.to_owned(),
        journal: journal_path(path),
        obstacle,
    }
}

/// Whether a journal says that a transaction must be rolled back: it begins with something else
/// than zero, as `SQLite` decides it too.
fn is_hot(journal: &Path) -> Result<bool, Error> {
    let mut first = [0];
    match File::open(journal).and_then(|mut file| file.read(&mut first)) {
        Ok(bytes) => Ok(bytes > 0 && first[0] != 0),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(file_error("read", journal, error)),
    }
}
