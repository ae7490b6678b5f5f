//! RESTORE DATABASE of a set that was made from a database of the page engine.

use std::path::{Path, PathBuf};
use std::time::Instant;

use windlass_base::message::table;
use windlass_catalog::{DatabaseRecord, FileRecord, Origin, RestoreFileRecord};
use windlass_media::{DatabaseFile, FileMode};
use windlass_pipeline::ReadKeys;
use windlass_source::engine::{
    EngineBase, EngineRestoreRequest, EngineTarget, PlacedFile, pending,
};

use super::asked::Asked;
use super::placing::Placing;
use super::restore::placed;
use crate::instance::new_record;
use crate::{Failure, Session, Sink};

/// A file of the set and its place.
struct Placed {
    record: FileRecord,
    /// Whether MOVE or the command names the place.
    is_named: bool,
}

/// A restore whose statement has been understood.
pub(super) struct Work<'a> {
    pub(super) session: &'a mut Session,
    pub(super) known: Option<DatabaseRecord>,
    pub(super) asked: Asked<'a>,
}

impl Work<'_> {
    pub(super) fn run(mut self, sink: &mut dyn Sink) -> Result<(), Failure> {
        let own = self.own_files()?;
        let files = self.places(&own)?;
        self.check_targets(&files, &own)?;
        let files: Vec<FileRecord> = files.into_iter().map(|file| file.record).collect();
        // Before anything is changed: a set that cannot be read leaves everything as it was.
        let keys = self.asked.unlock(self.session)?;
        if self.session.is_rehearsal() {
            let paths: Vec<PathBuf> = files.into_iter().map(|file| file.path).collect();
            return self.asked.rehearse(keys, &paths, sink);
        }
        self.session.instance.engines.close(self.asked.name)?;
        let request = self.request(&files, &keys);
        let target = EngineTarget::begin(&request)?;
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

    fn request(&self, files: &[FileRecord], keys: &ReadKeys) -> EngineRestoreRequest {
        let log = self.asked.set.files.iter().find(|file| file.is_log);
        EngineRestoreRequest {
            description: self.asked.set.source_description.clone(),
            files: files
                .iter()
                .map(|file| PlacedFile {
                    file_id: u16::try_from(file.file_id).unwrap_or(u16::MAX),
                    path: file.path.clone(),
                    mode: self.mode_of(file.file_id),
                })
                .collect(),
            database_name: self.asked.name.to_owned(),
            log_bytes: log.map_or(0, |log| log.size_bytes),
            redo_bytes: log.map_or(0, |log| log.backup_bytes),
            protection: self.asked.protection(keys),
            allow_less_protected: self.asked.choices.allows_unencrypted,
            as_is: self.asked.choices.as_is,
            set_guid: self.asked.set.set_guid,
            checkpoint_lsn: self.asked.set.checkpoint_lsn,
            base: self.asked.is_differential().then_some(EngineBase {
                set_guid: self.asked.set.differential_base_guid,
                checkpoint_lsn: self.asked.set.differential_base_lsn,
            }),
        }
    }

    fn mode_of(&self, file_id: u32) -> Option<u16> {
        let mut files = self.asked.set.files.iter();
        let file = files.find(|file| u32::from(file.file_id) == file_id);
        file?.mode.map(FileMode::bits)
    }

    /// The files of the database that is replaced, or whose restore is incomplete.
    fn own_files(&self) -> Result<Vec<FileRecord>, Failure> {
        let Some(known) = &self.known else {
            return Ok(Vec::new());
        };
        let catalog = self.session.instance.catalog();
        let files = catalog.files(known.database_id)?;
        if !files.is_empty() {
            return Ok(files);
        }
        // At least these are known of every database.
        let log = known.log_path.iter().map(|path| (2, true, path));
        let all = std::iter::once((1, false, &known.path)).chain(log);
        let record = |(file_id, is_log, path): (u32, bool, &PathBuf)| FileRecord {
            file_id,
            is_log,
            logical_name: known.logical_name.clone(),
            path: path.clone(),
        };
        Ok(all.map(record).collect())
    }

    /// Where each file goes.
    fn places(&self, own: &[FileRecord]) -> Result<Vec<Placed>, Failure> {
        let mut placed: Vec<Placed> = Vec::new();
        for file in &self.asked.set.files {
            let (path, is_named) = self.place(file, own)?;
            if let Some(first) = placed.iter().find(|other| other.record.path == path) {
                let claimed = table::file_claimed_twice(
                    path.display(),
                    &file.logical_name,
                    file.file_id,
                    &first.record.logical_name,
                    first.record.file_id,
                );
                return Err(claimed.into());
            }
            let record = FileRecord {
                file_id: u32::from(file.file_id),
                is_log: file.is_log,
                logical_name: file.logical_name.clone(),
                path,
            };
            placed.push(Placed { record, is_named });
        }
        Ok(placed)
    }

    /// As the command says, as MOVE says, where the database that is replaced has it, or where it came from;
    /// and whether the first two name the place.
    fn place(&self, file: &DatabaseFile, own: &[FileRecord]) -> Result<(PathBuf, bool), Failure> {
        let moved = self.asked.moved(self.session, &file.logical_name)?;
        let known = own
            .iter()
            .find(|known| known.file_id == u32::from(file.file_id));
        let (path, is_named) = match (&self.asked.extras.target, moved, known) {
            (Some(target), ..) => (beside(target, file), true),
            (None, Some(moved), _) => (moved, true),
            (None, None, Some(known)) => (known.path.clone(), false),
            (None, None, None) => match own.iter().find(|known| !known.is_log) {
                Some(first) => (beside_own(&first.path, file), false),
                None => (self.asked.original_place(self.session, file)?, false),
            },
        };
        Ok((placed(&path)?, is_named))
    }

    /// SQL Server's rules for overwriting.
    fn check_targets(&self, files: &[Placed], own: &[FileRecord]) -> Result<(), Failure> {
        let mut own: Vec<PathBuf> = own.iter().map(|file| file.path.clone()).collect();
        let together: Vec<PathBuf> = files.iter().map(|file| file.record.path.clone()).collect();
        if self.asked.is_differential() {
            // The full backup was allowed to go there.
            own.extend(together.iter().cloned());
        }
        for Placed { record, is_named } in files {
            let placing = Placing {
                logical: &record.logical_name,
                path: &record.path,
                is_named: *is_named,
                own: &own,
                together: &together,
            };
            placing.check(self.session, &self.asked.wish())?;
        }
        let files: Vec<FileRecord> = files.iter().map(|file| file.record.clone()).collect();
        let files = files.as_slice();
        let Some(known) = &self.known else {
            return match self.asked.is_differential() {
                true => self.check_sequence(files),
                false => Ok(()),
            };
        };
        if known.log_path.is_none() {
            return Err(table::restore_over_sqlite_file(&known.name).into());
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
        // The restore before it was a rehearsal too.
        if self.session.is_rehearsal() {
            return Ok(());
        }
        let log = files.iter().find(|file| file.is_log);
        let waits = match log {
            Some(log) => pending(&log.path)?.is_some(),
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

    /// Adds the database to the catalog.
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
        let number = match is_new {
            true => instance.register(&record)?,
            false => {
                instance.store(&record)?;
                record.database_id
            }
        };
        Ok(instance.catalog_mut().set_files(number, files)?)
    }
}

/// For a command with one target: the first data file is the target, the others are in the same
/// folder.
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

/// A file that the database does not have yet goes to the folder of its first one, under its own
/// name.
fn beside_own(first: &Path, file: &DatabaseFile) -> PathBuf {
    let name = file.physical_name.rsplit(['/', '\\']).next();
    let name = name.filter(|name| !name.is_empty() && !matches!(*name, "." | ".."));
    first.with_file_name(name.unwrap_or(&file.logical_name))
}
