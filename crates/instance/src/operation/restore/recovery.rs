//! Ends a sequence of restores without another set.

use std::path::PathBuf;
use std::time::Instant;

use windlass_base::message::table;
use windlass_catalog::{DatabaseRecord, DatabaseState, EndedDamage, Origin};
use windlass_source::Recovery;
use windlass_source::sqlite::{self, Existing};

use super::registration::store_or_tell;
use super::{OPERATION, RestoreOptions, RestoreOutcome};
use crate::instance::new_record;
use crate::message_of::os_error;
use crate::names::absolute;
use crate::operation::timing;
use crate::{Failure, Session, Sink};

/// Brings a database online that waits for further restores.
pub(super) fn run(
    session: &mut Session,
    name: &str,
    known: Option<DatabaseRecord>,
    options: &RestoreOptions,
    sink: &mut dyn Sink,
) -> Result<RestoreOutcome, Failure> {
    let path = match (&known, &options.target) {
        (Some(record), _) if record.state == DatabaseState::Online && !waits(record) => {
            return Err(table::already_recovered().into());
        }
        (Some(record), _) => record.path.clone(),
        (None, Some(target)) => absolute(target)
            .map_err(|error| table::cannot_open_file(target.display(), os_error(&error)))?,
        (None, None) => return Err(table::restore_cannot_create(name).into()),
    };
    if options.recovery == Recovery::NoRecovery {
        sink.message(timing::closing(OPERATION, 0, 0, std::time::Duration::ZERO));
        return Ok(RestoreOutcome::Recovered);
    }
    if session.is_rehearsal() {
        sink.message(table::recovery_rehearsed(path.display()));
        return Ok(RestoreOutcome::Rehearsed);
    }
    session.queries.release(&path);
    let begun = Instant::now();
    let existing = if known.is_some() || options.replaces {
        Existing::Replace
    } else {
        Existing::Refuse
    };
    let engine_log = engine_log(known.as_ref(), options);
    match &engine_log {
        Some(log) => windlass_source::engine::recover(log, name),
        None => sqlite::recover(&path, existing, &session.cancel_flag()),
    }?;
    let recovered = DatabaseRecord {
        log_path: engine_log,
        ..new_record(name, &path, Origin::Restored)
    };
    if let Err(error) = session.end_damage(&recovered, &EndedDamage::BeforeRestore) {
        tracing::warn!("the damage of the replaced database was not forgotten: {error}");
    }
    if let Some(record) = known {
        let record = DatabaseRecord {
            state: DatabaseState::Online,
            ..record
        };
        store_or_tell(session, &record, sink);
    }
    sink.message(timing::closing(OPERATION, 0, 0, begun.elapsed()));
    Ok(RestoreOutcome::Recovered)
}

/// Whether a complete restore waits to replace a database that is online, because a program still had it
/// open.
fn waits(record: &DatabaseRecord) -> bool {
    record.log_path.is_none() && matches!(sqlite::restoring(&record.path), Ok(Some(_)))
}

/// The log of a page engine database that waits for further restores.
fn engine_log(known: Option<&DatabaseRecord>, options: &RestoreOptions) -> Option<PathBuf> {
    if let Some(known) = known {
        return known.log_path.clone();
    }
    let log = windlass_vfs::log_path(&absolute(options.target.as_deref()?).ok()?);
    let waits = windlass_source::engine::pending(&log);
    matches!(waits, Ok(Some(_))).then_some(log)
}
