//! Errors of reading and writing the catalog.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The instance directory could not be created or opened.
    #[error("the directory {} cannot be used: {source}", path.display())]
    Folder {
        path: PathBuf,
        source: std::io::Error,
    },
    /// A path does not name a file that could be a database.
    #[error("'{}': {source}", path.display())]
    NoFile {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The file is not a catalog, or cannot be opened.
    #[error("the catalog {} cannot be opened: {source}", path.display())]
    Open {
        path: PathBuf,
        source: rusqlite::Error,
    },
    /// The file has tables, but not those of a catalog.
    #[error(
        "the file {} is a database of another program and no catalog; move it away, or name another directory",
        path.display()
    )]
    Foreign { path: PathBuf },
    /// The catalog was written by another version of the program.
    #[error(
        "the catalog {} has version {found}; this program supports version {supported}",
        path.display()
    )]
    Version {
        path: PathBuf,
        found: u32,
        supported: u32,
    },
    /// Another database has this name.
    #[error("a database named '{name}' is already registered")]
    NameTaken { name: String },
    /// A file belongs to another registered database.
    #[error("the file {} belongs to the database '{database}'", path.display())]
    PathTaken { path: PathBuf, database: String },
    #[error("the catalog contains '{found}' where {expected} is expected")]
    Stored {
        /// The stored value.
        found: String,
        expected: &'static str,
    },
    #[error("the catalog failed while {doing}: {source}")]
    Sqlite {
        /// The action.
        doing: &'static str,
        source: rusqlite::Error,
    },
}

/// Converts an error of SQLite, adding the attempted action.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str) -> Result<T, Error>;
}

impl<T> Doing<T> for Result<T, rusqlite::Error> {
    fn doing(self, doing: &'static str) -> Result<T, Error> {
        self.map_err(|source| Error::Sqlite { doing, source })
    }
}
