//! Restores single pages of a page engine database, which stays in use.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_base::message::table;
use windlass_base::{FileId, FilePage, Moment, PAGE_BYTES};
use windlass_catalog::{EndedDamage, RestoreFileRecord, RestoreType};
use windlass_engine::{Database, EngineError, PageRestore};
use windlass_pipeline::{Selection, restore_selected};
use windlass_source::{Error as SourceError, Recovery};

use super::OPERATION;
use super::parts::PartRestore;
use crate::operation::observer::Watch;
use crate::operation::timing;
use crate::{Failure, Sink};

/// Maximum number of pages per file, as on SQL Server.
const PAGES_MAX: usize = 1000;

/// How long to wait for another connection's write transaction.
pub(super) const WRITER_PATIENCE: Duration = Duration::from_secs(5);

const LOG_FILE_ID: u16 = FileId::LOG.0;

impl PartRestore<'_> {
    /// Restores pages of an open database.
    pub(super) fn run_pages(
        mut self,
        pages: &[FilePage],
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let begun = Instant::now();
        let database = self.session.instance.engine(&self.record)?;
        check_count(&database, pages)?;
        let set = &self.reader.opened.set;
        let description = windlass_source::engine::describe(&set.source_description)?;
        let rolls = self.reader.options.recovery == Recovery::NoRecovery;
        let begun_here = database.begin_page_restore(&description, set.set_guid, pages);
        let mut restore = match begun_here {
            Ok(restore) if !rolls => restore,
            // They have changed since, or the set is another full backup: the log has the changes.
            Err(EngineError::PagesChanged { .. } | EngineError::NotTheBase { .. }) | Ok(_)
                if rolls || database.tail_start().is_some() =>
            {
                return self.roll_pages(&database, &description, pages, sink);
            }
            Ok(restore) => restore,
            Err(error) => return Err(self.refusal(&error)),
        };
        let keys = self.reader.unlock_part(self.session)?;
        let read = self.reader.read_request(keys);
        let stats = self.reader.settled.stats;
        let watch = Watch::new(self.session, OPERATION, self.reader.name, stats, sink);
        let (media, position) = (&self.reader.opened.media, self.reader.opened.position);
        restore_selected(media, position, &read, &mut Pages(&mut restore), &watch)?;
        let pages: Vec<FilePage> = restore.pages().collect();
        windlass_source::engine::forget_pages(&database.log_path())?;
        // SQLite caches pages; closing the connection drops the cache.
        self.session.queries.leave(self.reader.name);
        let count = restore
            .finish(WRITER_PATIENCE)
            .map_err(|error| self.refusal(&error))?;
        watch.finish();
        let mut counts: BTreeMap<FileId, u64> = BTreeMap::new();
        for page in &pages {
            *counts.entry(page.file_id).or_default() += 1;
        }
        let parts = counts.into_iter();
        let parts = parts.map(|(file_id, count)| (logical_name(&database, file_id), count));
        let operation = self.close(&parts.collect::<Vec<_>>(), sink);
        self.remember_pages(&database, &pages, sink);
        let bytes = count * PAGE_BYTES as u64;
        sink.message(timing::closing(&operation, count, bytes, begun.elapsed()));
        Ok(())
    }

    /// Updates `suspect_pages` and the history. A failure here does not affect the restored pages.
    pub(super) fn remember_pages(
        &mut self,
        database: &Database,
        pages: &[FilePage],
        sink: &mut dyn Sink,
    ) {
        let now = Moment::now().0;
        let noted = pages.iter().try_for_each(|&page| {
            let catalog = self.session.instance.catalog_mut();
            catalog.page_restored(self.record.database_id, page, now)?;
            let FilePage { file_id, page } = page;
            let ended = EndedDamage::Pages(file_id, page..=page);
            self.session.end_damage(&self.record, &ended)
        });
        if noted.is_err() {
            sink.message(table::history_not_written());
        }
        let is_written = |file_id| pages.iter().any(|page| page.file_id == file_id);
        let files = database.files().into_iter();
        let files = files.filter(|file| is_written(file.file_id));
        let files = files.map(|file| RestoreFileRecord {
            file_number: file.file_id.0.into(),
            path: file.spec.path.display().to_string(),
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

pub(super) fn logical_name(database: &Database, file_id: FileId) -> String {
    let files = database.files().into_iter();
    let mut found = files.filter(|file| file.file_id == file_id);
    found
        .next()
        .map_or_else(String::new, |file| file.spec.logical_name)
}

/// Checks the number of pages per file.
fn check_count(database: &Arc<Database>, pages: &[FilePage]) -> Result<(), Failure> {
    let mut distinct = pages.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    for of_file in distinct.chunk_by(|one, other| one.file_id == other.file_id) {
        if of_file.len() > PAGES_MAX {
            let file = logical_name(database, of_file[0].file_id);
            return Err(table::too_many_pages(file, PAGES_MAX).into());
        }
    }
    Ok(())
}

/// Passes the content of the media to the engine's page restore.
struct Pages<'a>(&'a mut PageRestore);

impl Selection for Pages<'_> {
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
