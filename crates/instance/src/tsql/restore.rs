//! RESTORE: from the statement to the options of a restore.

use windlass_base::message::table;
use windlass_tsql::ast::{FileSpec, Name, RestoreAction, RestoreStatement};
use windlass_tsql::option::StatementKind;
use windlass_tsql::span::Spanned;

use super::page_list;
use crate::operation::inspect::{self, Inspect};
use crate::operation::{RestoreKind, RestorePart, restore, verify};
use crate::tsql::option;
use crate::{Failure, Session, Sink};

pub(super) fn execute(
    session: &mut Session,
    statement: &RestoreStatement,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    match &statement.action {
        RestoreAction::Database { name, files } => database(
            session,
            statement,
            (RestoreKind::Database, name, files),
            sink,
        ),
        RestoreAction::Log { name, files } => {
            database(session, statement, (RestoreKind::Log, name, files), sink)
        }
        RestoreAction::HeaderOnly => show(session, statement, Inspect::Headers, sink),
        RestoreAction::FileListOnly => show(session, statement, Inspect::Files, sink),
        RestoreAction::LabelOnly => show(session, statement, Inspect::Label, sink),
        RestoreAction::VerifyOnly => {
            let options = option::read_verify(statement, session).map_err(|failure| {
                failure.then(table::terminating_abnormally(verify::OPERATION))
            })?;
            verify::run(session, &options, sink).map(drop)
        }
        RestoreAction::RewindOnly => Err(table::rewind_only_tape().into()),
    }
}

fn show(
    session: &mut Session,
    statement: &RestoreStatement,
    what: Inspect,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let kind = match what {
        Inspect::Headers => StatementKind::HeaderOnly,
        Inspect::Files => StatementKind::FileListOnly,
        Inspect::Label => StatementKind::LabelOnly,
    };
    let options = option::read_media(statement, kind, session)
        .map_err(|failure| failure.then(table::terminating_abnormally(what.operation())))?;
    inspect::show(session, what, &options, sink)
}

/// Restores the whole database or parts of it, depending on what follows its name.
fn database(
    session: &mut Session,
    statement: &RestoreStatement,
    (kind, name, files): (RestoreKind, &Spanned<Name>, &[Spanned<FileSpec>]),
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let mut understood = || {
        let name = option::name(&name.node, session)?;
        let part = match files {
            [] => None,
            _ if kind == RestoreKind::Log => return Err(table::restore_log_of_parts().into()),
            files => Some(part(session, files)?),
        };
        Ok((name, part, option::read_restore(statement, kind, session)?))
    };
    let (name, part, (options, notes)) = understood().map_err(|failure: Failure| {
        failure.then(table::terminating_abnormally(kind.operation()))
    })?;
    for note in notes {
        sink.message(note);
    }
    match part {
        Some(part) => restore::run_part(session, &name, &part, &options, sink),
        None => restore::run(session, &name, &options, sink).map(drop),
    }
}

/// The named pages or files.
fn part(session: &mut Session, parts: &[Spanned<FileSpec>]) -> Result<RestorePart, Failure> {
    if let [
        Spanned {
            node: FileSpec::Page(list),
            ..
        },
    ] = parts
    {
        let list = option::text(&list.node, session)?.unwrap_or_default();
        return Ok(RestorePart::Pages(page_list::parse(&list)?));
    }
    let mut names = Vec::new();
    for part in parts {
        let FileSpec::File(list) = &part.node else {
            return Err(table::restore_of_parts_mixed().into());
        };
        for name in list {
            names.push(option::text(&name.node, session)?.unwrap_or_default());
        }
    }
    Ok(RestorePart::Files(names))
}
