//! Engine databases that another owner in this process has open: a program with the loadable extension.
//!
//! They can be backed up. Everything else would come between the owner and its files, and is refused.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windlass_base::message::table;
use windlass_catalog::Error as CatalogError;
use windlass_engine::Database;

use super::EngineDatabases;
use crate::{Failure, Instance, absolute};

/// The lent databases, by name in lower case.
#[derive(Debug, Default)]
pub(super) struct Lent(Mutex<HashMap<String, Arc<Database>>>);

impl Lent {
    fn map(&self) -> MutexGuard<'_, HashMap<String, Arc<Database>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EngineDatabases {
    /// The lent database of that name.
    pub(super) fn lent(&self, name: &str) -> Option<Arc<Database>> {
        self.shared
            .lent
            .map()
            .get(&name.to_lowercase())
            .map(Arc::clone)
    }

    pub(crate) fn is_lent(&self, name: &str) -> bool {
        self.lent(name).is_some()
    }

    /// Refuses what only the owner of a database may do.
    pub(super) fn refuse_lent(&self, name: &str) -> Result<(), Failure> {
        match self.lent(name) {
            Some(_) => Err(table::database_lent(name).into()),
            None => Ok(()),
        }
    }
}

impl Instance {
    /// Makes a database that this process has open elsewhere known to the instance, so that it can be backed up, for
    /// as long as the value lives. Without an entry for its file it is called `name`; returns what it is called.
    ///
    /// # Errors
    /// Those of the catalog, and if the name is taken.
    pub fn lend(
        &mut self,
        name: &str,
        path: &Path,
        database: &Arc<Database>,
    ) -> Result<String, CatalogError> {
        let path = absolute(path).map_err(|source| CatalogError::NoFile {
            path: path.to_owned(),
            source,
        })?;
        let name = match self.database_at(&path)? {
            Some(known) => known.name,
            None => {
                self.pass_as(name, &path)?;
                name.to_owned()
            }
        };
        let mut lent = self.engines.shared.lent.map();
        lent.insert(name.to_lowercase(), Arc::clone(database));
        drop(lent);
        Ok(name)
    }
}
