//! Adds a data file to a database in use.
//!
//! Invariants:
//! - In the recovery model FULL, the log says that the file was added before a header names it. So the header that a
//!   growth of the log stores does not name it yet: what finds no room is undone, and tried again after the growth.
//! - The header that names it is stored under the commit gate, so that no commit uses the new extents before they are
//!   durable. No checkpoint runs meanwhile.

use std::sync::Arc;

use windlass_base::PageNumber;

use super::checkpoint::Checkpointing;
use super::commit::Gate;
use super::{Database, Dress, create};
use crate::error::{EngineError, Result};
use crate::files::DataFile;
use crate::log::record::Group;
use crate::log::writer::{AppendError, NoRoom};
use crate::options::{FileSpec, RecoveryModel};
use crate::storage::{OpenMode, StorageFile, unnamed};

/// Log bytes kept free for recovery to log that a data file was not added.
const LAYOUT_RESERVE: u64 = 4096;

/// The outcome of one attempt to give a file its place.
enum Attempt<'a> {
    /// It has its place, and the log says so.
    Placed(Checkpointing<'a>, Gate<'a>),
    /// The log is full; nothing was changed.
    NoRoom(NoRoom),
}

impl Database {
    /// Adds a data file. Extents not yet used are spread over all files from then on.
    pub fn add_file(&self, spec: &FileSpec) -> Result<()> {
        self.add_dressed_file(spec, &|_| Ok(()))
    }

    /// The same; `dress` gets the complete file under its temporary name. A crash before the end leaves a file
    /// of zeros, which is not part of the database.
    pub fn add_dressed_file(&self, spec: &FileSpec, dress: &Dress<'_>) -> Result<()> {
        self.check_writable()?;
        if self.data.specs().len() >= 1000 {
            return Err(EngineError::Invalid(
                "a database has at most 1000 files".to_owned(),
            ));
        }
        let files = self.shared.files.as_ref();
        let file = create::make_file(files, spec, OpenMode::Begin)?;
        let placed = self
            .name_file(spec, file.as_ref(), dress)
            .and_then(|()| self.make_room_and_place(spec, &file));
        if placed.is_err() {
            // The first error is the one to report.
            let _left = files.discard(&spec.path, file.as_ref());
        }
        let (checkpointing, gate) = placed?;
        self.header.write(&self.log, &self.data, |header| {
            // The first file, too, gets its stamp with the next checkpoint.
            if header.files.len() == 2 {
                header.lengths.fill(0);
            }
        })?;
        drop(gate);
        // The file is added; if this checkpoint fails, a later one stamps it.
        let _stamped = self.advance_redo(&checkpointing);
        Ok(())
    }

    fn name_file(&self, spec: &FileSpec, file: &dyn StorageFile, dress: &Dress<'_>) -> Result<()> {
        let fail = |error| EngineError::io("name", &spec.path, error);
        file.lock_database()
            .map_err(|error| EngineError::lock(&spec.path, error))?;
        dress(&unnamed(&spec.path)).map_err(fail)?;
        let named = self.shared.files.publish(&spec.path, file);
        named.map_err(fail)
    }

    /// Gives the file its place. What the log lacks comes from a checkpoint or from growth, as for a commit.
    fn make_room_and_place(
        &self,
        spec: &FileSpec,
        file: &Arc<dyn StorageFile>,
    ) -> Result<(Checkpointing<'_>, Gate<'_>)> {
        let mut attempt = self.place_file(spec, file)?;
        if matches!(attempt, Attempt::NoRoom(_)) && !self.log.is_held() {
            self.checkpoint()?;
            attempt = self.place_file(spec, file)?;
        }
        if let Attempt::NoRoom(room) = attempt {
            self.grow_log(room)?;
            attempt = self.place_file(spec, file)?;
        }
        match attempt {
            Attempt::Placed(checkpointing, gate) => Ok((checkpointing, gate)),
            Attempt::NoRoom(room) => Err(self.log_full(room, "its size does not suffice")),
        }
    }

    fn place_file(&self, spec: &FileSpec, file: &Arc<dyn StorageFile>) -> Result<Attempt<'_>> {
        let checkpointing = self.checkpointer.lock();
        let gate = self.commits.gate();
        let added = DataFile {
            spec: spec.clone(),
            file: Arc::clone(file),
        };
        self.data.add(added, self.pages_placed())?;
        match self.log_layout() {
            Ok(()) => Ok(Attempt::Placed(checkpointing, gate)),
            Err(error) => {
                self.data.remove_last();
                match error {
                    AppendError::NoRoom(room) => Ok(Attempt::NoRoom(room)),
                    AppendError::Failed(error) => Err(error),
                }
            }
        }
    }

    /// The pages whose places a new data file does not change: those that a reader or the header knows, and those
    /// that the log may go on describing by ranges.
    fn pages_placed(&self) -> u32 {
        let dirty = self.dirty.last_page().map_or(0, PageNumber::sqlite);
        let visible = self.versions.pages_visible();
        visible.max(self.header.page_count()).max(dirty)
    }

    /// Logs the last data file and region, which a restore of log backups adds at this place. The caller holds the
    /// gate.
    fn log_layout(&self) -> std::result::Result<(), AppendError> {
        if self.recovery_model() != RecoveryModel::Full {
            return Ok(());
        }
        let (files, regions) = (self.data.specs(), self.data.regions());
        let mut group = Group::default();
        let added = files.last().zip(regions.last());
        group.layout(files.len() - 1, regions.len() - 1, added);
        // If a crash prevents the header that follows, recovery logs that the file was not added.
        let reserve = self.checkpoint_reserve() + LAYOUT_RESERVE;
        let sequence = self.versions.latest().sequence;
        let appended = self.log.append(&group, sequence, reserve)?;
        let flushed = self.log.flush_to(appended.end);
        flushed.map_err(AppendError::Failed)
    }
}
