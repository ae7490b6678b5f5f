//! RESTORE LABELONLY.

use windlass_base::message::table;
use windlass_tsql::ast::{RestoreSource, RestoreStatement};
use windlass_tsql::option::StatementKind;

use super::sql_server::Media;
use super::{media_rows, reading};
use crate::{Failure, Session, Sink};

const OPERATION: &str = "RESTORE LABELONLY";

pub(super) fn execute(
    session: &mut Session,
    statement: &RestoreStatement,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let mut attempt = || {
        // One device has one label.
        if let RestoreSource::Devices(devices) = &statement.source
            && devices.len() > 1
        {
            return Err(table::too_many_devices(1).into());
        }
        let kind = StatementKind::LabelOnly;
        if let Some(media) = Media::recognise(session, statement, kind)? {
            return media.label_only(sink);
        }
        let (header, first) = reading::label(session, statement)?;
        let is_compressed = first.is_some_and(|set| media_rows::algorithm_name(&set).is_some());
        media_rows::label_only(&header, is_compressed).send(sink);
        Ok(())
    };
    let result: Result<(), Failure> = attempt();
    result.map_err(|failure| failure.then(table::terminating_abnormally(OPERATION)))
}
