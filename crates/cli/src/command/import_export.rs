//! `windlass import` and `windlass export`: SQLite files to and from the page engine.

use serde_json::json;
use windlass_base::Message;
use windlass_base::message::table;
use windlass_instance::{Failure, ImportRequest};

use super::{Outcome, ended, existing_session, session};
use crate::args::{Common, ExportArguments, ImportArguments};
use crate::output::{Console, Layout};

/// Imports a SQLite file into the page engine.
pub(crate) fn import(arguments: &ImportArguments, common: &Common) -> Outcome {
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

/// Exports a page engine database to a SQLite file.
pub(crate) fn export(arguments: &ExportArguments, common: &Common) -> Outcome {
    let mut console = Console::new(common.json, Layout::Table);
    let Some(mut session) = existing_session(common, &mut console) else {
        return Outcome::Failed;
    };
    let exported = session.export(&arguments.database, &arguments.to);
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

fn announce(result: Result<Message, Failure>, console: &mut Console) -> Outcome {
    let result = result.map(|message| console.message(message));
    ended(result, console)
}
