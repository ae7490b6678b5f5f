//! Restores single data files of a page engine database from a backup set; the other files stay
//! unchanged.
//!
//! Each file is written next to its target, under the name that a whole restore would use, and
//! renamed when all are verified and synced. A crash between the renames leaves some files restored
//! and the others as they were; the restore is then repeated.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use windlass_base::{FileId, Guid};
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{FileRestore, RestoredFile};
use windlass_io::succession::{self, Predecessor};

use super::{LOG_FILE_ID, describe, engine_error, io_error, staged};
use crate::{Error, ownership};

/// A restore of files in progress; dropped before [`FilesTarget::finish`], it changes nothing.
#[derive(Debug)]
pub struct FilesTarget {
    restore: FileRestore,
    made_for: Guid,
    /// The damaged files, by number.
    replaced: BTreeMap<u16, Option<Predecessor>>,
}

impl FilesTarget {
    /// Creates the files of the registered database `made_for` next to their targets. It must not be open.
    ///
    /// # Errors
    /// Those of the engine, for example if the set cannot be used.
    pub fn begin(
        log: &Path,
        description: &[u8],
        set: Guid,
        file_ids: &[FileId],
        made_for: Guid,
    ) -> Result<Self, Error> {
        let description = describe(description)?;
        let files = Arc::new(RealFileSystem);
        let restore = FileRestore::begin(files, log, &description, set, file_ids, &staged)
            .map_err(engine_error)?;
        let mut replaced = BTreeMap::new();
        for (file_id, path) in restore.targets() {
            let found = Predecessor::of(path).map_err(|error| io_error("examine", path, error))?;
            replaced.insert(file_id.0, found);
        }
        Ok(Self {
            restore,
            made_for,
            replaced,
        })
    }

    /// Whether a file of the set is selected.
    pub fn wants(&self, file_id: u16) -> bool {
        self.restore.wants(FileId(file_id))
    }

    /// Writes bytes of a data file, or the next bytes of the log, which follows all data.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn take(&mut self, file_id: u16, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let taken = match file_id {
            LOG_FILE_ID => self.restore.apply_log(bytes),
            _ => self.restore.write(FileId(file_id), offset, bytes),
        };
        taken.map_err(engine_error)
    }

    /// Verifies the files and moves them to their targets.
    ///
    /// # Errors
    /// Those of the engine, before anything is replaced; those of the operating system.
    pub fn finish(mut self) -> Result<Vec<RestoredFile>, Error> {
        let restored = self.restore.settle().map_err(engine_error)?;
        for file in &restored {
            ownership::mark(&file.staged, self.made_for)
                .map_err(|error| io_error("set the attributes of", &file.staged, error))?;
            let held = self
                .restore
                .file(file.file_id)
                .and_then(|held| held.direct());
            let replaced = self.replaced.get(&file.file_id.0);
            let replaced = replaced.and_then(Option::as_ref).map(Predecessor::number);
            succession::take_place_again(
                held.as_ref().map(|held| held.as_file()),
                &file.staged,
                &file.path,
                replaced,
            )
            .map_err(|error| io_error("replace", &file.path, error))?;
        }
        Ok(restored)
    }
}
