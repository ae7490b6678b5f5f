//! Opens a database for a backup: pins it with a lock, or reports why it cannot be pinned.
//!
//! `SQLite` pins it, unless that would leave a file that its owner could not use. In that case, or
//! if `SQLite` cannot create the files it needs, the database is watched instead: see `watched.rs`.

use std::ffi::c_int;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, ffi as code};
use rustix::fs::{Access, AtFlags, CWD};
use windlass_io::own;
use windlass_media::WalPosition;

use super::ffi::{self, FileLock, WalIndexHeader};
use super::header::{HEADER_BYTES, Header};
use super::made::SideFiles;
use super::mount::Mount;
use super::options::{SnapshotOptions, Wait};
use super::wal::Overlay;
use super::watched::{Watched, position_of_file};
use super::{descriptors, file_error, journal_path, names, sqlite_error, uri, wal_path};
use crate::Error;
use crate::error::Obstacle;

/// What keeps the state unchanged while it is read.
#[derive(Debug)]
pub(super) enum Pin {
    /// A read transaction; the file alone is the state.
    File,
    /// A read transaction; pages with frames up to the mark come from the log.
    Log(WalIndexHeader),
    /// `SQLite`'s SHARED lock, for content that `SQLite` rejects.
    Raw,
    /// Nothing that locks out every writer; changes are detected instead.
    Watched(Watched),
}

/// A pinned database.
#[derive(Debug)]
pub(super) struct Pinned {
    /// Holds the pin; `None` if the user guarantees that no program writes.
    pub(super) connection: Option<Connection>,
    pub(super) pin: Pin,
    /// Pages of the log, if the pin does not include them.
    pub(super) overlay: Option<Overlay>,
    pub(super) is_wal: bool,
    pub(super) is_read_only: bool,
    /// Whether this connection created an empty log that did not exist before.
    pub(super) made_wal: bool,
    /// The position of the state in the log, if it has one.
    pub(super) wal_position: Option<WalPosition>,
}

/// Pins the newest committed state of the database at `path`, which must be free of links.
pub(super) fn pin(path: &Path, options: &SnapshotOptions) -> Result<Pinned, Error> {
    let mut wait = Wait::begin(options);
    own::refuse_special(path).map_err(|error| file_error("open", path, error))?;
    if !options.frozen {
        names::refuse_other(path, &wait)?;
    }
    refuse_emptied(path)?;
    if options.frozen {
        return frozen(path, &mut wait);
    }
    if !makes_files_for_owner(path)
        && let Some(pinned) = pin_without_making(path, &mut wait)?
    {
        return Ok(pinned);
    }
    pin_by_sqlite(path, &mut wait)
}

/// Whether -wal and -shm files that `SQLite` may create would belong to the database's owner; files
/// of another user would lock the owner out.
pub(super) fn makes_files_for_owner(path: &Path) -> bool {
    let user = rustix::process::geteuid();
    let is_owner = std::fs::metadata(path).is_ok_and(|file| file.uid() == user.as_raw());
    // SQLite gives files created by root to the owner.
    is_writable(path) && (is_owner || user.is_root())
}

fn is_writable(path: &Path) -> bool {
    rustix::fs::accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

/// Lets `SQLite` pin the database by its own locks.
fn pin_by_sqlite(path: &Path, wait: &mut Wait<'_>) -> Result<Pinned, Error> {
    loop {
        let refusal = match attempt(path)? {
            Ok(pinned) => return Ok(pinned),
            Err(refusal) => refusal,
        };
        match Remedy::of(&refusal) {
            Remedy::Wait => wait.pause(path)?,
            Remedy::CopyRaw => return pin_raw(path, wait),
            Remedy::HotJournal => return Err(hot_journal(path, Obstacle::ReadOnly)),
            Remedy::Watch => {
                let connection = lock_for_watching(path, wait)?;
                if !depends_on_log(path)? {
                    return Err(sqlite_error("read", path, refusal));
                }
                return watch(path, connection, wait);
            }
            Remedy::None => return Err(sqlite_error("read", path, refusal)),
        }
    }
}

/// Pins a database in WAL mode without creating files next to it. `None` if it is not in WAL mode,
/// where no files are created.
fn pin_without_making(path: &Path, wait: &mut Wait<'_>) -> Result<Option<Pinned>, Error> {
    // From here on the journal mode stays the same, and existing -wal and -shm files stay, too.
    let connection = lock_for_watching(path, wait)?;
    if !depends_on_log(path)? {
        return Ok(None);
    }
    let mount = Mount::of(path);
    let is_shared = mount
        .as_ref()
        .is_none_or(|mount| mount.is_read_only && !mount.is_local());
    if is_shared {
        // The -shm is memory that only processes of one machine share.
        return Err(not_provable(path, mount));
    }
    let side_files = SideFiles::beside(path);
    if side_files.has_wal
        && side_files.has_shm
        && let Some(pinned) = pin_by_what_is_there(path, wait)?
    {
        return Ok(Some(pinned));
    }
    watch(path, connection, wait).map(Some)
}

/// Lets `SQLite` pin a database with permanent -wal and -shm files; `None` if they are not usable.
fn pin_by_what_is_there(path: &Path, wait: &mut Wait<'_>) -> Result<Option<Pinned>, Error> {
    loop {
        match attempt(path)? {
            Ok(pinned) => return Ok(Some(pinned)),
            Err(refusal) => match Remedy::of(&refusal) {
                Remedy::Wait => wait.pause(path)?,
                Remedy::HotJournal => return Err(hot_journal(path, Obstacle::ReadOnly)),
                Remedy::Watch | Remedy::CopyRaw => return Ok(None),
                Remedy::None => return Err(sqlite_error("read", path, refusal)),
            },
        }
    }
}

/// Whether the content of the database depends on a log. The caller prevents the answer from
/// changing.
pub(super) fn depends_on_log(path: &Path) -> Result<bool, Error> {
    let mut header = [0; HEADER_BYTES];
    let file = descriptors::open(path)?;
    let read = file.read_at(&mut header, 0);
    let bytes = read.map_err(|error| file_error("read", path, error))?;
    let header = Header::parse(header.get(..bytes).unwrap_or_default());
    if header.page_bytes == 0 {
        refuse_log(path)?;
        return Ok(false);
    }
    Ok(header.is_wal || std::fs::metadata(wal_path(path)).is_ok_and(|log| log.len() > 0))
}

/// The SHARED lock, on a connection that neither creates nor changes any file.
fn lock_for_watching(path: &Path, wait: &mut Wait<'_>) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri::read_only(path), flags)
        .map_err(|error| sqlite_error("open", path, error))?;
    lock_shared(&connection, path, wait)?;
    Ok(connection)
}

fn lock_shared(connection: &Connection, path: &Path, wait: &mut Wait<'_>) -> Result<(), Error> {
    loop {
        match ffi::lock_file(connection, FileLock::Shared) {
            Ok(()) => return Ok(()),
            Err(code::SQLITE_BUSY) => wait.pause(path)?,
            Err(code) => return Err(sqlite_error("lock", path, failure(code))),
        }
    }
}

/// Watches a database in WAL mode while `connection` holds the SHARED lock.
fn watch(path: &Path, connection: Connection, wait: &mut Wait<'_>) -> Result<Pinned, Error> {
    let mount = Mount::of(path);
    if !mount.as_ref().is_some_and(Mount::is_local) {
        return Err(not_provable(path, mount));
    }
    let is_unchanging = mount.is_some_and(|mount| mount.is_unchanging());
    watched(path, Some(connection), is_unchanging, wait)
}

/// A database to which no program writes, according to the user.
fn frozen(path: &Path, wait: &mut Wait<'_>) -> Result<Pinned, Error> {
    let depends_on_log = depends_on_log(path)?;
    let mut pinned = watched(path, None, true, wait)?;
    pinned.is_wal = depends_on_log;
    Ok(pinned)
}

fn watched(
    path: &Path,
    connection: Option<Connection>,
    is_unchanging: bool,
    wait: &mut Wait<'_>,
) -> Result<Pinned, Error> {
    if is_hot(&journal_path(path))? {
        return Err(hot_journal(path, Obstacle::ReadOnly));
    }
    let (watched, overlay) = Watched::begin(path, is_unchanging, wait)?;
    Ok(Pinned {
        connection,
        pin: Pin::Watched(watched),
        overlay,
        is_wal: true,
        is_read_only: !is_writable(path),
        made_wal: false,
        wal_position: None,
    })
}

fn not_provable(path: &Path, mount: Option<Mount>) -> Error {
    Error::WalNotAccessible {
        path: path.to_owned(),
        file_system: mount.map_or_else(|| "unknown".to_owned(), |mount| mount.kind),
    }
}

/// What to do if `SQLite` refuses to read.
enum Remedy {
    Wait,
    CopyRaw,
    HotJournal,
    Watch,
    None,
}

impl Remedy {
    fn of(refusal: &rusqlite::Error) -> Self {
        let extended = extended_code(refusal);
        match (extended, extended & 0xFF) {
            (code::SQLITE_READONLY_ROLLBACK, _) => Self::HotJournal,
            (_, code::SQLITE_BUSY | code::SQLITE_LOCKED | code::SQLITE_PROTOCOL) => Self::Wait,
            (_, code::SQLITE_NOTADB | code::SQLITE_CORRUPT) => Self::CopyRaw,
            // No place, no permission or no space for the -wal or the -shm.
            (
                code::SQLITE_IOERR_SHMOPEN | code::SQLITE_IOERR_SHMSIZE | code::SQLITE_IOERR_SHMMAP,
                _,
            )
            | (_, code::SQLITE_CANTOPEN | code::SQLITE_READONLY | code::SQLITE_FULL) => Self::Watch,
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

/// One attempt to let `SQLite` pin the database. A failed attempt removes the files it created.
fn attempt(path: &Path) -> Result<Result<Pinned, rusqlite::Error>, Error> {
    let side_files = SideFiles::beside(path);
    let connection = connect(path)?;
    let refusal = match begin(&connection) {
        Ok((pin, is_wal, mark)) => {
            let wal_position = match mark {
                Some(mark) => Some(mark.position()),
                // Under lock 0, which keeps the file unchanged.
                None if is_wal => position_of_file(path)?,
                None => None,
            };
            return Ok(Ok(Pinned {
                wal_position,
                is_read_only: connection.is_readonly("main").unwrap_or(true),
                connection: Some(connection),
                pin,
                overlay: None,
                is_wal,
                made_wal: is_wal && !side_files.has_wal,
            }));
        }
        Err(refusal) => refusal,
    };
    drop(connection);
    side_files.remove_others(path);
    Ok(Err(refusal))
}

/// A connection that never checkpoints, neither automatically nor when closed.
pub(super) fn connect(path: &Path) -> Result<Connection, Error> {
    // Writable, so that SQLite can roll back a crashed writer's transaction; SQLite falls back to
    // read-only by itself.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let connection = Connection::open_with_flags(path, flags)?;
        // `Wait` does the waiting: it polls more often and can be cancelled.
        connection.busy_timeout(std::time::Duration::ZERO)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        Ok(connection)
    };
    open().map_err(|error| sqlite_error("open", path, error))
}

/// Begins the read transaction. The parent module explains the order.
fn begin(connection: &Connection) -> Result<(Pin, bool, Option<WalIndexHeader>), rusqlite::Error> {
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
            return Ok((pin, is_wal, mark.filter(|_| is_wal)));
        }
        // The journal mode changed between the two: the pin may be of the wrong kind.
        connection.execute_batch("ROLLBACK")?;
    }
}

/// The smallest possible read: it does not even read the schema, which may be damaged.
pub(super) fn touch(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.query_row("PRAGMA schema_version", [], |_| Ok(()))
}

pub(super) fn failure(code: c_int) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(code::Error::new(code), None)
}

/// Takes the SHARED lock on content that `SQLite` rejects.
fn pin_raw(path: &Path, wait: &mut Wait<'_>) -> Result<Pinned, Error> {
    let connection = connect(path)?;
    let failed = |code| sqlite_error("lock", path, failure(code));
    lock_shared(&connection, path, wait)?;
    // The journal of a transaction in progress does not matter: its writer cannot change the file.
    if !ffi::is_reserved(&connection).map_err(failed)? && is_hot(&journal_path(path))? {
        return Err(hot_journal(path, Obstacle::NotADatabase));
    }
    refuse_log(path)?;
    let is_read_only = connection.is_readonly("main").unwrap_or(true);
    let connection = Some(connection);
    Ok(Pinned {
        connection,
        pin: Pin::Raw,
        overlay: None,
        is_wal: false,
        is_read_only,
        made_wal: false,
        wal_position: None,
    })
}

/// Content that `SQLite` rejects must not depend on a log.
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

/// Length of files up to which `SQLite` takes them for empty: on some systems it writes a byte itself.
const EMPTY_BYTES_MAX: u64 = 1;

/// Opening an empty database removes the log or journal next to it, which may be all that is left of its content.
pub(super) fn refuse_emptied(path: &Path) -> Result<(), Error> {
    let database = std::fs::metadata(path).map_err(|error| file_error("examine", path, error))?;
    if database.len() > EMPTY_BYTES_MAX {
        return Ok(());
    }
    let emptied = |journal| {
        let path = path.to_owned();
        Err(Error::Emptied { path, journal })
    };
    let log = wal_path(path);
    if std::fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        return emptied(log);
    }
    if is_hot(&journal_path(path))? {
        // The very first transaction of a database is different.
        let connection = connect(path)?;
        let is_written = ffi::is_reserved(&connection)
            .map_err(|code| sqlite_error("lock", path, failure(code)))?;
        if !is_written {
            return emptied(journal_path(path));
        }
    }
    Ok(())
}

fn hot_journal(path: &Path, obstacle: Obstacle) -> Error {
    Error::HotJournal {
        path: path.to_owned(),
        journal: journal_path(path),
        obstacle,
    }
}

/// Whether a journal requires a rollback: it does not begin with zero, which is also `SQLite`'s
/// criterion.
fn is_hot(journal: &Path) -> Result<bool, Error> {
    let mut first = [0];
    match File::open(journal).and_then(|mut file| file.read(&mut first)) {
        Ok(bytes) => Ok(bytes > 0 && first[0] != 0),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(file_error("read", journal, error)),
    }
}
