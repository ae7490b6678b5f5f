//! `QAT_DEFLATE` in software: one raw DEFLATE stream (RFC 1951) per chunk, through libdeflate.

use std::fmt;

use libdeflater::{CompressionLvl, Compressor, DecompressionError, Decompressor};

use crate::choice::DEFLATE_LEVEL;
use crate::{Algorithm, Error};

/// Compresses with the chosen implementation.
///
/// One variant today. A hardware or vendor library that is present at run time becomes another,
/// because all of them write the same format.
pub(crate) enum DeflateEncoder {
    Software(Compressor),
}

impl DeflateEncoder {
    pub(crate) fn new() -> Self {
        let level = CompressionLvl::new(DEFLATE_LEVEL).expect("a level that libdeflate has");
        Self::Software(Compressor::new(level))
    }

    /// The length of the stream, or `None` if it does not fit into `output`.
    pub(crate) fn encode(&mut self, input: &[u8], output: &mut [u8]) -> Option<usize> {
        match self {
            // The only error of libdeflate is that the output is too short.
            Self::Software(compressor) => compressor.deflate_compress(input, output).ok(),
        }
    }
}

impl fmt::Debug for DeflateEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Software(_) => f.write_str("DeflateEncoder::Software"),
        }
    }
}

/// Expands with libdeflate.
pub(crate) struct DeflateDecoder(Decompressor);

impl DeflateDecoder {
    pub(crate) fn new() -> Self {
        Self(Decompressor::new())
    }

    /// The number of octets that came out; more than `output` holds is an error.
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
