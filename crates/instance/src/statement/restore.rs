//! RESTORE DATABASE.

use std::path::{Path, PathBuf};
use std::time::Instant;

use windlass_base::Message;
use windlass_base::message::table;
use windlass_catalog::{DatabaseRecord, Origin, RestoreFileRecord};
use windlass_crypt::KeyRing;
use windlass_io::queue::IoMethodChoice;
use windlass_media::{DatabaseFile, FileMode, SetConfiguration, SourceKind};
use windlass_pipeline::ReadKeys;
use windlass_source::sqlite::{
    self, Existing, FileIdentity, RequiredBase, RestoreRequest, SqliteTarget,
};
use windlass_tsql::ast::{FileSpec, Name, RestoreSource, RestoreStatement};
use windlass_tsql::option::StatementKind;
use windlass_tsql::span::Spanned;

use super::asked::Asked;
use super::placing::Placing;
use super::sql_server::Media;
use super::{database, reading, recovery, restore_engine, restore_pages};
use crate::instance::new_record;
use crate::message_of::{os_error, quoted_os_error};
use crate::names::absolute;
use crate::option::{self, RestoreChoices};
use crate::{Failure, Session, Sink};

pub(super) const OPERATION: &str = "RESTORE DATABASE";

/// Options of a restore that only plain commands have.
#[derive(Debug, Clone, Default)]
pub struct RestoreExtras {
    /// Target of the database's file, whatever its original name; no MOVE is needed.
    pub target: Option<PathBuf>,
    /// The number of threads; chosen by the plan when absent.
    pub threads: Option<u32>,
    /// What carries the reads.
    pub io_method: IoMethodChoice,
    /// Whether the restored file stays unregistered.
    pub is_passing: bool,
    /// Whether to refuse a path that comes only from the backup, because the user has not checked
    /// it.
    pub needs_target: bool,
    /// Keys beside those of the instance. If there are any, the set must be encrypted.
    pub keys: KeyRing,
}

/// The refusal of RESTORE LOG: nothing can have made a log backup.
pub(super) fn log_refused() -> Vec<Message> {
    vec![
        table::not_in_simple_recovery("RESTORE LOG"),
        table::terminating_abnormally("RESTORE LOG"),
    ]
}

pub(super) fn execute(
    session: &mut Session,
    statement: &RestoreStatement,
    name: &Spanned<Name>,
    files: &[Spanned<FileSpec>],
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let close = |failure: Failure| failure.then(table::terminating_abnormally(OPERATION));
    let name = option::name(&name.node, session).map_err(close)?;
    if !files.is_empty() {
        return restore_pages::run(session, statement, &name, files, sink).map_err(close);
    }
    run_closing(session, statement, &name, &RestoreExtras::default(), sink)
}

/// Restores a database under a name.
pub(crate) fn run_closing(
    session: &mut Session,
    statement: &RestoreStatement,
    name: &str,
    extras: &RestoreExtras,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    run(session, statement, name, extras, sink)
        .map_err(|failure| failure.then(table::terminating_abnormally(OPERATION)))
}

fn run(
    session: &mut Session,
    statement: &RestoreStatement,
    name: &str,
    extras: &RestoreExtras,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    check_unused(session, name)?;
    let kind = StatementKind::RestoreDatabase;
    if let Some(media) = Media::recognise(session, statement, kind)? {
        return media.restore(session, name, extras, sink);
    }
    let choices = option::choose_restore(&statement.options, kind, session)?;
    let known = session.instance.database(name)?;
    if matches!(statement.source, RestoreSource::None) {
        return recovery::run(session, name, known, &choices, extras, sink);
    }
    let asked = Asked::open(session, statement, name, choices, extras)?;
    check_moves(&asked.choices, &asked.set)?;
    reading::tell_later_sets(&asked.media, &asked.choices, sink);
    if asked.set.source_kind == SourceKind::Engine {
        let work = restore_engine::Work {
            session,
            known,
            asked,
        };
        return work.run(sink);
    }
    let (target, is_named) = target(session, known.as_ref(), &asked)?;
    Work {
        session,
        known,
        target,
        is_named,
        asked,
    }
    .run(sink)
}

/// The file of a set that was made from a SQLite file.
fn only_file<'a>(
    name: &str,
    known: Option<&DatabaseRecord>,
    set: &'a SetConfiguration,
) -> Result<&'a DatabaseFile, Failure> {
    if known.is_some_and(|known| known.log_path.is_some()) {
        return Err(table::restore_over_engine(name).into());
    }
    match set.files.as_slice() {
        [file] => Ok(file),
        files => Err(table::restore_of_several_files(files.len()).into()),
    }
}

/// What no restore can do in this session.
pub(super) fn check_session(session: &Session, name: &str) -> Result<(), Failure> {
    let advice = "Give the database another name.";
    database::check_own(session, name, "A restore", advice)
}

/// The same where the database is closed or replaced: it may not be the session's own.
pub(super) fn check_unused(session: &Session, name: &str) -> Result<(), Failure> {
    check_session(session, name)?;
    match session.current_database().eq_ignore_ascii_case(name) {
        true => Err(table::in_use_by_session("RESTORE", name).into()),
        false => Ok(()),
    }
}

/// Every MOVE must name a file of the set.
pub(super) fn check_moves(choices: &RestoreChoices, set: &SetConfiguration) -> Result<(), Failure> {
    let is_there = |logical: &str| {
        let mut files = set.files.iter();
        files.any(|file| file.logical_name.eq_ignore_ascii_case(logical))
    };
    let mut moves = choices.moves.iter();
    match moves.find(|(logical, _)| !is_there(logical)) {
        Some((logical, _)) => Err(table::logical_file_unknown(logical, &set.database)
            .with_state(2)
            .into()),
        None => Ok(()),
    }
}

/// Where MOVE sends a file, as it is written.
pub(super) fn moved_to<'a>(choices: &'a RestoreChoices, logical: &str) -> Option<&'a str> {
    let mut moves = choices.moves.iter();
    let found = moves.find(|(known, _)| known.eq_ignore_ascii_case(logical));
    found.map(|(_, path)| path.as_str())
}

/// Where the database's file goes: as the command says, as MOVE says, to the file of the database
/// that is replaced, or to where it came from. Also whether the command or MOVE names it.
fn target(
    session: &Session,
    known: Option<&DatabaseRecord>,
    asked: &Asked<'_>,
) -> Result<(PathBuf, bool), Failure> {
    let file = only_file(asked.name, known, &asked.set)?;
    let (path, is_named) = match (
        &asked.extras.target,
        asked.moved(session, &file.logical_name)?,
        known,
    ) {
        (Some(target), ..) => (target.clone(), true),
        (None, Some(moved), _) => (moved, true),
        (None, None, Some(known)) => (known.path.clone(), false),
        (None, None, None) => (asked.original_place(session, file)?, false),
    };
    Ok((placed(&path)?, is_named))
}

/// The absolute path of a file that is restored; its folder must be there.
pub(super) fn placed(path: &Path) -> Result<PathBuf, Failure> {
    let placed = absolute(path)
        .map_err(|error| table::cannot_open_file(path.display(), os_error(&error)))?;
    let folder = windlass_io::directory::parent(&placed);
    match std::fs::metadata(&folder) {
        Err(error) => {
            let error = quoted_os_error(&error);
            Err(table::directory_lookup_failed(placed.display(), error).into())
        }
        Ok(_) => Ok(placed),
    }
}

/// A restore whose statement has been understood.
struct Work<'a> {
    session: &'a mut Session,
    known: Option<DatabaseRecord>,
    target: PathBuf,
    /// Whether MOVE or the command names the target.
    is_named: bool,
    asked: Asked<'a>,
}

impl Work<'_> {
    fn run(mut self, sink: &mut dyn Sink) -> Result<(), Failure> {
        let existed = self.target.exists();
        let existing = self.check_target()?;
        // Before anything is changed: a set that cannot be read leaves everything as it was.
        let keys = self.asked.unlock(self.session)?;
        if self.session.is_rehearsal() {
            let target = std::slice::from_ref(&self.target);
            return self.asked.rehearse(keys, target, sink);
        }
        self.session.queries.release(&self.target);
        let request = self.request(existing, &keys);
        let target = SqliteTarget::begin(&request)?;
        let begun = Instant::now();
        let report = self
            .asked
            .copy(self.session, keys, Box::new(target), sink)?;
        self.asked.tell(&report, &self.target, sink);
        self.register(existed)?;
        let files = vec![RestoreFileRecord {
            file_number: 1,
            path: self.target.display().to_string(),
        }];
        self.asked
            .conclude(self.session, &report, begun, files, sink)
    }

    fn request(&self, existing: Existing, keys: &ReadKeys) -> RestoreRequest {
        let set = &self.asked.set;
        let file = set.files.first();
        RestoreRequest {
            target: self.target.clone(),
            existing,
            database_name: self.asked.name.to_owned(),
            family_guid: set.family_guid,
            set_guid: set.set_guid,
            checkpoint_lsn: set.checkpoint_lsn,
            size_bytes: file.map_or(0, |file| file.size_bytes),
            base: self.asked.is_differential().then_some(RequiredBase {
                set_guid: set.differential_base_guid,
                checkpoint_lsn: set.differential_base_lsn,
            }),
            protection: self.asked.protection(keys),
            allow_less_protected: self.asked.choices.allows_unencrypted,
            as_is: self.asked.choices.as_is,
            mode: file.and_then(|file| file.mode).map(FileMode::bits),
            cancel: self.session.cancel_flag(),
        }
    }

    /// SQL Server's rules for overwriting.
    fn check_target(&self) -> Result<Existing, Failure> {
        let set = &self.asked.set;
        let is_differential = self.asked.is_differential();
        let own: Vec<PathBuf> = match is_differential {
            // The full backup was allowed to go there.
            true => vec![self.target.clone()],
            false => self.known.iter().map(|known| known.path.clone()).collect(),
        };
        let placing = Placing {
            logical: set.files.first().map_or("", |file| &file.logical_name),
            path: &self.target,
            is_named: self.is_named,
            own: &own,
            together: &[],
        };
        if let Some(known) = self.known.as_ref().filter(|_| !is_differential) {
            let family = FileIdentity::of(&known.path).family_guid;
            let is_other = known.path.exists() && family != set.family_guid;
            if is_other && !self.asked.choices.replace {
                return Err(table::other_database(self.asked.name).with_state(4).into());
            }
        }
        placing.check(self.session, &self.asked.wish())?;
        match &self.known {
            _ if is_differential => self.check_sequence(),
            None if !self.asked.choices.replace => Ok(Existing::Refuse),
            _ => Ok(Existing::Replace),
        }
    }

    /// A differential continues a sequence that was left open.
    fn check_sequence(&self) -> Result<Existing, Failure> {
        // The restore before it was a rehearsal too.
        if self.session.is_rehearsal() {
            return Ok(Existing::Replace);
        }
        let state = sqlite::restoring(&self.target)?;
        match (&self.known, state) {
            (_, Some(_)) => Ok(Existing::Replace),
            (None, None) if self.asked.extras.target.is_none() => {
                Err(table::restore_cannot_create(self.asked.name).into())
            }
            _ => Err(table::not_ready_to_rollforward().into()),
        }
    }

    /// Adds the database to the catalog.
    fn register(&mut self, existed: bool) -> Result<(), Failure> {
        let is_new = self.known.is_none();
        if is_new && self.asked.extras.is_passing {
            return Ok(());
        }
        // An existing file belongs to another program, whatever its content is now.
        let origin = if existed {
            Origin::Attached
        } else {
            Origin::Restored
        };
        let before = self.known.take();
        let mut record =
            before.unwrap_or_else(|| new_record(self.asked.name, &self.target, origin));
        self.asked.settle(&mut record);
        record.is_as_is = self.asked.set.seen.is_as_is;
        if let Some(file) = self.asked.set.files.first() {
            record.logical_name.clone_from(&file.logical_name);
        }
        if record.path != self.target {
            record.path.clone_from(&self.target);
            record.origin = origin;
        }
        let instance = &mut self.session.instance;
        match is_new {
            true => drop(instance.register(&record)?),
            false => instance.store(&record)?,
        }
        Ok(())
    }
}
