//! What a follower tells of itself.

use std::fmt;

/// What is held of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Following {
    /// A read mark: the log cannot be restarted.
    Mark,
    /// Read lock 0: new frames cannot be checkpointed.
    Zero,
    /// Nothing: the log is about to be restarted.
    LetGo,
    /// A read mark, because the spool has no room: the log grows.
    Held,
    /// Nothing: the spool has no room.
    SpoolFull,
    /// Nothing: the database is left to a restore.
    Away,
    /// Nothing: the database cannot be opened.
    #[default]
    NotOpen,
}

impl fmt::Display for Following {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mark => "mark",
            Self::Zero => "zero",
            Self::LetGo => "let go",
            Self::Held => "held, spool full",
            Self::SpoolFull => "spool full",
            Self::Away => "away",
            Self::NotOpen => "not open",
        })
    }
}

/// Counters since the follower began, and the state of the spool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FollowStatus {
    pub following: Following,
    /// Commits in the spool, from its beginning.
    pub commit_number: u64,
    /// Time of the newest durable moment, in microseconds since 1970, UTC.
    pub time_us: u64,
    /// Moments that were made.
    pub moments: u64,
    /// Frames that were read.
    pub frames: u64,
    /// How often nothing was held, so that the log could be restarted.
    pub let_goes: u64,
    /// How often it was proven afterwards, or at a start, that nothing was missed.
    pub proofs: u64,
    /// How often not.
    pub gaps: u64,
    pub last_gap: Option<String>,
    /// When the last of them ended; in microseconds since 1970, UTC.
    pub last_gap_us: u64,
    /// Why the database is not followed right now.
    pub last_error: Option<String>,
    /// Bytes of the log that are not in the spool yet.
    pub lag_bytes: u64,
    /// For how long they have waited, at most.
    pub lag_us: u64,
    /// Bytes of frames in the log.
    pub log_bytes: u64,
    pub spool_bytes: u64,
    /// Processor time of the calling thread, in microseconds: of the follower, if it has a thread of its own.
    pub cpu_us: u64,
}
