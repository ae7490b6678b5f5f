//! Deletes backup history, but no backups.
//!
//! SQL Server keeps the base of differentials in the database. Here it is in the history, so the sets from which
//! differentials count are hidden instead of deleted.

use rusqlite::Transaction;
use windlass_base::Moment;

use crate::base::{NEWEST_BASES, REGISTERED_BASES};
use crate::error::Doing;
use crate::{Catalog, Error};

/// Which rows of the history to delete.
#[derive(Debug, Clone, Copy)]
pub enum Forgotten<'a> {
    /// Backups that finished, and restores that were made, before then.
    Before(Moment),
    Database(&'a str),
}

impl Catalog {
    /// Deletes rows of the history and returns the number of deleted backup sets. Those from which differentials
    /// count, or further ones will, are only hidden; of a database that is not registered, a deletion by name hides
    /// none.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn forget_history(&mut self, which: Forgotten<'_>) -> Result<u64, Error> {
        let doing = "deleting history";
        let transaction = self.write(doing)?;
        let (sets, restores) = match which {
            Forgotten::Before(_) => ("backup_finish_date < ?1", "restore_date < ?1"),
            Forgotten::Database(_) => (
                "database_name = ?1 COLLATE NOCASE",
                "destination_database_name = ?1 COLLATE NOCASE",
            ),
        };
        let parameter = match which {
            Forgotten::Before(moment) => moment.to_string(),
            Forgotten::Database(name) => name.to_owned(),
        };
        let forgotten = hide_bases(&transaction, which, sets, &parameter)?;
        let all = format!("(SELECT backup_set_id FROM own_backupset WHERE {sets})");
        let sets =
            format!("(SELECT backup_set_id FROM own_backupset WHERE is_forgotten = 0 AND {sets})");
        let restores = format!(
            "(SELECT restore_history_id FROM restorehistory \
             WHERE {restores} OR backup_set_id IN {all})"
        );
        for (table, column, list) in [
            ("restorefile", "restore_history_id", &restores),
            ("restorefilegroup", "restore_history_id", &restores),
            ("restorehistory", "restore_history_id", &restores),
            ("own_backupfile", "backup_set_id", &sets),
            ("own_set_medium", "backup_set_id", &sets),
            ("own_backupfilegroup", "backup_set_id", &sets),
        ] {
            transaction
                .execute(
                    &format!("DELETE FROM {table} WHERE {column} IN {list}"),
                    [&parameter],
                )
                .doing(doing)?;
        }
        transaction
            .execute(
                &format!("DELETE FROM own_backupset WHERE backup_set_id IN {sets}"),
                [&parameter],
            )
            .doing(doing)?;
        let marks = match which {
            Forgotten::Before(_) => "mark_time < ?1",
            Forgotten::Database(_) => "database_name = ?1",
        };
        transaction
            .execute(
                &format!("DELETE FROM logmarkhistory WHERE {marks}"),
                [&parameter],
            )
            .doing(doing)?;
        forget_empty_media(&transaction)?;
        crate::run::forget(&transaction, which, &parameter)?;
        crate::damage::forget(&transaction, which)?;
        transaction.commit().doing(doing)?;
        Ok(forgotten)
    }
}

/// Hides, among the sets of a condition, those that must stay, and nothing else. Returns how many were shown before.
fn hide_bases(
    transaction: &Transaction<'_>,
    which: Forgotten<'_>,
    sets: &str,
    parameter: &str,
) -> Result<u64, Error> {
    let doing = "deleting history";
    let bases = match which {
        Forgotten::Before(_) => format!("{REGISTERED_BASES} UNION {NEWEST_BASES}"),
        Forgotten::Database(_) => REGISTERED_BASES.to_owned(),
    };
    let text = format!("SELECT count(*) FROM own_backupset WHERE is_forgotten = 0 AND {sets}");
    let shown: i64 = transaction
        .query_row(&text, [parameter], |row| row.get(0))
        .doing(doing)?;
    let text = format!(
        "UPDATE own_backupset SET is_forgotten = backup_set_uuid IN ({bases} \
         UNION SELECT differential_base_guid FROM own_backupset \
         WHERE NOT ifnull({sets}, 0) AND differential_base_guid IS NOT NULL) WHERE {sets}"
    );
    transaction.execute(&text, [parameter]).doing(doing)?;
    Ok(shown.unsigned_abs())
}

fn forget_empty_media(transaction: &Transaction<'_>) -> Result<(), Error> {
    for table in ["own_backupmediafamily", "own_backupmediaset"] {
        transaction
            .execute(
                &format!(
                    "DELETE FROM {table} WHERE media_set_id NOT IN \
                     (SELECT media_set_id FROM own_backupset)"
                ),
                [],
            )
            .doing("deleting history")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::tests::{backup, count};

    #[test]
    fn old_history_goes_and_takes_its_media_along() {
        let mut catalog = Catalog::in_memory().unwrap();
        for day in 10..15 {
            let date = format!("2026-11-{day} 10:00:00");
            catalog
                .record_backup(&backup("app", &date, "D"), None)
                .unwrap();
        }
        let until = "2026-11-12 10:00:00".parse().unwrap();
        assert_eq!(
            catalog.forget_history(Forgotten::Before(until)).unwrap(),
            2,
            "the twelfth itself stays"
        );
        for (table, rows) in [
            ("backupset", 3),
            ("backupfile", 3),
            ("backupfilegroup", 3),
            ("backupmediaset", 3),
            ("backupmediafamily", 6),
        ] {
            assert_eq!(count(&catalog, table), rows, "{table}");
        }
        catalog
            .record_backup(&backup("other", "2026-11-20 10:00:00", "D"), None)
            .unwrap();
        assert_eq!(
            catalog.forget_history(Forgotten::Database("APP")).unwrap(),
            3
        );
        assert_eq!(count(&catalog, "backupmediaset"), 1);
    }
}
