//! The words every other crate speaks: identities, positions, sizes, checksums and messages.
//!
//! Pure values: no I/O, no clock, no randomness of its own. Everything that is stored on media or
//! compared across files is a type of its own here, so that a family number cannot be taken for a
//! set number.
//!
//! - [`Lsn`]: a log sequence number as SQL Server composes and prints it.
//! - [`Guid`]: a 16-byte identity, printed as SQL Server prints `uniqueidentifier`.
//! - [`Moment`]: a local date and time with the precision of media headers.
//! - [`bytes`]: stored fields, read within bounds and appended.
//! - [`page`]: pages, extents, file numbers, the checksums of SQLite's pages.
//! - [`mod@checksum`]: the one checksum of our formats, and the digest that finds changed extents.
//! - [`rate`]: a limit on bytes per second.
//! - [`size`]: bytes, rates and durations for people.
//! - [`mod@panic`]: panics of threads as errors.
//! - [`message`]: the single table of numbered messages.
//! - [`mod@visible`]: text for people in which nothing acts on their terminal.
#![forbid(unsafe_code)]

pub mod bytes;
pub mod checksum;
mod guid;
mod lsn;
pub mod message;
mod moment;
pub mod page;
pub mod panic;
pub mod rate;
pub mod size;
pub mod visible;

pub use checksum::{ChecksumBuilder, Digest, checksum, digest, hash};
pub use guid::Guid;
pub use lsn::Lsn;
pub use message::{Message, Severity};
pub use moment::{Moment, local_now};
pub use page::{EXTENT_BYTES, FileId, PAGE_BYTES};
pub use visible::visible;
