//! A database of either kind, from which snapshots are taken.
//!
//! Callers such as BACKUP and the measurements see no difference between the kinds, except for what
//! only the database itself knows, such as its differential base.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use windlass_base::{Guid, Lsn};
use windlass_engine::{BackupMode, Database, PhaseReport};

use crate::engine::{self, EngineLogSnapshot, EngineSnapshot};
use crate::sqlite::{SnapshotOptions, SpooledLog, SqliteSnapshot};
use crate::{Content, Error, Snapshot};

/// A database of which snapshots can be taken.
#[derive(Debug, Clone)]
pub enum SourceDatabase {
    /// A `SQLite` file and the options for pinning it.
    Sqlite {
        path: PathBuf,
        options: SnapshotOptions,
    },
    /// A database of the page engine, open for as long as the caller keeps it open.
    Engine {
        database: Arc<Database>,
        /// What it is called in its backups.
        name: String,
    },
}

/// A snapshot, and what only its kind of database provides.
#[derive(Debug)]
pub struct Opened {
    pub snapshot: Box<dyn Snapshot>,
    /// What the content looks like.
    pub content: Content,
    /// Duration and work of the steps of a page engine backup; complete when the backup is.
    pub phases: Arc<Mutex<Vec<PhaseReport>>>,
}

impl SourceDatabase {
    /// Opens a snapshot of the current state. For a `SQLite` file, all kinds of backups read the same; behind a full one
    /// its spool, if it has one, keeps what changes.
    ///
    /// # Errors
    /// Those of the database.
    pub fn open(&self, mode: BackupMode) -> Result<Opened, Error> {
        Ok(match self {
            Self::Sqlite { path, options } => {
                let snapshot = SqliteSnapshot::open(
                    path,
                    &SnapshotOptions {
                        is_new_base: mode == BackupMode::Full,
                        ..options.clone()
                    },
                )?;
                Opened {
                    content: snapshot.content(),
                    phases: Arc::default(),
                    snapshot: Box::new(snapshot),
                }
            }
            Self::Engine { database, name } => {
                let snapshot = EngineSnapshot::open(database, mode)?.named(name);
                Opened {
                    content: engine::content(database),
                    phases: snapshot.phases(),
                    snapshot: Box::new(snapshot),
                }
            }
        })
    }

    /// Opens the log of a page engine database since its last log backup. If it `truncates`, the end of the backup
    /// frees that log.
    ///
    /// # Errors
    /// Those of the database; [`Error::NoLog`] for a `SQLite` file.
    pub fn open_log(&self, truncates: bool) -> Result<Opened, Error> {
        match self {
            Self::Sqlite { path, .. } => Err(Error::NoLog { path: path.clone() }),
            Self::Engine { database, name } => Ok(Opened {
                content: engine::content(database),
                phases: Arc::default(),
                snapshot: Box::new(EngineLogSnapshot::open(database, truncates)?.named(name)),
            }),
        }
    }

    /// The log that is kept of a `SQLite` file.
    pub fn spooled_log(&self) -> Option<SpooledLog> {
        match self {
            Self::Sqlite { path, options } => options.spool.clone().map(|spool| SpooledLog {
                path: path.clone(),
                spool,
            }),
            Self::Engine { .. } => None,
        }
    }

    /// The current differential base, a set and its checkpoint; nil before the first full backup.
    /// `None` if the database itself does not know.
    pub fn differential_base(&self) -> Option<(Guid, Lsn)> {
        match self {
            Self::Sqlite { .. } => None,
            Self::Engine { database, .. } => {
                let base = database.differential_base();
                Some((base.set, base.first_lsn))
            }
        }
    }
}
