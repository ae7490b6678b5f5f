//! Why a measurement did not happen.

use std::path::PathBuf;

use windlass_base::size::Bytes;

/// Why a measurement did not happen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database cannot be read, or a restore's target cannot be written.
    #[error(transparent)]
    Source(#[from] windlass_source::Error),
    /// A backup, restore or verification failed.
    #[error(transparent)]
    Pipeline(#[from] windlass_pipeline::Error),
    /// A folder for backups cannot be used.
    #[error("cannot {action} '{}': {source}", path.display())]
    Folder {
        /// What was tried.
        action: &'static str,
        /// The folder or file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The backups would not fit.
    #[error(
        "'{}' has {} free, but an uncompressed backup needs {}: name another folder with --to",
        path.display(), Bytes(*free), Bytes(*needed)
    )]
    NoSpace {
        /// The folder.
        path: PathBuf,
        /// Bytes that may be written.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// Nothing to measure.
    #[error("'{}' has no pages to measure", path.display())]
    EmptyDatabase {
        /// The database.
        path: PathBuf,
    },
}
