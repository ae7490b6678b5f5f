//! What is restored, and to which target.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use windlass_base::{Guid, Lsn};
use windlass_media::WalPosition;

use crate::Protection;

/// What to do with an existing file at the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existing {
    #[default]
    Refuse,
    /// Replace it, unless it is open, or unless it came there while a sequence of restores was under way.
    Approved,
    /// Replace it, unless it is open.
    Replace,
}

/// The base that a differential needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequiredBase {
    pub set_guid: Guid,
    pub checkpoint_lsn: Lsn,
}

#[derive(Debug, Clone, Default)]
pub struct RestoreRequest {
    pub target: PathBuf,
    pub existing: Existing,
    /// Name of the database, for the state of an unfinished restore.
    pub database_name: String,
    /// Family of the database that was backed up.
    pub family_guid: Guid,
    pub set_guid: Guid,
    pub checkpoint_lsn: Lsn,
    /// Length of the database file as of the backup.
    pub size_bytes: u64,
    /// For a differential, its base; a full backup starts a new sequence.
    pub base: Option<RequiredBase>,
    /// How the set is protected.
    pub protection: Protection,
    /// Whether a differential may follow a base that is better protected.
    pub allow_less_protected: bool,
    /// Whether the content may be something other than a database.
    pub as_is: bool,
    /// Permissions of a file that replaces none; owner-only if unknown.
    pub mode: Option<u16>,
    /// The registered database that the file is made for, see [`crate::ownership`].
    pub made_for: Option<Guid>,
    /// Where the content is in the history of the write-ahead log.
    pub wal_position: Option<WalPosition>,
    /// Setting it makes the restore stop waiting.
    pub cancel: Arc<AtomicBool>,
}
