//! Data files of a page engine database that are rolled forward: from any full backup, with log backups, and at last with
//! the log of the database itself.
//!
//! ```text
//!  RESTORE DATABASE x FILE = 'f' FROM full [WITH NORECOVERY]        the files wait next to the old ones
//!  RESTORE LOG x FROM log WITH NORECOVERY ...                       they are rolled forward there
//!  RESTORE LOG x FROM log, or RESTORE DATABASE x WITH RECOVERY      the rest comes from the log of the database
//! ```
//!
//! The database is closed during each statement. Nothing of it is changed before the last step; if log backups are missing
//! then, the files keep waiting.

use std::path::{Path, PathBuf};
use std::time::Instant;

use windlass_base::message::table;
use windlass_base::{FileId, PAGE_BYTES};
use windlass_catalog::{DatabaseRecord, DatabaseState, RestoreType};
use windlass_engine::FileRoll;
use windlass_pipeline::{ReadRequest, Selection, restore_selected};
use windlass_source::engine::{
    FilesBegin, FilesLog, FilesRestored, end_waiting_files, waiting_files,
};
use windlass_source::{Error as SourceError, Recovery};

use super::files::note_files;
use super::options::Settled;
use super::parts::{PartRestore, check_waiting_part};
use super::reader::SetReader;
use super::{RestoreKind, RestoreOptions, RestoreOutcome};
use crate::operation::observer::Watch;
use crate::operation::timing;
use crate::{Failure, Session, Sink};

/// Data files of a database that wait for log backups.
pub(super) struct Waiting {
    record: DatabaseRecord,
    log: PathBuf,
    files: FileRoll,
}

/// The files that the statement goes on with: a RESTORE LOG, or one without media, of a database that is not restored as a
/// whole.
pub(super) fn waiting(
    session: &Session,
    known: Option<&DatabaseRecord>,
    options: &RestoreOptions,
) -> Result<Option<Waiting>, Failure> {
    let continues = options.wants == Some(RestoreKind::Log) || options.media.devices.is_empty();
    let is_meant = continues && !session.is_rehearsal();
    let online = known.filter(|known| known.state == DatabaseState::Online && is_meant);
    let Some((record, log)) = online.and_then(|known| Some((known, known.log_path.as_ref()?)))
    else {
        return Ok(None);
    };
    // A log that is lost has no files that wait.
    let files = match log.exists() {
        true => waiting_files(log)?,
        false => None,
    };
    Ok(files.map(|files| Waiting {
        record: record.clone(),
        log: log.clone(),
        files,
    }))
}

/// Fails if other files wait already, which a restore of `ids` would not replace.
pub(super) fn check_others(log: &Path, name: &str, ids: &[FileId]) -> Result<(), Failure> {
    let Some(waiting) = waiting_files(log)? else {
        return Ok(());
    };
    match waiting.file_ids().all(|id| ids.contains(&id)) {
        true => Ok(()),
        false => {
            let files = waiting.names().join("', '");
            Err(table::other_files_wait(files, name).into())
        }
    }
}

/// Rolls waiting files forward with a log backup, or ends their restore.
pub(super) fn go_on(
    session: &mut Session,
    (name, waiting): (&str, Waiting),
    options: &RestoreOptions,
    settled: Settled,
    sink: &mut dyn Sink,
) -> Result<RestoreOutcome, Failure> {
    check_waiting_part(options, "files")?;
    let begun = Instant::now();
    let Waiting { record, log, files } = waiting;
    let operation = options.operation();
    if options.media.devices.is_empty() && options.recovery == Recovery::NoRecovery {
        sink.message(timing::closing(operation, 0, 0, begun.elapsed()));
        return Ok(RestoreOutcome::Recovered);
    }
    let alone = session.use_alone(name);
    let _alone = alone.ok_or_else(|| Failure::from(table::exclusive_access()))?;
    session.queries.leave(name);
    session.instance.engines.close(name)?;
    if options.media.devices.is_empty() {
        let count = finish(session, (&record, &log), files, sink)?;
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
    let mut rolled = FilesLog::begin(&log, files, &description)?;
    pass(&reader, &read, &mut Log(&mut rolled), &watch)?;
    rolled.scanned()?;
    pass(&reader, &read, &mut Log(&mut rolled), &watch)?;
    watch.finish();
    let files = rolled.finish()?;
    let count = match options.recovery {
        Recovery::Recovery => finish(session, (&record, &log), files, sink)?,
        Recovery::NoRecovery => 0,
    };
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

/// Lets the files take their places, if the log of the database has the rest; 0 pages if log backups are missing.
fn finish(
    session: &mut Session,
    (record, log): (&DatabaseRecord, &Path),
    files: FileRoll,
    sink: &mut dyn Sink,
) -> Result<u64, Failure> {
    let reached = files.reached_lsn();
    match end_waiting_files(log, files, record.made_for)? {
        FilesRestored::Placed(files) => {
            note_files(session, record, &files, sink);
            Ok(files.iter().map(|file| file.pages).sum())
        }
        FilesRestored::LogNeeded(needed) => {
            sink.message(table::more_log_needed(reached, needed));
            Ok(0)
        }
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
    /// Restores data files that have changed since the backup, as far as the log of the database goes back. The database
    /// is closed.
    pub(super) fn roll_files(
        self,
        log: &Path,
        ids: &[FileId],
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let begun = Instant::now();
        let description = &self.reader.opened.set.source_description;
        let begin = FilesBegin::begin(log, description, ids);
        let mut begin = begin.map_err(|error| self.roll_refusal(error))?;
        let keys = self.reader.unlock_part(self.session)?;
        let read = self.reader.read_request(keys);
        let (name, stats) = (self.reader.name, self.reader.settled.stats);
        let watch = Watch::new(self.session, super::OPERATION, name, stats, sink);
        pass(&self.reader, &read, &mut Begin(&mut begin), &watch)?;
        watch.finish();
        let (files, pages) = begin
            .finish()
            .map_err(|error| self.source_refusal(&error))?;
        let operation = self.close(&pages, sink);
        let count = match self.reader.options.recovery {
            Recovery::Recovery => finish(self.session, (&self.record, log), files, sink)?,
            Recovery::NoRecovery => pages.iter().map(|(_, pages)| pages).sum(),
        };
        let recovery = self.reader.options.recovery;
        let session = &mut *self.session;
        self.reader
            .remember(session, RestoreType::File, recovery, Vec::new(), sink);
        sink.message(closing(&operation, count, begun));
        Ok(())
    }
}

/// Takes the files out of a full backup.
struct Begin<'a>(&'a mut FilesBegin);

impl Selection for Begin<'_> {
    fn wants(&self, file_id: u16, _offset: u64, _bytes: u64) -> bool {
        self.0.wants(file_id)
    }

    fn take(&mut self, file_id: u16, offset: u64, bytes: &[u8]) -> Result<(), SourceError> {
        self.0.take(file_id, offset, bytes)
    }
}

/// Looks at the log of a log backup, or applies it.
struct Log<'a>(&'a mut FilesLog);

impl Selection for Log<'_> {
    fn wants(&self, _file_id: u16, _offset: u64, _bytes: u64) -> bool {
        false
    }

    fn take(&mut self, _file_id: u16, _offset: u64, bytes: &[u8]) -> Result<(), SourceError> {
        self.0.take(bytes)
    }
}
