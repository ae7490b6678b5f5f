//! Backups that SQL Server wrote: bytes in, values out; no I/O.
//!
//! The layout is described in `docs/sql-server-bak.md`.
//!
//! - [`Container`], [`PlainStream`]: plain or compressed, one stream.
//! - [`walk`]: the descriptor blocks, streams and data of a file, each given to a [`Visit`].
//! - [`Listing`]: what a media family says of itself and of its sets; [`columns`] are the result sets.
//! - [`Verifier`]: RESTORE VERIFYONLY.
//! - [`Rebuilder`]: the files of the database again, into a [`Target`].
//! - [`Census`]: what lies where in a file, and what its pages hold.
//!
//! - [`table`]: the tables of the database, from its pages.
//!
//! Invariants:
//! 1. Input is read forward and once, so that a pipe will do.
//! 2. No bytes whatever make it panic; what is kept in memory is bounded by what was read, and every
//!    length in the input is compared with a limit before anything is allocated.
//! 3. Nothing is guessed silently: what was not checked is named, as is what was found damaged.
#![forbid(unsafe_code)]
#![warn(clippy::indexing_slicing)]

mod census;
mod checksum;
mod collation;
pub mod columns;
mod container;
mod error;
mod extents;
mod fields;
#[doc(hidden)]
pub mod fuzzing;
mod listing;
mod mtf;
pub mod page;
mod rebuild;
pub mod table;
mod verify;
mod visit;
mod walk;

pub use census::{Census, Entry, FileCensus, page_type_name};
pub use checksum::{page_checksum, restore_torn_bits, torn_bits_agree};
pub use collation::code_page;
pub use container::{
    Container, Input, PlainStream, RECOGNISE_BYTES, RECORD_HEADER_BYTES, SeekInput,
};
pub use error::{Damage, Error, Finding, PageId, Place};
pub use extents::{ExtentIndex, ExtentReader, Location};
pub use listing::{Listing, SetListing};
pub use mtf::Tag;
pub use mtf::configuration::{BackupType, Configuration, FileGroup, FileKind, StoredFile};
pub use mtf::log::VirtualLog;
pub use mtf::media::MediaHeader;
pub use mtf::set::SetHeader;
pub use rebuild::{Rebuilder, Rebuilt, Target};
pub use verify::{Checked, FileFinding, Verified, Verifier};
pub use visit::{Block, ExtentPlace, Stream, Visit};
pub use walk::{Walked, walk};
