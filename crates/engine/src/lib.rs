//! A transactional page store for one process: buffer pool, write-ahead log, snapshots, checkpoints.
//!
//! An [`Instance`] owns one buffer pool for all its databases. A [`Database`] has one or more data
//! files of 8 KB pages and one log file. Readers take a [`ReadSnapshot`] and never wait; one
//! [`WriteTransaction`] at a time collects private pages and makes them durable and visible, all or
//! none, with `commit`. [`Backup`] copies a database at the same time.
//!
//! ```text
//!  ReadSnapshot   WriteTransaction        Backup
//!       |               | commit             | ranges, log
//!       v               v                    v
//!   versions <---- pool <---- log ----> (log file)
//!                   |  dirty pages           ^
//!                   v                        | redo start
//!               dispenser ----> (data files) checkpoint, recovery writer
//! ```
//!
//! Invariants:
//! - A commit that returned is on disk; one that did not return is on disk completely or not at
//!   all.
//! - A page goes to its data file only after its log records are on disk.
//! - The log keeps everything from the redo start on, and that is enough to repair any data page
//!   that a crash tore or left unwritten.
//! - In the recovery model FULL, the log also keeps everything that no log backup has.
//! - When a sync fails the database goes offline for good; no commit that may be lost is ever
//!   acknowledged.
//!
//! `database` lists the parts of a database and the invariants that each of them owns.
//!
//! Formats: `docs/format/engine.md`. The simulation in `windlass-sim` tests the invariants.
#![forbid(unsafe_code)]

mod backup;
mod database;
mod differential;
mod dirty;
mod dispenser;
mod error;
mod files;
mod instance;
mod log;
#[cfg(all(test, feature = "model"))]
mod model;
mod opening;
mod options;
mod pool;
mod stamps;
pub mod storage;
mod sync;
mod versions;

pub use backup::file_restore::FileRestore;
pub use backup::file_roll::{
    FilePlaces, FileRoll, FileRollBegin, FileRollLog, FilesEnd, FilesSealed,
};
pub use backup::log_check::LogCheck;
pub use backup::offline::LogIdentity;
pub use backup::page_roll::{PageRoll, PageRollBegin, PageRollLog};
pub use backup::restore::{Restore, RestoredFiles};
pub use backup::roll_forward::{Reached, RollForward, Scanned};
pub use backup::staged::RestoredFile;
pub use backup::stop::{StopAt, WantedMark};
pub use backup::{BackupDescription, BackupMode, BackupRange};
pub use database::backup::{Backup, BackupPhase, LogCopy, PhaseReport};
pub use database::checkpoint::{CheckpointKind, CheckpointReport};
pub use database::content::NewContent;
pub use database::counters::Counters;
pub use database::log_backup::{LogBackup, has_unsaved_tail};
pub use database::page_finish::PagesEnded;
pub use database::page_restore::PageRestore;
pub use database::read::ReadSnapshot;
pub use database::transaction::{Committed, WriteTransaction};
pub use database::{Database, Dress, FileDescription, NewDatabase, complete_creation};
pub use error::{EngineError, LogRefusal, OtherDatabase, PageRefusal, Result};
pub use instance::Instance;
pub use log::header::{DifferentialBase, MAGIC as LOG_MAGIC, MAGIC_KEPT as KEPT_LOG_MAGIC};
pub use log::record::Mark;
pub use log::{LogReuseWait, Position};
pub use options::{CreateDatabase, FileSpec, Growth, InstanceOptions, OpenDatabase, RecoveryModel};
