//! Errors between SQLite and the engine, and their SQLite codes.

use std::ffi::c_int;
use std::path::PathBuf;

use windlass_engine::EngineError;

use crate::abi;

pub type Result<T> = std::result::Result<T, VfsError>;

/// An error of the VFS or of an import or export.
#[derive(Debug, Clone, thiserror::Error)]
pub enum VfsError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("no database '{name}' is open in this instance")]
    UnknownDatabase { name: String },
    #[error("a database '{name}' is already open in this instance")]
    NameTaken { name: String },
    /// The file does not exist, and SQLite did not request its creation.
    #[error("there is no database '{}'", path.display())]
    NotFound { path: PathBuf },
    /// A plain SQLite file, not a database of the engine.
    #[error(
        "'{}' is no database of the page engine, which has a log '{}'; a plain SQLite file is opened without the extension, or imported",
        path.display(), log.display()
    )]
    NotAnEngineDatabase {
        path: PathBuf,
        /// The expected path of its log.
        log: PathBuf,
    },
    #[error("the SQLite database in '{database}' has pages of {found} bytes; the engine has 8192")]
    PageSize {
        /// Name of the database or file.
        database: String,
        /// The page size in its header.
        found: u32,
    },
    /// A write that is not exactly one page.
    #[error(
        "a write of {bytes} bytes at byte {offset} of database '{database}' is not one page of \
         8192; SQLite was given another page size"
    )]
    NotAPage {
        database: String,
        bytes: usize,
        offset: u64,
    },
    /// What the URI says does not fit.
    #[error("the parameter '{parameter}' of the URI: {reason}")]
    Parameter { parameter: String, reason: String },
    /// The process is a copy of the one that has the databases open.
    #[error(
        "this process is a child of fork(), and its parent, process {parent}, has databases open: it can neither use them \
         nor open any; let it start a program of its own (in Python, multiprocessing's 'spawn' does)"
    )]
    Forked { parent: u32 },
    /// SQLite called out of order.
    #[error("database '{database}': {what}")]
    Misuse {
        database: String,
        /// The call, and when it is allowed.
        what: &'static str,
    },
    /// The operating system refused something.
    #[error("{action} '{}': {reason}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        reason: String,
    },
    /// The SQLite library refused something.
    #[error("{action}: {reason}")]
    Sqlite {
        action: &'static str,
        reason: String,
    },
    #[error("'{}' cannot be imported: {reason}", path.display())]
    NotImportable {
        path: PathBuf,
        /// The reason, and advice.
        reason: String,
    },
}

impl VfsError {
    /// SQLite's result code; `otherwise` for errors without a code of their own.
    pub(crate) fn code(&self, otherwise: c_int) -> c_int {
        match self {
            Self::Engine(error) => match error {
                EngineError::Busy { .. }
                | EngineError::InUse { .. }
                | EngineError::BeingMade { .. } => abi::BUSY,
                EngineError::BusySnapshot { .. } => abi::BUSY_SNAPSHOT,
                EngineError::ReadOnly { .. } => abi::READONLY,
                EngineError::LogFull { .. } | EngineError::VersionsFull { .. } => abi::FULL,
                EngineError::PageChecksum { .. } => abi::IOERR_DATA,
                EngineError::Corrupt { .. }
                | EngineError::FilesDiffer { .. }
                | EngineError::FileTooShort { .. } => abi::IOERR_CORRUPTFS,
                error if error.is_disk_full() => abi::FULL,
                _ => otherwise,
            },
            Self::UnknownDatabase { .. }
            | Self::NotFound { .. }
            | Self::Forked { .. }
            | Self::NotAnEngineDatabase { .. }
            | Self::Parameter { .. }
            | Self::PageSize { .. } => abi::CANTOPEN,
            _ => otherwise,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_as_such_only_if_nothing_was_committed() {
        let full = EngineError::Io {
            operation: "write",
            path: PathBuf::from("x"),
            source: std::sync::Arc::new(std::io::ErrorKind::StorageFull.into()),
        };
        let code = |error: EngineError| VfsError::Engine(error).code(abi::IOERR_WRITE);
        assert_eq!(code(full.clone()), abi::FULL);
        let open = EngineError::OutcomeOpen {
            source: Box::new(full),
        };
        assert_eq!(code(open), abi::IOERR_WRITE);
    }
}
