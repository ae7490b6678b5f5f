//! A plain SQLite file, locked and read through SQLite's own descriptor.
//!
//! Windlass opens none of its own, because closing any descriptor of the file would drop the locks
//! that SQLite connections of this process have on it.
//!
//! The descriptor is read-only. SQLite can then neither roll back a crashed program's transaction
//! nor checkpoint a log: file and log stay unchanged, byte by byte. Only an empty log that the
//! reading itself creates is removed afterwards.
#![expect(unsafe_code, reason = "calls SQLite's C interface for files")]

use std::ffi::{c_int, c_void};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::ptr;

use rusqlite::{Connection, OpenFlags, ffi};
use windlass_base::PAGE_BYTES;
use windlass_io::other_name;

use super::beside;
use crate::error::{Result, VfsError};

/// A SQLite file with a read transaction open on it.
#[derive(Debug)]
pub(super) struct Source {
    connection: Connection,
    path: PathBuf,
    pub(super) page_size: u32,
    /// Bytes of the database.
    pub(super) bytes: u64,
    /// Bytes at the end of each page that SQLite does not use.
    pub(super) reserved_bytes: c_int,
    /// After the connection: dropped last.
    _log: Option<MadeLog>,
}

/// The log or the journal of a file with several names may lie beside another of them, unseen.
fn refuse_other_name(path: &Path) -> Result<()> {
    let found = std::fs::canonicalize(path).and_then(|path| other_name::of(&path));
    match found {
        Ok(Some(found)) => Err(VfsError::NotImportable {
            path: path.to_owned(),
            reason: format!(
                "it {found}: its log or journal may lie beside another name, where it is not \
                 seen; import a copy that was made with VACUUM INTO by the name that programs use"
            ),
        }),
        // What cannot be examined cannot be opened either.
        _ => Ok(()),
    }
}

impl Source {
    /// Opens the file and begins to read.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let fail = |error: rusqlite::Error| VfsError::NotImportable {
            path: path.to_owned(),
            reason: reason(path, &error),
        };
        let empty = || VfsError::NotImportable {
            path: path.to_owned(),
            reason: "it is empty; create the database instead".to_owned(),
        };
        refuse_other_name(path)?;
        // SQLite must not open it, because it removes a log next to an empty file.
        if std::fs::metadata(path).is_ok_and(|file| file.len() == 0) {
            return Err(empty());
        }
        let log = MadeLog::unless_there(path);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(uri(path), flags).map_err(fail)?;
        let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u32>(0));
        connection.execute_batch("BEGIN").map_err(fail)?;
        let _tables = number("SELECT count(*) FROM sqlite_schema").map_err(fail)?;
        let page_size = number("PRAGMA page_size").map_err(fail)?;
        let page_count = number("PRAGMA page_count").map_err(fail)?;
        if page_count == 0 {
            return Err(empty());
        }
        // SQLite treats a partial page as a whole one, with zeros for the missing part.
        let file_bytes = std::fs::metadata(path).map_or(0, |file| file.len());
        if !file_bytes.is_multiple_of(u64::from(page_size)) {
            return Err(VfsError::NotImportable {
                path: path.to_owned(),
                reason: format!(
                    "its last page is truncated: {file_bytes} bytes are not a whole number of \
                     pages of {page_size} bytes"
                ),
            });
        }
        let mut source = Self {
            bytes: u64::from(page_size) * u64::from(page_count),
            path: path.to_owned(),
            page_size,
            connection,
            reserved_bytes: -1,
            _log: log,
        };
        let mut bytes = source.reserved_bytes;
        source
            .control(ffi::SQLITE_FCNTL_RESERVE_BYTES, (&raw mut bytes).cast())
            .map_err(|code| source.not_read(code, 0))?;
        source.reserved_bytes = bytes;
        Ok(source)
    }

    /// Whether the file alone is the database, in pages of the engine's size, and stays so while the
    /// transaction is open.
    ///
    /// In WAL mode this is so if the log is empty once the transaction has begun: SQLite then holds
    /// the lock that keeps checkpoints away from the file. In the other modes the transaction locks
    /// out writers.
    pub(super) fn is_whole(&self) -> bool {
        let log = std::fs::metadata(beside(&self.path, "-wal"));
        let log_is_empty = log.map_or(true, |log| log.len() == 0);
        self.page_size as usize == PAGE_BYTES && log_is_empty
    }

    /// A file control of SQLite.
    ///
    /// The argument of `operation` must have the type that `place` points to.
    fn control(&self, operation: c_int, place: *mut c_void) -> std::result::Result<(), c_int> {
        // SAFETY: the handle is valid while the connection lives and is not closed here.
        let handle = unsafe { self.connection.handle() };
        // SAFETY: a live handle; the callers pass a place of the operation's type.
        let code = unsafe { ffi::sqlite3_file_control(handle, c"main".as_ptr(), operation, place) };
        if code == ffi::SQLITE_OK {
            Ok(())
        } else {
            Err(code)
        }
    }

    fn not_read(&self, code: c_int, offset: u64) -> VfsError {
        VfsError::NotImportable {
            path: self.path.clone(),
            reason: format!("SQLite code {code} while reading at byte {offset}"),
        }
    }

    /// Fills `buffer` from `offset` of the file.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        let fail = |code: c_int| self.not_read(code, offset);
        let mut file: *mut ffi::sqlite3_file = ptr::null_mut();
        self.control(ffi::SQLITE_FCNTL_FILE_POINTER, (&raw mut file).cast())
            .map_err(fail)?;
        // SAFETY: the connection's file object, alive as long as the connection.
        let methods = unsafe { (*file).pMethods };
        // SAFETY: the methods of an open file are a static table, of which null is no part.
        let read = unsafe { methods.as_ref() }.and_then(|methods| methods.xRead);
        let read = read.ok_or_else(|| fail(ffi::SQLITE_CANTOPEN))?;
        let length = c_int::try_from(buffer.len()).map_err(|_| fail(ffi::SQLITE_TOOBIG))?;
        // SAFETY: an open file of a connection that no other thread uses, and memory of `length` bytes.
        let code = unsafe { read(file, buffer.as_mut_ptr().cast(), length, offset as i64) };
        if code == ffi::SQLITE_OK {
            Ok(())
        } else {
            Err(fail(code))
        }
    }

    /// Makes SQLite write the database to `target` with the engine's page size, with
    /// `reserved_bytes` unused at the end of each page. The target is not synced.
    pub(super) fn convert(self, target: &Path, reserved_bytes: c_int) -> Result<()> {
        let fail = |error: rusqlite::Error| VfsError::NotImportable {
            path: self.path.clone(),
            reason: reason(&self.path, &error),
        };
        // VACUUM is a transaction of its own and reads one committed state. `synchronous` applies to
        // the target, too, which the caller syncs; the source is not written.
        self.connection
            .execute_batch(&format!(
                "COMMIT; PRAGMA synchronous = OFF; PRAGMA page_size = {PAGE_BYTES}"
            ))
            .map_err(fail)?;
        // The target is empty and held by this process, and some file systems take that lock for SQLite's.
        let target = format!("{}?reserve={reserved_bytes}&nolock=1", uri(target));
        self.connection
            .execute("VACUUM INTO ?1", [target])
            .map_err(fail)?;
        Ok(())
    }
}

/// The empty log that SQLite creates when it reads a database in WAL mode that has none. Dropped
/// after the reading connection; it then opens and closes a writable one, so that SQLite removes the
/// log.
#[derive(Debug)]
struct MadeLog {
    path: PathBuf,
}

impl MadeLog {
    fn unless_there(path: &Path) -> Option<Self> {
        let path = path.to_owned();
        (!beside(&path, "-wal").exists()).then_some(Self { path })
    }
}

impl Drop for MadeLog {
    fn drop(&mut self) {
        let log = std::fs::metadata(beside(&self.path, "-wal"));
        if log.is_ok_and(|log| log.len() == 0) {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX
                | OpenFlags::SQLITE_OPEN_URI;
            let opened = Connection::open_with_flags(uri(&self.path), flags);
            // On failure an empty file stays, which is harmless.
            let _kept = opened.and_then(|connection| {
                connection.query_row("PRAGMA schema_version", [], |_| Ok(()))
            });
        }
    }
}

/// SQLite's message, and advice.
fn reason(path: &Path, error: &rusqlite::Error) -> String {
    let code = error.sqlite_error().map(|error| error.extended_code);
    if code == Some(ffi::SQLITE_READONLY_ROLLBACK) {
        return format!(
            "a crashed program left a transaction in '{}', and an import does not change its \
             source; open the database once with SQLite, which rolls it back",
            beside(path, "-journal").display()
        );
    }
    error.to_string()
}

/// The URI by which SQLite opens exactly this path, whatever its characters.
fn uri(path: &Path) -> String {
    // An empty authority keeps SQLite from taking the first folder for one.
    let mut uri = String::from(if path.is_absolute() {
        "file://"
    } else {
        "file:"
    });
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}
