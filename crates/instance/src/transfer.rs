//! SQLite files into the page engine and out of it, at the speed of the disk.

use std::path::{Path, PathBuf};

use windlass_base::message::table;
use windlass_catalog::Origin;
use windlass_engine::CreateDatabase;

use crate::instance::is_system_database;
use crate::message_of::{catalog_message, os_error};
use crate::names::absolute;
use crate::statement::engine;
use crate::{Failure, Session};

impl Session {
    /// Makes the engine database `name` from a SQLite file, which may be in use, and registers it.
    /// Returns the octets of its data file, `data` or one in the instance's directory.
    ///
    /// # Errors
    /// When the name or a file is taken, the source is no SQLite database, or the disk refuses.
    pub fn import(
        &mut self,
        source: &Path,
        name: &str,
        data: Option<&Path>,
    ) -> Result<u64, Failure> {
        let known = self.instance.database(name);
        let known = known.map_err(|error| catalog_message(&error))?;
        if name.is_empty() || is_system_database(name) || known.is_some() {
            return Err(table::database_exists(name).into());
        }
        let source = full(source)?;
        self.queries.release(&source);
        let data = match data {
            Some(data) => full(data)?,
            None => engine::default_place(self, &format!("{name}.mdf"))?,
        };
        let log = windlass_vfs::log_path(&data);
        let request = CreateDatabase::new(name, &data, &log);
        let imported = self.instance.engines.import(&source, &request)?;
        let registered = engine::register(self, name, &imported.database, Origin::Restored);
        if registered.is_err() {
            self.instance.engines.close(name)?;
            for path in [&log, &data] {
                // The registration's failure is the one that counts.
                let _left = std::fs::remove_file(path);
            }
        }
        registered.map(|()| imported.octets)
    }

    /// Writes the last committed state of an engine database to a new SQLite file; returns its octets.
    ///
    /// # Errors
    /// When the database is none of the page engine, the file exists, or the disk refuses.
    pub fn export(&mut self, name: &str, target: &Path) -> Result<u64, Failure> {
        let target = full(target)?;
        let database = engine::engine_database(self, name)?;
        windlass_vfs::transfer::export(&database, &target)
            .map_err(|error| table::engine_refused(error).into())
    }
}

fn full(path: &Path) -> Result<PathBuf, Failure> {
    absolute(path).map_err(|error| table::cannot_open_file(path.display(), os_error(&error)).into())
}
