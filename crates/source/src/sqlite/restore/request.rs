//! What is restored, and where to.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use windlass_base::{Guid, Lsn};

use crate::Protection;

/// What happens to a database that is at the target already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existing {
    /// The restore is refused.
    #[default]
    Refuse,
    /// It is replaced, provided that nobody has it open.
    Replace,
}

/// The full backup that a differential belongs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequiredBase {
    /// Its backup set.
    pub set_guid: Guid,
    /// Its checkpoint.
    pub checkpoint_lsn: Lsn,
}

/// A restore to be begun.
#[derive(Debug, Clone, Default)]
pub struct RestoreRequest {
    /// The database file.
    pub target: PathBuf,
    /// What happens to a file that is there.
    pub existing: Existing,
    /// Name of the database, for whoever finds the restore unfinished.
    pub database_name: String,
    /// Family of the database that was backed up.
    pub family_guid: Guid,
    /// The backup set.
    pub set_guid: Guid,
    /// Its checkpoint.
    pub checkpoint_lsn: Lsn,
    /// Length of the database file as of the backup.
    pub size_bytes: u64,
    /// For a differential, what it belongs on; a full backup begins a new sequence.
    pub base: Option<RequiredBase>,
    /// How the set is protected.
    pub protection: Protection,
    /// Whether a differential may follow upon a base that is better protected.
    pub allow_less_protected: bool,
    /// Whether what is restored need not be a database.
    pub as_is: bool,
    /// Permissions of a file that replaces none; for its owner alone when nothing is known.
    pub mode: Option<u16>,
    /// Set by whoever wants the restore to give up waiting.
    pub cancel: Arc<AtomicBool>,
}
