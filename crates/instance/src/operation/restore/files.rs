//! Restores damaged or lost data files of a page engine database.

use std::time::Instant;

use windlass_base::message::table;
use windlass_base::{FileId, Moment, PAGE_BYTES};
use windlass_catalog::{EndedDamage, FileRecord, Origin, RestoreFileRecord, RestoreType};
use windlass_engine::RestoredFile;
use windlass_media::SetConfiguration;
use windlass_pipeline::{Selection, restore_selected};
use windlass_source::Error as SourceError;
use windlass_source::engine::FilesTarget;
use windlass_source::ownership::{self, Owner};

use super::parts::PartRestore;
use super::{OPERATION, check_unused};
use crate::message_of::os_error;
use crate::operation::observer::Watch;
use crate::operation::timing;
use crate::{Failure, Sink};

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
        self.session.instance.engines.close(name)?;
        let log = self.record.log_path.clone().unwrap_or_default();
        let made_for = self.record.made_for;
        let description = &set.source_description;
        let mut target = FilesTarget::begin(&log, description, set.set_guid, &numbers, made_for)
            .map_err(|error| self.source_refusal(&error))?;
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
                .map_err(|error| table::cannot_open_file(path.display(), os_error(&error)))?;
            if let Owner::Other { why } = found {
                let refused = table::part_is_anothers(path.display(), &record.name, why);
                return Err(refused.into());
            }
        }
        Ok(())
    }

    fn source_refusal(&self, error: &SourceError) -> Failure {
        match error {
            SourceError::Engine(error) => self.refusal(error),
            other => other.into(),
        }
    }

    /// Updates `suspect_pages` and the history.
    fn remember_files(&mut self, files: &[RestoredFile], sink: &mut dyn Sink) {
        let now = Moment::now().0;
        let noted = files.iter().try_for_each(|file| {
            let database_id = self.record.database_id;
            let catalog = self.session.instance.catalog_mut();
            catalog.file_restored(database_id, file.file_id, now)?;
            let ended = EndedDamage::Pages(file.file_id, 0..=u64::MAX);
            self.session.end_damage(&self.record, &ended)
        });
        if noted.is_err() {
            sink.message(table::history_not_written());
        }
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
