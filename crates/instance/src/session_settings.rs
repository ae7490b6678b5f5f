//! The settings of a session, which its statements change.

use std::time::Duration;

/// The settings that `SET` and `DBCC TRACEON` change.
#[expect(clippy::struct_excessive_bools, reason = "each is a setting")]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Settings {
    /// `SET NOCOUNT ON`
    pub(crate) hides_counts: bool,
    /// `SET LOCK_TIMEOUT`, for the databases that statements open apart from queries.
    pub(crate) lock_timeout: Option<Duration>,
    /// `SET XACT_ABORT ON`
    pub(crate) aborts_transactions: bool,
    /// `SET IMPLICIT_TRANSACTIONS ON`
    pub(crate) begins_transactions: bool,
    /// `SET CURSOR_CLOSE_ON_COMMIT ON`
    pub(crate) closes_cursors: bool,
    /// `SET NOEXEC ON`
    pub(crate) skips_statements: bool,
    /// `DBCC TRACEON (3004)`: backups of the page engine print their phases.
    pub(crate) traces_phases: bool,
    /// `DBCC TRACEON (3213)`: backups print their buffer configuration.
    pub(crate) traces_buffers: bool,
    /// `DBCC TRACEON (3604)` or `(3605)`: traces are sent as messages.
    pub(crate) tells_traces: bool,
}

impl Settings {
    /// Whether the phases of an engine backup are printed.
    pub(crate) fn reports_phases(self) -> bool {
        self.traces_phases && self.tells_traces
    }
}
