//! The words every other crate speaks: identities, positions, sizes, checksums and messages.
//!
//! Pure values: no I/O, no clock, no randomness of its own. Everything that is stored on media or
//! compared across files is a type of its own here, so that a family number cannot be taken for a
//! set number.
//!
//! - [`Lsn`]: a log sequence number as SQL Server composes and prints it.
//! - [`Guid`]: a 16-byte identity, printed as SQL Server prints `uniqueidentifier`.
//! - [`Moment`]: a local date and time with the precision of media headers.
//! - [`mod@checksum`]: the one checksum of our formats, and the digest that finds changed extents.
//! - [`rate`]: a limit on bytes per second.
//! - [`size`]: bytes, rates and durations for people.
//! - [`mod@panic`]: panics of threads as errors.
//! - [`message`]: the single table of numbered messages.
//! - [`mod@visible`]: text for people in which nothing acts on their terminal.
#![forbid(unsafe_code)]

pub mod checksum;
mod guid;
mod lsn;
pub mod message;
mod moment;
pub mod panic;
pub mod rate;
pub mod size;
pub mod visible;

pub use checksum::{ChecksumBuilder, Digest, checksum, digest, hash};
pub use guid::Guid;
pub use lsn::Lsn;
pub use message::{Message, Severity};
pub use moment::{Moment, local_now};
pub use visible::visible;

/// Bytes in an extent, the unit in which backups think of database files.
pub const EXTENT_BYTES: usize = 64 * 1024;

/// Bytes in a page of SQL Server and of the page engine; the unit in which messages count pages.
pub const PAGE_BYTES: u64 = 8192;
