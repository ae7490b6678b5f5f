//! Follows a SQLite database in WAL mode into a spool, and shows what a spool contains.

use std::path::Path;

use windlass_base::message::table;
use windlass_catalog::DatabaseRecord;
use windlass_source::sqlite::{self, Follower, SentAway};
pub use windlass_source::sqlite::{FollowOptions, FollowStatus, Following, Listed, Stop, WhenFull};

use crate::message_of::unreadable_file;
use crate::names::absolute;
use crate::operation::database::{known, usable};
use crate::{Failure, Session, Sink};

/// What a spool contains.
#[derive(Debug, Clone)]
pub struct Spooled {
    /// In order of time.
    pub listed: Vec<Listed>,
    /// Bytes behind the end that are no records.
    pub rest_bytes: u64,
}

impl Session {
    /// Follows the database in a file until the session is cancelled, or its spool fails. Calls `report` after every
    /// interval.
    ///
    /// # Errors
    /// The reason, in messages. What was captured until then stays.
    pub fn follow(
        &mut self,
        database: &Path,
        options: &FollowOptions,
        report: &mut dyn FnMut(&FollowStatus),
    ) -> Result<FollowStatus, Failure> {
        let path = absolute(database).map_err(|error| unreadable_file(database, &error))?;
        // Only the last folder is made: there may be nothing mounted where it should be.
        let above = windlass_io::directory::parent(&options.folder);
        std::fs::read_dir(&above).map_err(|error| unreadable_file(&above, &error))?;
        let mut follower = Follower::begin(&path, options)?;
        report(&follower.status());
        Ok(follower.run(&self.cancel_flag(), report)?)
    }
}

/// Keeps the log of a SQLite database from now on: its recovery model is FULL.
pub(crate) fn keep_log(
    session: &mut Session,
    name: &str,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let record = usable(session, name)?;
    let place = session.instance.place_of_log(&record);
    let folder = place.ok_or_else(|| Failure::from(table::log_needs_folder(&record.name)))?;
    if folder.is_dir() {
        return Ok(());
    }
    // The session's own connection would lose its locks, see `Session`.
    session.queries.release(&record.path);
    let begun = Follower::begin(&record.path, &FollowOptions::within(folder.clone()))
        .and_then(|mut follower| follower.finish());
    if let Err(error) = begun {
        sqlite::remove_spool(&folder)?;
        return Err(error.into());
    }
    sink.message(table::log_kept(&record.name, folder.display()));
    Ok(())
}

/// Keeps it no longer: the recovery model is SIMPLE.
pub(crate) fn forget_log(
    session: &mut Session,
    name: &str,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let record = known(session, name)?;
    if let Some(folder) = session.instance.kept_log(&record) {
        sqlite::remove_spool(&folder)?;
        sink.message(table::log_not_kept(&record.name));
    }
    Ok(())
}

impl Session {
    /// Sends the follower of a database away for as long as the value lives, because its file is replaced or deleted.
    /// Does nothing if its log is not kept.
    pub(crate) fn without_follower(
        &self,
        record: &DatabaseRecord,
    ) -> Result<Option<SentAway>, Failure> {
        let kept = self.instance.kept_log(record);
        Ok(kept.map(|folder| SentAway::ask(&folder)).transpose()?)
    }
}

/// What the spool in a folder contains.
///
/// # Errors
/// The reason, in messages.
pub fn spooled(folder: &Path) -> Result<Spooled, Failure> {
    let (listed, rest_bytes) = sqlite::list(folder)?;
    Ok(Spooled { listed, rest_bytes })
}
