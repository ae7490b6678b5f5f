//! RESTORE DATABASE.

use std::path::{Path, PathBuf};
use std::time::Instant;

use windlass_base::message::table;
use windlass_base::{Message, Moment};
use windlass_catalog::{
    Base, DatabaseRecord, DatabaseState, Origin, RestoreFileRecord, RestoreRecord, RestoreType,
};
use windlass_crypt::KeyRing;
use windlass_device::DeviceAddress;
use windlass_io::queue::EngineChoice;
use windlass_media::{DatabaseFile, SetConfiguration, SetType, SourceKind};
use windlass_pipeline::{MediaSet, OnDamage, ReadReport, ReadRequest, Tuning};
use windlass_source::sqlite::{
    self, DifferentialBase, Existing, FileIdentity, RestoreRequest, SqliteTarget,
};
use windlass_source::{Recovery, RestoreTarget as _};
use windlass_tsql::ast::{FileSpec, Name, RestoreSource, RestoreStatement};
use windlass_tsql::option::StatementKind;
use windlass_tsql::span::Spanned;

use super::header_only::failed;
use super::observer::Watch;
use super::{device_list, history, reading, recovery, restore_engine, timing};
use crate::instance::{is_system_database, new_record};
use crate::message_of::{catalog_message, name_message, os_error, source_message};
use crate::names::absolute;
use crate::option::{self, RestoreChoices};
use crate::tag::Tags;
use crate::{Completed, Failure, Session, Sink};

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
    let attempt = |session: &mut Session| {
        if !files.is_empty() {
            return Err(Failure::from(table::statement_not_supported(
                "A restore of single files, filegroups or pages",
                "A SQLite database is one file; restore it whole.",
            )));
        }
        option::name(&name.node, session)
    };
    let name = attempt(session)
        .map_err(|failure| failure.then(table::terminating_abnormally(OPERATION)))?;
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
    check_session(session, name)?;
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
            name,
            known,
            choices,
            devices,
            media,
            position,
            set: &set,
            extras,
        };
        return work.run(sink);
    }
    if known.as_ref().is_some_and(|known| known.log_path.is_some()) {
        return Err(table::statement_not_supported(
            format!("A restore of a SQLite file over the page engine database '{name}'"),
            "Drop or detach it first, or restore under another name.",
        )
        .into());
    }
    let [file] = set.files.as_slice() else {
        return Err(table::statement_not_supported(
            format!("A restore of a database of {} files", set.files.len()),
            "A SQLite database is one file.",
        )
        .into());
    };
    let target = target(session, name, known.as_ref(), &choices, file, extras)?;
    Work {
        session,
        name,
        known,
        choices,
        devices,
        media,
        position,
        set: &set,
        target,
        extras,
    }
    .run(sink)
}

fn check_session(session: &Session, name: &str) -> Result<(), Failure> {
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
    if session.current_database().eq_ignore_ascii_case(name) {
        return Err(table::in_use_by_session("RESTORE", name).into());
    }
    Ok(())
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
    name: &'a str,
    known: Option<DatabaseRecord>,
    choices: RestoreChoices,
    devices: Vec<DeviceAddress>,
    media: MediaSet,
    position: u16,
    set: &'a SetConfiguration,
    target: PathBuf,
    extras: &'a RestoreExtras,
}

impl Work<'_> {
    fn run(mut self, sink: &mut dyn Sink) -> Result<(), Failure> {
        let existed = self.target.exists();
        let existing = self.check_target(existed)?;
        self.session.queries.release(&self.target);
        let file = self.set.files.first();
        let request = RestoreRequest {
            target: self.target.clone(),
            existing,
            database_name: self.name.to_owned(),
            family_guid: self.set.family_guid,
            set_guid: self.set.set_guid,
            checkpoint_lsn: self.set.checkpoint_lsn,
            size_bytes: file.map_or(0, |file| file.size_bytes),
            base: self.is_differential().then_some(DifferentialBase {
                set_guid: self.set.differential_base_guid,
                checkpoint_lsn: self.set.differential_base_lsn,
            }),
        };
        let keys = reading::keys(self.session, self.set, &self.extras.keys)?;
        let target = SqliteTarget::begin(&request).map_err(|error| source_message(&error))?;
        let read = ReadRequest {
            keys,
            on_damage: self.choices.on_damage.unwrap_or(OnDamage::Stop),
            tuning: Tuning {
                threads: self.extras.threads,
                engine: self.extras.engine,
                ..self.choices.tuning
            },
        };
        let begun = Instant::now();
        let watch = Watch::new(self.session, OPERATION, self.name, self.choices.stats, sink);
        let report = windlass_pipeline::restore(&self.media, self.position, &read, &target, &watch)
            .map_err(|error| failed(&error))?;
        Box::new(target)
            .finish(self.choices.recovery)
            .map_err(|error| source_message(&error))?;
        watch.finish();
        self.tell(&report, sink);
        self.register(existed)?;
        self.remember(sink);
        sink.message(timing::closing(
            OPERATION,
            timing::pages(&report.files),
            report.processed_bytes,
            begun.elapsed(),
        ));
        Ok(())
    }

    fn is_differential(&self) -> bool {
        self.set.set_type == SetType::Differential
    }

    /// SQL Server's rules for overwriting.
    fn check_target(&self, existed: bool) -> Result<Existing, Failure> {
        let owner = self
            .session
            .instance
            .database_at(&self.target)
            .map_err(|error| catalog_message(&error))?;
        if let Some(owner) = owner.filter(|owner| !owner.name.eq_ignore_ascii_case(self.name)) {
            return Err(self.refuse_file(table::file_used_by_database(
                self.target.display(),
                owner.name,
            )));
        }
        if self.is_differential() {
            return self.check_sequence();
        }
        match &self.known {
            Some(known) => {
                let family = FileIdentity::of(&known.path).family_guid;
                let is_other = known.path.exists() && family != self.set.family_guid;
                if is_other && !self.choices.replace {
                    return Err(table::other_database(self.name).with_state(4).into());
                }
                let is_own_file = known.path == self.target;
                if existed && !is_own_file && !self.choices.replace {
                    return Err(self.refuse_existing());
                }
                Ok(Existing::Replace)
            }
            None if existed && !self.choices.replace => Err(self.refuse_existing()),
            None if self.choices.replace => Ok(Existing::Replace),
            None => Ok(Existing::Refuse),
        }
    }

    /// A differential continues a sequence that was left open.
    fn check_sequence(&self) -> Result<Existing, Failure> {
        let state = sqlite::restoring(&self.target).map_err(|error| source_message(&error))?;
        match (&self.known, state) {
            (_, Some(_)) => Ok(Existing::Replace),
            (None, None) if self.extras.target.is_none() => {
                Err(table::restore_cannot_create(self.name).into())
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

    /// The messages before the closing one.
    fn tell(&self, report: &ReadReport, sink: &mut dyn Sink) {
        let (database, path, position) = (self.name, self.target.as_path(), self.position);
        sink.completed(Completed::Restore {
            database,
            path,
            position,
            report,
        });
        for file in &report.files {
            sink.message(table::processed_pages(
                file.pages,
                self.name,
                &file.logical_name,
                self.position,
            ));
        }
        if report.damaged.count > 0 {
            sink.message(table::restored_with_damage());
        }
    }

    /// Enters the database in the catalog.
    fn register(&mut self, existed: bool) -> Result<(), Failure> {
        let state = match self.choices.recovery {
            Recovery::Recovery => DatabaseState::Online,
            Recovery::NoRecovery => DatabaseState::Restoring,
        };
        let is_new = self.known.is_none();
        if is_new && self.extras.is_passing {
            return Ok(());
        }
        // A file that was there belongs to somebody else, whatever is in it now.
        let origin = if existed {
            Origin::Attached
        } else {
            Origin::Restored
        };
        let before = self.known.take();
        let mut record = before.unwrap_or_else(|| new_record(self.name, &self.target, origin));
        record.state = state;
        record.family_guid = Some(self.set.family_guid);
        if let Some(file) = self.set.files.first() {
            record.logical_name.clone_from(&file.logical_name);
        }
        if record.path != self.target {
            record.path.clone_from(&self.target);
            record.origin = origin;
        }
        if self.set.set_type == SetType::Full && !self.set.is_copy_only {
            record.base = Some(Base {
                set_guid: self.set.set_guid,
                lsn: self.set.checkpoint_lsn,
                finished: self.set.finished.unwrap_or_else(|| Moment::now().0),
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

    fn remember(&mut self, sink: &mut dyn Sink) {
        let record = RestoreRecord {
            backup: history::found_record(self.media.header(), self.set, &self.devices),
            restored: Moment::now().0,
            database_name: self.name.to_owned(),
            user_name: self.session.instance.identity().user.clone(),
            restore_type: if self.is_differential() {
                RestoreType::Differential
            } else {
                RestoreType::Database
            },
            replace: self.choices.replace,
            recovery: self.choices.recovery == Recovery::Recovery,
            restart: self.choices.restart,
            device_count: u32::try_from(self.devices.len()).unwrap_or(u32::MAX),
            files: vec![RestoreFileRecord {
                file_number: 1,
                path: display(&self.target),
            }],
        };
        if self.session.instance.record_restore(&record).is_err() {
            sink.message(table::history_not_written());
        }
    }
}

fn display(path: &Path) -> String {
    path.display().to_string()
}
