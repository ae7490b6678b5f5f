//! RESTORE DATABASE.

use std::path::PathBuf;
use std::time::Instant;

use windlass_base::message::table;
use windlass_base::{Message, Moment};
use windlass_catalog::{Base, DatabaseRecord, DatabaseState, Origin, RestoreFileRecord};
use windlass_crypt::KeyRing;
use windlass_io::queue::EngineChoice;
use windlass_media::{DatabaseFile, SetConfiguration, SetType, SourceKind};
use windlass_source::sqlite::{
    self, DifferentialBase, Existing, FileIdentity, RestoreRequest, SqliteTarget,
};
use windlass_source::{Recovery, RestoreTarget as _};
use windlass_tsql::ast::{FileSpec, Name, RestoreSource, RestoreStatement};
use windlass_tsql::option::StatementKind;
use windlass_tsql::span::Spanned;

use super::asked::Asked;
use super::header_only::failed;
use super::observer::Watch;
use super::{device_list, reading, recovery, restore_engine, restore_pages, timing};
use crate::instance::{is_system_database, new_record};
use crate::message_of::{catalog_message, name_message, os_error, source_message};
use crate::names::absolute;
use crate::option::{self, RestoreChoices};
use crate::tag::Tags;
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
    let devices = reading::devices(session, statement)?;
    let media = reading::open(&devices, &choices)?;
    let position = choices.position.unwrap_or(1);
    let entry = media.set(position).map_err(|error| failed(&error))?;
    let set = entry.configuration;
    if choices.needs_checksums && !set.has_checksums {
        return Err(table::set_has_no_checksums().into());
    }
    check_moves(&choices, &set)?;
    if set.source_kind == SourceKind::Engine {
        let work = restore_engine::Work {
            session,
            known,
            asked: Asked {
                name,
                choices,
                devices,
                media,
                position,
                set: &set,
                extras,
            },
        };
        return work.run(sink);
    }
    let file = only_file(name, known.as_ref(), &set)?;
    let target = target(session, name, known.as_ref(), &choices, file, extras)?;
    Work {
        session,
        known,
        target,
        asked: Asked {
            name,
            choices,
            devices,
            media,
            position,
            set: &set,
            extras,
        },
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
    if name.eq_ignore_ascii_case("tempdb") {
        return Err(table::tempdb_not_allowed().into());
    }
    if session.queries.is_in_transaction() {
        return Err(table::within_transaction().into());
    }
    if is_system_database(name) {
        return Err(table::statement_not_supported(
            format!("A restore of {name}"),
            "Give the database another name.",
        )
        .into());
    }
    Ok(())
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
        set.files
            .iter()
            .any(|file| file.logical_name.eq_ignore_ascii_case(logical))
    };
    match choices.moves.iter().find(|(logical, _)| !is_there(logical)) {
        Some((logical, _)) => Err(table::logical_file_unknown(logical, &set.database)
            .with_state(2)
            .into()),
        None => Ok(()),
    }
}

/// Where MOVE sends a file.
pub(super) fn moved_to<'a>(choices: &'a RestoreChoices, logical: &str) -> Option<&'a str> {
    let found = choices
        .moves
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(logical));
    found.map(|(_, path)| path.as_str())
}

/// Where the database's file goes: as the command says, as MOVE says, to the file of the database
/// that is replaced, or to where it came from.
fn target(
    session: &Session,
    name: &str,
    known: Option<&DatabaseRecord>,
    choices: &RestoreChoices,
    file: &DatabaseFile,
    extras: &RestoreExtras,
) -> Result<PathBuf, Failure> {
    let path = match (&extras.target, moved_to(choices, &file.logical_name), known) {
        (Some(target), ..) => target.clone(),
        (None, Some(written), _) => {
            let tags = Tags {
                database: Some(name.to_owned()),
                ..session.instance.tags()
            };
            let written = device_list::expand(&tags, written)?;
            let path = session.instance.drives().path(&written);
            path.map_err(|error| name_message(&error))?
        }
        (None, None, Some(known)) => known.path.clone(),
        (None, None, None) => session
            .instance
            .drives()
            .path(&file.physical_name)
            .map_err(|error| name_message(&error))?,
    };
    absolute(&path)
        .map_err(|error| table::cannot_open_file(path.display(), os_error(&error)).into())
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
        let keys = reading::keys(self.session, self.asked.set, &self.asked.extras.keys)?;
        let target = SqliteTarget::begin(&request).map_err(|error| source_message(&error))?;
        let read = self.asked.read_request(keys);
        let begun = Instant::now();
        let watch = Watch::new(
            self.session,
            OPERATION,
            self.asked.name,
            self.asked.choices.stats,
            sink,
        );
        let report = windlass_pipeline::restore(
            &self.asked.media,
            self.asked.position,
            &read,
            &target,
            &watch,
        )
        .map_err(|error| failed(&error))?;
        Box::new(target)
            .finish(self.asked.choices.recovery)
            .map_err(|error| source_message(&error))?;
        watch.finish();
        self.asked.tell(&report, &self.target, sink);
        self.register(existed)?;
        let files = vec![RestoreFileRecord {
            file_number: 1,
            path: self.target.display().to_string(),
        }];
        let restore_type = self.asked.restore_type();
        self.asked.remember(self.session, restore_type, files, sink);
        sink.message(timing::closing(
            OPERATION,
            timing::pages(&report.files),
            report.processed_bytes,
            begun.elapsed(),
        ));
        Ok(())
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
        let state = match self.asked.choices.recovery {
            Recovery::Recovery => DatabaseState::Online,
            Recovery::NoRecovery => DatabaseState::Restoring,
        };
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
        record.state = state;
        record.family_guid = Some(self.asked.set.family_guid);
        if let Some(file) = self.asked.set.files.first() {
            record.logical_name.clone_from(&file.logical_name);
        }
        if record.path != self.target {
            record.path.clone_from(&self.target);
            record.origin = origin;
        }
        if self.asked.set.set_type == SetType::Full && !self.asked.set.is_copy_only {
            record.base = Some(Base {
                set_guid: self.asked.set.set_guid,
                lsn: self.asked.set.checkpoint_lsn,
                finished: self.asked.set.finished.unwrap_or_else(|| Moment::now().0),
            });
        }
        if is_new {
            self.session
                .instance
                .register(&record)
                .map(|_| ())
                .map_err(|error| catalog_message(&error))
        } else {
            self.session
                .instance
                .store(&record)
                .map_err(|error| catalog_message(&error))
        }
    }
}
