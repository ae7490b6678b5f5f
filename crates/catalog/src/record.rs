//! What one backup adds to the history: rows of `msdb`, with SQL Server's columns.

use std::path::PathBuf;

use windlass_base::{Guid, Lsn, Moment};

use crate::Base;

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
    /// `is_compressed`: whether the sets on it are.
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

/// A row of `backupset`.
#[expect(clippy::struct_excessive_bools, reason = "the columns are bits")]
#[derive(Debug, Clone)]
pub struct BackupSetRecord {
    /// `backup_set_uuid`
    pub set_guid: Guid,
    /// `position`
    pub position: u32,
    /// `last_family_number`
    pub family_count: u32,
    /// `expiration_date`
    pub expires: Option<Moment>,
    /// `name`
    pub name: Option<String>,
    /// `description`
    pub description: Option<String>,
    /// `user_name`
    pub user_name: String,
    /// `software_major_version`, `software_minor_version`, `software_build_version`
    pub software_version: (u32, u32, u32),
    /// `time_zone`, in quarter hours.
    pub time_zone: i32,
    /// `first_lsn`
    pub first_lsn: Lsn,
    /// `last_lsn`
    pub last_lsn: Lsn,
    /// `checkpoint_lsn`
    pub checkpoint_lsn: Lsn,
    /// `database_backup_lsn`
    pub database_backup_lsn: Lsn,
    /// `database_creation_date`
    pub database_created: Option<Moment>,
    /// `backup_start_date`
    pub started: Moment,
    /// `backup_finish_date`
    pub finished: Moment,
    /// `type`: `D` full, `I` differential.
    pub kind: char,
    /// `database_version`
    pub database_version: i32,
    /// `backup_size`
    pub backup_bytes: u64,
    /// `compressed_backup_size`
    pub compressed_bytes: u64,
    /// `database_name`
    pub database_name: String,
    /// `server_name`
    pub server_name: String,
    /// `machine_name`
    pub machine_name: String,
    /// `flags`
    pub flags: u32,
    /// `collation_name`
    pub collation: Option<String>,
    /// `is_readonly`
    pub is_read_only: bool,
    /// `has_backup_checksums`
    pub has_checksums: bool,
    /// `is_damaged`
    pub is_damaged: bool,
    /// `is_copy_only`
    pub is_copy_only: bool,
    /// `first_recovery_fork_guid`, `last_recovery_fork_guid`
    pub recovery_fork: Option<Guid>,
    /// `database_guid`
    pub database_guid: Option<Guid>,
    /// `family_guid`
    pub family_guid: Guid,
    /// `differential_base_lsn`, `differential_base_guid`
    pub base: Option<(Lsn, Guid)>,
    /// `compression_algorithm`
    pub compression_algorithm: Option<String>,
    /// `compression_level`; SQL Server has no such column.
    pub compression_level: Option<String>,
    pub encryption: Option<EncryptionRecord>,
    /// Duration in milliseconds; SQL Server has whole seconds.
    pub duration_ms: Option<u64>,
    /// It went to `NUL`: nothing was kept.
    pub is_discarded: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncryptionRecord {
    /// `key_algorithm`
    pub key_algorithm: String,
    /// `encryptor_thumbprint`: of the first certificate.
    pub thumbprint: Option<[u8; 20]>,
    /// `encryptor_type`
    pub encryptor_type: String,
}

/// A row of `backupfile`.
#[derive(Debug, Clone)]
pub struct BackupFileRecord {
    /// `file_number`
    pub file_number: u32,
    /// `logical_name`
    pub logical_name: String,
    /// `physical_name`
    pub physical_name: String,
    /// `file_guid`
    pub file_guid: Option<Guid>,
    /// `page_size`
    pub page_bytes: u32,
    /// `backed_up_page_count`
    pub page_count: u64,
    /// `source_file_block_size`
    pub source_block_bytes: u32,
    /// `file_size`
    pub file_bytes: u64,
    /// `backup_size`
    pub backup_bytes: u64,
}

/// Everything that one backup adds to the history.
#[derive(Debug, Clone)]
pub struct BackupRecord {
    /// Written once for all its backup sets.
    pub media: MediaSetRecord,
    /// Including all mirrors.
    pub families: Vec<FamilyRecord>,
    pub set: BackupSetRecord,
    pub files: Vec<BackupFileRecord>,
}

#[derive(Debug, Clone, Copy)]
pub struct BackedUp {
    /// Negative if the database is not registered.
    pub database_id: i64,
    pub database_guid: Guid,
    pub family_guid: Guid,
    /// The differential base that this backup may become, if any.
    pub base: Option<Base>,
}
