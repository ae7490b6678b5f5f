//! `windlass import` and `windlass export`: SQLite files to and from the page engine.
//!
//! If the instance has a server, that exports: it has the databases open.

use std::path::Path;

use serde_json::json;
use windlass_base::Message;
use windlass_base::message::table;
use windlass_instance::{BatchEnd, Collected, Failure, ImportRequest, Session};

use super::{Outcome, ended, existing_session, literal, misused, session, through_server};
use crate::args::{Common, ExportArguments, ImportArguments};
use crate::output::{Console, Layout};

/// Imports a SQLite file into the page engine.
pub(crate) fn import(arguments: &ImportArguments, common: &Common) -> Outcome {
    if let Some(refusal) = no_place(arguments, common) {
        return misused(&refusal);
    }
    let mut console = Console::new(common.json, Layout::Table);
    let Some(mut session) = session(common, &mut console) else {
        return Outcome::Failed;
    };
    let imported = session.import(&ImportRequest {
        source: &arguments.file,
        name: &arguments.into,
        data: &arguments.data,
        page_checksums: arguments.page_checksums,
    });
    let reported = imported
        .as_ref()
        .map(|report| table::imported(arguments.file.display(), &arguments.into, report.bytes));
    let outcome = announce(reported.map_err(Clone::clone), &mut console);
    if let Ok(report) = &imported {
        console.done(&json!({
                "operation": "import",
                "file": arguments.file.display().to_string(),
                "database": arguments.into,
                "bytes": report.bytes,
                "page_checksums": report.page_checksums,
        }));
    }
    if imported.is_ok_and(|report| !report.page_checksums) {
        console.message(table::imported_without_checksums());
    }
    outcome
}

/// Why the new database cannot get its name or its files, before an instance is made for it.
fn no_place(arguments: &ImportArguments, common: &Common) -> Option<String> {
    let name = arguments.into.as_str();
    if name.is_empty() {
        return Some("--into is empty: name the new database, such as --into app".to_owned());
    }
    if let Some(taken) = arguments.data.iter().find(|path| path.exists()) {
        return Some(format!(
            "--data {}: there is such a file, and an import overwrites none: name a new file",
            taken.display()
        ));
    }
    if !arguments.data.is_empty() {
        return None;
    }
    if common.instance.is_none() {
        return Some(
            "the new database has no place: name the instance that it belongs to with --instance \
             DIR, or its file with --data FILE"
                .to_owned(),
        );
    }
    // The file in the instance has the name of the database.
    let names_file =
        !name.contains(['/', '\\']) && !name.contains(char::is_control) && !name.starts_with('.');
    (!names_file).then(|| {
        format!(
            "--into '{name}': a file in the instance cannot have this name, because it has a slash, \
             a backslash or a control character, or begins with a dot: give another name, or name \
             the file with --data FILE"
        )
    })
}

/// Exports a page engine database to a SQLite file.
pub(crate) fn export(arguments: &ExportArguments, common: &Common) -> Outcome {
    if common.instance.is_none() {
        return misused(
            "an export reads a database of an instance: name the instance with --instance DIR",
        );
    }
    let mut console = Console::new(common.json, Layout::Table);
    let Some(mut session) = existing_session(common, &mut console) else {
        return Outcome::Failed;
    };
    if !through_server(&mut session, "windlass export") {
        return Outcome::Failed;
    }
    let exported = match session.is_elsewhere() {
        true => export_served(&mut session, &arguments.database, &arguments.to),
        false => session.export(&arguments.database, &arguments.to),
    };
    if let Ok(bytes) = &exported {
        console.done(&json!({
                "operation": "export",
                "database": arguments.database,
                "file": arguments.to.display().to_string(),
                "bytes": bytes,
        }));
    }
    let reported =
        exported.map(|bytes| table::exported(&arguments.database, arguments.to.display(), bytes));
    announce(reported, &mut console)
}

/// Lets the server write the file; returns its length.
fn export_served(session: &mut Session, database: &str, to: &Path) -> Result<u64, Failure> {
    let refused = |why: String| Failure::from(table::cannot_open_file(to.display(), why));
    let target = std::path::absolute(to).map_err(|error| refused(error.to_string()))?;
    let Some(name) = target.to_str() else {
        let why =
            "its name is not UTF-8, and cannot be said to the server of the instance".to_owned();
        return Err(refused(why));
    };
    let statement = format!(
        "EXECUTE sp_windlass_export {}, {}",
        literal(database),
        literal(name)
    );
    // What it says of success is said here, with the name that the user gave.
    let mut heard = Collected::default();
    match session.execute_batch(&statement, 1, &mut heard) {
        BatchEnd::Clean => {
            let found = target
                .metadata()
                .map_err(|error| refused(error.to_string()))?;
            Ok(found.len())
        }
        BatchEnd::Failed | BatchEnd::Refused => {
            // The user has written no line of the statement.
            for message in &mut heard.messages {
                (message.line, message.procedure) = (0, None);
            }
            Err(Failure::from(heard.messages))
        }
    }
}

fn announce(result: Result<Message, Failure>, console: &mut Console) -> Outcome {
    let result = result.map(|message| console.message(message));
    ended(result, console)
}
