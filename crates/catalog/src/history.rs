//! Writes the backup history of `msdb`: media sets, media families, backup sets and their files.
//!
//! Fills in the columns that number media; callers provide the others by name.

use rusqlite::{Connection, OptionalExtension as _, ToSql, params};

use crate::error::Doing;
use crate::record::{BackedUp, BackupRecord, FamilyRecord, MediaSetRecord, NamedValues};
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

/// Finds the row of a set, or inserts one.
pub(crate) fn find_or_insert(connection: &Connection, record: &BackupRecord) -> Result<i64, Error> {
    let known = connection
        .query_row(
            // Its history begins again.
            "UPDATE own_backupset SET is_forgotten = 0 FROM own_backupmediaset AS media \
             WHERE backup_set_uuid = ?1 AND media.media_set_id = own_backupset.media_set_id \
             AND media_uuid = ?2 RETURNING backup_set_id",
            params![Stored(record.set_guid), Stored(record.media.media_set_guid)],
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
    let numbers = [
        ("media_set_id", media_set_id),
        ("first_family_number", 1),
        ("last_family_number", i64::from(record.media.family_count)),
        ("first_media_number", 1),
        ("last_media_number", 1),
        ("catalog_family_number", 1),
        ("catalog_media_number", 1),
        ("mtf_minor_version", 0),
        ("is_password_protected", 0),
    ];
    let doing = "recording a backup set";
    let set_id = insert(connection, "own_backupset", &record.set, &numbers, doing)?;
    for family in &record.families {
        insert_end(connection, set_id, family)?;
    }
    for file in &record.files {
        let numbers = [
            ("backup_set_id", set_id),
            ("first_family_number", 1),
            ("first_media_number", 1),
        ];
        let doing = "recording a file";
        insert(connection, "own_backupfile", file, &numbers, doing)?;
    }
    connection
        .execute(
            "INSERT INTO own_backupfilegroup (backup_set_id, name, filegroup_id, type, type_desc, \
             is_default, is_readonly) VALUES (?1, 'PRIMARY', 1, 'FG', 'ROWS_FILEGROUP', 1, 0)",
            [set_id],
        )
        .doing("recording a filegroup")?;
    Ok(set_id)
}

fn insert_media(connection: &Connection, media: &MediaSetRecord) -> Result<i64, Error> {
    connection
        .query_row(
            "INSERT INTO own_backupmediaset (media_uuid, media_family_count, name, description, \
             software_name, software_vendor_id, MTF_major_version, mirror_count, \
             is_password_protected, is_compressed, is_encrypted) \
             VALUES (?1, ?2, ?3, ?4, ?5, 4608, 1, ?6, 0, ?7, ?8) \
             ON CONFLICT (media_uuid) DO UPDATE SET \
             is_compressed = max(is_compressed, excluded.is_compressed), \
             is_encrypted = max(is_encrypted, excluded.is_encrypted) \
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
            "INSERT OR REPLACE INTO own_backupmediafamily (media_set_id, family_sequence_number, \
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

/// Inserts what the medium must contain for the set.
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

/// Adds a row to `table`: `row`, and `more` columns with a number each.
fn insert(
    connection: &Connection,
    table: &str,
    row: &NamedValues,
    more: &[(&'static str, i64)],
    doing: &'static str,
) -> Result<i64, Error> {
    let names = row.iter().map(|(name, _)| *name);
    let names: Vec<&str> = names.chain(more.iter().map(|(name, _)| *name)).collect();
    let places = vec!["?"; names.len()].join(", ");
    let text = format!(
        "INSERT INTO {table} ({}) VALUES ({places})",
        names.join(", ")
    );
    let values = row.iter().map(|(_, value)| value as &dyn ToSql);
    let numbers = more.iter().map(|(_, number)| number as &dyn ToSql);
    let values: Vec<&dyn ToSql> = values.chain(numbers).collect();
    connection.execute(&text, values.as_slice()).doing(doing)?;
    Ok(connection.last_insert_rowid())
}

/// Converts an amount to SQLite's signed integer; no file reaches the limit.
fn integer(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use windlass_base::{Guid, Lsn, Moment};

    use super::*;
    use crate::StoredValue;

    pub(crate) fn sample() -> BackupRecord {
        let lsn: Lsn = "39:992:1".parse().unwrap();
        let moment: Moment = "2026-11-20 10:00:00".parse().unwrap();
        let set_guid = Guid::random();
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
            set_guid,
            set: vec![
                ("backup_set_uuid", StoredValue::from(set_guid)),
                ("position", StoredValue::from(1)),
                ("first_lsn", StoredValue::from(lsn)),
                ("last_lsn", StoredValue::from(lsn)),
                ("checkpoint_lsn", StoredValue::from(lsn)),
                ("backup_start_date", StoredValue::from(moment)),
                ("backup_finish_date", StoredValue::from(moment)),
                ("type", StoredValue::from("D")),
                ("backup_size", StoredValue::from(1000)),
                ("compressed_backup_size", StoredValue::from(100)),
                ("database_name", StoredValue::from("app")),
                ("is_copy_only", StoredValue::from(0)),
                ("is_damaged", StoredValue::from(0)),
                ("time_zone", StoredValue::from(0)),
                ("compression_algorithm", StoredValue::from("ZSTD")),
                ("compression_level", StoredValue::from("LOW")),
                ("duration_ms", StoredValue::from(1500)),
            ],
            files: vec![vec![
                ("file_number", StoredValue::from(1)),
                ("logical_name", StoredValue::from("app")),
                ("physical_name", StoredValue::from("/d/app.db")),
            ]],
        }
    }

    /// A backup of a database, of a kind, with the date of its end.
    pub(crate) fn backup(database: &str, finished: &str, kind: &str) -> BackupRecord {
        with(
            sample(),
            [
                ("database_name", StoredValue::from(database)),
                ("backup_finish_date", StoredValue::from(finished)),
                ("type", StoredValue::from(kind)),
            ],
        )
    }

    pub(crate) fn count(catalog: &Catalog, table: &str) -> i64 {
        let text = format!("SELECT count(*) FROM {table}");
        let connection = catalog.connection();
        connection.query_row(&text, [], |row| row.get(0)).unwrap()
    }

    /// Sets columns of the set's row.
    pub(crate) fn with(
        mut record: BackupRecord,
        columns: impl IntoIterator<Item = (&'static str, StoredValue)>,
    ) -> BackupRecord {
        for (name, value) in columns {
            record.set.retain(|(known, _)| *known != name);
            record.set.push((name, value));
        }
        record
    }

    #[test]
    fn two_backups_on_one_media_set_share_its_row() {
        let mut catalog = Catalog::in_memory().unwrap();
        let first = sample();
        let mut second = with(sample(), [("position", StoredValue::from(2))]);
        second.media = first.media.clone();
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
