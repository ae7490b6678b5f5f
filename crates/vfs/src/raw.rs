//! Conversions between C and Rust shared by all files of the VFS.
#![expect(unsafe_code, reason = "views memory that SQLite hands over")]

use std::ffi::{CStr, c_char, c_int, c_void};

use windlass_base::PAGE_BYTES;

use crate::abi::{self, File};

/// Memory that SQLite wants filled.
///
/// # Safety
/// `buffer` is valid for `length` bytes, and nothing else uses them, for `'a`.
pub(crate) unsafe fn bytes_mut<'a>(buffer: *mut c_void, length: c_int) -> &'a mut [u8] {
    let length = usize::try_from(length).unwrap_or(0);
    // SAFETY: as the caller promises. SQLite's buffers have been written before or are overwritten
    // here; bytes have no invalid values.
    unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) }
}

/// Memory that SQLite wants read.
///
/// # Safety
/// `buffer` is valid for `length` bytes, and nobody changes them, for `'a`.
pub(crate) unsafe fn bytes<'a>(buffer: *const c_void, length: c_int) -> &'a [u8] {
    let length = usize::try_from(length).unwrap_or(0);
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), length) }
}

/// Text passed by SQLite, if any and if it is UTF-8.
///
/// # Safety
/// `text` is null, or ends with a zero byte and does not change for `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().ok()
}

/// `xSectorSize`: a page, because SQLite takes the sector size, up to 8192, as the page size of a
/// new database.
pub(crate) unsafe extern "C" fn sector_size(_file: *mut File) -> c_int {
    PAGE_BYTES as c_int
}

/// `xDeviceCharacteristics`: nothing is torn or reordered, because nothing of an uncommitted
/// transaction reaches a disk.
pub(crate) unsafe extern "C" fn device_characteristics(_file: *mut File) -> c_int {
    abi::IOCAP_SAFE_APPEND | abi::IOCAP_SEQUENTIAL | abi::IOCAP_SUBPAGE_READ
}

/// `xLock` and `xUnlock` of a file that only one connection can see.
pub(crate) unsafe extern "C" fn accept_lock(_file: *mut File, _level: c_int) -> c_int {
    abi::OK
}

/// `xFileControl` of a file that supports none.
pub(crate) unsafe extern "C" fn no_file_control(
    _file: *mut File,
    _operation: c_int,
    _argument: *mut c_void,
) -> c_int {
    abi::NOTFOUND
}
