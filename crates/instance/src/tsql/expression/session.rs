//! What expressions know of their session: clock, databases, identity, the error that was caught.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use windlass_base::{Message, local_now};

use crate::Identity;

/// The state of a session that a statement sees, the same from its start to its end.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) now: DateTime,
    pub(crate) utc: DateTime,
    pub(crate) database: String,
    /// Number and name of every database; empty if the statement does not ask.
    pub(crate) databases: Vec<(i64, String)>,
    /// The numbers of the databases that wait for a restore.
    pub(crate) restoring: Vec<i64>,
    pub(crate) identity: Identity,
    /// The error that the innermost CATCH handles.
    pub(crate) error: Option<Message>,
    /// `XACT_STATE()`
    pub(crate) transaction_state: i64,
}

impl Facts {
    pub(crate) fn new(identity: Identity, database: String) -> Self {
        Self {
            now: local_now().datetime(),
            utc: Timestamp::now().to_zoned(TimeZone::UTC).datetime(),
            database,
            databases: Vec::new(),
            restoring: Vec::new(),
            identity,
            error: None,
            transaction_state: 0,
        }
    }

    pub(super) fn named(&self, name: &str) -> Option<&(i64, String)> {
        let mut databases = self.databases.iter();
        databases.find(|(_, found)| super::collation::compare(found, name).is_eq())
    }

    pub(super) fn numbered(&self, number: i64) -> Option<&(i64, String)> {
        self.databases.iter().find(|(found, _)| *found == number)
    }
}
