//! The backup of a database that is known to be damaged.

use windlass_base::message::table;
use windlass_pipeline::Integrity;

use super::BackupOperation;
use crate::{Failure, Sink, damage};

impl BackupOperation<'_> {
    /// Whether the instance knows that the database is damaged, which is told.
    pub(super) fn is_known_damaged(
        &self,
        integrity: Option<Integrity>,
        sink: &mut dyn Sink,
    ) -> Result<bool, Failure> {
        let Some(known) = self.session.known_damage(&self.record)? else {
            return Ok(false);
        };
        if integrity.is_none_or(|checked| checked.findings == 0) {
            sink.message(table::known_damage_backed_up(
                &self.record.name,
                damage::summary(&known),
            ));
        }
        Ok(true)
    }
}
