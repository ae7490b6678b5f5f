//! A rollback journal in memory, for the rare case that SQLite wants one as a file.
//!
//! SQLite normally keeps the journal of an engine database in memory by itself. Only `PRAGMA
//! journal_mode = DELETE` without a schema name, given while another database is the main one,
//! reaches an attached engine database without a call of the VFS; its next transaction then opens a
//! journal by name. Nobody else may read it, and it is not needed after a crash.
#![expect(unsafe_code, reason = "implements SQLite's C interface for files")]

use std::ffi::{c_int, c_void};

use crate::abi::{self, File, IoMethods};
use crate::raw;

/// The file as SQLite sees it.
#[repr(C)]
pub(crate) struct JournalFile {
    base: File,
    content: *mut Vec<u8>,
}

/// Creates an open, empty journal in SQLite's memory.
///
/// # Safety
/// `file` points to memory for a [`JournalFile`] that SQLite gives to `xOpen`.
pub(crate) unsafe fn open(file: *mut File) {
    let journal = JournalFile {
        base: File {
            methods: &raw const METHODS,
        },
        content: Box::into_raw(Box::default()),
    };
    // SAFETY: the caller promises the memory; nothing in it needs to be dropped.
    unsafe { file.cast::<JournalFile>().write(journal) };
}

static METHODS: IoMethods = IoMethods {
    version: 1,
    close,
    read,
    write,
    truncate,
    sync,
    file_size,
    lock: raw::accept_lock,
    unlock: raw::accept_lock,
    check_reserved_lock,
    file_control: raw::no_file_control,
    sector_size: raw::sector_size,
    device_characteristics: raw::device_characteristics,
};

/// The journal of a file of [`METHODS`].
///
/// # Safety
/// `file` was opened by [`open`], is not closed, and is used by one thread at a time, as SQLite
/// guarantees.
unsafe fn content<'a>(file: *mut File) -> &'a mut Vec<u8> {
    // SAFETY: opened by `open`, so it is a `JournalFile`.
    let journal = unsafe { &*file.cast::<JournalFile>() };
    // SAFETY: set by `open`, freed only by `close`; SQLite uses a file from one thread at a time.
    unsafe { &mut *journal.content }
}

unsafe extern "C" fn close(file: *mut File) -> c_int {
    // SAFETY: opened by `open`, so it is a `JournalFile`.
    let journal = unsafe { &*file.cast::<JournalFile>() };
    // SAFETY: made by `Box::into_raw` in `open`; SQLite closes a file once.
    drop(unsafe { Box::from_raw(journal.content) });
    abi::OK
}

unsafe extern "C" fn read(
    file: *mut File,
    buffer: *mut c_void,
    length: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: SQLite calls with a file of ours.
    let content = unsafe { content(file) };
    // SAFETY: SQLite gives `length` bytes of memory for the answer.
    let buffer = unsafe { raw::bytes_mut(buffer, length) };
    let start = usize::try_from(offset)
        .unwrap_or(usize::MAX)
        .min(content.len());
    let available = (content.len() - start).min(buffer.len());
    buffer[..available].copy_from_slice(&content[start..start + available]);
    if available < buffer.len() {
        buffer[available..].fill(0);
        return abi::IOERR_SHORT_READ;
    }
    abi::OK
}

unsafe extern "C" fn write(
    file: *mut File,
    buffer: *const c_void,
    length: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: SQLite calls with a file of ours.
    let content = unsafe { content(file) };
    // SAFETY: SQLite gives `length` bytes to write.
    let buffer = unsafe { raw::bytes(buffer, length) };
    let Ok(start) = usize::try_from(offset) else {
        return abi::IOERR_WRITE;
    };
    let end = start + buffer.len();
    if content.len() < end {
        if content.try_reserve(end - content.len()).is_err() {
            return abi::FULL;
        }
        content.resize(end, 0);
    }
    content[start..end].copy_from_slice(buffer);
    abi::OK
}

unsafe extern "C" fn truncate(file: *mut File, size: i64) -> c_int {
    // SAFETY: SQLite calls with a file of ours.
    let content = unsafe { content(file) };
    content.truncate(usize::try_from(size).unwrap_or(0));
    abi::OK
}

unsafe extern "C" fn sync(_file: *mut File, _flags: c_int) -> c_int {
    abi::OK
}

unsafe extern "C" fn file_size(file: *mut File, size: *mut i64) -> c_int {
    // SAFETY: SQLite calls with a file of ours.
    let content = unsafe { content(file) };
    // SAFETY: SQLite gives a place for the answer.
    unsafe { size.write(content.len() as i64) };
    abi::OK
}

unsafe extern "C" fn check_reserved_lock(_file: *mut File, answer: *mut c_int) -> c_int {
    // SAFETY: SQLite gives a place for the answer.
    unsafe { answer.write(0) };
    abi::OK
}
