//! The media of a database that the history names: for restores and drills that are given none.

use std::path::Path;

use windlass_base::message::table;
use windlass_catalog::PastBackup;
use windlass_device::DeviceAddress;

use crate::operation::device::{self, DeviceName};
use crate::{Failure, Session};

/// The media of a database that the history names.
#[derive(Debug)]
pub struct KnownMedia {
    /// Those that are still there.
    pub media: Vec<String>,
    /// Why they do not hold the newest state, if none of the newest backup is there.
    pub lacking: Option<windlass_base::Message>,
}

impl Session {
    /// The media of a database that the history knows and that are still there.
    ///
    /// # Errors
    /// 50293 if there are none; those of the catalog.
    pub fn known_media(&self, database: &str) -> Result<KnownMedia, Failure> {
        let past = self.instance.catalog().past_backups(Some(database))?;
        let past = past.into_iter().filter(|backup| !backup.is_overwritten);
        let past: Vec<PastBackup> = past.collect();
        let mut names: Vec<&String> = past
            .iter()
            .flat_map(|backup| &backup.media)
            .map(|medium| &medium.device)
            .collect();
        names.sort();
        names.dedup();
        let mut there = Vec::new();
        for name in names {
            if self.has_medium(name)? {
                there.push(name);
            }
        }
        let newest = past.last();
        let is_there = |backup: &&PastBackup| {
            let mut media = backup.media.iter();
            media.any(|medium| there.contains(&&medium.device))
        };
        let lacking = newest.filter(|newest| !is_there(newest)).map(|newest| {
            let finished = newest.finished.map(|finished| finished.to_string());
            let device = newest.devices.first().cloned().unwrap_or_default();
            table::newest_backup_gone(database, finished.unwrap_or_default(), device)
        });
        match there.is_empty() {
            true => Err(table::drill_without_backups(database).into()),
            false => Ok(KnownMedia {
                media: there.into_iter().cloned().collect(),
                lacking,
            }),
        }
    }

    /// Whether a medium of the history is there. What cannot be asked for, whoever reads it reports.
    fn has_medium(&self, name: &str) -> Result<bool, Failure> {
        let is_file = Path::new(name).is_absolute();
        if is_file && DeviceAddress::disk(name).length().is_none() {
            return Ok(false);
        }
        let named = [DeviceName::physical(name)];
        let tags = self.instance.tags();
        let addresses = device::addresses(self, &named, &tags, &device::Store::default())?;
        let mut addresses = addresses.iter();
        Ok(addresses.any(|device| device.has_content().unwrap_or(true)))
    }
}
