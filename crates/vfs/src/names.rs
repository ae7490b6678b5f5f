//! Databases under names: `file:x?vfs=...` opens the database that was added as `x`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windlass_engine::Database;

use crate::context::{Databases, IfMissing, Parameters};
use crate::error::{Result, VfsError};

/// Engine databases by case-insensitive name. Their owner opens and closes them.
#[derive(Debug, Default, Clone)]
pub struct NamedDatabases {
    databases: Arc<Mutex<HashMap<String, Arc<Database>>>>,
}

impl NamedDatabases {
    fn map(&self) -> MutexGuard<'_, HashMap<String, Arc<Database>>> {
        self.databases
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a database available to SQLite under its name in its instance.
    ///
    /// # Errors
    /// If the name is taken.
    pub fn add(&self, database: Arc<Database>) -> Result<()> {
        let name = database.name().to_owned();
        let mut map = self.map();
        if map.contains_key(&name.to_lowercase()) {
            return Err(VfsError::NameTaken { name });
        }
        map.insert(name.to_lowercase(), database);
        Ok(())
    }

    /// Removes the database. Connections that have it open keep it.
    pub fn remove(&self, name: &str) -> Option<Arc<Database>> {
        self.map().remove(&name.to_lowercase())
    }
}

impl Databases for NamedDatabases {
    fn full_name(&self, name: &str) -> Result<String> {
        Ok(name.to_lowercase())
    }

    fn exists(&self, full_name: &str) -> bool {
        self.map().contains_key(full_name)
    }

    fn open(
        &self,
        full_name: &str,
        _missing: IfMissing,
        parameters: &Parameters,
    ) -> Result<Arc<Database>> {
        if *parameters != Parameters::default() {
            return Err(VfsError::Parameter {
                parameter: "pool, name, data".to_owned(),
                reason: "databases under names are made by their instance".to_owned(),
            });
        }
        let found = self.map().get(full_name).map(Arc::clone);
        found.ok_or_else(|| VfsError::UnknownDatabase {
            name: full_name.to_owned(),
        })
    }

    fn release(&self, _database: Arc<Database>) -> Result<()> {
        Ok(())
    }
}
