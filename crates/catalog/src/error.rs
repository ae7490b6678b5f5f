//! Why the catalog could not be read or written.

use std::path::PathBuf;

/// An error of the catalog.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory of the instance could not be made or found.
    #[error("the directory {} cannot be used: {source}", path.display())]
    Folder {
        /// The directory.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// The catalog's file is none, or cannot be opened.
    #[error("the catalog {} cannot be opened: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// The catalog was written by another version of the program.
    #[error(
        "the catalog {} has version {found}; this program supports version {supported}",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The version known here.
        supported: u32,
    },
    /// A name is taken by another database.
    #[error("a database named '{name}' is already registered")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// A file belongs to another registered database.
    #[error("the file {} belongs to the database '{database}'", path.display())]
    PathTaken {
        /// The file.
        path: PathBuf,
        /// The database it belongs to.
        database: String,
    },
    /// A stored value cannot be read.
    #[error("the catalog contains '{found}' where {expected} is expected")]
    Stored {
        /// What stands there.
        found: String,
        /// What should.
        expected: &'static str,
    },
    /// A statement on the catalog failed.
    #[error("the catalog failed while {doing}: {source}")]
    Sqlite {
        /// What was being done.
        doing: &'static str,
        /// What SQLite says.
        source: rusqlite::Error,
    },
}

/// Turns an error of SQLite into ours, saying what was being done.
pub(crate) trait Doing<T> {
    /// Adds what was being done.
    fn doing(self, doing: &'static str) -> Result<T, Error>;
}

impl<T> Doing<T> for Result<T, rusqlite::Error> {
    fn doing(self, doing: &'static str) -> Result<T, Error> {
        self.map_err(|source| Error::Sqlite { doing, source })
    }
}
