//! The set that a restore reads, and how: what restores of databases, files and pages have in common.

use std::path::PathBuf;

use windlass_base::message::table;
use windlass_base::{Moment, local_of_unix_ms};
use windlass_catalog::{RestoreFileRecord, RestoreRecord, RestoreType};
use windlass_device::DeviceAddress;
use windlass_media::SetType;
use windlass_pipeline::{ReadKeys, ReadRequest};
use windlass_source::{Protection, Recovery, Sealing};

use super::options::Settled;
use super::{RestoreKind, RestoreOptions};
use crate::operation::media::{OpenedSet, moved_to};
use crate::operation::{expand, history};
use crate::tag::Tags;
use crate::{Failure, Session, Sink};

/// The open set of a restore, with the options.
pub(in crate::operation) struct SetReader<'a> {
    pub(in crate::operation) name: &'a str,
    pub(in crate::operation) options: &'a RestoreOptions,
    pub(in crate::operation) settled: Settled,
    pub(in crate::operation) opened: OpenedSet,
}

impl<'a> SetReader<'a> {
    /// Reads the headers of the media, up to the requested set.
    pub(in crate::operation) fn open(
        session: &mut Session,
        name: &'a str,
        devices: Vec<DeviceAddress>,
        options: &'a RestoreOptions,
        settled: Settled,
    ) -> Result<Self, Failure> {
        Ok(Self {
            name,
            options,
            settled,
            opened: OpenedSet::open(session, devices, &options.media)?,
        })
    }

    pub(in crate::operation) fn is_differential(&self) -> bool {
        self.opened.set.set_type == SetType::Differential
    }

    pub(in crate::operation) fn is_log(&self) -> bool {
        self.opened.set.set_type == SetType::Log
    }

    /// Whether it continues a sequence of restores.
    pub(in crate::operation) fn continues(&self) -> bool {
        self.is_differential() || self.is_log()
    }

    /// The operation's name in messages.
    pub(in crate::operation) fn operation(&self) -> &'static str {
        RestoreKind::of(self.opened.set.set_type).operation()
    }

    /// Refuses a set that the statement does not restore.
    pub(in crate::operation) fn check_kind(&self) -> Result<(), Failure> {
        let set = &self.opened.set;
        let is_wanted = |wanted| wanted == RestoreKind::of(set.set_type);
        if self.options.wants.is_none_or(is_wanted) {
            return Ok(());
        }
        let made_by = match set.set_type {
            SetType::Log => "BACKUP LOG",
            SetType::Full | SetType::Differential => "BACKUP DATABASE",
        };
        let device = self
            .opened
            .devices
            .first()
            .map(|device| device.name.clone());
        Err(table::set_not_usable(device.unwrap_or_default(), made_by).into())
    }

    /// The request to read the set.
    pub(in crate::operation) fn read_request(&self, keys: ReadKeys) -> ReadRequest {
        ReadRequest {
            keys,
            on_damage: self.options.on_damage,
            tuning: self.settled.tuning,
        }
    }

    /// The path to which MOVE sends a file, if it does.
    pub(in crate::operation) fn moved(
        &self,
        session: &Session,
        logical: &str,
    ) -> Result<Option<PathBuf>, Failure> {
        let Some(written) = moved_to(&self.options.moves, logical) else {
            return Ok(None);
        };
        let tags = Tags {
            database: Some(self.name.to_owned()),
            ..session.instance.tags()
        };
        let written = expand(&tags, written)?;
        let path = session.instance.drives().path(&written);
        Ok(Some(path?))
    }

    /// Returns the keys of the set, after checking everything that they and the headers can prove.
    pub(in crate::operation) fn unlock(&self, session: &mut Session) -> Result<ReadKeys, Failure> {
        let keys = self.opened.restore_keys(
            session,
            &self.options.keys,
            &self.options.signed_by,
            self.options.allows_unencrypted,
        )?;
        windlass_pipeline::check(&self.opened.media, self.opened.position, &keys)?;
        Ok(keys)
    }

    /// The same for a restore of pages or files: the set must be as well protected as the history says
    /// it was.
    pub(in crate::operation) fn unlock_part(
        &self,
        session: &mut Session,
    ) -> Result<ReadKeys, Failure> {
        let catalog = session.instance.catalog();
        let encryptors = catalog.encryptors_of(self.opened.set.set_guid);
        let encryptors = encryptors?;
        let kinds = encryptors.iter().map(|kind| Sealing::of_encryptor(kind));
        let base = Protection::from(kinds.max().unwrap_or_default());
        let found = self.opened.protection(&ReadKeys::default());
        if !base.admits(&found) && !self.options.allows_unencrypted {
            return Err(table::less_protected(base, found).into());
        }
        self.unlock(session)
    }

    /// Writes the history. A failure here does not affect the restore.
    pub(in crate::operation) fn remember(
        &self,
        session: &mut Session,
        restore_type: RestoreType,
        recovery: Recovery,
        files: Vec<RestoreFileRecord>,
        sink: &mut dyn Sink,
    ) {
        let (opened, options) = (&self.opened, self.options);
        let (stop_at, mark) = (options.stop.time(), options.stop.mark_name());
        let record = RestoreRecord {
            backup: history::found_record(opened.media.header(), &opened.set, &opened.devices),
            restored: Moment::now().0,
            database_name: self.name.to_owned(),
            user_name: session.instance.identity().user.clone(),
            restore_type,
            replace: options.replaces,
            recovery: recovery == Recovery::Recovery,
            restart: options.restarts,
            stop_at: stop_at.map(local_of_unix_ms),
            stop_before: mark.is_some().then(|| options.stop.is_before()),
            stop_at_mark_name: mark,
            device_count: u32::try_from(opened.devices.len()).unwrap_or(u32::MAX),
            files,
        };
        if session.instance.record_restore(&record).is_err() {
            sink.message(table::history_not_written());
        }
    }
}
