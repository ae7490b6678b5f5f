//! A log backup of a page engine database: its log from the end of the last log backup on, and no data.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windlass_base::PAGE_BYTES;
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{Database, LogBackup, LogCopy};
use windlass_media::SourceKind;

use super::snapshot::source_file;
use super::{LOG_FILE_ID, engine_error};
use crate::log_only::LogOnly;
use crate::sqlite::identity::created;
use crate::{DatabaseIdentity, Ending, Error, FileKind, LogPiece, Position, SourceFile};

/// A log backup, as the pipeline reads it.
#[derive(Debug)]
pub struct EngineLogSnapshot {
    identity: DatabaseIdentity,
    position: Position,
    files: Vec<SourceFile>,
    description: Vec<u8>,
    copying: Mutex<Copying>,
}

#[derive(Debug)]
struct Copying {
    /// Taken by [`LogOnly::complete`].
    backup: Option<LogBackup>,
    /// Begun by [`LogOnly::begin_copy`].
    copy: Option<LogCopy>,
    bytes: u64,
}

impl EngineLogSnapshot {
    /// Begins a backup of the log up to the last commit. If it `truncates`, its end frees that log.
    ///
    /// # Errors
    /// Those of the engine: there is no chain of log backups, another log backup is under way.
    pub fn open(database: &Arc<Database>, truncates: bool) -> Result<Self, Error> {
        let backup = database.begin_log_backup(truncates).map_err(engine_error)?;
        Self::over(backup)
    }

    /// Begins a backup of the log of a database that is not open, and whose data files may be lost.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn of_file(log: &Path) -> Result<Self, Error> {
        let backup = LogBackup::of_file(&RealFileSystem, log).map_err(engine_error)?;
        Self::over(backup)
    }

    fn over(backup: LogBackup) -> Result<Self, Error> {
        let described = backup.description();
        let guid = described.guid();
        let files: Vec<SourceFile> = (backup.files().iter())
            .map(|file| source_file(file, 0))
            .collect();
        let first = files.first();
        Ok(Self {
            identity: DatabaseIdentity {
                name: described.name().to_owned(),
                family_guid: guid,
                database_guid: guid,
                recovery_fork_guid: backup.recovery_fork(),
                created: first.and_then(|first| created(&first.path)),
                page_bytes: PAGE_BYTES as u32,
                recovery_model: described.recovery_model(),
                kind: SourceKind::Engine,
                product_version: 0,
                user_version: 0,
                application_id: 0,
                journal_mode: "engine".to_owned(),
                is_read_only: false,
            },
            position: Position {
                first_lsn: described.first_lsn(),
                last_lsn: described.last_lsn(),
                checkpoint_lsn: described.checkpoint_lsn(),
            },
            description: described.encode().map_err(engine_error)?,
            files,
            copying: Mutex::new(Copying {
                backup: Some(backup),
                copy: None,
                bytes: 0,
            }),
        })
    }

    /// The same backup, of a database that is called otherwise than in its engine.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.identity.name);
        self
    }

    /// Fails if a standby file of the database cannot have this name.
    ///
    /// # Errors
    /// [`Error::StandbyExists`].
    pub fn check_standby(&self, path: &Path) -> Result<(), Error> {
        super::check_standby(path, &self.description)
    }

    fn copying(&self) -> MutexGuard<'_, Copying> {
        self.copying.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogOnly for EngineLogSnapshot {
    fn identity(&self) -> &DatabaseIdentity {
        &self.identity
    }

    fn position(&self) -> Position {
        self.position
    }

    fn files(&self) -> &[SourceFile] {
        &self.files
    }

    fn begin_copy(&self) {
        let mut copying = self.copying();
        copying.copy = copying.backup.as_ref().map(LogBackup::copy);
    }

    fn read_log(&self, buffer: &mut [u8]) -> Result<Option<LogPiece>, Error> {
        let mut copying = self.copying();
        let Some(copy) = copying.copy.as_mut() else {
            return Ok(None);
        };
        let bytes = copy.read(buffer).map_err(engine_error)?;
        if bytes == 0 {
            copying.copy = None;
            return Ok(None);
        }
        let offset = copying.bytes;
        copying.bytes += bytes as u64;
        Ok(Some(LogPiece {
            file_id: LOG_FILE_ID,
            offset,
            bytes,
        }))
    }

    fn ending(&self) -> Ending {
        let log_bytes = self.copying().bytes;
        let mut files = self.files.clone();
        for file in &mut files {
            if file.kind == FileKind::Log {
                // Copied block by block, not by offset: it may be longer than the file is now.
                file.size_bytes = file.size_bytes.max(log_bytes);
            }
        }
        Ending {
            position: self.position,
            files,
            description: self.description.clone(),
        }
    }

    fn complete(&self) -> Result<(), Error> {
        match self.copying().backup.take() {
            Some(backup) => backup.complete().map_err(engine_error),
            None => Ok(()),
        }
    }
}
