//! Queries backup history.
//!
//! Neighbours: `history` and `restore_history` write it, `forget` deletes it.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use rusqlite::{OptionalExtension as _, Row, params};
use windlass_base::{FileId, FilePage, Guid, Lsn, Moment};

use crate::error::Doing;
use crate::value::{Stored, read, text_path};
use crate::{Catalog, Error, Provenance};

/// A backup in the history.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column")]
pub struct PastBackup {
    /// `backup_set_id`
    pub id: i64,
    /// `backup_set_uuid`
    pub set_guid: Option<Guid>,
    /// `database_name`, as long as nobody tells databases of one name apart.
    pub database: String,
    /// The database and where it was: `family_guid`, `database_guid`, `database_name`, `machine_name`, and the
    /// `physical_name` of its first file.
    pub of: Provenance,
    /// `type`: `D`, `I`, `L`.
    pub kind: String,
    /// `backup_start_date`
    pub started: Option<Moment>,
    /// `backup_finish_date`
    pub finished: Option<Moment>,
    /// The size of its files; `None` if the history does not know it.
    pub database_bytes: Option<u64>,
    /// `backup_size`
    pub raw_bytes: u64,
    /// `compressed_backup_size`
    pub stored_bytes: u64,
    /// `compression_algorithm` and `compression_level`
    pub compression: String,
    /// `is_copy_only`
    pub is_copy_only: bool,
    /// `is_damaged`
    pub is_damaged: bool,
    /// `first_lsn`
    pub first_lsn: Option<Lsn>,
    /// `last_lsn`
    pub last_lsn: Option<Lsn>,
    /// `checkpoint_lsn`
    pub checkpoint_lsn: Option<Lsn>,
    /// `differential_base_guid`
    pub base_guid: Option<Guid>,
    /// `position`
    pub position: u32,
    /// The devices of the first copy.
    pub devices: Vec<String>,
    /// `media_uuid`
    pub media_set_guid: Option<Guid>,
    /// All its media, including mirrors.
    pub media: Vec<PastMedium>,
    /// `last_recovery_fork_guid`
    pub recovery_fork: Option<Guid>,
    /// `time_zone`: quarter hours from UTC.
    pub time_zone: i32,
    /// Duration in seconds.
    pub seconds: Option<f64>,
    /// Whether a later backup has overwritten it.
    pub is_overwritten: bool,
    /// When its media were first found missing.
    pub missing_since: Option<Moment>,
    /// Whether its history was deleted: only what differentials need is still known.
    pub is_forgotten: bool,
    /// Whether its database was not registered, but named by its path.
    pub is_by_path: bool,
    /// `expiration_date`: from then on its medium may be overwritten.
    pub expires: Option<Moment>,
}

/// A medium of a past backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastMedium {
    /// `family_sequence_number`, from 1.
    pub family: u32,
    /// `mirror`, from 0.
    pub mirror: u32,
    /// `physical_device_name`
    pub device: String,
    /// The minimum length of the medium if it has the set.
    pub end_bytes: Option<u64>,
    /// The mount point of its file system.
    pub mount_point: Option<PathBuf>,
}

impl PastBackup {
    /// Converts its times to another time zone, given as quarter hours from UTC: so that those of backups from several
    /// zones, or from both sides of a change to summer time, can be compared.
    pub fn set_time_zone(&mut self, time_zone: i32) {
        let minutes = time_zone.saturating_sub(self.time_zone).saturating_mul(15);
        for at in [&mut self.started, &mut self.finished, &mut self.expires]
            .into_iter()
            .flatten()
        {
            *at = at.plus_minutes(minutes);
        }
        self.time_zone = time_zone;
    }

    fn read(row: &Row<'_>) -> Result<Self, Error> {
        let doing = "reading the history";
        let text = |column: &str| -> Result<String, Error> {
            let value: Option<String> = row.get(column).doing(doing)?;
            Ok(value.unwrap_or_default())
        };
        let amount = |column: &str| -> Result<u64, Error> {
            let value: Option<i64> = row.get(column).doing(doing)?;
            Ok(value
                .and_then(|value| u64::try_from(value).ok())
                .unwrap_or(0))
        };
        let flag = |column: &str| -> Result<bool, Error> {
            let value: Option<bool> = row.get(column).doing(doing)?;
            Ok(value.unwrap_or(false))
        };
        Ok(Self {
            id: row.get("backup_set_id").doing(doing)?,
            set_guid: read(row, "backup_set_uuid", "an identity")?,
            database: text("database_name")?,
            of: provenance(row)?,
            kind: text("type")?,
            started: read(row, "backup_start_date", "a date")?,
            finished: read(row, "backup_finish_date", "a date")?,
            database_bytes: row
                .get::<_, Option<i64>>("database_bytes")
                .doing(doing)?
                .and_then(|bytes| u64::try_from(bytes).ok()),
            raw_bytes: amount("backup_size")?,
            stored_bytes: amount("compressed_backup_size")?,
            compression: text("compression")?,
            is_copy_only: flag("is_copy_only")?,
            is_damaged: flag("is_damaged")?,
            first_lsn: read(row, "first_lsn", "a log sequence number")?,
            last_lsn: read(row, "last_lsn", "a log sequence number")?,
            checkpoint_lsn: read(row, "checkpoint_lsn", "a log sequence number")?,
            base_guid: read(row, "differential_base_guid", "an identity")?,
            position: u32::try_from(amount("position")?).unwrap_or(0),
            devices: text("devices")?
                .split('\n')
                .filter(|device| !device.is_empty())
                .map(str::to_owned)
                .collect(),
            media_set_guid: read(row, "media_uuid", "an identity")?,
            media: Vec::new(),
            recovery_fork: read(row, "last_recovery_fork_guid", "an identity")?,
            time_zone: row
                .get::<_, Option<i32>>("time_zone")
                .doing(doing)?
                .unwrap_or(0),
            seconds: row
                .get::<_, Option<i64>>("duration_ms")
                .doing(doing)?
                .map(|ms| ms as f64 / 1000.0),
            is_overwritten: flag("is_overwritten")?,
            missing_since: read(row, "missing_since", "a date")?,
            is_forgotten: flag("is_forgotten")?,
            is_by_path: flag("is_by_path")?,
            expires: read(row, "expiration_date", "a date")?,
        })
    }
}

/// The database of a row with a column `first_path`. What the history lacks is empty.
pub(crate) fn provenance(row: &Row<'_>) -> Result<Provenance, Error> {
    let doing = "reading the history";
    let text = |column: &str| -> Result<String, Error> {
        let value: Option<String> = row.get(column).doing(doing)?;
        Ok(value.unwrap_or_default())
    };
    let guid = |column| -> Result<Guid, Error> {
        Ok(read(row, column, "an identity")?.unwrap_or(Guid::NIL))
    };
    Ok(Provenance {
        family_guid: guid("family_guid")?,
        database_guid: guid("database_guid")?,
        name: text("database_name")?,
        path: text("first_path")?,
        machine: text("machine_name")?,
        created_ns: None,
        at: None,
    })
}

/// The column `first_path` of rows of `own_backupset AS backupset`.
pub(crate) const FIRST_PATH: &str = "(SELECT physical_name FROM own_backupfile AS file \
     WHERE file.backup_set_id = backupset.backup_set_id ORDER BY file_number LIMIT 1) AS first_path";

impl Catalog {
    /// The backups of a database, or of all databases, oldest first. Excludes runs to `NUL`.
    ///
    /// # Errors
    /// [`Error::Sqlite`], [`Error::Stored`].
    pub fn past_backups(&self, database: Option<&str>) -> Result<Vec<PastBackup>, Error> {
        let doing = "reading the history";
        let mut statement = self
            .connection()
            .prepare_cached(&format!(
                "SELECT backupset.*, {FIRST_PATH}, \
                 (SELECT sum(file_size) FROM own_backupfile AS file \
                    WHERE file.backup_set_id = backupset.backup_set_id) AS database_bytes, \
                 concat_ws(':', compression_algorithm, compression_level) AS compression, \
                 (SELECT group_concat(physical_device_name, char(10)) FROM (\
                    SELECT physical_device_name FROM own_backupmediafamily AS family \
                    WHERE family.media_set_id = backupset.media_set_id AND mirror = 0 \
                    ORDER BY family_sequence_number)) AS devices, \
                 (SELECT media_uuid FROM own_backupmediaset AS media \
                    WHERE media.media_set_id = backupset.media_set_id) AS media_uuid, \
                 EXISTS (SELECT 1 FROM own_backupset AS later \
                    WHERE later.media_set_id = backupset.media_set_id \
                    AND later.position <= backupset.position \
                    AND later.backup_set_id > backupset.backup_set_id \
                    AND later.backup_finish_date >= backupset.backup_finish_date) \
                 AS is_overwritten \
                 FROM own_backupset AS backupset \
                 WHERE is_discarded = 0 AND (?1 IS NULL OR database_name = ?1 COLLATE NOCASE) \
                 ORDER BY backup_finish_date, backup_set_id"
            ))
            .doing(doing)?;
        let mut rows = statement.query([database]).doing(doing)?;
        let mut backups = Vec::new();
        while let Some(row) = rows.next().doing(doing)? {
            backups.push(PastBackup::read(row)?);
        }
        let mut media = self.past_media()?;
        for backup in &mut backups {
            backup.media = media.remove(&backup.id).unwrap_or_default();
        }
        Ok(backups)
    }

    /// The media of every set, by set number.
    fn past_media(&self) -> Result<HashMap<i64, Vec<PastMedium>>, Error> {
        let doing = "reading the media of the history";
        let mut statement = self
            .connection()
            .prepare_cached(
                "SELECT backup_set_id, family_sequence_number, mirror, physical_device_name, \
                 end_bytes, mount_point FROM own_backupset \
                 JOIN own_backupmediafamily USING (media_set_id) \
                 LEFT JOIN own_set_medium \
                 USING (backup_set_id, family_sequence_number, mirror) \
                 WHERE is_discarded = 0 ORDER BY family_sequence_number, mirror",
            )
            .doing(doing)?;
        let rows = statement.query_map([], |row| {
            let medium = PastMedium {
                family: row.get(1)?,
                mirror: row.get(2)?,
                device: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
                end_bytes: row
                    .get::<_, Option<i64>>(4)?
                    .and_then(|bytes| u64::try_from(bytes).ok()),
                mount_point: row.get::<_, Option<String>>(5)?.map(text_path),
            };
            Ok((row.get::<_, i64>(0)?, medium))
        });
        let mut media: HashMap<i64, Vec<PastMedium>> = HashMap::new();
        for row in rows.doing(doing)? {
            let (set, medium) = row.doing(doing)?;
            media.entry(set).or_default().push(medium);
        }
        Ok(media)
    }

    /// Records for some sets since when and why their media are missing, or that they exist again.
    /// The first record is kept.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn note_media(&mut self, sets: &[(i64, Option<String>)], at: Moment) -> Result<(), Error> {
        let doing = "noting which media are gone";
        let transaction = self.write(doing)?;
        for (id, reason) in sets {
            transaction
                .execute(
                    "UPDATE own_backupset SET missing_reason = ?2, \
                     missing_since = CASE WHEN ?2 IS NULL THEN NULL \
                     ELSE ifnull(missing_since, ?3) END WHERE backup_set_id = ?1",
                    params![id, reason, Stored(at)],
                )
                .doing(doing)?;
        }
        transaction.commit().doing(doing)
    }

    /// The sizes of the last backup of a kind (`D`, `I`) with an algorithm, before and after
    /// compression.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn last_sizes(
        &self,
        database: &str,
        kind: char,
        algorithm: &str,
    ) -> Result<Option<(u64, u64)>, Error> {
        let sizes: Option<(i64, i64)> = self
            .connection()
            .query_row(
                "SELECT backup_size, compressed_backup_size FROM own_backupset \
                 WHERE database_name = ?1 COLLATE NOCASE AND type = ?2 \
                 AND ifnull(compression_algorithm, 'NONE') = ?3 AND backup_size > 0 \
                 ORDER BY backup_set_id DESC LIMIT 1",
                params![database, kind.to_string(), algorithm],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()
            .doing("reading the history")?;
        Ok(sizes.and_then(|(raw, stored)| {
            Some((u64::try_from(raw).ok()?, u64::try_from(stored).ok()?))
        }))
    }
}

impl Catalog {
    /// Adds a page to `suspect_pages`, or increments its count.
    ///
    /// `event_type` is SQL Server's: 2 is a bad checksum.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn suspect_page(
        &mut self,
        database_id: i64,
        page: FilePage,
        event_type: u8,
        at: Moment,
    ) -> Result<(), Error> {
        let FilePage { file_id, page } = page;
        let page = i64::try_from(page).unwrap_or(i64::MAX);
        let doing = "recording a suspect page";
        let transaction = self.write(doing)?;
        let known = transaction
            .execute(
                "UPDATE suspect_pages SET error_count = error_count + 1, last_update_date = ?5 \
                 WHERE database_id = ?1 AND file_id = ?2 AND page_id = ?3 AND event_type = ?4",
                params![database_id, file_id.0, page, event_type, Stored(at)],
            )
            .doing(doing)?;
        if known == 0 {
            // As on SQL Server, the table is limited to a thousand rows.
            transaction
                .execute(
                    "INSERT INTO suspect_pages SELECT ?1, ?2, ?3, ?4, 1, ?5 \
                     WHERE (SELECT count(*) FROM suspect_pages) < 1000",
                    params![database_id, file_id.0, page, event_type, Stored(at)],
                )
                .doing(doing)?;
        }
        transaction.commit().doing(doing)
    }

    /// Records in `suspect_pages` that a page was restored: `event_type` 4. Does not add pages.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn page_restored(
        &mut self,
        database_id: i64,
        page: FilePage,
        at: Moment,
    ) -> Result<(), Error> {
        let number = i64::try_from(page.page).unwrap_or(i64::MAX);
        self.restored(database_id, page.file_id, number..=number, at)
    }

    /// As [`Self::page_restored`], for all pages of a file.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn file_restored(
        &mut self,
        database_id: i64,
        file_id: FileId,
        at: Moment,
    ) -> Result<(), Error> {
        self.restored(database_id, file_id, 0..=i64::MAX, at)
    }

    fn restored(
        &mut self,
        database_id: i64,
        file_id: FileId,
        pages: RangeInclusive<i64>,
        at: Moment,
    ) -> Result<(), Error> {
        let doing = "recording restored pages";
        let transaction = self.write(doing)?;
        // Damaged, restored and damaged again: the page keeps one row.
        transaction
            .execute(
                "DELETE FROM suspect_pages AS old WHERE database_id = ?1 AND file_id = ?2 \
                 AND page_id BETWEEN ?3 AND ?4 AND event_type = 4 \
                 AND EXISTS (SELECT 1 FROM suspect_pages AS new \
                    WHERE new.database_id = ?1 AND new.file_id = ?2 \
                    AND new.page_id = old.page_id AND new.event_type IN (1, 2, 3))",
                params![database_id, file_id.0, pages.start(), pages.end()],
            )
            .doing(doing)?;
        transaction
            .execute(
                "UPDATE suspect_pages SET event_type = 4, last_update_date = ?5 \
                 WHERE database_id = ?1 AND file_id = ?2 AND page_id BETWEEN ?3 AND ?4 \
                 AND event_type IN (1, 2, 3)",
                params![
                    database_id,
                    file_id.0,
                    pages.start(),
                    pages.end(),
                    Stored(at)
                ],
            )
            .doing(doing)?;
        transaction.commit().doing(doing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoredValue;
    use crate::history::tests::{backup, count, with};

    fn page(page: u64) -> FilePage {
        let file_id = FileId::PRIMARY;
        FilePage { file_id, page }
    }

    #[test]
    fn the_last_backup_of_a_kind_tells_its_sizes() {
        let mut catalog = Catalog::in_memory().unwrap();
        let first = with(
            backup("app", "2026-11-20 10:00:00", "D"),
            [("compressed_backup_size", StoredValue::from(500))],
        );
        catalog.record_backup(&first, None).unwrap();
        let second = backup("app", "2026-11-21 10:00:00", "D");
        catalog.record_backup(&second, None).unwrap();
        assert_eq!(
            catalog.last_sizes("APP", 'D', "ZSTD").unwrap(),
            Some((1000, 100))
        );
        assert_eq!(catalog.last_sizes("app", 'I', "ZSTD").unwrap(), None);
        assert_eq!(catalog.last_sizes("app", 'D', "NONE").unwrap(), None);
    }

    #[test]
    fn the_past_is_listed_with_its_devices() {
        let mut catalog = Catalog::in_memory().unwrap();
        catalog
            .record_backup(&backup("app", "2026-11-21 10:00:00", "I"), None)
            .unwrap();
        catalog
            .record_backup(&backup("app", "2026-11-20 10:00:00", "D"), None)
            .unwrap();
        catalog
            .record_backup(&backup("b", "2026-11-19 10:00:00", "D"), None)
            .unwrap();
        let past = catalog.past_backups(Some("app")).unwrap();
        let kinds: Vec<&str> = past.iter().map(|backup| backup.kind.as_str()).collect();
        assert_eq!(kinds, ["D", "I"]);
        assert_eq!(past[0].devices, ["/b/1.bak", "/b/2.bak"]);
        assert_eq!(past[0].compression, "ZSTD:LOW");
        assert_eq!(past[0].checkpoint_lsn, Some("39:992:1".parse().unwrap()));
        assert_eq!(catalog.past_backups(None).unwrap().len(), 3);
    }

    #[test]
    fn a_restored_page_keeps_one_row_and_only_a_suspect_one_has_any() {
        let mut catalog = Catalog::in_memory().unwrap();
        let at = "2026-11-20 10:00:00".parse().unwrap();
        for _ in 0..2 {
            catalog.suspect_page(5, page(7), 2, at).unwrap();
            catalog.page_restored(5, page(7), at).unwrap();
            catalog.page_restored(5, page(8), at).unwrap();
        }
        let rows: Vec<(i64, i64)> = catalog
            .connection()
            .prepare("SELECT page_id, event_type FROM suspect_pages")
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(rows, [(7, 4)]);
    }

    #[test]
    fn a_suspect_page_is_counted() {
        let mut catalog = Catalog::in_memory().unwrap();
        let at: Moment = "2026-11-21 10:00:00".parse().unwrap();
        for number in [7, 7, 8] {
            catalog.suspect_page(5, page(number), 2, at).unwrap();
        }
        assert_eq!(count(&catalog, "suspect_pages"), 2);
        let connection = catalog.connection();
        let errors: i64 = connection
            .query_row(
                "SELECT error_count FROM suspect_pages WHERE page_id = 7",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(errors, 2);
        for number in 0..1100 {
            catalog.suspect_page(6, page(number), 2, at).unwrap();
        }
        assert_eq!(count(&catalog, "suspect_pages"), 1000);
    }
}
