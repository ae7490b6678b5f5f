//! What a backup records about its database, and the file ranges it contains.

use windlass_base::bytes::Reader;
use windlass_base::{FileId, Guid, Lsn};

use crate::error::{EngineError, Result};
use crate::log::header::{DifferentialBase, Header};
use crate::log::{Position, Tail};
use crate::options::{FileSpec, RecoveryModel};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupMode {
    /// All data; becomes the new differential base.
    Full,
    /// All data; the differential base is unchanged.
    CopyOnly,
    /// The extents changed since the base.
    Differential,
}

/// A range of a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupRange {
    pub file: FileId,
    /// Byte offset in the file.
    pub offset: u64,
    /// Length in bytes; always whole pages.
    pub bytes: usize,
}

/// What a backup contains; stored by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Full = 0,
    Differential = 1,
    Log = 2,
}

/// A database as recorded in a backup: everything needed to recreate its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupDescription {
    pub(crate) header: Header,
    pub(crate) end: Position,
    pub(crate) content: Content,
    /// When the end was determined, in milliseconds since 1970, UTC; 0 if unknown.
    pub(crate) ended_ms: u64,
    /// Of a log backup: checksum of the block before its first one.
    pub(crate) previous: u64,
    /// Checksum of the last block before the end; 0 if unknown.
    pub(crate) ending: u64,
}

impl BackupDescription {
    pub(crate) fn new(header: Header, end: Tail, kind: BackupMode, ended_ms: u64) -> Self {
        Self {
            header,
            end: end.start,
            content: match kind {
                BackupMode::Full | BackupMode::CopyOnly => Content::Full,
                BackupMode::Differential => Content::Differential,
            },
            ended_ms,
            previous: 0,
            ending: end.previous,
        }
    }

    /// Of the log from the start of the tail, which is the redo start in `header`, to `end`.
    pub(crate) fn of_log(header: Header, start: Tail, end: Tail, ended_ms: u64) -> Self {
        Self {
            header,
            end: end.start,
            content: Content::Log,
            ended_ms,
            previous: start.previous,
            ending: end.previous,
        }
    }

    /// Of a log backup: the checksum of the block before its first one, which that of the state is that it continues at
    /// its first LSN.
    pub fn previous(&self) -> Option<u64> {
        self.is_log().then_some(self.previous)
    }

    /// The checksum of the last block before its end, if known.
    pub fn ending(&self) -> Option<u64> {
        Some(self.ending).filter(|ending| *ending != 0)
    }

    pub fn name(&self) -> &str {
        &self.header.name
    }

    pub fn guid(&self) -> Guid {
        self.header.guid
    }

    /// Data files in order, with their sizes at the end of the backup.
    pub fn data_files(&self) -> &[FileSpec] {
        &self.header.files
    }

    pub fn log_file(&self) -> &FileSpec {
        &self.header.log
    }

    /// Number of pages at the commit that the backup shows.
    pub fn page_count(&self) -> u32 {
        self.header.page_count
    }

    /// First log record that a restore needs: the backup's checkpoint.
    pub fn first_lsn(&self) -> Lsn {
        self.header.redo.lsn(1)
    }

    /// End of the log that belongs to the backup.
    pub fn last_lsn(&self) -> Lsn {
        self.end.lsn(1)
    }

    /// Whether it contains only what changed since [`BackupDescription::base`].
    pub fn is_differential(&self) -> bool {
        self.content == Content::Differential
    }

    /// When the end was determined, in milliseconds since 1970, UTC; 0 if unknown.
    pub fn ended_ms(&self) -> u64 {
        self.ended_ms
    }

    /// The last checkpoint before the end.
    pub fn checkpoint_lsn(&self) -> Lsn {
        self.header.checkpoint.lsn(1)
    }

    /// Whether it contains only log.
    pub fn is_log(&self) -> bool {
        self.content == Content::Log
    }

    pub fn recovery_model(&self) -> RecoveryModel {
        self.header.recovery_model
    }

    /// Identity of the history of the database, within which LSNs only grow.
    pub fn recovery_fork(&self) -> Guid {
        self.header.recovery_fork
    }

    /// The differential base in force when the backup began.
    pub fn base(&self) -> DifferentialBase {
        self.header.base
    }

    pub(crate) fn end(&self) -> Position {
        self.end
    }

    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut out = vec![self.content as u8];
        out.extend_from_slice(&self.end.0.to_le_bytes());
        out.extend(self.header.encode()?);
        out.extend_from_slice(&self.ended_ms.to_le_bytes());
        if self.is_log() {
            out.extend_from_slice(&self.previous.to_le_bytes());
        }
        out.extend_from_slice(&self.ending.to_le_bytes());
        Ok(out)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let parse = || {
            let (&content, rest) = bytes.split_first()?;
            let content = match content {
                0 => Content::Full,
                1 => Content::Differential,
                2 => Content::Log,
                _ => return None,
            };
            let (end, rest) = rest.split_first_chunk()?;
            let header = Header::parse(rest)?;
            let mut input = Reader::new(rest.get(Header::stored_bytes(rest)?..)?);
            // Sets of older programs end here.
            let ended_ms = input.u64().unwrap_or(0);
            Some(Self {
                header,
                end: Position(u64::from_le_bytes(*end)),
                content,
                ended_ms,
                previous: match content {
                    Content::Log => input.u64()?,
                    _ => 0,
                },
                ending: input.u64().unwrap_or(0),
            })
        };
        parse().ok_or_else(|| {
            EngineError::Invalid("the description of the database is damaged".to_owned())
        })
    }
}
