//! The loadable extension: `.load libwindlass`, then `file:/path/x.db?vfs=windlass`.
//!
//! | module | what |
//! |---|---|
//! | `function` | `windlass_sql(text)`: T-SQL in the program that has the databases open; `windlass_error()` |
//! | `beside` | the socket beside each open database, for `windlass backup` |
//! | `sqlite` | what is called of the SQLite that loads the extension |
//!
//! The engine uses the SQLite that loads it. The instance for `windlass_sql` and for the sockets has a SQLite of its
//! own inside the library, for its catalog alone: it opens no file of the program. All databases that a process opens
//! through the VFS share one engine. The library stays loaded for the rest of the process, because a VFS must stay
//! registered. For the same reason a process can load it into one SQLite only, although it may have several.
#![expect(unsafe_code, reason = "the entry point is called by SQLite, in C")]

mod beside;
mod function;
mod sqlite;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Arc, OnceLock};

use windlass_vfs::{Library, PathDatabases, Result, register};

use self::sqlite::Functions;

const OK_LOAD_PERMANENTLY: c_int = 256;
const OK: c_int = 0;
const ERROR: c_int = 1;

/// What every connection has.
const FUNCTIONS: [(&CStr, c_int, sqlite::Function); 3] = [
    (c"windlass_sql", 1, function::windlass_sql),
    (c"windlass_sql", 2, function::windlass_sql),
    (c"windlass_error", 0, function::windlass_error),
];

/// The only registration in this process.
static REGISTERED: OnceLock<Result<Registered>> = OnceLock::new();

/// What the functions of all connections share.
struct Registered {
    /// The address of the table of the SQLite that it is loaded into.
    routines: usize,
    databases: Arc<PathDatabases>,
    functions: Functions,
}

fn registered() -> Option<&'static Registered> {
    REGISTERED.get()?.as_ref().ok()
}

/// SQLite calls this when the library is loaded.
///
/// # Safety
/// The arguments are those that SQLite passes to an extension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_windlass_init(
    connection: *mut c_void,
    message: *mut *mut c_char,
    routines: *const c_void,
) -> c_int {
    // SAFETY: SQLite passes its table. One that keeps an extension loaded is 3.14 or newer, far past
    // the 3.7.16 that the table needs.
    let library = unsafe { Library::of_extension(routines) };
    // SAFETY: the same.
    let functions = unsafe { Functions::of_extension(routines) };
    let fails = |reason: &str| {
        let text = library.allocate_text(&format!("windlass: {reason}"));
        // SAFETY: null or a place for a message that SQLite frees.
        if let Some(message) = unsafe { message.as_mut() } {
            *message = text;
        }
        ERROR
    };
    match REGISTERED.get_or_init(|| add(library, functions, routines.addr())) {
        Ok(registered) if registered.routines != routines.addr() => {
            fails("this process has loaded it into another copy of SQLite, and one can have it")
        }
        Ok(registered) => {
            // SAFETY: the connection that loads the extension, in a call of this thread.
            let added = unsafe { registered.functions.add(connection, &FUNCTIONS) };
            if added != OK {
                return fails("the functions cannot be added to this connection");
            }
            OK_LOAD_PERMANENTLY
        }
        Err(error) => fails(&error.to_string()),
    }
}

/// SQLite calls this for every connection that is opened after the library was loaded.
///
/// # Safety
/// As for [`sqlite3_windlass_init`].
unsafe extern "C" fn greet(
    connection: *mut c_void,
    _message: *mut *mut c_char,
    _routines: *const c_void,
) -> c_int {
    match registered() {
        // SAFETY: a connection that is being opened, in a call of this thread.
        Some(registered) => unsafe { registered.functions.add(connection, &FUNCTIONS) },
        None => OK,
    }
}

fn add(library: Library, functions: Functions, routines: usize) -> Result<Registered> {
    let databases = PathDatabases::on_demand();
    beside::listen(&databases, library);
    register("windlass", library, Box::new(Arc::clone(&databases)))?;
    functions.greet_all(greet);
    Ok(Registered {
        routines,
        databases,
        functions,
    })
}
