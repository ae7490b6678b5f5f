//! Determines the base of a differential.
//!
//! A registered database has its base in its own row: the newest full backup, or the set restored
//! last. For any other, it is the newest full backup of that very database in the history.

use rusqlite::{Connection, Row, params};

use windlass_base::Guid;

use crate::error::Doing;
use crate::past::{FIRST_PATH, provenance};
use crate::record::BackedUp;
use crate::value::{Stored, read};
use crate::{Base, Catalog, Error, Provenance};

const DOING: &str = "looking up a differential base";

/// The sets from which differentials of registered databases count.
pub(crate) const REGISTERED_BASES: &str =
    "SELECT base_set_guid FROM own_database WHERE base_set_guid IS NOT NULL";

/// The newest set of each database from which its differentials can count.
pub(crate) const NEWEST_BASES: &str = "SELECT backup_set_uuid FROM (\
       SELECT backup_set_uuid, row_number() OVER (\
         PARTITION BY database_guid ORDER BY length(checkpoint_lsn) DESC, \
         checkpoint_lsn DESC, backup_set_id DESC\
       ) AS place FROM own_backupset \
       WHERE type = 'D' AND is_copy_only = 0 AND is_discarded = 0 \
       AND ifnull(is_damaged, 0) = 0) WHERE place = 1";

/// Makes a full backup its database's base if it is newer than the current one.
pub(crate) fn propose(connection: &Connection, of: &BackedUp) -> Result<bool, Error> {
    let doing = "storing a differential base";
    connection
        .execute(
            // The base of another family is none.
            "UPDATE own_database SET family_guid = ?2, \
             base_set_guid = CASE WHEN ifnull(family_guid, ?2) = ?2 THEN base_set_guid END \
             WHERE database_id = ?1",
            params![of.database_id, Stored(of.of.family_guid)],
        )
        .doing(doing)?;
    let known = in_force(connection, of.database_id, &of.of)?;
    // LSNs of different recovery forks say nothing about each other: the database is in this one.
    let fork_of_known = match known {
        Some(base) => fork_of(connection, base.set_guid)?,
        None => None,
    };
    let is_of_other_fork = of
        .fork
        .zip(fork_of_known)
        .is_some_and(|(own, known)| own != known);
    let known = known.filter(|_| !is_of_other_fork);
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

/// The recovery fork of a set in the history.
fn fork_of(connection: &Connection, set_guid: Guid) -> Result<Option<Guid>, Error> {
    let mut statement = connection
        .prepare_cached(
            "SELECT last_recovery_fork_guid AS fork FROM own_backupset WHERE backup_set_uuid = ?1",
        )
        .doing(DOING)?;
    let mut rows = statement.query([Stored(set_guid)]).doing(DOING)?;
    match rows.next().doing(DOING)? {
        Some(row) => read(row, "fork", "an identity"),
        None => Ok(None),
    }
}

fn in_force(
    connection: &Connection,
    database_id: i64,
    of: &Provenance,
) -> Result<Option<Base>, Error> {
    let mut statement = connection
        .prepare_cached(
            "SELECT base_set_guid AS guid, base_lsn AS lsn, base_date AS date FROM own_database \
             WHERE database_id = ?1 AND base_set_guid IS NOT NULL",
        )
        .doing(DOING)?;
    let mut rows = statement.query([database_id]).doing(DOING)?;
    if let Some(row) = rows.next().doing(DOING)? {
        return base(row);
    }
    // Positions beyond 64 bits are text, which sorts after all integers; longer text has more
    // digits.
    let mut statement = connection
        .prepare_cached(&format!(
            "SELECT backup_set_uuid AS guid, checkpoint_lsn AS lsn, backup_finish_date AS date, \
             family_guid, database_guid, database_name, machine_name, {FIRST_PATH} \
             FROM own_backupset AS backupset WHERE family_guid = ?1 AND type = 'D' \
             AND is_copy_only = 0 AND is_discarded = 0 AND ifnull(is_damaged, 0) = 0 \
             ORDER BY length(checkpoint_lsn) DESC, checkpoint_lsn DESC, backup_set_id DESC"
        ))
        .doing(DOING)?;
    let mut rows = statement.query([Stored(of.family_guid)]).doing(DOING)?;
    while let Some(row) = rows.next().doing(DOING)? {
        if of.is_same_database(&provenance(row)?) {
            return base(row);
        }
    }
    Ok(None)
}

fn base(row: &Row<'_>) -> Result<Option<Base>, Error> {
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
}

impl Catalog {
    /// The current differential base of a database, registered or not (a negative number).
    ///
    /// # Errors
    /// [`Error::Sqlite`], [`Error::Stored`].
    pub fn base_of(&self, database_id: i64, of: &Provenance) -> Result<Option<Base>, Error> {
        in_force(self.connection(), database_id, of)
    }

    /// The GUIDs of all sets that may be a database's base: their digests must be kept.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn base_guids(&self) -> Result<Vec<String>, Error> {
        let mut statement = self
            .connection()
            .prepare_cached(&format!("{REGISTERED_BASES} UNION {NEWEST_BASES}"))
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

    fn of(database_guid: Guid) -> Provenance {
        Provenance {
            created_ns: None,
            at: None,
            family_guid: Guid::NIL,
            database_guid,
            name: "app".to_owned(),
            path: "/d/app.db".to_owned(),
            machine: "host".to_owned(),
        }
    }

    fn full(of: &Provenance, vlf: u32) -> (BackupRecord, Lsn) {
        let lsn: Lsn = format!("{vlf}:1:1").parse().unwrap();
        let columns = [
            ("database_guid", StoredValue::from(of.database_guid)),
            ("family_guid", StoredValue::from(of.family_guid)),
            ("database_name", StoredValue::from(of.name.as_str())),
            ("machine_name", StoredValue::from(of.machine.as_str())),
            ("checkpoint_lsn", StoredValue::from(lsn)),
            ("is_discarded", StoredValue::from(false)),
        ];
        let mut record = with(sample(), columns);
        for (name, value) in &mut record.files[0] {
            if *name == "physical_name" {
                *value = StoredValue::from(of.path.as_str());
            }
        }
        (record, lsn)
    }

    fn backed_up(
        of: &Provenance,
        (record, lsn): &(BackupRecord, Lsn),
        database_id: i64,
    ) -> BackedUp {
        BackedUp {
            database_id,
            of: of.clone(),
            base: Some(Base {
                set_guid: record.set_guid,
                lsn: *lsn,
                finished: "2026-11-20 10:00:00".parse().unwrap(),
            }),
            fork: None,
        }
    }

    /// Registered and not, and with LSNs on both sides of 64 bits.
    #[test]
    fn of_two_full_backups_the_newer_one_is_the_base_whichever_ends_last() {
        for is_registered in [true, false] {
            for (older, newer) in [(39, 40), (9000, 4_000_000_000), (9999, 10_000)] {
                let mut catalog = Catalog::in_memory().unwrap();
                let own = of(Guid::random());
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
                            made_for: Guid::NIL,
                        })
                        .unwrap(),
                };
                let (first, second) = (full(&own, newer), full(&own, older));
                for (full, expected) in [(&first, true), (&second, false)] {
                    let of = backed_up(&own, full, id);
                    let is_base = catalog.record_backup(&full.0, Some(&of)).unwrap();
                    assert_eq!(is_base, expected);
                    let base = catalog.base_of(id, &own).unwrap().unwrap();
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
        let own = of(Guid::random());
        let copy = with(
            full(&own, 50).0,
            [("is_copy_only", StoredValue::from(true))],
        );
        let nul = with(
            full(&own, 60).0,
            [("is_discarded", StoredValue::from(true))],
        );
        let (base, _) = full(&own, 40);
        for record in [&base, &copy, &nul] {
            catalog.record_backup(record, None).unwrap();
        }
        let found = catalog.base_of(-1, &own).unwrap().unwrap();
        assert_eq!(found.set_guid, base.set_guid);
    }

    #[test]
    fn a_copy_has_no_base_in_the_backups_of_the_original() {
        let mut catalog = Catalog::in_memory().unwrap();
        let own = of(Guid::random());
        let (base, _) = full(&own, 40);
        catalog.record_backup(&base, None).unwrap();
        let copy = Provenance {
            database_guid: Guid::random(),
            path: "/test/app.db".to_owned(),
            ..own.clone()
        };
        assert_eq!(catalog.base_of(-1, &copy).unwrap(), None);
        // A newer one of the copy takes no place of the original's.
        let (newer, _) = full(&copy, 50);
        catalog.record_backup(&newer, None).unwrap();
        let of = |of: &Provenance| catalog.base_of(-1, of).unwrap().map(|base| base.set_guid);
        assert_eq!(of(&own), Some(base.set_guid));
        assert_eq!(of(&copy), Some(newer.set_guid));
        let restored = Provenance {
            database_guid: Guid::random(),
            ..own
        };
        assert_eq!(of(&restored), Some(base.set_guid));
    }
}
