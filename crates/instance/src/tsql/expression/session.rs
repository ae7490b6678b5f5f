//! What expressions know of their session: clock, databases, identity, logins, the error that was caught.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use windlass_base::{Message, local_now};

use crate::{Identity, Principal};

/// The state of a session that a statement sees, the same from its start to its end.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) now: DateTime,
    pub(crate) utc: DateTime,
    pub(crate) database: String,
    /// Number and name of every database; empty if the statement does not ask.
    pub(crate) databases: Vec<(i64, String)>,
    /// The numbers of the databases that are not online, and their states.
    pub(crate) closed: Vec<(i64, &'static str)>,
    /// The numbers of the databases whose recovery model is FULL.
    pub(crate) full: Vec<i64>,
    pub(crate) identity: Identity,
    /// For whom the session acts.
    pub(crate) principal: Principal,
    /// All logins and roles; empty if the statement does not ask.
    pub(crate) principals: Vec<Known>,
    /// The error that the innermost CATCH handles.
    pub(crate) error: Option<Message>,
    /// `XACT_STATE()`
    pub(crate) transaction_state: i64,
}

/// A login or a server role.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) id: i64,
    pub(crate) sid: Vec<u8>,
    pub(crate) name: String,
    /// The numbers of its roles.
    pub(crate) roles: Vec<i64>,
}

impl Facts {
    pub(crate) fn new(identity: Identity, principal: Principal, database: String) -> Self {
        Self {
            now: local_now().datetime(),
            utc: Timestamp::now().to_zoned(TimeZone::UTC).datetime(),
            database,
            databases: Vec::new(),
            closed: Vec::new(),
            full: Vec::new(),
            identity,
            principal,
            principals: Vec::new(),
            error: None,
            transaction_state: 0,
        }
    }

    pub(super) fn named(&self, name: &str) -> Option<&(i64, String)> {
        let mut databases = self.databases.iter();
        databases.find(|(_, found)| super::collation::compare(found, name).is_eq())
    }

    /// The state of a database, as in `sys.databases`.
    pub(super) fn state_of(&self, number: i64) -> &'static str {
        let mut closed = self.closed.iter();
        let found = closed.find(|(found, _)| *found == number);
        found.map_or(
            windlass_catalog::DatabaseState::Online.name(),
            |(_, state)| state,
        )
    }

    /// The recovery model of a database, as in `sys.databases`.
    pub(super) fn recovery_of(&self, number: i64) -> &'static str {
        match self.full.contains(&number) {
            true => "FULL",
            false => "SIMPLE",
        }
    }

    /// Whether a database is online.
    pub(super) fn is_online(&self, number: i64) -> bool {
        !self.closed.iter().any(|(found, _)| *found == number)
    }

    pub(super) fn numbered(&self, number: i64) -> Option<&(i64, String)> {
        self.databases.iter().find(|(found, _)| *found == number)
    }
}
