//! Ends a sequence of restores without another set.

use std::path::{Path, PathBuf};
use std::time::Instant;

use windlass_base::message::table;
use windlass_catalog::{DatabaseRecord, DatabaseState, EndedDamage, Origin};
use windlass_engine::LogIdentity;
use windlass_engine::storage::RealFileSystem;
use windlass_source::Recovery;
use windlass_source::engine::StopAt;
use windlass_source::sqlite::{self, Existing, ForwardRequest};

use super::engine::standby_lost;
use super::registration::store_or_tell;
use super::{FollowedRestore, RestoreOptions, RestoreOutcome, standby};
use crate::instance::new_record;
use crate::message_of::unreadable_file;
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
    let path = place(name, known.as_ref(), options)?;
    if options.stop != StopAt::End {
        return Err(table::option_not_supported("STOPAT").into());
    }
    let operation = options.operation();
    if let Some(standby) = &options.standby {
        let log = engine_log(known.as_ref(), options);
        let log = log.ok_or_else(|| Failure::from(table::standby_of_sqlite(name)))?;
        return standby::begin(session, name, known, (&log, standby), sink);
    }
    if options.recovery == Recovery::NoRecovery {
        let waits = || Ok::<_, Failure>(sqlite::restoring(&path)?.is_some());
        if known.is_none() && engine_log(None, options).is_none() && !waits()? {
            return Err(windlass_source::Error::NotRestoring { path }.into());
        }
        if !session.is_rehearsal() {
            standby::end(session, name, known, sink)?;
        }
        sink.message(timing::closing(operation, 0, 0, std::time::Duration::ZERO));
        return Ok(RestoreOutcome::Recovered);
    }
    if session.is_rehearsal() {
        sink.message(table::recovery_rehearsed(path.display()));
        return Ok(RestoreOutcome::Rehearsed);
    }
    let followed = known.as_ref().map(|known| session.without_follower(known));
    let _followed = followed.transpose()?;
    session.queries.release(&path);
    let alone = standby::leave(session, name, known.as_ref())?;
    let begun = Instant::now();
    let existing = match options.replaces {
        true => Existing::Replace,
        false => Existing::Approved,
    };
    let engine_log = engine_log(known.as_ref(), options);
    let is_whole = match (&engine_log, &known) {
        (Some(log), Some(known)) => is_whole(log, known)?,
        _ => false,
    };
    match (&engine_log, &options.follow) {
        (Some(_), Some(_)) => {
            let why = "it is of a SQLite file, not of the page engine";
            return Err(table::spool_failed(why).into());
        }
        // BACKUP LOG WITH NORECOVERY left it restoring.
        (Some(_), None) if is_whole => {}
        (Some(log), None) => windlass_source::engine::recover(log, name, existing)
            .map_err(|error| standby_lost(error, name, known.as_ref()))?,
        (None, None) => sqlite::recover(&path, existing, &session.cancel_flag())?,
        (None, Some(follow)) => forward(session, &path, existing, follow, sink)?,
    }
    let recovered = DatabaseRecord {
        log_path: engine_log,
        ..new_record(name, &path, Origin::Restored)
    };
    if !is_whole && let Err(error) = session.end_damage(&recovered, &EndedDamage::BeforeRestore) {
        tracing::warn!("the damage of the replaced database was not forgotten: {error}");
    }
    if let Some(record) = known {
        let state = DatabaseState::Online;
        store_or_tell(session, &DatabaseRecord { state, ..record }, sink);
    }
    drop(alone);
    sink.message(timing::closing(operation, 0, 0, begun.elapsed()));
    Ok(RestoreOutcome::Recovered)
}

/// The first file of the database that waits.
fn place(
    name: &str,
    known: Option<&DatabaseRecord>,
    options: &RestoreOptions,
) -> Result<PathBuf, Failure> {
    match (known, &options.target) {
        (Some(record), _) if record.state == DatabaseState::Online && !waits(record) => {
            Err(table::already_recovered().into())
        }
        (Some(record), _) => Ok(record.path.clone()),
        (None, Some(target)) => {
            absolute(target).map_err(|error| unreadable_file(target, &error).into())
        }
        (None, None) => Err(table::restore_cannot_create(name).into()),
    }
}

/// Whether the files of a database are not being restored, but those of a database as it was closed.
pub(super) fn is_whole(log: &Path, known: &DatabaseRecord) -> Result<bool, Failure> {
    if windlass_source::engine::pending(log)?.is_some() {
        return Ok(false);
    }
    let found = LogIdentity::of(&RealFileSystem, log).ok().flatten();
    Ok(found.is_some_and(|found| known.family_guid.is_none_or(|guid| guid == found.guid)))
}

/// Applies what a follower has spooled, and says which state that is.
fn forward(
    session: &Session,
    path: &Path,
    existing: Existing,
    follow: &FollowedRestore,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let reach = sqlite::forward(&ForwardRequest {
        target: path.to_owned(),
        spool: follow.folder.clone(),
        stop: follow.stop,
        existing,
        cancel: session.cancel_flag(),
    })?;
    let time = windlass_base::time_text(reach.time_us);
    sink.message(table::rolled_forward(
        reach.moments,
        time,
        reach.commit_number,
    ));
    if reach.rest_bytes > 0 {
        let folder = follow.folder.display();
        sink.message(table::spool_has_rest(folder, reach.rest_bytes));
    }
    Ok(())
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
    // What cannot be continued is refused by whoever tries.
    (!matches!(waits, Ok(None))).then_some(log)
}
