//! Descriptors of live database files, opened once and kept.
//!
//! POSIX locks belong to the process and the file, not to a descriptor: closing *any* descriptor of
//! a database file drops the locks of every `SQLite` connection that this process has on it,
//! including those of the embedding application. So the descriptors through which snapshots are
//! read are never closed while the file has a name: they stay here, keyed by device and inode, and
//! the next backup of the same file reuses them. A file without a name cannot be opened any more;
//! its entry is removed at the next opportunity.
//!
//! The cost is two descriptors per database ever backed up by this process. There are no locks on
//! the -wal file, so its descriptors are ordinary ones.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use windlass_io::{Access, DirectFile};

use super::file_error;
use crate::Error;

/// Identifies a file independently of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileId {
    pub(super) device: u64,
    pub(super) inode: u64,
}

impl FileId {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}

static OPEN: Mutex<BTreeMap<FileId, Arc<DirectFile>>> = Mutex::new(BTreeMap::new());

/// The cached descriptors of the file at `path`, opened now if there are none.
pub(super) fn open(path: &Path) -> Result<Arc<DirectFile>, Error> {
    let before = std::fs::metadata(path).map_err(|error| file_error("examine", path, error))?;
    let mut all = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    sweep(&mut all);
    if let Some(file) = all.get(&FileId::of(&before)) {
        return Ok(Arc::clone(file));
    }
    let file =
        DirectFile::open(path, Access::Read).map_err(|error| file_error("open", path, error))?;
    let opened = file.as_file().metadata();
    let opened = opened.map_err(|error| file_error("examine", path, error))?;
    // The file must not be closed, whatever it is.
    let file = Arc::new(file);
    all.insert(FileId::of(&opened), Arc::clone(&file));
    let after = std::fs::metadata(path).map_err(|error| file_error("examine", path, error))?;
    if FileId::of(&before) != FileId::of(&opened) || FileId::of(&after) != FileId::of(&opened) {
        return Err(Error::ChangedWhileReading {
            path: path.to_owned(),
        });
    }
    Ok(file)
}

/// Keeps the descriptors of a file that has just become a database: closing them would drop the locks of those
/// who have opened it since.
pub(super) fn keep(file: DirectFile) {
    let mut all = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Ok(metadata) = file.as_file().metadata() {
        all.insert(FileId::of(&metadata), Arc::new(file));
    }
}

/// How many descriptors of `file` are cached.
pub(super) fn count(file: FileId) -> usize {
    let all = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    all.get(&file)
        .map_or(0, |file| 1 + usize::from(file.is_direct()))
}

/// Closes descriptors of files that no longer have a name and that no snapshot reads.
pub(super) fn close_unlinked() {
    sweep(&mut OPEN.lock().unwrap_or_else(PoisonError::into_inner));
}

fn sweep(all: &mut BTreeMap<FileId, Arc<DirectFile>>) {
    all.retain(|_, file| {
        let linked = file
            .as_file()
            .metadata()
            .is_ok_and(|metadata| metadata.nlink() > 0);
        linked || Arc::strong_count(file) > 1
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_shared_while_the_file_has_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.db");
        std::fs::write(&path, [7; 4096]).unwrap();
        let first = open(&path).unwrap();
        let id = FileId::of(&first.as_file().metadata().unwrap());
        let pointer = Arc::as_ptr(&first);
        drop(first);
        assert!(count(id) >= 1, "kept although nobody uses it");
        let again = open(&path).unwrap();
        assert_eq!(Arc::as_ptr(&again), pointer);

        std::fs::remove_file(&path).unwrap();
        close_unlinked();
        assert!(count(id) >= 1, "still read by a snapshot");
        drop(again);
        close_unlinked();
        assert_eq!(count(id), 0);
    }
}
