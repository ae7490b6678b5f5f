//! RESTORE DATABASE of a set that was made from a database of the page engine.

use std::path::{Path, PathBuf};
use std::time::Instant;

use windlass_base::Message;
use windlass_base::message::table;
use windlass_catalog::{DatabaseRecord, DatabaseState, FileRecord, Origin, RestoreFileRecord};
use windlass_media::DatabaseFile;
use windlass_source::engine::{
    EngineBase, EngineRestoreRequest, EngineTarget, PlacedFile, pending,
};

use super::asked::Asked;
use super::reading;
use super::restore::placed;
use crate::instance::new_record;
use crate::message_of::{catalog_message, name_message, source_message};
use crate::{Failure, Session, Sink};

/// A restore whose statement has been understood.
pub(super) struct Work<'a> {
    pub(super) session: &'a mut Session,
    pub(super) known: Option<DatabaseRecord>,
    pub(super) asked: Asked<'a>,
}

impl Work<'_> {
    pub(super) fn run(mut self, sink: &mut dyn Sink) -> Result<(), Failure> {
        let files = self.places()?;
        self.check_targets(&files)?;
        let keys = reading::keys(self.session, &self.asked.set, &self.asked.extras.keys)?;
        self.session.instance.engines.close(self.asked.name)?;
        let request = self.request(&files);
        let target = EngineTarget::begin(&request).map_err(|error| source_message(&error))?;
        let begun = Instant::now();
        let report = self
            .asked
            .copy(self.session, keys, Box::new(target), sink)?;
        let path = files.first().map_or(Path::new(""), |file| &file.path);
        self.asked.tell(&report, path, sink);
        self.register(&files)?;
        let files = files.iter().map(|file| RestoreFileRecord {
            file_number: file.file_id,
            path: file.path.display().to_string(),
        });
        let files = files.collect();
        self.asked
            .conclude(self.session, &report, begun, files, sink)
    }

    fn request(&self, files: &[FileRecord]) -> EngineRestoreRequest {
        let log = self.asked.set.files.iter().find(|file| file.is_log);
        EngineRestoreRequest {
            description: self.asked.set.engine.clone(),
            files: files
                .iter()
                .map(|file| PlacedFile {
                    file_id: u16::try_from(file.file_id).unwrap_or(u16::MAX),
                    path: file.path.clone(),
                })
                .collect(),
            database_name: self.asked.name.to_owned(),
            log_bytes: log.map_or(0, |log| log.size_bytes),
            set_guid: self.asked.set.set_guid,
            checkpoint_lsn: self.asked.set.checkpoint_lsn,
            base: self.asked.is_differential().then_some(EngineBase {
                set_guid: self.asked.set.differential_base_guid,
                checkpoint_lsn: self.asked.set.differential_base_lsn,
            }),
        }
    }

    /// Where each file goes.
    fn places(&self) -> Result<Vec<FileRecord>, Failure> {
        let waiting = self.waiting_files()?;
        let mut placed: Vec<FileRecord> = Vec::new();
        for file in &self.asked.set.files {
            let known = waiting
                .iter()
                .find(|known| known.file_id == u32::from(file.file_id));
            let path = self.place(file, known.map(|known| known.path.as_path()))?;
            if let Some(first) = placed.iter().find(|other| other.path == path) {
                let claimed = table::file_claimed_twice(
                    path.display(),
                    &file.logical_name,
                    file.file_id,
                    &first.logical_name,
                    first.file_id,
                );
                return Err(claimed.into());
            }
            placed.push(FileRecord {
                file_id: u32::from(file.file_id),
                is_log: file.is_log,
                logical_name: file.logical_name.clone(),
                path,
            });
        }
        Ok(placed)
    }

    /// The files of a database that waits for more of its restore stay where they are.
    fn waiting_files(&self) -> Result<Vec<FileRecord>, Failure> {
        match &self.known {
            Some(known) if known.state == DatabaseState::Restoring => self
                .session
                .instance
                .catalog()
                .files(known.database_id)
                .map_err(|error| catalog_message(&error)),
            _ => Ok(Vec::new()),
        }
    }

    /// As the command says, as MOVE says, where the sequence of restores has it, or where it came from.
    fn place(&self, file: &DatabaseFile, waiting: Option<&Path>) -> Result<PathBuf, Failure> {
        let moved = self.asked.moved(self.session, &file.logical_name)?;
        let path = match (&self.asked.extras.target, moved, waiting) {
            (Some(target), ..) => beside(target, file),
            (None, Some(moved), _) => moved,
            (None, None, Some(waiting)) => waiting.to_owned(),
            (None, None, None) => self
                .session
                .instance
                .drives()
                .path(&file.physical_name)
                .map_err(|error| name_message(&error))?,
        };
        placed(&path)
    }

    /// SQL Server's rules for overwriting.
    fn check_targets(&self, files: &[FileRecord]) -> Result<(), Failure> {
        for file in files {
            let owner = self
                .session
                .instance
                .database_at(&file.path)
                .map_err(|error| catalog_message(&error))?;
            let is_own = match owner {
                Some(owner) if !owner.name.eq_ignore_ascii_case(self.asked.name) => {
                    let cause = table::file_used_by_database(file.path.display(), owner.name);
                    return Err(refuse_file(file, cause));
                }
                owner => owner.is_some(),
            };
            if file.path.exists() && !is_own && !self.asked.choices.replace {
                let path = file.path.display().to_string();
                return Err(refuse_file(file, table::file_exists(&path, &path)));
            }
        }
        let Some(known) = &self.known else {
            return match self.asked.is_differential() {
                true => self.check_sequence(files),
                false => Ok(()),
            };
        };
        if known.log_path.is_none() {
            return Err(table::statement_not_supported(
                format!(
                    "A restore of a page engine database over the SQLite file '{}'",
                    known.name
                ),
                "Drop or detach it first, or restore under another name.",
            )
            .into());
        }
        if self.asked.is_differential() {
            return self.check_sequence(files);
        }
        let is_other = known
            .family_guid
            .is_some_and(|family| family != self.asked.set.family_guid);
        if is_other && !self.asked.choices.replace {
            return Err(table::other_database(self.asked.name).with_state(4).into());
        }
        Ok(())
    }

    /// A differential continues a sequence that was left open.
    fn check_sequence(&self, files: &[FileRecord]) -> Result<(), Failure> {
        let log = files.iter().find(|file| file.is_log);
        let waits = match log {
            Some(log) => pending(&log.path)
                .map_err(|error| source_message(&error))?
                .is_some(),
            None => false,
        };
        match (waits, &self.known) {
            (true, _) => Ok(()),
            (false, None) if self.asked.extras.target.is_none() => {
                Err(table::restore_cannot_create(self.asked.name).into())
            }
            (false, _) => Err(table::not_ready_to_rollforward().into()),
        }
    }

    /// Enters the database in the catalog.
    fn register(&mut self, files: &[FileRecord]) -> Result<(), Failure> {
        let is_new = self.known.is_none();
        if is_new && self.asked.extras.is_passing {
            return Ok(());
        }
        let first = files.iter().find(|file| !file.is_log);
        let path = first.map(|file| file.path.clone()).unwrap_or_default();
        let before = self.known.take();
        let mut record =
            before.unwrap_or_else(|| new_record(self.asked.name, &path, Origin::Restored));
        self.asked.settle(&mut record);
        record.path = path;
        record.log_path = files
            .iter()
            .find(|file| file.is_log)
            .map(|log| log.path.clone());
        if let Some(first) = first {
            record.logical_name.clone_from(&first.logical_name);
        }
        let instance = &mut self.session.instance;
        let stored = if is_new {
            instance.register(&record)
        } else {
            instance.store(&record).map(|()| record.database_id)
        };
        stored
            .and_then(|number| instance.catalog_mut().set_files(number, files))
            .map_err(|error| catalog_message(&error))
    }
}

/// Of a command that names one target: the first data file is the target, the others lie beside it.
fn beside(target: &Path, file: &DatabaseFile) -> PathBuf {
    if file.is_log {
        return windlass_vfs::log_path(target);
    }
    let mut name = target.as_os_str().to_owned();
    if file.file_id != 1 {
        name.push(format!(".{}", file.file_id));
    }
    PathBuf::from(name)
}

fn refuse_file(file: &FileRecord, cause: Message) -> Failure {
    Failure::from(vec![
        cause,
        table::file_cannot_be_restored(&file.logical_name, file.path.display()).with_state(4),
        table::restore_plan_problems(),
    ])
}
