//! The registered databases.

use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension as _, Row, params};
use windlass_base::{Guid, Lsn, Moment};

use crate::error::Doing;
use crate::value::{Stored, path_text, read, text_path};
use crate::{Catalog, Error};

/// The first number for databases that are not system databases.
pub const FIRST_USER_DATABASE_ID: i64 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseState {
    Online = 0,
    /// A restore has started and waits for further backups, or for recovery.
    Restoring = 1,
    /// The same, and it is read meanwhile.
    Standby = 2,
    /// Its files are whole, but nothing opens them here: they are SQL Server's.
    Offline = 6,
}

impl DatabaseState {
    /// SQL Server's name in `state_desc`.
    pub fn name(self) -> &'static str {
        match self {
            // As SQL Server; that it is in standby is another column.
            Self::Online | Self::Standby => "ONLINE",
            Self::Restoring => "RESTORING",
            Self::Offline => "OFFLINE",
        }
    }
}

/// How a database was registered, which determines what `DROP DATABASE` may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The file existed and was attached.
    Attached = 0,
    /// This instance created the file: by a restore, CREATE DATABASE or an import.
    Restored = 1,
    /// A restore wrote its files, which are SQL Server's.
    SqlServer = 2,
}

/// The base of a differential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Base {
    /// Identity of the backup set.
    pub set_guid: Guid,
    /// Its checkpoint.
    pub lsn: Lsn,
    pub finished: Moment,
}

/// A registered database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseRecord {
    /// 0 lets [`Catalog::register`] choose the next number.
    pub database_id: i64,
    /// Compared case-insensitively.
    pub name: String,
    /// The logical name of its file.
    pub logical_name: String,
    /// Its absolute path; if it has several files, the first data file.
    pub path: PathBuf,
    /// The log file of a page engine database; `None` for a SQLite file.
    pub log_path: Option<PathBuf>,
    /// Whether its file may lack a SQLite header, because it was attached or restored with `AS_IS`.
    pub is_as_is: bool,
    /// The GUID shared with its restored copies, if known.
    pub family_guid: Option<Guid>,
    pub state: DatabaseState,
    pub origin: Origin,
    /// When it was registered.
    pub create_date: Moment,
    /// The last full backup that was not copy-only, or the set restored last.
    pub base: Option<Base>,
    /// The identity of this registration, which the files that were made for it carry.
    pub made_for: Guid,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRecord {
    /// Its number within the database.
    pub file_id: u32,
    pub is_log: bool,
    /// Its name within the database.
    pub logical_name: String,
    /// Absolute.
    pub path: PathBuf,
}

const COLUMNS: &str = "database_id, name, logical_name, path, family_guid, state, origin, \
                       create_date, base_set_guid, base_lsn, base_date, log_path, is_as_is, \
                       made_for";

impl Catalog {
    /// All registered databases, ordered by number.
    ///
    /// # Errors
    /// [`Error::Sqlite`], [`Error::Stored`].
    pub fn databases(&self) -> Result<Vec<DatabaseRecord>, Error> {
        let mut statement = self
            .connection()
            .prepare_cached(&format!(
                "SELECT {COLUMNS} FROM own_database ORDER BY database_id"
            ))
            .doing("listing databases")?;
        let mut rows = statement.query([]).doing("listing databases")?;
        let mut records = Vec::new();
        while let Some(row) = rows.next().doing("listing databases")? {
            records.push(record_of(row)?);
        }
        Ok(records)
    }

    /// The database of that name.
    ///
    /// # Errors
    /// [`Error::Sqlite`], [`Error::Stored`].
    pub fn database(&self, name: &str) -> Result<Option<DatabaseRecord>, Error> {
        self.find("name = ?1", name)
    }

    /// The database whose file is `path`, which must be absolute.
    ///
    /// # Errors
    /// [`Error::Sqlite`], [`Error::Stored`].
    pub fn database_at(&self, path: &Path) -> Result<Option<DatabaseRecord>, Error> {
        self.find(
            "path = ?1 OR log_path = ?1 \
             OR database_id IN (SELECT database_id FROM own_file WHERE path = ?1)",
            &path_text(path),
        )
    }

    fn find(&self, condition: &str, value: &str) -> Result<Option<DatabaseRecord>, Error> {
        self.connection()
            .query_row(
                &format!("SELECT {COLUMNS} FROM own_database WHERE {condition}"),
                [value],
                |row| Ok(record_of(row)),
            )
            .optional()
            .doing("looking up a database")?
            .transpose()
    }

    /// Registers a database and returns its number.
    ///
    /// # Errors
    /// [`Error::NameTaken`], [`Error::PathTaken`], [`Error::Sqlite`].
    pub fn register(&mut self, record: &DatabaseRecord) -> Result<i64, Error> {
        self.register_with_files(record, &[])
    }

    /// Registers a database of several files; see [`Catalog::register`].
    ///
    /// # Errors
    /// Those of [`Catalog::register`] and [`Catalog::set_files`].
    pub fn register_with_files(
        &mut self,
        record: &DatabaseRecord,
        files: &[FileRecord],
    ) -> Result<i64, Error> {
        let transaction = self.write("registering a database")?;
        let taken: Option<(String, String)> = transaction
            .query_row(
                "SELECT name, path FROM own_database WHERE name = ?1 OR path = ?2 \
                 ORDER BY name = ?1 DESC",
                [&record.name, &path_text(&record.path)],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()
            .doing("registering a database")?;
        if let Some((name, path)) = taken {
            return Err(if name.eq_ignore_ascii_case(&record.name) {
                Error::NameTaken { name }
            } else {
                Error::PathTaken {
                    path: text_path(path),
                    database: name,
                }
            });
        }
        let next: i64 = transaction
            .query_row(
                "SELECT max(ifnull(max(database_id) + 1, ?1), ?1) FROM own_database",
                [FIRST_USER_DATABASE_ID],
                |row| row.get(0),
            )
            .doing("registering a database")?;
        let chosen = DatabaseRecord {
            database_id: if record.database_id > 0 {
                record.database_id
            } else {
                next
            },
            ..record.clone()
        };
        put(&transaction, &chosen)?;
        put_files(&transaction, chosen.database_id, files)?;
        transaction.commit().doing("registering a database")?;
        Ok(chosen.database_id)
    }

    /// Replaces the stored files of a registered database of several files.
    ///
    /// # Errors
    /// [`Error::Sqlite`], also if a file belongs to another database.
    pub fn set_files(&mut self, database_id: i64, files: &[FileRecord]) -> Result<(), Error> {
        let doing = "storing the files of a database";
        let transaction = self.write(doing)?;
        put_files(&transaction, database_id, files)?;
        transaction.commit().doing(doing)
    }

    /// The files of a page engine database or of one of SQL Server, by number; empty for a SQLite file.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn files(&self, database_id: i64) -> Result<Vec<FileRecord>, Error> {
        let doing = "listing the files of a database";
        let mut statement = self
            .connection()
            .prepare_cached(
                "SELECT file_id, is_log, name, path FROM own_file WHERE database_id = ?1 \
                 ORDER BY file_id",
            )
            .doing(doing)?;
        let rows = statement.query_map([database_id], |row| {
            Ok(FileRecord {
                file_id: row.get(0)?,
                is_log: row.get(1)?,
                logical_name: row.get(2)?,
                path: text_path(row.get(3)?),
            })
        });
        rows.doing(doing)?
            .collect::<rusqlite::Result<_>>()
            .doing(doing)
    }

    /// Stores changes of a registered database, found by its number.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn update(&mut self, record: &DatabaseRecord) -> Result<(), Error> {
        let transaction = self.write("changing a database's entry")?;
        put(&transaction, record)?;
        transaction.commit().doing("changing a database's entry")
    }

    /// Removes a database; false if it was not registered.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn unregister(&mut self, name: &str) -> Result<bool, Error> {
        let doing = "removing a database's entry";
        let transaction = self.write(doing)?;
        let files = "DELETE FROM own_file WHERE database_id IN \
                     (SELECT database_id FROM own_database WHERE name = ?1)";
        transaction.execute(files, [name]).doing(doing)?;
        let removed = transaction
            .execute("DELETE FROM own_database WHERE name = ?1", [name])
            .doing(doing)?;
        transaction.commit().doing(doing)?;
        Ok(removed > 0)
    }
}

fn put_files(
    transaction: &rusqlite::Connection,
    database_id: i64,
    files: &[FileRecord],
) -> Result<(), Error> {
    let doing = "storing the files of a database";
    transaction
        .execute("DELETE FROM own_file WHERE database_id = ?1", [database_id])
        .doing(doing)?;
    for file in files {
        transaction
            .execute(
                "INSERT INTO own_file VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    database_id,
                    file.file_id,
                    file.is_log,
                    file.logical_name,
                    path_text(&file.path)
                ],
            )
            .doing(doing)?;
    }
    Ok(())
}

fn put(connection: &rusqlite::Connection, record: &DatabaseRecord) -> Result<(), Error> {
    connection
        .execute(
            &format!(
                "INSERT OR REPLACE INTO own_database ({COLUMNS}) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
            ),
            params![
                record.database_id,
                record.name,
                record.logical_name,
                path_text(&record.path),
                Stored(record.family_guid),
                record.state as i64,
                record.origin as i64,
                Stored(record.create_date),
                Stored(record.base.map(|base| base.set_guid)),
                Stored(record.base.map(|base| base.lsn)),
                Stored(record.base.map(|base| base.finished)),
                record.log_path.as_deref().map(path_text),
                record.is_as_is,
                Stored(record.made_for),
            ],
        )
        .map(|_| ())
        .doing("storing a database's entry")
}

fn record_of(row: &Row<'_>) -> Result<DatabaseRecord, Error> {
    let text = |column: &str| {
        row.get::<_, String>(column)
            .doing("reading a database's entry")
    };
    let number = |column: &str| {
        row.get::<_, i64>(column)
            .doing("reading a database's entry")
    };
    let stored = |found: String, expected| Error::Stored { found, expected };
    let base = match (
        read::<Guid>(row, "base_set_guid", "an identity")?,
        read::<Lsn>(row, "base_lsn", "a log sequence number")?,
        read::<Moment>(row, "base_date", "a date")?,
    ) {
        (Some(set_guid), Some(lsn), Some(finished)) => Some(Base {
            set_guid,
            lsn,
            finished,
        }),
        _ => None,
    };
    Ok(DatabaseRecord {
        database_id: number("database_id")?,
        name: text("name")?,
        logical_name: text("logical_name")?,
        path: text_path(text("path")?),
        log_path: row
            .get::<_, Option<String>>("log_path")
            .doing("reading a database's entry")?
            .map(text_path),
        is_as_is: number("is_as_is")? != 0,
        family_guid: read(row, "family_guid", "an identity")?,
        state: match number("state")? {
            0 => DatabaseState::Online,
            1 => DatabaseState::Restoring,
            2 => DatabaseState::Standby,
            6 => DatabaseState::Offline,
            other => return Err(stored(other.to_string(), "a state")),
        },
        origin: match number("origin")? {
            0 => Origin::Attached,
            1 => Origin::Restored,
            2 => Origin::SqlServer,
            other => return Err(stored(other.to_string(), "an origin")),
        },
        create_date: read(row, "create_date", "a date")?
            .ok_or_else(|| stored("NULL".to_owned(), "a date"))?,
        base,
        made_for: read(row, "made_for", "an identity")?
            .ok_or_else(|| stored("NULL".to_owned(), "an identity"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str, path: &str) -> DatabaseRecord {
        DatabaseRecord {
            database_id: 0,
            name: name.to_owned(),
            logical_name: name.to_owned(),
            path: PathBuf::from(path),
            log_path: None,
            is_as_is: true,
            family_guid: Some(Guid::random()),
            state: DatabaseState::Online,
            origin: Origin::Attached,
            create_date: "2026-11-20 10:00:00".parse().unwrap(),
            base: None,
            made_for: Guid::random(),
        }
    }

    #[test]
    fn databases_are_numbered_from_five_and_found_in_any_case() {
        let mut catalog = Catalog::in_memory().unwrap();
        assert_eq!(
            catalog.register(&record("Sales", "/d/sales.db")).unwrap(),
            5
        );
        assert_eq!(catalog.register(&record("app", "/d/app.db")).unwrap(), 6);
        let found = catalog.database("SALES").unwrap().unwrap();
        assert_eq!(found.name, "Sales");
        assert_eq!(
            catalog
                .database_at(Path::new("/d/app.db"))
                .unwrap()
                .unwrap()
                .name,
            "app"
        );
        assert_eq!(catalog.databases().unwrap().len(), 2);
        assert!(catalog.unregister("sales").unwrap());
        assert!(!catalog.unregister("sales").unwrap());
    }

    #[test]
    fn a_name_and_a_file_belong_to_one_database() {
        let mut catalog = Catalog::in_memory().unwrap();
        catalog.register(&record("Sales", "/d/sales.db")).unwrap();
        assert!(matches!(
            catalog.register(&record("SALES", "/d/other.db")),
            Err(Error::NameTaken { .. })
        ));
        assert!(matches!(
            catalog.register(&record("other", "/d/sales.db")),
            Err(Error::PathTaken { database, .. }) if database == "Sales"
        ));
    }

    #[test]
    fn every_field_survives_storing() {
        let mut catalog = Catalog::in_memory().unwrap();
        let mut written = record("Sales", "/d/sales.db");
        written.database_id = catalog.register(&written).unwrap();
        written.state = DatabaseState::Restoring;
        written.origin = Origin::Restored;
        written.base = Some(Base {
            set_guid: Guid::random(),
            lsn: "4294967295:1:1".parse().unwrap(),
            finished: "2026-11-20 10:00:01".parse().unwrap(),
        });
        catalog.update(&written).unwrap();
        assert_eq!(catalog.database("sales").unwrap().unwrap(), written);
    }

    #[test]
    fn programs_that_register_at_once_wait_for_each_other() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let folder = folder.path();
                scope.spawn(move || {
                    let mut catalog = Catalog::open(folder).unwrap();
                    for number in 0..15 {
                        let name = format!("d{thread}_{number}");
                        catalog
                            .register(&record(&name, &format!("/{name}")))
                            .unwrap();
                    }
                });
            }
        });
        let databases = Catalog::open(folder.path()).unwrap().databases().unwrap();
        assert_eq!(databases.len(), 90);
        assert_eq!(
            databases.last().unwrap().database_id,
            94,
            "numbered without gaps"
        );
    }
}
