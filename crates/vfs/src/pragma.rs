//! Pragmas with a different meaning on an engine database.
//!
//! SQLite asks the VFS of the main (or named) database first. A pragma answered here never reaches
//! SQLite's own code, so the answer must describe the actual behaviour.

use windlass_base::PAGE_BYTES;

use crate::connection::Connection;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// SQLite handles it itself.
    PassOn,
    /// Handled; the text is the only row of the result, if there is one.
    Done(Option<String>),
}

/// Answers `PRAGMA name` or `PRAGMA name = value`.
pub(crate) fn answer(connection: &Connection, name: &str, value: Option<&str>) -> Answer {
    match name.to_ascii_lowercase().as_str() {
        // The engine's log makes transactions atomic and durable. SQLite's journal only serves
        // ROLLBACK, and stays in memory, whatever is requested.
        "journal_mode" => Answer::Done(Some("memory".to_owned())),
        // Locks like SQLite's do not exist, so none can be kept.
        "locking_mode" => Answer::Done(Some("normal".to_owned())),
        // Ignored, as SQLite does for any database that already has pages.
        "page_size" if value.is_some_and(|value| value.parse() != Ok(PAGE_BYTES)) => {
            Answer::Done(None)
        }
        "windlass_last_error" => Answer::Done(connection.last_error().map(str::to_owned)),
        _ => Answer::PassOn,
    }
}
