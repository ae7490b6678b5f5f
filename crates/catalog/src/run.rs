//! Results of runs: failed backups and verifications.

use rusqlite::{Params, Transaction, params};
use windlass_base::{Guid, Moment};

use crate::error::Doing;
use crate::value::{Stored, read};
use crate::{Catalog, Error, Forgotten};

/// Maximum number of failures kept per database; older ones are deleted.
const FAILURES_MAX: u32 = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureRecord {
    pub database: String,
    /// The operation in capitals: `BACKUP DATABASE`.
    pub operation: String,
    pub failed: Moment,
    /// The number of its first error.
    pub error_number: u32,
    /// Its text.
    pub message: String,
    /// Whether the database was not registered, but named by its path.
    pub is_by_path: bool,
    /// Where its first file was, as its backups say it; `None` in what older versions have recorded. Databases of one
    /// name are told apart by it.
    pub path: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failures {
    pub count: u64,
    pub last: FailureRecord,
    /// Whether no backup of the database has finished since.
    pub is_latest: bool,
}

/// How much of a set was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Every byte against its checksums; an encrypted set without its key.
    Checksums,
    /// Every byte: decrypted, decompressed, and compared with the set's totals.
    Content,
    /// The set was restored to a database.
    Restored,
}

impl Depth {
    /// Its stored and displayed form.
    pub fn name(self) -> &'static str {
        match self {
            Self::Checksums => "checksums",
            Self::Content => "content",
            Self::Restored => "restored",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        let all = [Self::Checksums, Self::Content, Self::Restored];
        all.into_iter().find(|depth| depth.name() == name)
    }
}

/// The verification of a set.
#[derive(Debug, Clone, Copy)]
pub struct VerificationRecord<'a> {
    pub set: Guid,
    pub database: &'a str,
    /// When it ended.
    pub at: Moment,
    pub depth: Depth,
    /// The number of the message that tells the damage; 0 for none.
    pub error_number: u32,
    /// The files that were read, and their state.
    pub media: &'a str,
}

/// A verification as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    pub set: Guid,
    pub at: Moment,
    pub depth: Depth,
    /// The number of the message that tells the damage; 0 for none.
    pub error_number: u32,
    /// The files that were read, and their state.
    pub media: String,
}

impl Catalog {
    /// Records a failed backup.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn record_failure(&mut self, failure: &FailureRecord) -> Result<(), Error> {
        let doing = "recording a failure";
        let transaction = self.write(doing)?;
        transaction
            .execute(
                "INSERT INTO own_failure \
                 (database_name, operation, failed, error_number, message, is_by_path, path, after_set_id) \
                 SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ifnull(max(backup_set_id), 0) FROM own_backupset",
                params![
                    failure.database,
                    failure.operation,
                    Stored(failure.failed),
                    failure.error_number,
                    failure.message,
                    failure.is_by_path,
                    failure.path
                ],
            )
            .doing(doing)?;
        transaction
            .execute(
                "DELETE FROM own_failure WHERE database_name = ?1 AND path IS ?2 AND failure_id NOT IN (\
                 SELECT failure_id FROM own_failure WHERE database_name = ?1 AND path IS ?2 \
                 ORDER BY failure_id DESC LIMIT ?3)",
                params![failure.database, failure.path, FAILURES_MAX],
            )
            .doing(doing)?;
        transaction.commit().doing(doing)
    }

    /// The failures of each database that has any, in the order of their last ones. A database is what is at one path;
    /// where that is not known, what has one name.
    ///
    /// A backup proves that a database no longer fails if it is of the same file, or if both are of a registered
    /// database of this name, which may have moved. The name alone is not enough: several files can share one, and the
    /// success of one would hide that another has no backup.
    ///
    /// # Errors
    /// [`Error::Sqlite`], [`Error::Stored`].
    pub fn failures(&self) -> Result<Vec<Failures>, Error> {
        let doing = "reading the failures";
        let mut statement = self
            .connection()
            .prepare_cached(
                "SELECT *, max(failure_id) AS last_id, count(*) AS failures, NOT EXISTS (\
                   SELECT 1 FROM own_backupset AS later \
                   WHERE later.is_discarded = 0 AND later.backup_set_id > own_failure.after_set_id \
                   AND later.backup_finish_date >= own_failure.failed \
                   AND (later.database_name = own_failure.database_name COLLATE NOCASE \
                     AND (own_failure.path IS NULL OR NOT (own_failure.is_by_path OR later.is_by_path)) \
                     OR EXISTS (SELECT 1 FROM own_backupfile AS file \
                       WHERE file.backup_set_id = later.backup_set_id \
                       AND file.physical_name = own_failure.path))) AS is_latest \
                 FROM own_failure GROUP BY path, CASE WHEN path IS NULL THEN lower(database_name) END \
                 ORDER BY last_id",
            )
            .doing(doing)?;
        let mut rows = statement.query([]).doing(doing)?;
        let mut failures = Vec::new();
        while let Some(row) = rows.next().doing(doing)? {
            let failed = read(row, "failed", "a date")?.ok_or_else(|| Error::Stored {
                found: "NULL".to_owned(),
                expected: "a date",
            })?;
            failures.push(Failures {
                count: row.get::<_, i64>("failures").doing(doing)?.unsigned_abs(),
                last: FailureRecord {
                    database: row.get("database_name").doing(doing)?,
                    operation: row.get("operation").doing(doing)?,
                    failed,
                    error_number: row.get("error_number").doing(doing)?,
                    message: row.get("message").doing(doing)?,
                    is_by_path: row.get("is_by_path").doing(doing)?,
                    path: row.get("path").doing(doing)?,
                },
                is_latest: row.get("is_latest").doing(doing)?,
            });
        }
        Ok(failures)
    }

    /// Records the verification of a set.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn record_verification(&mut self, of: &VerificationRecord<'_>) -> Result<(), Error> {
        self.connection()
            .execute(
                "INSERT INTO own_verification \
                 (backup_set_uuid, database_name, verified, depth, error_number, media) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    Stored(of.set),
                    of.database,
                    Stored(of.at),
                    of.depth.name(),
                    of.error_number,
                    of.media
                ],
            )
            .map(|_| ())
            .doing("recording a verification")
    }

    /// When a set was last verified on media in this very state, if it was found valid then.
    ///
    /// # Errors
    /// [`Error::Sqlite`], [`Error::Stored`].
    pub fn valid_on(&self, set: Guid, media: &str) -> Result<Option<Moment>, Error> {
        let mut valid = None;
        let mut damaged_at: Option<Depth> = None;
        for one in self.verifications_where("backup_set_uuid = ?1", params![Stored(set)])? {
            if one.media != media {
                continue;
            }
            if one.error_number != 0 {
                damaged_at = Some(one.depth);
                continue;
            }
            valid = Some(one.at);
            // Checksums do not refute what was found in the content.
            damaged_at = damaged_at.filter(|depth| *depth > one.depth);
        }
        Ok(valid.filter(|_| damaged_at.is_none()))
    }

    /// The verifications of all sets, the oldest first.
    ///
    /// # Errors
    /// [`Error::Sqlite`], [`Error::Stored`].
    pub fn verifications(&self) -> Result<Vec<Verification>, Error> {
        self.verifications_where("true", params![])
    }

    fn verifications_where(
        &self,
        condition: &str,
        parameters: impl Params,
    ) -> Result<Vec<Verification>, Error> {
        let doing = "reading the verifications";
        let mut statement = self
            .connection()
            .prepare_cached(&format!(
                "SELECT * FROM own_verification WHERE {condition} ORDER BY verification_id"
            ))
            .doing(doing)?;
        let mut rows = statement.query(parameters).doing(doing)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().doing(doing)? {
            let depth: String = row.get("depth").doing(doing)?;
            let set = read(row, "backup_set_uuid", "an identity")?;
            let at = read(row, "verified", "a date")?;
            let (Some(set), Some(at), Some(depth)) = (set, at, Depth::of_name(&depth)) else {
                continue;
            };
            all.push(Verification {
                set,
                at,
                depth,
                error_number: row.get("error_number").doing(doing)?,
                media: row.get("media").doing(doing)?,
            });
        }
        Ok(all)
    }
}

/// Deletes failures and verifications together with the history.
pub(crate) fn forget(
    transaction: &Transaction<'_>,
    which: Forgotten<'_>,
    parameter: &str,
) -> Result<(), Error> {
    for (table, date, further) in [
        ("own_failure", "failed", ""),
        // What is known of a set that stays is not forgotten.
        (
            "own_verification",
            "verified",
            "AND backup_set_uuid NOT IN (SELECT backup_set_uuid FROM own_backupset)",
        ),
    ] {
        let condition = match which {
            Forgotten::Before(_) => format!("{date} < ?1"),
            Forgotten::Database(_) => "database_name = ?1".to_owned(),
        };
        transaction
            .execute(
                &format!("DELETE FROM {table} WHERE {condition} {further}"),
                [parameter],
            )
            .doing("deleting history")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::tests::sample;

    fn failure(database: &str, failed: &str, error_number: u32) -> FailureRecord {
        FailureRecord {
            database: database.to_owned(),
            operation: "BACKUP DATABASE".to_owned(),
            failed: failed.parse().unwrap(),
            error_number,
            message: "no".to_owned(),
            is_by_path: false,
            path: None,
        }
    }

    /// Of a database that is not registered.
    fn failure_at(path: &str, failed: &str) -> FailureRecord {
        FailureRecord {
            is_by_path: true,
            path: Some(path.to_owned()),
            ..failure("app", failed, 3201)
        }
    }

    #[test]
    fn the_last_failure_counts_until_a_backup_is_finished_after_it() {
        let mut catalog = Catalog::in_memory().unwrap();
        let last = failure("APP", "2026-11-20 09:00:00", 3202);
        for failure in [&failure("app", "2026-11-20 08:00:00", 3201), &last] {
            catalog.record_failure(failure).unwrap();
        }
        let known = catalog.failures().unwrap();
        assert_eq!((known.len(), known[0].count), (1, 2));
        assert!(known[0].is_latest && known[0].last == last);
        // It finished at ten.
        catalog.record_backup(&sample(), None).unwrap();
        assert!(!catalog.failures().unwrap()[0].is_latest);
        catalog.forget_history(Forgotten::Database("app")).unwrap();
        assert!(catalog.failures().unwrap().is_empty());
    }

    #[test]
    fn a_success_of_another_file_of_the_name_hides_no_failure() {
        let mut catalog = Catalog::in_memory().unwrap();
        // The backup is of '/d/app.db', and finished at ten.
        let here = failure_at("/d/app.db", "2026-11-20 08:00:00");
        let there = failure_at("/other/app.db", "2026-11-20 08:30:00");
        // A registered database has moved.
        let moved = FailureRecord {
            is_by_path: false,
            ..failure_at("/old/app.db", "2026-11-20 09:00:00")
        };
        for failure in [&here, &there, &here, &moved] {
            catalog.record_failure(failure).unwrap();
        }
        let is_failing = |catalog: &Catalog| -> Vec<(u64, bool)> {
            let known = catalog.failures().unwrap().into_iter();
            known.map(|one| (one.count, one.is_latest)).collect()
        };
        assert_eq!(is_failing(&catalog), [(1, true), (2, true), (1, true)]);
        catalog.record_backup(&sample(), None).unwrap();
        assert_eq!(is_failing(&catalog), [(1, true), (2, false), (1, false)]);
        assert_eq!(catalog.failures().unwrap()[0].last, there);
    }

    #[test]
    fn only_so_many_failures_are_kept() {
        let mut catalog = Catalog::in_memory().unwrap();
        for _ in 0..FAILURES_MAX + 5 {
            let failure = failure("app", "2026-11-20 08:00:00", 3201);
            catalog.record_failure(&failure).unwrap();
        }
        assert_eq!(catalog.failures().unwrap()[0].count, FAILURES_MAX.into());
    }

    fn verification(
        set: Guid,
        media: &str,
        depth: Depth,
        error_number: u32,
    ) -> VerificationRecord<'_> {
        VerificationRecord {
            set,
            database: "app",
            at: "2026-11-20 08:00:00".parse().unwrap(),
            depth,
            error_number,
            media,
        }
    }

    #[test]
    fn a_set_is_valid_only_on_the_media_that_were_read_and_until_they_fail() {
        let mut catalog = Catalog::in_memory().unwrap();
        let set = Guid::random();
        for (media, error, here) in [
            ("there", 0, false),
            ("here", 0, true),
            ("there", 3189, true),
            ("here", 3189, false),
        ] {
            let record = verification(set, media, Depth::Content, error);
            catalog.record_verification(&record).unwrap();
            let valid = catalog.valid_on(set, "here").unwrap();
            assert_eq!(valid.is_some(), here, "{media} {error}");
        }
    }
}
