//! The operating system's files, through `windlass-io`.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_io::{Access, DirectFile, directory, own};

use super::{FileSystem, OpenMode, StorageFile};

/// The bytes that SQLite locks as PENDING, RESERVED and SHARED.
const SQLITE_LOCKS: Range<u64> = 0x4000_0000..0x4000_0200;

/// The temporary path of a file.
pub fn unnamed(path: &Path) -> PathBuf {
    own::beside(path, own::UNNAMED_SUFFIX)
}

/// The file system of the operating system.
///
/// I/O with aligned memory (whole pages) bypasses the page cache; other I/O (log blocks) does not.
#[derive(Debug, Default, Clone, Copy)]
pub struct RealFileSystem;

impl FileSystem for RealFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn StorageFile>> {
        let file = match mode {
            OpenMode::Existing => DirectFile::open(path, Access::ReadWrite)?,
            OpenMode::CreateNew => DirectFile::open(path, Access::CreateNew)?,
            OpenMode::Claim => own::claim(path)?,
            OpenMode::Begin if own::is_there(path) => {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            // Removes what a killed process left.
            OpenMode::Begin => own::claim(&unnamed(path))?,
            OpenMode::Begun => own::reclaim(&unnamed(path))?,
        };
        Ok(Arc::new(RealFile(Arc::new(file))))
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn publish(&self, path: &Path, file: &dyn StorageFile) -> io::Result<()> {
        own::take_name(direct(file)?.as_file(), &unnamed(path), path)
    }

    fn discard(&self, path: &Path, file: &dyn StorageFile) -> io::Result<()> {
        let file = direct(file)?;
        own::remove_held(file.as_file(), &unnamed(path))?;
        own::remove_held(file.as_file(), path)
    }

    fn sync_folder_of(&self, path: &Path) -> io::Result<()> {
        directory::sync(&directory::parent(path))
    }
}

/// The same for files created under temporary names, which their maker holds while they are open: a file that
/// an earlier run left is opened only if no other user can have planted it ([`windlass_io::own`]).
#[derive(Debug, Default, Clone, Copy)]
pub struct OwnFiles;

impl FileSystem for OwnFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn StorageFile>> {
        match mode {
            OpenMode::Existing => Ok(stored(Arc::new(own::reclaim(path)?))),
            OpenMode::CreateNew => RealFileSystem.open(path, OpenMode::Claim),
            _ => RealFileSystem.open(path, mode),
        }
    }

    fn exists(&self, path: &Path) -> bool {
        own::is_there(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        own::remove_unheld(path)
    }

    fn sync_folder_of(&self, path: &Path) -> io::Result<()> {
        RealFileSystem.sync_folder_of(path)
    }
}

/// A file of the operating system that is open already.
pub fn stored(file: Arc<DirectFile>) -> Arc<dyn StorageFile> {
    Arc::new(RealFile(file))
}

fn direct(file: &dyn StorageFile) -> io::Result<Arc<DirectFile>> {
    file.direct()
        .ok_or_else(|| io::ErrorKind::Unsupported.into())
}

#[derive(Debug)]
struct RealFile(Arc<DirectFile>);

impl StorageFile for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(buffer, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }

    fn reserve(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.0.reserve(offset, bytes)
    }

    fn lock_exclusive(&self) -> io::Result<()> {
        self.0.lock_exclusive()
    }

    fn lock_database(&self) -> io::Result<()> {
        self.0.lock_range(SQLITE_LOCKS)
    }

    fn unlock(&self) -> io::Result<()> {
        self.0.unlock_exclusive()?;
        self.0.unlock_range(SQLITE_LOCKS)
    }

    fn direct(&self) -> Option<Arc<DirectFile>> {
        Some(Arc::clone(&self.0))
    }
}
