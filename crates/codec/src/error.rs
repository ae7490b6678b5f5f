//! What can go wrong between bytes and bytes.

use crate::Algorithm;
use crate::choice::FRAME_BYTES_MAX;

/// Why a chunk was not compressed or expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Text that names no algorithm.
    #[error("'{found}' is not a compression algorithm: NONE, MS_XPRESS, ZSTD or QAT_DEFLATE")]
    AlgorithmName {
        /// The text.
        found: String,
    },
    /// Text that names no level.
    #[error("'{found}' is not a compression level: LOW, MEDIUM or HIGH")]
    LevelName {
        /// The text.
        found: String,
    },
    /// A number that stands for no level.
    #[error("{found} is not the number of a compression level (0 to 3)")]
    LevelId {
        /// The number.
        found: u8,
    },
    /// A level for an algorithm that has none.
    #[error("{algorithm} takes no level; only ZSTD does")]
    LevelNotTaken {
        /// The algorithm asked for.
        algorithm: Algorithm,
    },
    /// An encoder for chunks longer than any we store.
    #[error("a chunk of {found} bytes is longer than the limit of {FRAME_BYTES_MAX}")]
    FrameTooLong {
        /// Bytes asked for.
        found: usize,
    },
    /// A chunk longer than the encoder was made for.
    #[error("a chunk of {found} bytes was given to an encoder made for {max}")]
    ChunkTooLong {
        /// Bytes given.
        found: usize,
        /// Bytes the encoder was made for.
        max: usize,
    },
    /// Room for less than the chunk itself.
    #[error("room for {found} bytes cannot hold a chunk of {needed}")]
    OutputTooShort {
        /// Bytes of room given.
        found: usize,
        /// Bytes of the chunk.
        needed: usize,
    },
    /// A library could not allocate its context.
    #[error("not enough memory for a {algorithm} context")]
    Memory {
        /// Whose context.
        algorithm: Algorithm,
    },
    /// A library refused to compress for another reason than lack of room.
    #[error("{algorithm} cannot compress: {reason}")]
    Encode {
        /// Whose library.
        algorithm: Algorithm,
        /// The library's words.
        reason: &'static str,
    },
    /// A payload that is not what the algorithm writes.
    #[error("the {algorithm} payload of {payload} bytes is damaged: {reason}")]
    Corrupt {
        /// The algorithm the chunk claims.
        algorithm: Algorithm,
        /// Bytes of the payload.
        payload: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// A payload that expands to another length than its chunk has.
    #[error("the {algorithm} payload expands to {found} bytes, not {expected}")]
    Length {
        /// The algorithm the chunk claims.
        algorithm: Algorithm,
        /// Bytes the chunk has.
        expected: usize,
        /// Bytes the payload gives.
        found: usize,
    },
}
