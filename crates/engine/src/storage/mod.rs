//! The engine's only door to files: a trait with the real file system and, for tests, a simulated one.
//!
//! Contract that recovery relies on: a write that returned is visible to later reads at once and
//! survives a power failure only after a later `sync` of that file returned without error; writes
//! not yet synced may survive in part, in units of 512 bytes, in any order. After a failed `sync`
//! nothing is known about earlier writes, and nobody asks again.

mod real;

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub use real::{OwnFiles, RealFileSystem};
use windlass_io::DirectFile;

/// The unit in which disks write atomically, and in which log blocks are aligned. Bytes.
pub const SECTOR_BYTES: usize = 512;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// The file must exist.
    Existing,
    /// The file must not exist.
    CreateNew,
}

/// Opens, removes and names files.
pub trait FileSystem: Debug + Send + Sync {
    /// Opens a file for reading and writing.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn StorageFile>>;
    /// Whether a file of this name exists.
    fn exists(&self, path: &Path) -> bool;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in the folder of `path` survive a power failure.
    fn sync_folder_of(&self, path: &Path) -> io::Result<()>;
}

/// An open file with positioned blocking I/O, used from many threads.
pub trait StorageFile: Debug + Send + Sync {
    /// Reads up to `buffer.len()` bytes at `offset`; fewer only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `buffer` at `offset`, extending the file where needed.
    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()>;
    /// Makes earlier writes and the length survive a power failure.
    fn sync(&self) -> io::Result<()>;
    /// Current length, bytes.
    fn len(&self) -> io::Result<u64>;
    /// Cuts or extends (with zeros).
    fn set_len(&self, bytes: u64) -> io::Result<()>;
    /// Sets space aside for a range without changing the length. `StorageFull` when there is none.
    fn reserve(&self, offset: u64, bytes: u64) -> io::Result<()>;
    /// Takes a log file for this open file alone; `WouldBlock` when another holds it.
    fn lock_exclusive(&self) -> io::Result<()>;
    /// Takes a data file in the way of SQLite's own locks: it keeps out every SQLite, and other
    /// instances. `WouldBlock` when somebody reads or writes the file.
    fn lock_database(&self) -> io::Result<()>;
    /// Gives back both locks.
    fn unlock(&self) -> io::Result<()>;
    /// The file itself, for copies that keep many reads in flight; none where there is no such thing.
    fn direct(&self) -> Option<Arc<DirectFile>> {
        None
    }
    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}
