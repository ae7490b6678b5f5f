//! RESTORE HEADERONLY.

use windlass_base::message::table;
use windlass_media::MediaError;
use windlass_pipeline::MediaSet;
use windlass_tsql::ast::RestoreStatement;
use windlass_tsql::option::StatementKind;

use super::media_rows::{self, FoundSet};
use super::reading;
use super::sql_server::Media;
use crate::message_of::{media_message, set_not_found};
use crate::{Failure, Session, Sink};

const OPERATION: &str = "RESTORE HEADERONLY";

pub(super) fn execute(
    session: &mut Session,
    statement: &RestoreStatement,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let mut attempt = || {
        let kind = StatementKind::HeaderOnly;
        if let Some(media) = Media::recognise(session, statement, kind)? {
            return media.header_only(sink);
        }
        let (media, choices) = reading::open_any(session, statement, StatementKind::HeaderOnly)?;
        let devices = reading::devices(session, statement)?;
        let device_type = devices.first().map_or(0, media_rows::device_type);
        let mut sets = media.sets();
        let count = sets.len();
        if let Some(position) = choices.position {
            sets.retain(|entry| entry.configuration.position == position);
            if sets.is_empty() {
                let device = reading::first_device(statement, session)?;
                return Err(set_not_found(&device, position, count).into());
            }
        }
        let found: Vec<FoundSet<'_>> = sets
            .iter()
            .map(|entry| FoundSet {
                set: &entry.configuration,
                is_complete: entry.is_complete,
                device_type,
            })
            .collect();
        media_rows::header_only(&found).send(sink);
        report_trouble(&media, sink)
    };
    attempt().map_err(|failure| failure.then(table::terminating_abnormally(OPERATION)))
}

/// What lies behind the last good set: an interrupted append is told, damage is an error.
fn report_trouble(media: &MediaSet, sink: &mut dyn Sink) -> Result<(), Failure> {
    let Some((device, trouble)) = media.trouble() else {
        return Ok(());
    };
    if trouble.is_truncation() || matches!(trouble, MediaError::IncompleteSet { .. }) {
        sink.message(table::last_set_unfinished(device, trouble));
        return Ok(());
    }
    Err(Failure::from(vec![
        media_message(device, trouble),
        table::found_on_device(device, trouble),
    ]))
}
