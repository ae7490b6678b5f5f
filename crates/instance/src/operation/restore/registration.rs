//! The restored database in the catalog.

use std::path::PathBuf;

use windlass_base::Moment;
use windlass_catalog::{Base, DatabaseRecord, DatabaseState, FileRecord, Origin};
use windlass_media::SetType;
use windlass_source::Recovery;

use super::RestoreOperation;
use super::target::{first, log};
use crate::Failure;
use crate::instance::new_record;

impl RestoreOperation<'_> {
    /// Registers a new database, for now as one that is being restored. Whether there was one to register.
    pub(super) fn reserve(&mut self, files: &[FileRecord], existed: bool) -> Result<bool, Failure> {
        if self.known.is_some() || self.reader.options.is_unregistered {
            return Ok(false);
        }
        let path = first(files).map_or_else(PathBuf::new, |file| file.path.clone());
        let mut record = new_record(self.reader.name, &path, self.origin(existed));
        record.made_for = self.made_for;
        record.state = DatabaseState::Restoring;
        record.log_path = log(files).map(|log| log.path.clone());
        let files = match record.log_path {
            Some(_) => files,
            None => &[],
        };
        let catalog = self.session.instance.catalog_mut();
        record.database_id = catalog.register_with_files(&record, files)?;
        self.known = Some(record);
        Ok(true)
    }

    fn origin(&self, existed: bool) -> Origin {
        match existed {
            true => self.kind.origin_of_replaced(),
            false => Origin::Restored,
        }
    }

    /// Updates the database's record in the catalog.
    pub(super) fn register(&mut self, files: &[FileRecord], existed: bool) -> Result<(), Failure> {
        let Some(mut record) = self.known.take() else {
            return Ok(());
        };
        let origin = self.origin(existed);
        let path = first(files).map_or_else(PathBuf::new, |file| file.path.clone());
        record.made_for = self.made_for;
        self.settle(&mut record);
        if let Some(first) = first(files) {
            record.logical_name.clone_from(&first.logical_name);
        }
        record.log_path = log(files).map(|log| log.path.clone());
        if record.path != path {
            record.path = path;
            record.origin = origin;
        }
        let instance = &mut self.session.instance;
        instance.store(&record)?;
        match record.log_path {
            Some(_) => Ok(instance
                .catalog_mut()
                .set_files(record.database_id, files)?),
            None => Ok(()),
        }
    }

    /// Updates a database's record to its state after the restore.
    fn settle(&self, record: &mut DatabaseRecord) {
        let set = &self.reader.opened.set;
        record.state = match self.reader.options.recovery {
            Recovery::Recovery => DatabaseState::Online,
            Recovery::NoRecovery => DatabaseState::Restoring,
        };
        record.family_guid = Some(set.family_guid);
        record.is_as_is = set.seen.is_as_is;
        if set.set_type == SetType::Full && !set.is_copy_only {
            record.base = Some(Base {
                set_guid: set.set_guid,
                lsn: set.checkpoint_lsn,
                finished: set.finished.unwrap_or_else(|| Moment::now().0),
            });
        }
    }
}
