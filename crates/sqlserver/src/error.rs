//! What can go wrong with a backup on disk.

use std::io;
use std::path::PathBuf;

use windlass_bak::Finding;
use windlass_base::Guid;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be opened, read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A backup cannot be read.
    #[error("{}: {source}", path.display())]
    Backup {
        /// The file.
        path: PathBuf,
        /// Why.
        source: windlass_bak::Error,
    },
    /// A file is there already.
    #[error("{} exists and is not overwritten", .0.display())]
    Exists(PathBuf),
    /// Neither a folder nor a move says where a file goes.
    #[error("no target is given for the file '{0}': name a folder, or move it")]
    NoDestination(String),
    /// Two files go to one place.
    #[error("two files of the database have the same target {}", .0.display())]
    SameDestination(PathBuf),
    /// A move of a file that the backup does not have.
    #[error("the backup has no file '{0}'")]
    NoSuchFile(String),
    /// A table that the database does not have.
    #[error("the database has no table '{0}'")]
    NoSuchTable(String),
    /// A set that cannot be restored in its place.
    #[error("{}: {reason}", path.display())]
    Sequence {
        /// The first file of the set.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A differential of another full backup.
    #[error(
        "{}: the differential needs backup set {expected}, but the one before it is {found}",
        path.display()
    )]
    OtherBase {
        /// The first file of the set.
        path: PathBuf,
        /// The set that it stands on.
        expected: Guid,
        /// The set that was restored.
        found: Guid,
    },
    /// The backup is damaged, and nobody said to go on.
    #[error("{}: damaged in {count} places. The first: {first}", path.display())]
    Damaged {
        /// The first file of the set.
        path: PathBuf,
        /// How many.
        count: usize,
        /// The first.
        first: Finding,
    },
    /// The database that is written to.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

impl Error {
    pub(crate) fn file(path: &std::path::Path, source: io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn backup(path: &std::path::Path, source: windlass_bak::Error) -> Self {
        Self::Backup {
            path: path.to_owned(),
            source,
        }
    }
}
