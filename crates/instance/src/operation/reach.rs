//! Reaches devices by the names that the history has of them, and folders that a command names.
//!
//! The keys of all credentials are opened once, so that a name is looked up without the instance.

use std::fmt;
use std::path::Path;

use windlass_base::message::table;
use windlass_catalog::CredentialRecord;
use windlass_device::{Access, DeviceAddress, DeviceFolder, ObjectSettings, ObjectUrl};
use zeroize::Zeroizing;

use super::credential::{longest, opened};
use super::{check_url, is_url, shown};
use crate::{Drives, Failure, Instance, Session};

/// The keys of the stores that an instance knows, and its drives.
#[derive(Clone, Default)]
pub struct Reach {
    drives: Drives,
    records: Vec<CredentialRecord>,
    /// By record; `None` if the secret cannot be opened.
    secrets: Vec<Option<Zeroizing<String>>>,
}

/// Never shows a secret.
impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reach")
            .field("credentials", &self.records.len())
            .finish_non_exhaustive()
    }
}

impl Reach {
    /// With the drives and credentials of an instance; those that cannot be opened open nothing.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn of(instance: &Instance) -> Result<Self, windlass_catalog::Error> {
        let records = instance.catalog().credentials()?;
        let secret = |record: &CredentialRecord| instance.open_secret(record).ok();
        Ok(Self {
            drives: instance.drives().clone(),
            secrets: records.iter().map(secret).collect(),
            records,
        })
    }

    /// The device that the history has under a name.
    pub fn device(&self, name: &str) -> DeviceAddress {
        match ObjectUrl::parse_any(name) {
            Ok(url) => {
                let access = self.access(name, &url);
                DeviceAddress::object(name, url, access, ObjectSettings::default())
            }
            Err(_) => DeviceAddress::disk(name),
        }
    }

    /// The folder of files, or of objects if it is a URL.
    ///
    /// # Errors
    /// 3078 for a URL that names none; [`NameError`](crate::NameError) for a drive that is not mapped.
    pub fn folder(&self, written: &str) -> Result<DeviceFolder, Failure> {
        if !is_url(written) {
            let folder = self.drives.file(Path::new(written))?;
            return Ok(DeviceFolder::disk(folder));
        }
        let url = ObjectUrl::parse_any(written.trim())
            .map_err(|error| table::url_names_no_object(shown(written), error))?;
        let access = self.access(written.trim(), &url);
        Ok(DeviceFolder::objects(
            url,
            access,
            ObjectSettings::default(),
        ))
    }

    fn access(&self, written: &str, url: &ObjectUrl) -> Option<Access> {
        let Some(found) = longest(&self.records, written) else {
            return Access::from_environment(url.kind());
        };
        let index = self
            .records
            .iter()
            .position(|record| record.name == found.name)?;
        let secret = self.secrets.get(index)?.as_ref()?;
        opened(found, secret, url).ok()
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
