//! An engine database as SQLite's main database file: C calls, each passed to [`Connection`].
//!
//! A panic ends the process instead of unwinding into C; the engine's log handles that like any
//! other crash.
#![expect(unsafe_code, reason = "implements SQLite's C interface for files")]

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use crate::abi::{self, File, IoMethods};
use crate::connection::Connection;
use crate::context::Context;
use crate::error::VfsError;
use crate::pragma::{self, Answer};
use crate::raw;

/// Bytes at the end of each page of a new database for the engine's checksum.
const CHECKSUM_BYTES: c_int = 8;

/// The file as SQLite sees it.
#[repr(C)]
pub(crate) struct DatabaseFile {
    base: File,
    open: *mut Open,
}

/// The data of one open file.
struct Open {
    connection: Connection,
    /// Where SQLite stores the `sqlite3` that uses the file; null until it has done so.
    user: *mut *mut c_void,
    /// Whether room for page checksums was requested.
    has_reserved: bool,
    context: &'static Context,
}

/// Creates an open file in SQLite's memory.
///
/// # Safety
/// `file` points to memory for a [`DatabaseFile`] that SQLite gives to `xOpen`.
pub(crate) unsafe fn open(file: *mut File, connection: Connection, context: &'static Context) {
    let open = Open {
        connection,
        user: std::ptr::null_mut(),
        has_reserved: false,
        context,
    };
    let opened = DatabaseFile {
        base: File {
            methods: &raw const METHODS,
        },
        open: Box::into_raw(Box::new(open)),
    };
    // SAFETY: the caller promises the memory; nothing in it needs to be dropped.
    unsafe { file.cast::<DatabaseFile>().write(opened) };
}

static METHODS: IoMethods = IoMethods {
    version: 1,
    close,
    read,
    write,
    truncate,
    sync,
    file_size,
    lock,
    unlock,
    check_reserved_lock,
    file_control,
    sector_size: raw::sector_size,
    device_characteristics: raw::device_characteristics,
};

/// The data of a file of [`METHODS`].
///
/// # Safety
/// `file` was opened by [`open`], is not closed, and is used by one thread at a time, as SQLite
/// guarantees.
unsafe fn opened<'a>(file: *mut File) -> &'a mut Open {
    // SAFETY: opened by `open`, so it is a `DatabaseFile`.
    let file = unsafe { &*file.cast::<DatabaseFile>() };
    // SAFETY: set by `open`, freed only by `close`; SQLite uses a file from one thread at a time.
    unsafe { &mut *file.open }
}

impl Open {
    /// SQLite's code if this process may not use the file, else that of what `act` does.
    fn guarded(
        &mut self,
        otherwise: c_int,
        act: impl FnOnce(&mut Connection) -> Result<(), VfsError>,
    ) -> c_int {
        let checked = self.context.databases.check_process();
        let result = checked.and_then(|()| act(&mut self.connection));
        self.code(result, otherwise)
    }

    /// SQLite's code for a result. Errors other than BUSY are also kept as text and logged.
    fn code(&mut self, result: Result<(), VfsError>, otherwise: c_int) -> c_int {
        let Err(error) = result else {
            return abi::OK;
        };
        let code = error.code(otherwise);
        if code & 0xff != abi::BUSY {
            self.connection.remember(&error);
            self.context.failed(code, &error);
        }
        code
    }
}

unsafe extern "C" fn close(file: *mut File) -> c_int {
    // SAFETY: opened by `open`, so it is a `DatabaseFile`.
    let file = unsafe { &*file.cast::<DatabaseFile>() };
    // SAFETY: made by `Box::into_raw` in `open`; SQLite closes a file once.
    let open = unsafe { Box::from_raw(file.open) };
    let Open {
        connection,
        context,
        ..
    } = *open;
    if context.databases.check_process().is_err() {
        // Nothing here is of this process: not the locks, and not what the last close does.
        let _kept = std::mem::ManuallyDrop::new(connection);
        return abi::OK;
    }
    let database = Arc::clone(connection.database());
    drop(connection);
    match context.databases.release(database) {
        Ok(()) => abi::OK,
        Err(error) => {
            let code = error.code(abi::IOERR);
            context.failed(code, &error);
            code
        }
    }
}

unsafe extern "C" fn read(
    file: *mut File,
    buffer: *mut c_void,
    length: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: SQLite calls with a file of ours.
    let open = unsafe { opened(file) };
    // SAFETY: SQLite gives `length` bytes of memory for the answer.
    let buffer = unsafe { raw::bytes_mut(buffer, length) };
    let read = open.context.databases.check_process_of_read();
    match read.and_then(|()| open.connection.read(buffer, offset.unsigned_abs())) {
        Ok(count) if count == buffer.len() => abi::OK,
        Ok(count) => {
            buffer[count..].fill(0);
            abi::IOERR_SHORT_READ
        }
        Err(error) => open.code(Err(error), abi::IOERR_READ),
    }
}

unsafe extern "C" fn write(
    file: *mut File,
    buffer: *const c_void,
    length: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: SQLite calls with a file of ours.
    let open = unsafe { opened(file) };
    // SAFETY: SQLite gives `length` bytes to write.
    let buffer = unsafe { raw::bytes(buffer, length) };
    open.guarded(abi::IOERR_WRITE, |connection| {
        connection.write(buffer, offset.unsigned_abs())
    })
}

unsafe extern "C" fn truncate(file: *mut File, size: i64) -> c_int {
    // SAFETY: SQLite calls with a file of ours.
    let open = unsafe { opened(file) };
    open.guarded(abi::IOERR_TRUNCATE, |connection| {
        connection.truncate(size.unsigned_abs())
    })
}

/// Does nothing: `FCNTL_SYNC`, which precedes it, has committed. With `synchronous=OFF`, SQLite
/// sends `FCNTL_SYNC` without calling this.
unsafe extern "C" fn sync(_file: *mut File, _flags: c_int) -> c_int {
    abi::OK
}

unsafe extern "C" fn file_size(file: *mut File, size: *mut i64) -> c_int {
    // SAFETY: SQLite calls with a file of ours.
    let open = unsafe { opened(file) };
    let bytes = i64::try_from(open.connection.size()).unwrap_or(i64::MAX);
    // SAFETY: SQLite gives a place for the answer.
    unsafe { size.write(bytes) };
    abi::OK
}

unsafe extern "C" fn lock(file: *mut File, level: c_int) -> c_int {
    // SAFETY: SQLite calls with a file of ours.
    let open = unsafe { opened(file) };
    let code = open.guarded(abi::IOERR, |connection| connection.lock(level));
    let is_new = code == abi::OK && !open.has_reserved && open.connection.size() == 0;
    if is_new && !open.user.is_null() {
        open.has_reserved = true;
        let (library, user) = (open.context.library, open.user);
        // SAFETY: SQLite keeps the place for as long as the file is open, and the connection in it is
        // the one on whose behalf it calls here.
        let connection = unsafe { user.read() };
        // SAFETY: that connection has `file` open; nothing borrows from `open` any more.
        unsafe { library.reserve(connection, file, CHECKSUM_BYTES) };
    }
    code
}

unsafe extern "C" fn unlock(file: *mut File, level: c_int) -> c_int {
    // SAFETY: SQLite calls with a file of ours.
    let open = unsafe { opened(file) };
    open.connection.unlock(level);
    abi::OK
}

/// SQLite calls this only to decide whether a journal is hot; engine databases have none.
unsafe extern "C" fn check_reserved_lock(_file: *mut File, answer: *mut c_int) -> c_int {
    // SAFETY: SQLite gives a place for the answer.
    unsafe { answer.write(0) };
    abi::OK
}

unsafe extern "C" fn file_control(
    file: *mut File,
    operation: c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: SQLite calls with a file of ours.
    let open = unsafe { opened(file) };
    match operation {
        abi::FCNTL_SYNC => open.guarded(abi::IOERR_WRITE, Connection::commit),
        abi::FCNTL_LOCKSTATE => {
            // SAFETY: the argument of this operation is an `int`.
            unsafe { argument.cast::<c_int>().write(open.connection.lock_level()) };
            abi::OK
        }
        abi::FCNTL_HAS_MOVED => {
            // SAFETY: the argument of this operation is an `int`.
            unsafe { argument.cast::<c_int>().write(0) };
            abi::OK
        }
        abi::FCNTL_VFSNAME => {
            let name = open
                .context
                .library
                .allocate_text(&open.context.name.to_string_lossy());
            // SAFETY: the argument of this operation is a `char*`, which SQLite frees.
            unsafe { argument.cast::<*mut c_char>().write(name) };
            abi::OK
        }
        abi::FCNTL_PDB => {
            open.user = argument.cast();
            abi::NOTFOUND
        }
        // SAFETY: the argument of this operation is an array of three `char*`.
        abi::FCNTL_PRAGMA => unsafe { pragma(open, argument.cast()) },
        _ => abi::NOTFOUND,
    }
}

/// # Safety
/// `arguments` are three `char*`: for the answer, the pragma's name, and its value or null.
unsafe fn pragma(open: &mut Open, arguments: *mut *mut c_char) -> c_int {
    // SAFETY: the second of three.
    let name = unsafe { arguments.wrapping_add(1).read() };
    // SAFETY: the third of three.
    let value = unsafe { arguments.wrapping_add(2).read() };
    // SAFETY: SQLite's strings end with zero.
    let Some(name) = (unsafe { raw::text(name) }) else {
        return abi::NOTFOUND;
    };
    // SAFETY: SQLite's strings end with zero, and the third may be null.
    let value = unsafe { raw::text(value) };
    match pragma::answer(&mut open.connection, name, value) {
        Answer::PassOn => abi::NOTFOUND,
        Answer::Refused(why) => {
            let why = open.context.library.allocate_text(&why);
            // SAFETY: the first of three; SQLite frees what is put there.
            unsafe { arguments.write(why) };
            abi::ERROR
        }
        Answer::Done(text) => {
            let text = open.context.library.allocate_text(&text);
            // SAFETY: the first of three; SQLite frees what is put there.
            unsafe { arguments.write(text) };
            abi::OK
        }
    }
}
