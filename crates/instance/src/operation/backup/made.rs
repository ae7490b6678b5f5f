//! What follows when a set is complete: the report, the history, the new base.

use windlass_base::FilePage;
use windlass_base::message::table;
use windlass_media::SetType;
use windlass_pipeline::{BackupReport, BackupRequest, NewBase};

use super::{BackupOperation, base};
use crate::operation::history;
use crate::{Completed, Sink};

/// Maximum number of damaged pages listed in messages; the report has them all.
const DAMAGED_PAGES_REPORTED: usize = 10;

impl BackupOperation<'_> {
    /// Sends the report and the messages before the closing one.
    pub(super) fn announce(&self, report: &BackupReport, sink: &mut dyn Sink) {
        sink.completed(Completed::Backup {
            database: &self.record.name,
            report,
        });
        for file in &report.files {
            sink.message(table::processed_pages(
                file.pages,
                &self.record.name,
                &file.logical_name,
                report.set.position,
            ));
        }
        if report.damaged.is_empty() {
            return;
        }
        for page in report.damaged.iter().take(DAMAGED_PAGES_REPORTED) {
            sink.message(table::page_mismatch(
                page.page.file_id,
                page.page.page,
                &page.file,
            ));
        }
        if report.damaged.len() > DAMAGED_PAGES_REPORTED {
            let more = report.damaged.len() - DAMAGED_PAGES_REPORTED;
            sink.message(table::more_pages(more));
        }
        sink.message(table::damaged_database_backed_up());
    }

    /// Writes the history, and sets the new differential base unless the history has a newer one.
    /// Returns whether the history has the backup. A failure here only warns: the backup is good.
    pub(super) fn remember(
        &mut self,
        report: &BackupReport,
        new_base: NewBase,
        request: &BackupRequest,
        sink: &mut dyn Sink,
    ) -> bool {
        let mut record =
            history::backup_record(&report.media, &report.set, &request.media, report.elapsed);
        let is_by_path = history::is_by_path(&self.record);
        record.set.push(("is_by_path", is_by_path.into()));
        let of = base::backed_up(&self.record, &report.set, request.media.is_discarded());
        let catalog = self.session.instance.catalog_mut();
        let is_base = catalog.record_backup(&record, Some(&of));
        let suspect = report.damaged.iter().try_for_each(|damaged| {
            let FilePage { file_id, page } = damaged.page;
            let message = table::page_mismatch(file_id, page, &damaged.file);
            self.session.note_page(&self.record, damaged.page, &message)
        });
        for error in [is_base.as_ref().err(), suspect.as_ref().err()]
            .into_iter()
            .flatten()
        {
            tracing::warn!("the history was not written: {error}");
            sink.message(table::history_not_written());
        }
        let is_remembered = is_base.is_ok();
        if report.set.set_type == SetType::Log {
            self.truncate(new_base, sink);
            return is_remembered;
        }
        if report.set.set_type == SetType::Differential {
            self.begin_chain(report, request, new_base, sink);
            return is_remembered;
        }
        // Without a row in the history it cannot be a base: the previous one stays.
        if !is_base.unwrap_or(false) {
            return is_remembered;
        }
        if let Err(error) = new_base.take() {
            sink.message(table::history_not_written());
            sink.message(table::base_not_taken(&self.record.name, error));
        }
        base::tidy(self.session);
        is_remembered
    }
}
