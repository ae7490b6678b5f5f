//! Restores one set: a whole database, data files, or single pages; and ends a sequence of restores.
//!
//! | file | what |
//! |---|---|
//! | [`RestoreOptions`] | the options |
//! | `reader` | the opened set with its keys: what all restores have in common |
//! | `places`, `placing` | where each file goes, and where it may not |
//! | `target`, `sqlite`, `engine` | what differs between a SQLite file and the files of the page engine |
//! | `checks` | what is refused before anything is changed |
//! | `parts`, `pages`, `files` | parts of a page engine database |
//! | `page_roll`, `file_roll` | pages and data files that are rolled forward with log backups |
//! | `recovery` | brings a database online without another set |
//! | `registration` | what the instance's catalog knows of the database |
//! | `newest`, `moment` | which sets give the newest state, and which lead to a moment |
//! | `believed` | which ends of log backups are believed |
//! | `continuing` | which sets bring a waiting restore forward |
//! | `unread` | log backups that are read before a plan is sure |
//! | `ambiguous` | media on which nobody can tell which state is the newest |
//! | `folder`, `copies` | the media in a folder; several files of one family |
//! | `sequence` | what restores without recovery have left |
//! | `standby` | lets them be read meanwhile |
//!
//! One flow serves both kinds of databases: a SQLite file is a set with one file.

mod aim;
mod ambiguous;
mod believed;
mod checks;
mod continuing;
mod copies;
mod engine;
mod file_roll;
mod files;
mod folder;
#[cfg(test)]
mod histories;
mod inventory;
mod known;
mod moment;
mod newest;
mod options;
mod page_roll;
mod pages;
mod parts;
mod places;
mod placing;
mod reader;
mod recovery;
#[cfg(test)]
mod refused_chains;
mod registration;
mod sequence;
mod sqlite;
mod standby;
mod step;
mod target;
#[cfg(test)]
mod tests;
mod unread;

use std::path::{Path, PathBuf};
use std::time::Instant;

use windlass_base::message::table;
use windlass_base::{Guid, time_text};
use windlass_catalog::{DatabaseRecord, Depth, FileRecord, Origin, RestoreFileRecord, RestoreType};
use windlass_media::{SetConfiguration, SetType, SourceKind};
use windlass_pipeline::{ReadKeys, ReadReport};
use windlass_source::engine::StopAt;
use windlass_source::{Recovery, RestoreTarget};

use super::media::check_moves;
use super::observer::Watch;
use super::{database, history, rehearse, sql_server, timing};
use crate::event_log::Entry;
use crate::instance::new_record;
use crate::message_of::loss_messages;
use crate::names::absolute;
use crate::sessions::InUse;
use crate::{Completed, Failure, Session, Sink};
pub use aim::Aim;
pub use continuing::Reached;
pub(super) use moment::ended_ms;
pub use newest::{Beyond, Newest, NewestRequest};
use options::settle;
pub use options::{FollowedRestore, RestoreKind, RestoreOptions};
pub use parts::RestorePart;
pub(crate) use parts::run as run_part;
pub(super) use places::placed;
pub(super) use placing::{Placing, Wish, all, outside_folders};
pub(super) use reader::SetReader;
pub(super) use registration::tell_unwritten;
pub use sequence::Sequence;
pub(super) use standby::path_of as standby_path;
pub use step::Step;
use target::{Begun, TargetKind, Wanted, first, is_among, kind_of, log};

pub(crate) const OPERATION: &str = "RESTORE DATABASE";

/// The result of a restore.
#[derive(Debug, Clone)]
pub enum RestoreOutcome {
    /// A database was restored.
    Restored {
        /// Its first file.
        path: PathBuf,
        /// The position of the set on its media.
        position: u16,
        /// The state in which it is: a log that ends before the point to stop at leaves it restoring.
        recovery: Recovery,
        report: Box<ReadReport>,
    },
    /// A sequence of restores ended without another set.
    Recovered,
    /// Data files of SQL Server were written.
    DataFiles,
    /// A dry run: nothing was changed.
    Rehearsed,
}

impl Session {
    /// The registered database that a restore replaces or continues: that of the name. If nothing is to be registered, the
    /// name stands for the files alone, and is that of a database only if its file is what the restore writes.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn restored_over(
        &self,
        name: &str,
        options: &RestoreOptions,
    ) -> Result<Option<DatabaseRecord>, Failure> {
        let known = self.instance.database(name)?;
        if !options.is_unregistered {
            return Ok(known);
        }
        let moved = options.moves.iter().map(|(_, path)| Path::new(path));
        let mut targets = options.target.as_deref().into_iter().chain(moved);
        Ok(known.filter(|known| targets.any(|target| is_same_file(target, &known.path))))
    }

    /// Restores a database under the name `database`.
    ///
    /// # Errors
    /// The reason, in messages; [`Failure::is_done`] if it was restored with losses.
    pub fn restore(
        &mut self,
        database: &str,
        options: &RestoreOptions,
        sink: &mut dyn Sink,
    ) -> Result<RestoreOutcome, Failure> {
        let devices = options.media.devices.iter();
        let entry = Entry::of_operation(options.operation(), database, devices);
        entry.around(sink, |sink| run(self, database, options, sink))
    }

    /// Restores pages or data files of a page engine database.
    ///
    /// # Errors
    /// The reason, in messages; nothing was written then.
    pub fn restore_part(
        &mut self,
        database: &str,
        part: &RestorePart,
        options: &RestoreOptions,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let entry = Entry::of_operation(OPERATION, database, options.media.devices.iter());
        entry.around(sink, |sink| run_part(self, database, part, options, sink))
    }
}

/// The same as part of a statement, which logs its own entry.
pub(crate) fn run(
    session: &mut Session,
    name: &str,
    options: &RestoreOptions,
    sink: &mut dyn Sink,
) -> Result<RestoreOutcome, Failure> {
    attempt(session, name, options, sink)
        .map_err(|failure| failure.then(table::terminating_abnormally(options.operation())))
}

fn attempt(
    session: &mut Session,
    name: &str,
    options: &RestoreOptions,
    sink: &mut dyn Sink,
) -> Result<RestoreOutcome, Failure> {
    let known = session.restored_over(name, options)?;
    if is_registered(known.as_ref(), options) {
        check_unused(session, name)?;
    }
    let settled = settle(options)?;
    if known.as_ref().is_some_and(|known| known.database_id > 0) {
        session.instance.refuse_copy(options.operation(), name)?;
    }
    let of_sql_server = known
        .as_ref()
        .filter(|known| known.origin == Origin::SqlServer);
    if let Some(waiting) = page_roll::waiting(session, known.as_ref(), options)? {
        return page_roll::go_on(session, (name, waiting), options, settled, sink);
    }
    if let Some(waiting) = file_roll::waiting(session, known.as_ref(), options)? {
        return file_roll::go_on(session, (name, waiting), options, settled, sink);
    }
    if options.media.devices.is_empty() {
        if let Some(record) = of_sql_server {
            sql_server::recover(session, record, options, sink)?;
            return Ok(RestoreOutcome::Recovered);
        }
        return recovery::run(session, name, known, options, sink);
    }
    if options.follow.is_some() {
        return Err(table::spool_failed(
            "it is applied after the backups, by a restore without media",
        )
        .into());
    }
    let devices = options.media.addresses(session, Some(name))?;
    if sql_server::is_backup(&devices) {
        sql_server::Media::new(&devices, &options.media).restore(session, name, options, sink)?;
        return Ok(RestoreOutcome::DataFiles);
    }
    let is_sql_servers = of_sql_server.is_some();
    let reader = SetReader::open(session, name, devices, options, settled)?;
    refuse_sql_servers(&reader.opened.set)?;
    reader.check_kind()?;
    if reader.opened.set.source_kind == SourceKind::SqlServerFiles {
        reader.opened.warn_of_later_sets(&options.media, sink);
        sql_server::restore_files(session, &reader, known, sink)?;
        return Ok(match session.is_rehearsal() {
            true => RestoreOutcome::Rehearsed,
            false => RestoreOutcome::DataFiles,
        });
    }
    if is_sql_servers {
        return Err(table::restore_over_sql_server(name).into());
    }
    check_moves(&options.moves, &reader.opened.set, name)?;
    reader.opened.warn_of_later_sets(&options.media, sink);
    let made_for = known
        .as_ref()
        .map_or_else(Guid::random, |known| known.made_for);
    RestoreOperation {
        session,
        made_for,
        known,
        kind: kind_of(&reader.opened.set),
        recovery: recovery_after(&reader),
        stands_by: false,
        reader,
    }
    .run(sink)
}

fn is_same_file(written: &Path, known: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    absolute(written).is_ok_and(|path| path == known)
        || real(written).is_some_and(|path| real(known) == Some(path))
}

/// Whether the name is that of a database of the instance, now or afterwards; it only stands for the files otherwise.
fn is_registered(known: Option<&DatabaseRecord>, options: &RestoreOptions) -> bool {
    known.is_some() || !options.is_unregistered
}

/// A full or differential backup ends before the point to stop at, so the log must follow.
fn recovery_after(reader: &SetReader<'_>) -> Recovery {
    match reader.is_log() || reader.options.stop == StopAt::End {
        true => reader.options.recovery,
        false => Recovery::NoRecovery,
    }
}

/// Only SQL Server restores what was copied from its backups; `unpack` gives them back.
fn refuse_sql_servers(set: &SetConfiguration) -> Result<(), Failure> {
    match set.source_kind {
        SourceKind::SqlServer => Err(table::restore_of_sql_server_set(&set.database).into()),
        _ => Ok(()),
    }
}

/// Checks whether this session can restore at all.
fn check_session(session: &Session, name: &str) -> Result<(), Failure> {
    let advice = "Give the database another name.";
    database::check_own(session, name, "A restore", advice)
}

/// The same for a database that is closed or replaced: it must not be the session's current one.
fn check_unused(session: &Session, name: &str) -> Result<(), Failure> {
    check_session(session, name)?;
    match session.current_database().eq_ignore_ascii_case(name) {
        true => Err(table::in_use_by_session("RESTORE", name).into()),
        false => Ok(()),
    }
}

/// A restore of a whole database whose set is open.
struct RestoreOperation<'a> {
    session: &'a mut Session,
    /// The database to replace.
    known: Option<DatabaseRecord>,
    kind: &'static dyn TargetKind,
    reader: SetReader<'a>,
    /// The state in which the database is left.
    recovery: Recovery,
    /// Whether it is read until the next restore.
    stands_by: bool,
    /// The identity that the restored files carry: of the database to replace, or of the one that will be
    /// registered.
    made_for: Guid,
}

impl RestoreOperation<'_> {
    fn run(mut self, sink: &mut dyn Sink) -> Result<RestoreOutcome, Failure> {
        self.kind.admit(&self.reader, self.known.as_ref())?;
        self.check_stop()?;
        let standby = self.standby_path()?;
        let has_place =
            self.reader.options.target.is_some() || !self.reader.options.moves.is_empty();
        if self.reader.is_log() && self.known.is_none() && !has_place {
            return Err(table::restore_cannot_create(self.reader.name).into());
        }
        let own = self.own_files()?;
        let placed = self.places(&own)?;
        self.check_targets(&placed, &own)?;
        let mut files: Vec<FileRecord> = placed.into_iter().map(|file| file.record).collect();
        let path = first(&files).map_or_else(PathBuf::new, |file| file.path.clone());
        self.check_waiting(&files)?;
        let existed = path.exists();
        // Before any change: a set that cannot be read leaves everything as it was.
        let keys = self.reader.unlock(self.session)?;
        if self.session.is_rehearsal() {
            return self.rehearse(keys, &files, sink);
        }
        self.check_catalog()?;
        let _alone = match self.keeps_mark() {
            true => Some(self.alone()?),
            false => None,
        };
        let followed = self
            .known
            .as_ref()
            .map(|known| self.session.without_follower(known));
        let _followed = followed.transpose()?;
        let own_name = self.keeps_mark().then_some(self.reader.name);
        self.kind.release(self.session, own_name, &files)?;
        let begun = self.kind.begin(&Wanted {
            session: self.session,
            reader: &self.reader,
            known: self.known.as_ref(),
            files: &files,
            keys: &keys,
            made_for: self.keeps_mark().then_some(self.made_for),
        });
        let Begun { target, rolled } = begun.map_err(|failure| self.name_base(failure, &files))?;
        let begun = Instant::now();
        let report = self.copy(keys, target, &files, existed, sink)?;
        if let Some(rolled) = rolled.as_ref().and_then(|rolled| rolled.get()) {
            self.recovery = rolled.recovery;
            files.retain(|file| is_among(file, rolled.data.len()));
            if let Some((time_us, next_us)) = rolled.stopped_us {
                let next = next_us.map_or_else(|| "none in this log backup".to_owned(), time_text);
                sink.message(table::log_stopped_at(time_text(time_us), next));
            }
            if !rolled.is_reached {
                sink.message(match self.reader.options.stop.is_mark() {
                    true => table::mark_not_reached(),
                    false => table::stop_not_reached(),
                });
            }
        }
        self.announce(&report, &path, sink);
        let restored = self.restored(&files);
        let stands_by = self.stand_by(standby.as_deref(), &files);
        self.stands_by = stands_by.is_ok() && standby.is_some();
        self.register_or_tell(&files, existed, sink);
        stands_by?;
        self.note_content(&restored, &report, sink);
        self.conclude(&report, begun, &files, sink)?;
        Ok(RestoreOutcome::Restored {
            path,
            position: self.reader.opened.position,
            recovery: self.recovery,
            report: Box::new(report),
        })
    }

    /// For a differential of another full backup than the restored one: adds which one it needs, and which
    /// one was restored.
    fn name_base(&self, failure: Failure, files: &[FileRecord]) -> Failure {
        let refused = table::wrong_differential_base().number;
        if failure
            .messages
            .iter()
            .all(|message| message.number != refused)
        {
            return failure;
        }
        let set = &self.reader.opened.set;
        let Some(needed) = history::place_of_full(self.session, set.differential_base_guid) else {
            return failure;
        };
        let found = match self.kind.restored_set(files) {
            Ok(Some(found)) if found == set.set_guid => "this differential itself".to_owned(),
            Ok(Some(found)) => history::name_of_full(self.session, found),
            _ => "another one".to_owned(),
        };
        failure.then(table::base_needed(needed, found))
    }

    /// Whether the database is registered afterwards.
    fn keeps_mark(&self) -> bool {
        is_registered(self.known.as_ref(), self.reader.options)
    }

    /// Keeps other sessions from the database.
    fn alone(&self) -> Result<InUse, Failure> {
        let alone = self.session.use_alone(self.reader.name);
        alone.ok_or_else(|| table::exclusive_access().into())
    }

    /// Reports what the restore would do.
    fn rehearse(
        &self,
        keys: ReadKeys,
        files: &[FileRecord],
        sink: &mut dyn Sink,
    ) -> Result<RestoreOutcome, Failure> {
        let opened = &self.reader.opened;
        let request = self.reader.read_request(keys);
        let plan = windlass_pipeline::plan_reading(&opened.media, opened.position, &request)?;
        let targets: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
        rehearse::reading(
            self.reader.operation(),
            self.reader.name,
            &opened.set,
            plan,
            &targets,
            sink,
        );
        Ok(RestoreOutcome::Rehearsed)
    }

    /// Copies the whole set to its target, and registers a new database before its files get their names: a
    /// name that is taken meanwhile leaves the files as they are.
    fn copy(
        &mut self,
        keys: ReadKeys,
        target: Box<dyn RestoreTarget>,
        files: &[FileRecord],
        existed: bool,
        sink: &mut dyn Sink,
    ) -> Result<ReadReport, Failure> {
        let reader = &self.reader;
        let stats = reader.settled.stats;
        let watch = Watch::new(self.session, reader.operation(), reader.name, stats, sink);
        let read = reader.read_request(keys);
        let (media, position) = (&reader.opened.media, reader.opened.position);
        let report = match windlass_pipeline::restore(media, position, &read, &*target, &watch) {
            Ok(report) => report,
            Err(error) => {
                drop(watch);
                let failure = Failure::from(error);
                self.note_damage(&failure);
                return Err(failure);
            }
        };
        let recovery = self.recovery;
        let is_reserved = self.reserve(files, existed)?;
        if let Err(error) = target.finish(recovery) {
            if is_reserved && let Err(error) = self.session.instance.forget(self.reader.name) {
                tracing::warn!("the reserved name was not given back: {error}");
            }
            let mut failure = Failure::from(error);
            if !report.damaged.is_empty() {
                failure.messages.splice(..0, loss_messages(&report.damaged));
                self.note_damage(&failure);
            }
            return Err(failure);
        }
        watch.finish();
        Ok(report)
    }

    /// The database whose files were restored, as far as damage is recorded for it.
    fn restored(&self, files: &[FileRecord]) -> DatabaseRecord {
        let path = first(files).map_or_else(PathBuf::new, |file| file.path.clone());
        DatabaseRecord {
            log_path: log(files).map(|log| log.path.clone()),
            ..new_record(self.reader.name, &path, Origin::Restored)
        }
    }

    /// Records whether the restored content is damaged.
    fn note_content(
        &mut self,
        restored: &DatabaseRecord,
        report: &ReadReport,
        sink: &mut dyn Sink,
    ) {
        let set = &self.reader.opened.set;
        if set.is_damaged {
            sink.message(table::damaged_set_restored(self.reader.name));
        }
        let is_damaged = set.is_damaged || !report.damaged.is_empty();
        let recovery = self.recovery;
        self.session
            .note_restore(restored, set, is_damaged, recovery, sink);
    }

    /// Records that the set is damaged, if that is why it cannot be restored.
    fn note_damage(&mut self, failure: &Failure) {
        let opened = &self.reader.opened;
        history::record_verification(self.session, opened, Depth::Content, Some(failure));
    }

    /// Sends the report and the messages before the closing one.
    fn announce(&self, report: &ReadReport, path: &Path, sink: &mut dyn Sink) {
        let (name, position) = (self.reader.name, self.reader.opened.position);
        sink.completed(Completed::Restore {
            database: name,
            path,
            position,
            report,
        });
        for file in &report.files {
            sink.message(table::processed_pages(
                file.pages,
                name,
                &file.logical_name,
                position,
            ));
        }
        if !report.damaged.is_empty() {
            sink.message(table::restored_with_damage());
        }
    }

    /// Writes the history and sends the closing message of a restore that started at `begun`.
    fn conclude(
        &mut self,
        report: &ReadReport,
        begun: Instant,
        files: &[FileRecord],
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let (restore_type, left) = match self.reader.opened.set.set_type {
            SetType::Differential => (RestoreType::Differential, table::lost_is_as_base()),
            SetType::Log => (RestoreType::Log, table::lost_is_as_base()),
            SetType::Full => (RestoreType::Database, table::lost_is_zero()),
        };
        let files = files.iter().map(|file| RestoreFileRecord {
            file_number: file.file_id,
            path: file.path.display().to_string(),
        });
        let reader = &self.reader;
        let files = files.collect();
        reader.remember(self.session, restore_type, self.recovery, files, sink);
        if report.damaged.count == 0 {
            history::record_verification(self.session, &reader.opened, Depth::Restored, None);
        }
        sink.message(timing::closing(
            reader.operation(),
            timing::pages(&report.files),
            report.processed_bytes,
            begun.elapsed(),
        ));
        if report.damaged.is_empty() {
            return Ok(());
        }
        let mut messages = loss_messages(&report.damaged);
        messages.push(left);
        let failure = Failure::of_loss(messages);
        self.note_damage(&failure);
        Err(failure)
    }
}
