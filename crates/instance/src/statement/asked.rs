//! What a RESTORE DATABASE statement asks for, understood, whatever kind of database the set is of.

use std::path::Path;

use windlass_base::Moment;
use windlass_base::message::table;
use windlass_catalog::{RestoreFileRecord, RestoreRecord, RestoreType};
use windlass_device::DeviceAddress;
use windlass_media::{SetConfiguration, SetType};
use windlass_pipeline::{MediaSet, OnDamage, ReadKeys, ReadReport, ReadRequest, Tuning};
use windlass_source::Recovery;

use super::history;
use super::restore::RestoreExtras;
use crate::option::RestoreChoices;
use crate::{Completed, Session, Sink};

/// See the module.
pub(super) struct Asked<'a> {
    pub(super) name: &'a str,
    pub(super) choices: RestoreChoices,
    pub(super) devices: Vec<DeviceAddress>,
    pub(super) media: MediaSet,
    pub(super) position: u16,
    pub(super) set: &'a SetConfiguration,
    pub(super) extras: &'a RestoreExtras,
}

impl Asked<'_> {
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
                engine: self.extras.engine,
                ..self.choices.tuning
            },
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
        if report.damaged.count > 0 {
            sink.message(table::restored_with_damage());
        }
    }

    /// What the history calls a restore of the whole set.
    pub(super) fn restore_type(&self) -> RestoreType {
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
            backup: history::found_record(self.media.header(), self.set, &self.devices),
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
