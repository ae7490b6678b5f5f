//! What one backup adds to the history: rows of `msdb`, with SQL Server's columns.

use std::path::PathBuf;

use windlass_base::Guid;

use crate::{Base, Provenance, StoredValue};

/// A row of `backupmediaset`.
#[derive(Debug, Clone)]
pub struct MediaSetRecord {
    /// `media_uuid`
    pub media_set_guid: Guid,
    /// `media_family_count`
    pub family_count: u32,
    /// `name`
    pub name: Option<String>,
    /// `description`
    pub description: Option<String>,
    /// `software_name`
    pub software_name: String,
    /// `mirror_count`
    pub mirror_count: u32,
    /// `is_compressed`: whether any of the sets on it is.
    pub is_compressed: bool,
    /// `is_encrypted`: whether the sets on it are.
    pub is_encrypted: bool,
}

/// A row of `backupmediafamily`.
#[derive(Debug, Clone)]
pub struct FamilyRecord {
    /// `family_sequence_number`, from 1.
    pub sequence_number: u32,
    /// `media_family_id`
    pub family_id: Option<Guid>,
    /// `logical_device_name`
    pub logical_device_name: Option<String>,
    /// `physical_device_name`
    pub physical_device_name: String,
    /// `device_type`: 2 for disk.
    pub device_type: u8,
    /// `physical_block_size`
    pub block_bytes: u32,
    /// `mirror`, from 0.
    pub mirror: u32,
    /// Length of the medium when the set was finished, if known.
    pub end_bytes: Option<u64>,
    /// The mount point of the medium's file system.
    pub mount_point: Option<PathBuf>,
}

/// Columns of a row, by SQL Server's names, with their values as SQLite stores them.
pub type NamedValues = Vec<(&'static str, StoredValue)>;

/// Everything that one backup adds to the history.
#[derive(Debug, Clone)]
pub struct BackupRecord {
    /// Written once for all its backup sets.
    pub media: MediaSetRecord,
    /// Including all mirrors.
    pub families: Vec<FamilyRecord>,
    /// `backup_set_uuid`
    pub set_guid: Guid,
    /// The row of `backupset`, without the columns that number media.
    pub set: NamedValues,
    /// The rows of `backupfile`, likewise.
    pub files: Vec<NamedValues>,
}

#[derive(Debug, Clone)]
pub struct BackedUp {
    /// Negative if the database is not registered.
    pub database_id: i64,
    pub of: Provenance,
    /// The differential base that this backup may become, if any.
    pub base: Option<Base>,
    /// The history of the database within which LSNs only grow; `None` if they always do.
    pub fork: Option<Guid>,
}
