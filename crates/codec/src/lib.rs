//! The codecs of Windlass: bytes to bytes.
//!
//! A *chunk* is what one call compresses: independent of every other chunk, so that all cores
//! compress and all cores expand. This crate does no I/O, knows no media and no pages; checksums,
//! lengths and the number of the algorithm are kept by whoever stores the chunk.
//!
//! Invariants:
//! 1. [`Decoder::decode`] of what [`Encoder::encode`] wrote gives the input back, whatever the input.
//! 2. A chunk that would not shrink is reported as [`Stored::Plain`] and stored as it is, with
//!    [`Algorithm::None`]: no payload is ever longer than its chunk.
//! 3. Contexts are made once and reused; a call allocates nothing after the first, unless
//!    it is the first with a higher [`Effort`].
//! 4. A decoder given any bytes whatever returns an error or the right number of bytes; it neither
//!    panics nor allocates by what the input claims.
//!
//! The layout of each payload, and the measurements behind every level and frame size, are in
//! `docs/codecs.md`.

mod algorithm;
mod choice;
mod decoder;
mod deflate;
mod effort;
mod encoder;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod provider;
pub mod xpress;
mod zstd;

pub use algorithm::{Algorithm, Compression, Level};
pub use choice::{FRAME_BYTES_MAX, FRAME_BYTES_MIN};
pub use decoder::Decoder;
pub use effort::Effort;
pub use encoder::{Encoder, Stored};
pub use error::Error;
pub use provider::{DeflateFailed, DeflateProvider, RawDeflate};
