//! Pragmas with a different meaning on an engine database.
//!
//! SQLite asks the VFS of the main (or named) database first. A pragma answered here never reaches
//! SQLite's own code, so the answer must describe the actual behaviour.

use windlass_base::PAGE_BYTES;
use windlass_engine::{Mark, RecoveryModel};

use crate::connection::Connection;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// SQLite handles it itself.
    PassOn,
    /// Handled; the text is the only row of the result, and the name of its column. A column without a name, which is what
    /// no text would give, is taken for a lack of memory by programs.
    Done(String),
    /// Refused, for this reason.
    Refused(String),
}

/// Answers `PRAGMA name` or `PRAGMA name = value`.
pub(crate) fn answer(connection: &mut Connection, name: &str, value: Option<&str>) -> Answer {
    match name.to_ascii_lowercase().as_str() {
        // The engine's log makes transactions atomic and durable. SQLite's journal only serves
        // ROLLBACK, and stays in memory, whatever is requested.
        "journal_mode" => Answer::Done("memory".to_owned()),
        // Locks like SQLite's do not exist, so none can be kept.
        "locking_mode" => Answer::Done("normal".to_owned()),
        // Ignored, as SQLite does for any database that already has pages.
        "page_size" if value.is_some_and(|value| value.parse() != Ok(PAGE_BYTES)) => {
            Answer::Done(PAGE_BYTES.to_string())
        }
        "windlass_mark" => mark(connection, value),
        "windlass_last_error" => {
            Answer::Done(connection.last_error().unwrap_or_default().to_owned())
        }
        _ => Answer::PassOn,
    }
}

/// `PRAGMA windlass_mark = 'name'`, with a description after a line break: the mark of the next commit that changes
/// something; an empty one takes it back. Without a value, the LSN and the time of the commit that got it.
fn mark(connection: &mut Connection, value: Option<&str>) -> Answer {
    let Some(value) = value else {
        let marked = connection.marked();
        let marked = marked.map(|(lsn, unix_ms)| format!("{lsn} {unix_ms}"));
        return Answer::Done(marked.unwrap_or_default());
    };
    if value.is_empty() {
        connection.set_mark(None);
        return Answer::Done(String::new());
    }
    if connection.database().recovery_model() != RecoveryModel::Full {
        let why = "the database has the recovery model SIMPLE: its log keeps no marks";
        return Answer::Refused(why.to_owned());
    }
    let (name, description) = value.split_once('\n').unwrap_or((value, ""));
    match Mark::new(name, description) {
        None => Answer::Refused(format!(
            "a mark has a name, and at most {} bytes of name and of description",
            Mark::BYTES_MAX
        )),
        Some(mark) => {
            connection.set_mark(Some(mark));
            Answer::Done(String::new())
        }
    }
}
