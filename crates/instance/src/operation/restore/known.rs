//! The newest state, or a moment, from the media that the history names: for restores and drills that are given none.
//!
//! Invariant: the newest state is that of media which hold the newest backup of the history. That a file with its name is
//! there does not show that: an older backup can have been copied over it.

use std::path::Path;

use windlass_base::Message;
use windlass_base::at_once::at_once;
use windlass_base::message::table;
use windlass_catalog::PastBackup;
use windlass_device::DeviceAddress;

use super::folder::{Unfolded, noted};
use super::newest::{Newest, NewestRequest};
use crate::operation::device::{self, DeviceName};
use crate::standing::tell_apart;
use crate::{Failure, Session};

impl Session {
    /// Finds the sets that give a state of a database, on the media that the history names; of the database `of`, or else
    /// `name`.
    ///
    /// # Errors
    /// 50293 if the history knows no backup, or none of its media are there; 50324 if the newest backup is not on them, for
    /// the newest state (that a moment is reached, the log shows); those of [`Session::newest`].
    pub fn newest_known(&mut self, request: &NewestRequest<'_>) -> Result<Newest, Failure> {
        let database = request.of.unwrap_or(request.name);
        let (past, name) = self.past_of(database)?;
        // Dates go back with the clock, the numbers of the history do not. One that was overwritten is the newest all the same.
        let newest = past.iter().max_by_key(|backup| backup.id);
        // What the history was told to forget, it knows as the base of others, and as no more.
        let is_known = past.iter().any(|backup| !backup.is_forgotten);
        let Some(newest) = newest.filter(|_| is_known) else {
            return Err(table::drill_without_backups(database).into());
        };
        let media = self.known_media(&past)?;
        let left_out = media.notes.clone();
        let failed = |why: Message| Failure::from([left_out.clone(), vec![why]].concat());
        if media.devices.is_empty() {
            return Err(failed(table::drill_without_backups(database)));
        }
        let request = NewestRequest {
            of: Some(&name),
            ..request.clone()
        };
        let plan = self.newest_of(media, &request, |inventory| {
            match newest.set_guid.is_some_and(|guid| inventory.has(guid)) {
                true => Ok(()),
                false => Err(failed(missing(newest, database))),
            }
        })?;
        match plan.steps.is_empty() {
            // What lies there by now has no set that could be chosen.
            true => Err(failed(table::drill_without_backups(database))),
            false => Ok(plan),
        }
    }

    /// The backups of a database, by its name or by the longer one that tells it from others of its name; and its name.
    fn past_of(&self, database: &str) -> Result<(Vec<PastBackup>, String), Failure> {
        let catalog = self.instance.catalog();
        let past = catalog.past_backups(Some(database))?;
        if !past.is_empty() {
            return Ok((past, database.to_owned()));
        }
        let mut past = catalog.past_backups(None)?;
        let machine = &self.instance.identity().machine;
        tell_apart(&mut past, &catalog.databases()?, machine);
        past.retain(|backup| backup.database.eq_ignore_ascii_case(database));
        let last = past.last().map(|backup| backup.of.name.clone());
        Ok((past, last.unwrap_or_else(|| database.to_owned())))
    }

    /// The media of some backups that can be read, and why others cannot: the newest state does not come from what is left if
    /// it needs them.
    fn known_media(&mut self, past: &[PastBackup]) -> Result<Unfolded, Failure> {
        let media = past.iter().flat_map(|backup| &backup.media);
        let mut names: Vec<&str> = media.map(|medium| medium.device.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let mut devices = Vec::new();
        for name in names {
            devices.extend(self.known_medium(name)?);
        }
        let is_remote = devices.iter().any(DeviceAddress::is_object);
        let found = at_once(&devices, is_remote, standing);
        let mut known = Unfolded {
            devices: Vec::new(),
            notes: Vec::new(),
            unseen: None,
            in_folders: Vec::new(),
        };
        let mut left_out: Vec<(DeviceAddress, String)> = Vec::new();
        let mut there = Vec::new();
        for (device, found) in devices.into_iter().zip(found) {
            match found {
                Standing::Absent => {}
                Standing::There => there.push(device),
                Standing::Unreadable(why) => left_out.push((device, why)),
            }
        }
        let headers = self.headers.read_all(&there);
        for (device, headers) in there.into_iter().zip(headers) {
            match headers {
                Ok(headers) => {
                    known.in_folders.push(headers.media_set_guid);
                    known.devices.push(device);
                }
                Err(error) => left_out.push((device, error.to_string())),
            }
        }
        known.notes = noted(&left_out);
        Ok(known)
    }

    fn known_medium(&self, name: &str) -> Result<Vec<DeviceAddress>, Failure> {
        if Path::new(name).is_absolute() {
            return Ok(vec![DeviceAddress::disk(name)]);
        }
        let named = [DeviceName::physical(name)];
        let tags = self.instance.tags();
        device::addresses(self, &named, &tags, &device::Store::default())
    }
}

/// What is said if the newest backup is not on its media.
fn missing(newest: &PastBackup, database: &str) -> Message {
    let finished = newest.finished.map(|finished| finished.to_string());
    let device = newest.devices.first().cloned().unwrap_or_default();
    table::newest_backup_gone(database, finished.unwrap_or_default(), device)
}

/// What is under the name of a medium.
enum Standing {
    Absent,
    There,
    Unreadable(String),
}

fn standing(device: &DeviceAddress) -> Standing {
    match device.has_content() {
        Ok(false) => Standing::Absent,
        // Nobody waits for the other end of a FIFO.
        Ok(true) if device.file().is_some() && device.length().is_none() => {
            Standing::Unreadable("it is no file".to_owned())
        }
        Ok(true) => Standing::There,
        Err(error) => Standing::Unreadable(error.to_string()),
    }
}
