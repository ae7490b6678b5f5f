//! The functions of a SQLite library that the VFS calls, whether linked or loading the extension.
#![expect(unsafe_code, reason = "calls SQLite's C functions")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;

use crate::abi::{self, File, Vfs};
use crate::raw;

/// A SQLite library that is loaded in this process.
#[derive(Debug, Clone, Copy)]
pub struct Library {
    pub(crate) vfs_find: unsafe extern "C" fn(*const c_char) -> *mut Vfs,
    pub(crate) vfs_register: unsafe extern "C" fn(*mut Vfs, c_int) -> c_int,
    pub(crate) malloc: unsafe extern "C" fn(c_int) -> *mut c_void,
    pub(crate) log: unsafe extern "C" fn(c_int, *const c_char, ...),
    pub(crate) file_control: FileControl,
    pub(crate) uri_parameter: UriParameter,
    /// Missing before SQLite 3.39.
    pub(crate) db_name: Option<DbName>,
}

/// `sqlite3_file_control`.
pub(crate) type FileControl =
    unsafe extern "C" fn(*mut c_void, *const c_char, c_int, *mut c_void) -> c_int;

/// `sqlite3_uri_parameter`.
pub(crate) type UriParameter = unsafe extern "C" fn(*const c_char, *const c_char) -> *const c_char;

/// `sqlite3_db_name`.
pub(crate) type DbName = unsafe extern "C" fn(*mut c_void, c_int) -> *const c_char;

/// Positions in `sqlite3_api_routines`, counted in pointers. SQLite only appends to it.
const SLOT_MALLOC: usize = 68;
const SLOT_VERSION: usize = 67;
const SLOT_FILE_CONTROL: usize = 127;
const SLOT_VFS_FIND: usize = 141;
const SLOT_VFS_REGISTER: usize = 142;
const SLOT_LOG: usize = 167;
const SLOT_URI_PARAMETER: usize = 189;
const SLOT_DB_NAME: usize = 264;

/// The first version whose table includes `db_name`.
const VERSION_WITH_DB_NAME: c_int = 3_039_000;

impl Library {
    /// The library that loads an extension, from the table that it passes to the entry point.
    ///
    /// # Safety
    /// `routines` is the `sqlite3_api_routines` pointer of a SQLite 3.7.16 or newer.
    pub unsafe fn of_extension(routines: *const c_void) -> Self {
        let slot = |number: usize| {
            let place = routines.cast::<*const c_void>().wrapping_add(number);
            // SAFETY: the caller promises a table that reaches this far.
            unsafe { place.read() }
        };
        let malloc = slot(SLOT_MALLOC);
        let vfs_find = slot(SLOT_VFS_FIND);
        let vfs_register = slot(SLOT_VFS_REGISTER);
        let log = slot(SLOT_LOG);
        let file_control = slot(SLOT_FILE_CONTROL);
        let uri_parameter = slot(SLOT_URI_PARAMETER);
        // SAFETY: this slot holds `int (*libversion_number)(void)`.
        let version = unsafe {
            std::mem::transmute::<*const c_void, unsafe extern "C" fn() -> c_int>(slot(
                SLOT_VERSION,
            ))
        };
        // SAFETY: it takes nothing and only answers.
        let has_db_name = unsafe { version() } >= VERSION_WITH_DB_NAME;
        let db_name = has_db_name.then(|| slot(SLOT_DB_NAME));
        Self {
            // SAFETY: this slot holds `const char *(*uri_parameter)(const char*,const char*)`.
            uri_parameter: unsafe {
                std::mem::transmute::<*const c_void, UriParameter>(uri_parameter)
            },
            // SAFETY: this slot holds `int (*file_control)(sqlite3*,const char*,int,void*)`.
            file_control: unsafe {
                std::mem::transmute::<*const c_void, FileControl>(file_control)
            },
            // SAFETY: this slot holds `const char *(*db_name)(sqlite3*,int)`.
            db_name: db_name
                .map(|place| unsafe { std::mem::transmute::<*const c_void, DbName>(place) }),
            // SAFETY: this slot holds `void *(*malloc)(int)`.
            malloc: unsafe {
                std::mem::transmute::<*const c_void, unsafe extern "C" fn(c_int) -> *mut c_void>(
                    malloc,
                )
            },
            // SAFETY: this slot holds `sqlite3_vfs *(*vfs_find)(const char*)`.
            vfs_find: unsafe {
                std::mem::transmute::<*const c_void, unsafe extern "C" fn(*const c_char) -> *mut Vfs>(
                    vfs_find,
                )
            },
            // SAFETY: this slot holds `int (*vfs_register)(sqlite3_vfs*,int)`.
            vfs_register: unsafe {
                std::mem::transmute::<*const c_void, unsafe extern "C" fn(*mut Vfs, c_int) -> c_int>(
                    vfs_register,
                )
            },
            // SAFETY: this slot holds `void (*log)(int,const char*,...)`.
            log: unsafe {
                std::mem::transmute::<*const c_void, unsafe extern "C" fn(c_int, *const c_char, ...)>(
                    log,
                )
            },
        }
    }

    /// A copy of `text` that SQLite will free; null if memory is short.
    pub fn allocate_text(&self, text: &str) -> *mut c_char {
        let bytes: Vec<u8> = text.bytes().filter(|byte| *byte != 0).collect();
        let length = bytes.len();
        let Ok(wanted) = c_int::try_from(length + 1) else {
            return ptr::null_mut();
        };
        // SAFETY: any length is fine.
        let memory = unsafe { (self.malloc)(wanted) }.cast::<u8>();
        if memory.is_null() {
            return ptr::null_mut();
        }
        // SAFETY: `memory` is new and has room for the text and its end.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), memory, length) };
        // SAFETY: the last of `length + 1` bytes.
        unsafe { memory.wrapping_add(length).write(0) };
        memory.cast()
    }

    /// A parameter of the URI by which a main database is opened; `None` if it is not given, or not UTF-8.
    ///
    /// # Safety
    /// `name` is the one that SQLite passes to `xOpen` for a main database.
    pub(crate) unsafe fn parameter(&self, name: *const c_char, key: &str) -> Option<String> {
        let key = CString::new(key).ok()?;
        // SAFETY: as the caller promises; the key ends with a zero.
        let value = unsafe { (self.uri_parameter)(name, key.as_ptr()) };
        // SAFETY: null or a text behind the name.
        unsafe { raw::text(value) }.map(str::to_owned)
    }

    /// Makes SQLite leave `bytes` unused at the end of each page of the database in `file`, if it
    /// has no page yet. No effect on a library without this feature.
    ///
    /// # Safety
    /// `connection` is the `sqlite3` that has `file` open and is in a call of this thread.
    pub(crate) unsafe fn reserve(&self, connection: *mut c_void, file: *mut File, bytes: c_int) {
        for number in 0.. {
            let name = match self.db_name {
                // SAFETY: as the caller promises; a number that is too high gives null.
                Some(db_name) => unsafe { db_name(connection, number) },
                None if number == 0 => c"main".as_ptr(),
                None => ptr::null(),
            };
            if name.is_null() {
                return;
            }
            let mut found: *mut File = ptr::null_mut();
            let place = (&raw mut found).cast();
            // SAFETY: the operation writes a pointer.
            let code =
                unsafe { (self.file_control)(connection, name, abi::FCNTL_FILE_POINTER, place) };
            if code == abi::OK && found == file {
                let mut bytes = bytes;
                let place = (&raw mut bytes).cast();
                // SAFETY: the operation reads and writes an `int`.
                unsafe { (self.file_control)(connection, name, abi::FCNTL_RESERVE_BYTES, place) };
                return;
            }
        }
    }

    /// Writes a warning to SQLite's error log.
    pub fn note(&self, message: &str) {
        self.log(abi::WARNING, message);
    }

    /// Writes to SQLite's error log, which programs may have redirected.
    pub(crate) fn log(&self, code: c_int, message: &str) {
        let Ok(message) = CString::new(message) else {
            return;
        };
        // SAFETY: the format takes one string, which outlives the call.
        unsafe { (self.log)(code, c"windlass: %s".as_ptr(), message.as_ptr()) };
    }

    /// The VFS that SQLite uses when none is named; null if there is none.
    pub(crate) fn default_vfs(&self) -> *mut Vfs {
        // SAFETY: null asks for the default.
        unsafe { (self.vfs_find)(ptr::null()) }
    }

    /// # Errors
    /// SQLite's code.
    ///
    /// # Safety
    /// `vfs` is complete and stays where it is for the rest of the process.
    pub(crate) unsafe fn register(&self, vfs: *mut Vfs) -> Result<(), c_int> {
        // SAFETY: as the caller promises.
        match unsafe { (self.vfs_register)(vfs, 0) } {
            abi::OK => Ok(()),
            code => Err(code),
        }
    }
}
