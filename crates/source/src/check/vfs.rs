//! A VFS in which snapshots are read-only files.
//!
//! It is registered once per process. The file name of a snapshot is its number.
#![expect(unsafe_code, reason = "SQLite's C interface for file systems")]

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rusqlite::ffi;
use windlass_base::EXTENT_BYTES;

use crate::{Error, Snapshot};

const NAME: &CStr = c"windlass-snapshot";

/// Cached extents: neighbours of a page are often read next.
const EXTENTS_KEPT: usize = 256;

static OFFERED: Mutex<Option<HashMap<u64, Arc<Shown>>>> = Mutex::new(None);
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A cached extent and its number.
type Kept = (u64, Vec<u8>);

/// A snapshot, its cached extents, and why reading failed.
struct Shown {
    snapshot: Box<dyn Snapshot>,
    kept: Mutex<Vec<Option<Kept>>>,
    failure: Mutex<Option<Error>>,
}

/// A snapshot that SQLite can open until it is taken back.
pub(super) struct Offered {
    number: u64,
    shown: Option<Arc<Shown>>,
}

/// Makes a snapshot available as a file of the VFS.
///
/// # Errors
/// SQLite's code, if the VFS cannot be registered.
pub(super) fn offer(snapshot: Box<dyn Snapshot>) -> Result<Offered, c_int> {
    static REGISTERED: OnceLock<c_int> = OnceLock::new();
    match *REGISTERED.get_or_init(register) {
        ffi::SQLITE_OK => {}
        code => return Err(code),
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let shown = Arc::new(Shown {
        snapshot,
        kept: Mutex::new((0..EXTENTS_KEPT).map(|_| None).collect()),
        failure: Mutex::new(None),
    });
    let mut offered = lock(&OFFERED);
    offered
        .get_or_insert_default()
        .insert(number, Arc::clone(&shown));
    Ok(Offered {
        number,
        shown: Some(shown),
    })
}

impl Offered {
    pub(super) fn uri(&self) -> String {
        // Immutable: SQLite looks for no log next to it, because the snapshot includes the log.
        format!(
            "file:/{}?vfs={}&immutable=1",
            self.number, "windlass-snapshot"
        )
    }

    /// Why a read failed; returned once.
    pub(super) fn failure(&self) -> Option<Error> {
        self.shown
            .as_ref()
            .and_then(|shown| lock(&shown.failure).take())
    }

    /// The snapshot, once all connections to it are closed.
    pub(super) fn take_back(mut self) -> Option<Box<dyn Snapshot>> {
        self.withdraw();
        let shown = Arc::into_inner(self.shown.take()?)?;
        Some(shown.snapshot)
    }

    fn withdraw(&self) {
        if let Some(offered) = lock(&OFFERED).as_mut() {
            offered.remove(&self.number);
        }
    }
}

impl Drop for Offered {
    fn drop(&mut self) {
        self.withdraw();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shown {
    fn size_bytes(&self) -> u64 {
        self.snapshot
            .files()
            .first()
            .map_or(0, |file| file.size_bytes)
    }

    /// Fills as much of `buffer` as exists.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let (size, extent_bytes) = (self.size_bytes(), EXTENT_BYTES as u64);
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            if at >= size {
                break;
            }
            let start = at / extent_bytes * extent_bytes;
            let mut kept = lock(&self.kept);
            let slots = kept.len() as u64;
            let slot = &mut kept[(start / extent_bytes % slots) as usize];
            if slot.as_ref().is_none_or(|(known, _)| *known != start) {
                let mut bytes = slot.take().map_or_else(Vec::new, |(_, bytes)| bytes);
                bytes.resize((size - start).min(extent_bytes) as usize, 0);
                let file_id = self.snapshot.files().first().map_or(0, |file| file.id);
                self.snapshot.read(file_id, start, &mut bytes)?;
                *slot = Some((start, bytes));
            }
            let from = (at - start) as usize;
            let found = slot.as_ref().and_then(|(_, bytes)| bytes.get(from..));
            let found = found.unwrap_or_default();
            let rest = &mut buffer[done..];
            let count = rest.len().min(found.len());
            rest[..count].copy_from_slice(&found[..count]);
            done += count;
        }
        Ok(done)
    }
}

/// An open file. SQLite allocates it and knows only its first field.
#[repr(C)]
struct File {
    base: ffi::sqlite3_file,
    /// From `Arc::into_raw`; released by `close`.
    shown: *const Shown,
}

fn register() -> c_int {
    // SAFETY: starting SQLite more than once is harmless.
    unsafe { ffi::sqlite3_initialize() };
    // SAFETY: null requests the default VFS, which is never removed.
    let default = unsafe { ffi::sqlite3_vfs_find(std::ptr::null()) };
    // SAFETY: null or the default VFS, which is never changed.
    let Some(default) = (unsafe { default.as_ref() }) else {
        return ffi::SQLITE_ERROR;
    };
    // Sleep, time and randomness come from the default VFS, whose functions ignore their VFS
    // argument.
    let vfs = Box::leak(Box::new(ffi::sqlite3_vfs {
        iVersion: 1,
        szOsFile: size_of::<File>() as c_int,
        pNext: std::ptr::null_mut(),
        zName: NAME.as_ptr(),
        xOpen: Some(open),
        xDelete: Some(delete),
        xAccess: Some(access),
        xFullPathname: Some(full_path),
        ..*default
    }));
    // SAFETY: the structure and its name live as long as the process.
    unsafe { ffi::sqlite3_vfs_register(vfs, 0) }
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(succeed),
    xFileSize: Some(file_size),
    xLock: Some(succeed),
    xUnlock: Some(succeed),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(zero),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let file = file.cast::<File>();
    // SAFETY: SQLite provides `szOsFile` bytes for the file. Without methods it is never closed.
    unsafe { (*file).base.pMethods = std::ptr::null() };
    if name.is_null() || flags & ffi::SQLITE_OPEN_MAIN_DB == 0 {
        return ffi::SQLITE_CANTOPEN;
    }
    // SAFETY: a name that is not null is NUL-terminated.
    let name = unsafe { CStr::from_ptr(name) };
    let number = name
        .to_str()
        .ok()
        .and_then(|name| name.strip_prefix('/')?.parse().ok());
    let shown = number.and_then(|number: u64| lock(&OFFERED).as_ref()?.get(&number).cloned());
    let Some(shown) = shown else {
        return ffi::SQLITE_CANTOPEN;
    };
    // SAFETY: as above.
    unsafe { (*file).shown = Arc::into_raw(shown) };
    // SAFETY: as above; the methods are static.
    unsafe { (*file).base.pMethods = &raw const METHODS };
    if !out_flags.is_null() {
        // SAFETY: not null, so a place for the flags.
        unsafe { *out_flags = ffi::SQLITE_OPEN_READONLY | ffi::SQLITE_OPEN_MAIN_DB };
    }
    ffi::SQLITE_OK
}

/// The snapshot of an open file.
///
/// # Safety
/// `file` was opened successfully by [`open`] and is not closed while the reference is used.
unsafe fn shown<'a>(file: *mut ffi::sqlite3_file) -> &'a Shown {
    // SAFETY: the caller's promise: the file was opened by this VFS.
    let shown = unsafe { (*file.cast::<File>()).shown };
    // SAFETY: the pointer came from an `Arc` that the file owns.
    unsafe { &*shown }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite closes what it has opened, once.
    let shown = unsafe { (*file.cast::<File>()).shown };
    // SAFETY: from `Arc::into_raw` in `open`.
    drop(unsafe { Arc::from_raw(shown) });
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    buffer: *mut c_void,
    bytes: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite reads open files only.
    let shown = unsafe { shown(file) };
    let (Ok(bytes), Ok(offset)) = (usize::try_from(bytes), u64::try_from(offset)) else {
        return ffi::SQLITE_IOERR_READ;
    };
    // SAFETY: SQLite provides its own buffer of `bytes` bytes, which may be uninitialised.
    unsafe { std::ptr::write_bytes(buffer.cast::<u8>(), 0, bytes) };
    // SAFETY: as above, and set now.
    let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), bytes) };
    match shown.read(offset, buffer) {
        Ok(done) if done == bytes => ffi::SQLITE_OK,
        Ok(_) => ffi::SQLITE_IOERR_SHORT_READ,
        Err(error) => {
            lock(&shown.failure).get_or_insert(error);
            ffi::SQLITE_IOERR_READ
        }
    }
}

unsafe extern "C" fn file_size(
    file: *mut ffi::sqlite3_file,
    size: *mut ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite calls this only for open files.
    let bytes = unsafe { shown(file) }.size_bytes();
    // SAFETY: SQLite provides a place for the size.
    unsafe { *size = i64::try_from(bytes).unwrap_or(i64::MAX) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn write(
    _: *mut ffi::sqlite3_file,
    _: *const c_void,
    _: c_int,
    _: ffi::sqlite3_int64,
) -> c_int {
    ffi::SQLITE_READONLY
}

unsafe extern "C" fn truncate(_: *mut ffi::sqlite3_file, _: ffi::sqlite3_int64) -> c_int {
    ffi::SQLITE_READONLY
}

/// Locks and syncs of an immutable file.
unsafe extern "C" fn succeed(_: *mut ffi::sqlite3_file, _: c_int) -> c_int {
    ffi::SQLITE_OK
}

unsafe extern "C" fn check_reserved_lock(_: *mut ffi::sqlite3_file, held: *mut c_int) -> c_int {
    // SAFETY: SQLite provides a place for the answer.
    unsafe { *held = 0 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_control(_: *mut ffi::sqlite3_file, _: c_int, _: *mut c_void) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn zero(_: *mut ffi::sqlite3_file) -> c_int {
    0
}

unsafe extern "C" fn characteristics(_: *mut ffi::sqlite3_file) -> c_int {
    ffi::SQLITE_IOCAP_IMMUTABLE
}

unsafe extern "C" fn delete(_: *mut ffi::sqlite3_vfs, _: *const c_char, _: c_int) -> c_int {
    ffi::SQLITE_READONLY
}

/// No other files exist next to a snapshot.
unsafe extern "C" fn access(
    _: *mut ffi::sqlite3_vfs,
    _: *const c_char,
    _: c_int,
    answer: *mut c_int,
) -> c_int {
    // SAFETY: SQLite provides a place for the answer.
    unsafe { *answer = 0 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn full_path(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    bytes: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: SQLite provides a NUL-terminated name.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes_with_nul();
    if usize::try_from(bytes).is_ok_and(|bytes| name.len() <= bytes) {
        // SAFETY: `out` has `bytes` bytes, which are enough, and is SQLite's own buffer.
        unsafe { std::ptr::copy_nonoverlapping(name.as_ptr().cast(), out, name.len()) };
        return ffi::SQLITE_OK;
    }
    ffi::SQLITE_CANTOPEN
}
