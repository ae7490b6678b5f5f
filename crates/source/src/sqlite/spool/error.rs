//! Errors of following a database, and of the spool.

use std::path::PathBuf;

use windlass_base::Lsn;
use windlass_media::WalPosition;

use crate::Error;

/// Why a database cannot be followed, or its spool not be used.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    #[error(
        "'{}' is not in WAL mode, and only a write-ahead log can be followed (PRAGMA journal_mode = WAL); \
         for other databases, make differential backups", path.display()
    )]
    NotWal { path: PathBuf },
    #[error(
        "'{}' can be followed only by its owner or by root, because a follower of another user would leave \
         files that lock the owner out", path.display()
    )]
    NotOwner { path: PathBuf },
    #[error("another follower writes to '{}'; one folder has one follower", folder.display())]
    InUse { folder: PathBuf },
    #[error(
        "'{}' has the spool of '{found}', not of '{expected}'; give each database a folder of its own",
        folder.display()
    )]
    OfOther {
        folder: PathBuf,
        found: String,
        expected: String,
    },
    #[error("the follower of '{}' does not answer; is it stopped?", folder.display())]
    NoAnswer { folder: PathBuf },
    #[error(
        "the newest commit of '{}' cannot be reached: {reason}. What was captured before can be backed up WITH \
         NO_TRUNCATE", path.display()
    )]
    NotReached { path: PathBuf, reason: String },
    #[error("'{}' has no spool of a follower", folder.display())]
    Empty { folder: PathBuf },
    #[error("'{}' was written in version {found} of the spool's format; this program knows {known}", path.display())]
    Version {
        path: PathBuf,
        found: u16,
        known: u16,
    },
    #[error(
        "'{}' is damaged at byte {offset}: {defect}. What was captured before it can be restored, to a moment \
         or commit before it", path.display()
    )]
    Damaged {
        path: PathBuf,
        offset: u64,
        defect: &'static str,
    },
    #[error(
        "the backup has no position in a write-ahead log: {reason}. Make a new full backup while the follower runs"
    )]
    NoPosition { reason: &'static str },
    #[error(
        "the state of the backup ({position}) is not one that the spool in '{}' has seen{}. The backup was \
         made before the follower began, during a gap, or of another database",
        folder.display(), range_text(.ranges)
    )]
    NotTied {
        folder: PathBuf,
        position: WalPosition,
        /// What the spool has.
        ranges: Vec<String>,
    },
    #[error("{wanted} was not captured: {why}. Nearest before: {before}; nearest after: {after}")]
    NotCaptured {
        wanted: String,
        why: String,
        before: String,
        after: String,
    },
    #[error(
        "the spool in '{}', or the segment that is written, was removed, replaced or cut off; what was in it since the \
         last log backup is lost", folder.display()
    )]
    Gone { folder: PathBuf },
    #[error(
        "the log of a SQLite database has no marks and no LSNs to stop at; stop at a time (STOPAT)"
    )]
    NoMarks,
    #[error("the backup set does not describe its log in a form that this version knows")]
    NotDescribed,
    #[error(
        "the log in this backup set is of another database than the one that is being restored"
    )]
    OtherHistory,
    #[error("the log begins at LSN {first}, and the database has the state of LSN {needed}")]
    TooRecent { first: Lsn, needed: Lsn },
    #[error("the log ends at LSN {last}, and the database has the state of LSN {needed}")]
    TooEarly { last: Lsn, needed: Lsn },
    #[error("cannot compress or expand pages: {0}")]
    Codec(windlass_codec::Error),
}

impl SpoolError {
    /// As an error of this crate.
    pub(in crate::sqlite) fn told(self) -> Error {
        Error::Spool(self)
    }
}

fn range_text(ranges: &[String]) -> String {
    match ranges {
        [] => String::new(),
        ranges => format!(", which has {}", ranges.join(", ")),
    }
}
