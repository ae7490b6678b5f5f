//! Reaches devices by the names that the history has of them, and folders that a command names.
//!
//! The keys of all credentials are opened once, so that a name is looked up without the instance.

use windlass_base::message::table;
use windlass_catalog::CredentialRecord;
use windlass_device::{Access, DeviceAddress, DeviceFolder, ObjectSettings, ObjectUrl};

use super::credential::longest;
use super::{check_url, is_url, shown};
use crate::{Failure, Instance, Session};

/// The keys of the stores that an instance knows.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    records: Vec<CredentialRecord>,
    /// By record; `None` if the secret cannot be opened.
    keys: Vec<Option<Access>>,
}

impl Reach {
    /// With the credentials of an instance; those that cannot be opened open nothing.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn of(instance: &Instance) -> Result<Self, windlass_catalog::Error> {
        let records = instance.catalog().credentials()?;
        let key = |record: &CredentialRecord| {
            let secret = instance.open_secret(record).ok()?;
            Access::with_key(&secret).ok()
        };
        Ok(Self {
            keys: records.iter().map(key).collect(),
            records,
        })
    }

    /// The device that the history has under a name.
    pub fn device(&self, name: &str) -> DeviceAddress {
        match ObjectUrl::parse_any(name) {
            Ok(url) => {
                DeviceAddress::object(name, url, self.access(name), ObjectSettings::default())
            }
            Err(_) => DeviceAddress::disk(name),
        }
    }

    /// The folder of files, or of objects if it is a URL.
    ///
    /// # Errors
    /// 3078 for a URL that names none.
    pub fn folder(&self, written: &str) -> Result<DeviceFolder, Failure> {
        if !is_url(written) {
            return Ok(DeviceFolder::disk(written));
        }
        let url = ObjectUrl::parse_any(written.trim())
            .map_err(|error| table::url_names_no_object(shown(written), error))?;
        let access = self.access(written.trim());
        Ok(DeviceFolder::objects(
            url,
            access,
            ObjectSettings::default(),
        ))
    }

    fn access(&self, url: &str) -> Option<Access> {
        let Some(found) = longest(&self.records, url) else {
            return Access::from_environment();
        };
        let index = self
            .records
            .iter()
            .position(|record| record.name == found.name)?;
        self.keys.get(index)?.clone()
    }
}

impl Session {
    /// The files and objects that a command names.
    ///
    /// # Errors
    /// For a URL that names no object, or none that the session may name.
    pub fn devices(&self, written: &[String]) -> Result<Vec<DeviceAddress>, Failure> {
        let reach = Reach::of(&self.instance)?;
        let device = |written: &String| {
            if is_url(written) {
                check_url(self, written)?;
            }
            Ok(reach.device(written.trim()))
        };
        written.iter().map(device).collect()
    }

    /// The folders that a command names: of files, or of objects.
    ///
    /// # Errors
    /// For a URL that names none, or none that the session may name.
    pub fn folders(&self, written: &[String]) -> Result<Vec<DeviceFolder>, Failure> {
        let reach = Reach::of(&self.instance)?;
        let folder = |written: &String| {
            if is_url(written) {
                check_url(self, written)?;
            }
            reach.folder(written)
        };
        written.iter().map(folder).collect()
    }
}
