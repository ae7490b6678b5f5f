//! RESTORE DATABASE of a set that was made from a database of the page engine.

use std::path::{Path, PathBuf};
use std::time::Instant;

use windlass_base::message::table;
use windlass_base::{Message, Moment};
use windlass_catalog::{
    Base, DatabaseRecord, DatabaseState, FileRecord, Origin, RestoreFileRecord, RestoreRecord,
    RestoreType,
};
use windlass_device::DeviceAddress;
use windlass_media::{DatabaseFile, SetConfiguration, SetType};
use windlass_pipeline::{MediaSet, OnDamage, ReadReport, ReadRequest, Tuning};
use windlass_source::engine::{
    EngineBase, EngineRestoreRequest, EngineTarget, PlacedFile, pending,
};
use windlass_source::{Recovery, RestoreTarget as _};

use super::header_only::failed;
use super::observer::Watch;
use super::restore::{OPERATION, RestoreExtras, moved_to};
use super::{device_list, history, reading, timing};
use crate::instance::new_record;
use crate::message_of::{catalog_message, name_message, os_error, source_message};
use crate::names::absolute;
use crate::option::RestoreChoices;
use crate::tag::Tags;
use crate::{Completed, Failure, Session, Sink};

/// A restore whose statement has been understood.
pub(super) struct Work<'a> {
    pub(super) session: &'a mut Session,
    pub(super) name: &'a str,
    pub(super) known: Option<DatabaseRecord>,
    pub(super) choices: RestoreChoices,
    pub(super) devices: Vec<DeviceAddress>,
    pub(super) media: MediaSet,
    pub(super) position: u16,
    pub(super) set: &'a SetConfiguration,
    pub(super) extras: &'a RestoreExtras,
}

impl Work<'_> {
    pub(super) fn run(mut self, sink: &mut dyn Sink) -> Result<(), Failure> {
        let files = self.places()?;
        self.check_targets(&files)?;
        let keys = reading::keys(self.session, self.set, &self.extras.keys)?;
        self.session.instance.engines.close(self.name)?;
        let request = self.request(&files);
        let target = EngineTarget::begin(&request).map_err(|error| source_message(&error))?;
        let read = ReadRequest {
            keys,
            on_damage: self.choices.on_damage.unwrap_or(OnDamage::Stop),
            tuning: Tuning {
                threads: self.extras.threads,
                ..self.choices.tuning
            },
        };
        let begun = Instant::now();
        let watch = Watch::new(self.session, OPERATION, self.name, self.choices.stats, sink);
        let report = windlass_pipeline::restore(&self.media, self.position, &read, &target, &watch)
            .map_err(|error| failed(&error))?;
        Box::new(target)
            .finish(self.choices.recovery)
            .map_err(|error| source_message(&error))?;
        watch.finish();
        self.tell(&report, &files, sink);
        self.register(&files)?;
        self.remember(&files, sink);
        sink.message(timing::closing(
            OPERATION,
            timing::pages(&report.files),
            report.processed_bytes,
            begun.elapsed(),
        ));
        Ok(())
    }

    fn is_differential(&self) -> bool {
        self.set.set_type == SetType::Differential
    }

    fn request(&self, files: &[FileRecord]) -> EngineRestoreRequest {
        let log = self.set.files.iter().find(|file| file.is_log);
        EngineRestoreRequest {
            description: self.set.engine.clone(),
            files: files
                .iter()
                .map(|file| PlacedFile {
                    file_id: u16::try_from(file.file_id).unwrap_or(u16::MAX),
                    path: file.path.clone(),
                })
                .collect(),
            database_name: self.name.to_owned(),
            log_bytes: log.map_or(0, |log| log.size_bytes),
            set_guid: self.set.set_guid,
            checkpoint_lsn: self.set.checkpoint_lsn,
            base: self.is_differential().then_some(EngineBase {
                set_guid: self.set.differential_base_guid,
                checkpoint_lsn: self.set.differential_base_lsn,
            }),
        }
    }

    /// Where each file goes.
    fn places(&self) -> Result<Vec<FileRecord>, Failure> {
        let waiting = self.waiting_files()?;
        let mut placed: Vec<FileRecord> = Vec::new();
        for file in &self.set.files {
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
        let drives = self.session.instance.drives();
        let path = match (
            &self.extras.target,
            moved_to(&self.choices, &file.logical_name),
        ) {
            (Some(target), _) => beside(target, file),
            (None, Some(written)) => {
                let tags = Tags {
                    database: Some(self.name.to_owned()),
                    ..self.session.instance.tags()
                };
                let written = device_list::expand(&tags, written)?;
                drives
                    .path(&written)
                    .map_err(|error| name_message(&error))?
            }
            (None, None) => match waiting {
                Some(path) => path.to_owned(),
                None => drives
                    .path(&file.physical_name)
                    .map_err(|error| name_message(&error))?,
            },
        };
        absolute(&path)
            .map_err(|error| table::cannot_open_file(path.display(), os_error(&error)).into())
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
                Some(owner) if !owner.name.eq_ignore_ascii_case(self.name) => {
                    let cause = table::file_used_by_database(file.path.display(), owner.name);
                    return Err(refuse_file(file, cause));
                }
                owner => owner.is_some(),
            };
            if file.path.exists() && !is_own && !self.choices.replace {
                let path = file.path.display().to_string();
                return Err(refuse_file(file, table::file_exists(&path, &path)));
            }
        }
        let Some(known) = &self.known else {
            return match self.is_differential() {
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
        if self.is_differential() {
            return self.check_sequence(files);
        }
        let is_other = known
            .family_guid
            .is_some_and(|family| family != self.set.family_guid);
        if is_other && !self.choices.replace {
            return Err(table::other_database(self.name).with_state(4).into());
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
            (false, None) if self.extras.target.is_none() => {
                Err(table::restore_cannot_create(self.name).into())
            }
            (false, _) => Err(table::not_ready_to_rollforward().into()),
        }
    }

    /// The messages before the closing one.
    fn tell(&self, report: &ReadReport, files: &[FileRecord], sink: &mut dyn Sink) {
        let path = files.first().map_or(Path::new(""), |file| &file.path);
        sink.completed(Completed::Restore {
            database: self.name,
            path,
            position: self.position,
            report,
        });
        for file in &report.files {
            sink.message(table::processed_pages(
                file.pages,
                self.name,
                &file.logical_name,
                self.position,
            ));
        }
        if report.damaged.count > 0 {
            sink.message(table::restored_with_damage());
        }
    }

    /// Enters the database in the catalog.
    fn register(&mut self, files: &[FileRecord]) -> Result<(), Failure> {
        let is_new = self.known.is_none();
        if is_new && self.extras.is_passing {
            return Ok(());
        }
        let first = files.iter().find(|file| !file.is_log);
        let path = first.map(|file| file.path.clone()).unwrap_or_default();
        let before = self.known.take();
        let mut record = before.unwrap_or_else(|| new_record(self.name, &path, Origin::Restored));
        record.state = match self.choices.recovery {
            Recovery::Recovery => DatabaseState::Online,
            Recovery::NoRecovery => DatabaseState::Restoring,
        };
        record.path = path;
        record.log_path = files
            .iter()
            .find(|file| file.is_log)
            .map(|log| log.path.clone());
        record.family_guid = Some(self.set.family_guid);
        if let Some(first) = first {
            record.logical_name.clone_from(&first.logical_name);
        }
        if self.set.set_type == SetType::Full && !self.set.is_copy_only {
            record.base = Some(Base {
                set_guid: self.set.set_guid,
                lsn: self.set.checkpoint_lsn,
                finished: self.set.finished.unwrap_or_else(|| Moment::now().0),
            });
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

    fn remember(&mut self, files: &[FileRecord], sink: &mut dyn Sink) {
        let record = RestoreRecord {
            backup: history::found_record(self.media.header(), self.set, &self.devices),
            restored: Moment::now().0,
            database_name: self.name.to_owned(),
            user_name: self.session.instance.identity().user.clone(),
            restore_type: if self.is_differential() {
                RestoreType::Differential
            } else {
                RestoreType::Database
            },
            replace: self.choices.replace,
            recovery: self.choices.recovery == Recovery::Recovery,
            restart: self.choices.restart,
            device_count: u32::try_from(self.devices.len()).unwrap_or(u32::MAX),
            files: files
                .iter()
                .map(|file| RestoreFileRecord {
                    file_number: file.file_id,
                    path: file.path.display().to_string(),
                })
                .collect(),
        };
        if self.session.instance.record_restore(&record).is_err() {
            sink.message(table::history_not_written());
        }
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
