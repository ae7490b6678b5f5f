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
use windlass_engine::storage::{RealFileSystem, StorageFile};
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
    replaced: BTreeMap<FileId, Option<Predecessor>>,
}

impl FilesTarget {
    /// Creates the files of the registered database `made_for` next to their targets. It must not be open.
    ///
    /// # Errors
    /// Those of the engine, for example if the set cannot be used.
    pub fn begin(
        log: &Path,
        (description, set): (&[u8], Guid),
        file_ids: &[FileId],
        made_for: Guid,
    ) -> Result<Self, Error> {
        let description = describe(description)?;
        let files = Arc::new(RealFileSystem);
        let restore = FileRestore::begin(files, log, &description, set, file_ids, &staged)
            .map_err(engine_error)?;
        let replaced = predecessors(restore.targets())?;
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
        let file = |id| self.restore.file(id);
        take_places(&restored, &file, &self.replaced, self.made_for)?;
        Ok(restored)
    }
}

/// The files at the targets, by number.
pub(super) fn predecessors<'a>(
    targets: impl Iterator<Item = (FileId, &'a Path)>,
) -> Result<BTreeMap<FileId, Option<Predecessor>>, Error> {
    let of = |(file_id, path): (FileId, &Path)| match Predecessor::of(path) {
        Ok(found) => Ok((file_id, found)),
        Err(error) => Err(io_error("examine", path, error)),
    };
    targets.map(of).collect()
}

/// Moves complete files, which `file` holds, to their targets.
pub(super) fn take_places(
    restored: &[RestoredFile],
    file: &dyn Fn(FileId) -> Option<Arc<dyn StorageFile>>,
    replaced: &BTreeMap<FileId, Option<Predecessor>>,
    made_for: Guid,
) -> Result<(), Error> {
    for made in restored {
        ownership::mark(&made.staged, made_for)
            .map_err(|error| io_error("set the attributes of", &made.staged, error))?;
        let held = file(made.file_id).and_then(|held| held.direct());
        let replaced = replaced.get(&made.file_id);
        let replaced = replaced.and_then(Option::as_ref).map(Predecessor::number);
        let held = held.as_ref().map(|held| held.as_file());
        succession::take_place_again(held, &made.staged, &made.path, replaced)
            .map_err(|error| io_error("replace", &made.path, error))?;
    }
    Ok(())
}
