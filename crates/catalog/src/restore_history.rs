//! The restore history of `msdb`.

use rusqlite::params;
use windlass_base::Moment;

use crate::error::Doing;
use crate::history::find_or_insert;
use crate::record::BackupRecord;
use crate::value::Stored;
use crate::{Catalog, Error};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreType {
    /// A whole database.
    Database,
    Differential,
    Log,
    /// Files, or pages of files.
    File,
    /// Nothing: VERIFYONLY WITH LOADHISTORY.
    VerifyOnly,
}

impl RestoreType {
    /// SQL Server's letter.
    pub fn letter(self) -> &'static str {
        match self {
            Self::Database => "D",
            Self::Differential => "I",
            Self::Log => "L",
            Self::File => "F",
            Self::VerifyOnly => "V",
        }
    }
}

/// A row of `restorefile`.
#[derive(Debug, Clone)]
pub struct RestoreFileRecord {
    /// `file_number`
    pub file_number: u32,
    /// `destination_phys_name`
    pub path: String,
}

/// A row of `restorehistory`, with what was restored.
#[derive(Debug, Clone)]
pub struct RestoreRecord {
    /// The backup set; its rows are added if they are not in the history.
    pub backup: BackupRecord,
    /// `restore_date`
    pub restored: Moment,
    /// `destination_database_name`
    pub database_name: String,
    /// `user_name`
    pub user_name: String,
    /// `restore_type`
    pub restore_type: RestoreType,
    /// `replace`
    pub replace: bool,
    /// `recovery`
    pub recovery: bool,
    /// `restart`
    pub restart: bool,
    /// `stop_at`, local time
    pub stop_at: Option<String>,
    /// `stop_at_mark_name`
    pub stop_at_mark_name: Option<String>,
    /// `stop_before`
    pub stop_before: Option<bool>,
    /// `device_count`
    pub device_count: u32,
    pub files: Vec<RestoreFileRecord>,
}

impl Catalog {
    /// Adds a restore to the history and returns its `restore_history_id`.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn record_restore(&mut self, record: &RestoreRecord) -> Result<i64, Error> {
        let doing = "recording a restore";
        let transaction = self.write(doing)?;
        let backup_set_id = find_or_insert(&transaction, &record.backup)?;
        transaction
            .execute(
                "INSERT INTO restorehistory (restore_date, destination_database_name, user_name, \
                 backup_set_id, restore_type, \"replace\", recovery, restart, device_count, stop_at, \
                 stop_at_mark_name, stop_before) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                params![
                    Stored(record.restored),
                    record.database_name,
                    record.user_name,
                    backup_set_id,
                    record.restore_type.letter(),
                    record.replace,
                    record.recovery,
                    record.restart,
                    record.device_count,
                    record.stop_at,
                    record.stop_at_mark_name,
                    record.stop_before,
                ],
            )
            .doing(doing)?;
        let id = transaction.last_insert_rowid();
        for file in &record.files {
            transaction
                .execute(
                    "INSERT INTO restorefile (restore_history_id, file_number, \
                     destination_phys_name) VALUES (?1, ?2, ?3)",
                    params![id, file.file_number, file.path],
                )
                .doing(doing)?;
        }
        transaction.commit().doing(doing)?;
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_from_elsewhere_enters_the_history_with_its_restore() {
        let mut catalog = Catalog::in_memory().unwrap();
        let record = RestoreRecord {
            backup: crate::history::tests::sample(),
            restored: "2026-11-20 10:00:00".parse().unwrap(),
            database_name: "copy".to_owned(),
            user_name: "me".to_owned(),
            restore_type: RestoreType::Database,
            replace: false,
            recovery: true,
            restart: false,
            device_count: 2,
            stop_at: None,
            stop_at_mark_name: None,
            stop_before: None,
            files: vec![RestoreFileRecord {
                file_number: 1,
                path: "/d/copy.db".to_owned(),
            }],
        };
        assert_eq!(catalog.record_restore(&record).unwrap(), 1);
        assert_eq!(catalog.record_restore(&record).unwrap(), 2);
        let sets: i64 = catalog
            .connection()
            .query_row("SELECT count(*) FROM backupset", [], |row| row.get(0))
            .unwrap();
        assert_eq!(sets, 1, "the set is recorded once");
    }
}
