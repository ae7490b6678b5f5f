//! A private copy of a database whose writers would wait, so that they wait at most for a plain copy.
//!
//! A clone shares the blocks of the database and takes no time; copy-on-write file systems support
//! it (XFS, Btrfs), within one file system. A copy needs free space for twice its size, because the
//! media may grow on the same file system. It is not synced, because it is useless after a crash.
//!
//! A temporary copy has no name, so it disappears however the program ends, and no other user can read
//! it. If it cannot be made, the backup continues without it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Advice, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use windlass_base::Guid;
use windlass_base::size::Bytes;
use windlass_io::{Access, AlignedBuffer, DirectFile, directory};

use super::mount::Mount;
use super::options::{CopyFolder, CopyPolicy, SnapshotOptions};
use crate::{Error, TemporaryCopy};

/// Bytes that the kernel copies at a time, between two checks for cancellation.
const STEP_BYTES: u64 = 64 << 20;
/// Bytes per read if the kernel cannot copy between the two file systems.
const BUFFER_BYTES: usize = 4 << 20;
/// Free space left for others.
const SPARE_BYTES: u64 = 64 << 20;

/// Makes a temporary copy of `source`, the locked database at `path`, if the options allow it.
/// Returns no file if none was made.
pub(super) fn make(
    path: &Path,
    source: &DirectFile,
    options: &SnapshotOptions,
) -> Result<(Option<DirectFile>, TemporaryCopy), Error> {
    let folders = match &options.temporary_copy {
        CopyPolicy::Off(because) => return Ok((None, TemporaryCopy::None((*because).to_owned()))),
        CopyPolicy::Into(folders) => folders,
    };
    let beside = directory::parent(path);
    let clones = folders.iter().map(|folder| folder.path.as_path());
    for folder in std::iter::once(beside.as_path()).chain(clones) {
        if let Some(file) = clone(source, folder) {
            return Ok((Some(opened_directly(file, folder)), TemporaryCopy::Clone));
        }
    }
    let mut because = "there is no folder for it".to_owned();
    for folder in folders {
        match copy_into(source, folder, options) {
            Ok(file) => {
                let file = DirectFile::of_file(file, &folder.path);
                return Ok((Some(file), TemporaryCopy::Copy(folder.path.clone())));
            }
            Err(_) if options.is_cancelled() => return Err(Error::Cancelled),
            Err(error) => because = format!("'{}': {error}", folder.path.display()),
        }
    }
    Ok((None, TemporaryCopy::None(because)))
}

/// The blocks of `source` in a file without a name, if the file system can share them.
fn clone(source: &DirectFile, folder: &Path) -> Option<File> {
    let file = nameless(folder).ok()?;
    rustix::fs::ioctl_ficlone(&file, source.as_file()).ok()?;
    Some(file)
}

/// A clone is on the disk and not in the page cache: it is read like the database.
fn opened_directly(file: File, folder: &Path) -> DirectFile {
    let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
    DirectFile::open(Path::new(&descriptor), Access::Read)
        .unwrap_or_else(|_| DirectFile::of_file(file, folder))
}

fn nameless(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(File::from(file)),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) => {
            let path = folder.join(format!(".windlass-copy-{}", Guid::random()));
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true).mode(0o600);
            let file = options.open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        }
        Err(error) => Err(error.into()),
    }
}

fn copy_into(
    source: &DirectFile,
    folder: &CopyFolder,
    options: &SnapshotOptions,
) -> io::Result<File> {
    let in_memory = Mount::of(&folder.path).is_some_and(|mount| mount.is_in_memory());
    if in_memory && !folder.is_given {
        return Err(io::Error::other("it is in memory"));
    }
    let metadata = source.as_file().metadata()?;
    let (size_bytes, taken_bytes) = (metadata.len(), metadata.blocks() * 512);
    let wanted_bytes = match folder.is_given {
        true => taken_bytes + SPARE_BYTES,
        false => 2 * taken_bytes + SPARE_BYTES,
    };
    if let Some(free_bytes) = directory::free_bytes(&folder.path)?
        && free_bytes < wanted_bytes
    {
        let (wanted, free) = (Bytes(wanted_bytes), Bytes(free_bytes));
        return Err(io::Error::other(format!(
            "it wants {wanted} and has {free} free"
        )));
    }
    let file = nameless(&folder.path)?;
    // Requests more read-ahead; a kernel that ignores this copies just as well.
    let _ignored = rustix::fs::fadvise(source.as_file(), 0, None, Advice::Sequential);
    copy(source, &file, size_bytes, options)?;
    // Everything after the last data is a hole.
    file.set_len(size_bytes)?;
    Ok(file)
}

/// Copies everything except holes.
fn copy(
    source: &DirectFile,
    target: &File,
    size_bytes: u64,
    options: &SnapshotOptions,
) -> io::Result<()> {
    let mut buffer = None;
    let mut at = 0;
    while at < size_bytes {
        let Some(data) = next_data(source.as_file(), at)? else {
            return Ok(());
        };
        let hole = rustix::fs::seek(source.as_file(), SeekFrom::Hole(data))?.min(size_bytes);
        at = data;
        while at < hole {
            if options.is_cancelled() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let bytes = (hole - at).min(STEP_BYTES);
            at += match buffer.as_mut() {
                Some(buffer) => through(buffer, source, target, at, bytes)?,
                None => match within_kernel(source.as_file(), target, at, bytes) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(copied) => copied as u64,
                    Err(Errno::XDEV | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => {
                        buffer = Some(AlignedBuffer::new(BUFFER_BYTES));
                        0
                    }
                    Err(error) => return Err(error.into()),
                },
            };
        }
    }
    Ok(())
}

/// Offset of the next data; `None` if only a hole follows.
fn next_data(file: &File, at: u64) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(data) => Ok(Some(data)),
        Err(Errno::NXIO) => Ok(None),
        // The file system does not know: treat everything as data.
        Err(Errno::INVAL) => Ok(Some(at)),
        Err(error) => Err(error.into()),
    }
}

fn within_kernel(
    source: impl AsFd,
    target: impl AsFd,
    at: u64,
    bytes: u64,
) -> Result<usize, Errno> {
    let (mut from, mut to) = (at, at);
    let bytes = usize::try_from(bytes).unwrap_or(BUFFER_BYTES);
    rustix::fs::copy_file_range(source, Some(&mut from), target, Some(&mut to), bytes)
}

/// Copies at most one buffer.
fn through(
    buffer: &mut AlignedBuffer,
    source: &DirectFile,
    target: &File,
    at: u64,
    bytes: u64,
) -> io::Result<u64> {
    let bytes = usize::try_from(bytes).map_or(BUFFER_BYTES, |bytes| bytes.min(BUFFER_BYTES));
    let piece = &mut buffer[..bytes];
    source.read_exact_at(piece, at)?;
    std::os::unix::fs::FileExt::write_all_at(target, piece, at)?;
    Ok(bytes as u64)
}
