//! Errors of measurements.

use std::path::PathBuf;

use windlass_base::size::Bytes;

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Source(#[from] windlass_source::Error),
    #[error(transparent)]
    Pipeline(#[from] windlass_pipeline::Error),
    /// A folder for backups cannot be used.
    #[error("cannot {action} '{}': {source}", path.display())]
    Folder {
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// The backups would not fit.
    #[error(
        "'{}' has {} free, but an uncompressed backup needs {}: name another folder with --to",
        path.display(), Bytes(*free), Bytes(*needed)
    )]
    NoSpace {
        path: PathBuf,
        needed: u64,
        free: u64,
    },
    /// The measurement would not fit into memory.
    #[error(
        "it takes {} of memory, and {} are available: choose a smaller pool with --pool-pages, or --short",
        Bytes(*needed), Bytes(*available)
    )]
    NoMemory { needed: u64, available: u64 },
    #[error("'{}' has no pages to measure", path.display())]
    EmptyDatabase { path: PathBuf },
}
