//! Shared by `bench` and `tune`: the measured database, and the destinations of results.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use windlass_codec::Algorithm;
use windlass_instance::Session;
use windlass_instance::message_of::{not_a_database, unreadable_file};
use windlass_io::output;
use windlass_source::sqlite::content;
use windlass_source::{Content, SourceDatabase};
use windlass_tune::{Database, Outcome as Measurements};

use super::{Outcome, absolute, database_name, existing_session, misused, placed, reported};
use crate::args::{Common, ResultFiles};
use crate::output::{Console, Layout, error_line, message_line, result_json, result_text};

/// A measured database, and the flag set by Ctrl-C.
pub(super) struct Subject {
    pub(super) database: Database,
    /// Its name on another command line: its registered name, or an absolute path.
    pub(super) argument: String,
    pub(super) cancel: Arc<AtomicBool>,
    /// Algorithms that the server options do not allow.
    pub(super) without: Vec<Algorithm>,
    /// Where backups go, by the drives of the instance.
    pub(super) targets: Vec<PathBuf>,
    /// Keeps a page engine database open.
    _session: Session,
}

/// Finds the database named on the command line, and where its backups go. Reports the error if there is none.
pub(super) fn subject(
    written: &str,
    is_as_is: bool,
    to: &[PathBuf],
    common: &Common,
) -> Option<Subject> {
    let mut console = Console::new(common.json, Layout::Table);
    let mut session = existing_session(common, &mut console)?;
    let record = session.instance().database(written).ok().flatten();
    let is_registered = record.is_some();
    let is_as_is = is_as_is || record.is_some_and(|record| record.is_as_is);
    let name = database_name(&mut session, written, &mut console)?;
    let targets = placed(&session, to, &mut console)?;
    let source = reported(session.source(&name), &mut console)?;
    // What a backup refuses is not measured: nobody could use the advice.
    if let Some(path) = no_database(&source).filter(|_| !is_as_is) {
        console.message(not_a_database(path));
        return None;
    }
    if let Some((path, error)) = unopened(&source) {
        console.message(unreadable_file(path, &error));
        return None;
    }
    match Database::open(source) {
        Ok(database) => Some(Subject {
            database,
            argument: if is_registered {
                name
            } else {
                absolute(Path::new(written))
            },
            cancel: session.cancel_flag(),
            without: match session.instance().allows_qat_deflate() {
                true => Vec::new(),
                false => vec![Algorithm::QatDeflate],
            },
            targets,
            _session: session,
        }),
        Err(error) => {
            error_line(&error.to_string());
            None
        }
    }
}

/// The file, if it is not there or may not be looked at.
fn unopened(source: &SourceDatabase) -> Option<(&Path, std::io::Error)> {
    let SourceDatabase::Sqlite { path, .. } = source else {
        return None;
    };
    let error = std::fs::File::open(path).err()?;
    Some((path, error))
}

/// The file, if it does not begin as a database does. One that cannot be read is told of where it is opened.
fn no_database(source: &SourceDatabase) -> Option<&Path> {
    let SourceDatabase::Sqlite { path, .. } = source else {
        return None;
    };
    matches!(content(path), Ok(Content::Unknown)).then_some(path)
}

/// Prints what is being measured, unless the output is for programs.
pub(super) fn announce(common: &Common) -> impl Fn(&str) {
    let is_json = common.json;
    move |text: &str| {
        if !is_json {
            message_line(text);
        }
    }
}

/// Refuses unwritable files before anything is measured.
pub(super) fn check_files(files: &ResultFiles) -> Result<(), Outcome> {
    for path in [&files.report, &files.json_to].into_iter().flatten() {
        let folder = std::path::absolute(path)
            .ok()
            .and_then(|path| path.parent().map(Path::to_owned));
        if path.is_dir() || !folder.is_some_and(|folder| folder.is_dir()) {
            return Err(misused(&format!(
                "'{}' cannot be written: name a file in a folder that exists",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Prints the results and writes the requested files.
pub(super) fn publish(
    measurements: &Measurements,
    files: &ResultFiles,
    common: &Common,
) -> Outcome {
    if common.json {
        result_json(&measurements.to_json().to_string());
    } else {
        result_text(&measurements.to_text());
    }
    let mut outcome = Outcome::Succeeded;
    let mut write = |path: &Path, content: String| {
        if let Err(error) = output::write(path, content.as_bytes(), output::MODE_PUBLIC) {
            error_line(&format!("cannot write '{}': {error}", path.display()));
            outcome = Outcome::Failed;
        }
    };
    if let Some(path) = &files.report {
        write(path, measurements.report.to_html());
    }
    if let Some(path) = &files.json_to {
        write(path, format!("{:#}\n", measurements.to_json()));
    }
    outcome
}
