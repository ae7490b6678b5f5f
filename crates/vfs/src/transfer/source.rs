//! A plain SQLite file, locked and read through SQLite's own descriptor.
//!
//! Not through one of ours: closing any descriptor of the file would drop the locks that SQLite
//! connections of this process hold on it.
#![expect(unsafe_code, reason = "calls SQLite's C interface for files")]

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::ptr;

use rusqlite::{Connection, OpenFlags, ffi};
use windlass_engine::PAGE_SIZE;

use crate::error::{Result, VfsError};

/// A SQLite file with a read transaction open on it.
pub(super) struct Source {
    connection: Connection,
    path: PathBuf,
    /// Octets in a page.
    pub(super) page_size: u32,
    /// Octets of the database.
    pub(super) octets: u64,
}

impl Source {
    /// Opens the file, rolls back what a crash left there, and begins to read.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let fail = |error: rusqlite::Error| VfsError::NotImportable {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        // Writable, so that SQLite can recover; without O_CREAT, so that nothing is made.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(fail)?;
        let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u32>(0));
        connection.execute_batch("BEGIN").map_err(fail)?;
        let _tables = number("SELECT count(*) FROM sqlite_schema").map_err(fail)?;
        let page_size = number("PRAGMA page_size").map_err(fail)?;
        let page_count = number("PRAGMA page_count").map_err(fail)?;
        Ok(Self {
            octets: u64::from(page_size) * u64::from(page_count),
            path: path.to_owned(),
            page_size,
            connection,
        })
    }

    /// Whether the file alone is the database, and stays so while the transaction is open.
    ///
    /// In WAL mode it is if the log is empty once the transaction has begun: SQLite then holds the
    /// lock that keeps checkpoints away from the file. In the other modes the transaction keeps
    /// writers out.
    pub(super) fn is_whole(&self) -> bool {
        let mut log = self.path.as_os_str().to_owned();
        log.push("-wal");
        let log_is_empty = std::fs::metadata(PathBuf::from(log)).map_or(true, |log| log.len() == 0);
        self.page_size as usize == PAGE_SIZE && log_is_empty
    }

    /// Fills `buffer` from `offset` of the file.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        let fail = |code: c_int| VfsError::NotImportable {
            path: self.path.clone(),
            reason: format!("SQLite code {code} while reading at octet {offset}"),
        };
        let mut file: *mut ffi::sqlite3_file = ptr::null_mut();
        // SAFETY: the handle is valid while the connection lives and is not closed here.
        let handle = unsafe { self.connection.handle() };
        // SAFETY: a live handle; the argument of this operation is a place for a file pointer.
        let code = unsafe {
            ffi::sqlite3_file_control(
                handle,
                c"main".as_ptr(),
                ffi::SQLITE_FCNTL_FILE_POINTER,
                (&raw mut file).cast(),
            )
        };
        if code != ffi::SQLITE_OK {
            return Err(fail(code));
        }
        // SAFETY: the connection's file object, alive as long as the connection.
        let methods = unsafe { (*file).pMethods };
        // SAFETY: the methods of an open file are a static table, of which null is no part.
        let read = unsafe { methods.as_ref() }.and_then(|methods| methods.xRead);
        let read = read.ok_or_else(|| fail(ffi::SQLITE_CANTOPEN))?;
        let length = c_int::try_from(buffer.len()).map_err(|_| fail(ffi::SQLITE_TOOBIG))?;
        // SAFETY: an open file of a connection that no other thread uses, and memory of `length` octets.
        let code = unsafe { read(file, buffer.as_mut_ptr().cast(), length, offset as i64) };
        if code == ffi::SQLITE_OK {
            Ok(())
        } else {
            Err(fail(code))
        }
    }

    /// Has SQLite write the database to `target` with pages of the engine.
    pub(super) fn convert(self, target: &Path) -> Result<()> {
        let fail = |error: rusqlite::Error| VfsError::NotImportable {
            path: self.path.clone(),
            reason: error.to_string(),
        };
        // VACUUM is a transaction of its own; it reads one committed state.
        self.connection
            .execute_batch(&format!("COMMIT; PRAGMA page_size = {PAGE_SIZE}"))
            .map_err(fail)?;
        self.connection
            .execute("VACUUM INTO ?1", [target.to_string_lossy()])
            .map_err(fail)?;
        Ok(())
    }
}
