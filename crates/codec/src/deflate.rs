//! `QAT_DEFLATE`: one raw DEFLATE stream (RFC 1951) per chunk.
//!
//! Compressed by the compressor of a [`DeflateProvider`] or by libdeflate; always expanded by
//! libdeflate, which treats the payload as hostile.

use std::fmt;

use libdeflater::{CompressionLvl, Compressor, DecompressionError, Decompressor};

use crate::choice::DEFLATE_LEVEL;
use crate::provider::{DeflateProvider, RawDeflate};
use crate::{Algorithm, Error};

/// Compresses with the chosen implementation.
pub(crate) enum DeflateEncoder {
    Bundled(Compressor),
    Provided(Box<dyn RawDeflate>),
}

impl DeflateEncoder {
    pub(crate) fn new(provider: Option<&dyn DeflateProvider>) -> Self {
        match provider.and_then(DeflateProvider::compressor) {
            Some(provided) => Self::Provided(provided),
            None => Self::bundled(),
        }
    }

    fn bundled() -> Self {
        let level = CompressionLvl::new(DEFLATE_LEVEL).expect("a level that libdeflate has");
        Self::Bundled(Compressor::new(level))
    }

    /// The length of the stream, or `None` if it does not fit into `output`.
    ///
    /// If the provided implementation fails, libdeflate compresses this chunk and all later ones.
    pub(crate) fn encode(&mut self, input: &[u8], output: &mut [u8]) -> Option<usize> {
        if let Self::Provided(provided) = self {
            match provided.deflate(input, output) {
                Ok(length) => return length,
                Err(_) => *self = Self::bundled(),
            }
        }
        match self {
            // The only error of libdeflate is that the output is too short.
            Self::Bundled(compressor) => compressor.deflate_compress(input, output).ok(),
            Self::Provided(_) => None,
        }
    }
}

impl fmt::Debug for DeflateEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bundled(_) => f.write_str("DeflateEncoder::Bundled"),
            Self::Provided(provided) => f.debug_tuple("Provided").field(provided).finish(),
        }
    }
}

/// Expands with libdeflate.
pub(crate) struct DeflateDecoder(Decompressor);

impl DeflateDecoder {
    pub(crate) fn new() -> Self {
        Self(Decompressor::new())
    }

    /// The number of bytes produced; an error if they do not fit `output`.
    pub(crate) fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Result<usize, Error> {
        self.0.deflate_decompress(input, output).map_err(|error| {
            let reason = match error {
                DecompressionError::BadData => "not a DEFLATE stream",
                DecompressionError::InsufficientSpace => "it holds more than the chunk",
            };
            Error::Corrupt {
                algorithm: Algorithm::QatDeflate,
                payload: input.len(),
                reason,
            }
        })
    }
}

impl fmt::Debug for DeflateDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeflateDecoder").finish_non_exhaustive()
    }
}
