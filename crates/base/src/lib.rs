//! The types shared by all other crates: identities, positions, sizes, checksums and messages.
//!
//! Pure values without I/O, except for the current local time in [`Moment`]. Everything that is
//! stored on media or compared across files has its own type, so that values of different kinds
//! cannot be confused.
//!
//! - [`Lsn`]: a log sequence number as SQL Server composes and prints it.
//! - [`Guid`]: a 16-byte identity, printed as SQL Server prints `uniqueidentifier`.
//! - [`Moment`]: a local date and time with the precision of media headers.
//! - [`bytes`]: stored fields, read within bounds and appended.
//! - [`page`]: pages, extents, their numbers and those of files, the checksums of SQLite's pages.
//! - [`mod@checksum`]: the one checksum of Windlass's formats, and the digest that finds changed
//!   extents.
//! - [`pattern`]: names that match a pattern with stars.
//! - [`mod@range`]: the numbers that options take.
//! - [`rate`]: a limit on bytes per second.
//! - [`similar`]: the known word that a mistyped one is near to.
//! - [`size`]: bytes, rates and durations in human-readable form.
//! - [`mod@panic`]: panics of threads as errors.
//! - [`mod@word`]: the words that options take as values.
//! - [`message`]: the single table of numbered messages.
//! - [`mod@visible`]: text without characters that act on a terminal.
#![forbid(unsafe_code)]

pub mod at_once;
mod beginning;
pub mod bytes;
pub mod checksum;
mod guid;
mod lsn;
pub mod message;
mod moment;
pub mod page;
pub mod panic;
pub mod pattern;
pub mod range;
pub mod rate;
pub mod similar;
pub mod size;
pub mod visible;
pub mod word;

pub use beginning::{advice_to_unpack, beginning};
pub use checksum::{Blake3Builder, ChecksumBuilder, Digest, blake3, checksum, digest, hash};
pub use guid::Guid;
pub use lsn::Lsn;
pub use message::{Message, Severity};
pub use moment::{
    Moment, MomentError, TimeError, Twice, exact_local_of_unix_ms, json_time, local_now,
    local_of_unix_ms, time_of_text, time_text, unix_ms_of_local,
};
pub use page::{EXTENT_BYTES, ExtentNumber, FileId, FilePage, PAGE_BYTES, PageNumber};
pub use visible::visible;
