//! Removes the files of a database.
//!
//! The log is removed first: without it no engine opens the other files, so no crash leaves an
//! incomplete database that can be opened. The next attempt removes what a crash left: any of the files
//! may be missing.
//!
//! A file of one of these names that was not made for the database stays: see [`ownership`].

use std::path::{Path, PathBuf};

use windlass_base::Guid;
use windlass_engine::LogIdentity;
use windlass_engine::storage::RealFileSystem;

use super::ending::sync_folder;
use super::pending::{forget, remove_all};
use super::restore::seize;
use super::{engine_error, io_error};
use crate::ownership::{self, Owner};
use crate::{Error, Left};

/// The database that is removed.
#[derive(Debug, Clone, Copy)]
pub struct Removal<'a> {
    pub log: &'a Path,
    pub data: &'a [PathBuf],
    /// The identity that the files made for it carry.
    pub made_for: Guid,
    /// The identity in its log, if known.
    pub guid: Option<Guid>,
}

/// What a removal did.
#[derive(Debug, Default)]
pub struct Removed {
    pub count: usize,
    pub left: Vec<Left>,
}

impl Removal<'_> {
    /// Removes the log and the data files of a database that nobody has open, and what an unfinished
    /// restore has left next to them. Files that were not made for the database are kept.
    ///
    /// # Errors
    /// [`Error::InUse`], [`Error::RestoreRunning`], those of the operating system.
    pub fn run(&self) -> Result<Removed, Error> {
        // Whatever names its files have.
        windlass_engine::complete_creation(self.log).map_err(engine_error)?;
        let mut removed = Removed::default();
        let mut seized = None;
        let mut own = Vec::new();
        // The database that the log belongs to, if it is another.
        let mut other = None;
        match owner(self.log, self.made_for)? {
            Owner::Other { why } => removed.leave(self.log, why),
            Owner::Nobody => removed.left.extend(forget(self.log, self.made_for)?),
            Owner::Own | Owner::Untold => {
                // Nobody opens the database while its log is locked.
                seized = seize(self.log)?;
                other = self.other_database()?;
                match &other {
                    Some(other) => {
                        removed.leave(
                            self.log,
                            format!("it is the log of database '{}'", other.name),
                        );
                    }
                    None => {
                        removed.left.extend(forget(self.log, self.made_for)?);
                        own.push(self.log.to_owned());
                    }
                }
            }
        }
        for path in &self.data() {
            let is_named = |other: &LogIdentity| other.data_paths.contains(path);
            match (owner(path, self.made_for)?, &other) {
                (Owner::Nobody, _) => {}
                (Owner::Other { why }, _) => removed.leave(path, why),
                (Owner::Untold, Some(other)) if is_named(other) => {
                    removed.leave(path, format!("it belongs to database '{}'", other.name));
                }
                (Owner::Own | Owner::Untold, _) => own.push(path.clone()),
            }
        }
        for path in own {
            remove_all(std::slice::from_ref(&path))?;
            sync_folder(&path)?;
            removed.count += 1;
        }
        drop(seized);
        Ok(removed)
    }

    /// The data files that are known, and those that only the log lists: a process may have been killed after
    /// it added them.
    fn data(&self) -> Vec<PathBuf> {
        let mut data = self.data.to_vec();
        let found = LogIdentity::of(&RealFileSystem, self.log).ok().flatten();
        let found = found.filter(|found| Some(found.guid) == self.guid);
        let listed = found.map(|found| found.data_paths).unwrap_or_default();
        data.extend(listed.into_iter().filter(|path| !self.data.contains(path)));
        data
    }

    /// The other database whose log this is.
    fn other_database(&self) -> Result<Option<LogIdentity>, Error> {
        let Some(guid) = self.guid.filter(|_| windlass_io::own::is_there(self.log)) else {
            return Ok(None);
        };
        let found = LogIdentity::of(&RealFileSystem, self.log).map_err(engine_error)?;
        Ok(found.filter(|found| found.guid != guid))
    }
}

impl Removed {
    fn leave(&mut self, path: &Path, why: String) {
        let path = path.to_owned();
        self.left.push(Left { path, why });
    }
}

fn owner(path: &Path, made_for: Guid) -> Result<Owner, Error> {
    ownership::owner_of_remains(path, made_for).map_err(|error| io_error("examine", path, error))
}
