//! Databases of SQL Server that were restored here, and are offline: their files are backed up to Windlass media as they
//! are, and written again from these.

mod open;
mod snapshot;
mod target;

use std::path::PathBuf;

pub use snapshot::OfflineSnapshot;
pub use target::OfflineTarget;

/// A file of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfflineFile {
    /// Its number in the database.
    pub id: u16,
    pub is_log: bool,
    pub logical_name: String,
    pub path: PathBuf,
    /// Its length; for a backup it is the length of what is there.
    pub bytes: u64,
}
