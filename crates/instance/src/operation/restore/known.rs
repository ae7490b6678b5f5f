//! The newest state, or a moment, from the media that the history names: for restores and drills that are given none.
//!
//! Invariant: the newest state is that of media which hold the newest backup of the history. That a file with its name is
//! there does not show that: an older backup can have been copied over it.

use std::path::Path;

use windlass_base::message::table;
use windlass_base::{Guid, Message};
use windlass_catalog::PastBackup;
use windlass_device::DeviceAddress;

use super::newest::{Newest, NewestRequest};
use crate::operation::device::{self, DeviceName};
use crate::{Failure, Session};

/// A backup without which no state on the media is the newest one.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) set_guid: Guid,
    /// What is said if it is not there.
    pub(super) missing: Message,
}

impl Expected {
    fn of(backup: &PastBackup, database: &str) -> Option<Self> {
        let finished = backup.finished.map(|finished| finished.to_string());
        let device = backup.devices.first().cloned().unwrap_or_default();
        Some(Self {
            set_guid: backup.set_guid?,
            missing: table::newest_backup_gone(database, finished.unwrap_or_default(), device),
        })
    }
}

impl Session {
    /// Finds the sets that give a state of a database, on the media that the history names.
    ///
    /// # Errors
    /// 50293 if none of these media are there; 50324 if the newest backup is not on them, for the newest state (that a
    /// moment is reached, the log shows); those of [`Session::newest`].
    pub fn newest_known(
        &mut self,
        database: &str,
        request: &NewestRequest<'_>,
    ) -> Result<Newest, Failure> {
        let past = self.instance.catalog().past_backups(Some(database))?;
        let past = past.into_iter().filter(|backup| !backup.is_overwritten);
        let past: Vec<PastBackup> = past.collect();
        // Dates go back with the clock, the numbers of the history do not.
        let newest = past.iter().max_by_key(|backup| backup.id);
        let expected = newest.and_then(|newest| Expected::of(newest, database));
        let devices = self.known_media(&past)?;
        if devices.is_empty() {
            return Err(table::drill_without_backups(database).into());
        }
        let request = NewestRequest {
            of: Some(database),
            ..request.clone()
        };
        let plan = self.newest_holding(devices, &request, expected.as_ref())?;
        if !plan.steps.is_empty() {
            return Ok(plan);
        }
        // What lies there by now has no set that could be chosen.
        let lacking = || table::drill_without_backups(database);
        Err(expected
            .map_or_else(lacking, |expected| expected.missing)
            .into())
    }

    /// The media of some backups that are still there.
    fn known_media(&mut self, past: &[PastBackup]) -> Result<Vec<DeviceAddress>, Failure> {
        let media = past.iter().flat_map(|backup| &backup.media);
        let mut names: Vec<&str> = media.map(|medium| medium.device.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let mut devices = Vec::new();
        for name in names {
            let found = self.known_medium(name)?.into_iter();
            devices.extend(found.filter(|device| device.has_content().unwrap_or(true)));
        }
        Ok(devices)
    }

    /// A medium of the history. Whether there is something, whoever reads it reports if that cannot be asked.
    fn known_medium(&mut self, name: &str) -> Result<Vec<DeviceAddress>, Failure> {
        let is_file = Path::new(name).is_absolute();
        if is_file && DeviceAddress::disk(name).length().is_none() {
            return Ok(Vec::new());
        }
        let named = [DeviceName::physical(name)];
        let tags = self.instance.tags();
        device::resolve(self, &named, &tags, &device::Store::default())
    }
}
