//! Creates the files of a database, or adopts a plain SQLite file.
//!
//! New files are complete before they are renamed to their final names, the log last: without a log
//! nothing opens the others. A crash before that leaves only temporary files, which the next attempt
//! removes. After a crash between the renames, opening the database completes them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_base::{ExtentNumber, Guid};

use super::checkpoint::milliseconds;
use super::content::{self, NewContent};
use super::{Database, foreign};
use crate::error::{EngineError, Result};
use crate::files::{DataFile, DataFiles};
use crate::instance::Shared;
use crate::log::Position;
use crate::log::header::{DifferentialBase, Fingerprint, Header, LOG_AREA};
use crate::log::vlf::{VLF_BYTES_MIN, divide};
use crate::log::writer::{Resume, zero};
use crate::options::{CreateDatabase, FileSpec, RecoveryModel};
use crate::pool::DatabaseNumber;
use crate::storage::{FileSystem, OpenMode, RealFileSystem, StorageFile};
use windlass_base::page::PAGE_BYTES;

/// Minimum size of a log file: the header and four virtual log files.
pub(crate) const LOG_BYTES_MIN: u64 = LOG_AREA + 4 * VLF_BYTES_MIN;

/// Creates a data file and reserves its space; removes it again if there is not enough.
pub(crate) fn make_file(
    files: &dyn FileSystem,
    spec: &FileSpec,
    mode: OpenMode,
) -> Result<Arc<dyn StorageFile>> {
    let fail = |error| EngineError::io("create", &spec.path, error);
    let file = files
        .open(&spec.path, mode)
        .map_err(|error| unmade(&spec.path, error))?;
    let reserved = file
        .reserve(0, spec.size)
        .and_then(|()| file.sync())
        .and_then(|()| files.sync_folder_of(&spec.path));
    if let Err(error) = reserved {
        // The first error is the one to report.
        let _gone = match mode {
            OpenMode::Begin => files.discard(&spec.path, file.as_ref()),
            _ => files.remove(&spec.path),
        };
        return Err(fail(error));
    }
    Ok(file)
}

fn unmade(path: &Path, error: io::Error) -> EngineError {
    match error.kind() {
        io::ErrorKind::WouldBlock => EngineError::BeingMade {
            path: path.to_owned(),
            source: Arc::new(error),
        },
        _ => EngineError::io("create", path, error),
    }
}

/// Completes the creation of the database with this log, if a crash prevented the renames. Returns
/// whether there was such a creation.
pub fn complete_creation(log: &Path) -> Result<bool> {
    complete(&RealFileSystem, log)
}

pub(super) fn complete(files: &dyn FileSystem, log: &Path) -> Result<bool> {
    let Some(begun) = begun(files, log)? else {
        return Ok(false);
    };
    // Without a header it was not complete.
    let Ok(header) = Header::load(begun.as_ref(), log) else {
        return Ok(false);
    };
    // All of them are held before the first gets its name.
    let mut unnamed = Vec::new();
    for spec in &header.files {
        // A file without a temporary name has its name; opening reports what is missing.
        if let Some(file) = self::begun(files, &spec.path)? {
            unnamed.push((spec.path.as_path(), file));
        }
    }
    unnamed.push((log, begun));
    for (path, file) in unnamed {
        files
            .publish(path, file.as_ref())
            .map_err(|error| EngineError::io("name", path, error))?;
    }
    Ok(true)
}

/// A file that a killed creation left under its temporary name.
fn begun(files: &dyn FileSystem, path: &Path) -> Result<Option<Arc<dyn StorageFile>>> {
    match files.open(path, OpenMode::Begun) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(EngineError::lock(path, error))
        }
        opened => Ok(Some(
            opened.map_err(|error| EngineError::io("open", path, error))?,
        )),
    }
}

/// Where the data files of a new database come from.
#[derive(Debug)]
pub(crate) enum Origin<'a> {
    New,
    /// New files, for the pages of another database.
    Filled(&'a dyn NewContent),
    /// The only data file is a plain SQLite file, used as it is.
    Existing,
    /// The same, still under its temporary name, which its maker holds.
    Begun(Arc<dyn StorageFile>),
}

/// A new database whose files are complete, but still under their temporary names. They are removed on drop.
#[derive(Debug)]
pub struct NewDatabase {
    // Dropped first: until a file has its name or is gone, it is held.
    made: Made,
    database: Database,
}

/// Files that are removed on drop. They stay open until then, so that their temporary names are nobody else's.
#[derive(Debug)]
struct Made {
    system: Arc<dyn FileSystem>,
    files: Vec<(PathBuf, Arc<dyn StorageFile>)>,
}

impl Drop for Made {
    fn drop(&mut self) {
        for (path, file) in &self.files {
            // Files that cannot be removed are left; the first error is the one to report.
            let _left = self.system.discard(path, file.as_ref());
        }
    }
}

impl NewDatabase {
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Renames the files to their final names, the log last.
    pub(crate) fn publish(self) -> Result<Database> {
        let Self { database, mut made } = self;
        for (path, file) in &made.files {
            made.system
                .publish(path, file.as_ref())
                .map_err(|error| EngineError::io("name", path, error))?;
        }
        made.files.clear();
        Ok(database)
    }
}

fn check(request: &CreateDatabase, origin: &Origin<'_>) -> Result<()> {
    let refuse = |what: String| Err(EngineError::Invalid(what));
    let name = &request.name;
    if request.page_size != PAGE_BYTES {
        return refuse(format!(
            "database '{name}': pages of {} bytes; the engine has pages of {PAGE_BYTES}",
            request.page_size
        ));
    }
    if request.data_files.is_empty() || request.data_files.len() > 1000 {
        return refuse(format!("database '{name}' needs 1 to 1000 data files"));
    }
    let takes_over = matches!(origin, Origin::Existing | Origin::Begun(_));
    if takes_over && request.data_files.len() != 1 {
        return refuse(format!(
            "database '{name}': one SQLite file can be taken over"
        ));
    }
    if request.log.size < LOG_BYTES_MIN {
        return refuse(format!(
            "the log of database '{name}' needs at least {LOG_BYTES_MIN} bytes"
        ));
    }
    let all = request.data_files.iter().chain([&request.log]);
    let names: Vec<_> = all.map(|file| (&file.logical_name, &file.path)).collect();
    for (index, (logical, path)) in names.iter().enumerate() {
        if logical.len() > 256 || path.as_os_str().len() > 4096 {
            return refuse(format!("a name of a file of database '{name}' is too long"));
        }
        if names[..index]
            .iter()
            .any(|(l, p)| l == logical || p == path)
        {
            return refuse(format!(
                "database '{name}': '{logical}' or its path is given twice"
            ));
        }
    }
    Ok(())
}

/// Takes the existing file of an adopted database and returns its number of pages.
fn adopt_file(
    files: &dyn FileSystem,
    spec: &FileSpec,
    file: Arc<dyn StorageFile>,
) -> Result<(DataFile, u32)> {
    let fail = |error| EngineError::io("open", &spec.path, error);
    let corrupt = |what: String| EngineError::Corrupt {
        path: spec.path.clone(),
        what,
    };
    file.lock_database()
        .map_err(|error| EngineError::lock(&spec.path, error))?;
    foreign::refuse_leftovers(files, &spec.path)?;
    let bytes = file.len().map_err(fail)?;
    let mut head = [0; 100];
    let length = file.read_at(&mut head, 0).map_err(fail)?;
    let page_size = u64::from(u16::from_be_bytes([head[16], head[17]]));
    if length < 100 || !head.starts_with(b"SQLite format 3\0") {
        return Err(corrupt("not a SQLite database".to_owned()));
    }
    if page_size != PAGE_BYTES as u64 || bytes % page_size != 0 {
        return Err(corrupt(format!(
            "{bytes} bytes in pages of {page_size}; whole pages of {PAGE_BYTES} are needed"
        )));
    }
    let page_count = u32::try_from(bytes / PAGE_BYTES as u64)
        .map_err(|_| corrupt("too many pages".to_owned()))?;
    let spec = FileSpec {
        size: spec.size.max(bytes),
        ..spec.clone()
    };
    Ok((DataFile { spec, file }, page_count))
}

/// A data file, and the pages that are in it already.
fn data_file(
    files: &dyn FileSystem,
    spec: &FileSpec,
    origin: &Origin<'_>,
) -> Result<(DataFile, u32)> {
    match origin {
        Origin::New | Origin::Filled(_) => {
            let file = make_file(files, spec, OpenMode::Begin)?;
            let spec = spec.clone();
            Ok((DataFile { spec, file }, 0))
        }
        Origin::Existing => {
            let file = files
                .open(&spec.path, OpenMode::Existing)
                .map_err(|error| EngineError::io("open", &spec.path, error))?;
            adopt_file(files, spec, file)
        }
        Origin::Begun(file) => adopt_file(files, spec, Arc::clone(file)),
    }
}

/// The header of a database that begins.
fn first_header(request: &CreateDatabase, page_count: u32, data: &DataFiles) -> Header {
    Header {
        counter: 0,
        guid: request.guid.unwrap_or_else(Guid::random),
        recovery_fork: Guid::random(),
        opening: Guid::NIL,
        name: request.name.clone(),
        epoch: 1,
        clean: false,
        fingerprint: Fingerprint::default(),
        page_count,
        sequence: 0,
        redo: Position::default(),
        checkpoint: Position::default(),
        checkpoint_identity: Guid::default(),
        base: DifferentialBase::default(),
        target_recovery_ms: milliseconds(request.target_recovery_time),
        log: request.log.clone(),
        files: data.specs(),
        lengths: Vec::new(),
        regions: data.regions(),
        vlfs: divide(LOG_AREA, request.log.size - LOG_AREA),
        recovery_model: RecoveryModel::Simple,
        tail: None,
        last_ms: 0,
    }
}

impl Database {
    /// Creates the files that do not exist; a failure removes them again.
    pub(crate) fn create(
        shared: Arc<Shared>,
        number: DatabaseNumber,
        request: &CreateDatabase,
        origin: &Origin<'_>,
    ) -> Result<NewDatabase> {
        check(request, origin)?;
        let mut made = Made {
            system: Arc::clone(&shared.files),
            files: Vec::new(),
        };
        let database = Self::create_files(shared, number, request, origin, &mut made.files)?;
        Ok(NewDatabase { made, database })
    }

    fn create_files(
        shared: Arc<Shared>,
        number: DatabaseNumber,
        request: &CreateDatabase,
        origin: &Origin<'_>,
        made: &mut Vec<(PathBuf, Arc<dyn StorageFile>)>,
    ) -> Result<Self> {
        let mut page_count = 0;
        let mut data = Vec::new();
        for spec in &request.data_files {
            let (file, pages) = data_file(shared.files.as_ref(), spec, origin)?;
            if !matches!(origin, Origin::Existing) {
                made.push((spec.path.clone(), Arc::clone(&file.file)));
            }
            page_count += pages;
            data.push(file);
        }
        let regions = DataFiles::first_regions(data.len());
        let data = DataFiles::new(&request.name, data, regions)?;
        data.lock()?;
        if let Origin::Filled(content) = origin {
            page_count = content.page_count();
        }
        if data.single().is_none() {
            // For the stamps.
            data.ensure(page_count)?;
        }
        if let Origin::Filled(content) = origin {
            data.ensure(page_count)?;
            content::fill(&data, *content)?;
        }
        let path = &request.log.path;
        let fail = |error| EngineError::io("create", path, error);
        let begun = shared.files.open(path, OpenMode::Begin);
        let log_file = begun.map_err(|error| unmade(path, error))?;
        made.push((path.clone(), Arc::clone(&log_file)));
        log_file
            .lock_exclusive()
            .map_err(|error| EngineError::lock(path, error))?;
        zero(log_file.as_ref(), 0, request.log.size).map_err(fail)?;
        shared.files.sync_folder_of(path).map_err(fail)?;
        let header = first_header(request, page_count, &data);
        let resume = Resume {
            position: header.redo,
            previous: 0,
            epoch: header.epoch,
            redo: header.redo,
            tail: None,
        };
        let database = Self::assemble(shared, number, header, data, log_file, resume);
        database.note_checksums(&database.writer_token()?, page_count)?;
        if !matches!(origin, Origin::New) {
            let extents = ExtentNumber::all(page_count);
            database.maps.mark(extents);
        }
        database.advance_redo(&database.checkpointer.lock())?;
        Ok(database)
    }
}
