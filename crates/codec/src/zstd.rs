//! ZSTD: one Zstandard frame per chunk, through libzstd.
//!
//! The frame carries its content size, so that any zstd program can expand a payload taken out of
//! the media, but no checksum: the media has its own.

use std::fmt;

use zstd_safe::zstd_sys::ZSTD_ErrorCode;
use zstd_safe::{CCtx, DCtx, ResetDirective};

use crate::choice::ZstdChoice;
use crate::{Algorithm, Error};

/// A compression context with its parameters set.
pub(crate) struct ZstdEncoder(CCtx<'static>);

impl ZstdEncoder {
    pub(crate) fn new(choice: ZstdChoice) -> Result<Self, Error> {
        let mut context = CCtx::try_create().ok_or(OUT_OF_MEMORY)?;
        for parameter in choice.parameters() {
            context.set_parameter(parameter).map_err(encode_error)?;
        }
        Ok(Self(context))
    }

    /// Goes on with other parameters and the same context.
    pub(crate) fn change(&mut self, choice: ZstdChoice) -> Result<(), Error> {
        self.0
            .reset(ResetDirective::SessionAndParameters)
            .map_err(encode_error)?;
        for parameter in choice.parameters() {
            self.0.set_parameter(parameter).map_err(encode_error)?;
        }
        Ok(())
    }

    /// Memory that the context has allocated so far.
    #[cfg(test)]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.sizeof()
    }

    /// The length of the frame, or `None` if it does not fit into `output`.
    pub(crate) fn encode(
        &mut self,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<Option<usize>, Error> {
        match self.0.compress2(output, input) {
            Ok(length) => Ok(Some(length)),
            Err(code) if code == OUTPUT_FULL => Ok(None),
            Err(code) => Err(encode_error(code)),
        }
    }
}

impl fmt::Debug for ZstdEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZstdEncoder").finish_non_exhaustive()
    }
}

/// A decompression context.
pub(crate) struct ZstdDecoder(DCtx<'static>);

impl ZstdDecoder {
    pub(crate) fn new() -> Result<Self, Error> {
        DCtx::try_create().map(Self).ok_or(OUT_OF_MEMORY)
    }

    /// The number of octets that came out; more than `output` holds is an error.
    pub(crate) fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Result<usize, Error> {
        self.0
            .decompress(output, input)
            .map_err(|code| Error::Corrupt {
                algorithm: Algorithm::Zstd,
                payload: input.len(),
                reason: zstd_safe::get_error_name(code),
            })
    }
}

impl fmt::Debug for ZstdDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZstdDecoder").finish_non_exhaustive()
    }
}

fn encode_error(code: usize) -> Error {
    Error::Encode {
        algorithm: Algorithm::Zstd,
        reason: zstd_safe::get_error_name(code),
    }
}

const OUT_OF_MEMORY: Error = Error::Memory {
    algorithm: Algorithm::Zstd,
};

/// libzstd returns error numbers negated, as sizes.
const OUTPUT_FULL: usize = (ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall as usize).wrapping_neg();
