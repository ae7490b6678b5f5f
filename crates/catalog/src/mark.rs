//! The marks of transactions, as `msdb.dbo.logmarkhistory` shows them.

use rusqlite::params;
use windlass_base::Lsn;

use crate::error::Doing;
use crate::value::Stored;
use crate::{Catalog, Error};

/// A row of `logmarkhistory`.
#[derive(Debug, Clone)]
pub struct MarkRecord<'a> {
    pub database: &'a str,
    pub name: &'a str,
    pub description: &'a str,
    pub user_name: &'a str,
    /// Of the commit.
    pub lsn: Lsn,
    /// Local time of the commit.
    pub marked: &'a str,
}

impl Catalog {
    /// Records the mark of a committed transaction.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn record_mark(&mut self, mark: &MarkRecord<'_>) -> Result<(), Error> {
        self.connection()
            .execute(
                "INSERT INTO logmarkhistory (database_name, mark_name, description, user_name, lsn, mark_time) \
                 VALUES (?1, ?2, nullif(?3, ''), ?4, ?5, ?6)",
                params![
                    mark.database,
                    mark.name,
                    mark.description,
                    mark.user_name,
                    Stored(mark.lsn),
                    mark.marked,
                ],
            )
            .map(|_| ())
            .doing("recording the mark of a transaction")
    }
}
