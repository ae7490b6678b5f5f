//! The SQLite that is linked into this program.
#![expect(unsafe_code, reason = "hands SQLite's C functions over as pointers")]

use std::ffi::{c_char, c_int, c_void};

use rusqlite::ffi;

use crate::abi::Vfs;
use crate::context::Databases;
use crate::error::Result;
use crate::library::Library;

/// The binding's `sqlite3_vfs` is the same structure as ours, under another name.
unsafe extern "C" fn vfs_find(name: *const c_char) -> *mut Vfs {
    // SAFETY: the caller's argument, unchanged.
    unsafe { ffi::sqlite3_vfs_find(name) }.cast()
}

unsafe extern "C" fn vfs_register(vfs: *mut Vfs, make_default: c_int) -> c_int {
    // SAFETY: the caller's arguments, unchanged.
    unsafe { ffi::sqlite3_vfs_register(vfs.cast(), make_default) }
}

unsafe extern "C" fn file_control(
    connection: *mut c_void,
    name: *const c_char,
    operation: c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the caller's arguments, unchanged.
    unsafe { ffi::sqlite3_file_control(connection.cast(), name, operation, argument) }
}

unsafe extern "C" fn db_name(connection: *mut c_void, number: c_int) -> *const c_char {
    // SAFETY: the caller's arguments, unchanged.
    unsafe { ffi::sqlite3_db_name(connection.cast(), number) }
}

/// Registers a VFS under `name` with the SQLite of this program, for the rest of the process.
///
/// # Errors
/// Those of [`crate::register`].
pub fn register(name: &str, databases: Box<dyn Databases>) -> Result<()> {
    // SAFETY: initializing SQLite more than once is harmless. A build without automatic
    // initialization has no default VFS before.
    unsafe { ffi::sqlite3_initialize() };
    let library = Library {
        vfs_find,
        vfs_register,
        malloc: ffi::sqlite3_malloc,
        log: ffi::sqlite3_log,
        file_control,
        uri_parameter: ffi::sqlite3_uri_parameter,
        db_name: Some(db_name),
    };
    crate::register(name, library, databases)
}
