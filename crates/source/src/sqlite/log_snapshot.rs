//! A log backup of a followed `SQLite` database: what its spool has since the last one, and no data.
//!
//! The spool is the log: what is in it was not backed up yet. When the set is complete, its segments are removed.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

use windlass_base::{Guid, Lsn};
use windlass_media::{SourceKind, WalPosition};

use super::follower::{self, Lack};
use super::identity::{FileIdentity, created};
use super::log_description::LogDescription;
use super::snapshot::FILE_ID;
use super::spool::{self, Slice, SliceReader, SpoolError};
use crate::log_only::LogOnly;
use crate::{
    DatabaseIdentity, Ending, Error, FileKind, FileRanges, LogPiece, Position, RecoveryModel,
    Snapshot, SourceFile,
};

/// The number of the log in a log backup.
pub(super) const LOG_FILE_ID: u16 = 2;

/// The log of a database, up to where a backup of it ends.
#[derive(Debug, Clone)]
pub struct SpooledLog {
    /// Path of the database.
    pub path: PathBuf,
    /// Folder of the spool.
    pub spool: PathBuf,
}

impl SpooledLog {
    /// What a log backup can hold, up to the newest commit of the database. Its end is behind `after`.
    ///
    /// # Errors
    /// [`SpoolError::NotReached`] if it is not known what the newest commit is, those of the follower and the spool.
    pub fn cut(&self, after: Lsn, cancel: &AtomicBool) -> Result<CutLog, Error> {
        let cut = follower::cut(&self.path, &self.spool, after, cancel)?;
        let lack = match cut.lack {
            Some(Lack { is_full, reason }) if !is_full => {
                let path = self.path.clone();
                return Err(SpoolError::NotReached { path, reason }.told());
            }
            lack => lack.map(|lack| lack.reason),
        };
        let slices = spool::slices(&self.spool, cut.before)?;
        Ok(CutLog { slices, lack })
    }

    /// The same without looking at the database, which may be lost.
    ///
    /// # Errors
    /// Those of the spool.
    pub fn as_it_is(&self) -> Result<CutLog, Error> {
        let slices = spool::slices(&self.spool, u32::MAX)?;
        let lack = None;
        Ok(CutLog { slices, lack })
    }
}

impl SpooledLog {
    /// What of a pinned snapshot may have changed since its differential base, as ranges of bytes; `None` if the log does
    /// not say.
    ///
    /// # Errors
    /// Those of the follower and the spool.
    pub fn changed_since(
        &self,
        base: Guid,
        snapshot: &dyn Snapshot,
        cancel: &AtomicBool,
    ) -> Result<Option<FileRanges>, Error> {
        let (Some(to), [file]) = (snapshot.wal_position(), snapshot.files()) else {
            return Ok(None);
        };
        follower::catch_up(&self.spool, cancel)?;
        let ranges = spool::changed_since(&self.spool, base, &to, file.size_bytes)?;
        Ok(ranges.map(|ranges| vec![(file.id, ranges)]))
    }
}

/// The log that log backups can hold.
#[derive(Debug)]
pub struct CutLog {
    /// With a gap between each two.
    pub slices: Vec<Slice>,
    /// Why it does not have the newest commits: the spool has no room, until it is backed up.
    pub lack: Option<String>,
}

/// A log backup, as the pipeline reads it.
#[derive(Debug)]
pub struct SqliteLogSnapshot {
    identity: DatabaseIdentity,
    position: Position,
    wal_position: WalPosition,
    files: Vec<SourceFile>,
    description: Vec<u8>,
    /// Folder of the spool.
    spool: PathBuf,
    slice: Slice,
    /// Slices before it that have nothing to back up.
    dropped: Vec<Slice>,
    truncates: bool,
    copying: Mutex<(SliceReader, u64)>,
}

/// What the caller knows of the database.
#[derive(Debug, Clone)]
pub struct LogOf {
    pub name: String,
    pub logical_name: String,
    pub family_guid: Option<Guid>,
}

impl SqliteLogSnapshot {
    /// A backup of `slice`. If it `truncates`, its end removes that from the spool, and what was `dropped` before it.
    pub fn of(
        log: &SpooledLog,
        slice: Slice,
        dropped: Vec<Slice>,
        of: &LogOf,
        truncates: bool,
    ) -> Self {
        let found = FileIdentity::of(&log.path);
        let family_guid = of.family_guid.unwrap_or(found.family_guid);
        let file = |id, logical: String, path: &Path, kind, size_bytes| SourceFile {
            id,
            logical_name: logical,
            physical_name: path.to_string_lossy().into_owned(),
            path: path.to_owned(),
            kind,
            size_bytes,
            page_bytes: slice.page_bytes,
            reserved_bytes: None,
        };
        let data_bytes = u64::from(slice.page_count) * u64::from(slice.page_bytes);
        let log_name = format!("{}_log", of.logical_name);
        Self {
            identity: DatabaseIdentity {
                name: of.name.clone(),
                family_guid,
                database_guid: found.database_guid,
                recovery_fork_guid: family_guid,
                created: created(&log.path),
                page_bytes: slice.page_bytes,
                recovery_model: RecoveryModel::Full,
                kind: SourceKind::Sqlite,
                product_version: 0,
                user_version: 0,
                application_id: 0,
                journal_mode: "wal".to_owned(),
                is_read_only: false,
            },
            position: Position {
                first_lsn: slice.first_lsn(),
                last_lsn: slice.last_lsn(),
                checkpoint_lsn: slice.first_lsn(),
            },
            wal_position: slice.end.position,
            files: vec![
                file(
                    FILE_ID,
                    of.logical_name.clone(),
                    &log.path,
                    FileKind::Data,
                    data_bytes,
                ),
                file(
                    LOG_FILE_ID,
                    log_name,
                    &super::wal_path(&log.path),
                    FileKind::Log,
                    slice.bytes,
                ),
            ],
            description: LogDescription::of(&slice).store(),
            copying: Mutex::new((slice.reader(), 0)),
            spool: log.spool.clone(),
            slice,
            dropped,
            truncates,
        }
    }

    fn copying(&self) -> MutexGuard<'_, (SliceReader, u64)> {
        self.copying.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogOnly for SqliteLogSnapshot {
    fn identity(&self) -> &DatabaseIdentity {
        &self.identity
    }

    fn position(&self) -> Position {
        self.position
    }

    fn wal_position(&self) -> Option<WalPosition> {
        Some(self.wal_position)
    }

    fn files(&self) -> &[SourceFile] {
        &self.files
    }

    fn read_log(&self, buffer: &mut [u8]) -> Result<Option<LogPiece>, Error> {
        let mut copying = self.copying();
        let (reader, offset) = &mut *copying;
        let bytes = reader.read(buffer)?;
        if bytes == 0 {
            return match *offset == self.slice.bytes {
                true => Ok(None),
                false => Err(Error::ChangedWhileReading {
                    path: self.slice.database.clone().into(),
                }),
            };
        }
        let piece = LogPiece {
            file_id: LOG_FILE_ID,
            offset: *offset,
            bytes,
        };
        *offset += bytes as u64;
        Ok(Some(piece))
    }

    fn ending(&self) -> Ending {
        Ending {
            position: self.position,
            files: self.files.clone(),
            description: self.description.clone(),
        }
    }

    fn complete(&self) -> Result<(), Error> {
        if !self.truncates {
            return Ok(());
        }
        let all: Vec<&Slice> = self.dropped.iter().chain([&self.slice]).collect();
        // What was not kept does not fit to the rest of the spool: then a differential backup reads the whole database.
        let _kept = spool::keep_changed(&self.spool, &all);
        all.into_iter().try_for_each(Slice::remove)
    }
}
