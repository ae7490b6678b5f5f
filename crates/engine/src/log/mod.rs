//! The write-ahead log: groups of redo records in checksummed blocks, in virtual log files.
//!
//! Layout in `docs/format/engine.md`. Parts: [`record`] the content of a group, [`block`] its
//! blocks, [`header`] the two header slots, [`vlf`] the parts of the file, `space` which of them
//! are in use, [`writer`] append and group commit, [`reader`] reading,
//! [`replay`] what recovery finds.
//!
//! Invariants:
//! - A group counts once its last block is in the log. Blocks are written in order, and a group is
//!   acknowledged only after a sync that covers it; the acknowledged groups are therefore a prefix
//!   of the log.
//! - A synced sector of the log is not written again before its virtual log file is reused.
//! - A virtual log file is reused only after a header with a later redo start was synced; in the recovery
//!   model FULL, also with a later start of the tail, which a log backup moves once its set is durable.
//! - Every block contains the checksum of the previous block, its own position and the epoch of the
//!   recovery after which it was written, and epochs never decrease along the chain. Blocks that a
//!   crash left after the end can therefore never become part of the log again.
//! - After a failed write or sync, nothing more is written: the database is offline.

pub(crate) mod block;
pub(crate) mod header;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod replay;
mod space;
pub(crate) mod vlf;
pub(crate) mod writer;

use std::fmt;

use windlass_base::Lsn;

/// Position of a block in the log: virtual log file and 512-byte block, ordered, in one word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Position(pub u64);

impl Position {
    /// Position of block `block` of virtual log file `vlf`.
    pub fn new(vlf: u32, block: u32) -> Self {
        Self(u64::from(vlf) << 32 | u64::from(block))
    }

    /// Sequence number of the virtual log file.
    pub fn vlf(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Block within it, in units of 512 bytes.
    pub fn block(self) -> u32 {
        self.0 as u32
    }

    /// The log sequence number of record `slot` of this block.
    pub fn lsn(self, slot: u16) -> Lsn {
        Lsn {
            vlf: self.vlf(),
            block: self.block(),
            slot,
        }
    }
}

/// The tail of the log: what no log backup has yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tail {
    /// Where the next log backup begins.
    pub(crate) start: Position,
    /// Checksum of the block before, with which its first block must continue.
    pub(crate) previous: u64,
}

/// What keeps the log from being reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogReuseWait {
    Nothing,
    /// A checkpoint has not moved the redo start yet.
    Checkpoint,
    /// No log backup has it yet.
    LogBackup,
    /// A backup under way needs it.
    ActiveBackup,
}

impl fmt::Display for LogReuseWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "NOTHING",
            Self::Checkpoint => "CHECKPOINT",
            Self::LogBackup => "LOG_BACKUP",
            Self::ActiveBackup => "ACTIVE_BACKUP_OR_RESTORE",
        })
    }
}

impl From<Lsn> for Position {
    fn from(lsn: Lsn) -> Self {
        Self::new(lsn.vlf, lsn.block)
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.vlf(), self.block())
    }
}
