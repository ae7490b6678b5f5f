//! RESTORE DATABASE from backups of SQL Server: its data files, and its entry.
//!
//! With NORECOVERY the database waits for differentials, which are applied to its files in place: while they are, the
//! entry has no base, so that a restore that broke off is not continued. With RECOVERY it is offline: listed and
//! described, but nothing opens it here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use windlass_bak::BackupType;
use windlass_bak::page::{EXTENT_BYTES, PAGE_BYTES};
use windlass_base::message::table;
use windlass_base::{Message, Moment};
use windlass_catalog::{Base, DatabaseRecord, DatabaseState, FileRecord, Origin};
use windlass_pipeline::OnDamage;
use windlass_source::Recovery;
use windlass_source::engine::StopAt;
use windlass_source::sqlite::{Seized, refuse_to_replace};
use windlass_sqlserver::{
    Continuation, Destination, Restored, Step, backup_type, complete, places, restore, steps,
    steps_after,
};

use super::{DAMAGES_LISTED, Media};
use crate::instance::new_record;
use crate::operation::media::Required;
use crate::operation::restore::{Placing, RestoreOptions, Wish, all, placed, tell_unwritten};
use crate::operation::timing;
use crate::{Failure, Session, Sink};

impl Media<'_> {
    /// Restores the data files to the targets of MOVE or to the target folder.
    pub(in crate::operation) fn restore(
        &self,
        session: &mut Session,
        name: &str,
        options: &RestoreOptions,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let required = Required::of_restore(session, &options.keys, &options.signed_by)?;
        self.check_protection(&required)?;
        let known = session.restored_over(name, options)?;
        check_entry(name, known.as_ref(), options)?;
        if let Some(waiting) = known.as_ref().filter(|known| is_waiting(known))
            && !self.has_full()?
        {
            return self.go_on(session, waiting, options, sink);
        }
        self.refuse_file(options)?;
        let mut moves = Vec::new();
        for (logical, written) in &options.moves {
            let path = session.instance.drives().path(written);
            let path = placed(&path?)?;
            moves.push((logical.clone(), path));
        }
        let destination = Destination {
            folder: options.target.clone(),
            moves,
            replace: options.replaces,
            continue_after_error: options.on_damage == OnDamage::Continue,
        };
        let steps = steps(self.devices, self.position()?)?;
        if !session.is_rehearsal() {
            complete_interrupted(&steps, &destination, name)?;
        }
        let own = known.as_ref().map(|known| known.name.as_str());
        let places = self.places(session, name, own, &steps, &destination)?;
        if session.is_rehearsal() {
            tell_places(&places, sink);
            return Ok(());
        }
        // A program that has a database open would continue with the replaced file.
        let seized = seize(places.iter().map(|(_, path)| path.as_path()))?;
        let restored = restore(&steps, &destination)?;
        drop(seized);
        for (_, finding) in restored.findings.iter().take(DAMAGES_LISTED) {
            sink.message(table::written_damaged(finding));
        }
        tell_written(&restored, sink);
        match options.is_unregistered {
            true => sink.message(table::files_are_sql_servers()),
            false => {
                let outcome = (options.recovery, !restored.findings.is_empty());
                register(session, name, known, &restored, outcome, sink);
            }
        }
        match restored.findings.is_empty() {
            true => Ok(()),
            false => Err(Failure::of_loss(vec![table::set_damaged()])),
        }
    }

    /// Refuses a target that is no folder, such as the name of a SQLite file: the database has several files.
    fn refuse_file(&self, options: &RestoreOptions) -> Result<(), Failure> {
        let Some(target) = options.target.as_deref().filter(|path| !path.is_dir()) else {
            return Ok(());
        };
        let device = self.devices.first().map_or("", |device| &device.name);
        Err(table::sql_server_needs_folder(device, target.display()).into())
    }

    fn has_full(&self) -> Result<bool, Failure> {
        for (index, device) in self.devices.iter().enumerate() {
            let position = if index == 0 { self.position()? } else { 1 };
            if backup_type(device, position)? == BackupType::Database {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Applies differentials to a database that waits for them.
    fn go_on(
        &self,
        session: &mut Session,
        waiting: &DatabaseRecord,
        options: &RestoreOptions,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let name = &waiting.name;
        let Some(base) = waiting.base else {
            return Err(table::sql_server_restore_broke_off(name).into());
        };
        let listed = session.instance.catalog().files(waiting.database_id)?;
        let paths: BTreeMap<u16, PathBuf> = listed
            .iter()
            .filter_map(|file| Some((u16::try_from(file.file_id).ok()?, file.path.clone())))
            .collect();
        let steps = steps_after(self.devices, self.position()?, Some(base.set_guid))?;
        if session.is_rehearsal() {
            for file in &listed {
                let path = file.path.display();
                sink.message(Message::print(format!("File '{path}' would be changed.")));
            }
            return Ok(());
        }
        let begun = Instant::now();
        let continues = options.on_damage == OnDamage::Continue;
        let seized = seize(paths.values().map(PathBuf::as_path))?;
        let prepared = Continuation::prepare(steps, base.set_guid, &paths, continues)?;
        let findings = prepared.findings.clone();
        // Until the files are whole again, nothing continues from here.
        let mut record = DatabaseRecord {
            base: None,
            ..waiting.clone()
        };
        session.instance.store(&record)?;
        let bytes = prepared.apply()? * EXTENT_BYTES as u64;
        drop(seized);
        for (_, finding) in findings.iter().take(DAMAGES_LISTED) {
            sink.message(table::written_damaged(finding));
        }
        record.base = Some(base);
        record.state = state_after(options.recovery);
        session.instance.store(&record)?;
        sink.message(timing::closing(
            options.operation(),
            bytes / PAGE_BYTES as u64,
            bytes,
            begun.elapsed(),
        ));
        tell_state(&record, sink);
        match findings.is_empty() {
            true => Ok(()),
            false => Err(Failure::of_loss(vec![table::set_damaged()])),
        }
    }

    /// The target of each file, which must be allowed.
    fn places(
        &self,
        session: &Session,
        name: &str,
        own: Option<&str>,
        steps: &[Step],
        destination: &Destination,
    ) -> Result<Vec<(String, PathBuf)>, Failure> {
        let mut places = destinations(steps, destination, name)?;
        for (_, path) in &mut places {
            *path = placed(path)?;
        }
        let wish = Wish {
            name,
            devices: self.devices,
            replace: destination.replace,
            replaces_backups: false,
        };
        check_places(session, own, &places, &wish)?;
        Ok(places)
    }
}

/// Checks whether the files of a database, by their logical names, may go to these paths. `own` is the database of SQL
/// Server that they replace.
pub(super) fn check_places(
    session: &Session,
    own: Option<&str>,
    places: &[(String, PathBuf)],
    wish: &Wish<'_>,
) -> Result<(), Failure> {
    let together: Vec<PathBuf> = places.iter().map(|(_, path)| path.clone()).collect();
    all(places.iter().map(|(logical, path)| {
        let placing = Placing {
            logical,
            path,
            is_named: true,
            own: &[],
            together: &together,
        };
        // A SQL Server database has no files of a Windlass database, not even of one of the same name.
        placing.check_unowned(session, own)?;
        placing.check(session, wish)
    }))
}

/// Refuses a name that is another database's, and what needs an entry without one.
pub(super) fn check_entry(
    name: &str,
    known: Option<&DatabaseRecord>,
    options: &RestoreOptions,
) -> Result<(), Failure> {
    if known.is_some_and(|known| known.origin != Origin::SqlServer) {
        return Err(table::database_exists(name).into());
    }
    if options.is_unregistered && options.recovery != Recovery::Recovery {
        return Err(table::sql_server_recovery_not_supported().into());
    }
    if options.stop != StopAt::End {
        return Err(table::option_not_supported("STOPAT").into());
    }
    Ok(())
}

/// Says in a dry run where the files would go.
pub(super) fn tell_places(places: &[(String, PathBuf)], sink: &mut dyn Sink) {
    for (logical, path) in places {
        let path = path.display();
        sink.message(Message::print(format!(
            "File '{logical}' would be written to '{path}'."
        )));
    }
}

pub(super) fn tell_written(restored: &Restored, sink: &mut dyn Sink) {
    for file in &restored.files {
        sink.message(table::file_written(
            &file.logical_name,
            &restored.database,
            file.path.display(),
            file.bytes,
        ));
    }
}

/// Whether a database waits for differentials.
fn is_waiting(record: &DatabaseRecord) -> bool {
    record.origin == Origin::SqlServer && record.state == DatabaseState::Restoring
}

pub(super) fn seize<'p>(paths: impl Iterator<Item = &'p Path>) -> Result<Vec<Seized>, Failure> {
    let mut seized = Vec::new();
    for path in paths {
        refuse_to_replace(path)?;
        seized.extend(Seized::of(path)?);
    }
    Ok(seized)
}

fn state_after(recovery: Recovery) -> DatabaseState {
    match recovery {
        Recovery::Recovery => DatabaseState::Offline,
        Recovery::NoRecovery => DatabaseState::Restoring,
    }
}

/// Says what can be done with the database now.
fn tell_state(record: &DatabaseRecord, sink: &mut dyn Sink) {
    sink.message(match record.state {
        DatabaseState::Restoring => table::sql_server_waits(&record.name),
        _ => table::sql_server_is_offline(&record.name),
    });
}

/// Enters a database whose files are complete, as it was left, and whether something of it was lost. If that fails, the
/// files are there all the same.
pub(super) fn register(
    session: &mut Session,
    name: &str,
    known: Option<DatabaseRecord>,
    restored: &Restored,
    (recovery, is_damaged): (Recovery, bool),
    sink: &mut dyn Sink,
) {
    let data = restored.files.iter().find(|file| !file.is_log);
    let path = data.map(|file| file.path.clone()).unwrap_or_default();
    let base = Base {
        set_guid: restored.base.set,
        lsn: restored.base.checkpoint,
        finished: restored.base.finished.unwrap_or_else(|| Moment::now().0),
    };
    let mut record = known.unwrap_or_else(|| new_record(name, &path, Origin::SqlServer));
    if let Some(data) = data {
        record.logical_name.clone_from(&data.logical_name);
    }
    record.path = path;
    record.family_guid = Some(restored.family);
    record.state = state_after(recovery);
    record.base = Some(base);
    let file = |file: &windlass_sqlserver::RestoredFile| FileRecord {
        file_id: file.id.into(),
        is_log: file.is_log,
        logical_name: file.logical_name.clone(),
        path: file.path.clone(),
    };
    let files: Vec<FileRecord> = restored.files.iter().map(file).collect();
    let catalog = session.instance.catalog_mut();
    let stored = match record.database_id {
        0 => catalog.register_with_files(&record, &files).map(drop),
        id => catalog
            .update(&record)
            .and_then(|()| catalog.set_files(id, &files)),
    };
    match stored {
        Ok(()) => {
            session.note_files(&record, restored.base.finished, is_damaged, sink);
            tell_state(&record, sink);
        }
        Err(error) => tell_unwritten(name, &error.into(), sink),
    }
}

/// Where each file goes, by its logical name.
fn destinations(
    steps: &[Step],
    destination: &Destination,
    name: &str,
) -> Result<Vec<(String, PathBuf)>, Failure> {
    places(steps, destination).map_err(|error| match error {
        windlass_sqlserver::Error::NoSuchFile(logical) => {
            table::logical_file_unknown(logical, name)
                .with_state(2)
                .into()
        }
        other => other.into(),
    })
}

/// A restore to the same place may have been interrupted while its files got their names.
fn complete_interrupted(
    steps: &[Step],
    destination: &Destination,
    name: &str,
) -> Result<(), Failure> {
    let places = destinations(steps, destination, name)?;
    let Some((_, primary)) = places.first() else {
        return Ok(());
    };
    if complete(&placed(primary)?)? && !destination.replace {
        let hint = "It was interrupted while its files got their names, and is complete now. To restore again, use REPLACE.";
        return Err(table::restoring_over_restore(primary.display(), hint).into());
    }
    Ok(())
}

/// Ends a sequence of restores without another backup.
pub(in crate::operation) fn recover(
    session: &mut Session,
    known: &DatabaseRecord,
    options: &RestoreOptions,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    if !is_waiting(known) {
        return Err(table::already_recovered().into());
    }
    if options.stop != StopAt::End || options.follow.is_some() {
        return Err(table::option_not_supported("STOPAT").into());
    }
    if known.base.is_none() {
        return Err(table::sql_server_restore_broke_off(&known.name).into());
    }
    if session.is_rehearsal() {
        sink.message(table::recovery_rehearsed(known.path.display()));
        return Ok(());
    }
    let record = DatabaseRecord {
        state: state_after(options.recovery),
        ..known.clone()
    };
    session.instance.store(&record)?;
    sink.message(timing::closing(options.operation(), 0, 0, Duration::ZERO));
    tell_state(&record, sink);
    Ok(())
}
