//! `SQLite` calls that rusqlite does not wrap. The only module with `unsafe`.
#![expect(
    unsafe_code,
    reason = "SQLite's C interface for snapshots and file locks"
)]

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::{Connection, ffi};
use windlass_media::WalPosition;

const MAIN: &CStr = c"main";

/// The wal-index header as of a read transaction: the mark up to which its reader sees the log.
///
/// The layout is `WalIndexHdr` of the WAL file format, "The WAL-Index Header", in the byte order of
/// the machine because it is shared memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WalIndexHeader {
    version: u32,
    unused: u32,
    change: u32,
    is_initialized: u8,
    big_endian_checksums: u8,
    /// 1 stands for 65536.
    page_size_code: u16,
    /// Last valid frame, from 1; 0 if the log is empty.
    pub(super) frame_max: u32,
    /// Pages in the database as of that frame.
    pub(super) page_count: u32,
    /// Checksum stored in that frame.
    pub(super) frame_checksum: [u32; 2],
    /// The two salts, as bytes of the log's header.
    pub(super) salt: [[u8; 4]; 2],
    checksum: [u32; 2],
}

const _: () = assert!(size_of::<WalIndexHeader>() == size_of::<ffi::sqlite3_snapshot>());

impl WalIndexHeader {
    /// Bytes per page.
    pub(super) fn page_bytes(&self) -> u32 {
        let code = u32::from(self.page_size_code);
        (code & 0xFE00) | ((code & 1) << 16)
    }

    /// Where the state of this header is in the history of the database.
    pub(super) fn position(&self) -> WalPosition {
        let [[a, b, c, d], [e, f, g, h]] = self.salt;
        WalPosition {
            salt: [a, b, c, d, e, f, g, h],
            frame: self.frame_max,
            checksum: self.frame_checksum,
            commits: self.change,
        }
    }

    /// Whether checksums in the log are computed over big-endian words.
    pub(super) fn is_big_endian(&self) -> bool {
        self.big_endian_checksums != 0
    }
}

/// Words of a [`WalIndexHeader`].
const HEADER_WORDS: usize = 12;
/// The word of the wal-index that counts the frames copied into the database: `nBackfill`, after both headers.
const BACKFILLED_WORD: usize = 2 * HEADER_WORDS;
/// Attempts to read a header that is being written.
const LOOKS: u32 = 1000;

/// What the wal-index says right now, read without a lock. `None` if it says nothing valid.
#[derive(Debug, Clone, Copy)]
pub(super) struct WalIndex {
    pub(super) header: WalIndexHeader,
    /// Frames that are in the database file, too.
    pub(super) backfilled: u32,
}

/// Reads the wal-index of a connection that has read in WAL mode. Writes nothing and takes no lock.
pub(super) fn wal_index(connection: &Connection) -> Option<WalIndex> {
    let (file, methods) = file_of(connection, ffi::SQLITE_FCNTL_FILE_POINTER).ok()?;
    let map = methods.xShmMap?;
    let mut memory: *mut c_void = ptr::null_mut();
    // SAFETY: `file` is the open file of a live connection and `map` its own method. The part was mapped when
    // the connection began to read in WAL mode; without the right to extend it, nothing is changed.
    let code = unsafe { map(file, 0, WAL_INDEX_PART_BYTES, 0, &raw mut memory) };
    if code != ffi::SQLITE_OK || memory.is_null() {
        return None;
    }
    let word = |index: usize| {
        // SAFETY: within the mapped part, which is longer than both headers and what follows, and page-aligned.
        let word = unsafe { memory.cast::<u32>().add(index) };
        // SAFETY: aligned and mapped while the connection is open; other processes write it only with atomic
        // stores of words or copies whose tearing the second header and the checksum reveal.
        unsafe { AtomicU32::from_ptr(word) }.load(Ordering::SeqCst)
    };
    let header =
        |at: usize| -> [u32; HEADER_WORDS] { std::array::from_fn(|index| word(at + index)) };
    for _ in 0..LOOKS {
        // In this order: the writer writes the second one first.
        let first = header(0);
        std::sync::atomic::fence(Ordering::SeqCst);
        if first != header(HEADER_WORDS) || !is_whole(&first) {
            std::hint::spin_loop();
            continue;
        }
        let backfilled = word(BACKFILLED_WORD);
        std::sync::atomic::fence(Ordering::SeqCst);
        if first != header(0) {
            continue;
        }
        // SAFETY: both are 48 bytes, the layout is that of the wal-index, and any bits are a valid header.
        let header = unsafe { ptr::read((&raw const first).cast::<WalIndexHeader>()) };
        return (header.is_initialized != 0).then_some(WalIndex { header, backfilled });
    }
    None
}

/// Whether the checksum of a header is right: `walChecksumBytes` over all words before it.
fn is_whole(words: &[u32; HEADER_WORDS]) -> bool {
    let [mut first, mut second] = [0_u32; 2];
    for pair in words[..HEADER_WORDS - 2].chunks_exact(2) {
        first = first.wrapping_add(pair[0]).wrapping_add(second);
        second = second.wrapping_add(pair[1]).wrapping_add(first);
    }
    words[HEADER_WORDS - 2..] == [first, second]
}

/// Pins the newest committed state and returns its end in the log.
///
/// Must be the first thing in a `BEGIN`, on a connection that has read before in WAL mode: then
/// `SQLite` takes a read mark other than 0 unless the log is empty. `None` if there is no log: not
/// in WAL mode, or nothing was ever written to it. The transaction may or may not have begun in
/// that case.
pub(super) fn pin_snapshot(connection: &Connection) -> Result<Option<WalIndexHeader>, c_int> {
    let mut snapshot: *mut ffi::sqlite3_snapshot = ptr::null_mut();
    // SAFETY: the handle is valid while `connection` lives and is not closed here.
    let handle = unsafe { connection.handle() };
    // SAFETY: a live handle, a NUL-terminated name and a place for the result.
    let code = unsafe { ffi::sqlite3_snapshot_get(handle, MAIN.as_ptr(), &raw mut snapshot) };
    match code {
        ffi::SQLITE_OK => {}
        ffi::SQLITE_ERROR => return Ok(None),
        other => return Err(other),
    }
    // SAFETY: on SQLITE_OK the object contains a wal-index header, of the size asserted above; it
    // need not be aligned.
    let header = unsafe { ptr::read_unaligned(snapshot.cast::<WalIndexHeader>()) };
    // SAFETY: obtained from sqlite3_snapshot_get above and freed once.
    unsafe { ffi::sqlite3_snapshot_free(snapshot) };
    Ok(Some(header))
}

/// Whether the connection's path no longer leads to its database file.
pub(super) fn has_moved(connection: &Connection) -> bool {
    let mut moved: c_int = 0;
    let code = file_control(
        connection,
        ffi::SQLITE_FCNTL_HAS_MOVED,
        (&raw mut moved).cast(),
    );
    code == ffi::SQLITE_OK && moved != 0
}

/// Whether the connection reads through a write-ahead log.
///
/// `PRAGMA journal_mode` would say so too, but it reads the schema, which may be damaged.
pub(super) fn is_wal(connection: &Connection) -> bool {
    // Either the log or the rollback journal; the latter is not open while nothing is written.
    file_of(connection, ffi::SQLITE_FCNTL_JOURNAL_POINTER).is_ok()
}

fn file_control(connection: &Connection, operation: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: the handle is valid while `connection` lives and is not closed here.
    let handle = unsafe { connection.handle() };
    // SAFETY: both callers pass an argument of the type that their operation documents.
    unsafe { ffi::sqlite3_file_control(handle, MAIN.as_ptr(), operation, argument) }
}

/// A lock on a database file in `SQLite`'s own protocol, for content that `SQLite` itself rejects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileLock {
    /// Others may read.
    Shared = ffi::SQLITE_LOCK_SHARED as isize,
    /// No other connection may do anything.
    Exclusive = ffi::SQLITE_LOCK_EXCLUSIVE as isize,
}

/// Takes `lock` through `SQLite`'s file object, so that its bookkeeping of locks within this
/// process stays correct. Held until the connection is closed. The connection must not run
/// statements before or after: its pager does not know of the lock.
pub(super) fn lock_file(connection: &Connection, lock: FileLock) -> Result<(), c_int> {
    let (file, methods) = file_of(connection, ffi::SQLITE_FCNTL_FILE_POINTER)?;
    let Some(take) = methods.xLock else {
        return Err(ffi::SQLITE_NOLFS);
    };
    // SAFETY: `file` is the open file of a live connection, and `take` its own method.
    let code = unsafe { take(file, lock as c_int) };
    if code == ffi::SQLITE_OK {
        Ok(())
    } else {
        Err(code)
    }
}

/// Whether some connection holds RESERVED or more, that is, a transaction is being written.
pub(super) fn is_reserved(connection: &Connection) -> Result<bool, c_int> {
    let (file, methods) = file_of(connection, ffi::SQLITE_FCNTL_FILE_POINTER)?;
    let Some(check) = methods.xCheckReservedLock else {
        return Err(ffi::SQLITE_NOLFS);
    };
    let mut reserved: c_int = 0;
    // SAFETY: `file` is the open file of a live connection, and `check` its own method.
    let code = unsafe { check(file, &raw mut reserved) };
    if code == ffi::SQLITE_OK {
        Ok(reserved != 0)
    } else {
        Err(code)
    }
}

/// The lock of the log that a checkpoint needs for itself: `WAL_READ_LOCK(0)` of the WAL format,
/// "WAL-Index Locks".
const READ_LOCK_ZERO: c_int = 3;
/// Bytes of the wal-index that are mapped at a time.
const WAL_INDEX_PART_BYTES: c_int = 32768;

/// Takes read lock 0 in the -shm file, if it exists: while held, no checkpoint copies pages.
///
/// For a connection that was opened with `readonly_shm=1`, holds a [`FileLock`] and runs no
/// statements. Release it with [`release_checkpoints`] before closing the connection.
pub(super) fn hold_checkpoints(connection: &Connection) -> bool {
    let Ok((file, methods)) = file_of(connection, ffi::SQLITE_FCNTL_FILE_POINTER) else {
        return false;
    };
    let (Some(map), Some(lock)) = (methods.xShmMap, methods.xShmLock) else {
        return false;
    };
    let mut memory: *mut c_void = ptr::null_mut();
    // SAFETY: `file` is the open file of a live connection and `map` its own method. The memory is
    // not accessed; without the right to extend it, the file stays as it is.
    let code = unsafe { map(file, 0, WAL_INDEX_PART_BYTES, 0, &raw mut memory) };
    let is_open = matches!(
        code,
        ffi::SQLITE_OK | ffi::SQLITE_READONLY | ffi::SQLITE_READONLY_CANTINIT
    );
    if !is_open {
        unmap(file, &methods);
        return false;
    }
    let flags = ffi::SQLITE_SHM_LOCK | ffi::SQLITE_SHM_SHARED;
    // SAFETY: as above; the shared memory was opened by the call before.
    let code = unsafe { lock(file, READ_LOCK_ZERO, 1, flags) };
    if code != ffi::SQLITE_OK {
        unmap(file, &methods);
    }
    code == ffi::SQLITE_OK
}

/// Releases the lock taken by [`hold_checkpoints`].
pub(super) fn release_checkpoints(connection: &Connection) {
    let Ok((file, methods)) = file_of(connection, ffi::SQLITE_FCNTL_FILE_POINTER) else {
        return;
    };
    if let Some(lock) = methods.xShmLock {
        let flags = ffi::SQLITE_SHM_UNLOCK | ffi::SQLITE_SHM_SHARED;
        // SAFETY: `file` is the open file of a live connection, and the lock is held.
        unsafe { lock(file, READ_LOCK_ZERO, 1, flags) };
    }
    unmap(file, &methods);
}

/// Closes the -shm file without removing it. Harmless if it was not opened.
fn unmap(file: *mut ffi::sqlite3_file, methods: &ffi::sqlite3_io_methods) {
    if let Some(unmap) = methods.xShmUnmap {
        // SAFETY: `file` is the open file of a live connection, and `unmap` its own method.
        unsafe { unmap(file, 0) };
    }
}

/// A file object of the connection and its methods; `which` is a file control that returns one.
fn file_of(
    connection: &Connection,
    which: c_int,
) -> Result<(*mut ffi::sqlite3_file, ffi::sqlite3_io_methods), c_int> {
    let mut file: *mut ffi::sqlite3_file = ptr::null_mut();
    let code = file_control(connection, which, (&raw mut file).cast());
    if code != ffi::SQLITE_OK {
        return Err(code);
    }
    // SAFETY: both controls give a file object of the connection, alive as long as it is.
    let methods = unsafe { file.as_ref() }.and_then(|file| {
        // SAFETY: an open file's methods are a static table; null for a file that is not open.
        unsafe { file.pMethods.as_ref() }
    });
    methods
        .map(|methods| (file, *methods))
        .ok_or(ffi::SQLITE_CANTOPEN)
}
