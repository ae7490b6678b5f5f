//! What the sessions of a process have in common of an instance.

use std::path::PathBuf;

use windlass_catalog::{Catalog, Drive, Error as CatalogError};
use windlass_crypt::VaultKey;

use super::{Instance, RestorePolicy};
use crate::Identity;
use crate::engine::EngineDatabases;
use crate::names::Drives;
use crate::sessions::Sessions;

/// What the sessions of a process share of an instance. Each opens its own connection to the catalog.
#[derive(Debug, Clone)]
pub struct InstanceShare {
    folder: Option<PathBuf>,
    identity: Identity,
    own_drives: Vec<Drive>,
    policy: RestorePolicy,
    service_key: Option<VaultKey>,
    engines: EngineDatabases,
    sessions: Sessions,
}

impl InstanceShare {
    /// The same instance for another session of this process, with the drives and options as they are now. An
    /// instance without a folder has no other session.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn open(&self) -> Result<Instance, CatalogError> {
        let catalog = match &self.folder {
            Some(folder) => Catalog::open(folder)?,
            None => Catalog::in_memory()?,
        };
        Ok(Instance {
            drives: drives(&catalog, &self.own_drives)?,
            catalog,
            folder: self.folder.clone(),
            identity: self.identity.clone(),
            passing: Vec::new(),
            own_drives: self.own_drives.clone(),
            policy: self.policy.clone(),
            service_key: self.service_key.clone(),
            engines: self.engines.clone(),
            sessions: self.sessions.clone(),
        })
    }
}

/// The catalog's drives, and those of a command, which replace them.
pub(super) fn drives(catalog: &Catalog, own: &[Drive]) -> Result<Drives, CatalogError> {
    let mut drives = Drives::default();
    for drive in catalog.drives()?.into_iter().chain(own.iter().cloned()) {
        drives.set(drive);
    }
    Ok(drives)
}

impl Instance {
    /// What other sessions of this process share: above all the open engine databases.
    pub fn share(&self) -> InstanceShare {
        InstanceShare {
            folder: self.folder.clone(),
            identity: self.identity.clone(),
            own_drives: self.own_drives.clone(),
            policy: self.policy.clone(),
            service_key: self.service_key.clone(),
            engines: self.engines.clone(),
            sessions: self.sessions.clone(),
        }
    }
}
