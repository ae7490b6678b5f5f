//! Errors of the page engine: what failed, where, and what to do.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_base::panic::Panicked;
use windlass_base::{FilePage, Guid, Lsn, PageNumber};

use crate::log::LogReuseWait;
use crate::options::RecoveryModel;

pub type Result<T> = std::result::Result<T, EngineError>;

/// An error of the page engine.
///
/// Cloneable, because one failed log sync is the result of every commit that waited for it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EngineError {
    /// Another write transaction is open on the database. Retry when it has ended.
    #[error("another transaction is writing to database '{database}'")]
    Busy { database: String },
    /// The snapshot is older than the last commit; a transaction cannot be based on it.
    #[error("database '{database}' was changed after the snapshot was taken; begin again")]
    BusySnapshot { database: String },
    /// The operating system rejected an operation on a file.
    #[error("{operation} '{}': {source}", path.display())]
    Io {
        operation: &'static str,
        path: PathBuf,
        source: Arc<io::Error>,
    },
    /// The log has no space for the transaction and may not grow. Nothing was changed.
    #[error(
        "the transaction log of database '{database}' is full: {needed} bytes needed, {free} \
         free; {reason}"
    )]
    LogFull {
        database: String,
        /// Bytes the transaction needs, including the reserve for a checkpoint.
        needed: u64,
        /// Bytes that can be written.
        free: u64,
        /// What keeps the log from being reused.
        wait: LogReuseWait,
        /// Why the log is full, and what to do.
        reason: String,
    },
    /// A data file has no space and may not grow. Nothing was changed.
    #[error("file '{file}' of database '{database}' is full: {reason}")]
    FileFull {
        database: String,
        file: String,
        reason: String,
    },
    /// The checksum of a page read from disk is wrong (SQL Server's 824).
    #[error(
        "page {page} of database '{database}' is damaged: page {} of file {} \
         ('{}') has checksum {found:016x}, expected {expected:016x}",
        file_page.page, file_page.file_id, path.display()
    )]
    PageChecksum {
        database: String,
        page: PageNumber,
        /// The same page by its place.
        file_page: FilePage,
        /// Physical name of the file.
        path: PathBuf,
        /// Checksum computed from the content.
        expected: u64,
        /// Checksum stored in the page.
        found: u64,
    },
    /// The database was taken offline by an earlier failure; open it again to recover.
    #[error("database '{database}' is offline: {reason}")]
    Offline {
        database: String,
        /// The failure that took it offline.
        reason: String,
    },
    /// The database was opened for readers only.
    #[error("database '{database}' is read-only: it waits for further restores")]
    ReadOnly { database: String },
    /// The log is that of another database than the expected one. Nothing was changed.
    #[error(transparent)]
    OtherDatabase(Box<OtherDatabase>),
    /// A commit is in the log, but the database failed before it was acknowledged.
    #[error(
        "{source}; whether the transaction is committed shows when the database is opened again"
    )]
    OutcomeOpen { source: Box<EngineError> },
    /// A file of the database is locked by another program or instance.
    #[error(
        "'{}' is in use: a server (windlass serve) or another instance has the database open, or another program, such as \
         SQLite, reads or writes the file. Ask the server with windlass sql, or try again when that program has ended", path.display()
    )]
    InUse { path: PathBuf },
    /// Another process is creating a file of this name.
    #[error("'{}' cannot be created: {source}", path.display())]
    BeingMade {
        path: PathBuf,
        /// Who.
        source: Arc<io::Error>,
    },
    /// The page is outside the snapshot or transaction.
    #[error("page {page} is outside of database '{database}', which has {page_count} pages")]
    NoSuchPage {
        database: String,
        page: PageNumber,
        /// Pages of the snapshot.
        page_count: u32,
    },
    /// A file does not have the expected content.
    #[error("'{}': {what}", path.display())]
    Corrupt {
        path: PathBuf,
        /// What was expected and what was found.
        what: String,
    },
    /// A data file and the log are from different moments.
    #[error("'{}' does not belong to the other files of its database: {why}", path.display())]
    FilesDiffer {
        path: PathBuf,
        /// What shows it.
        why: &'static str,
    },
    /// A data file is shorter than it was.
    #[error("'{}' has {found} bytes, but the database has at least {expected} in it", path.display())]
    FileTooShort {
        path: PathBuf,
        found: u64,
        expected: u64,
    },
    /// Old page versions that open snapshots need exceed their limit. Nothing was changed.
    #[error(
        "the page versions kept for readers of database '{database}' exceed {limit} bytes; \
         end the oldest readers"
    )]
    VersionsFull { database: String, limit: u64 },
    /// Every buffer of the pool is dirty and cannot be written.
    #[error("no free buffer in the buffer pool of {pool_pages} pages: {reason}")]
    NoFreeBuffer {
        pool_pages: u64,
        /// Why none could be freed.
        reason: String,
    },
    /// A page that cannot be restored on its own. Nothing was written.
    #[error("page {page} of database '{database}' cannot be restored: {refusal}")]
    PageRefused {
        database: String,
        page: FilePage,
        refusal: PageRefusal,
    },
    /// Pages whose extents changed after the full backup that is the base of the differential map:
    /// the backup does not have their current content. Nothing was written.
    #[error(
        "the extents of {} pages of database '{database}' have changed since the full backup, the \
         first is page {}",
        pages.len(), pages.first().map_or_else(String::new, FilePage::to_string)
    )]
    PagesChanged {
        database: String,
        /// The pages; never empty.
        pages: Vec<FilePage>,
    },
    /// The set is not the full backup that is the base of the differential map.
    #[error(
        "backup set {set} is not the differential base of database '{database}', which is {}",
        if base.is_nil() { "unknown".to_owned() } else { base.to_string() }
    )]
    NotTheBase {
        database: String,
        set: Guid,
        /// The differential base; nil when there is none.
        base: Guid,
    },
    /// The database has no chain of log backups.
    #[error("database '{database}' has the recovery model {model} and no chain of log backups")]
    NoLogChain {
        database: String,
        model: RecoveryModel,
    },
    /// A log backup that cannot be applied to a database being restored. Nothing was changed.
    #[error("the log backup cannot be applied to database '{database}': {refusal}")]
    LogRefused {
        database: String,
        refusal: LogRefusal,
    },
    /// A backup of the database is running. Retry when it has ended.
    #[error("a backup of database '{database}' is under way")]
    BackupRunning { database: String },
    /// A defect in this program: one of its threads panicked.
    #[error(transparent)]
    Panicked(#[from] Panicked),
    /// An invalid option or argument.
    #[error("{0}")]
    Invalid(String),
}

/// The database whose files have the names of another's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{}' is the log of database '{name}' with the identity {found}, not of database '{database}' \
     with the identity {expected}", log.display()
)]
pub struct OtherDatabase {
    /// The database that was to be opened.
    pub database: String,
    /// Its identity.
    pub expected: Guid,
    pub log: PathBuf,
    /// The name in the log.
    pub name: String,
    /// The identity in the log.
    pub found: Guid,
}

/// Why a page cannot be restored on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PageRefusal {
    /// The page does not exist now.
    #[error("it lies beyond the end of the file")]
    BeyondEnd,
    /// The page is in the log file, which has no pages.
    #[error("it is in the log file")]
    InLog,
    /// The backup set does not contain it.
    #[error("the backup set does not hold it")]
    NotInSet,
    /// It is also damaged in the backup set.
    #[error("its checksum in the backup set is {found:016x}, expected {expected:016x}")]
    Damaged {
        /// Checksum computed from the content.
        expected: u64,
        /// Checksum stored in the page.
        found: u64,
    },
}

/// Why a log backup cannot be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LogRefusal {
    /// Log between the state and the set is missing.
    #[error("it begins at {first:#}, but the database was restored up to {reached:#}")]
    TooRecent { first: Lsn, reached: Lsn },
    /// The state is already behind its end.
    #[error("it ends at {last:#}, but the database was restored up to {reached:#}")]
    TooEarly { last: Lsn, reached: Lsn },
    /// The state is of another history.
    #[error("it belongs to another recovery fork")]
    OtherFork,
    /// The blocks do not continue those that were restored before.
    #[error("its blocks do not continue what was restored up to {reached:#}")]
    Discontinuous { reached: Lsn },
    /// The point to stop at is before the state.
    #[error("the point to stop at is before {reached:#}, up to which the database was restored")]
    StopPassed { reached: Lsn },
    /// Behind the first commit that is later than the time to stop at, one is not: the clock was set back.
    #[error(
        "the commit at {later:#} is later than the time to stop at, and the one at {earlier:#} after it is not"
    )]
    TimesContradict { later: Lsn, earlier: Lsn },
    /// An interrupted restore may have gone further than this one would.
    #[error("an interrupted restore may have gone beyond the point to stop at, up to {applied:#}")]
    GoneFurther { applied: Lsn },
}

impl EngineError {
    /// Wraps an error of the operating system.
    pub fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            operation,
            path: path.to_owned(),
            source: Arc::new(source),
        }
    }

    /// Like [`EngineError::io`], for locks: a file locked by another process gets its own error.
    pub(crate) fn lock(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::WouldBlock => Self::InUse {
                path: path.to_owned(),
            },
            _ => Self::io("lock", path, source),
        }
    }

    /// What happened, whether or not it leaves open if a transaction is committed.
    pub fn cause(&self) -> &Self {
        match self {
            Self::OutcomeOpen { source } => source,
            other => other,
        }
    }

    /// Whether the disk had no room.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Io { source, .. } => source.kind() == io::ErrorKind::StorageFull,
            Self::FileFull { .. } => true,
            _ => false,
        }
    }
}
