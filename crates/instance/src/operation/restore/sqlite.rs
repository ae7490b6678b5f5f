//! A SQLite file as the target of a restore: written to a staging file next to it, published by a
//! rename.

use std::path::Path;

use windlass_base::Guid;
use windlass_base::message::table;
use windlass_catalog::{DatabaseRecord, DatabaseState, EarlierBackups, FileRecord, Origin};
use windlass_media::{FileMode, SetConfiguration};
use windlass_source::sqlite::{
    self, FileIdentity, LogRestoreRequest, RequiredBase, RestoreRequest, SpoolError, SpooledLog,
    SqliteLogTarget, SqliteTarget,
};

use super::reader::SetReader;
use super::target::{Begun, TargetKind, Wanted, first};
use crate::{Failure, Session};

pub(super) struct SqliteFile;

impl TargetKind for SqliteFile {
    fn admit(&self, reader: &SetReader<'_>, known: Option<&DatabaseRecord>) -> Result<(), Failure> {
        if known.is_some_and(|known| known.log_path.is_some()) {
            return Err(table::restore_over_engine(reader.name).into());
        }
        match reader.opened.set.files.as_slice() {
            [file] if !file.is_log => Ok(()),
            [data, log] if reader.is_log() && !data.is_log && log.is_log => Ok(()),
            files => Err(table::restore_of_several_files(files.len()).into()),
        }
    }

    fn is_other(&self, known: &DatabaseRecord, set: &SetConfiguration) -> bool {
        // A file without attributes, because they were lost or never written, does not say that it is of another
        // database than the catalog. Whether it was made for this one is checked before it is replaced.
        let recorded = FileIdentity::recorded_family(&known.path);
        let derived = || {
            let is_there = known.path.exists();
            is_there.then(|| FileIdentity::of(&known.path).family_guid)
        };
        let family = recorded.or(known.family_guid).or_else(derived);
        family.is_some_and(|family| family != set.family_guid)
    }

    fn restored_set(&self, files: &[FileRecord]) -> Result<Option<Guid>, Failure> {
        let state = sqlite::restoring(path(files))?;
        Ok(state.map(|state| state.set_guid))
    }

    fn waits_for(&self, files: &[FileRecord]) -> Option<Guid> {
        let state = sqlite::restoring(path(files)).ok()??;
        Some(state.made_for).filter(|made_for| !made_for.is_nil())
    }

    fn release(
        &self,
        session: &mut Session,
        _name: Option<&str>,
        files: &[FileRecord],
    ) -> Result<(), Failure> {
        session.queries.release(path(files));
        Ok(())
    }

    fn has_unsaved_tail(
        &self,
        session: &Session,
        _reader: &SetReader<'_>,
        known: &DatabaseRecord,
    ) -> bool {
        let of_online = (known.state == DatabaseState::Online).then_some(known);
        let Some(spool) = of_online.and_then(|known| session.instance.kept_log(known)) else {
            return false;
        };
        let Ok(EarlierBackups { last_lsn, .. }) = session.earlier(known) else {
            return true;
        };
        let path = known.path.clone();
        let log = SpooledLog { path, spool };
        let (log, is_known) = match log.cut(last_lsn, &session.cancel_flag()) {
            Ok(log) => {
                let is_known = log.lack.is_none();
                (log, is_known)
            }
            // Nothing was ever captured: no chain has begun.
            Err(windlass_source::Error::Spool(SpoolError::Empty { .. })) => return false,
            // Of a database that is lost, what was captured says it. Of one that is there nobody knows.
            Err(_) => match log.as_it_is() {
                Ok(log) => (log, !known.path.exists()),
                Err(_) => return true,
            },
        };
        !is_known || log.slices.iter().any(|slice| slice.is_ahead_of(last_lsn))
    }

    fn begin(&self, wanted: &Wanted<'_>) -> Result<Begun, Failure> {
        let (reader, options) = (wanted.reader, wanted.reader.options);
        let set = &reader.opened.set;
        if reader.is_log() {
            return begin_log(wanted);
        }
        let file = set.files.first();
        let request = RestoreRequest {
            target: path(wanted.files).to_owned(),
            existing: wanted.existing(),
            database_name: reader.name.to_owned(),
            family_guid: set.family_guid,
            set_guid: set.set_guid,
            checkpoint_lsn: set.checkpoint_lsn,
            size_bytes: file.map_or(0, |file| file.size_bytes),
            base: reader.is_differential().then_some(RequiredBase {
                set_guid: set.differential_base_guid,
                checkpoint_lsn: set.differential_base_lsn,
            }),
            protection: reader.opened.protection(wanted.keys),
            allow_less_protected: options.allows_unencrypted,
            as_is: options.is_as_is,
            mode: file.and_then(|file| file.mode).map(FileMode::bits),
            made_for: wanted.made_for,
            wal_position: set.wal_position,
            cancel: wanted.session.cancel_flag(),
        };
        let target = SqliteTarget::begin(&request)?;
        Ok(Begun::of(Box::new(target)))
    }

    /// Not created here, whatever it contains now.
    fn origin_of_replaced(&self) -> Origin {
        Origin::Attached
    }
}

/// Rolls the waiting file forward.
fn begin_log(wanted: &Wanted<'_>) -> Result<Begun, Failure> {
    let (reader, options) = (wanted.reader, wanted.reader.options);
    let set = &reader.opened.set;
    let target = SqliteLogTarget::begin(LogRestoreRequest {
        target: path(wanted.files).to_owned(),
        description: set.source_description.clone(),
        family_guid: set.family_guid,
        set_guid: set.set_guid,
        checkpoint_lsn: set.last_lsn,
        stop: options.stop.clone(),
        existing: wanted.existing(),
        protection: reader.opened.protection(wanted.keys),
        allow_less_protected: options.allows_unencrypted,
        made_for: wanted.made_for,
        cancel: wanted.session.cancel_flag(),
    })?;
    Ok(Begun {
        rolled: Some(target.rolled()),
        target: Box::new(target),
    })
}

fn path(files: &[FileRecord]) -> &Path {
    first(files).map_or(Path::new(""), |file| &file.path)
}
