//! The measured database, and the treatment of the page cache.

use std::fmt;
use std::path::Path;

use windlass_engine::BackupMode;
use windlass_io::{Access, DirectFile};
use windlass_source::{FileKind, Snapshot, SourceDatabase, SourceFile};

use crate::Error;

#[derive(Debug, Clone)]
pub struct Database {
    source: SourceDatabase,
    name: String,
    files: Vec<SourceFile>,
    bytes: u64,
}

impl Database {
    /// A database of either kind.
    ///
    /// # Errors
    /// If it cannot be read, or has no pages.
    pub fn open(source: SourceDatabase) -> Result<Self, Error> {
        let snapshot = copy_only(&source)?;
        let database = Self {
            name: snapshot.identity().name.clone(),
            files: snapshot.files().to_vec(),
            bytes: bytes_of(&*snapshot),
            source,
        };
        if database.bytes == 0 {
            let path = database.path().to_owned();
            return Err(Error::EmptyDatabase { path });
        }
        Ok(database)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its first data file.
    pub fn path(&self) -> &Path {
        match (&self.source, self.files.first()) {
            (SourceDatabase::Sqlite { path, .. }, _) => path,
            (SourceDatabase::Engine { .. }, file) => file.map_or(Path::new(""), |file| &file.path),
        }
    }

    /// Bytes that a full backup reads.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Disk space for restoring it: data files have holes for what is not restored, but a log is
    /// written completely.
    pub(crate) fn restored_bytes(&self) -> u64 {
        let log_bytes: u64 = self.logs().map(|file| file.size_bytes).sum();
        self.bytes + log_bytes
    }

    fn logs(&self) -> impl Iterator<Item = &SourceFile> {
        let files = self.files.iter();
        files.filter(|file| file.kind == FileKind::Log)
    }

    /// Its number of files.
    pub(crate) fn files_in_words(&self) -> String {
        let logs = self.logs().count();
        let data = self.files.len() - logs;
        let plural = if data == 1 { "" } else { "s" };
        let log = if logs > 0 { ", log" } else { "" };
        format!("{data} data file{plural}{log}")
    }

    /// What manages it.
    pub(crate) fn source(&self) -> &SourceDatabase {
        &self.source
    }

    /// All its files.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }

    /// A snapshot of the database now, which will never be a differential base.
    pub(crate) fn snapshot(&self) -> Result<Box<dyn Snapshot>, Error> {
        copy_only(&self.source)
    }
}

fn copy_only(source: &SourceDatabase) -> Result<Box<dyn Snapshot>, Error> {
    Ok(source.open(BackupMode::CopyOnly)?.snapshot)
}

/// Bytes of the data files to read.
pub(crate) fn bytes_of(snapshot: &dyn Snapshot) -> u64 {
    let files = snapshot.files().iter();
    let ranges = files.flat_map(|file| snapshot.ranges(file.id));
    ranges.map(|range| range.end - range.start).sum()
}

/// Treatment of the page cache before each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachePolicy {
    /// Drop the files that the run will read.
    Drop,
    /// Leave it unchanged.
    Keep,
}

impl CachePolicy {
    /// Prepares a run that reads `paths`.
    ///
    /// Call it while this process has no `SQLite` connection to them: closing any descriptor of a
    /// file drops the locks of such connections. The page engine's locks stay.
    pub(crate) fn prepare<'a>(
        self,
        mut paths: impl Iterator<Item = &'a Path>,
    ) -> Result<(), Error> {
        if self == Self::Keep {
            return Ok(());
        }
        paths.try_for_each(|path| {
            let file = DirectFile::open(path, Access::Read).map_err(|source| Error::Folder {
                action: "open",
                path: path.to_owned(),
                source,
            })?;
            // An empty range means the whole file.
            file.drop_from_cache(0, 0);
            Ok(())
        })
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
