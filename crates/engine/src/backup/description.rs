//! What a backup records about its database, and the file ranges it contains.

use windlass_base::{FileId, Guid, Lsn};

use crate::error::{EngineError, Result};
use crate::log::Position;
use crate::log::header::{DifferentialBase, Header};
use crate::options::FileSpec;

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

/// A database as recorded in a backup: everything needed to recreate its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupDescription {
    pub(crate) header: Header,
    pub(crate) end: Position,
    pub(crate) differential: bool,
}

impl BackupDescription {
    pub(crate) fn new(header: Header, end: Position, kind: BackupMode) -> Self {
        Self {
            header,
            end,
            differential: kind == BackupMode::Differential,
        }
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
        self.differential
    }

    /// The differential base in force when the backup began.
    pub fn base(&self) -> DifferentialBase {
        self.header.base
    }

    pub(crate) fn end(&self) -> Position {
        self.end
    }

    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut out = vec![u8::from(self.differential)];
        out.extend_from_slice(&self.end.0.to_le_bytes());
        out.extend(self.header.encode()?);
        Ok(out)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let parse = || {
            let (&differential, rest) = bytes.split_first()?;
            let (end, rest) = rest.split_first_chunk()?;
            Some(Self {
                header: Header::parse(rest)?,
                end: Position(u64::from_le_bytes(*end)),
                differential: differential != 0,
            })
        };
        parse().ok_or_else(|| {
            EngineError::Invalid("the description of the database is damaged".to_owned())
        })
    }
}
