//! What must stay as it is while a database is followed: its three files under their names, and, while nothing may be
//! copied into it, the content of the database file.
//!
//! `SQLite` holds its files open: if somebody removes them or puts others in their place, a connection goes on with
//! files that nobody else has. And a file that is overwritten while the log is empty, or all of it is copied, is a
//! database to every program that opens it then. Locks keep programs that use `SQLite` from both, and nobody else.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use windlass_io::DirectFile;

use super::super::descriptors::{self, FileId};
use super::super::mount::Mount;
use super::super::watched::Stamp;
use super::super::{beside, file_error, wal_path};
use crate::Error;

/// The database, its log, and the log's index, as they are open.
#[derive(Debug)]
pub(super) struct Names([(std::path::PathBuf, FileId); 3]);

impl Names {
    /// Of a database that this process has open in WAL mode.
    pub(super) fn of(path: &Path) -> Result<Self, Error> {
        let named = |path: std::path::PathBuf| {
            let id = match open_here(&path) {
                Some(id) => id,
                None => named(&path)?,
            };
            Ok::<_, Error>((path, id))
        };
        let shm = beside(path, "-shm");
        Ok(Self([
            named(path.to_owned())?,
            named(wal_path(path))?,
            named(shm)?,
        ]))
    }

    pub(super) fn inode(&self) -> u64 {
        let [(_, file), ..] = &self.0;
        file.inode
    }

    /// Whether a name leads to another file by now, or to none.
    pub(super) fn have_moved(&self) -> bool {
        !self
            .0
            .iter()
            .all(|(path, id)| named(path).is_ok_and(|found| found == *id))
    }
}

fn named(path: &Path) -> Result<FileId, Error> {
    let metadata = std::fs::metadata(path).map_err(|error| file_error("examine", path, error))?;
    Ok(FileId::of(&metadata))
}

/// The file of that name that this process has open; `None` if it does not, or if that is not known.
fn open_here(path: &Path) -> Option<FileId> {
    let open = std::fs::read_dir("/proc/self/fd").ok()?.flatten();
    let mut found =
        open.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|link| link == path));
    let metadata = std::fs::metadata(found.next()?.path()).ok()?;
    Some(FileId::of(&metadata))
}

/// Longer than the resolution of times of change.
const GRAIN: Duration = Duration::from_millis(60);

/// The content of the database file, into which nothing may be copied now.
#[derive(Debug)]
pub(super) struct Frozen {
    file: Arc<DirectFile>,
    stamp: Stamp,
    is_local: bool,
    since: Instant,
    /// Whether a change within the resolution of times is excluded.
    is_sure: bool,
}

impl Frozen {
    pub(super) fn of(path: &Path) -> Result<Self, Error> {
        let file = descriptors::open(path)?;
        let stamp = Stamp::of(&file).map_err(|error| file_error("examine", path, error))?;
        let is_old = stamp.modified_before(SystemTime::now(), GRAIN);
        Ok(Self {
            file,
            stamp,
            is_local: Mount::of(path).is_some_and(|mount| mount.is_local()),
            since: Instant::now(),
            is_sure: is_old,
        })
    }

    pub(super) fn file(&self) -> &DirectFile {
        &self.file
    }

    /// Whether the file has not been changed since.
    pub(super) fn is_unchanged(&self) -> bool {
        Stamp::of(&self.file).is_ok_and(|now| match self.is_local {
            true => now.has_content_of(&self.stamp),
            false => now.has_length_of(&self.stamp),
        })
    }

    /// Whether the content is to be looked at again, because a change soon after the last one may not have shown.
    pub(super) fn is_due(&self) -> bool {
        !self.is_sure && self.since.elapsed() > GRAIN
    }

    pub(super) fn is_looked_at(&mut self) {
        self.is_sure = self.since.elapsed() > GRAIN || self.is_sure;
    }
}
