//! The codecs of Windlass: bytes to bytes.
//!
//! A *chunk* is the input of one call. Chunks are independent of each other, so that all cores can
//! compress and expand. This crate does no I/O and knows nothing of media or pages; the caller
//! stores checksums, lengths and the numbers of algorithm and filter.
//!
//! Invariants:
//! 1. [`Decoder::decode`] reverses [`Encoder::encode`] for any input.
//! 2. A chunk that would not shrink is reported as [`Stored::Plain`] and stored uncompressed, with
//!    [`Algorithm::None`]: no payload is longer than its chunk.
//! 3. Contexts are created once and reused; after the first call nothing is allocated, except by
//!    the first call with a higher [`Effort`].
//! 4. For any input, a decoder returns an error or the right number of bytes; it neither panics nor
//!    allocates what the input claims.
//!
//! Before its compression a chunk may go through a [`Filter`]: the encoder decides for each chunk
//! whether that pays.
//!
//! The layout of each payload, and the measurements behind every level and frame size, are in
//! `docs/codecs.md`.

mod algorithm;
mod btree;
mod choice;
mod decoder;
mod deflate;
mod effort;
mod encoder;
mod error;
mod filter;
#[doc(hidden)]
pub mod fuzzing;
#[expect(unsafe_code, reason = "allocates for libzstd and the filters")]
mod memory;
mod narrow;
mod provider;
pub mod xpress;
mod zstd;

pub use algorithm::{Algorithm, Compression, Level};
pub use btree::BTreePages;
pub use choice::{FRAME_BYTES_MAX, FRAME_BYTES_MIN};
pub use decoder::Decoder;
pub use effort::Effort;
pub use encoder::{Encoder, Stored};
pub use error::Error;
pub use filter::Filter;
pub use provider::{DeflateFailed, DeflateProvider, RawDeflate};
