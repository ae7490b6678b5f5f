//! The reading side: a pinned state of a database.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use windlass_base::{Guid, Lsn, Moment};
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
    /// Octets per page; 0 when the content does not tell.
    pub page_bytes: u32,
    /// The recovery model.
    pub recovery_model: RecoveryModel,
    /// What manages the database, for instance `SQLite`.
    pub product: &'static str,
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
    /// Octets per page of this file.
    pub page_bytes: u32,
}

/// One committed state of a database, pinned from opening until closing.
///
/// What callers owe:
/// - ask [`Snapshot::read`] only for stretches within [`Snapshot::ranges`], beginning at a multiple
///   of [`windlass_base::EXTENT_BYTES`], and ending at one or at the range's end;
/// - hand in memory aligned to [`windlass_io::DIRECT_ALIGNMENT`] where speed matters (any memory
///   works);
/// - call [`Snapshot::close`] when everything has been read and **before** the backup counts as
///   successful: it is the last chance to learn that the pin did not hold. Dropping releases the pin
///   too, but tells nobody.
///
/// Order and number of reads are free, also the same stretch twice; reads from several threads run
/// at once and do not allocate.
pub trait Snapshot: Send + Sync + fmt::Debug {
    /// Which database this is.
    fn identity(&self) -> &DatabaseIdentity;

    /// Where in its history the snapshot stands.
    fn position(&self) -> Position;

    /// The files, in the order of their numbers; at least one.
    fn files(&self) -> &[SourceFile];

    /// The stretches of a file worth reading, ascending and disjoint, each beginning at a multiple
    /// of the extent size and ending at one or at the file's end. What lies between them is not part
    /// of the backup and is zero after a restore. Empty for an unknown file or a file of 0 octets.
    fn ranges(&self, file_id: u16) -> Vec<Range<u64>>;

    /// Fills `buffer` with the file's octets from `offset` on, as of the snapshot.
    fn read(&self, file_id: u16, offset: u64, buffer: &mut [u8]) -> Result<(), Error>;

    /// The file in which a stretch lies at the same offset, for callers that keep many reads in flight.
    ///
    /// What they read there is not the snapshot yet: [`Snapshot::amend`] makes it so. `None` where
    /// only [`Snapshot::read`] will do, for instance when all of the stretch lies elsewhere.
    fn located(
        &self,
        file_id: u16,
        offset: u64,
        bytes: usize,
    ) -> Result<Option<Arc<DirectFile>>, Error> {
        let _ = (file_id, offset, bytes);
        Ok(None)
    }

    /// Makes octets that were read from [`Snapshot::located`] those of the snapshot.
    /// `outcome` is what the read gave: octets filled, fewer at the end of the file, or its failure.
    fn amend(
        &self,
        file_id: u16,
        offset: u64,
        buffer: &mut [u8],
        outcome: io::Result<usize>,
    ) -> Result<(), Error> {
        drop(outcome);
        self.read(file_id, offset, buffer)
    }

    /// Verifies the database's own page checksums in octets that [`Snapshot::read`] gave for the same
    /// stretch, and names the number of each damaged page, counted as the product counts.
    ///
    /// A database without page checksums of its own has nothing to verify: see
    /// [`Snapshot::has_page_checksums`].
    fn check_pages(&self, file_id: u16, offset: u64, octets: &[u8], on_bad: &mut dyn FnMut(u64));

    /// Whether the pages carry checksums of their own.
    fn has_page_checksums(&self) -> bool;

    /// Releases the pin and confirms that it held to the end.
    fn close(self: Box<Self>) -> Result<(), Error>;
}
