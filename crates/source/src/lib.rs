//! What a backup reads and what a restore writes: one trait each, and their implementations.
//!
//! - [`SourceDatabase`]: a database of either kind, from which snapshots are taken.
//! - [`Snapshot`]: one committed state of a database, pinned, read by many threads at once.
//! - [`RestoreTarget`]: a database being restored, written by many threads at once.
//! - [`Protection`]: how well a set is protected against forgery, and which sets may follow it.
//! - [`check`]: `SQLite`'s own check of a snapshot.
//! - [`sqlite`]: `SQLite` files, in use or not.
//! - [`engine`]: databases of the page engine.
//! - [`ownership`]: which registered database a file was made for.
//!
//! Neighbours: `pipeline` above uses both traits and no implementation; `io` below is the interface to
//! the operating system. Of `media` only [`SourceKind`](windlass_media::SourceKind) and
//! [`SetType`](windlass_media::SetType) are used, and the position in a log. Of `codec` only the spool of a follower has
//! use; nothing here depends on T-SQL.
//!
//! Invariants:
//! 1. [`Snapshot::read`] gives the bytes of the pinned state or an error, whatever other processes
//!    do meanwhile.
//! 2. A database that is only backed up is never changed: no checkpoint, no attribute, no new file
//!    next to it (the one exception, a crashed writer's hot journal, is `SQLite`'s own recovery).
//! 3. The name of a restore's target always leads to the old database or to the complete new one,
//!    wherever the restore stops.

pub mod check;
mod content;
mod database;
pub mod engine;
mod error;
mod log_only;
pub mod ownership;
mod protection;
mod source;
pub mod sqlite;
mod target;

pub use content::{FIRST_BYTES, begins_database, part_of_database};
pub use database::{Opened, SourceDatabase};
pub use error::{Alias, Error, Obstacle, WalDamage};
pub use ownership::Left;
pub use protection::{Protection, Sealing};
pub use source::{
    Content, CopiedSet, DatabaseIdentity, Depth, Ending, FileKind, FileRanges, LogPiece, Position,
    RecoveryModel, Snapshot, SourceFile, TemporaryCopy, WritersHeld, created_ns, ranges_of,
};
pub use target::{Recovery, RestoreTarget};
