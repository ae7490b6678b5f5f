//! What the history knows of the earlier backups of a database, whatever became of their media: what a new one must
//! not seem older than.

use windlass_base::{Lsn, Moment};

use crate::error::Doing;
use crate::past::{FIRST_PATH, provenance};
use crate::value::{Stored, read};
use crate::{Catalog, Error, Provenance};

const DOING: &str = "looking up earlier backups";

/// The latest of the earlier backups of a database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EarlierBackups {
    /// The highest LSN of a state.
    pub last_lsn: Lsn,
    /// The latest end, in seconds since 1970, UTC.
    pub finished: Option<i64>,
    /// The LSNs of the states with which a chain can begin or go on: not of `COPY_ONLY` backups.
    pub chain_lsns: Vec<Lsn>,
}

impl EarlierBackups {
    /// Whether a chain leads to a state from `first` on, and not behind `last`.
    pub fn lead_between(&self, first: Lsn, last: Option<Lsn>) -> bool {
        let is_between = |lsn: &Lsn| *lsn >= first && last.is_none_or(|last| *lsn <= last);
        self.chain_lsns.iter().any(is_between)
    }
}

impl Catalog {
    /// The highest LSN and the latest date of the backups of a database.
    ///
    /// # Errors
    /// [`Error::Sqlite`], [`Error::Stored`].
    pub fn earlier_backups(&self, of: &Provenance) -> Result<EarlierBackups, Error> {
        let mut statement = self
            .connection()
            .prepare_cached(&format!(
                "SELECT last_lsn, is_copy_only, backup_finish_date, time_zone, \
                 family_guid, database_guid, database_name, machine_name, {FIRST_PATH} \
                 FROM own_backupset AS backupset WHERE family_guid = ?1 AND is_discarded = 0"
            ))
            .doing(DOING)?;
        let mut rows = statement.query([Stored(of.family_guid)]).doing(DOING)?;
        let mut earlier = EarlierBackups::default();
        while let Some(row) = rows.next().doing(DOING)? {
            if !of.is_same_database(&provenance(row)?) {
                continue;
            }
            let last_lsn: Option<Lsn> = read(row, "last_lsn", "a log sequence number")?;
            let finished: Option<Moment> = read(row, "backup_finish_date", "a date")?;
            let time_zone: Option<i32> = row.get("time_zone").doing(DOING)?;
            let finished = finished.map(|at| at.utc_seconds(time_zone.unwrap_or(0)));
            let is_copy_only: Option<bool> = row.get("is_copy_only").doing(DOING)?;
            if is_copy_only != Some(true) {
                earlier.chain_lsns.extend(last_lsn);
            }
            earlier.last_lsn = earlier.last_lsn.max(last_lsn.unwrap_or(Lsn::ZERO));
            earlier.finished = earlier.finished.max(finished);
        }
        Ok(earlier)
    }
}
