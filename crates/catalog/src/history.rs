//! Writes the backup history of `msdb`: media sets, media families, backup sets and their files.
//!
//! Columns with a constant value are filled in here; callers provide the others.

use rusqlite::{Connection, OptionalExtension as _, ToSql, params};

use crate::error::Doing;
use crate::record::{
    BackedUp, BackupFileRecord, BackupRecord, BackupSetRecord, FamilyRecord, MediaSetRecord,
};
use crate::value::{Stored, path_text};
use crate::{Catalog, Error, base};

impl Catalog {
    /// Adds a backup to the history. The same transaction decides whether it becomes its database's
    /// differential base: only the newest does, whichever of several ends last.
    ///
    /// # Errors
    /// [`Error::Sqlite`], [`Error::Stored`].
    pub fn record_backup(
        &mut self,
        record: &BackupRecord,
        of: Option<&BackedUp>,
    ) -> Result<bool, Error> {
        let transaction = self.write("recording a backup")?;
        let is_base = match of {
            Some(of) => base::propose(&transaction, of)?,
            None => false,
        };
        insert_backup(&transaction, record)?;
        transaction.commit().doing("recording a backup")?;
        Ok(is_base)
    }
}

/// The existing row of a set, or a new one.
pub(crate) fn find_or_insert(connection: &Connection, record: &BackupRecord) -> Result<i64, Error> {
    let known = connection
        .query_row(
            "SELECT backup_set_id FROM backupset JOIN backupmediaset USING (media_set_id) \
             WHERE backup_set_uuid = ?1 AND media_uuid = ?2",
            params![
                Stored(record.set.set_guid),
                Stored(record.media.media_set_guid)
            ],
            |row| row.get(0),
        )
        .optional()
        .doing("looking up a backup set")?;
    match known {
        Some(id) => Ok(id),
        None => insert_backup(connection, record),
    }
}

fn insert_backup(connection: &Connection, record: &BackupRecord) -> Result<i64, Error> {
    let media_set_id = insert_media(connection, &record.media)?;
    for family in &record.families {
        insert_family(connection, media_set_id, family)?;
    }
    let set_id = insert_set(connection, media_set_id, &record.set)?;
    for family in &record.families {
        insert_end(connection, set_id, family)?;
    }
    for file in &record.files {
        insert_file(connection, set_id, &record.set, file)?;
    }
    connection
        .execute(
            "INSERT INTO backupfilegroup (backup_set_id, name, filegroup_id, type, type_desc, \
             is_default, is_readonly) VALUES (?1, 'PRIMARY', 1, 'FG', 'ROWS_FILEGROUP', 1, 0)",
            [set_id],
        )
        .doing("recording a filegroup")?;
    Ok(set_id)
}

fn insert_media(connection: &Connection, media: &MediaSetRecord) -> Result<i64, Error> {
    connection
        .query_row(
            "INSERT INTO backupmediaset (media_uuid, media_family_count, name, description, \
             software_name, software_vendor_id, MTF_major_version, mirror_count, \
             is_password_protected, is_compressed, is_encrypted) \
             VALUES (?1, ?2, ?3, ?4, ?5, 4608, 1, ?6, 0, ?7, ?8) \
             ON CONFLICT (media_uuid) DO UPDATE SET is_compressed = excluded.is_compressed, \
             is_encrypted = excluded.is_encrypted \
             RETURNING media_set_id",
            params![
                Stored(media.media_set_guid),
                media.family_count,
                media.name,
                media.description,
                media.software_name,
                media.mirror_count,
                media.is_compressed,
                media.is_encrypted,
            ],
            |row| row.get(0),
        )
        .doing("recording a media set")
}

fn insert_family(
    connection: &Connection,
    media_set_id: i64,
    family: &FamilyRecord,
) -> Result<(), Error> {
    connection
        .execute(
            "INSERT OR REPLACE INTO backupmediafamily (media_set_id, family_sequence_number, \
             media_family_id, media_count, logical_device_name, physical_device_name, device_type, \
             physical_block_size, mirror) VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8)",
            params![
                media_set_id,
                family.sequence_number,
                Stored(family.family_id),
                family.logical_device_name,
                family.physical_device_name,
                family.device_type,
                family.block_bytes,
                family.mirror,
            ],
        )
        .map(|_| ())
        .doing("recording a media family")
}

/// What the medium must contain for the set.
fn insert_end(connection: &Connection, set_id: i64, family: &FamilyRecord) -> Result<(), Error> {
    let Some(end_bytes) = family.end_bytes else {
        return Ok(());
    };
    connection
        .execute(
            "INSERT OR REPLACE INTO own_set_medium VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                set_id,
                family.sequence_number,
                family.mirror,
                integer(end_bytes),
                family.mount_point.as_deref().map(path_text),
            ],
        )
        .map(|_| ())
        .doing("recording a medium")
}

/// Adds a row of columns by their names.
fn insert(
    connection: &Connection,
    table: &str,
    row: &[(&str, &dyn ToSql)],
    doing: &'static str,
) -> Result<i64, Error> {
    let names: Vec<&str> = row.iter().map(|(name, _)| *name).collect();
    let places = vec!["?"; row.len()].join(", ");
    let text = format!(
        "INSERT INTO {table} ({}) VALUES ({places})",
        names.join(", ")
    );
    let values: Vec<&dyn ToSql> = row.iter().map(|(_, value)| *value).collect();
    connection.execute(&text, values.as_slice()).doing(doing)?;
    Ok(connection.last_insert_rowid())
}

#[rustfmt::skip]
fn insert_set(
    connection: &Connection,
    media_set_id: i64,
    set: &BackupSetRecord,
) -> Result<i64, Error> {
    let (major, minor, build) = set.software_version;
    let encryption = set.encryption.as_ref();
    insert(
        connection,
        "own_backupset",
        &[
            ("backup_set_uuid", &Stored(set.set_guid)), ("media_set_id", &media_set_id),
            ("first_family_number", &1), ("first_media_number", &1),
            ("last_family_number", &set.family_count), ("last_media_number", &1),
            ("catalog_family_number", &1), ("catalog_media_number", &1), ("position", &set.position),
            ("expiration_date", &Stored(set.expires)), ("software_vendor_id", &4608), ("name", &set.name),
            ("description", &set.description), ("user_name", &set.user_name),
            ("software_major_version", &major), ("software_minor_version", &minor),
            ("software_build_version", &build), ("time_zone", &set.time_zone), ("mtf_minor_version", &0),
            ("first_lsn", &Stored(set.first_lsn)), ("last_lsn", &Stored(set.last_lsn)),
            ("checkpoint_lsn", &Stored(set.checkpoint_lsn)),
            ("database_backup_lsn", &Stored(set.database_backup_lsn)),
            ("database_creation_date", &Stored(set.database_created)),
            ("backup_start_date", &Stored(set.started)), ("backup_finish_date", &Stored(set.finished)),
            ("type", &set.kind.to_string()), ("sort_order", &0), ("code_page", &0),
            ("compatibility_level", &170), ("database_version", &set.database_version),
            ("backup_size", &integer(set.backup_bytes)), ("database_name", &set.database_name),
            ("server_name", &set.server_name), ("machine_name", &set.machine_name), ("flags", &set.flags),
            ("collation_name", &set.collation), ("is_password_protected", &0), ("recovery_model", &"SIMPLE"),
            ("has_bulk_logged_data", &0), ("is_snapshot", &0), ("is_readonly", &set.is_read_only),
            ("is_single_user", &0), ("has_backup_checksums", &set.has_checksums),
            ("is_damaged", &set.is_damaged), ("begins_log_chain", &0), ("has_incomplete_metadata", &0),
            ("is_force_offline", &0), ("is_copy_only", &set.is_copy_only),
            ("first_recovery_fork_guid", &Stored(set.recovery_fork)),
            ("last_recovery_fork_guid", &Stored(set.recovery_fork)),
            ("database_guid", &Stored(set.database_guid)), ("family_guid", &Stored(set.family_guid)),
            ("differential_base_lsn", &Stored(set.base.map(|(lsn, _)| lsn))),
            ("differential_base_guid", &Stored(set.base.map(|(_, guid)| guid))),
            ("compressed_backup_size", &integer(set.compressed_bytes)),
            ("compression_algorithm", &set.compression_algorithm),
            ("compression_level", &set.compression_level),
            ("key_algorithm", &encryption.map(|found| &found.key_algorithm)),
            ("encryptor_thumbprint", &encryption.and_then(|found| found.thumbprint)),
            ("encryptor_type", &encryption.map(|found| &found.encryptor_type)),
            ("duration_ms", &set.duration_ms.map(integer)), ("is_discarded", &set.is_discarded),
        ],
        "recording a backup set",
    )
}

#[rustfmt::skip]
fn insert_file(
    connection: &Connection,
    set_id: i64,
    set: &BackupSetRecord,
    file: &BackupFileRecord,
) -> Result<(), Error> {
    insert(
        connection,
        "own_backupfile",
        &[
            ("backup_set_id", &set_id), ("first_family_number", &1), ("first_media_number", &1),
            ("filegroup_name", &"PRIMARY"), ("page_size", &file.page_bytes),
            ("file_number", &file.file_number), ("backed_up_page_count", &integer(file.page_count)),
            ("file_type", &"D"), ("source_file_block_size", &file.source_block_bytes),
            ("file_size", &integer(file.file_bytes)), ("logical_name", &file.logical_name),
            ("physical_name", &file.physical_name), ("state", &0), ("state_desc", &"ONLINE"),
            ("create_lsn", &0), ("file_guid", &Stored(file.file_guid)),
            ("differential_base_lsn", &Stored(set.base.map(|(lsn, _)| lsn))),
            ("differential_base_guid", &Stored(set.base.map(|(_, guid)| guid))),
            ("backup_size", &integer(file.backup_bytes)), ("is_readonly", &set.is_read_only),
            ("is_present", &1),
        ],
        "recording a file",
    )
    .map(|_| ())
}

/// An amount as SQLite's signed integer; no file reaches the limit.
fn integer(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use windlass_base::{Guid, Lsn, Moment};

    use super::*;

    pub(crate) fn sample() -> BackupRecord {
        let lsn: Lsn = "39:992:1".parse().unwrap();
        let moment: Moment = "2026-11-20 10:00:00".parse().unwrap();
        BackupRecord {
            media: MediaSetRecord {
                media_set_guid: Guid::random(),
                family_count: 2,
                name: Some("nightly".to_owned()),
                description: None,
                software_name: "Windlass".to_owned(),
                mirror_count: 1,
                is_compressed: true,
                is_encrypted: false,
            },
            families: (1..=2)
                .map(|number| FamilyRecord {
                    sequence_number: number,
                    family_id: Some(Guid::random()),
                    logical_device_name: None,
                    physical_device_name: format!("/b/{number}.bak"),
                    device_type: 2,
                    block_bytes: 4096,
                    mirror: 0,
                    end_bytes: Some(5000),
                    mount_point: Some("/b".into()),
                })
                .collect(),
            set: BackupSetRecord {
                set_guid: Guid::random(),
                position: 1,
                family_count: 2,
                expires: None,
                name: None,
                description: None,
                user_name: "me".to_owned(),
                software_version: (0, 1, 0),
                time_zone: 0,
                first_lsn: lsn,
                last_lsn: lsn,
                checkpoint_lsn: lsn,
                database_backup_lsn: Lsn::ZERO,
                database_created: None,
                started: moment,
                finished: moment,
                kind: 'D',
                database_version: 1,
                backup_bytes: 1000,
                compressed_bytes: 100,
                database_name: "app".to_owned(),
                server_name: "s".to_owned(),
                machine_name: "m".to_owned(),
                flags: 512,
                collation: None,
                is_read_only: false,
                has_checksums: false,
                is_damaged: false,
                is_copy_only: false,
                recovery_fork: None,
                database_guid: None,
                family_guid: Guid::random(),
                base: None,
                compression_algorithm: Some("ZSTD".to_owned()),
                compression_level: Some("LOW".to_owned()),
                encryption: None,
                duration_ms: Some(1500),
                is_discarded: false,
            },
            files: vec![BackupFileRecord {
                file_number: 1,
                logical_name: "app".to_owned(),
                physical_name: "/d/app.db".to_owned(),
                file_guid: None,
                page_bytes: 4096,
                page_count: 3,
                source_block_bytes: 512,
                file_bytes: 12288,
                backup_bytes: 12288,
            }],
        }
    }

    #[test]
    fn two_backups_on_one_media_set_share_its_row() {
        let mut catalog = Catalog::in_memory().unwrap();
        let first = sample();
        let mut second = sample();
        second.media = first.media.clone();
        second.set.position = 2;
        catalog.record_backup(&first, None).unwrap();
        catalog.record_backup(&second, None).unwrap();
        let count = |table: &str| -> i64 {
            catalog
                .connection()
                .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
                    row.get(0)
                })
                .unwrap()
        };
        assert_eq!(count("backupmediaset"), 1);
        assert_eq!(count("backupmediafamily"), 2);
        assert_eq!(count("backupset"), 2);
        assert_eq!(count("backupfile"), 2);
        assert_eq!(count("backupfilegroup"), 2);
        assert_eq!(count("own_set_medium"), 4);
    }
}
