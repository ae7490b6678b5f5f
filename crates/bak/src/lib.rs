//! Reads backups written by SQL Server: bytes in, values out; no I/O.
//!
//! The layout is described in `docs/sql-server-bak.md`.
//!
//! - [`Container`], [`PlainStream`]: plain or compressed, one stream.
//! - [`walk`]: passes the descriptor blocks, streams and data of a file to a [`Visit`].
//! - [`Listing`]: the headers of a media family and its sets; [`columns`] has the result sets.
//! - [`Verifier`]: RESTORE VERIFYONLY.
//! - [`Census`]: the position of each block and stream in a file, and the types of its pages.
//! - [`Outline`], [`StreamReader`], [`Original`]: what a copy of a file in other media needs.
//! - [`table`]: the tables of the database, from its pages.
//! - [`Transactions`]: the transactions in the log that had not ended, and what they changed.
//!
//! Invariants:
//! 1. Input is read once and forward, so that a pipe is enough.
//! 2. No input makes it panic. Memory is limited by the bytes read, and every length in the input
//!    is compared with a limit before anything is allocated.
//! 3. Nothing is assumed silently: anything not checked, and anything found damaged, is reported.
#![forbid(unsafe_code)]
#![warn(clippy::indexing_slicing)]

mod census;
mod checksum;
mod collation;
pub mod columns;
mod container;
pub mod data_file;
mod error;
mod extents;
mod fields;
#[doc(hidden)]
pub mod fuzzing;
mod listing;
mod mtf;
mod original;
mod outline;
pub mod page;
mod rebuild;
mod stream_reader;
pub mod table;
mod transactions;
mod verify;
mod visit;
mod walk;

pub use census::{Census, Entry, FileCensus, ObjectCensus, PartKind, Picture, page_type_name};
pub use checksum::{page_checksum, restore_torn_bits, torn_bits_agree};
pub use collation::code_page;
pub use container::{
    Container, Input, PlainStream, RECOGNISE_BYTES, RECORD_HEADER_BYTES, SeekInput,
};
pub use error::{Damage, Error, Finding, PageId, Place, VersionWords};
pub use extents::{ExtentIndex, ExtentReader, Location};
pub use listing::{Listing, SetListing};
pub use mtf::Tag;
pub use mtf::configuration::{BackupType, Configuration, FileGroup, FileKind, StoredFile};
pub use mtf::log::VirtualLog;
pub use mtf::media::MediaHeader;
pub use mtf::set::SetHeader;
pub use original::{CopiedFamily, Original};
pub use outline::{Outline, OutlinedSet};
pub use rebuild::{Rebuilder, Rebuilt, Target};
pub use stream_reader::StreamReader;
pub use transactions::{
    Begin, OpenTransaction, PageChanges, RowChanges, TransactionId, Transactions,
};
pub use verify::{Checked, FileFinding, Verified, Verifier};
pub use visit::{Block, ExtentPlace, Stream, Visit};
pub use walk::{Walked, walk};
