//! The reading side: a pinned state of a database.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use windlass_base::{Guid, Lsn, Moment};
use windlass_engine::PhaseReport;
use windlass_io::DirectFile;

use crate::Error;

/// How much of a database's log is kept, which decides what backups are possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryModel {
    /// The log goes with each checkpoint: full and differential backups only.
    Simple,
    /// The log is kept until it is backed up.
    Full,
}

impl fmt::Display for RecoveryModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Simple => "SIMPLE",
            Self::Full => "FULL",
        })
    }
}

/// What manages a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseKind {
    /// `SQLite`, in a file of its own.
    Sqlite,
    /// The page engine.
    Engine,
}

/// Which database a snapshot belongs to, and how it is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseIdentity {
    /// The database's name: given by the caller, or the file's name without extension.
    pub name: String,
    /// Same for a database and everything ever restored from its backups.
    pub family_guid: Guid,
    /// Of this one database; a restore makes a new one.
    pub database_guid: Guid,
    /// When the database was created, where that is known.
    pub created: Option<Moment>,
    /// Bytes per page; 0 when the content does not tell.
    pub page_bytes: u32,
    /// The recovery model.
    pub recovery_model: RecoveryModel,
    /// What manages the database.
    pub kind: DatabaseKind,
    /// Version of the product that last wrote the database, as the product counts
    /// (`SQLite`: 3045001 is 3.45.1); 0 when unknown.
    pub product_version: u32,
    /// The application's own version of its schema (`SQLite`: `PRAGMA user_version`).
    pub user_version: u32,
    /// The kind of application file (`SQLite`: `PRAGMA application_id`).
    pub application_id: u32,
    /// How the database keeps its transactions (`SQLite`: `PRAGMA journal_mode`).
    pub journal_mode: String,
    /// Whether the database cannot be written by whoever takes the backup.
    pub is_read_only: bool,
}

/// How much of a database SQLite's own check looks at.
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// `PRAGMA quick_check`: each page and row, without comparing indexes with their tables.
    Quick = 1,
    /// `PRAGMA integrity_check`: all.
    Full = 2,
}

/// What the content of a database looks like, as far as its header and its size tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A database.
    Database,
    /// Nothing at all: a database to be.
    Empty,
    /// No header of `SQLite`'s: an encrypted database, or none.
    Unknown,
    /// A database that has lost its end.
    Cut {
        /// What its header tells.
        expected_bytes: u64,
        /// What there is.
        found_bytes: u64,
    },
}

/// Where in the database's history a snapshot stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// First log record that a restore needs.
    pub first_lsn: Lsn,
    /// One past the last log record in the backup.
    pub last_lsn: Lsn,
    /// The checkpoint the backup begins with; what a differential names as its base.
    pub checkpoint_lsn: Lsn,
}

/// What a database file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Pages.
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
    /// The same path, exactly.
    pub path: PathBuf,
    /// What it holds.
    pub kind: FileKind,
    /// Length as of the snapshot; a restore produces exactly this length.
    pub size_bytes: u64,
    /// Bytes per page of this file.
    pub page_bytes: u32,
}

/// What was done so that writers need not wait for the whole backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemporaryCopy {
    /// The copy shares the database's blocks.
    Clone,
    /// A copy lies in this folder while the backup runs.
    Copy(PathBuf),
    /// Nothing, and why.
    None(String),
}

/// What a backup costs the writers of its database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WritersHeld {
    /// For how long they could not write; up to now while they still cannot.
    pub time: Duration,
    /// What was done about it.
    pub copied: TemporaryCopy,
}

impl SourceFile {
    /// Its POSIX mode now; none when the file cannot be looked at.
    pub fn mode(&self) -> Option<u32> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = std::fs::metadata(&self.path).ok()?;
        Some(metadata.mode())
    }
}

/// What only the end of a copy tells, see [`Snapshot::finish_data`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Where the backed-up state stands.
    pub position: Position,
    /// The files as of that state.
    pub files: Vec<SourceFile>,
    /// What a restore needs beside the files' bytes, in the source's own form.
    pub description: Vec<u8>,
}

/// A piece of a database's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPiece {
    /// The log file's number.
    pub file_id: u16,
    /// First byte, counted from the first one that the backup has.
    pub offset: u64,
    /// Its length.
    pub bytes: usize,
}

/// One committed state of a database, pinned from opening until closing.
///
/// Two kinds of source stand behind it. A *frozen* one shows one state throughout. A *fuzzy* one
/// (the page engine) lets its files change under the copy and gives, after the last of their
/// bytes, the log that makes the copy one state: the last commit before [`Snapshot::finish_data`].
///
/// What callers owe, in this order:
/// - ask [`Snapshot::read`] only for stretches within [`Snapshot::ranges`], beginning at a multiple
///   of [`windlass_base::EXTENT_BYTES`], and ending at one or at the range's end;
/// - hand in memory aligned to [`windlass_io::DIRECT_ALIGNMENT`] where speed matters (any memory
///   works);
/// - when all reads are done, call [`Snapshot::finish_data`], then [`Snapshot::read_log`] until it
///   gives nothing more, then [`Snapshot::ending`];
/// - call [`Snapshot::close`] **before** the backup counts as successful: it is the last chance to
///   learn that the pin did not hold. Dropping releases the pin too, but tells nobody;
/// - call [`Snapshot::complete`] when the backup is durable.
///
/// Order and number of reads are free, also the same stretch twice; reads from several threads run
/// at once and do not allocate.
pub trait Snapshot: Send + Sync + fmt::Debug {
    /// Which database this is.
    fn identity(&self) -> &DatabaseIdentity;

    /// Where in its history the snapshot stands, as far as known before [`Snapshot::ending`].
    fn position(&self) -> Position;

    /// The files, in the order of their numbers; at least one.
    fn files(&self) -> &[SourceFile];

    /// The stretches of a file worth reading, ascending and disjoint, each beginning at a multiple
    /// of the extent size and ending at one or at the file's end. What lies between them is not part
    /// of the backup and is zero after a restore. Empty for an unknown file, a file of 0 bytes, and
    /// a log file.
    fn ranges(&self, file_id: u16) -> Vec<Range<u64>>;

    /// Fills `buffer` with the file's bytes from `offset` on, as of the snapshot.
    fn read(&self, file_id: u16, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let outcome = match self.located(file_id, offset, buffer.len())? {
            Some(file) => file.read_at(buffer, offset),
            None => Ok(0),
        };
        self.amend(file_id, offset, buffer, outcome)
    }

    /// The file in which a stretch lies at the same offset, for callers that keep many reads in flight.
    ///
    /// What they read there is not the snapshot yet: [`Snapshot::amend`] makes it so. `None` where
    /// nothing of the stretch is to be read from a file.
    fn located(
        &self,
        file_id: u16,
        offset: u64,
        bytes: usize,
    ) -> Result<Option<Arc<DirectFile>>, Error>;

    /// Makes bytes that were read from [`Snapshot::located`] those of the snapshot.
    /// `outcome` is what the read gave: bytes filled, fewer at the end of the file, or its failure.
    fn amend(
        &self,
        file_id: u16,
        offset: u64,
        buffer: &mut [u8],
        outcome: io::Result<usize>,
    ) -> Result<(), Error>;

    /// Verifies the database's own page checksums in bytes that [`Snapshot::read`] gave for the same
    /// stretch, and names the number of each damaged page, counted as the product counts.
    ///
    /// A database without page checksums of its own has nothing to verify: see
    /// [`Snapshot::has_page_checksums`].
    fn check_pages(&self, file_id: u16, offset: u64, bytes: &[u8], on_bad: &mut dyn FnMut(u64));

    /// Whether the pages carry checksums of their own.
    fn has_page_checksums(&self) -> bool;

    /// What the content looks like.
    fn content(&self) -> Content {
        Content::Database
    }

    /// Whether the snapshot shows one state throughout, so that [`crate::check`] can open it.
    fn is_frozen(&self) -> bool {
        true
    }

    /// Whether the database itself knows which extents changed since its differential base. Of any
    /// other, a full backup keeps digests to compare with.
    fn tracks_changes(&self) -> bool {
        false
    }

    /// Time and work of each step that the source takes itself, complete when the backup is; `None`
    /// of a source without steps.
    fn phases(&self) -> Option<Arc<Mutex<Vec<PhaseReport>>>> {
        None
    }

    /// For how long the database's writers are shut out; `None` where they are not.
    fn writers_held(&self) -> Option<WritersHeld> {
        None
    }

    /// Every stretch has been read: the state that the backup shows is the one of this moment.
    fn finish_data(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Puts the next bytes of the log into `buffer`; `None` at its end, and where there is no log.
    fn read_log(&self, buffer: &mut [u8]) -> Result<Option<LogPiece>, Error> {
        let _ = buffer;
        Ok(None)
    }

    /// What only the end of the copy tells; `None` when all was known before.
    fn ending(&self) -> Result<Option<Ending>, Error> {
        Ok(None)
    }

    /// Releases the pin and confirms that it held to the end.
    fn close(&self) -> Result<(), Error>;

    /// The backup is durable as backup set `set`: it may become the differential base.
    fn complete(&self, set: Guid) -> Result<(), Error> {
        let _ = set;
        Ok(())
    }
}
