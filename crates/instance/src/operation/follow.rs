//! Follows a SQLite database in WAL mode into a spool, and shows what a spool contains.

use std::path::Path;

use windlass_base::message::table;
use windlass_source::sqlite::{self, Follower};
pub use windlass_source::sqlite::{FollowOptions, FollowStatus, Following, Listed, Stop};

use crate::message_of::os_error;
use crate::names::absolute;
use crate::{Failure, Session};

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
        let path = absolute(database)
            .map_err(|error| table::cannot_open_file(database.display(), os_error(&error)))?;
        let mut follower = Follower::begin(&path, options)?;
        report(&follower.status());
        Ok(follower.run(&self.cancel_flag(), report)?)
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
