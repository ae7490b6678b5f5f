//! Positioned file I/O that bypasses the page cache where the file system allows it.
//!
//! A [`DirectFile`] has two descriptors of one file: an ordinary one and, if `O_DIRECT` is
//! accepted, a direct one. A transfer whose memory, offset and length are multiples of
//! [`DIRECT_ALIGNMENT`] uses the direct one; any other (the tail of a file) uses the ordinary one.
//! The kernel keeps both views coherent. Data that had to go through the page cache are dropped
//! from it, so that a backup does not evict pages of the database's users.
//!
//! Closing a descriptor drops all POSIX locks that this process has on the file. Do not open a live
//! SQLite database here; `source` has a registry for that.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, FallocateFlags, OFlags};

use crate::{DIRECT_ALIGNMENT, FileIdentity, lock, own};

/// How a [`DirectFile`] is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read an existing file.
    Read,
    /// Read and write an existing file.
    ReadWrite,
    /// Read and write a file that must not exist yet. Mode 0600 until its owner changes it.
    CreateNew,
    /// Read and write a file that an earlier run of Windlass created; see [`own`].
    Own,
}

/// A file with positioned, blocking I/O from any number of threads, direct where possible.
#[derive(Debug)]
pub struct DirectFile {
    ordinary: File,
    direct: Option<File>,
    path: PathBuf,
}

impl DirectFile {
    /// Opens a regular file, with a direct descriptor if the file system supports one.
    ///
    /// # Errors
    /// Those of `open(2)` for the ordinary descriptor; `InvalidInput` for anything but a regular
    /// file, without waiting for the other end of a FIFO. A refused `O_DIRECT` is not an error.
    pub fn open(path: &Path, access: Access) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(access != Access::Read);
        let flags = match access {
            Access::Read | Access::ReadWrite => OFlags::empty(),
            Access::CreateNew | Access::Own => OFlags::NOFOLLOW,
        };
        let direct = options.clone();
        if access == Access::CreateNew {
            options.create_new(true).mode(0o600);
        }
        let (ordinary, metadata) = match access {
            Access::Own => own::open_checked(path, &mut options)?,
            _ => open_regular(path, &mut options, flags)?,
        };
        let direct = open_regular(path, &mut { direct }, flags | OFlags::DIRECT);
        let is_same = |other: &Metadata| FileIdentity::of(other) == FileIdentity::of(&metadata);
        let direct = direct.ok().filter(|(_, other)| is_same(other));
        Ok(Self {
            ordinary,
            direct: direct.map(|(file, _)| file),
            path: path.to_owned(),
        })
    }

    /// For a file that is already open. Transfers use the page cache, which has a newly written
    /// file.
    pub fn of_file(file: File, path: &Path) -> Self {
        Self {
            ordinary: file,
            direct: None,
            path: path.to_owned(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether aligned transfers bypass the page cache.
    pub fn is_direct(&self) -> bool {
        self.direct.is_some()
    }

    /// The direct descriptor, if there is one.
    pub(crate) fn direct_descriptor(&self) -> Option<RawFd> {
        self.direct.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// The ordinary descriptor, for metadata and locks.
    pub fn as_file(&self) -> &File {
        &self.ordinary
    }

    /// The ordinary descriptor alone; locks stay.
    pub fn into_file(self) -> File {
        self.ordinary
    }

    pub fn len(&self) -> io::Result<u64> {
        Ok(self.ordinary.metadata()?.len())
    }

    /// The number of the file in its file system.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn number(&self) -> io::Result<u64> {
        Ok(self.as_file().metadata()?.ino())
    }

    pub fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads up to `buffer.len()` bytes at `offset`; fewer only at the end of the file.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let rest = &mut buffer[done..];
            match self.read_once(rest, offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before that.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if self.read_at(buffer, offset)? < buffer.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    fn read_once(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if let Some(direct) = &self.direct {
            let whole = buffer.len() / DIRECT_ALIGNMENT * DIRECT_ALIGNMENT;
            if whole > 0 && is_aligned(&buffer[..whole], offset) {
                match direct.read_at(&mut buffer[..whole], offset) {
                    Err(error) if refused(&error) => {}
                    result => return result,
                }
            }
        }
        let count = self.ordinary.read_at(buffer, offset)?;
        self.drop_from_cache(offset, count);
        Ok(count)
    }

    /// Writes all of `buffer` at `offset`.
    pub fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            match self.write_once(&buffer[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write_once(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        if let Some(direct) = &self.direct {
            let whole = buffer.len() / DIRECT_ALIGNMENT * DIRECT_ALIGNMENT;
            if whole > 0 && is_aligned(&buffer[..whole], offset) {
                match direct.write_at(&buffer[..whole], offset) {
                    Err(error) if refused(&error) => {}
                    result => return result,
                }
            }
        }
        self.ordinary.write_at(buffer, offset)
    }

    /// Makes everything written so far survive a power failure.
    ///
    /// After an error the file must be considered lost: the kernel may have dropped the pages it
    /// failed to write, so a second call would report success wrongly.
    pub fn sync(&self) -> io::Result<()> {
        self.ordinary.sync_all()
    }

    /// As [`DirectFile::sync`], without the times: enough for a log at each commit.
    pub fn sync_data(&self) -> io::Result<()> {
        self.ordinary.sync_data()
    }

    /// Locks the file exclusively for this open descriptor until it is closed (`flock`).
    ///
    /// # Errors
    /// `WouldBlock` if another descriptor, here or in another process, holds a lock.
    pub fn lock_exclusive(&self) -> io::Result<()> {
        let operation = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        Ok(rustix::fs::flock(&self.ordinary, operation)?)
    }

    /// Releases the lock of [`DirectFile::lock_exclusive`] before the descriptor is closed.
    pub fn unlock_exclusive(&self) -> io::Result<()> {
        let operation = rustix::fs::FlockOperation::NonBlockingUnlock;
        Ok(rustix::fs::flock(&self.ordinary, operation)?)
    }

    /// Takes a write lock on a byte range for this open descriptor (`F_OFD_SETLK`). It excludes all
    /// others that lock the range, including this process; the bytes need not exist.
    ///
    /// # Errors
    /// `WouldBlock` if the range is locked elsewhere.
    pub fn lock_range(&self, range: Range<u64>) -> io::Result<()> {
        lock::set(&self.ordinary, range, true)
    }

    /// Releases the lock of [`DirectFile::lock_range`] before the descriptor is closed.
    pub fn unlock_range(&self, range: Range<u64>) -> io::Result<()> {
        lock::set(&self.ordinary, range, false)
    }

    /// Truncates or extends (with zeros) the file.
    pub fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.ordinary.set_len(bytes)
    }

    /// Reserves space from `offset` on without changing the length.
    ///
    /// # Errors
    /// `StorageFull` if there is no space. A file system that cannot reserve is not an error.
    pub fn reserve(&self, offset: u64, bytes: u64) -> io::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        match rustix::fs::fallocate(&self.ordinary, FallocateFlags::KEEP_SIZE, offset, bytes) {
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Tells the kernel that a range is no longer needed in the page cache.
    pub fn drop_from_cache(&self, offset: u64, bytes: usize) {
        let length = std::num::NonZeroU64::new(bytes as u64);
        // The kernel may ignore advice, so its errors are ignored too.
        let _ignored = rustix::fs::fadvise(&self.ordinary, offset, length, Advice::DontNeed);
    }
}

/// Opens a regular file for reading, through the page cache. Never blocks, whatever kind of file it
/// is.
///
/// # Errors
/// Those of the operating system; anything but a regular file.
pub fn open_readable(path: &Path) -> io::Result<File> {
    open_regular(path, OpenOptions::new().read(true), OFlags::empty()).map(|(file, _)| file)
}

/// Reads a small text: of a regular file, or of a device such as `/dev/null`. Refuses a FIFO, whose other end might
/// never be opened.
///
/// # Errors
/// Those of the operating system; more than `bytes_max`; a FIFO; no UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    read_text_if(path, bytes_max, |_| Ok(()))
}

/// [`read_text`] of a file whose metadata, taken of what is opened, pass a check.
pub(crate) fn read_text_if(
    path: &Path,
    bytes_max: u64,
    check: impl FnOnce(&Metadata) -> io::Result<()>,
) -> io::Result<String> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let metadata = file.metadata()?;
    if metadata.file_type().is_fifo() || metadata.file_type().is_socket() {
        return Err(own::not_regular(&metadata));
    }
    check(&metadata)?;
    let mut text = String::new();
    let read = file.take(bytes_max + 1).read_to_string(&mut text);
    read.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => io::Error::new(error.kind(), "it is not UTF-8"),
        _ => error,
    })?;
    match text.len() as u64 > bytes_max {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {bytes_max} bytes"),
        )),
        false => Ok(text),
    }
}

/// Reads a file whole. Waits for what another program writes to a FIFO, as long as `waits`.
///
/// # Errors
/// Those of the operating system; `Interrupted` if it did not wait any longer.
pub fn read_whole(path: &Path, waits: &dyn Fn() -> bool) -> io::Result<Vec<u8>> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let mut bytes = Vec::new();
    if !file.metadata()?.file_type().is_fifo() {
        file.read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    let tick = rustix::time::Timespec {
        tv_sec: 0,
        tv_nsec: 200_000_000,
    };
    while waits() {
        let mut polled = [rustix::event::PollFd::new(
            &file,
            rustix::event::PollFlags::IN,
        )];
        match rustix::event::poll(&mut polled, Some(&tick)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut some = [0; 64 << 10];
        match file.read(&mut some) {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes.extend_from_slice(&some[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::Interrupted.into())
}

/// Opens a regular file and refuses anything else. Never blocks, whatever kind of file it is.
pub(crate) fn open_regular(
    path: &Path,
    options: &mut OpenOptions,
    flags: OFlags,
) -> io::Result<(File, Metadata)> {
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = options
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(own::not_regular(&metadata));
    }
    // With O_NONBLOCK, `io_uring` would fail where it has to wait for the disk.
    let kept = rustix::fs::fcntl_getfl(&file)? - OFlags::NONBLOCK;
    rustix::fs::fcntl_setfl(&file, kept)?;
    Ok((file, metadata))
}

/// The kind of a file, in words.
pub(crate) fn kind_of(metadata: &Metadata) -> &'static str {
    let kind = metadata.file_type();
    if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a regular file"
    }
}

fn is_aligned(buffer: &[u8], offset: u64) -> bool {
    (buffer.as_ptr() as usize).is_multiple_of(DIRECT_ALIGNMENT)
        && buffer.len().is_multiple_of(DIRECT_ALIGNMENT)
        && offset.is_multiple_of(DIRECT_ALIGNMENT as u64)
}

/// Some file systems accept `O_DIRECT` when opening and then refuse the transfer.
fn refused(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AlignedBuffer;

    #[test]
    fn what_was_written_is_read_whatever_the_alignment() {
        let folder = tempfile::tempdir().unwrap();
        let file = DirectFile::open(&folder.path().join("f"), Access::CreateNew).unwrap();
        let mut page = AlignedBuffer::new(8192);
        page.fill(7);
        file.write_at(&page, 4096).unwrap();
        file.write_at(&page, 12288).unwrap();
        file.write_at(b"tail", 20480).unwrap();
        assert_eq!(file.len().unwrap(), 20484);

        let mut back = AlignedBuffer::new(32768);
        assert_eq!(
            file.read_at(&mut back, 0).unwrap(),
            20484,
            "short at the end of the file"
        );
        assert!(back[..4096].iter().all(|&byte| byte == 0));
        assert!(back[4096..20480].iter().all(|&byte| byte == 7));
        assert_eq!(&back[20480..20484], b"tail");
        let error = file.read_exact_at(&mut back, 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_locked_range_is_refused_to_another_descriptor_and_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let first = DirectFile::open(&path, Access::CreateNew).unwrap();
        let second = DirectFile::open(&path, Access::ReadWrite).unwrap();
        first.lock_range(100..200).unwrap();
        first.lock_range(100..200).unwrap();
        second.lock_range(200..300).unwrap();
        let refused = second.lock_range(150..160).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        first.unlock_range(100..200).unwrap();
        second.lock_range(150..160).unwrap();
        drop(second);
        first.lock_range(0..1000).unwrap();
    }

    #[test]
    fn an_existing_file_is_never_created_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        DirectFile::open(&path, Access::CreateNew).unwrap();
        let error = DirectFile::open(&path, Access::CreateNew).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn what_is_not_a_regular_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let owner = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, owner).unwrap();
        for access in [Access::Read, Access::ReadWrite, Access::Own] {
            let error = DirectFile::open(&fifo, access).unwrap_err();
            assert_eq!(error.to_string(), "it is a FIFO, not a regular file");
        }
        let error = DirectFile::open(folder.path(), Access::Read).unwrap_err();
        assert_eq!(error.to_string(), "it is a folder, not a regular file");
        let error = DirectFile::open(Path::new("/dev/null"), Access::ReadWrite).unwrap_err();
        assert_eq!(error.to_string(), "it is a device, not a regular file");
    }
}
