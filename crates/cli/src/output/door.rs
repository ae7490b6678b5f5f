//! The only place that writes output.
//!
//! Results go to standard output, messages to standard error. Text for people is escaped, so that
//! no name from media or a database acts on a terminal; JSON is escaped as well. (A clippy rule of
//! this crate keeps all other code from the two streams.)
//!
//! A result whose reader stops early (`windlass header x | head`) is not an error; output ends silently.
//! If it is lost for another reason, such as a full disk, the program fails at its end: see [`finish`].
#![expect(clippy::disallowed_methods, reason = "this is the door")]

use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use windlass_base::Message;
use windlass_base::message::table;
use windlass_base::visible;
use windlass_base::visible::{json_escaped, visible_lines};

use windlass_instance::json;

/// The first failure of standard output.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// Whether messages are objects.
static SPEAKS_JSON: AtomicBool = AtomicBool::new(false);

/// Writes a line of a result.
pub(crate) fn result_line(line: &str) {
    to_result(&[&visible(line), "\n"]);
}

/// Writes a result of several lines; line ends must not come from names.
pub(crate) fn result_text(text: &str) {
    to_result(&[&visible_lines(text), "\n"]);
}

/// Writes JSON, and a line end.
pub(crate) fn result_json(json: &str) {
    to_result(&[&json_escaped(json), "\n"]);
}

/// Writes a piece of JSON.
pub(crate) fn result_json_piece(json: &str) {
    to_result(&[&json_escaped(json)]);
}

/// Writes generated output of the program itself, without escaping.
pub(crate) fn result_bytes(bytes: &[u8]) {
    keep(io::stdout().lock().write_all(bytes));
}

/// Writes a line for people.
pub(crate) fn message_line(line: &str) {
    match speaks_json() {
        true => message_json(&json::message(&Message::print(line)).to_string()),
        false => to_message(&[&visible(line), "\n"]),
    }
}

/// Writes why a command cannot run, or has failed.
pub(crate) fn error_line(reason: &str) {
    let reason = reason.trim_end();
    match speaks_json() {
        true => message_json(&json::message(&table::command_failed(reason)).to_string()),
        false => to_message(&["error: ", &visible(reason), "\n"]),
    }
}

/// From here on, messages are objects.
pub(crate) fn speak_json() {
    SPEAKS_JSON.store(true, Ordering::Relaxed);
}

pub(crate) fn speaks_json() -> bool {
    SPEAKS_JSON.load(Ordering::Relaxed)
}

/// The width of the terminal that results go to, if it is one.
pub(crate) fn terminal_width() -> Option<usize> {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map(|(width, _)| usize::from(width.0))
}

/// Clears the terminal, for a result that is shown again and again.
pub(crate) fn clear_screen() {
    result_bytes(b"\x1b[H\x1b[2J\x1b[3J");
}

/// Writes several lines for people; line ends must not come from names.
pub(crate) fn message_text(text: &str) {
    match speaks_json() {
        true => message_json(&json::message(&Message::print(text)).to_string()),
        false => to_message(&[&visible_lines(text), "\n"]),
    }
}

/// Writes a message for programs.
pub(crate) fn message_json(json: &str) {
    to_message(&[&json_escaped(json), "\n"]);
}

/// Ends the results; fails if output was lost for any reason but a closed pipe.
pub(crate) fn finish() -> io::Result<()> {
    keep(io::stdout().lock().flush());
    let lost = LOST.lock().unwrap_or_else(PoisonError::into_inner).take();
    match lost {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Whether nobody reads the results any more.
pub(crate) fn is_unread() -> bool {
    let lost = LOST.lock().unwrap_or_else(PoisonError::into_inner);
    lost.is_some()
}

fn to_result(pieces: &[&str]) {
    let mut out = io::stdout().lock();
    keep(
        pieces
            .iter()
            .try_for_each(|piece| out.write_all(piece.as_bytes())),
    );
}

fn to_message(pieces: &[&str]) {
    // One write, so that lines of several programs do not mix. Failures could not be reported.
    io::stderr()
        .lock()
        .write_all(pieces.concat().as_bytes())
        .ok();
}

/// Records the result of a library's own printing to standard output.
pub(crate) fn printed(result: io::Result<()>) {
    keep(result);
}

fn keep(result: io::Result<()>) {
    if let Err(error) = result {
        let mut lost = LOST.lock().unwrap_or_else(PoisonError::into_inner);
        lost.get_or_insert(error);
    }
}

/// The destination of a log without a file.
pub(crate) fn standard_error() -> impl Write {
    io::stderr()
}
