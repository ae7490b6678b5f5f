//! ZSTD: one Zstandard frame per chunk, through libzstd.
//!
//! The frame has its content size, so that any zstd program can expand a payload extracted from the
//! media, but no checksum, because the media has its own.

#[expect(unsafe_code, reason = "calls libzstd with an allocator of ours")]
mod context;

use std::fmt;

use zstd_safe::DCtx;
use zstd_safe::zstd_sys::ZSTD_ErrorCode;

use self::context::Context;
use crate::choice::ZstdChoice;
use crate::{Algorithm, Error};

/// A compression context with its parameters set.
#[derive(Debug)]
pub(crate) struct ZstdEncoder(Context);

impl ZstdEncoder {
    pub(crate) fn new(choice: ZstdChoice) -> Result<Self, Error> {
        let mut context = Context::new().ok_or(OUT_OF_MEMORY)?;
        for (parameter, value) in choice.parameters() {
            context.set(parameter, value).map_err(encode_error)?;
        }
        Ok(Self(context))
    }

    /// Changes the parameters of the context.
    pub(crate) fn change(&mut self, choice: ZstdChoice) -> Result<(), Error> {
        self.0.reset().map_err(encode_error)?;
        for (parameter, value) in choice.parameters() {
            self.0.set(parameter, value).map_err(encode_error)?;
        }
        Ok(())
    }

    /// Memory that the context has allocated so far.
    #[cfg(test)]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    /// The length of the frame, or `None` if it does not fit into `output`.
    pub(crate) fn encode(
        &mut self,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<Option<usize>, Error> {
        match self.0.compress(output, input) {
            Ok(length) => Ok(Some(length)),
            Err(code) if code == OUTPUT_FULL => Ok(None),
            Err(code) => Err(encode_error(code)),
        }
    }
}

/// A decompression context.
pub(crate) struct ZstdDecoder(DCtx<'static>);

impl ZstdDecoder {
    pub(crate) fn new() -> Result<Self, Error> {
        DCtx::try_create().map(Self).ok_or(OUT_OF_MEMORY)
    }

    /// The number of bytes produced; an error if they do not fit `output`.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of one raw block without a content size that requests a window of 2^`log` bytes.
    fn windowed(log: u8, body: &[u8]) -> Vec<u8> {
        let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0, (log - 10) << 3];
        let block = (body.len() as u32) << 3 | 1;
        frame.extend_from_slice(&block.to_le_bytes()[..3]);
        frame.extend_from_slice(body);
        frame
    }

    #[test]
    fn a_frame_that_asks_for_a_huge_window_gets_no_memory_for_it() {
        let body = [7; 1000];
        let mut output = [0; 1000];
        let mut decoder = ZstdDecoder::new().expect("a context");
        let before = decoder.0.sizeof();
        for log in [20, 27, 31] {
            let found = decoder.decode(&windowed(log, &body), &mut output);
            assert_eq!(found.unwrap_or(1000), 1000, "{log}");
            assert_eq!(decoder.0.sizeof(), before, "{log}");
        }
        assert_eq!(output, body);
        assert!(decoder.decode(&windowed(41, &body), &mut output).is_err());
    }
}
