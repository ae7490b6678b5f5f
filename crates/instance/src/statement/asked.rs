//! What a RESTORE DATABASE statement asks for, understood, whatever kind of database the set is of.

use std::path::{Path, PathBuf};
use std::time::Instant;

use windlass_base::Moment;
use windlass_base::message::table;
use windlass_catalog::{
    Base, DatabaseRecord, DatabaseState, Depth, RestoreFileRecord, RestoreRecord, RestoreType,
};
use windlass_device::DeviceAddress;
use windlass_media::{DatabaseFile, SetConfiguration, SetType};
use windlass_pipeline::{MediaSet, OnDamage, ReadKeys, ReadReport, ReadRequest, Tuning};
use windlass_source::{Protection, Recovery, RestoreTarget, Sealing};
use windlass_tsql::ast::RestoreStatement;

use super::observer::Watch;
use super::placing::Wish;
use super::reading::{self, OpenSet};
use super::restore::{OPERATION, RestoreExtras};
use super::{device_list, history, rehearse, restore, timing};
use crate::message_of::loss_messages;
use crate::option::RestoreChoices;
use crate::tag::Tags;
use crate::{Completed, Failure, Session, Sink};

/// See the module.
pub(super) struct Asked<'a> {
    pub(super) name: &'a str,
    pub(super) choices: RestoreChoices,
    pub(super) devices: Vec<DeviceAddress>,
    pub(super) media: MediaSet,
    pub(super) position: u16,
    pub(super) set: SetConfiguration,
    pub(super) extras: &'a RestoreExtras,
}

impl<'a> Asked<'a> {
    /// Reads the headers of the media, up to the set that the statement names.
    pub(super) fn open(
        session: &mut Session,
        statement: &RestoreStatement,
        name: &'a str,
        choices: RestoreChoices,
        extras: &'a RestoreExtras,
    ) -> Result<Self, Failure> {
        let OpenSet {
            devices,
            media,
            position,
            set,
        } = reading::open_set(session, statement, &choices)?;
        Ok(Self {
            name,
            choices,
            devices,
            media,
            position,
            set,
            extras,
        })
    }

    /// For the rules about where files go.
    pub(super) fn wish(&self) -> Wish<'_> {
        Wish {
            name: self.name,
            devices: &self.devices,
            replace: self.choices.replace,
        }
    }

    pub(super) fn is_differential(&self) -> bool {
        self.set.set_type == SetType::Differential
    }

    /// How the set is read.
    pub(super) fn read_request(&self, keys: ReadKeys) -> ReadRequest {
        ReadRequest {
            keys,
            on_damage: self.choices.on_damage.unwrap_or(OnDamage::Stop),
            tuning: Tuning {
                threads: self.extras.threads,
                io_method: self.extras.io_method,
                ..self.choices.tuning
            },
        }
    }

    /// Reports what the restore would do.
    pub(super) fn rehearse(
        &self,
        keys: ReadKeys,
        targets: &[PathBuf],
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let request = self.read_request(keys);
        let plan = windlass_pipeline::plan_reading(&self.media, self.position, &request)?;
        rehearse::reading(OPERATION, self.name, &self.set, plan, targets, sink);
        Ok(())
    }

    /// Where MOVE sends a file, if it does.
    pub(super) fn moved(
        &self,
        session: &Session,
        logical: &str,
    ) -> Result<Option<PathBuf>, Failure> {
        let Some(written) = restore::moved_to(&self.choices, logical) else {
            return Ok(None);
        };
        let tags = Tags {
            database: Some(self.name.to_owned()),
            ..session.instance.tags()
        };
        let written = device_list::expand(&tags, written)?;
        Ok(Some(session.instance.drives().path(&written)?))
    }

    /// Where a file came from: the last resort, because the path is the backup's.
    pub(super) fn original_place(
        &self,
        session: &Session,
        file: &DatabaseFile,
    ) -> Result<PathBuf, Failure> {
        if self.extras.needs_target {
            let reason = "only the backup names it, which anyone can have made. Give --to FILE, or \
                          --move NAME=FILE for each file.";
            return Err(table::path_means_no_file(&file.physical_name, reason).into());
        }
        Ok(session.instance.drives().path(&file.physical_name)?)
    }

    /// How the set is protected against forgers, if it is read with these keys.
    pub(super) fn protection(&self, keys: &ReadKeys) -> Protection {
        reading::protection(&self.set, keys)
    }

    /// The keys of the set, after everything that the key and the headers prove was checked.
    pub(super) fn unlock(&self, session: &mut Session) -> Result<ReadKeys, Failure> {
        let given = &self.extras.keys;
        let keys = reading::restore_keys(session, &self.set, given, &self.choices)?;
        windlass_pipeline::check(&self.media, self.position, &keys)?;
        Ok(keys)
    }

    /// The same for a restore of pages or files from the very set that the database counts from, which must
    /// be protected as the history says that it was.
    pub(super) fn unlock_part(&self, session: &mut Session) -> Result<ReadKeys, Failure> {
        let catalog = session.instance.catalog();
        let encryptors = catalog.encryptors_of(self.set.set_guid)?;
        let kinds = encryptors.iter().map(|kind| match kind.as_str() {
            "CERTIFICATE" => Sealing::Certificate,
            _ => Sealing::Passphrase,
        });
        let base = Protection::from(kinds.max().unwrap_or_default());
        let found = self.protection(&ReadKeys::default());
        if !base.admits(&found) && !self.choices.allows_unencrypted {
            return Err(table::less_protected(base, found).into());
        }
        self.unlock(session)
    }

    /// Copies the whole set to its target.
    pub(super) fn copy<T: RestoreTarget>(
        &self,
        session: &Session,
        keys: ReadKeys,
        target: Box<T>,
        sink: &mut dyn Sink,
    ) -> Result<ReadReport, Failure> {
        let stats = self.choices.stats;
        let watch = Watch::new(session, OPERATION, self.name, stats, sink);
        let read = self.read_request(keys);
        let report =
            windlass_pipeline::restore(&self.media, self.position, &read, &*target, &watch)?;
        target.finish(self.choices.recovery)?;
        watch.finish();
        Ok(report)
    }

    /// Updates a database's record after the restore.
    pub(super) fn settle(&self, record: &mut DatabaseRecord) {
        record.state = match self.choices.recovery {
            Recovery::Recovery => DatabaseState::Online,
            Recovery::NoRecovery => DatabaseState::Restoring,
        };
        record.family_guid = Some(self.set.family_guid);
        if self.set.set_type == SetType::Full && !self.set.is_copy_only {
            record.base = Some(Base {
                set_guid: self.set.set_guid,
                lsn: self.set.checkpoint_lsn,
                finished: self.set.finished.unwrap_or_else(|| Moment::now().0),
            });
        }
    }

    /// The messages before the closing one.
    pub(super) fn tell(&self, report: &ReadReport, path: &Path, sink: &mut dyn Sink) {
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
        if !report.damaged.is_empty() {
            sink.message(table::restored_with_damage());
        }
    }

    /// The history and the closing message of a restore of the whole set that began at `begun`.
    pub(super) fn conclude(
        &self,
        session: &mut Session,
        report: &ReadReport,
        begun: Instant,
        files: Vec<RestoreFileRecord>,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        self.remember(session, self.restore_type(), files, sink);
        if report.damaged.count == 0 {
            history::record_verification(session, &self.set, Depth::Restored, None);
        }
        sink.message(timing::closing(
            OPERATION,
            timing::pages(&report.files),
            report.processed_bytes,
            begun.elapsed(),
        ));
        if report.damaged.is_empty() {
            return Ok(());
        }
        let mut messages = loss_messages(&report.damaged);
        messages.push(match self.is_differential() {
            true => table::lost_is_as_base(),
            false => table::lost_is_zero(),
        });
        Err(Failure::of_loss(messages))
    }

    /// The restore's type in the history.
    fn restore_type(&self) -> RestoreType {
        match self.is_differential() {
            true => RestoreType::Differential,
            false => RestoreType::Database,
        }
    }

    /// The history. A restore is none the worse when it cannot be written.
    pub(super) fn remember(
        &self,
        session: &mut Session,
        restore_type: RestoreType,
        files: Vec<RestoreFileRecord>,
        sink: &mut dyn Sink,
    ) {
        let record = RestoreRecord {
            backup: history::found_record(self.media.header(), &self.set, &self.devices),
            restored: Moment::now().0,
            database_name: self.name.to_owned(),
            user_name: session.instance.identity().user.clone(),
            restore_type,
            replace: self.choices.replace,
            recovery: self.choices.recovery == Recovery::Recovery,
            restart: self.choices.restart,
            device_count: u32::try_from(self.devices.len()).unwrap_or(u32::MAX),
            files,
        };
        if session.instance.record_restore(&record).is_err() {
            sink.message(table::history_not_written());
        }
    }
}
