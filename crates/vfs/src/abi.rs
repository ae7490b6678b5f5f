//! SQLite's C interface of a VFS, as far as it is implemented here: `sqlite3_vfs`,
//! `sqlite3_io_methods`, `sqlite3_file` and their constants.
//!
//! Declared here instead of taken from a binding crate, because the loadable extension must not
//! contain a second SQLite. SQLite guarantees that these structures only grow at their ends, and
//! the version fields say how much of them exists.

use std::ffi::{c_char, c_int, c_void};

/// `sqlite3_file`: what SQLite allocates for an open file; ours are larger and start with this.
#[repr(C)]
pub(crate) struct File {
    /// Null while the file is not open.
    pub(crate) methods: *const IoMethods,
}

/// `sqlite3_io_methods`, version 1: no shared memory (so SQLite does not offer its WAL), no mapping.
#[repr(C)]
pub(crate) struct IoMethods {
    pub(crate) version: c_int,
    pub(crate) close: unsafe extern "C" fn(*mut File) -> c_int,
    pub(crate) read: unsafe extern "C" fn(*mut File, *mut c_void, c_int, i64) -> c_int,
    pub(crate) write: unsafe extern "C" fn(*mut File, *const c_void, c_int, i64) -> c_int,
    pub(crate) truncate: unsafe extern "C" fn(*mut File, i64) -> c_int,
    pub(crate) sync: unsafe extern "C" fn(*mut File, c_int) -> c_int,
    pub(crate) file_size: unsafe extern "C" fn(*mut File, *mut i64) -> c_int,
    pub(crate) lock: unsafe extern "C" fn(*mut File, c_int) -> c_int,
    pub(crate) unlock: unsafe extern "C" fn(*mut File, c_int) -> c_int,
    pub(crate) check_reserved_lock: unsafe extern "C" fn(*mut File, *mut c_int) -> c_int,
    pub(crate) file_control: unsafe extern "C" fn(*mut File, c_int, *mut c_void) -> c_int,
    pub(crate) sector_size: unsafe extern "C" fn(*mut File) -> c_int,
    pub(crate) device_characteristics: unsafe extern "C" fn(*mut File) -> c_int,
}

/// A function whose type only its caller knows.
pub(crate) type Symbol = Option<unsafe extern "C" fn()>;

/// `sqlite3_vfs`, up to version 2.
#[repr(C)]
pub(crate) struct Vfs {
    pub(crate) version: c_int,
    pub(crate) file_bytes: c_int,
    pub(crate) path_bytes_max: c_int,
    pub(crate) next: *mut Vfs,
    pub(crate) name: *const c_char,
    pub(crate) app_data: *mut c_void,
    pub(crate) open:
        unsafe extern "C" fn(*mut Vfs, *const c_char, *mut File, c_int, *mut c_int) -> c_int,
    pub(crate) delete: unsafe extern "C" fn(*mut Vfs, *const c_char, c_int) -> c_int,
    pub(crate) access: unsafe extern "C" fn(*mut Vfs, *const c_char, c_int, *mut c_int) -> c_int,
    pub(crate) full_pathname:
        unsafe extern "C" fn(*mut Vfs, *const c_char, c_int, *mut c_char) -> c_int,
    pub(crate) dl_open: unsafe extern "C" fn(*mut Vfs, *const c_char) -> *mut c_void,
    pub(crate) dl_error: unsafe extern "C" fn(*mut Vfs, c_int, *mut c_char),
    pub(crate) dl_sym: unsafe extern "C" fn(*mut Vfs, *mut c_void, *const c_char) -> Symbol,
    pub(crate) dl_close: unsafe extern "C" fn(*mut Vfs, *mut c_void),
    pub(crate) randomness: unsafe extern "C" fn(*mut Vfs, c_int, *mut c_char) -> c_int,
    pub(crate) sleep: unsafe extern "C" fn(*mut Vfs, c_int) -> c_int,
    pub(crate) current_time: unsafe extern "C" fn(*mut Vfs, *mut f64) -> c_int,
    pub(crate) last_error: unsafe extern "C" fn(*mut Vfs, c_int, *mut c_char) -> c_int,
    pub(crate) current_time_int64: unsafe extern "C" fn(*mut Vfs, *mut i64) -> c_int,
}

pub(crate) const OK: c_int = 0;
pub(crate) const ERROR: c_int = 1;
pub(crate) const BUSY: c_int = 5;
pub(crate) const READONLY: c_int = 8;
pub(crate) const IOERR: c_int = 10;
pub(crate) const NOTFOUND: c_int = 12;
pub(crate) const FULL: c_int = 13;
pub(crate) const CANTOPEN: c_int = 14;
pub(crate) const BUSY_SNAPSHOT: c_int = BUSY | (2 << 8);
pub(crate) const IOERR_READ: c_int = IOERR | (1 << 8);
pub(crate) const IOERR_SHORT_READ: c_int = IOERR | (2 << 8);
pub(crate) const IOERR_WRITE: c_int = IOERR | (3 << 8);
pub(crate) const IOERR_TRUNCATE: c_int = IOERR | (6 << 8);
pub(crate) const IOERR_DATA: c_int = IOERR | (32 << 8);
pub(crate) const IOERR_CORRUPTFS: c_int = IOERR | (33 << 8);

pub(crate) const OPEN_CREATE: c_int = 0x4;
pub(crate) const OPEN_MEMORY: c_int = 0x80;
pub(crate) const OPEN_MAIN_DB: c_int = 0x100;
pub(crate) const OPEN_MAIN_JOURNAL: c_int = 0x800;
pub(crate) const OPEN_WAL: c_int = 0x8_0000;

pub(crate) const LOCK_NONE: c_int = 0;
pub(crate) const LOCK_SHARED: c_int = 1;
pub(crate) const LOCK_RESERVED: c_int = 2;

pub(crate) const IOCAP_SAFE_APPEND: c_int = 0x200;
pub(crate) const IOCAP_SEQUENTIAL: c_int = 0x400;
pub(crate) const IOCAP_SUBPAGE_READ: c_int = 0x8000;

pub(crate) const FCNTL_LOCKSTATE: c_int = 1;
pub(crate) const FCNTL_FILE_POINTER: c_int = 7;
pub(crate) const FCNTL_VFSNAME: c_int = 12;
pub(crate) const FCNTL_PRAGMA: c_int = 14;
pub(crate) const FCNTL_HAS_MOVED: c_int = 20;
pub(crate) const FCNTL_SYNC: c_int = 21;
pub(crate) const WARNING: c_int = 28;
pub(crate) const FCNTL_PDB: c_int = 30;
pub(crate) const FCNTL_RESERVE_BYTES: c_int = 38;
