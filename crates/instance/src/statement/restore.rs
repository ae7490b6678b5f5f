//! RESTORE DATABASE.

use std::path::{Path, PathBuf};
use std::time::Instant;

use windlass_base::Message;
use windlass_base::message::table;
use windlass_catalog::{DatabaseRecord, Origin, RestoreFileRecord};
use windlass_crypt::KeyRing;
use windlass_io::queue::EngineChoice;
use windlass_media::{DatabaseFile, SetConfiguration, SourceKind};
use windlass_source::sqlite::{
    self, DifferentialBase, Existing, FileIdentity, RestoreRequest, SqliteTarget,
};
use windlass_tsql::ast::{FileSpec, Name, RestoreSource, RestoreStatement};
use windlass_tsql::option::StatementKind;
use windlass_tsql::span::Spanned;

use super::asked::Asked;
use super::{database, reading, recovery, restore_engine, restore_pages};
use crate::instance::new_record;
use crate::message_of::{catalog_message, name_message, os_error, quoted_os_error, source_message};
use crate::names::absolute;
use crate::option::{self, RestoreChoices};
use crate::{Failure, Session, Sink};

pub(super) const OPERATION: &str = "RESTORE DATABASE";

/// What plain commands can say about a restore and T-SQL cannot.
#[derive(Debug, Clone, Default)]
pub struct RestoreExtras {
    /// Where the database's file goes, whatever it was called; no MOVE is needed.
    pub target: Option<PathBuf>,
    /// The number of threads; chosen by the plan when absent.
    pub threads: Option<u32>,
    /// What carries the reads.
    pub engine: EngineChoice,
    /// Whether the restored file stays unregistered.
    pub is_passing: bool,
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
    let choices = option::choose_restore(&statement.options, kind, session)?;
    let known = session
        .instance
        .database(name)
        .map_err(|error| catalog_message(&error))?;
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
    let target = target(session, known.as_ref(), &asked)?;
    Work {
        session,
        known,
        target,
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
        return Err(table::statement_not_supported(
            format!("A restore of a SQLite file over the page engine database '{name}'"),
            "Drop or detach it first, or restore under another name.",
        )
        .into());
    }
    match set.files.as_slice() {
        [file] => Ok(file),
        files => Err(table::statement_not_supported(
            format!("A restore of a database of {} files", files.len()),
            "A SQLite database is one file.",
        )
        .into()),
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
/// that is replaced, or to where it came from.
fn target(
    session: &Session,
    known: Option<&DatabaseRecord>,
    asked: &Asked<'_>,
) -> Result<PathBuf, Failure> {
    let file = only_file(asked.name, known, &asked.set)?;
    let path = match (
        &asked.extras.target,
        asked.moved(session, &file.logical_name)?,
        known,
    ) {
        (Some(target), ..) => target.clone(),
        (None, Some(moved), _) => moved,
        (None, None, Some(known)) => known.path.clone(),
        (None, None, None) => session
            .instance
            .drives()
            .path(&file.physical_name)
            .map_err(|error| name_message(&error))?,
    };
    placed(&path)
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
    asked: Asked<'a>,
}

impl Work<'_> {
    fn run(mut self, sink: &mut dyn Sink) -> Result<(), Failure> {
        let existed = self.target.exists();
        let existing = self.check_target(existed)?;
        self.session.queries.release(&self.target);
        let file = self.asked.set.files.first();
        let request = RestoreRequest {
            target: self.target.clone(),
            existing,
            database_name: self.asked.name.to_owned(),
            family_guid: self.asked.set.family_guid,
            set_guid: self.asked.set.set_guid,
            checkpoint_lsn: self.asked.set.checkpoint_lsn,
            size_bytes: file.map_or(0, |file| file.size_bytes),
            base: self.asked.is_differential().then_some(DifferentialBase {
                set_guid: self.asked.set.differential_base_guid,
                checkpoint_lsn: self.asked.set.differential_base_lsn,
            }),
        };
        let keys = reading::keys(self.session, &self.asked.set, &self.asked.extras.keys)?;
        let target = SqliteTarget::begin(&request).map_err(|error| source_message(&error))?;
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

    /// SQL Server's rules for overwriting.
    fn check_target(&self, existed: bool) -> Result<Existing, Failure> {
        let owner = self
            .session
            .instance
            .database_at(&self.target)
            .map_err(|error| catalog_message(&error))?;
        if let Some(owner) = owner.filter(|owner| !owner.name.eq_ignore_ascii_case(self.asked.name))
        {
            return Err(self.refuse_file(table::file_used_by_database(
                self.target.display(),
                owner.name,
            )));
        }
        if self.asked.is_differential() {
            return self.check_sequence();
        }
        match &self.known {
            Some(known) => {
                let family = FileIdentity::of(&known.path).family_guid;
                let is_other = known.path.exists() && family != self.asked.set.family_guid;
                if is_other && !self.asked.choices.replace {
                    return Err(table::other_database(self.asked.name).with_state(4).into());
                }
                let is_own_file = known.path == self.target;
                if existed && !is_own_file && !self.asked.choices.replace {
                    return Err(self.refuse_existing());
                }
                Ok(Existing::Replace)
            }
            None if existed && !self.asked.choices.replace => Err(self.refuse_existing()),
            None if self.asked.choices.replace => Ok(Existing::Replace),
            None => Ok(Existing::Refuse),
        }
    }

    /// A differential continues a sequence that was left open.
    fn check_sequence(&self) -> Result<Existing, Failure> {
        let state = sqlite::restoring(&self.target).map_err(|error| source_message(&error))?;
        match (&self.known, state) {
            (_, Some(_)) => Ok(Existing::Replace),
            (None, None) if self.asked.extras.target.is_none() => {
                Err(table::restore_cannot_create(self.asked.name).into())
            }
            _ => Err(table::not_ready_to_rollforward().into()),
        }
    }

    fn refuse_existing(&self) -> Failure {
        let path = self.target.display().to_string();
        self.refuse_file(table::file_exists(&path, &path))
    }

    fn refuse_file(&self, cause: Message) -> Failure {
        let logical = self
            .asked
            .set
            .files
            .first()
            .map_or("", |file| file.logical_name.as_str());
        Failure::from(vec![
            cause,
            table::file_cannot_be_restored(logical, self.target.display()).with_state(4),
            table::restore_plan_problems(),
        ])
    }

    /// Enters the database in the catalog.
    fn register(&mut self, existed: bool) -> Result<(), Failure> {
        let is_new = self.known.is_none();
        if is_new && self.asked.extras.is_passing {
            return Ok(());
        }
        // A file that was there belongs to somebody else, whatever is in it now.
        let origin = if existed {
            Origin::Attached
        } else {
            Origin::Restored
        };
        let before = self.known.take();
        let mut record =
            before.unwrap_or_else(|| new_record(self.asked.name, &self.target, origin));
        self.asked.settle(&mut record);
        if let Some(file) = self.asked.set.files.first() {
            record.logical_name.clone_from(&file.logical_name);
        }
        if record.path != self.target {
            record.path.clone_from(&self.target);
            record.origin = origin;
        }
        let instance = &mut self.session.instance;
        let stored = match is_new {
            true => instance.register(&record).map(|_| ()),
            false => instance.store(&record),
        };
        stored.map_err(|error| catalog_message(&error))
    }
}
