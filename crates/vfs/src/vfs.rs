//! The VFS itself: engine databases, and files passed to the default VFS.
//!
//! | SQLite opens | gets |
//! |---|---|
//! | a main database | an engine database ([`crate::file`]) |
//! | its rollback journal | memory ([`crate::journal`]) |
//! | its write-ahead log | an error; SQLite never opens it, because there is no shared memory |
//! | temporary files, and super-journals of transactions over several databases | a file of the default VFS |
//!
//! A file of the default VFS is opened in place: SQLite then calls the default VFS directly.
#![expect(unsafe_code, reason = "implements SQLite's C interface for a VFS")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex};

use windlass_base::{PAGE_BYTES, PageNumber};
use windlass_engine::Database;

use crate::abi::{self, File, Symbol, Vfs};
use crate::connection::Connection;
use crate::context::{Context, Databases, IfMissing, Parameters};
use crate::error::{Result, VfsError};
use crate::file::{self, DatabaseFile};
use crate::journal::{self, JournalFile};
use crate::library::Library;
use crate::raw;

/// Maximum length of the name of a database, and of its journal, including the terminating zero.
const PATH_BYTES_MAX: c_int = 1024;

/// Data files of a database.
const DATA_FILES_MAX: usize = 1000;

/// Registers a VFS under `name`. It stays for the rest of the process.
///
/// # Errors
/// If the library has no default VFS, `name` is invalid, or SQLite refuses.
pub fn register(name: &str, library: Library, databases: Box<dyn Databases>) -> Result<()> {
    let fail = |reason: &str| VfsError::Sqlite {
        action: "register the VFS",
        reason: reason.to_owned(),
    };
    let default_vfs = library.default_vfs();
    // SAFETY: SQLite's VFS structures stay for the rest of the process, or it is null.
    let Some(default) = (unsafe { default_vfs.as_ref() }) else {
        return Err(fail("SQLite has no default VFS"));
    };
    let own_bytes = size_of::<DatabaseFile>().max(size_of::<JournalFile>());
    let file_bytes = default.file_bytes.max(own_bytes as c_int);
    let context: &'static Context = Box::leak(Box::new(Context {
        name: CString::new(name).map_err(|_| fail("a zero in the name"))?,
        library,
        default_vfs,
        databases,
        snapshots: Mutex::default(),
    }));
    let vfs = Box::leak(Box::new(Vfs {
        version: 2,
        file_bytes,
        path_bytes_max: PATH_BYTES_MAX,
        next: ptr::null_mut(),
        name: context.name.as_ptr(),
        app_data: ptr::from_ref(context).cast_mut().cast(),
        open,
        delete,
        access,
        full_pathname,
        dl_open,
        dl_error,
        dl_sym,
        dl_close,
        randomness,
        sleep,
        current_time,
        last_error,
        current_time_int64,
    }));
    // SAFETY: complete, and leaked.
    unsafe { library.register(vfs) }.map_err(|code| fail(&format!("SQLite code {code}")))
}

/// # Safety
/// `vfs` is one that [`register`] made.
unsafe fn context(vfs: *mut Vfs) -> &'static Context {
    // SAFETY: as the caller promises; SQLite changes only `next`.
    let app_data = unsafe { (*vfs).app_data };
    // SAFETY: set by `register` to a leaked context, which nobody changes.
    unsafe { &*app_data.cast::<Context>() }
}

fn default_of(context: &Context) -> &Vfs {
    // SAFETY: found at registration; SQLite's VFS structures stay, and only their `next` changes,
    // which is not read here.
    unsafe { &*context.default_vfs }
}

unsafe extern "C" fn open(
    vfs: *mut Vfs,
    name: *const c_char,
    file: *mut File,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls with the VFS that was registered.
    let context = unsafe { context(vfs) };
    // SAFETY: SQLite gives memory for the file; without methods it is not open.
    unsafe { (*file).methods = ptr::null() };
    // SAFETY: null or a string that SQLite keeps for the life of the file.
    let text = unsafe { raw::text(name) };
    if flags & abi::OPEN_WAL != 0 {
        return abi::CANTOPEN;
    }
    if flags & abi::OPEN_MAIN_JOURNAL != 0 {
        // SAFETY: SQLite gives memory of `file_bytes`, enough for a journal.
        unsafe { journal::open(file) };
        return abi::OK;
    }
    match text {
        Some(text) if flags & abi::OPEN_MAIN_DB != 0 => {
            // SAFETY: the name is that of a main database.
            let parameters = unsafe { parameters(context, name) };
            let database =
                parameters.and_then(|parameters| open_database(context, text, flags, &parameters));
            match database {
                Ok(database) => {
                    let connection = Connection::new(context.snapshots_of(database));
                    // SAFETY: SQLite gives memory of `file_bytes`, enough for a database.
                    unsafe { file::open(file, connection, context) };
                    // With this flag SQLite keeps the rollback journal in memory.
                    // SAFETY: null or a place for the flags in force.
                    if let Some(out_flags) = unsafe { out_flags.as_mut() } {
                        *out_flags = flags | abi::OPEN_MEMORY;
                    }
                    abi::OK
                }
                Err(error) => {
                    let code = error.code(abi::CANTOPEN);
                    context.failed(code, &error);
                    code
                }
            }
        }
        // A super-journal must have a path: the journals of plain databases contain it, and whoever
        // opens them after a crash must find it. With databases under names there is none.
        Some(name) if !name.starts_with('/') => abi::CANTOPEN,
        _ => {
            let open = default_of(context).open;
            // SAFETY: the arguments are SQLite's own, and `file` is large enough for this VFS.
            unsafe { open(context.default_vfs, name, file, flags, out_flags) }
        }
    }
}

/// What the URI says.
///
/// # Safety
/// `name` is the one that SQLite passes for a main database.
unsafe fn parameters(context: &Context, name: *const c_char) -> Result<Parameters> {
    // SAFETY: as the caller promises.
    let parameter = |key: &str| unsafe { context.library.parameter(name, key) };
    let mut data = Vec::new();
    while let Some(file) = parameter(&format!("data{}", data.len() + 2)) {
        if data.len() + 2 > DATA_FILES_MAX {
            return Err(VfsError::Parameter {
                parameter: format!("data{}", data.len() + 2),
                reason: format!("a database has at most {DATA_FILES_MAX} data files"),
            });
        }
        data.push(file);
    }
    Ok(Parameters {
        pool: parameter("pool"),
        name: parameter("name"),
        data,
    })
}

fn open_database(
    context: &Context,
    name: &str,
    flags: c_int,
    parameters: &Parameters,
) -> Result<Arc<Database>> {
    let missing = match flags & abi::OPEN_CREATE {
        0 => IfMissing::Fail,
        _ => IfMissing::Create,
    };
    let database = context.databases.open(name, missing, parameters)?;
    match check_page_size(&database) {
        Ok(()) => Ok(database),
        Err(error) => {
            context.databases.release(database)?;
            Err(error)
        }
    }
}

/// Refuses a database whose page 1 declares another page size than the engine's.
fn check_page_size(database: &Arc<Database>) -> Result<()> {
    let snapshot = database.begin_read();
    if snapshot.page_count() == 0 {
        return Ok(());
    }
    let mut header = [0; 18];
    snapshot.read_part(PageNumber::FIRST, 0, &mut header)?;
    let found = match u32::from(header[16]) << 8 | u32::from(header[17]) {
        1 => 65536,
        size => size,
    };
    if found as usize == PAGE_BYTES {
        return Ok(());
    }
    Err(VfsError::PageSize {
        database: database.name().to_owned(),
        found,
    })
}

/// Whether `name` is that of a journal or log of a database; engine databases have none.
fn is_journal(name: &str) -> bool {
    name.ends_with("-journal") || name.ends_with("-wal")
}

unsafe extern "C" fn delete(vfs: *mut Vfs, name: *const c_char, sync_folder: c_int) -> c_int {
    // SAFETY: SQLite calls with the VFS that was registered.
    let context = unsafe { context(vfs) };
    // SAFETY: a string of SQLite.
    if unsafe { raw::text(name) }.is_some_and(is_journal) {
        return abi::OK;
    }
    let delete = default_of(context).delete;
    // SAFETY: the arguments are SQLite's own.
    unsafe { delete(context.default_vfs, name, sync_folder) }
}

unsafe extern "C" fn access(
    vfs: *mut Vfs,
    name: *const c_char,
    flags: c_int,
    answer: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls with the VFS that was registered.
    let context = unsafe { context(vfs) };
    // SAFETY: a string of SQLite.
    let found = match unsafe { raw::text(name) } {
        Some(name) if is_journal(name) => 0,
        Some(name) if context.databases.exists(name) => 1,
        _ => {
            let access = default_of(context).access;
            // SAFETY: the arguments are SQLite's own.
            return unsafe { access(context.default_vfs, name, flags, answer) };
        }
    };
    // SAFETY: SQLite gives a place for the answer.
    unsafe { answer.write(found) };
    abi::OK
}

unsafe extern "C" fn full_pathname(
    vfs: *mut Vfs,
    name: *const c_char,
    length: c_int,
    answer: *mut c_char,
) -> c_int {
    // SAFETY: SQLite calls with the VFS that was registered.
    let context = unsafe { context(vfs) };
    // SAFETY: a string of SQLite.
    let Some(name) = (unsafe { raw::text(name) }) else {
        return abi::CANTOPEN;
    };
    let full = match context.databases.full_name(name) {
        Ok(full) => full,
        Err(error) => {
            context.failed(abi::CANTOPEN, &error);
            return abi::CANTOPEN;
        }
    };
    // SAFETY: SQLite gives `length` bytes of memory for the answer.
    let answer = unsafe { raw::bytes_mut(answer.cast::<c_void>(), length) };
    if full.len() >= answer.len() {
        return abi::CANTOPEN;
    }
    answer[..full.len()].copy_from_slice(full.as_bytes());
    answer[full.len()] = 0;
    abi::OK
}

/// Functions unrelated to databases, passed to the default VFS.
macro_rules! pass_on {
    ($($function:ident($($argument:ident: $type:ty),*) $(-> $answer:ty)?;)*) => {$(
        unsafe extern "C" fn $function(vfs: *mut Vfs $(, $argument: $type)*) $(-> $answer)? {
            // SAFETY: SQLite calls with the VFS that was registered.
            let context = unsafe { context(vfs) };
            let function = default_of(context).$function;
            // SAFETY: the arguments are SQLite's own.
            unsafe { function(context.default_vfs $(, $argument)*) }
        }
    )*};
}

pass_on! {
    dl_open(name: *const c_char) -> *mut c_void;
    dl_error(length: c_int, message: *mut c_char);
    dl_sym(library: *mut c_void, name: *const c_char) -> Symbol;
    dl_close(library: *mut c_void);
    randomness(length: c_int, bytes: *mut c_char) -> c_int;
    sleep(microseconds: c_int) -> c_int;
    current_time(days: *mut f64) -> c_int;
    last_error(length: c_int, message: *mut c_char) -> c_int;
    current_time_int64(milliseconds: *mut i64) -> c_int;
}
