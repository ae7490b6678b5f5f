//! Everything the program says: results to standard output, messages to standard error.
//!
//! A write that fails because nobody reads any more (`windlass header x | head`) is not an error.

mod completed;
mod console;
mod json;
mod progress;
mod table;

pub(crate) use console::{Console, Layout};
pub(crate) use table::Table;

use std::io::Write as _;

/// Writes a line of a result.
pub(crate) fn result_line(line: &str) {
    writeln!(std::io::stdout().lock(), "{line}").ok();
}

/// Writes a line for people.
pub(crate) fn message_line(line: &str) {
    writeln!(std::io::stderr().lock(), "{line}").ok();
}

/// Writes a prompt and waits behind it.
pub(crate) fn prompt(text: &str) {
    let mut out = std::io::stdout().lock();
    write!(out, "{text}").and_then(|()| out.flush()).ok();
}
