//! RESTORE DATABASE from Windlass media with the files of a SQL Server database that was offline: they become what they
//! were, byte for byte.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use windlass_base::Moment;
use windlass_base::message::table;
use windlass_catalog::{DatabaseRecord, Depth, FileRecord, RestoreFileRecord, RestoreType};
use windlass_media::{DatabaseFile, FileMode, SetConfiguration, SetType};
use windlass_pipeline::{ReadKeys, ReadReport};
use windlass_source::Recovery;
use windlass_source::engine::StopAt;
use windlass_sqlserver::{
    OfflineFile, OfflineTarget, Restored, RestoredBase, RestoredFile, complete, safe_file_name,
};

use super::restore::{check_entry, check_places, register, seize, tell_places, tell_written};
use crate::message_of::loss_messages;
use crate::operation::media::check_moves;
use crate::operation::observer::Watch;
use crate::operation::restore::{SetReader, Wish, placed};
use crate::operation::{history, timing};
use crate::{Completed, Failure, Session, Sink};

/// Permissions of new files if the media do not say them: the owner's.
const MODE: u16 = 0o600;

/// Restores the open set.
pub(in crate::operation) fn restore(
    session: &mut Session,
    reader: &SetReader<'_>,
    known: Option<DatabaseRecord>,
    sink: &mut dyn Sink,
) -> Result<PathBuf, Failure> {
    let (name, options, set) = (reader.name, reader.options, &reader.opened.set);
    check(reader, known.as_ref())?;
    let own = match &known {
        Some(known) => session.instance.catalog().files(known.database_id)?,
        None => Vec::new(),
    };
    let files = files(session, reader, &own)?;
    let places: Vec<(String, PathBuf)> = files
        .iter()
        .map(|file| (file.logical_name.clone(), file.path.clone()))
        .collect();
    if let Some(first) = files.first()
        && !session.is_rehearsal()
        && complete(&first.path)?
        && !options.replaces
    {
        let hint = "It was interrupted while its files got their names, and is complete now. To restore again, use REPLACE.";
        return Err(table::restoring_over_restore(first.path.display(), hint).into());
    }
    let wish = Wish {
        name,
        devices: &reader.opened.devices,
        replace: options.replaces,
        replaces_backups: false,
    };
    let of = known.as_ref().map(|known| known.name.as_str());
    check_places(session, of, &places, &wish)?;
    let keys = reader.unlock(session)?;
    let path = files
        .first()
        .map_or_else(PathBuf::new, |file| file.path.clone());
    if session.is_rehearsal() {
        tell_places(&places, sink);
        return Ok(path);
    }
    let begun = Instant::now();
    let report = copy(session, reader, keys, &files, sink)?;
    sink.completed(Completed::Restore {
        database: name,
        path: &path,
        position: reader.opened.position,
        report: &report,
    });
    let restored = described(set, files);
    tell_written(&restored, sink);
    match options.is_unregistered {
        true => sink.message(table::files_are_sql_servers()),
        false => {
            let is_damaged = set.is_damaged || !report.damaged.is_empty();
            let outcome = (Recovery::Recovery, is_damaged);
            register(session, name, known, &restored, outcome, sink);
        }
    }
    conclude(session, reader, &restored, &report, begun, sink)?;
    Ok(path)
}

/// Refuses what cannot follow, or be done to, files that are as they are.
fn check(reader: &SetReader<'_>, known: Option<&DatabaseRecord>) -> Result<(), Failure> {
    let (name, options, set) = (reader.name, reader.options, &reader.opened.set);
    let goes_on = options.recovery != Recovery::Recovery || options.standby.is_some();
    if goes_on || options.stop != StopAt::End || set.set_type != SetType::Full {
        return Err(table::sql_server_files_are_final(&set.database).into());
    }
    if options.is_as_is {
        let option = "Content that is not a database";
        return Err(table::sql_server_option_refused(option, &set.database).into());
    }
    check_entry(name, known, options)?;
    check_moves(&options.moves, set, name)
}

/// The files with their places: from MOVE, in the folder of the command, or of the database that they replace.
fn files(
    session: &Session,
    reader: &SetReader<'_>,
    own: &[FileRecord],
) -> Result<Vec<OfflineFile>, Failure> {
    let (options, set) = (reader.options, &reader.opened.set);
    let mut seen = BTreeSet::new();
    let mut files = Vec::new();
    for file in &set.files {
        let of_own = own
            .iter()
            .find(|own| own.file_id == u32::from(file.file_id));
        let moved = reader.moved(session, &file.logical_name)?;
        let path = match (moved, &options.target, of_own) {
            (Some(path), ..) => path,
            (None, Some(folder), _) => folder.join(file_name(file)),
            (None, None, Some(own)) => own.path.clone(),
            (None, None, None) => {
                return Err(table::sql_server_files_need_place(&file.logical_name).into());
            }
        };
        let path = placed(&path)?;
        if !seen.insert(path.clone()) {
            return Err(windlass_sqlserver::Error::SameDestination(path).into());
        }
        files.push(OfflineFile {
            id: file.file_id,
            is_log: file.is_log,
            logical_name: file.logical_name.clone(),
            path,
            bytes: file.size_bytes,
        });
    }
    Ok(files)
}

fn file_name(file: &DatabaseFile) -> PathBuf {
    let extension = match (file.is_log, file.file_id) {
        (true, _) => "ldf",
        (false, 1) => "mdf",
        (false, _) => "ndf",
    };
    safe_file_name(&file.logical_name, extension)
}

/// Copies the set to the files, which appear all together.
fn copy(
    session: &mut Session,
    reader: &SetReader<'_>,
    keys: ReadKeys,
    files: &[OfflineFile],
    sink: &mut dyn Sink,
) -> Result<ReadReport, Failure> {
    let opened = &reader.opened;
    // A program that has a database open would continue with the replaced file.
    let seized = seize(files.iter().map(|file| file.path.as_path()))?;
    let mode = opened.set.files.iter().find_map(|file| file.mode);
    let mode = mode.map_or(MODE, |mode| FileMode::bits(mode) & 0o666 | MODE);
    let target = OfflineTarget::begin(files, reader.options.replaces, mode)?;
    let stats = reader.settled.stats;
    let watch = Watch::new(session, reader.operation(), reader.name, stats, sink);
    let request = reader.read_request(keys);
    let (media, position) = (&opened.media, opened.position);
    let report = match windlass_pipeline::restore(media, position, &request, &target, &watch) {
        Ok(report) => report,
        Err(error) => {
            drop(watch);
            let failure = Failure::from(error);
            history::record_verification(session, opened, Depth::Content, Some(&failure));
            return Err(failure);
        }
    };
    target.keep()?;
    drop(seized);
    watch.finish();
    Ok(report)
}

fn described(set: &SetConfiguration, files: Vec<OfflineFile>) -> Restored {
    let file = |file: OfflineFile| {
        let mut stored = set.files.iter();
        let stored = stored.find(|stored| stored.file_id == file.id);
        RestoredFile {
            id: file.id,
            logical_name: file.logical_name,
            is_log: file.is_log,
            path: file.path,
            bytes: file.bytes,
            extents: stored.map_or(0, |stored| {
                stored.backup_bytes / windlass_base::EXTENT_BYTES as u64
            }),
        }
    };
    Restored {
        database: set.database.clone(),
        family: set.family_guid,
        base: RestoredBase {
            set: set.set_guid,
            checkpoint: set.checkpoint_lsn,
            finished: set.finished.or_else(|| Some(Moment::now().0)),
        },
        files: files.into_iter().map(file).collect(),
        log_bytes: 0,
        findings: Vec::new(),
    }
}

/// Writes the history, and sends the closing message or what was lost.
fn conclude(
    session: &mut Session,
    reader: &SetReader<'_>,
    restored: &Restored,
    report: &ReadReport,
    begun: Instant,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    if reader.opened.set.is_damaged {
        sink.message(table::damaged_set_restored(reader.name));
    }
    let files = restored.files.iter().map(|file| RestoreFileRecord {
        file_number: file.id.into(),
        path: text(&file.path),
    });
    let files = files.collect();
    reader.remember(
        session,
        RestoreType::Database,
        Recovery::Recovery,
        files,
        sink,
    );
    let lost = (!report.damaged.is_empty()).then(|| {
        let mut messages = loss_messages(&report.damaged);
        messages.push(table::lost_is_zero());
        Failure::of_loss(messages)
    });
    history::record_verification(session, &reader.opened, Depth::Restored, lost.as_ref());
    sink.message(timing::closing(
        reader.operation(),
        timing::pages(&report.files),
        report.processed_bytes,
        begun.elapsed(),
    ));
    lost.map_or(Ok(()), Err)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
