//! The files of an offline database as the source of a backup.
//!
//! Nothing opens such a database here, so that its files are read as they are. Whether another program changed them
//! meanwhile is asked at the end.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use windlass_bak::PageId;
use windlass_bak::data_file::{self, Boot};
use windlass_bak::page::PAGE_BYTES;
use windlass_base::{FileId, FilePage};
use windlass_io::DirectFile;
use windlass_media::SourceKind;
use windlass_source::{
    DatabaseIdentity, Ending, Error as SourceError, FileKind, FileRanges, LogPiece, Position,
    RecoveryModel, Snapshot, SourceFile, ranges_of,
};

use super::OfflineFile;
use super::open::{OpenFile, check, data_ranges};
use crate::Error;

/// The files, pinned by their open descriptors.
#[derive(Debug)]
pub struct OfflineSnapshot {
    identity: DatabaseIdentity,
    position: Position,
    files: Vec<SourceFile>,
    opened: Vec<OpenFile>,
    ranges: FileRanges,
    /// Bytes of the log that were read.
    log_bytes: AtomicU64,
}

impl OfflineSnapshot {
    /// Opens the files of the database `name`.
    ///
    /// # Errors
    /// A file is missing, cannot be read, or is not the one of its number; there is not exactly one log file.
    pub fn open(name: &str, files: &[OfflineFile]) -> Result<Self, Error> {
        let mut opened = Vec::new();
        for file in files {
            opened.push(OpenFile::open(file)?);
        }
        opened.sort_by_key(|file| file.id);
        let boot = check(&opened)?;
        let ranges = opened.iter().filter(|file| !file.is_log);
        let ranges = ranges.map(|file| Ok((file.id, data_ranges(file)?)));
        let lsn = boot.checkpoint;
        Ok(Self {
            identity: identity(name, &boot),
            position: Position {
                first_lsn: lsn,
                last_lsn: lsn,
                checkpoint_lsn: lsn,
            },
            ranges: ranges.collect::<Result<_, Error>>()?,
            files: opened.iter().map(source_file).collect(),
            opened,
            log_bytes: AtomicU64::new(0),
        })
    }

    fn file(&self, id: u16) -> Option<&OpenFile> {
        self.opened.iter().find(|file| file.id == id)
    }
}

/// Bit of the status of a database.
const STATUS_READ_ONLY: u32 = 0x400;

fn identity(name: &str, boot: &Boot) -> DatabaseIdentity {
    DatabaseIdentity {
        name: name.to_owned(),
        family_guid: boot.family,
        database_guid: boot.family,
        recovery_fork_guid: boot.family,
        created: None,
        page_bytes: PAGE_BYTES as u32,
        // There is nothing to back up but the whole.
        recovery_model: RecoveryModel::Simple,
        kind: SourceKind::SqlServerFiles,
        product_version: boot.version.into(),
        user_version: 0,
        application_id: 0,
        journal_mode: String::new(),
        is_read_only: boot.status & STATUS_READ_ONLY != 0,
    }
}

fn source_file(file: &OpenFile) -> SourceFile {
    SourceFile {
        id: file.id,
        logical_name: file.logical_name.clone(),
        physical_name: file.path.display().to_string(),
        path: file.path.clone(),
        kind: match file.is_log {
            true => FileKind::Log,
            false => FileKind::Data,
        },
        size_bytes: file.bytes,
        page_bytes: PAGE_BYTES as u32,
        reserved_bytes: None,
    }
}

impl Snapshot for OfflineSnapshot {
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
    ) -> Result<Option<Arc<DirectFile>>, SourceError> {
        let known = self.file(file_id);
        let is_inside = |file: &&OpenFile| {
            offset
                .checked_add(bytes as u64)
                .is_some_and(|end| end <= file.bytes)
        };
        match known.filter(is_inside) {
            Some(file) => Ok(Some(Arc::clone(&file.file))),
            None => Err(SourceError::OutOfRange {
                file_id,
                offset,
                bytes: bytes as u64,
                size_bytes: known.map_or(0, |file| file.bytes),
            }),
        }
    }

    fn amend(
        &self,
        file_id: u16,
        _offset: u64,
        buffer: &mut [u8],
        outcome: io::Result<usize>,
    ) -> Result<(), SourceError> {
        let path = || self.file(file_id).map(|file| file.path.clone());
        match outcome {
            Ok(bytes) if bytes == buffer.len() => Ok(()),
            // It is shorter than it was.
            Ok(_) => Err(SourceError::ChangedWhileReading {
                path: path().unwrap_or_default(),
            }),
            Err(source) => Err(SourceError::Io {
                action: "read",
                path: path().unwrap_or_default(),
                source,
            }),
        }
    }

    fn check_pages(
        &self,
        file_id: u16,
        offset: u64,
        bytes: &[u8],
        on_bad: &mut dyn FnMut(FilePage),
    ) {
        let Some(file) = self.file(file_id) else {
            return;
        };
        let first = offset / PAGE_BYTES as u64;
        for (index, page) in (first..).zip(bytes.chunks(PAGE_BYTES)) {
            let Ok(number) = u32::try_from(index) else {
                return;
            };
            let id = PageId {
                file: file_id,
                page: number,
            };
            if data_file::is_damaged(page, id, || file.is_allocated(id)) {
                on_bad(FilePage {
                    file_id: FileId(file_id),
                    page: index,
                });
            }
        }
    }

    fn has_page_checksums(&self) -> bool {
        true
    }

    fn tracks_changes(&self) -> bool {
        // It is never a differential base, so it needs no digests.
        true
    }

    fn read_log(&self, buffer: &mut [u8]) -> Result<Option<LogPiece>, SourceError> {
        let Some(file) = self.opened.iter().find(|file| file.is_log) else {
            return Ok(None);
        };
        let offset = self.log_bytes.load(Ordering::Relaxed);
        let rest = usize::try_from(file.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let length = rest.min(buffer.len());
        let Some(piece) = buffer.get_mut(..length).filter(|piece| !piece.is_empty()) else {
            return Ok(None);
        };
        let outcome = file.file.read_at(piece, offset);
        self.amend(file.id, offset, piece, outcome)?;
        self.log_bytes
            .store(offset + length as u64, Ordering::Relaxed);
        Ok(Some(LogPiece {
            file_id: file.id,
            offset,
            bytes: length,
        }))
    }

    fn ending(&self) -> Result<Option<Ending>, SourceError> {
        Ok(None)
    }

    fn close(&self) -> Result<(), SourceError> {
        match self.opened.iter().find(|file| !file.is_unchanged()) {
            None => Ok(()),
            Some(file) => Err(SourceError::ChangedWhileReading {
                path: file.path.clone(),
            }),
        }
    }
}
