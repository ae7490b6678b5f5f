//! What the sessions of a process have in common of an instance.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use windlass_catalog::{Catalog, Drive, Error as CatalogError};
use windlass_crypt::VaultKey;

use super::{Instance, RestorePolicy};
use crate::Identity;
use crate::engine::EngineDatabases;
use crate::names::Drives;
use crate::sessions::Sessions;

/// What the configuration files of this process say, in addition to the catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// They replace the catalog's.
    pub drives: Vec<Drive>,
    pub restores: RestorePolicy,
}

/// The settings of all sessions of a process.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedSettings(Arc<Mutex<Settings>>);

impl SharedSettings {
    pub(super) fn get(&self) -> Settings {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// What the sessions of a process share of an instance. Each opens its own connection to the catalog.
#[derive(Debug, Clone)]
pub struct InstanceShare {
    folder: Option<PathBuf>,
    identity: Identity,
    settings: SharedSettings,
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
            drives: drives(&catalog, &self.settings.get().drives)?,
            catalog,
            folder: self.folder.clone(),
            identity: self.identity.clone(),
            passing: Vec::new(),
            settings: self.settings.clone(),
            service_key: self.service_key.clone(),
            engines: self.engines.clone(),
            sessions: self.sessions.clone(),
        })
    }

    /// Replaces the settings: restrictions on restores from now on in all sessions, drives in those that come.
    pub fn set_settings(&self, settings: Settings) {
        self.settings.change(|held| *held = settings);
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
            settings: self.settings.clone(),
            service_key: self.service_key.clone(),
            engines: self.engines.clone(),
            sessions: self.sessions.clone(),
        }
    }
}
