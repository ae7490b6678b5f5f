//! The functions of the SQLite that loads the extension, as far as an SQL function needs them.
#![expect(unsafe_code, reason = "calls SQLite's C functions")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr;

/// Positions in `sqlite3_api_routines`, counted in pointers. SQLite only appends to it.
const SLOT_RESULT_ERROR: usize = 80;
const SLOT_RESULT_TEXT: usize = 85;
const SLOT_VALUE_BYTES: usize = 103;
const SLOT_VALUE_TEXT: usize = 109;
const SLOT_CREATE_FUNCTION: usize = 162;
const SLOT_AUTO_EXTENSION: usize = 192;

const UTF8: c_int = 1;
/// Not from triggers, views or the schema: a database of somebody else cannot call it.
const DIRECTONLY: c_int = 0x8_0000;
/// Makes SQLite copy a result.
const TRANSIENT: isize = -1;

/// An SQL function.
pub(crate) type Function = unsafe extern "C" fn(*mut c_void, c_int, *mut *mut c_void);
/// The entry point of an extension.
pub(crate) type Entry = unsafe extern "C" fn(*mut c_void, *mut *mut c_char, *const c_void) -> c_int;

type ResultError = unsafe extern "C" fn(*mut c_void, *const c_char, c_int);
type ResultText = unsafe extern "C" fn(*mut c_void, *const c_char, c_int, isize);
type ValueBytes = unsafe extern "C" fn(*mut c_void) -> c_int;
type ValueText = unsafe extern "C" fn(*mut c_void) -> *const c_char;
type AutoExtension = unsafe extern "C" fn(Entry) -> c_int;
type CreateFunction = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    c_int,
    c_int,
    *mut c_void,
    Option<Function>,
    Option<Function>,
    Option<unsafe extern "C" fn(*mut c_void)>,
    Option<unsafe extern "C" fn(*mut c_void)>,
) -> c_int;

/// Functions of the SQLite library.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Functions {
    result_error: ResultError,
    result_text: ResultText,
    value_bytes: ValueBytes,
    value_text: ValueText,
    create_function: CreateFunction,
    auto_extension: AutoExtension,
}

impl Functions {
    /// # Safety
    /// `routines` is the `sqlite3_api_routines` pointer of a SQLite 3.8.7 or newer.
    pub(crate) unsafe fn of_extension(routines: *const c_void) -> Self {
        let slot = |number: usize| {
            let place = routines.cast::<*const c_void>().wrapping_add(number);
            // SAFETY: the caller promises a table that reaches this far.
            unsafe { place.read() }
        };
        let result_error = slot(SLOT_RESULT_ERROR);
        let result_text = slot(SLOT_RESULT_TEXT);
        let value_bytes = slot(SLOT_VALUE_BYTES);
        let value_text = slot(SLOT_VALUE_TEXT);
        let create_function = slot(SLOT_CREATE_FUNCTION);
        let auto_extension = slot(SLOT_AUTO_EXTENSION);
        Self {
            // SAFETY: this slot holds `void (*result_error)(sqlite3_context*,const char*,int)`.
            result_error: unsafe { transmute::<*const c_void, ResultError>(result_error) },
            // SAFETY: this slot holds `void (*result_text)(sqlite3_context*,const char*,int,void(*)(void*))`.
            result_text: unsafe { transmute::<*const c_void, ResultText>(result_text) },
            // SAFETY: this slot holds `int (*value_bytes)(sqlite3_value*)`.
            value_bytes: unsafe { transmute::<*const c_void, ValueBytes>(value_bytes) },
            // SAFETY: this slot holds `const unsigned char *(*value_text)(sqlite3_value*)`.
            value_text: unsafe { transmute::<*const c_void, ValueText>(value_text) },
            // SAFETY: this slot holds `create_function_v2`, of this type.
            create_function: unsafe { transmute::<*const c_void, CreateFunction>(create_function) },
            // SAFETY: this slot holds `int (*auto_extension)(void(*)(void))`, which is called as an entry point.
            auto_extension: unsafe { transmute::<*const c_void, AutoExtension>(auto_extension) },
        }
    }

    /// Adds functions to a connection: their names, their numbers of arguments, and what they do. Returns SQLite's code.
    ///
    /// # Safety
    /// `connection` is an open one, in a call of this thread.
    pub(crate) unsafe fn add(
        &self,
        connection: *mut c_void,
        functions: &[(&'static CStr, c_int, Function)],
    ) -> c_int {
        for (name, arguments, function) in functions {
            // SAFETY: as the caller promises; the name is a constant, and the function stays loaded.
            let code = unsafe {
                (self.create_function)(
                    connection,
                    name.as_ptr(),
                    *arguments,
                    UTF8 | DIRECTONLY,
                    ptr::null_mut(),
                    Some(*function),
                    None,
                    None,
                    None,
                )
            };
            if code != 0 {
                return code;
            }
        }
        0
    }

    /// Has `entry` called for every connection that is opened from now on.
    pub(crate) fn greet_all(&self, entry: Entry) {
        // SAFETY: the function stays loaded. A failure is one of memory; connections then lack the function, which
        // they say themselves.
        let _code = unsafe { (self.auto_extension)(entry) };
    }

    /// The text of a value; `None` for NULL, and for what is not UTF-8.
    ///
    /// # Safety
    /// `value` is an argument of the function that runs.
    pub(crate) unsafe fn text(&self, value: *mut c_void) -> Option<String> {
        // SAFETY: as the caller promises.
        let text = unsafe { (self.value_text)(value) };
        if text.is_null() {
            return None;
        }
        // SAFETY: after the call above, it is the length of that text.
        let length = usize::try_from(unsafe { (self.value_bytes)(value) }).ok()?;
        // SAFETY: SQLite keeps the text until the next call for this value.
        let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
        String::from_utf8(bytes.to_vec()).ok()
    }

    /// Ends the function with a text, or an error.
    ///
    /// # Safety
    /// `context` is that of the function that runs.
    pub(crate) unsafe fn answer(&self, context: *mut c_void, result: &Result<String, String>) {
        let (Ok(text) | Err(text)) = result;
        let length = c_int::try_from(text.len()).unwrap_or(c_int::MAX);
        let bytes = text.as_ptr().cast::<c_char>();
        match result {
            // SAFETY: as the caller promises; SQLite copies the text.
            Ok(_) => unsafe { (self.result_text)(context, bytes, length, TRANSIENT) },
            // SAFETY: the same.
            Err(_) => unsafe { (self.result_error)(context, bytes, length) },
        }
    }
}
