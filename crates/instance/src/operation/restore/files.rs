//! Restores damaged or lost data files of a page engine database.

use std::path::Path;
use std::time::Instant;

use windlass_base::message::table;
use windlass_base::{FileId, Guid, Moment, PAGE_BYTES};
use windlass_catalog::{
    DatabaseRecord, EndedDamage, FileRecord, Origin, RestoreFileRecord, RestoreType,
};
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{EngineError, LogIdentity, RestoredFile};
use windlass_media::SetConfiguration;
use windlass_pipeline::{Selection, restore_selected};
use windlass_source::engine::{FilesTarget, waiting_pages};
use windlass_source::ownership::{self, Owner};
use windlass_source::{Error as SourceError, Recovery};

use super::parts::PartRestore;
use super::{OPERATION, check_unused, file_roll};
use crate::message_of::unreadable_file;
use crate::operation::observer::Watch;
use crate::operation::timing;
use crate::{Failure, Session, Sink};

/// The ids of the named files, without duplicates.
fn numbers(names: &[String], set: &SetConfiguration, target: &str) -> Result<Vec<FileId>, Failure> {
    let mut numbers = Vec::new();
    for name in names {
        let mut files = set.files.iter();
        let found = files.find(|file| file.logical_name.eq_ignore_ascii_case(name));
        let file = found.ok_or_else(|| {
            Failure::from(table::logical_file_unknown(name, target).with_state(2))
        })?;
        if file.is_log {
            return Err(table::restore_of_log_alone(name).into());
        }
        numbers.push(FileId(file.file_id));
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

impl PartRestore<'_> {
    /// Restores data files of a closed database.
    pub(super) fn run_files(
        mut self,
        names: &[String],
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let begun = Instant::now();
        let name = self.reader.name;
        let numbers = numbers(names, &self.reader.opened.set, name)?;
        check_unused(self.session, name)?;
        let alone = self.session.use_alone(name);
        let _alone = alone.ok_or_else(|| Failure::from(table::exclusive_access()))?;
        let set = &self.reader.opened.set;
        self.check_owner(&numbers)?;
        let keys = self.reader.unlock_part(self.session)?;
        self.session.queries.leave(name);
        self.session.instance.engines.close(name)?;
        let log = self.record.log_path.clone().unwrap_or_default();
        self.check_no_others(&log, &numbers)?;
        let made_for = self.record.made_for;
        let description = &set.source_description;
        let rolls = self.reader.options.recovery == Recovery::NoRecovery;
        let begun_here = match rolls {
            true => None,
            false => {
                let set = (description.as_slice(), set.set_guid);
                Some(FilesTarget::begin(&log, set, &numbers, made_for))
            }
        };
        let mut target = match begun_here {
            None => return self.roll_files(&log, &numbers, sink),
            Some(Ok(target)) => target,
            // They have changed since, or the set is another full backup: the log has the changes.
            Some(Err(SourceError::Engine(
                EngineError::PagesChanged { .. } | EngineError::NotTheBase { .. },
            ))) if has_log_chain(&log) => return self.roll_files(&log, &numbers, sink),
            Some(Err(error)) => return Err(self.source_refusal(&error)),
        };
        let read = self.reader.read_request(keys);
        let stats = self.reader.settled.stats;
        let watch = Watch::new(self.session, OPERATION, name, stats, sink);
        let (media, position) = (&self.reader.opened.media, self.reader.opened.position);
        restore_selected(media, position, &read, &mut Files(&mut target), &watch)?;
        let files = target
            .finish()
            .map_err(|error| self.source_refusal(&error))?;
        watch.finish();
        let parts: Vec<(String, u64)> = files
            .iter()
            .map(|file| (file.logical_name.clone(), file.pages))
            .collect();
        let operation = self.close(&parts, sink);
        self.remember_files(&files, sink);
        let count = files.iter().map(|file| file.pages).sum();
        sink.message(timing::closing(
            &operation,
            count,
            count * PAGE_BYTES as u64,
            begun.elapsed(),
        ));
        Ok(())
    }

    /// Refuses files that were not made for the database, as a restore of the whole database does.
    fn check_owner(&self, numbers: &[FileId]) -> Result<(), Failure> {
        let record = &self.record;
        if record.origin != Origin::Restored {
            return Ok(());
        }
        let files = self.session.instance.catalog().files(record.database_id)?;
        let is_meant =
            |file: &&FileRecord| numbers.iter().any(|id| file.file_id == u32::from(id.0));
        for FileRecord { path, .. } in files.iter().filter(|file| file.is_log || is_meant(file)) {
            let found = ownership::owner(path, record.made_for)
                .map_err(|error| unreadable_file(path, &error))?;
            if let Owner::Other { why } = found {
                let refused = table::part_is_anothers(path.display(), &record.name, why);
                return Err(refused.into());
            }
        }
        Ok(())
    }

    /// Fails if other parts of the database wait for log backups.
    fn check_no_others(&self, log: &Path, numbers: &[FileId]) -> Result<(), Failure> {
        let found = LogIdentity::of(&RealFileSystem, log).ok().flatten();
        let fork = found.map_or(Guid::NIL, |found| found.recovery_fork);
        if waiting_pages(log, fork)?.is_some() {
            return Err(table::other_parts_wait("Pages", self.reader.name).into());
        }
        file_roll::check_others(log, self.reader.name, numbers)
    }

    pub(super) fn source_refusal(&self, error: &SourceError) -> Failure {
        match error {
            SourceError::Engine(error) => self.refusal(error),
            other => other.into(),
        }
    }

    /// Updates `suspect_pages` and the history.
    fn remember_files(&mut self, files: &[RestoredFile], sink: &mut dyn Sink) {
        note_files(self.session, &self.record, files, sink);
        let files = files.iter().map(|file| RestoreFileRecord {
            file_number: file.file_id.0.into(),
            path: file.path.display().to_string(),
        });
        self.reader.remember(
            self.session,
            RestoreType::File,
            self.reader.options.recovery,
            files.collect(),
            sink,
        );
    }
}

/// Whether the log has a chain of log backups.
fn has_log_chain(log: &Path) -> bool {
    let found = LogIdentity::of(&RealFileSystem, log).ok().flatten();
    found.is_some_and(|found| found.has_log_chain)
}

/// What was damaged in the files is so no longer.
pub(super) fn note_files(
    session: &mut Session,
    record: &DatabaseRecord,
    files: &[RestoredFile],
    sink: &mut dyn Sink,
) {
    let now = Moment::now().0;
    let noted = files.iter().try_for_each(|file| {
        let catalog = session.instance.catalog_mut();
        catalog.file_restored(record.database_id, file.file_id, now)?;
        let ended = EndedDamage::Pages(file.file_id, 0..=u64::MAX);
        session.end_damage(record, &ended)
    });
    if noted.is_err() {
        sink.message(table::history_not_written());
    }
}

/// Writes the content of the media to the files.
struct Files<'a>(&'a mut FilesTarget);

impl Selection for Files<'_> {
    fn wants(&self, file_id: u16, _offset: u64, _bytes: u64) -> bool {
        self.0.wants(file_id)
    }

    fn take(&mut self, file_id: u16, offset: u64, bytes: &[u8]) -> Result<(), SourceError> {
        self.0.take(file_id, offset, bytes)
    }
}
