//! A snapshot of a page engine database that is in use.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use windlass_base::page::checksum::CHECKSUM_BYTES;
use windlass_base::{FileId, FilePage, Guid, Lsn, PAGE_BYTES};
use windlass_engine::{
    Backup, BackupMode, BackupRange, Database, FileDescription, LogCopy, PhaseReport,
};
use windlass_io::DirectFile;
use windlass_media::SourceKind;

use super::{LOG_FILE_ID, engine_error};
use crate::sqlite::identity::created;
use crate::{
    DatabaseIdentity, Ending, Error, FileKind, FileRanges, LogPiece, Position, Snapshot,
    SourceFile, ranges_of,
};

/// A backup of the engine, as the pipeline reads it.
#[derive(Debug)]
pub struct EngineSnapshot {
    database: Arc<Database>,
    kind: BackupMode,
    /// Taken by [`Snapshot::complete`].
    backup: RwLock<Option<Backup>>,
    log: Mutex<Log>,
    phases: Arc<Mutex<Vec<PhaseReport>>>,
    identity: DatabaseIdentity,
    files: Vec<SourceFile>,
    ranges: FileRanges,
    position: Position,
    page_checksums: bool,
}

/// How far the log has been copied.
#[derive(Debug, Default)]
struct Log {
    copy: Option<LogCopy>,
    bytes: u64,
}

impl EngineSnapshot {
    /// The same backup, of a database that is called otherwise than in its engine.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.identity.name);
        self
    }

    /// Begins a backup: on return, its checkpoint is done and its data files can be copied.
    ///
    /// # Errors
    /// Those of the engine: the database is offline, a differential has no base, a write failed.
    pub fn open(database: &Arc<Database>, kind: BackupMode) -> Result<Self, Error> {
        let backup = database.begin_backup(kind).map_err(engine_error)?;
        let has_checksums = backup.has_checksums();
        let files = source_files(database, has_checksums);
        let ranges = files
            .iter()
            .map(|file| (file.id, backed_up(&backup, file.id)))
            .collect();
        let (guid, first_lsn) = (database.guid(), backup.first_lsn());
        let described = database.files();
        let first = described.first();
        Ok(Self {
            identity: DatabaseIdentity {
                name: database.name().to_owned(),
                family_guid: guid,
                database_guid: guid,
                recovery_fork_guid: database.recovery_fork(),
                created: first.and_then(|first| created(&first.spec.path)),
                page_bytes: PAGE_BYTES as u32,
                recovery_model: database.recovery_model(),
                kind: SourceKind::Engine,
                product_version: 0,
                user_version: 0,
                application_id: 0,
                journal_mode: "engine".to_owned(),
                is_read_only: false,
            },
            position: Position {
                first_lsn,
                last_lsn: first_lsn,
                checkpoint_lsn: first_lsn,
            },
            page_checksums: has_checksums,
            phases: Arc::new(Mutex::new(backup.phases())),
            database: Arc::clone(database),
            kind,
            backup: RwLock::new(Some(backup)),
            log: Mutex::default(),
            files,
            ranges,
        })
    }

    /// The current differential base: the set and its checkpoint.
    pub fn base(&self) -> (Guid, Lsn) {
        let base = self.database.differential_base();
        (base.set, base.first_lsn)
    }

    /// Time and work of the engine's steps, complete when the backup is.
    pub fn phases(&self) -> Arc<Mutex<Vec<PhaseReport>>> {
        Arc::clone(&self.phases)
    }

    fn backup(&self) -> RwLockReadGuard<'_, Option<Backup>> {
        self.backup.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_phases(&self, backup: &Backup) {
        *self.phases.lock().unwrap_or_else(PoisonError::into_inner) = backup.phases();
    }

    fn out_of_range(&self, file_id: u16, offset: u64, bytes: usize) -> Error {
        let file = self.files.iter().find(|file| file.id == file_id);
        Error::OutOfRange {
            file_id,
            offset,
            bytes: bytes as u64,
            size_bytes: file.map_or(0, |file| file.size_bytes),
        }
    }

    fn range(&self, file_id: u16, offset: u64, bytes: usize) -> Result<BackupRange, Error> {
        let file = FileId(file_id);
        file.data_index()
            .ok_or_else(|| self.out_of_range(file_id, offset, bytes))?;
        Ok(BackupRange {
            file,
            offset,
            bytes,
        })
    }
}

fn source_files(database: &Database, has_checksums: bool) -> Vec<SourceFile> {
    // Pages without checksums may be of any layout; a wrong one only hides their overflow.
    let reserved_bytes = if has_checksums { CHECKSUM_BYTES } else { 0 };
    let files = database.files();
    let files = files.iter();
    files
        .map(|file| source_file(file, reserved_bytes as u8))
        .collect()
}

pub(super) fn source_file(file: &FileDescription, reserved_bytes: u8) -> SourceFile {
    SourceFile {
        id: file.file_id.0,
        logical_name: file.spec.logical_name.clone(),
        physical_name: file.spec.path.to_string_lossy().into_owned(),
        path: file.spec.path.clone(),
        kind: if file.is_log {
            FileKind::Log
        } else {
            FileKind::Data
        },
        size_bytes: file.spec.size,
        page_bytes: PAGE_BYTES as u32,
        reserved_bytes: (!file.is_log).then_some(reserved_bytes),
    }
}

/// The ranges of one file, adjacent ones joined.
fn backed_up(backup: &Backup, file_id: u16) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in backup.ranges(1 << 30) {
        if range.file != FileId(file_id) {
            continue;
        }
        let end = range.offset + range.bytes as u64;
        match joined.last_mut() {
            Some(last) if last.end == range.offset => last.end = end,
            _ => joined.push(range.offset..end),
        }
    }
    joined
}

impl Snapshot for EngineSnapshot {
    fn identity(&self) -> &DatabaseIdentity {
        &self.identity
    }

    fn position(&self) -> Position {
        self.position
    }

    fn files(&self) -> &[SourceFile] {
        &self.files
    }

    fn ranges(&self, file_id: u16) -> Vec<Range<u64>> {
        ranges_of(&self.ranges, file_id)
    }

    fn narrow(&mut self, ranges: FileRanges) {
        self.ranges = ranges;
    }

    fn located(
        &self,
        file_id: u16,
        offset: u64,
        bytes: usize,
    ) -> Result<Option<Arc<DirectFile>>, Error> {
        let range = self.range(file_id, offset, bytes)?;
        match &*self.backup() {
            Some(backup) => backup.data_file(range.file).map_err(engine_error),
            None => Err(self.out_of_range(file_id, offset, bytes)),
        }
    }

    fn amend(
        &self,
        file_id: u16,
        _offset: u64,
        buffer: &mut [u8],
        outcome: io::Result<usize>,
    ) -> Result<(), Error> {
        let bytes = outcome.map_err(|source| {
            let file = self.files.iter().find(|file| file.id == file_id);
            Error::Io {
                action: "read",
                path: file.map(|file| file.path.clone()).unwrap_or_default(),
                source,
            }
        })?;
        // Allocated space that was never written.
        buffer[bytes..].fill(0);
        Ok(())
    }

    fn check_pages(
        &self,
        file_id: u16,
        offset: u64,
        bytes: &[u8],
        on_bad: &mut dyn FnMut(FilePage),
    ) {
        let Ok(range) = self.range(file_id, offset, bytes.len()) else {
            return;
        };
        if let Some(backup) = &*self.backup() {
            backup.verify(&range, bytes, &mut |error| {
                if let windlass_engine::EngineError::PageChecksum { file_page, .. } = error {
                    on_bad(file_page);
                }
            });
        }
    }

    fn has_page_checksums(&self) -> bool {
        self.page_checksums
    }

    fn tracks_changes(&self) -> bool {
        true
    }

    fn finish_data(&self) -> Result<(), Error> {
        let mut backup = self.backup.write().unwrap_or_else(PoisonError::into_inner);
        let Some(backup) = backup.as_mut() else {
            return Ok(());
        };
        backup.finish_data().map_err(engine_error)?;
        self.log().copy = Some(backup.log_copy().map_err(engine_error)?);
        Ok(())
    }

    fn read_log(&self, buffer: &mut [u8]) -> Result<Option<LogPiece>, Error> {
        let mut log = self.log();
        let Some(copy) = log.copy.as_mut() else {
            return Ok(None);
        };
        let bytes = copy.read(buffer).map_err(engine_error)?;
        if bytes == 0 {
            if let (Some(backup), Some(copy)) = (&*self.backup(), log.copy.take()) {
                backup.finish_log(&copy);
            }
            return Ok(None);
        }
        let offset = log.bytes;
        log.bytes += bytes as u64;
        Ok(Some(LogPiece {
            file_id: LOG_FILE_ID,
            offset,
            bytes,
        }))
    }

    fn ending(&self) -> Result<Option<Ending>, Error> {
        let backup = self.backup();
        let Some(backup) = &*backup else {
            return Ok(None);
        };
        let description = backup.description().map_err(engine_error)?;
        let log_bytes = self.log().bytes;
        let mut files = source_files(&self.database, self.page_checksums);
        for file in &mut files {
            if file.kind == FileKind::Log {
                // Copied block by block, not by offset: it may be longer than the file is now.
                file.size_bytes = file.size_bytes.max(log_bytes);
            }
        }
        self.note_phases(backup);
        Ok(Some(Ending {
            position: Position {
                first_lsn: description.first_lsn(),
                last_lsn: description.last_lsn(),
                checkpoint_lsn: description.first_lsn(),
            },
            files,
            description: description.encode().map_err(engine_error)?,
        }))
    }

    fn close(&self) -> Result<(), Error> {
        // The engine confirmed the copy in `finish_data`; later changes to the database do not
        // affect the log that was held and copied.
        Ok(())
    }

    fn complete(&self, set: Guid) -> Result<(), Error> {
        let taken = self
            .backup
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(backup) = taken else { return Ok(()) };
        self.note_phases(&backup);
        if self.kind != BackupMode::CopyOnly {
            let phases = backup.complete(set).map_err(engine_error)?;
            *self.phases.lock().unwrap_or_else(PoisonError::into_inner) = phases;
        }
        Ok(())
    }
}
