//! Errors of reading and restoring databases.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use windlass_base::{Guid, Lsn};
use windlass_io::other_name::OtherName;

use crate::Protection;
use crate::sqlite::SpoolError;

/// An error, with its place and what was expected instead.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// SQLite could not check the database.
    #[error("{} cannot be checked: {reason}", path.display())]
    Unchecked {
        path: PathBuf,
        /// SQLite's message.
        reason: String,
    },
    #[error("'{}' does not exist", path.display())]
    NotFound { path: PathBuf },
    #[error("'{}' is not a file", path.display())]
    NotAFile { path: PathBuf },
    #[error("cannot {action} '{}': {source}", path.display())]
    Io {
        /// The action: `open`, `read`, `write`, ...
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("SQLite cannot {action} '{}': {source}", path.display())]
    Sqlite {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error(transparent)]
    Engine(windlass_engine::EngineError),
    /// The standby file of a sequence of restores is not there, or another file.
    #[error("the standby file '{}' cannot be used: {why}", path.display())]
    StandbyLost { path: PathBuf, why: String },
    /// A file that is not an earlier standby file of the database has the name of a new one.
    #[error("'{}' exists already", path.display())]
    StandbyExists { path: PathBuf },
    /// A database is not followed, or the spool of its follower not used.
    #[error(transparent)]
    Spool(SpoolError),
    /// Another connection kept the database locked for longer than the time limit.
    #[error(
        "'{}' is locked by another connection; waited {} s",
        path.display(), waited.as_secs_f32()
    )]
    Busy { path: PathBuf, waited: Duration },
    /// A crashed writer left a journal that must be rolled back first, which is not possible here.
    #[error(
        "'{}' was left in the middle of a transaction: '{}' must be rolled back first, but the \
         database {obstacle}", path.display(), journal.display()
    )]
    HotJournal {
        path: PathBuf,
        /// The journal or write-ahead log.
        journal: PathBuf,
        obstacle: Obstacle,
    },
    /// A wait for a lock was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The database has length 0, but a file next to it may have its content.
    #[error(
        "'{}' is empty, but '{}' next to it is not: opening it with SQLite removes that file",
        path.display(), journal.display()
    )]
    Emptied {
        path: PathBuf,
        /// The journal or write-ahead log.
        journal: PathBuf,
    },
    /// The database file is not the one into which its log was copied.
    #[error("page {page} of the database is not the one that was copied from '{}'", log.display())]
    OverwrittenUnderLog {
        /// The write-ahead log.
        log: PathBuf,
        /// From 1.
        page: u32,
    },
    /// Nothing would prevent or reveal changes to a database in WAL mode.
    #[error(
        "'{}' is in WAL mode on a file system ({file_system}) that is read-only here but may be \
         writable elsewhere; no lock would prevent changes during the backup",
        path.display()
    )]
    WalNotAccessible { path: PathBuf, file_system: String },
    /// The log or journal of a database may lie beside another name of its file.
    #[error("'{}' {alias}: its log or journal may lie beside another name, where it is not seen", path.display())]
    Aliased { path: PathBuf, alias: Alias },
    /// A rename cannot replace the file, or would leave the old one under another name.
    #[error("'{}' {found}", path.display())]
    NotReplaceable { path: PathBuf, found: OtherName },
    /// A database that could not be locked was changed while it was read.
    #[error(
        "'{}' was changed during the backup, which cannot lock its write-ahead log here",
        path.display()
    )]
    ChangedUnlocked { path: PathBuf },
    /// The write-ahead log does not match its own checksums or `SQLite`'s index.
    #[error("'{}' is damaged at frame {frame}: {damage}", path.display())]
    WalDamaged {
        path: PathBuf,
        /// The frame, from 1; 0 is the header.
        frame: u32,
        damage: WalDamage,
    },
    /// The file was replaced, renamed or changed without regard to `SQLite`'s locks while it was
    /// read.
    #[error("'{}' was replaced or changed by something that ignores SQLite's locks", path.display())]
    ChangedWhileReading { path: PathBuf },
    /// A range that is not part of the database.
    #[error("file {file_id} has {size_bytes} bytes and no range of {bytes} at {offset}")]
    OutOfRange {
        /// The file's number.
        file_id: u16,
        /// First byte of the range.
        offset: u64,
        bytes: u64,
        size_bytes: u64,
    },
    /// The restore's target exists, and the request does not allow replacing it.
    #[error("'{}' exists already", path.display())]
    TargetExists { path: PathBuf },
    /// The restore's target is open in another program.
    #[error("'{}' is in use{}", path.display(), process_suffix(*process_id))]
    InUse {
        path: PathBuf,
        /// A process that has it open, if known.
        process_id: Option<u32>,
    },
    /// The restore's target was still open in another program when the restored file was complete.
    #[error(
        "'{}' was still in use{} after waiting {} s; the restored file is complete next to it",
        path.display(), process_suffix(*process_id), waited.as_secs()
    )]
    StillInUse {
        path: PathBuf,
        /// A process that has it open, if known.
        process_id: Option<u32>,
        waited: Duration,
    },
    #[error("'{}' is not restored: {defect}", path.display())]
    NotADatabase { path: PathBuf, defect: String },
    /// The set is less protected than its base.
    #[error(
        "the backup restored at '{}' is {base}, and the backup set is {found}", path.display()
    )]
    LessProtected {
        path: PathBuf,
        base: Protection,
        /// Protection of the set.
        found: Protection,
    },
    /// Another restore has the same target.
    #[error("another restore of '{}' is running", path.display())]
    RestoreRunning { path: PathBuf },
    #[error(
        "'{}' needs {needed_bytes} bytes, but its file system has {available_bytes} left",
        path.display()
    )]
    NoSpace {
        path: PathBuf,
        needed_bytes: u64,
        available_bytes: u64,
    },
    /// There was no restore WITH NORECOVERY before.
    #[error("'{}' is not being restored: no full backup was restored WITH NORECOVERY", path.display())]
    NotRestoring { path: PathBuf },
    /// The differential has another base, or another differential was restored in between.
    #[error(
        "'{}' is restored to backup set {found} (LSN {found_lsn:#}), but the differential needs \
         {expected} (LSN {expected_lsn:#})", path.display()
    )]
    WrongBase {
        path: PathBuf,
        /// The set that was restored last.
        found: Guid,
        found_lsn: Lsn,
        /// The set that the differential names as its base.
        expected: Guid,
        expected_lsn: Lsn,
    },
    /// A differential was interrupted while being applied.
    #[error(
        "a differential was interrupted while being applied to '{}': start again with the full backup",
        path.display()
    )]
    RestoreInterrupted { path: PathBuf },
    /// A log backup was interrupted while being applied.
    #[error(
        "a log backup was interrupted while being applied to '{}': apply it again, or start again with the full \
         backup", path.display()
    )]
    RollInterrupted { path: PathBuf },
    /// A SQLite file, whose log Windlass does not keep.
    #[error("the log of '{}' is not kept", path.display())]
    NoLog { path: PathBuf },
    /// The state file of a restore is not valid.
    #[error("'{}' does not describe a restore: {source}", path.display())]
    StateUnreadable {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    /// The state file of a restore was copied or moved here.
    #[error("the restore that waits beside '{}' is a copy: it was begun for '{}'", path.display(), other.display())]
    StateOfOtherPlace {
        path: PathBuf,
        /// Where it was begun.
        other: PathBuf,
    },
    /// The restored file has the wrong length.
    #[error("'{}' has {found} bytes after the restore instead of {expected}", path.display())]
    WrongLength {
        /// The staging file.
        path: PathBuf,
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
    /// `SQLite` does not recognise the file.
    #[error("is not readable by SQLite")]
    NotADatabase,
}

/// What is wrong with a write-ahead log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WalDamage {
    /// The header is not a WAL header.
    #[error("the header is not that of a write-ahead log")]
    Header,
    /// The log ends before the committed frames.
    #[error("the log ends here, {expected} frames were committed")]
    TooShort { expected: u32 },
    /// A frame belongs to another generation of the log.
    #[error("it belongs to another generation of the log")]
    Salt,
    /// The checksum does not match.
    #[error("its checksum does not match")]
    Checksum,
}

/// What shows that a database's file is used by another name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alias {
    Name(OtherName),
    /// Another process has it open in WAL mode, without a -shm beside this name.
    Open,
}

impl std::fmt::Display for Alias {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Open => f.write_str(
                "is open in another program in WAL mode, but its -shm is not beside this name",
            ),
        }
    }
}
