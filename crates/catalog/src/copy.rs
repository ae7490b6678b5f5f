//! The copy queue: backups that must still be copied to other folders.
//!
//! A copy stays in the queue, across processes, until it is made; each failure postpones its next
//! attempt further.

use std::path::PathBuf;

use rusqlite::params;
use windlass_base::Moment;

use crate::error::Doing;
use crate::value::{Stored, path_text, read, text_path};
use crate::{Catalog, Error};

/// A pending copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedCopy {
    pub id: i64,
    /// The backup file.
    pub source: PathBuf,
    pub target: PathBuf,
    /// Whether to overwrite an existing file.
    pub overwrite: bool,
    pub attempts: u32,
    pub next_attempt: Option<Moment>,
    pub last_error: Option<String>,
}

impl Catalog {
    /// Queues a copy, due at once.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn queue_copy(
        &mut self,
        source: &std::path::Path,
        target: &std::path::Path,
        overwrite: bool,
        now: Moment,
    ) -> Result<i64, Error> {
        let connection = self.connection();
        connection
            .execute(
                "INSERT INTO own_copy (source, target, overwrite, queued, next_attempt) \
                 VALUES (?1, ?2, ?3, ?4, ?4)",
                params![path_text(source), path_text(target), overwrite, Stored(now)],
            )
            .doing("queueing a copy")?;
        Ok(connection.last_insert_rowid())
    }

    /// All pending copies, in the order in which they were queued, because log backups must arrive
    /// in order.
    ///
    /// # Errors
    /// [`Error::Sqlite`], [`Error::Stored`].
    pub fn queued_copies(&self) -> Result<Vec<QueuedCopy>, Error> {
        let doing = "listing copies";
        let mut statement = self
            .connection()
            .prepare_cached("SELECT * FROM own_copy ORDER BY copy_id")
            .doing(doing)?;
        let mut rows = statement.query([]).doing(doing)?;
        let mut copies = Vec::new();
        while let Some(row) = rows.next().doing(doing)? {
            copies.push(QueuedCopy {
                id: row.get("copy_id").doing(doing)?,
                source: text_path(row.get("source").doing(doing)?),
                target: text_path(row.get("target").doing(doing)?),
                overwrite: row.get("overwrite").doing(doing)?,
                attempts: row.get("attempts").doing(doing)?,
                next_attempt: read(row, "next_attempt", "a date")?,
                last_error: row.get("last_error").doing(doing)?,
            });
        }
        Ok(copies)
    }

    /// Removes a finished copy from the queue.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn drop_copy(&mut self, id: i64) -> Result<(), Error> {
        self.connection()
            .execute("DELETE FROM own_copy WHERE copy_id = ?1", [id])
            .map(|_| ())
            .doing("ending a copy")
    }

    /// Records that a copy failed, and the time of its next attempt.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn copy_failed(&mut self, id: i64, error: &str, next: Moment) -> Result<(), Error> {
        self.connection()
            .execute(
                "UPDATE own_copy SET attempts = attempts + 1, last_error = ?2, next_attempt = ?3 \
                 WHERE copy_id = ?1",
                params![id, error, Stored(next)],
            )
            .map(|_| ())
            .doing("noting a failed copy")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_stays_in_the_queue_until_it_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let now: Moment = "2026-11-21 10:00:00".parse().unwrap();
        let mut catalog = Catalog::open(folder.path()).unwrap();
        let id = catalog
            .queue_copy("/b/a.bak".as_ref(), "/c/a.bak".as_ref(), false, now)
            .unwrap();
        catalog.copy_failed(id, "no route", now).unwrap();
        drop(catalog);
        let mut catalog = Catalog::open(folder.path()).unwrap();
        let queued = catalog.queued_copies().unwrap();
        assert_eq!(queued[0].attempts, 1);
        assert_eq!(queued[0].last_error.as_deref(), Some("no route"));
        catalog.drop_copy(id).unwrap();
        assert!(catalog.queued_copies().unwrap().is_empty());
    }
}
