//! `windlass sql`: scripts, batches and the prompt.

use std::io::{IsTerminal as _, Read as _};
use std::path::Path;

use windlass_base::message::table;
use windlass_instance::message_of::unreadable_file;
use windlass_instance::{BatchEnd, Identity, Session, Silent};

use super::on::{Extract, Place, extracted};
use super::sqlcmd::{Script, Words};
use super::{Outcome, disks, existing_session, misused, prompt, reported, session};
use crate::args::{Common, Output, SqlArguments};
use crate::cancel::Waiting;
use crate::output::{Console, Layout, Style, error_line};

/// Runs the command.
pub(crate) fn run(arguments: &SqlArguments, common: &Common) -> Outcome {
    let layout = match (arguments.vertical, arguments.trim) {
        (true, _) => Layout::Vertical,
        // Who says how tables look wants tables.
        (false, true) => arguments.layout.layout(Output::Wide),
        (false, false) => arguments.layout.layout(Output::Auto),
    };
    let style = Style {
        separator: arguments
            .separator
            .clone()
            .unwrap_or_else(|| " ".to_owned()),
        is_trimmed: arguments.trim,
        has_headings: arguments.headers != Some(-1),
        line_max: None,
    };
    let console = Console::for_scripts(common.json, layout).with_style(style);
    let mut console = console.with_columns(&arguments.layout.columns);
    let begun = match arguments.on.is_empty() {
        true => session(common, &mut console),
        false => existing_session(common, &mut console),
    };
    let Some(mut session) = begun else {
        return Outcome::Failed;
    };
    if let Err(reason) = check_names(session.instance().identity(), arguments) {
        return misused(&reason);
    }
    // Files that are attached for one run are this process's own.
    let has_own = !arguments.attach.is_empty() || !arguments.on.is_empty();
    if !has_own && !super::through_server(&mut session, "windlass sql") {
        return Outcome::Failed;
    }
    let extract = match on_backups(&mut session, arguments, &mut console) {
        Ok(extract) => extract,
        Err(outcome) => return outcome,
    };
    if !prepare(&mut session, arguments, &mut console) {
        return Outcome::Failed;
    }
    let mut words = words_of(arguments);
    let is_typed = arguments.query.is_empty() && arguments.input.is_empty();
    let waiting = if is_typed && std::io::stdin().is_terminal() {
        Waiting::Terminal
    } else {
        Waiting::Pipe
    };
    let outcome = if is_typed {
        prompt::run(&mut session, waiting, &mut words, &mut console)
    } else {
        let queries = arguments.query.iter().map(Input::Text);
        let files = arguments.input.iter().map(Input::File);
        all(queries.chain(files), |input| match input {
            Input::Text(text) => script(&mut session, text, &mut words, &mut console),
            Input::File(path) => file(&mut session, path, &mut words, &mut console),
        })
    };
    session.close(&mut console);
    if extract.is_some_and(|extract| !extract.is_whole) {
        // What was not read was said before.
        return Outcome::Failed;
    }
    match outcome {
        // A person at the prompt sees the errors and continues.
        Outcome::Succeeded if waiting == Waiting::Pipe => words.outcome(&console),
        outcome => outcome,
    }
}

/// What sqlcmd's options say of scripts.
fn words_of(arguments: &SqlArguments) -> Words {
    let mut words = Words::default();
    words.stops_on_error = arguments.stop_on_error;
    words.keeps_references = arguments.keep_references;
    words.severity_min = arguments.severity;
    for (name, value) in &arguments.variable {
        words.set(name, value);
    }
    words
}

/// Refuses names that sqlcmd's options give, unless they are those of this instance and user.
fn check_names(identity: &Identity, arguments: &SqlArguments) -> Result<(), String> {
    if let Some(server) = &arguments.server {
        let own = [
            ".",
            "(local)",
            "localhost",
            &identity.server,
            &identity.machine,
        ];
        if !own.iter().any(|own| own.eq_ignore_ascii_case(server)) {
            return Err(format!(
                "-S {server}: this is '{}', and no other server is reached. --instance names the folder of an \
                 instance",
                identity.server
            ));
        }
    }
    match &arguments.user {
        Some(user) if !user.eq_ignore_ascii_case(&identity.user) => {
            return Err(format!(
                "-U {user}: everything runs as the user of the process, '{}'. Omit it",
                identity.user
            ));
        }
        _ => {}
    }
    match &arguments.password {
        Some(_) => Err("-P: there are no passwords. Omit it".to_owned()),
        None => Ok(()),
    }
}

/// Makes the tables of the backups of `--on` the current database, which scripts cannot change.
fn on_backups(
    session: &mut Session,
    arguments: &SqlArguments,
    console: &mut Console,
) -> Result<Option<Extract>, Outcome> {
    if arguments.on.is_empty() {
        return Ok(None);
    }
    let told = |text: String| {
        error_line(&text);
        Outcome::Failed
    };
    let place = Place::new().map_err(told)?;
    let permitted = session.permit_extraction(&disks(&arguments.on), place.path());
    let devices = reported(permitted, console).ok_or(Outcome::Failed)?;
    let queries = match arguments.input.is_empty() {
        true => &arguments.query[..],
        false => &[],
    };
    let extract = extracted(place, &devices, arguments.set, queries).map_err(told)?;
    let passed = session.instance_mut().pass(&extract.file);
    let passed = passed.map_err(windlass_instance::Failure::from);
    let name = reported(passed, console).ok_or(Outcome::Failed)?;
    let used = session.use_database(&name, &mut Silent);
    reported(used, console).ok_or(Outcome::Failed)?;
    match session.execute_batch("PRAGMA query_only = ON", 1, console) {
        BatchEnd::Clean => Ok(Some(extract)),
        BatchEnd::Failed | BatchEnd::Refused => Err(Outcome::Failed),
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
        let refusal = match std::fs::metadata(path) {
            Err(error) => unreadable_file(path, &error),
            Ok(_) => table::cannot_open_file(path.display(), "It is not a file"),
        };
        return Err(refusal.into());
    }
    Ok(session.instance_mut().pass_as(name, path)?)
}

fn file(
    session: &mut Session,
    path: &Path,
    words: &mut Words,
    console: &mut Console,
) -> Option<Outcome> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes)
    } else {
        let cancel = session.cancel_flag();
        let waits = || !cancel.load(std::sync::atomic::Ordering::Relaxed);
        windlass_io::read_whole(path, &waits).map(|read| {
            bytes = read;
            bytes.len()
        })
    };
    if let Err(error) = read {
        error_line(&format!("{}: {error}", path.display()));
        return Some(Outcome::Failed);
    }
    match decode(&bytes) {
        Some(text) => script(session, &text, words, console),
        None => Some(misused(&format!(
            "{}: the script is neither UTF-8 nor UTF-16",
            path.display()
        ))),
    }
}

/// The text of a script: UTF-8 with or without a byte order mark, or UTF-16 with one, as saved by
/// Windows.
pub(super) fn decode(bytes: &[u8]) -> Option<String> {
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
    words: &mut Words,
    console: &mut Console,
) -> Option<Outcome> {
    Script::new(session, console, words).run(text)
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
