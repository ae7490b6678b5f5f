//! Byte-range locks that belong to an open descriptor, not to the process.
//!
//! They conflict with the POSIX locks of other programs (such as SQLite), but closing another
//! descriptor of the file does not drop them, and they also work within one process. `rustix` does
//! not offer them.
#![expect(unsafe_code, reason = "fcntl with a structure")]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// A lock of somebody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The process, unless the lock belongs to a descriptor.
    pub process_id: Option<u32>,
}

/// Somebody's lock that is in the way of a lock on `range`, for reading or for writing. Asks only: nothing is
/// locked, and nobody who locks meanwhile notices.
///
/// # Errors
/// Those of the operating system.
pub fn held(file: &File, range: Range<u64>, is_writing: bool) -> io::Result<Option<Held>> {
    let kind = if is_writing {
        libc::F_WRLCK
    } else {
        libc::F_RDLCK
    };
    let mut request = structure(range, kind)?;
    // SAFETY: the descriptor is open as long as `file` is borrowed, and this command reads and writes one
    // `flock`.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut request) };
    if answer == -1 {
        return Err(io::Error::last_os_error());
    }
    let is_free = i32::from(request.l_type) == libc::F_UNLCK;
    Ok((!is_free).then(|| Held {
        process_id: u32::try_from(request.l_pid).ok().filter(|id| *id > 0),
    }))
}

fn structure(range: Range<u64>, kind: libc::c_int) -> io::Result<libc::flock> {
    let too_far = |_| io::Error::from(io::ErrorKind::InvalidInput);
    Ok(libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: i64::try_from(range.start).map_err(too_far)?,
        l_len: i64::try_from(range.end - range.start).map_err(too_far)?,
        // The kernel requires zero for locks of descriptors.
        l_pid: 0,
    })
}

/// Takes or releases a write lock on `range`; never waits.
pub(crate) fn set(file: &File, range: Range<u64>, locked: bool) -> io::Result<()> {
    let kind = if locked { libc::F_WRLCK } else { libc::F_UNLCK };
    let request = structure(range, kind)?;
    // SAFETY: the descriptor is open as long as `file` is borrowed, and this command reads one `flock`.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const request) };
    if answer == -1 {
        let error = io::Error::last_os_error();
        // POSIX allows both errors for a locked range.
        return Err(match error.raw_os_error() {
            Some(libc::EACCES | libc::EAGAIN) => io::ErrorKind::WouldBlock.into(),
            _ => error,
        });
    }
    Ok(())
}
