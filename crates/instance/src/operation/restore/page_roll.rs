//! Pages of a database in use that are rolled forward: from any full backup, with log backups, and at last with the log
//! of the database itself.
//!
//! ```text
//!  RESTORE DATABASE x PAGE = '1:57' FROM full [WITH NORECOVERY]     the pages wait beside the log
//!  RESTORE LOG x FROM log WITH NORECOVERY ...                       they are rolled forward there
//!  RESTORE LOG x FROM log, or RESTORE DATABASE x WITH RECOVERY      the rest comes from the log of the database
//! ```
//!
//! Nothing is written to the database before the last step. If log backups are missing then, the pages keep waiting.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use windlass_base::message::table;
use windlass_base::{FileId, FilePage, PAGE_BYTES};
use windlass_catalog::{DatabaseRecord, DatabaseState, RestoreType};
use windlass_engine::{
    BackupDescription, Database, EngineError, PageRoll, PageRollBegin, PageRollLog, PagesEnded,
};
use windlass_pipeline::{ReadRequest, Selection, restore_selected};
use windlass_source::engine::{forget_pages, keep_pages, waiting_files, waiting_pages};
use windlass_source::{Error as SourceError, Recovery};

use super::options::Settled;
use super::pages::{WRITER_PATIENCE, logical_name};
use super::parts::{PartRestore, check_waiting_part};
use super::reader::SetReader;
use super::{RestoreKind, RestoreOptions, RestoreOutcome};
use crate::operation::observer::Watch;
use crate::operation::timing;
use crate::{Failure, Session, Sink};

const LOG_FILE_ID: u16 = FileId::LOG.0;

/// Pages of a database that wait for log backups.
pub(super) struct Waiting {
    record: DatabaseRecord,
    database: Arc<Database>,
    pages: PageRoll,
}

/// The pages that the statement goes on with: a RESTORE LOG, or one without media, of a database that is online.
pub(super) fn waiting(
    session: &mut Session,
    known: Option<&DatabaseRecord>,
    options: &RestoreOptions,
) -> Result<Option<Waiting>, Failure> {
    let continues = options.wants == Some(RestoreKind::Log) || options.media.devices.is_empty();
    let online = known.filter(|known| known.state == DatabaseState::Online && continues);
    let Some(record) = online.filter(|known| known.log_path.is_some()) else {
        return Ok(None);
    };
    if session.is_rehearsal() {
        return Ok(None);
    }
    let Ok(database) = session.instance.engine(record) else {
        return Ok(None);
    };
    let pages = waiting_pages(&database.log_path(), database.recovery_fork())?;
    Ok(pages.map(|pages| Waiting {
        record: record.clone(),
        database,
        pages,
    }))
}

/// Rolls waiting pages forward with a log backup, or ends their restore.
pub(super) fn go_on(
    session: &mut Session,
    (name, waiting): (&str, Waiting),
    options: &RestoreOptions,
    settled: Settled,
    sink: &mut dyn Sink,
) -> Result<RestoreOutcome, Failure> {
    check_waiting_part(options, "pages")?;
    let begun = Instant::now();
    let Waiting {
        record,
        database,
        pages,
    } = waiting;
    let operation = options.operation();
    if options.media.devices.is_empty() {
        if options.recovery == Recovery::NoRecovery {
            sink.message(timing::closing(operation, 0, 0, begun.elapsed()));
            return Ok(RestoreOutcome::Recovered);
        }
        let names: Vec<FilePage> = pages.pages().collect();
        let count = finish(session, name, &database, pages, sink)?;
        if count > 0 {
            note_restored(session, &record, &names, sink);
        }
        sink.message(closing(operation, count, begun));
        return Ok(RestoreOutcome::Recovered);
    }
    let devices = options.media.addresses(session, Some(name))?;
    let reader = SetReader::open(session, name, devices, options, settled)?;
    reader.check_kind()?;
    let description = windlass_source::engine::describe(&reader.opened.set.source_description)?;
    let keys = reader.unlock_part(session)?;
    let read = reader.read_request(keys);
    let watch = Watch::new(session, operation, name, reader.settled.stats, sink);
    let mut log = pages.begin_log(&description)?;
    pass(&reader, &read, &mut Log(&mut log, true), &watch)?;
    log.scanned()?;
    pass(&reader, &read, &mut Log(&mut log, false), &watch)?;
    watch.finish();
    let pages = log.settle()?;
    keep_pages(&database.log_path(), &pages)?;
    let names: Vec<FilePage> = pages.pages().collect();
    let mut count = names.len() as u64;
    if options.recovery == Recovery::Recovery {
        count = finish(session, name, &database, pages, sink)?;
        if count > 0 {
            note_restored(session, &record, &names, sink);
        }
    }
    reader.remember(
        session,
        RestoreType::Log,
        options.recovery,
        Vec::new(),
        sink,
    );
    sink.message(closing(operation, count, begun));
    Ok(RestoreOutcome::Recovered)
}

fn closing(operation: &str, count: u64, begun: Instant) -> windlass_base::Message {
    timing::closing(operation, count, count * PAGE_BYTES as u64, begun.elapsed())
}

/// Writes the pages, if the log of the database has the rest; 0 if log backups are missing.
fn finish(
    session: &mut Session,
    name: &str,
    database: &Arc<Database>,
    pages: PageRoll,
    sink: &mut dyn Sink,
) -> Result<u64, Failure> {
    let reached = pages.reached_lsn();
    // SQLite caches pages; closing the connection drops the cache.
    session.queries.leave(name);
    match database.finish_page_roll(pages, WRITER_PATIENCE)? {
        PagesEnded::Written(count) => {
            forget_pages(&database.log_path())?;
            Ok(count)
        }
        PagesEnded::LogNeeded(needed) => {
            sink.message(table::more_log_needed(reached, needed));
            Ok(0)
        }
    }
}

fn note_restored(
    session: &mut Session,
    record: &DatabaseRecord,
    pages: &[FilePage],
    sink: &mut dyn Sink,
) {
    let now = windlass_base::Moment::now().0;
    let noted = pages.iter().try_for_each(|&page| {
        let catalog = session.instance.catalog_mut();
        catalog.page_restored(record.database_id, page, now)?;
        let FilePage { file_id, page } = page;
        let ended = windlass_catalog::EndedDamage::Pages(file_id, page..=page);
        session.end_damage(record, &ended)
    });
    if noted.is_err() {
        sink.message(table::history_not_written());
    }
}

fn pass(
    reader: &SetReader<'_>,
    read: &ReadRequest,
    selection: &mut dyn Selection,
    watch: &Watch<'_>,
) -> Result<(), Failure> {
    let (media, position) = (&reader.opened.media, reader.opened.position);
    restore_selected(media, position, read, selection, watch)?;
    Ok(())
}

impl PartRestore<'_> {
    /// Restores pages that have changed since the backup, as far as the log of the database goes back.
    pub(super) fn roll_pages(
        mut self,
        database: &Arc<Database>,
        description: &BackupDescription,
        pages: &[FilePage],
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let begun = Instant::now();
        if waiting_files(&database.log_path())?.is_some() {
            return Err(table::other_parts_wait("Data files", self.reader.name).into());
        }
        let roll = database.begin_page_roll(description, pages);
        let mut roll = roll.map_err(|error| self.roll_refusal(SourceError::Engine(error)))?;
        let keys = self.reader.unlock_part(self.session)?;
        let read = self.reader.read_request(keys);
        let (name, stats) = (self.reader.name, self.reader.settled.stats);
        let watch = Watch::new(self.session, super::OPERATION, name, stats, sink);
        pass(&self.reader, &read, &mut Begin(&mut roll), &watch)?;
        watch.finish();
        let rolled = roll.settle().map_err(|error| self.refusal(&error))?;
        keep_pages(&database.log_path(), &rolled)?;
        let names: Vec<FilePage> = rolled.pages().collect();
        let mut count = names.len() as u64;
        if self.reader.options.recovery == Recovery::Recovery {
            count = finish(self.session, name, database, rolled, sink)?;
        }
        let mut counts: BTreeMap<FileId, u64> = BTreeMap::new();
        for page in &names {
            *counts.entry(page.file_id).or_default() += 1;
        }
        let parts = counts.into_iter();
        let parts = parts.map(|(file_id, count)| (logical_name(database, file_id), count));
        let operation = self.close(&parts.collect::<Vec<_>>(), sink);
        if count > 0 && self.reader.options.recovery == Recovery::Recovery {
            self.remember_pages(database, &names, sink);
        }
        sink.message(closing(&operation, count, begun));
        Ok(())
    }

    pub(super) fn roll_refusal(&self, error: SourceError) -> Failure {
        match error {
            SourceError::Engine(EngineError::LogRefused { .. }) => {
                table::other_recovery_path().into()
            }
            SourceError::Engine(EngineError::NoLogChain { .. }) => {
                table::page_restore_needs_chain().into()
            }
            error => self.source_refusal(&error),
        }
    }
}

/// Takes the pages out of a full backup.
struct Begin<'a>(&'a mut PageRollBegin);

impl Selection for Begin<'_> {
    fn wants(&self, file_id: u16, offset: u64, bytes: u64) -> bool {
        self.0.wants(FileId(file_id), offset, bytes)
    }

    fn take(&mut self, file_id: u16, offset: u64, bytes: &[u8]) -> Result<(), SourceError> {
        if file_id == LOG_FILE_ID {
            return self.0.apply_log(bytes).map_err(SourceError::Engine);
        }
        self.0.take(FileId(file_id), offset, bytes);
        Ok(())
    }
}

/// Looks at the log of a log backup, or applies it.
struct Log<'a>(&'a mut PageRollLog, bool);

impl Selection for Log<'_> {
    fn wants(&self, _file_id: u16, _offset: u64, _bytes: u64) -> bool {
        false
    }

    fn take(&mut self, _file_id: u16, _offset: u64, bytes: &[u8]) -> Result<(), SourceError> {
        let Self(log, is_scan) = self;
        let taken = match is_scan {
            true => log.scan(bytes),
            false => log.apply(bytes),
        };
        taken.map_err(SourceError::Engine)
    }
}
