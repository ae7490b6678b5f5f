//! A database of whatever kind, from which snapshots are taken.
//!
//! Whoever wants to read one (BACKUP, the measurements) asks here and sees no difference between kinds
//! but in what the database itself knows: its differential base, the steps of its own.

use std::path::PathBuf;
use std::sync::Arc;

use windlass_base::{Guid, Lsn};
use windlass_engine::{BackupMode, Database};

use crate::engine::EngineSnapshot;
use crate::sqlite::{SnapshotOptions, SqliteSnapshot};
use crate::{Error, Snapshot};

/// A database that snapshots can be taken of.
#[derive(Debug, Clone)]
pub enum SourceDatabase {
    /// A `SQLite` file, and how it is pinned.
    Sqlite {
        /// The file.
        path: PathBuf,
        /// How it is pinned.
        options: SnapshotOptions,
    },
    /// A database of the page engine. It is open, and stays so for as long as whoever opened it says.
    Engine(Arc<Database>),
}

impl SourceDatabase {
    /// The database as it is now. Of a `SQLite` file every kind of backup reads the same.
    ///
    /// # Errors
    /// Those of the database.
    pub fn snapshot(&self, kind: BackupMode) -> Result<Box<dyn Snapshot>, Error> {
        Ok(match self {
            Self::Sqlite { path, options } => Box::new(SqliteSnapshot::open(path, options)?),
            Self::Engine(database) => Box::new(EngineSnapshot::open(database, kind)?),
        })
    }

    /// The differential base in force, a set and its checkpoint; nil before the first full backup.
    /// `None` where the database itself does not know.
    pub fn differential_base(&self) -> Option<(Guid, Lsn)> {
        match self {
            Self::Sqlite { .. } => None,
            Self::Engine(database) => Some(database.differential_base()),
        }
    }
}
