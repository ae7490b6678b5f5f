//! Errors of compression and decompression.

use windlass_base::word::UnknownWord;

use crate::choice::FRAME_BYTES_MAX;
use crate::{Algorithm, Filter};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Text that names no algorithm, or no level.
    #[error(transparent)]
    Word(#[from] UnknownWord),
    /// A level for an algorithm that has none.
    #[error("{algorithm} takes no level; only ZSTD does")]
    LevelNotTaken { algorithm: Algorithm },
    /// An encoder for chunks longer than the maximum.
    #[error("a chunk of {found} bytes is longer than the limit of {FRAME_BYTES_MAX}")]
    FrameTooLong {
        /// Bytes requested.
        found: usize,
    },
    /// A chunk longer than the encoder's maximum.
    #[error("a chunk of {found} bytes was given to an encoder made for {max}")]
    ChunkTooLong { found: usize, max: usize },
    /// The output is shorter than the chunk itself.
    #[error("room for {found} bytes cannot hold a chunk of {needed}")]
    OutputTooShort { found: usize, needed: usize },
    /// A library could not allocate its context.
    #[error("not enough memory for a {algorithm} context")]
    Memory { algorithm: Algorithm },
    /// A library failed to compress for a reason other than lack of space.
    #[error("{algorithm} cannot compress: {reason}")]
    Encode {
        algorithm: Algorithm,
        /// The library's message.
        reason: &'static str,
    },
    /// A filter with an algorithm whose payloads are never filtered.
    #[error("{algorithm} payloads are not filtered, but this one names the filter {filter}")]
    FilterNotTaken {
        algorithm: Algorithm,
        filter: Filter,
    },
    /// A payload that the algorithm cannot have written.
    #[error("the {algorithm} payload of {payload} bytes is damaged: {reason}")]
    Corrupt {
        /// According to the chunk.
        algorithm: Algorithm,
        /// Length of the payload.
        payload: usize,
        reason: &'static str,
    },
    /// A payload whose expanded length differs from the chunk's.
    #[error("the {algorithm} payload expands to {found} bytes, not {expected}")]
    Length {
        /// According to the chunk.
        algorithm: Algorithm,
        /// Length of the chunk.
        expected: usize,
        /// Expanded length.
        found: usize,
    },
}
