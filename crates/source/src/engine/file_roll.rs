//! Data files of a closed database that are rolled forward with log backups: they wait next to the old ones, under the
//! names that a whole restore would use, with a state file beside the log.
//!
//! Invariants:
//! - The state file describes the temporary files as they are, or says how far a log may have been applied to them.
//! - It belongs to one recovery fork: after a restore of the whole database it is that of no database any more.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_base::{FileId, Guid, Lsn};
use windlass_engine::storage::{FileSystem, OwnFiles, RealFileSystem};
use windlass_engine::{
    BackupDescription, EngineError, FilePlaces, FileRoll, FileRollBegin, FileRollLog, FilesEnd,
    LogIdentity, RestoredFile,
};
use windlass_io::{directory, own};

use super::files::{predecessors, take_places};
use super::pending::remove_unheld;
use super::{LOG_FILE_ID, describe, engine_error, io_error, staged, with_suffix};
use crate::Error;

/// Maximum bytes of the state that are read: a bit for each page of the largest database, and its description.
const BYTES_MAX: u64 = 640 << 20;

fn path_of(log: &Path) -> PathBuf {
    let followed = directory::follow(log).unwrap_or_else(|_| log.to_owned());
    with_suffix(&followed, ".windlass-files")
}

fn at<R>(
    log: &Path,
    run: impl FnOnce(FilePlaces<'_>) -> Result<R, EngineError>,
) -> Result<R, Error> {
    let files: Arc<dyn FileSystem> = Arc::new(RealFileSystem);
    let places = FilePlaces {
        files: &files,
        own: &OwnFiles,
        log,
        beside: staged,
    };
    run(places).map_err(engine_error)
}

/// The files that wait for log backups of the database with this log.
///
/// # Errors
/// Those of the operating system; their state is damaged.
pub fn waiting_files(log: &Path) -> Result<Option<FileRoll>, Error> {
    let path = path_of(log);
    let bytes = match own::read(&path, BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("read", &path, error)),
    };
    let files = FileRoll::decode(&bytes).map_err(engine_error)?;
    let found = LogIdentity::of(&RealFileSystem, log).map_err(engine_error)?;
    Ok(Some(files)
        .filter(|files| found.is_some_and(|found| found.recovery_fork == files.recovery_fork())))
}

fn keep(log: &Path, files: &FileRoll) -> Result<(), Error> {
    let path = path_of(log);
    let bytes = files.encode().map_err(engine_error)?;
    own::replace(&path, &bytes).map_err(|error| io_error("write", &path, error))
}

/// The restore of the files has ended, or is given up: their temporary files are removed.
///
/// # Errors
/// Those of the operating system.
pub fn forget_waiting_files(log: &Path) -> Result<(), Error> {
    let path = path_of(log);
    if !own::is_there(&path) {
        return Ok(());
    }
    let waiting = waiting_files(log).ok().flatten();
    let found = LogIdentity::of(&RealFileSystem, log).ok().flatten();
    if let (Some(waiting), Some(found)) = (waiting, found) {
        let path = |id: FileId| found.data_paths.get(id.data_index()?);
        let left: Vec<PathBuf> = waiting
            .file_ids()
            .filter_map(path)
            .map(|path| staged(path))
            .collect();
        remove_unheld(&left)?;
    }
    own::remove(&path).map_err(|error| io_error("remove", &path, error))
}

/// The read of a full backup, from which the files begin.
#[derive(Debug)]
pub struct FilesBegin {
    begin: FileRollBegin,
    log: PathBuf,
}

impl FilesBegin {
    /// Creates the files next to their targets. The database must not be open.
    ///
    /// # Errors
    /// Those of the engine, for example if the set cannot be used.
    pub fn begin(log: &Path, description: &[u8], file_ids: &[FileId]) -> Result<Self, Error> {
        let description = describe(description)?;
        let begin = at(log, |places| {
            FileRollBegin::begin(places, &description, file_ids)
        })?;
        let log = log.to_owned();
        Ok(Self { begin, log })
    }

    /// Whether a file of the set is selected.
    pub fn wants(&self, file_id: u16) -> bool {
        self.begin.wants(FileId(file_id))
    }

    /// Writes bytes of a data file, or the next bytes of the log, which follows all data.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn take(&mut self, file_id: u16, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let taken = match file_id {
            LOG_FILE_ID => self.begin.apply_log(bytes),
            _ => self.begin.write(FileId(file_id), offset, bytes),
        };
        taken.map_err(engine_error)
    }

    /// Leaves the files waiting. Returns their state, and their names with their pages.
    ///
    /// # Errors
    /// Those of the engine and of the operating system; nothing is left then.
    pub fn finish(self) -> Result<(FileRoll, Vec<(String, u64)>), Error> {
        let pages = self.begin.pages();
        let files = self.begin.settle().map_err(engine_error)?;
        keep(&self.log, &files)?;
        Ok((files, pages))
    }
}

/// A log backup that is being applied to the files. All of it is looked at first.
#[derive(Debug)]
pub struct FilesLog {
    log: PathBuf,
    roll: FileRollLog,
    is_scanned: bool,
}

impl FilesLog {
    /// # Errors
    /// Those of the engine, above all that the log does not continue the files.
    pub fn begin(log: &Path, files: FileRoll, set: &BackupDescription) -> Result<Self, Error> {
        Ok(Self {
            roll: at(log, |places| files.begin_log(places, set))?,
            log: log.to_owned(),
            is_scanned: false,
        })
    }

    /// Looks at the next bytes of the log, or applies them.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let taken = match self.is_scanned {
            false => self.roll.scan(bytes),
            true => self.roll.apply(bytes),
        };
        taken.map_err(engine_error)
    }

    /// All of the log was looked at: it is passed once more, and applied.
    ///
    /// # Errors
    /// It does not continue the files; those of the operating system.
    pub fn scanned(&mut self) -> Result<(), Error> {
        keep(&self.log, &self.roll.scanned().map_err(engine_error)?)?;
        self.is_scanned = true;
        Ok(())
    }

    /// # Errors
    /// Not all of the log was applied; those of the operating system.
    pub fn finish(self) -> Result<FileRoll, Error> {
        let files = self.roll.settle().map_err(engine_error)?;
        keep(&self.log, &files)?;
        Ok(files)
    }
}

/// How a restore of files has ended.
#[derive(Debug)]
pub enum FilesRestored {
    /// The files have taken their places.
    Placed(Vec<RestoredFile>),
    /// Nothing was changed: log backups are needed up to here.
    LogNeeded(Lsn),
}

/// Rolls the files forward to the end of the log of the database, and moves them to their targets. A crash between the
/// renames leaves some of them as they were; the restore is then begun again.
///
/// # Errors
/// Those of the engine, before anything is replaced; those of the operating system.
pub fn end_waiting_files(
    log: &Path,
    files: FileRoll,
    made_for: Guid,
) -> Result<FilesRestored, Error> {
    match at(log, |places| files.finish(places))? {
        FilesEnd::LogNeeded(lsn) => Ok(FilesRestored::LogNeeded(lsn)),
        FilesEnd::Sealed(sealed) => {
            let restored = sealed.restored().to_vec();
            let targets = restored
                .iter()
                .map(|file| (file.file_id, file.path.as_path()));
            let replaced: BTreeMap<_, _> = predecessors(targets)?;
            take_places(&restored, &|id| sealed.file(id), &replaced, made_for)?;
            forget_waiting_files(log)?;
            Ok(FilesRestored::Placed(restored))
        }
    }
}
