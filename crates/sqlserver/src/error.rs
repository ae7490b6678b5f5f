//! Errors of reading backups on disk and writing their content.

use std::io;
use std::path::{Path, PathBuf};

use windlass_bak::Finding;
use windlass_base::Guid;
use windlass_device::DeviceAddress;

use crate::input::path_of;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be opened, read or written.
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// A backup cannot be read.
    #[error("{}: {source}", path.display())]
    Backup {
        path: PathBuf,
        source: windlass_bak::Error,
    },
    /// A file of the database could not be created, written or renamed. The backup is not at fault.
    #[error("{}: {source}", path.display())]
    Target { path: PathBuf, source: io::Error },
    /// The file exists already.
    #[error("{} exists and is not overwritten", .0.display())]
    Exists(PathBuf),
    /// No folder and no move determines the path of this file.
    #[error(
        "no target is given for the file '{0}': name it with MOVE (on the command line --move \
         LOGICAL=FILE, or --to FOLDER for all files)"
    )]
    NoDestination(String),
    /// Two files have the same destination.
    #[error("two files of the database have the same target {}", .0.display())]
    SameDestination(PathBuf),
    /// A move names a file that is not in the backup.
    #[error("the backup has no file '{0}'")]
    NoSuchFile(String),
    /// The table does not exist in the database.
    #[error("the database has no table '{0}'")]
    NoSuchTable(String),
    /// The table is not known, and pages are damaged that may have named it.
    #[error(
        "no table '{name}' is found, and the system tables are damaged ({damage}): without --table, extract writes all \
         that can be read; tables whose names are lost are called object_NUMBER"
    )]
    LostTable {
        name: String,
        /// The first problem.
        damage: String,
    },
    /// A set that cannot be restored at this point of the sequence.
    #[error("{}: {reason}", path.display())]
    Sequence {
        /// The first file of the set.
        path: PathBuf,
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
        /// The set it is based on.
        expected: Guid,
        /// The set that was restored.
        found: Guid,
    },
    /// Not all stripes of the backup were named.
    #[error("{}: {}", path.display(), families_missing(missing, *count))]
    FamiliesMissing {
        /// The first file of the set.
        path: PathBuf,
        missing: Vec<u16>,
        count: u16,
    },
    /// The backup is damaged, and continuing was not requested.
    #[error("{}: damaged in {count} places. The first: {first}", path.display())]
    Damaged {
        /// The first file of the set.
        path: PathBuf,
        count: usize,
        first: Finding,
    },
    /// A value that its column in the output cannot hold exactly.
    #[error("column '{column}' cannot hold the value {value}: choose another format")]
    Inexact { column: String, value: String },
    /// The SQLite file cannot be written.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

impl Error {
    pub(crate) fn device(device: &DeviceAddress, source: io::Error) -> Self {
        Self::file(&path_of(device), source)
    }

    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn target(path: &Path, source: io::Error) -> Self {
        Self::Target {
            path: path.to_owned(),
            source,
        }
    }

    /// Of a database that may be in several backups.
    pub(crate) fn database(source: windlass_bak::Error) -> Self {
        Self::Backup {
            path: PathBuf::from("the database"),
            source,
        }
    }

    /// What a set with findings is refused for: stripes that are missing are no damage.
    pub(crate) fn of_findings(path: PathBuf, findings: &[Finding], count: usize) -> Option<Self> {
        let first = findings.first()?;
        let missing = Finding::missing_families(findings).filter(|_| findings.len() == count);
        Some(match missing {
            Some((missing, count)) => Self::FamiliesMissing {
                path,
                missing,
                count,
            },
            None => Self::Damaged {
                path,
                count,
                first: first.clone(),
            },
        })
    }

    pub(crate) fn backup(device: &DeviceAddress, source: windlass_bak::Error) -> Self {
        Self::Backup {
            path: path_of(device),
            source,
        }
    }
}

/// Which media families (stripes) are missing, and what to do.
pub fn families_missing(missing: &[u16], count: u16) -> String {
    let numbers: Vec<String> = missing.iter().map(u16::to_string).collect();
    let (family, is, file) = match missing.len() {
        1 => ("family", "is", "its file"),
        _ => ("families", "are", "their files"),
    };
    let numbers = numbers.join(", ");
    format!("media {family} {numbers} of {count} {is} missing; name {file} too")
}
