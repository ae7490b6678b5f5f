//! The files of a page engine database as the target of a restore: data files next to their final
//! places, and a log that is collected and applied to them.

use windlass_base::Guid;
use windlass_base::message::table;
use windlass_catalog::{DatabaseRecord, DatabaseState, FileRecord, Origin};
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{LogIdentity, has_unsaved_tail};
use windlass_media::{FileMode, SetConfiguration};
use windlass_source::engine::{
    EngineBase, EngineLogTarget, EngineRestoreRequest, EngineTarget, PlacedFile, pending,
};
use windlass_source::ownership::Left;

use super::reader::SetReader;
use super::target::{Begun, TargetKind, Wanted, log};
use crate::{Failure, Session};

pub(super) struct EngineFiles;

impl TargetKind for EngineFiles {
    fn admit(
        &self,
        _reader: &SetReader<'_>,
        known: Option<&DatabaseRecord>,
    ) -> Result<(), Failure> {
        match known.filter(|known| known.log_path.is_none()) {
            None => Ok(()),
            Some(known) => Err(table::restore_over_sqlite_file(&known.name).into()),
        }
    }

    fn is_other(&self, known: &DatabaseRecord, set: &SetConfiguration) -> bool {
        known
            .family_guid
            .is_some_and(|family| family != set.family_guid)
    }

    /// The log tells whose files they are, also where files cannot be marked.
    fn others(&self, known: Option<&DatabaseRecord>, own: &[FileRecord]) -> Vec<Left> {
        let of_online = known.filter(|known| known.state == DatabaseState::Online);
        let (Some(log), Some(guid)) = (log(own), of_online.and_then(|known| known.family_guid))
        else {
            return Vec::new();
        };
        // A log that cannot be read says nothing.
        let found = LogIdentity::of(&RealFileSystem, &log.path).ok().flatten();
        let Some(found) = found.filter(|found| found.guid != guid) else {
            return Vec::new();
        };
        let is_named = |file: &&FileRecord| file.is_log || found.data_paths.contains(&file.path);
        let left = |file: &FileRecord| Left {
            path: file.path.clone(),
            why: format!(
                "it belongs to another database, '{}' with the identity {}",
                found.name, found.guid
            ),
        };
        own.iter().filter(is_named).map(left).collect()
    }

    fn restored_set(&self, files: &[FileRecord]) -> Result<Option<Guid>, Failure> {
        let Some(log) = log(files) else {
            return Ok(None);
        };
        let state = pending(&log.path)?;
        Ok(state.map(|state| state.set_guid))
    }

    fn waits_for(&self, files: &[FileRecord]) -> Option<Guid> {
        pending(&log(files)?.path).ok()??.made_for
    }

    fn release(
        &self,
        session: &mut Session,
        name: Option<&str>,
        _files: &[FileRecord],
    ) -> Result<(), Failure> {
        name.map_or(Ok(()), |name| session.instance.engines.close(name))
    }

    fn data_files_in_sequence(&self, files: &[FileRecord]) -> usize {
        let state = log(files).and_then(|log| pending(&log.path).ok()?);
        state.map_or(0, |state| state.data.len())
    }

    fn has_unsaved_tail(
        &self,
        _session: &Session,
        reader: &SetReader<'_>,
        known: &DatabaseRecord,
    ) -> bool {
        let log = known.log_path.as_deref();
        let Some(log) = log.filter(|_| known.state == DatabaseState::Online) else {
            return false;
        };
        // Of a log that cannot be read nobody knows; a database whose backups are SIMPLE keeps none.
        let unknown = || reader.opened.set.recovery_model == "FULL";
        has_unsaved_tail(&RealFileSystem, log).unwrap_or_else(|_| unknown())
    }

    fn begin(&self, wanted: &Wanted<'_>) -> Result<Begun, Failure> {
        let (reader, options) = (wanted.reader, wanted.reader.options);
        let set = &reader.opened.set;
        let log = set.files.iter().find(|file| file.is_log);
        let request = EngineRestoreRequest {
            description: set.source_description.clone(),
            files: wanted
                .files
                .iter()
                .map(|file| PlacedFile {
                    file_id: u16::try_from(file.file_id).unwrap_or(u16::MAX),
                    path: file.path.clone(),
                    mode: mode_of(set, file.file_id),
                })
                .collect(),
            database_name: reader.name.to_owned(),
            log_bytes: log.map_or(0, |log| log.size_bytes),
            redo_bytes: log.map_or(0, |log| log.backup_bytes),
            stop: options.stop.clone(),
            existing: wanted.existing(),
            protection: reader.opened.protection(wanted.keys),
            allow_less_protected: options.allows_unencrypted,
            as_is: options.is_as_is,
            made_for: wanted.made_for,
            set_guid: set.set_guid,
            checkpoint_lsn: set.checkpoint_lsn,
            base: reader.is_differential().then_some(EngineBase {
                set_guid: set.differential_base_guid,
                checkpoint_lsn: set.differential_base_lsn,
            }),
        };
        if !reader.is_log() {
            let target = EngineTarget::begin(&request);
            let target = target.map_err(|error| standby_lost(error, reader.name, wanted.known))?;
            return Ok(Begun::of(Box::new(target)));
        }
        let target = EngineLogTarget::begin(&request);
        let target = target.map_err(|error| standby_lost(error, reader.name, wanted.known))?;
        Ok(Begun {
            rolled: Some(target.rolled()),
            target: Box::new(target),
        })
    }

    fn origin_of_replaced(&self) -> Origin {
        Origin::Restored
    }
}

/// The failure of a restore, with the database whose standby file is missing.
pub(super) fn standby_lost(
    error: windlass_source::Error,
    name: &str,
    known: Option<&DatabaseRecord>,
) -> Failure {
    match error {
        windlass_source::Error::StandbyLost { path, why } => {
            let id = known.map_or(0, |known| known.database_id);
            table::standby_lost(name, id, path.display(), why).into()
        }
        other => other.into(),
    }
}

fn mode_of(set: &SetConfiguration, file_id: u32) -> Option<u16> {
    let mut files = set.files.iter();
    let file = files.find(|file| u32::from(file.file_id) == file_id);
    file?.mode.map(FileMode::bits)
}
