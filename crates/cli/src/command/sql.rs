//! `windlass sql`: scripts, batches and the prompt.

use std::io::{IsTerminal as _, Read as _};
use std::path::Path;

use windlass_base::message::table;
use windlass_instance::{BatchEnd, Session};
use windlass_tsql::batch;

use super::{Outcome, misused, prompt, reported, session};
use crate::args::{Common, SqlArguments};
use crate::cancel::Waiting;
use crate::output::{Console, Layout, message_line};

/// Runs the command.
pub(crate) fn run(arguments: &SqlArguments, common: &Common) -> Outcome {
    let layout = if arguments.vertical {
        Layout::Vertical
    } else {
        Layout::Table
    };
    let mut console = Console::for_scripts(common.json, layout);
    let Some(mut session) = session(common, &mut console) else {
        return Outcome::Failed;
    };
    if !prepare(&mut session, arguments, &mut console) {
        return Outcome::Failed;
    }
    let stops = arguments.stop_on_error;
    let is_typed = arguments.query.is_empty() && arguments.input.is_empty();
    let waiting = if is_typed && std::io::stdin().is_terminal() {
        Waiting::Terminal
    } else {
        Waiting::Pipe
    };
    let outcome = if is_typed {
        prompt::run(&mut session, waiting, stops, &mut console)
    } else {
        let queries = arguments.query.iter().map(Input::Text);
        let files = arguments.input.iter().map(Input::File);
        all(queries.chain(files), |input| match input {
            Input::Text(text) => script(&mut session, text, stops, &mut console),
            Input::File(path) => file(&mut session, path, stops, &mut console),
        })
    };
    session.close(&mut console);
    match outcome {
        // A person at the prompt sees the errors and continues.
        Outcome::Succeeded if console.has_failed() && waiting == Waiting::Pipe => Outcome::Failed,
        outcome => outcome,
    }
}

/// What to run.
enum Input<'a> {
    Text(&'a String),
    File(&'a std::path::PathBuf),
}

/// Runs each input in turn; stops at the first that returns an outcome.
fn all<T>(items: impl Iterator<Item = T>, mut run: impl FnMut(T) -> Option<Outcome>) -> Outcome {
    for item in items {
        if let Some(outcome) = run(item) {
            return outcome;
        }
    }
    Outcome::Succeeded
}

fn prepare(session: &mut Session, arguments: &SqlArguments, console: &mut Console) -> bool {
    for (name, path) in &arguments.attach {
        let attached = attach(session, name, Path::new(path));
        if reported(attached, console).is_none() {
            return false;
        }
    }
    match &arguments.database {
        None => true,
        Some(name) => {
            let used = session.use_database(name, console);
            reported(used, console).is_some()
        }
    }
}

/// Attaches a file under a name for this run.
fn attach(
    session: &mut Session,
    name: &str,
    path: &Path,
) -> Result<(), windlass_instance::Failure> {
    if !path.is_file() {
        let missing = std::fs::metadata(path).err();
        let error = missing.map_or_else(
            || "It is not a file".to_owned(),
            |error| windlass_instance::message_of::os_error(&error),
        );
        return Err(table::cannot_open_file(path.display(), error).into());
    }
    Ok(session.instance_mut().pass_as(name, path)?)
}

fn file(
    session: &mut Session,
    path: &Path,
    stops_on_error: bool,
    console: &mut Console,
) -> Option<Outcome> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes)
    } else {
        std::fs::read(path).map(|read| {
            bytes = read;
            bytes.len()
        })
    };
    if let Err(error) = read {
        message_line(&format!("error: {}: {error}", path.display()));
        return Some(Outcome::Failed);
    }
    match decode(&bytes) {
        Some(text) => script(session, &text, stops_on_error, console),
        None => Some(misused(&format!(
            "{}: the script is neither UTF-8 nor UTF-16",
            path.display()
        ))),
    }
}

/// The text of a script: UTF-8 with or without a byte order mark, or UTF-16 with one, as saved by
/// Windows.
fn decode(bytes: &[u8]) -> Option<String> {
    let wide = |read: fn([u8; 2]) -> u16, bytes: &[u8]| {
        let units = bytes
            .chunks_exact(2)
            .filter_map(|pair| pair.try_into().ok().map(read));
        char::decode_utf16(units)
            .collect::<Result<String, _>>()
            .ok()
    };
    match bytes {
        [0xFF, 0xFE, rest @ ..] => wide(u16::from_le_bytes, rest),
        [0xFE, 0xFF, rest @ ..] => wide(u16::from_be_bytes, rest),
        [0xEF, 0xBB, 0xBF, rest @ ..] => std::str::from_utf8(rest).ok().map(str::to_owned),
        _ => std::str::from_utf8(bytes).ok().map(str::to_owned),
    }
}

/// Runs a script; returns the outcome if the run must stop.
fn script(
    session: &mut Session,
    text: &str,
    stops_on_error: bool,
    console: &mut Console,
) -> Option<Outcome> {
    for batch in batch::split(text) {
        for _ in 0..batch.count {
            let end = session.execute_batch(batch.text, batch.first_line, console);
            let is_cancelled = session
                .cancel_flag()
                .load(std::sync::atomic::Ordering::Relaxed);
            if is_cancelled || (stops_on_error && end == BatchEnd::Failed) {
                return Some(Outcome::Failed);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_from_windows_are_read() {
        assert_eq!(decode(b"\xEF\xBB\xBFPRINT 1").as_deref(), Some("PRINT 1"));
        assert_eq!(decode(b"\xFF\xFEP\0\xE4\0").as_deref(), Some("P\u{e4}"));
        assert_eq!(decode(b"\xFE\xFF\0P").as_deref(), Some("P"));
        assert_eq!(decode(b"\xE4"), None);
    }
}
