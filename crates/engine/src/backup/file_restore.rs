//! Restores whole data files that are damaged or lost, from the full backup that is the base of the
//! database's differential map, while the database is closed.
//!
//! The argument is the same as in [`crate::database::page_restore`]: an extent that is not marked has not
//! changed since the end of that backup. The map is read from the log file, because a database with
//! a lost file cannot be opened: from the record of the last checkpoint and the commits after it,
//! as in recovery.
//!
//! Invariants:
//! - Nothing is restored unless no extent of the files is marked and the log has no records of
//!   their pages to replay; opening the database then replays only records of other files.
//! - The set contains every extent in use. For the files themselves see [`super::staged`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_base::{FileId, Guid};

use super::BackupDescription;
use super::follow::LogFollower;
use super::offline::{extents_in, read_log, refuse_changes};
use super::staged::{Opening, RestoredFile, StagedFiles};
use crate::differential::ExtentMap;
use crate::error::{EngineError, PageRefusal, Result};
use crate::storage::{FileSystem, OpenMode, StorageFile};

#[derive(Debug)]
pub struct FileRestore {
    files: StagedFiles,
    /// Extents read from the set.
    written: ExtentMap,
    follower: LogFollower,
}

impl FileRestore {
    /// Starts to restore the data files `file_ids` of the database whose log is at `log_path`, from
    /// the full backup `set` with the description `description`. `beside` returns the temporary
    /// path for a file.
    ///
    /// # Errors
    /// [`EngineError::InUse`], [`EngineError::NotTheBase`], [`EngineError::PagesChanged`] with the
    /// first page of each changed extent; errors of the operating system.
    pub fn begin(
        files: Arc<dyn FileSystem>,
        log_path: &Path,
        description: &BackupDescription,
        set: Guid,
        file_ids: &[FileId],
        beside: &dyn Fn(&Path) -> PathBuf,
    ) -> Result<Self> {
        let fail = |error| EngineError::io("open", log_path, error);
        let log = files.open(log_path, OpenMode::Existing).map_err(fail)?;
        log.lock_exclusive()
            .map_err(|error| EngineError::lock(log_path, error))?;
        let closed = read_log(&log, log_path)?;
        let header = &closed.header;
        let is_base = header.base.set == set && !set.is_nil() && header.guid == description.guid();
        if description.is_differential() || !is_base {
            return Err(EngineError::NotTheBase {
                database: header.name.clone(),
                set,
                base: header.base.set,
            });
        }
        let wanted = extents_in(&closed, file_ids)?;
        refuse_changes(&closed, &wanted)?;
        let how = (beside, &Opening::New);
        Ok(Self {
            files: StagedFiles::open(files, log, &closed, wanted, how)?,
            written: ExtentMap::default(),
            follower: LogFollower::new(description),
        })
    }

    /// Whether the data file is one of those being restored.
    pub fn wants(&self, file_id: FileId) -> bool {
        self.files.wants(file_id)
    }

    /// A file that is being restored, held while it is open.
    pub fn file(&self, file_id: FileId) -> Option<Arc<dyn StorageFile>> {
        self.files.file(file_id)
    }

    /// The paths that the files get in the end.
    pub fn targets(&self) -> impl Iterator<Item = (FileId, &Path)> {
        self.files.targets()
    }

    /// Writes a range of a data file.
    pub fn write(&mut self, file_id: FileId, offset: u64, bytes: &[u8]) -> Result<()> {
        for extent in self.files.write(file_id, offset, bytes)? {
            self.written.set(extent);
        }
        Ok(())
    }

    /// Takes the next bytes of the set's log and replays the records of the restored files. Call it
    /// after all file ranges have been written.
    pub fn apply_log(&mut self, bytes: &[u8]) -> Result<()> {
        let Self {
            files, follower, ..
        } = self;
        follower.feed(bytes, &mut |page, record| files.apply(page, record))
    }

    /// Verifies and syncs the files, once everything has been written. The caller can rename them
    /// then, before this value is dropped.
    ///
    /// # Errors
    /// The log is incomplete, the set lacks an extent, or it contains damaged pages.
    pub fn settle(&mut self) -> Result<Vec<RestoredFile>> {
        self.follower.check_end()?;
        let missing = (self.files.extents()).find(|&extent| !self.written.is_set(extent));
        if let Some(extent) = missing {
            return Err(self.files.refused(extent, 0, PageRefusal::NotInSet));
        }
        self.files.seal()
    }
}
