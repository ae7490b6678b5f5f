//! Why a database could not be read or restored.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use windlass_base::{Guid, Lsn};

use crate::Protection;

/// What went wrong, where, and what was expected instead.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// SQLite could not check the database.
    #[error("{} cannot be checked: {reason}", path.display())]
    Unchecked {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        reason: String,
    },
    /// The database file is not there.
    #[error("'{}' does not exist", path.display())]
    NotFound {
        /// The database.
        path: PathBuf,
    },
    /// The path leads to a folder, a device or the like.
    #[error("'{}' is not a file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot {action} '{}': {source}", path.display())]
    Io {
        /// What was tried: `open`, `read`, `write`, ...
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// `SQLite` refused.
    #[error("SQLite cannot {action} '{}': {source}", path.display())]
    Sqlite {
        /// What was tried.
        action: &'static str,
        /// The database.
        path: PathBuf,
        /// `SQLite`'s answer.
        #[source]
        source: rusqlite::Error,
    },
    /// The page engine refused.
    #[error(transparent)]
    Engine(windlass_engine::EngineError),
    /// Another connection kept the database locked for longer than was waited.
    #[error(
        "'{}' is locked by another connection; waited {} s",
        path.display(), waited.as_secs_f32()
    )]
    Busy {
        /// The database.
        path: PathBuf,
        /// How long was waited.
        waited: Duration,
    },
    /// A crashed writer left a journal that must be rolled back first, and that cannot be done here.
    #[error(
        "'{}' was left in the middle of a transaction: '{}' must be rolled back first, but the \
         database {obstacle}", path.display(), journal.display()
    )]
    HotJournal {
        /// The database.
        path: PathBuf,
        /// The journal or write-ahead log.
        journal: PathBuf,
        /// Why it cannot be rolled back here.
        obstacle: Obstacle,
    },
    /// Whoever waits for a lock was told to stop.
    #[error("cancelled")]
    Cancelled,
    /// The database has no length, but something that may be its content lies beside it.
    #[error(
        "'{}' is empty, but '{}' beside it is not: whoever opens it with SQLite removes that file",
        path.display(), journal.display()
    )]
    Emptied {
        /// The database.
        path: PathBuf,
        /// The journal or write-ahead log.
        journal: PathBuf,
    },
    /// Nothing would keep others from changing a database in WAL mode, nor show that they did.
    #[error(
        "'{}' is in WAL mode on a file system ({file_system}) that can be written elsewhere and not \
         here; no lock would keep others from changing it during the backup",
        path.display()
    )]
    WalNotAccessible {
        /// The database.
        path: PathBuf,
        /// Kind of the file system.
        file_system: String,
    },
    /// A database that could not be locked was changed while it was read.
    #[error(
        "'{}' was changed by others during the backup, which cannot lock its write-ahead log here",
        path.display()
    )]
    ChangedUnlocked {
        /// The database.
        path: PathBuf,
    },
    /// The write-ahead log is not what its own checksums or `SQLite`'s index say.
    #[error("'{}' is damaged at frame {frame}: {damage}", path.display())]
    WalDamaged {
        /// The write-ahead log.
        path: PathBuf,
        /// The frame, from 1; 0 is the header.
        frame: u32,
        /// What is wrong with it.
        damage: WalDamage,
    },
    /// The file was replaced, renamed or changed around `SQLite`'s locks while it was read.
    #[error("'{}' was replaced or changed by something that ignores SQLite's locks", path.display())]
    ChangedWhileReading {
        /// The file.
        path: PathBuf,
    },
    /// A stretch that is not part of the database.
    #[error("file {file_id} has {size_bytes} bytes and no stretch of {bytes} at {offset}")]
    OutOfRange {
        /// The file's number.
        file_id: u16,
        /// First byte of the stretch.
        offset: u64,
        /// Its length.
        bytes: u64,
        /// The file's length.
        size_bytes: u64,
    },
    /// The restore's target is there already, and replacing was not asked for.
    #[error("'{}' exists already", path.display())]
    TargetExists {
        /// The target.
        path: PathBuf,
    },
    /// Somebody has the restore's target open.
    #[error("'{}' is in use{}", path.display(), process_suffix(*process_id))]
    InUse {
        /// The target.
        path: PathBuf,
        /// A process that has it open, where that is known.
        process_id: Option<u32>,
    },
    /// Somebody had the restore's target open until after everything was restored beside it.
    #[error(
        "'{}' was still in use{} after {} s of waiting; everything is restored beside it",
        path.display(), process_suffix(*process_id), waited.as_secs()
    )]
    StillInUse {
        /// The target.
        path: PathBuf,
        /// A process that has it open, where that is known.
        process_id: Option<u32>,
        /// How long was waited.
        waited: Duration,
    },
    /// What was restored is no database.
    #[error("'{}' is not restored: {defect}", path.display())]
    NotADatabase {
        /// The target.
        path: PathBuf,
        /// What is wrong with it.
        defect: String,
    },
    /// A set that is less protected than the one upon which it is to be restored.
    #[error(
        "what is restored at '{}' is {base}, and the backup set is {found}", path.display()
    )]
    LessProtected {
        /// The target.
        path: PathBuf,
        /// How the base is protected.
        base: Protection,
        /// How the set is.
        found: Protection,
    },
    /// Another restore works on the same target.
    #[error("another restore of '{}' is running", path.display())]
    RestoreRunning {
        /// The target.
        path: PathBuf,
    },
    /// The file system has no room.
    #[error(
        "'{}' needs {needed_bytes} bytes, but its file system has {available_bytes} left",
        path.display()
    )]
    NoSpace {
        /// The target.
        path: PathBuf,
        /// Bytes the restore needs.
        needed_bytes: u64,
        /// Bytes that are free.
        available_bytes: u64,
    },
    /// No restore with NORECOVERY went before.
    #[error("'{}' is not being restored: no full backup was restored WITH NORECOVERY", path.display())]
    NotRestoring {
        /// The target.
        path: PathBuf,
    },
    /// The differential belongs on another full backup, or another differential lies between.
    #[error(
        "'{}' stands at backup set {found} (LSN {found_lsn:#}), the differential needs \
         {expected} (LSN {expected_lsn:#})", path.display()
    )]
    WrongBase {
        /// The target.
        path: PathBuf,
        /// The set that was restored last.
        found: Guid,
        /// Its checkpoint.
        found_lsn: Lsn,
        /// The set that the differential names as its base.
        expected: Guid,
        /// Its checkpoint.
        expected_lsn: Lsn,
    },
    /// A differential was interrupted while it was applied.
    #[error(
        "a differential was interrupted while it was applied to '{}': begin again with the full backup",
        path.display()
    )]
    RestoreInterrupted {
        /// The target.
        path: PathBuf,
    },
    /// The file that describes a restore in progress is not one of ours.
    #[error("'{}' does not describe a restore: {source}", path.display())]
    StateUnreadable {
        /// The state file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// The restored file does not have the length it should have.
    #[error("'{}' has {found} bytes after the restore instead of {expected}", path.display())]
    WrongLength {
        /// The staged file.
        path: PathBuf,
        /// Its length.
        found: u64,
        /// The length in the backup.
        expected: u64,
    },
}

fn process_suffix(process_id: Option<u32>) -> String {
    process_id.map_or_else(String::new, |id| format!(" by process {id}"))
}

/// Why a crashed transaction cannot be rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// The file or its folder cannot be written.
    #[error("cannot be written")]
    ReadOnly,
    /// `SQLite` does not understand the file.
    #[error("is not readable by SQLite")]
    NotADatabase,
}

/// What is wrong with a write-ahead log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WalDamage {
    /// The header is not a WAL header.
    #[error("the header is not that of a write-ahead log")]
    Header,
    /// The log ends before the frames that were committed.
    #[error("the log ends here, {expected} frames were committed")]
    TooShort {
        /// Frames that should be there.
        expected: u32,
    },
    /// A frame belongs to another generation of the log.
    #[error("it belongs to another generation of the log")]
    Salt,
    /// The checksum does not match.
    #[error("its checksum does not match")]
    Checksum,
    /// A page number that cannot be.
    #[error("page {page} is not in a database of {page_count} pages")]
    Page {
        /// The page number.
        page: u32,
        /// Pages in the database.
        page_count: u32,
    },
}
