//! Determines the base of a differential.
//!
//! A registered database has its base in its own row: the newest full backup, or the set restored
//! last. For any other, it is the newest full backup of the same file in the history, else of its
//! family.

use rusqlite::{Connection, OptionalExtension as _, params};
use windlass_base::Guid;

use crate::error::Doing;
use crate::record::BackedUp;
use crate::value::{Stored, read};
use crate::{Base, Catalog, Error};

const DOING: &str = "looking up a differential base";

/// Makes a full backup its database's base if it is newer than the current one.
pub(crate) fn propose(connection: &Connection, of: &BackedUp) -> Result<bool, Error> {
    let doing = "storing a differential base";
    connection
        .execute(
            "UPDATE own_database SET family_guid = ?2 WHERE database_id = ?1",
            params![of.database_id, Stored(of.family_guid)],
        )
        .doing(doing)?;
    let known = in_force(connection, of.database_id, of.database_guid, of.family_guid)?;
    let is_newer = |base: &Base| known.is_none_or(|known| known.lsn < base.lsn);
    let Some(base) = of.base.filter(is_newer) else {
        return Ok(false);
    };
    connection
        .execute(
            "UPDATE own_database SET base_set_guid = ?2, base_lsn = ?3, base_date = ?4 \
             WHERE database_id = ?1",
            params![
                of.database_id,
                Stored(base.set_guid),
                Stored(base.lsn),
                Stored(base.finished)
            ],
        )
        .doing(doing)?;
    Ok(true)
}

fn in_force(
    connection: &Connection,
    database_id: i64,
    database_guid: Guid,
    family_guid: Guid,
) -> Result<Option<Base>, Error> {
    let own = query(
        connection,
        "SELECT base_set_guid AS guid, base_lsn AS lsn, base_date AS date FROM own_database \
         WHERE database_id = ?1 AND base_set_guid IS NOT NULL",
        &[&database_id],
    )?;
    if own.is_some() {
        return Ok(own);
    }
    // Positions beyond 64 bits are text, which sorts after all integers; longer text has more
    // digits.
    for (column, guid) in [
        ("database_guid", database_guid),
        ("family_guid", family_guid),
    ] {
        let newest = query(
            connection,
            &format!(
                "SELECT backup_set_uuid AS guid, checkpoint_lsn AS lsn, backup_finish_date AS date \
                 FROM own_backupset WHERE {column} = ?1 AND type = 'D' AND is_copy_only = 0 \
                 AND is_discarded = 0 ORDER BY length(checkpoint_lsn) DESC, checkpoint_lsn DESC, backup_set_id DESC LIMIT 1"
            ),
            &[&Stored(guid)],
        )?;
        if newest.is_some() {
            return Ok(newest);
        }
    }
    Ok(None)
}

fn query(
    connection: &Connection,
    text: &str,
    parameters: &[&dyn rusqlite::ToSql],
) -> Result<Option<Base>, Error> {
    connection
        .query_row(text, parameters, |row| {
            Ok((|| {
                let stored = (
                    read(row, "guid", "an identity")?,
                    read(row, "lsn", "a log sequence number")?,
                    read(row, "date", "a date")?,
                );
                let (Some(set_guid), Some(lsn), Some(finished)) = stored else {
                    return Ok(None);
                };
                Ok(Some(Base {
                    set_guid,
                    lsn,
                    finished,
                }))
            })())
        })
        .optional()
        .doing(DOING)?
        .transpose()
        .map(Option::flatten)
}

impl Catalog {
    /// The current differential base of a database, registered or not (a negative number).
    ///
    /// # Errors
    /// [`Error::Sqlite`], [`Error::Stored`].
    pub fn base_of(
        &self,
        database_id: i64,
        database_guid: Guid,
        family_guid: Guid,
    ) -> Result<Option<Base>, Error> {
        in_force(self.connection(), database_id, database_guid, family_guid)
    }

    /// The GUIDs of all sets that may be a database's base: their digests must be kept.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn base_guids(&self) -> Result<Vec<String>, Error> {
        let mut statement = self
            .connection()
            .prepare_cached(
                "SELECT base_set_guid FROM own_database WHERE base_set_guid IS NOT NULL \
                 UNION SELECT backup_set_uuid FROM (\
                   SELECT backup_set_uuid, row_number() OVER (\
                     PARTITION BY database_guid ORDER BY length(checkpoint_lsn) DESC, \
                     checkpoint_lsn DESC, backup_set_id DESC\
                   ) AS place FROM own_backupset \
                   WHERE type = 'D' AND is_copy_only = 0 AND is_discarded = 0) WHERE place = 1",
            )
            .doing(DOING)?;
        let rows = statement.query_map([], |row| row.get(0)).doing(DOING)?;
        rows.collect::<rusqlite::Result<_>>().doing(DOING)
    }
}

#[cfg(test)]
mod tests {
    use windlass_base::Lsn;

    use super::*;
    use crate::history::tests::{sample, with};
    use crate::{BackupRecord, DatabaseRecord, DatabaseState, Origin, StoredValue};

    fn full(database_guid: Guid, vlf: u32) -> (BackupRecord, Lsn) {
        let lsn: Lsn = format!("{vlf}:1:1").parse().unwrap();
        let columns = [
            ("database_guid", StoredValue::from(database_guid)),
            ("family_guid", StoredValue::from(database_guid)),
            ("checkpoint_lsn", StoredValue::from(lsn)),
            ("is_discarded", StoredValue::from(false)),
        ];
        (with(sample(), columns), lsn)
    }

    fn backed_up(own: Guid, (record, lsn): &(BackupRecord, Lsn), database_id: i64) -> BackedUp {
        BackedUp {
            database_id,
            database_guid: own,
            family_guid: own,
            base: Some(Base {
                set_guid: record.set_guid,
                lsn: *lsn,
                finished: "2026-11-20 10:00:00".parse().unwrap(),
            }),
        }
    }

    /// Registered and not, and with LSNs on both sides of 64 bits.
    #[test]
    fn of_two_full_backups_the_newer_one_is_the_base_whichever_ends_last() {
        for is_registered in [true, false] {
            for (older, newer) in [(39, 40), (9000, 4_000_000_000), (9999, 10_000)] {
                let mut catalog = Catalog::in_memory().unwrap();
                let own = Guid::random();
                let id = match is_registered {
                    false => -1,
                    true => catalog
                        .register(&DatabaseRecord {
                            database_id: 0,
                            name: "app".to_owned(),
                            logical_name: "app".to_owned(),
                            path: "/d/app.db".into(),
                            log_path: None,
                            is_as_is: false,
                            family_guid: None,
                            state: DatabaseState::Online,
                            origin: Origin::Attached,
                            create_date: "2026-11-20 10:00:00".parse().unwrap(),
                            base: None,
                            made_for: own,
                        })
                        .unwrap(),
                };
                let (first, second) = (full(own, newer), full(own, older));
                for (full, expected) in [(&first, true), (&second, false)] {
                    let of = backed_up(own, full, id);
                    let is_base = catalog.record_backup(&full.0, Some(&of)).unwrap();
                    assert_eq!(is_base, expected);
                    let base = catalog.base_of(id, own, own).unwrap().unwrap();
                    assert_eq!(base.set_guid, first.0.set_guid);
                }
                let guids = catalog.base_guids().unwrap();
                assert_eq!(guids, [first.0.set_guid.to_string()]);
            }
        }
    }

    #[test]
    fn what_was_discarded_or_copied_only_is_no_base() {
        let mut catalog = Catalog::in_memory().unwrap();
        let own = Guid::random();
        let copy = with(full(own, 50).0, [("is_copy_only", StoredValue::from(true))]);
        let nul = with(full(own, 60).0, [("is_discarded", StoredValue::from(true))]);
        let (base, _) = full(own, 40);
        for record in [&base, &copy, &nul] {
            catalog.record_backup(record, None).unwrap();
        }
        let found = catalog.base_of(-1, own, own).unwrap().unwrap();
        assert_eq!(found.set_guid, base.set_guid);
    }
}
