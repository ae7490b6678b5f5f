//! What the instance's catalog knows of a restored database.
//!
//! The catalog may be on a full disk while the database's disk is not. So whether it can be written is found
//! out before any file is replaced; and once the files are complete, trouble with the catalog is reported and
//! does not make the restore a failure.

use std::path::PathBuf;

use windlass_base::Moment;
use windlass_base::message::table;
use windlass_catalog::{Base, DatabaseRecord, DatabaseState, FileRecord, Origin};
use windlass_media::SetType;
use windlass_source::Recovery;

use super::RestoreOperation;
use super::target::{first, log};
use crate::instance::new_record;
use crate::{Failure, Session, Sink};

/// Reports that a database is restored, but not its entry in the catalog.
pub(in crate::operation) fn tell_unwritten(name: &str, failure: &Failure, sink: &mut dyn Sink) {
    let reasons: Vec<&str> = failure
        .messages
        .iter()
        .map(|message| message.text.as_str())
        .collect();
    sink.message(table::history_not_written());
    sink.message(table::entry_not_updated(name, reasons.join(" ")));
}

/// Stores the entry of a database whose files are complete; see [`tell_unwritten`].
pub(super) fn store_or_tell(session: &mut Session, record: &DatabaseRecord, sink: &mut dyn Sink) {
    if let Err(error) = session.instance.store(record) {
        tell_unwritten(&record.name, &error.into(), sink);
    }
}

impl RestoreOperation<'_> {
    /// Writes the entry of the database to replace as it is now: if that fails, its files stay as they are, too.
    pub(super) fn check_catalog(&mut self) -> Result<(), Failure> {
        let Some(known) = &self.known else {
            return Ok(());
        };
        let instance = &mut self.session.instance;
        let current = instance.database(&known.name)?;
        match current.filter(|current| current.database_id == known.database_id) {
            Some(current) => Ok(instance.store(&current)?),
            None => Ok(()),
        }
    }

    /// Writes the entry of the database to replace without an identity, if the restore gives its files another:
    /// from here until the entry is complete, they may have the one or the other. That stays so if the restore
    /// fails, because whoever opens the files may complete it.
    fn loosen_identity(&mut self) -> Result<(), Failure> {
        let family = self.reader.opened.set.family_guid;
        let known = self.known.as_ref().filter(|known| known.log_path.is_some());
        let Some(known) = known.filter(|known| known.family_guid != Some(family)) else {
            return Ok(());
        };
        let instance = &mut self.session.instance;
        let current = instance.database(&known.name)?;
        match current.filter(|current| current.database_id == known.database_id) {
            None => Ok(()),
            Some(current) => Ok(instance.store(&DatabaseRecord {
                family_guid: None,
                ..current
            })?),
        }
    }

    /// Registers a new database, for now as one that is being restored. Whether there was one to register.
    pub(super) fn reserve(&mut self, files: &[FileRecord], existed: bool) -> Result<bool, Failure> {
        if self.known.is_some() {
            // A differential or log is applied already: without its end the full backup would be lost as well.
            if !self.reader.continues() {
                self.check_catalog()?;
                self.loosen_identity()?;
            }
            return Ok(false);
        }
        if self.reader.options.is_unregistered {
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

    /// Updates the entry of the database, or reports that it could not be: the files are complete.
    pub(super) fn register_or_tell(
        &mut self,
        files: &[FileRecord],
        existed: bool,
        sink: &mut dyn Sink,
    ) {
        if let Err(failure) = self.register(files, existed) {
            tell_unwritten(self.reader.name, &failure, sink);
        }
    }

    /// Updates the database's record in the catalog.
    fn register(&mut self, files: &[FileRecord], existed: bool) -> Result<(), Failure> {
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
        record.state = match self.recovery {
            Recovery::Recovery => DatabaseState::Online,
            Recovery::NoRecovery if self.stands_by => DatabaseState::Standby,
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
