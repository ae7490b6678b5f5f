//! RESTORE ... WITH STANDBY: the database is read until the next restore of its sequence.

use std::path::{Path, PathBuf};
use std::time::Instant;

use windlass_base::Guid;
use windlass_base::message::table;
use windlass_catalog::{DatabaseRecord, DatabaseState, FileRecord};
use windlass_media::SourceKind;
use windlass_source::engine::{EngineLogSnapshot, SavedTail, wait_at_tail};
use windlass_source::{Recovery, Snapshot as _};

use super::engine::standby_lost;
use super::recovery::is_whole;
use super::registration::store_or_tell;
use super::target::log;
use super::{RestoreOperation, RestoreOutcome, outside_folders, placed};
use crate::names::part_of_database;
use crate::operation::timing;
use crate::sessions::InUse;
use crate::{Failure, Session, Sink};

impl RestoreOperation<'_> {
    /// Where the standby file goes, if there is to be one. Refused before anything is changed.
    pub(super) fn standby_path(&self) -> Result<Option<PathBuf>, Failure> {
        let reader = &self.reader;
        let Some(written) = &reader.options.standby else {
            return Ok(None);
        };
        match reader.opened.set.source_kind {
            SourceKind::Engine => {
                let path = path_of(self.session, written)?;
                let description = &reader.opened.set.source_description;
                windlass_source::engine::check_standby(&path, description)?;
                Ok(Some(path))
            }
            _ => Err(table::standby_of_sqlite(reader.name).into()),
        }
    }

    /// Makes the standby file of files that wait for the next restore.
    pub(super) fn stand_by(
        &self,
        file: Option<&Path>,
        files: &[FileRecord],
    ) -> Result<(), Failure> {
        let (Some(file), Some(log), Recovery::NoRecovery) = (file, log(files), self.recovery)
        else {
            return Ok(());
        };
        Ok(windlass_source::engine::stand_by(
            &log.path,
            self.reader.name,
            file,
        )?)
    }
}

/// Where a standby file goes.
pub(in crate::operation) fn path_of(session: &Session, written: &str) -> Result<PathBuf, Failure> {
    let path = placed(&session.instance.drives().path(written)?)?;
    if let Some(database) = part_of_database(&path) {
        let why = format!("it would belong to the database '{}'.", database.display());
        return Err(table::path_means_no_file(path.display(), why).into());
    }
    match outside_folders(session, &path)? {
        Some(cause) => Err(cause.into()),
        None => Ok(path),
    }
}

/// Lets a database that waits for further restores be read meanwhile, without another set.
pub(super) fn begin(
    session: &mut Session,
    name: &str,
    known: Option<DatabaseRecord>,
    (log, written): (&Path, &str),
    sink: &mut dyn Sink,
) -> Result<RestoreOutcome, Failure> {
    let begun = Instant::now();
    let file = path_of(session, written)?;
    if session.is_rehearsal() {
        sink.message(table::recovery_rehearsed(file.display()));
        return Ok(RestoreOutcome::Rehearsed);
    }
    let alone = session.use_alone(name);
    let _alone = alone.ok_or_else(|| Failure::from(table::exclusive_access()))?;
    session.queries.leave(name);
    session.instance.engines.close(name)?;
    if let Some(known) = &known
        && is_whole(log, known)?
    {
        wait_at_end(log, &file, known)?;
    }
    windlass_source::engine::stand_by(log, name, &file)
        .map_err(|error| standby_lost(error, name, known.as_ref()))?;
    if let Some(known) = known {
        let record = DatabaseRecord {
            state: DatabaseState::Standby,
            ..known
        };
        store_or_tell(session, &record, sink);
    }
    sink.message(timing::closing("RESTORE DATABASE", 0, 0, begun.elapsed()));
    Ok(RestoreOutcome::Recovered)
}

/// Ends that a database is read between two restores, if it is.
pub(super) fn end(
    session: &mut Session,
    name: &str,
    known: Option<DatabaseRecord>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let _alone = leave(session, name, known.as_ref())?;
    let Some(known) = known.filter(|known| known.state == DatabaseState::Standby) else {
        return Ok(());
    };
    let log = known.log_path.clone().unwrap_or_default();
    windlass_source::engine::end_stand_by(&log)
        .map_err(|error| standby_lost(error, name, Some(&known)))?;
    let state = DatabaseState::Restoring;
    store_or_tell(session, &DatabaseRecord { state, ..known }, sink);
    Ok(())
}

/// BACKUP LOG WITH NORECOVERY has left the files as they were: makes them wait for the next restore.
fn wait_at_end(log: &Path, standby: &Path, known: &DatabaseRecord) -> Result<(), Failure> {
    let snapshot = EngineLogSnapshot::of_file(log)?;
    snapshot.check_standby(standby)?;
    let position = snapshot.position();
    drop(snapshot);
    let tail = SavedTail {
        // Only a differential asks which backup it continues, and none continues this one.
        set_guid: Guid::random(),
        checkpoint_lsn: position.checkpoint_lsn,
        last_lsn: position.last_lsn,
        made_for: Some(known.made_for),
    };
    Ok(wait_at_tail(log, &tail)?)
}

/// Closes a database that is read between two restores, and keeps others from opening it, before the next one.
pub(super) fn leave(
    session: &mut Session,
    name: &str,
    known: Option<&DatabaseRecord>,
) -> Result<Option<InUse>, Failure> {
    if known.is_none_or(|known| known.state != DatabaseState::Standby) {
        return Ok(None);
    }
    let alone = session.use_alone(name);
    let alone = alone.ok_or_else(|| Failure::from(table::exclusive_access()))?;
    session.queries.leave(name);
    session.instance.engines.close(name)?;
    Ok(Some(alone))
}
