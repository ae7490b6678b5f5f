//! Microsoft Tape Format 1.00a, and the data that Windlass stores in it. Bytes in, values out; no
//! I/O.
//!
//! `docs/format/media.md` defines the format; this crate is one implementation of it.
//!
//! - [`FamilyWriter`]: values to bytes, strictly sequential.
//! - [`FamilyReader`]: bytes to values; hostile input gives errors, never a panic, and never an
//!   allocation larger than a named maximum.
//! - [`MediaHeader`], [`SetConfiguration`], [`ChunkHeader`], [`IndexSegment`], [`SetEnd`]: the values.
//!
//! Invariants:
//! 1. Each byte of an intact set is covered by a checksum, or is padding that a reader requires to
//!    be zero.
//! 2. A set is complete on a family if and only if its `ESET` block exists and is valid.
//! 3. The last block of an intact family is a filemark that leads to every set.
#![forbid(unsafe_code)]
#![warn(clippy::indexing_slicing)]

mod chunk;
mod configuration;
pub mod craft;
mod cursor;
mod error;
mod filemark;
mod fuzzing;
mod header;
mod held;
mod index;
mod listing;
mod mtf;
mod proof;
mod reader;
mod record;
mod set_blocks;
mod set_walk;
mod streams;
#[cfg(test)]
mod tests;
mod wal_position;
mod writer;

pub use chunk::{
    CHUNK_BYTES_MAX, ChunkHeader, ChunkKind, PAYLOAD_DIGEST_BYTES, RUNS_MAX, Run, TAG_BYTES,
    chunk_mix,
};
pub use configuration::{
    DatabaseFile, FILES_MAX, FileMode, Seen, SetConfiguration, SetType, SourceKind,
};
pub use error::{MediaError, ReadError};
pub use fuzzing::fuzz_family;
pub use header::{
    BLOCK_BYTES, FAMILIES_MAX, FIRST_BYTES, FORMAT_VERSION, MediaHeader, SOFTWARE_NAME, VENDOR_ID,
    begins_backup, begins_medium,
};
pub use held::{HELD_BYTES_MAX, Held, HeldRuns};
pub use index::{IndexEntry, IndexSegment, SEGMENT_CHUNKS_MAX};
pub use listing::{Listing, SetListing};
pub use proof::FinalConfiguration;
pub use reader::FamilyReader;
pub use set_blocks::SetEnd;
pub use set_walk::WalkedSet;
pub use streams::ReadAt;
pub use wal_position::WalPosition;
pub use writer::{AppendPosition, FamilyWriter};
