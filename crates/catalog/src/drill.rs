//! The ledger of drills: restores that were made to prove that backups can be restored.

use std::time::Duration;

use rusqlite::params;
use windlass_base::Moment;

use crate::error::Doing;
use crate::value::Stored;
use crate::{Catalog, Error};

/// A drill and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrillRecord {
    pub database: String,
    pub began: Moment,
    /// The state that was restored: a time, as far as it is known.
    pub restored_to: Option<String>,
    /// The sets that were restored, in order.
    pub backup_sets: String,
    /// Of all files together.
    pub database_bytes: u64,
    /// From the first look at the media to the database that can be opened.
    pub restore: Option<Duration>,
    /// The name of the check's depth, and how long it took.
    pub check: Option<(String, Duration)>,
    pub query: Option<String>,
    /// The first value of the query's first row.
    pub answer: Option<String>,
    /// The number of the message that tells why nothing was proven; 0 if it was.
    pub error_number: u32,
    pub message: Option<String>,
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

impl Catalog {
    /// Adds a drill to the ledger.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn record_drill(&mut self, of: &DrillRecord) -> Result<(), Error> {
        self.connection()
            .execute(
                "INSERT INTO own_drill (database_name, drill_date, restored_to, backup_sets, database_bytes, \
                 restore_ms, check_depth, check_ms, query, answer, error_number, message) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                params![
                    of.database,
                    Stored(of.began),
                    of.restored_to,
                    of.backup_sets,
                    i64::try_from(of.database_bytes).unwrap_or(i64::MAX),
                    of.restore.map(milliseconds),
                    of.check.as_ref().map(|(depth, _)| depth),
                    of.check.as_ref().map(|(_, time)| milliseconds(*time)),
                    of.query,
                    of.answer,
                    of.error_number,
                    of.message,
                ],
            )
            .map(|_| ())
            .doing("recording a drill")
    }

    /// The place of a database's last drill in the ledger, whatever came of it; `None` if it has none.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn last_drill(&self, database: &str) -> Result<Option<i64>, Error> {
        self.connection()
            .query_row(
                "SELECT max(rowid) FROM own_drill WHERE database_name = ?1",
                [database],
                |row| row.get(0),
            )
            .doing("reading the ledger of drills")
    }

    /// When the last drill of a database proved it, as local time; `None` if none has.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn last_proof(&self, database: &str) -> Result<Option<String>, Error> {
        self.connection()
            .query_row(
                "SELECT max(drill_date) FROM own_drill WHERE database_name = ?1 AND error_number = 0",
                [database],
                |row| row.get(0),
            )
            .doing("reading the ledger of drills")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_drill_that_succeeded_is_a_proof() {
        let mut catalog = Catalog::in_memory().unwrap();
        let mut record = DrillRecord {
            database: "app".to_owned(),
            began: "2026-11-20 10:00:00".parse().unwrap(),
            restored_to: None,
            backup_sets: String::new(),
            database_bytes: 0,
            restore: None,
            check: None,
            query: None,
            answer: None,
            error_number: 3241,
            message: Some("damaged".to_owned()),
        };
        catalog.record_drill(&record).unwrap();
        assert_eq!(catalog.last_proof("APP").unwrap(), None);
        assert_eq!(catalog.last_drill("APP").unwrap(), Some(1));
        assert_eq!(catalog.last_drill("other").unwrap(), None);
        record.error_number = 0;
        record.check = Some(("full".to_owned(), Duration::from_millis(7)));
        catalog.record_drill(&record).unwrap();
        let last = catalog.last_proof("APP").unwrap();
        assert_eq!(last.as_deref(), Some("2026-11-20 10:00:00"));
        let shown: (i64, String) = catalog
            .connection()
            .query_row(
                "SELECT count(*), max(check_depth) FROM windlass_drill",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap();
        assert_eq!(shown, (2, "full".to_owned()));
    }
}
