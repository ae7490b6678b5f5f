//! A database of either kind, from which snapshots are taken.
//!
//! Callers such as BACKUP and the measurements see no difference between the kinds, except for what
//! only the database itself knows, such as its differential base.

use std::path::PathBuf;
use std::sync::Arc;

use windlass_base::{Guid, Lsn};
use windlass_engine::{BackupMode, Database};

use crate::engine::EngineSnapshot;
use crate::sqlite::{SnapshotOptions, SqliteSnapshot};
use crate::{Error, Snapshot};

/// A database of which snapshots can be taken.
#[derive(Debug, Clone)]
pub enum SourceDatabase {
    /// A `SQLite` file and the options for pinning it.
    Sqlite {
        path: PathBuf,
        options: SnapshotOptions,
    },
    /// A database of the page engine, open for as long as the caller keeps it open.
    Engine(Arc<Database>),
}

impl SourceDatabase {
    /// A snapshot of the current state. For a `SQLite` file, all kinds of backups read the same.
    ///
    /// # Errors
    /// Those of the database.
    pub fn snapshot(&self, kind: BackupMode) -> Result<Box<dyn Snapshot>, Error> {
        Ok(match self {
            Self::Sqlite { path, options } => Box::new(SqliteSnapshot::open(path, options)?),
            Self::Engine(database) => Box::new(EngineSnapshot::open(database, kind)?),
        })
    }

    /// The current differential base, a set and its checkpoint; nil before the first full backup.
    /// `None` if the database itself does not know.
    pub fn differential_base(&self) -> Option<(Guid, Lsn)> {
        match self {
            Self::Sqlite { .. } => None,
            Self::Engine(database) => Some(database.differential_base()),
        }
    }
}
