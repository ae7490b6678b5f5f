//! What can go wrong between SQLite and the engine, and which code SQLite gets for it.

use std::ffi::c_int;
use std::path::PathBuf;

use windlass_engine::EngineError;

use crate::abi;

/// Result of the crate's calls.
pub type Result<T> = std::result::Result<T, VfsError>;

/// An error of the VFS or of a transfer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum VfsError {
    /// The engine's own.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Nothing to open under this name.
    #[error("no database '{name}' is open in this instance")]
    UnknownDatabase {
        /// The name asked for.
        name: String,
    },
    /// The name is taken.
    #[error("a database '{name}' is already open in this instance")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// No file there, and SQLite was not asked to create one.
    #[error("there is no database '{}'", path.display())]
    NotFound {
        /// Where.
        path: PathBuf,
    },
    /// A SQLite file that no engine made.
    #[error(
        "'{}' is a SQLite file without the log '{}' of an engine database; import it, or open it \
         without vfs=windlass", path.display(), log.display()
    )]
    NotAnEngineDatabase {
        /// The file.
        path: PathBuf,
        /// Where its log was looked for.
        log: PathBuf,
    },
    /// A page size that cannot be.
    #[error("the SQLite database in '{database}' has pages of {found} bytes; the engine has 8192")]
    PageSize {
        /// Name of the database or file.
        database: String,
        /// Bytes in its pages.
        found: u32,
    },
    /// A write that is not one page.
    #[error(
        "a write of {bytes} bytes at byte {offset} of database '{database}' is not one page of \
         8192; SQLite was given another page size"
    )]
    NotAPage {
        /// Name of the database.
        database: String,
        /// Length.
        bytes: usize,
        /// Where.
        offset: u64,
    },
    /// SQLite called out of order.
    #[error("database '{database}': {what}")]
    Misuse {
        /// Name of the database.
        database: String,
        /// What was called, and when it may be.
        what: &'static str,
    },
    /// The operating system refused something.
    #[error("{action} '{}': {reason}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The SQLite library refused something.
    #[error("{action}: {reason}")]
    Sqlite {
        /// What was tried.
        action: &'static str,
        /// Its message.
        reason: String,
    },
    /// The file to import is not a database that can be taken.
    #[error("'{}' cannot be imported: {reason}", path.display())]
    NotImportable {
        /// The file.
        path: PathBuf,
        /// Why, and what helps.
        reason: String,
    },
}

impl VfsError {
    /// SQLite's result code; `otherwise` for what has no code of its own.
    pub(crate) fn code(&self, otherwise: c_int) -> c_int {
        match self {
            Self::Engine(error) => match error {
                EngineError::Busy { .. } | EngineError::InUse { .. } => abi::BUSY,
                EngineError::BusySnapshot { .. } => abi::BUSY_SNAPSHOT,
                EngineError::LogFull { .. } | EngineError::VersionsFull { .. } => abi::FULL,
                EngineError::PageChecksum { .. } => abi::IOERR_DATA,
                EngineError::Corrupt { .. } => abi::IOERR_CORRUPTFS,
                error if error.is_disk_full() => abi::FULL,
                _ => otherwise,
            },
            Self::UnknownDatabase { .. }
            | Self::NotFound { .. }
            | Self::NotAnEngineDatabase { .. }
            | Self::PageSize { .. } => abi::CANTOPEN,
            _ => otherwise,
        }
    }
}
