//! RESTORE FILELISTONLY.

use windlass_base::message::table;
use windlass_tsql::ast::RestoreStatement;
use windlass_tsql::option::StatementKind;

use super::sql_server::Media;
use super::{media_rows, reading};
use crate::{Failure, Session, Sink};

const OPERATION: &str = "RESTORE FILELIST";

pub(super) fn execute(
    session: &mut Session,
    statement: &RestoreStatement,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let mut attempt = || {
        let kind = StatementKind::FileListOnly;
        if let Some(media) = Media::recognise(session, statement, kind)? {
            return media.file_list_only(sink);
        }
        let (media, choices) = reading::open_any(session, statement, StatementKind::FileListOnly)?;
        let entry = media.set(choices.position.unwrap_or(1))?;
        media_rows::file_list_only(&entry.configuration).send(sink);
        Ok(())
    };
    let result: Result<(), Failure> = attempt();
    result.map_err(|failure| failure.then(table::terminating_abnormally(OPERATION)))
}
