//! The damage that is known of databases.
//!
//! Kept by the path of the database's first file, because a database that is backed up by its path is not
//! registered. A record stays until a check that goes as deep finds nothing, or the damaged part is replaced.

use std::ops::RangeInclusive;

use rusqlite::{Transaction, params};
use windlass_base::word::{Depth, Word as _};
use windlass_base::{FileId, FilePage, Moment};

use crate::error::Doing;
use crate::value::{Stored, read};
use crate::{Catalog, Error, Forgotten};

/// Maximum number of records kept per database, as of suspect pages.
const RECORDS_MAX: u32 = 1000;

/// What found the damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DamageSource {
    /// SQLite's check, or SQLite itself during a query.
    Check,
    /// The read of a page.
    Page(FilePage),
    /// The database was restored from a backup of a damaged one, or not completely.
    Restore,
}

impl DamageSource {
    fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Page(_) => "page",
            Self::Restore => RESTORE,
        }
    }

    fn page(self) -> Option<(FileId, i64)> {
        match self {
            Self::Page(FilePage { file_id, page }) => {
                Some((file_id, i64::try_from(page).unwrap_or(i64::MAX)))
            }
            Self::Check | Self::Restore => None,
        }
    }
}

const RESTORE: &str = "restore";

/// Damage to record.
#[derive(Debug, Clone)]
pub struct DamageRecord<'a> {
    /// Of the database's first file.
    pub path: &'a str,
    pub database: &'a str,
    pub found: Moment,
    pub source: DamageSource,
    /// How deep a check must go to refute it.
    pub depth: Depth,
    /// The number of the message that tells it.
    pub error_number: u32,
    /// Its text.
    pub message: String,
}

/// What is known of a damaged database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownDamage {
    /// Of the database's first file.
    pub path: String,
    pub database: String,
    /// When it was first found.
    pub found: Moment,
    /// The number and the text of the message about what was found first.
    pub error_number: u32,
    pub message: String,
    /// How much was found.
    pub count: u64,
}

/// Which damage of a database is no longer there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndedDamage {
    /// All: it has another content.
    All,
    /// All that was there before its restore began.
    BeforeRestore,
    /// What the restore of an earlier set of the sequence has brought.
    OfRestore,
    /// All that such a check would have found.
    FoundBy(Depth),
    /// That of some pages.
    Pages(FileId, RangeInclusive<u64>),
}

impl Catalog {
    /// Records damage; what is known already stays as it was found first.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn record_damage(&mut self, of: &DamageRecord<'_>) -> Result<(), Error> {
        let page = of.source.page();
        self.connection()
            .execute(
                "INSERT INTO own_damage (path, database_name, found, source, depth, error_number, message, \
                 file_id, page_id) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 \
                 WHERE (SELECT count(*) FROM own_damage WHERE path = ?1) < ?10 \
                 AND NOT EXISTS (SELECT 1 FROM own_damage WHERE path = ?1 AND source = ?4 AND depth = ?5 \
                 AND file_id IS ?8 AND page_id IS ?9)",
                params![
                    of.path,
                    of.database,
                    Stored(of.found),
                    of.source.name(),
                    of.depth.spelling(),
                    of.error_number,
                    of.message,
                    page.map(|(file_id, _)| file_id.0),
                    page.map(|(_, page)| page),
                    RECORDS_MAX,
                ],
            )
            .map(|_| ())
            .doing("recording damage")
    }

    /// What is known of each damaged database, ordered by path.
    ///
    /// # Errors
    /// [`Error::Sqlite`], [`Error::Stored`].
    pub fn known_damage(&self) -> Result<Vec<KnownDamage>, Error> {
        let doing = "reading the known damage";
        let mut statement = self
            .connection()
            .prepare_cached(
                "SELECT *, min(damage_id), count(*) AS findings FROM own_damage GROUP BY path ORDER BY path",
            )
            .doing(doing)?;
        let mut rows = statement.query([]).doing(doing)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().doing(doing)? {
            let found = read(row, "found", "a date")?.ok_or_else(|| Error::Stored {
                found: "NULL".to_owned(),
                expected: "a date",
            })?;
            all.push(KnownDamage {
                path: row.get("path").doing(doing)?,
                database: row.get("database_name").doing(doing)?,
                found,
                error_number: row.get("error_number").doing(doing)?,
                message: row.get("message").doing(doing)?,
                count: row.get::<_, i64>("findings").doing(doing)?.unsigned_abs(),
            });
        }
        Ok(all)
    }

    /// Forgets damage of the database at a path.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn end_damage(&mut self, path: &str, ended: &EndedDamage) -> Result<(), Error> {
        let nothing = (0, 0, 0);
        let (condition, (file_id, first, last)) = match ended {
            EndedDamage::All | EndedDamage::FoundBy(Depth::Full) => ("true", nothing),
            EndedDamage::BeforeRestore => ("source <> 'restore'", nothing),
            EndedDamage::OfRestore => ("source = 'restore'", nothing),
            EndedDamage::FoundBy(Depth::Quick) => ("depth = 'QUICK'", nothing),
            EndedDamage::Pages(file_id, pages) => {
                let number = |page: u64| i64::try_from(page).unwrap_or(i64::MAX);
                (
                    "file_id = ?2 AND page_id BETWEEN ?3 AND ?4",
                    (file_id.0, number(*pages.start()), number(*pages.end())),
                )
            }
        };
        let text = format!(
            "DELETE FROM own_damage WHERE path = ?1 AND ({condition}) AND ?2 + ?3 + ?4 IS NOT NULL"
        );
        self.connection()
            .execute(&text, params![path, file_id, first, last])
            .map(|_| ())
            .doing("forgetting damage")
    }
}

/// Forgets, together with all history of a database, the damage of one that is no longer registered: otherwise what
/// is known of a file that is gone would never end.
pub(crate) fn forget(transaction: &Transaction<'_>, which: Forgotten<'_>) -> Result<(), Error> {
    let Forgotten::Database(name) = which else {
        return Ok(());
    };
    transaction
        .execute(
            "DELETE FROM own_damage WHERE database_name = ?1 \
             AND NOT EXISTS (SELECT 1 FROM own_database WHERE name = ?1)",
            [name],
        )
        .map(|_| ())
        .doing("deleting history")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/d/app.db";

    fn found(source: DamageSource, depth: Depth) -> DamageRecord<'static> {
        DamageRecord {
            path: PATH,
            database: "app",
            found: "2026-11-20 08:00:00".parse().unwrap(),
            source,
            depth,
            error_number: 824,
            message: "no".to_owned(),
        }
    }

    fn page(page: u64) -> DamageSource {
        let file_id = FileId::PRIMARY;
        DamageSource::Page(FilePage { file_id, page })
    }

    /// What is left of all kinds of damage.
    fn left(ended: &EndedDamage) -> u64 {
        let mut catalog = Catalog::in_memory().unwrap();
        for record in [
            found(DamageSource::Check, Depth::Quick),
            found(DamageSource::Check, Depth::Full),
            found(page(7), Depth::Full),
            found(page(9), Depth::Full),
            found(page(9), Depth::Full),
            found(DamageSource::Restore, Depth::Full),
        ] {
            catalog.record_damage(&record).unwrap();
        }
        let all = catalog.known_damage().unwrap();
        assert_eq!((all.len(), all[0].count), (1, 5));
        catalog.end_damage("/other", &EndedDamage::All).unwrap();
        catalog.end_damage(PATH, ended).unwrap();
        let left = catalog.known_damage().unwrap();
        left.first().map_or(0, |left| left.count)
    }

    #[test]
    fn damage_stays_until_a_check_as_deep_finds_nothing_or_it_is_replaced() {
        assert_eq!(left(&EndedDamage::All), 0);
        assert_eq!(left(&EndedDamage::FoundBy(Depth::Quick)), 4);
        assert_eq!(left(&EndedDamage::FoundBy(Depth::Full)), 0);
        assert_eq!(left(&EndedDamage::Pages(FileId::PRIMARY, 8..=u64::MAX)), 4);
        assert_eq!(left(&EndedDamage::BeforeRestore), 1);
        assert_eq!(left(&EndedDamage::OfRestore), 4);
    }

    #[test]
    fn only_so_many_records_are_kept() {
        let mut catalog = Catalog::in_memory().unwrap();
        for number in 0..u64::from(RECORDS_MAX) + 5 {
            let record = found(page(number), Depth::Full);
            catalog.record_damage(&record).unwrap();
        }
        let known = catalog.known_damage().unwrap();
        assert_eq!(known[0].count, u64::from(RECORDS_MAX));
    }
}
