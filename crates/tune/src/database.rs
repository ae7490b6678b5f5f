//! The database that is measured, and what is done about the page cache.

use std::fmt;
use std::path::{Path, PathBuf};

use windlass_io::{Access, DirectFile};
use windlass_source::sqlite::{SnapshotOptions, SqliteSnapshot};
use windlass_source::{Snapshot as _, SourceFile};

use crate::Error;

/// A database to be measured.
#[derive(Debug, Clone)]
pub struct Database {
    name: String,
    path: PathBuf,
    bytes: u64,
}

impl Database {
    /// The `SQLite` file at `path`, under a name.
    ///
    /// # Errors
    /// When it cannot be read, or holds nothing.
    pub fn open(name: impl Into<String>, path: &Path) -> Result<Self, Error> {
        let database = Self {
            name: name.into(),
            path: path.to_owned(),
            bytes: 0,
        };
        let snapshot = database.snapshot()?;
        let bytes: u64 = snapshot
            .files()
            .iter()
            .flat_map(|file: &SourceFile| snapshot.ranges(file.id))
            .map(|range| range.end - range.start)
            .sum();
        if bytes == 0 {
            let path = path.to_owned();
            return Err(Error::EmptyDatabase { path });
        }
        Ok(Self { bytes, ..database })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Octets that a full backup reads.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The database as it is now.
    pub(crate) fn snapshot(&self) -> Result<SqliteSnapshot, Error> {
        let options = SnapshotOptions {
            database_name: Some(self.name.clone()),
            ..SnapshotOptions::default()
        };
        Ok(SqliteSnapshot::open(&self.path, &options)?)
    }
}

/// What happens to the page cache before each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachePolicy {
    /// The kernel is asked to forget the files that the run will read.
    Drop,
    /// It stays as it is.
    Keep,
}

impl CachePolicy {
    /// Prepares a run that reads `path`.
    ///
    /// To be called while this process has no connection to the database: closing any descriptor of
    /// a file drops the locks that the process has on it.
    pub(crate) fn prepare(self, path: &Path) -> Result<(), Error> {
        if self == Self::Keep {
            return Ok(());
        }
        let file = DirectFile::open(path, Access::Read).map_err(|source| Error::Folder {
            action: "open",
            path: path.to_owned(),
            source,
        })?;
        // An empty range stands for the whole file.
        file.drop_from_cache(0, 0);
        Ok(())
    }
}

impl fmt::Display for CachePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drop => "dropped before each run",
            Self::Keep => "kept as it is",
        })
    }
}
