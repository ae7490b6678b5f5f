//! The engine's only access to files: a trait, implemented by the real file system and, for tests,
//! by a simulated one.
//!
//! Contract that recovery relies on: a write that returned is visible to later reads at once. It
//! survives a power failure only after a later `sync` of that file returned without error; writes
//! not yet synced may survive in part, in units of 512 bytes, in any order. After a failed `sync`
//! the state of earlier writes is unknown, and the engine does not retry.

mod real;

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub use real::{OwnFiles, RealFileSystem, stored, unnamed};
use windlass_io::DirectFile;

/// The unit in which disks write atomically, and to which log blocks are aligned. Bytes.
pub const SECTOR_BYTES: usize = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    Existing,
    CreateNew,
    /// Creates a file in the place of one that a killed process left, and holds it while it is open;
    /// `WouldBlock` if another process holds that.
    Claim,
    /// Creates a file under a temporary name, which [`FileSystem::publish`] renames; `WouldBlock` if another
    /// process is creating it.
    Begin,
    /// A file that a killed process created in this way and that is still under its temporary name;
    /// `WouldBlock` if the process is alive.
    Begun,
}

/// Opens, removes and looks up files.
pub trait FileSystem: Debug + Send + Sync {
    /// Opens a file for reading and writing.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn StorageFile>>;
    /// Whether a file of this name exists.
    fn exists(&self, path: &Path) -> bool;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Renames a file that was opened with [`OpenMode::Begin`] or [`OpenMode::Begun`], and is still open, from
    /// its temporary to its final name, and makes that durable. Does nothing on a file system without
    /// temporary names.
    ///
    /// # Errors
    /// `AlreadyExists` if another file has taken the name; `NotFound` if the temporary name is not that of
    /// this file any more.
    fn publish(&self, _path: &Path, _file: &dyn StorageFile) -> io::Result<()> {
        Ok(())
    }
    /// Removes a file that was created in this way and is still open, under either name. Others that have
    /// these names by now are left.
    fn discard(&self, path: &Path, _file: &dyn StorageFile) -> io::Result<()> {
        self.remove(path)
    }
    /// Makes the names in the folder of `path` durable.
    fn sync_folder_of(&self, path: &Path) -> io::Result<()>;
}

/// An open file with positioned blocking I/O, used from many threads.
pub trait StorageFile: Debug + Send + Sync {
    /// Reads up to `buffer.len()` bytes at `offset`; fewer only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `buffer` at `offset`, extending the file as needed.
    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()>;
    /// Makes earlier writes and the length durable.
    fn sync(&self) -> io::Result<()>;
    /// Current length, bytes.
    fn len(&self) -> io::Result<u64>;
    /// Truncates or extends (with zeros).
    fn set_len(&self, bytes: u64) -> io::Result<()>;
    /// Reserves space for a range without changing the length. `StorageFull` if there is not
    /// enough.
    fn reserve(&self, offset: u64, bytes: u64) -> io::Result<()>;
    /// Locks a log file for this open file alone; `WouldBlock` if another holder has it.
    fn lock_exclusive(&self) -> io::Result<()>;
    /// Locks a data file with SQLite's own locks, against every SQLite and other instances.
    /// `WouldBlock` if another process reads or writes the file.
    fn lock_database(&self) -> io::Result<()>;
    /// Releases both locks.
    fn unlock(&self) -> io::Result<()>;
    /// The file itself, for copies that keep many reads in flight; `None` if the storage has no
    /// such file.
    fn direct(&self) -> Option<Arc<DirectFile>> {
        None
    }
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}
