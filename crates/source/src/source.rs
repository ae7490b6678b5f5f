//! The reading side: a pinned state of a database.

use std::fmt;
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub use windlass_base::word::Depth;
use windlass_base::{FilePage, Guid, Lsn, Moment};
pub use windlass_engine::RecoveryModel;
use windlass_io::DirectFile;
use windlass_media::{SetType, SourceKind, WalPosition};

use crate::Error;

/// Which database a snapshot belongs to, and its properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseIdentity {
    /// The name given by the caller, or the file's name without extension.
    pub name: String,
    /// Shared by a database and everything restored from its backups.
    pub family_guid: Guid,
    /// Of this copy of the database; a restore creates a new one.
    pub database_guid: Guid,
    /// Of its history since it was created or last restored; that of the family if LSNs do not depend on it.
    pub recovery_fork_guid: Guid,
    /// When the database was created, if known.
    pub created: Option<Moment>,
    /// Bytes per page; 0 if the content does not say.
    pub page_bytes: u32,
    pub recovery_model: RecoveryModel,
    /// What manages the database.
    pub kind: SourceKind,
    /// Version of the product that last wrote the database, in the product's numbering (`SQLite`:
    /// 3045001 is 3.45.1); 0 if unknown.
    pub product_version: u32,
    /// The application's own version of its schema (`SQLite`: `PRAGMA user_version`).
    pub user_version: u32,
    /// The kind of application file (`SQLite`: `PRAGMA application_id`).
    pub application_id: u32,
    /// How the database stores its transactions (`SQLite`: `PRAGMA journal_mode`).
    pub journal_mode: String,
    /// Whether the user running the backup cannot write to the database.
    pub is_read_only: bool,
}

/// The kind of content of a database, judged by its header and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    Database,
    /// Empty: a database before its first transaction.
    Empty,
    /// No `SQLite` header: an encrypted database, or not a database.
    Unknown,
    /// A truncated database.
    Cut {
        /// According to its header.
        expected_bytes: u64,
        found_bytes: u64,
    },
}

/// The position of a snapshot in the database's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// First log record that a restore needs.
    pub first_lsn: Lsn,
    /// One past the last log record in the backup.
    pub last_lsn: Lsn,
    /// The checkpoint with which the backup starts; a differential names it as its base.
    pub checkpoint_lsn: Lsn,
}

/// What a backup set says of itself that is a copy of another one, made elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedSet {
    /// Identity of the original; the copy has its own.
    pub guid: Guid,
    pub set_type: SetType,
    pub is_copy_only: bool,
    pub has_checksums: bool,
    /// The original is damaged, or not all of it is there.
    pub is_damaged: bool,
    pub name: String,
    pub description: String,
    pub user: String,
    pub server: String,
    pub machine: String,
    pub started: Option<Moment>,
    pub finished: Option<Moment>,
    pub expires: Option<Moment>,
    /// Quarter hours from UTC.
    pub time_zone: i8,
    pub recovery_model: &'static str,
    pub database_backup_lsn: Lsn,
    pub differential_base_lsn: Lsn,
    pub differential_base_guid: Guid,
    pub recovery_fork_guid: Guid,
}

/// What a database file contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    Data,
    /// Log records.
    Log,
}

/// A file of the database, as of the snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Number within the database, from 1, never reused.
    pub id: u16,
    /// Name within the database.
    pub logical_name: String,
    /// Path on this machine, as text.
    pub physical_name: String,
    /// The same path, not converted.
    pub path: PathBuf,
    pub kind: FileKind,
    /// Length as of the snapshot; a restore reproduces exactly this length.
    pub size_bytes: u64,
    /// Bytes per page of this file.
    pub page_bytes: u32,
    /// Bytes at the end of each page that SQLite leaves free; `None` if the pages are not SQLite's.
    pub reserved_bytes: Option<u8>,
}

/// What was done so that writers need not wait for the whole backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemporaryCopy {
    /// A clone that shares the database's blocks.
    Clone,
    /// A copy, in this folder while the backup runs.
    Copy(PathBuf),
    /// Nothing, and the reason.
    None(String),
}

/// The effect of a backup on the writers of its database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WritersHeld {
    /// How long they could not write; up to now if they still cannot.
    pub time: Duration,
    pub copied: TemporaryCopy,
}

impl SourceFile {
    /// Its current POSIX mode; `None` if the file cannot be examined.
    pub fn mode(&self) -> Option<u32> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = std::fs::metadata(&self.path).ok()?;
        Some(metadata.mode())
    }

    /// When its file system created it, in nanoseconds since 1970; `None` if that is not known.
    pub fn created_ns(&self) -> Option<NonZeroU64> {
        created_ns(&self.path)
    }
}

/// When the file system created a file, in nanoseconds since 1970; `None` if it does not say.
pub fn created_ns(path: &Path) -> Option<NonZeroU64> {
    let created = std::fs::metadata(path).ok()?.created().ok()?;
    let since = created.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    NonZeroU64::new(u64::try_from(since.as_nanos()).ok()?)
}

/// What is known only at the end of a copy; see [`Snapshot::finish_data`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Position of the backed-up state.
    pub position: Position,
    /// The files as of that state.
    pub files: Vec<SourceFile>,
    /// What a restore needs besides the files' bytes, in the source's own encoding.
    pub description: Vec<u8>,
}

/// Ranges of files, by the files' numbers.
pub type FileRanges = Vec<(u16, Vec<Range<u64>>)>;

/// Those of one file; none if it is unknown.
pub fn ranges_of(ranges: &FileRanges, file_id: u16) -> Vec<Range<u64>> {
    let known = ranges.iter().find(|(id, _)| *id == file_id);
    known.map(|(_, ranges)| ranges.clone()).unwrap_or_default()
}

/// A piece of a database's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPiece {
    pub file_id: u16,
    /// Offset relative to the first byte in the backup.
    pub offset: u64,
    pub bytes: usize,
}

/// One committed state of a database, pinned from opening to closing.
///
/// A *frozen* source shows one state throughout. A *fuzzy* one lets its files change during the
/// copy and delivers, after the last of their bytes, the log that makes the copy consistent: it then
/// shows the last commit before [`Snapshot::finish_data`].
///
/// Callers must do the following, in this order:
/// - call [`Snapshot::read`] only for ranges within [`Snapshot::ranges`] that begin at a multiple
///   of [`windlass_base::EXTENT_BYTES`] and end at one or at the end of the range;
/// - pass memory aligned to [`windlass_io::DIRECT_ALIGNMENT`] for speed (any memory works);
/// - when all reads are done, call [`Snapshot::finish_data`], then [`Snapshot::read_log`] until it
///   returns `None`, then [`Snapshot::ending`];
/// - call [`Snapshot::close`] **before** reporting success: it is the last chance to learn that the
///   pin was lost. Dropping releases the pin too, but reports nothing;
/// - call [`Snapshot::complete`] when the backup is durable.
///
/// Reads may come in any order, also repeatedly, and from several threads at once; they do not
/// allocate.
pub trait Snapshot: Send + Sync + fmt::Debug {
    fn identity(&self) -> &DatabaseIdentity;

    /// Its position in the history, as far as known before [`Snapshot::ending`].
    fn position(&self) -> Position;

    /// Its position in the write-ahead log of a `SQLite` database; `None` if it has none that is known.
    fn wal_position(&self) -> Option<WalPosition> {
        None
    }

    /// The files, ordered by number; at least one.
    fn files(&self) -> &[SourceFile];

    /// The ranges of a file to read, ascending and disjoint, each beginning at a multiple of the
    /// extent size and ending at one or at the end of the file. Everything between them is not part
    /// of the backup and is zero after a restore. Empty for an unknown file, a file of 0 bytes, and
    /// a log file.
    fn ranges(&self, file_id: u16) -> Vec<Range<u64>>;

    /// Limits what is read to these ranges; each obeys the rules of [`Snapshot::ranges`].
    fn narrow(&mut self, ranges: FileRanges);

    /// Fills `buffer` with the file's bytes from `offset` on, as of the snapshot.
    fn read(&self, file_id: u16, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let outcome = match self.located(file_id, offset, buffer.len())? {
            Some(file) => file.read_at(buffer, offset),
            None => Ok(0),
        };
        self.amend(file_id, offset, buffer, outcome)
    }

    /// The file that has a range at the same offset, for callers with many reads in flight.
    ///
    /// Bytes read from it must still be passed to [`Snapshot::amend`]. `None` if nothing of the
    /// range is to be read from a file.
    fn located(
        &self,
        file_id: u16,
        offset: u64,
        bytes: usize,
    ) -> Result<Option<Arc<DirectFile>>, Error>;

    /// Turns bytes read from [`Snapshot::located`] into snapshot bytes. `outcome` is the result of
    /// the read: the bytes filled, fewer at the end of the file, or its error.
    fn amend(
        &self,
        file_id: u16,
        offset: u64,
        buffer: &mut [u8],
        outcome: io::Result<usize>,
    ) -> Result<(), Error>;

    /// Verifies the database's own page checksums in bytes returned by [`Snapshot::read`] for the
    /// same range, and returns each damaged page.
    ///
    /// Does nothing for a database without page checksums: see [`Snapshot::has_page_checksums`].
    fn check_pages(
        &self,
        file_id: u16,
        offset: u64,
        bytes: &[u8],
        on_bad: &mut dyn FnMut(FilePage),
    );

    /// Whether the pages have checksums of their own.
    fn has_page_checksums(&self) -> bool;

    /// Whether the database itself tracks which extents changed since its differential base.
    /// Otherwise, a full backup stores digests to compare with.
    fn tracks_changes(&self) -> bool {
        false
    }

    /// The original that this is a copy of; `None` for the snapshot of a database.
    fn copied_set(&self) -> Option<&CopiedSet> {
        None
    }

    /// How long the database's writers are locked out; `None` if they are not.
    fn writers_held(&self) -> Option<WritersHeld> {
        None
    }

    /// All ranges have been read: the backup shows the state of this moment.
    fn finish_data(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Fills `buffer` with the next bytes of the log; `None` at its end, or if there is no log.
    fn read_log(&self, buffer: &mut [u8]) -> Result<Option<LogPiece>, Error> {
        let _ = buffer;
        Ok(None)
    }

    /// What is known only at the end of the copy; `None` if everything was known before.
    fn ending(&self) -> Result<Option<Ending>, Error> {
        Ok(None)
    }

    /// Releases the pin and confirms that it was never lost.
    fn close(&self) -> Result<(), Error>;

    /// The backup is durable as backup set `set` and may become the differential base.
    fn complete(&self, set: Guid) -> Result<(), Error> {
        let _ = set;
        Ok(())
    }
}
