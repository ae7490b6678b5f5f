//! The loadable extension: `.load libwindlass`, then `file:/path/x.db?vfs=windlass`.
//!
//! It contains the page engine but no SQLite: it uses the one that loads it. All databases that a
//! process opens through it share one instance. The library stays loaded for the rest of the process,
//! because a VFS must stay registered.
#![expect(unsafe_code, reason = "the entry point is called by SQLite, in C")]

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, OnceLock};

use windlass_engine::storage::RealFileSystem;
use windlass_engine::{Instance, InstanceOptions};
use windlass_vfs::{Library, PathDatabases, Result, register};

const OK_LOAD_PERMANENTLY: c_int = 256;
const ERROR: c_int = 1;

/// The result of the only registration in this process.
static REGISTERED: OnceLock<Result<()>> = OnceLock::new();

/// SQLite calls this when the library is loaded.
///
/// # Safety
/// The arguments are those that SQLite passes to an extension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_windlass_init(
    _connection: *mut c_void,
    message: *mut *mut c_char,
    routines: *const c_void,
) -> c_int {
    // SAFETY: SQLite passes its table. One that keeps an extension loaded is 3.14 or newer, far past
    // the 3.7.16 that the table needs.
    let library = unsafe { Library::of_extension(routines) };
    match REGISTERED.get_or_init(|| add(library)) {
        Ok(()) => OK_LOAD_PERMANENTLY,
        Err(error) => {
            let text = library.allocate_text(&format!("windlass: {error}"));
            // SAFETY: null or a place for a message that SQLite frees.
            if let Some(message) = unsafe { message.as_mut() } {
                *message = text;
            }
            ERROR
        }
    }
}

fn add(library: Library) -> Result<()> {
    let instance = Instance::new(InstanceOptions::default(), Arc::new(RealFileSystem))?;
    let databases = PathDatabases::new(instance);
    register("windlass", library, Box::new(databases))
}
