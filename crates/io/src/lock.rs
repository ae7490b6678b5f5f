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

/// Takes or releases a write lock on `range`; never waits.
pub(crate) fn set(file: &File, range: Range<u64>, locked: bool) -> io::Result<()> {
    let too_far = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let kind = if locked { libc::F_WRLCK } else { libc::F_UNLCK };
    let request = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: i64::try_from(range.start).map_err(too_far)?,
        l_len: i64::try_from(range.end - range.start).map_err(too_far)?,
        // The kernel requires zero for locks of descriptors.
        l_pid: 0,
    };
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
