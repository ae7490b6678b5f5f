//! Expands chunks.

use crate::deflate::DeflateDecoder;
use crate::xpress::{BlockDecoder, frame};
use crate::zstd::ZstdDecoder;
use crate::{Algorithm, Error};

/// Expands chunks of every algorithm; contexts are created when first needed and reused.
#[derive(Debug, Default)]
pub struct Decoder {
    xpress: Option<Box<BlockDecoder>>,
    zstd: Option<ZstdDecoder>,
    deflate: Option<DeflateDecoder>,
}

impl Decoder {
    /// A decoder without contexts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Expands the payload `input` of a chunk of exactly `output.len()` bytes.
    ///
    /// On an error the content of `output` is undefined.
    ///
    /// # Errors
    /// [`Error::Corrupt`] or [`Error::Length`] if the payload is not one of `algorithm` that expands
    /// to that length; [`Error::Memory`] if a library cannot allocate its context.
    pub fn decode(
        &mut self,
        algorithm: Algorithm,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Error> {
        let found = match algorithm {
            Algorithm::None => copy(input, output),
            Algorithm::MsXpress => {
                let decoder = self.xpress.get_or_insert_default();
                return frame::decode(decoder, input, output);
            }
            Algorithm::Zstd => context(&mut self.zstd, ZstdDecoder::new)?.decode(input, output)?,
            Algorithm::QatDeflate => self
                .deflate
                .get_or_insert_with(DeflateDecoder::new)
                .decode(input, output)?,
        };
        if found != output.len() {
            return Err(Error::Length {
                algorithm,
                expected: output.len(),
                found,
            });
        }
        Ok(())
    }
}

/// The context in `slot`, created on first use.
fn context<T>(
    slot: &mut Option<T>,
    make: impl FnOnce() -> Result<T, Error>,
) -> Result<&mut T, Error> {
    match slot {
        Some(context) => Ok(context),
        None => Ok(slot.insert(make()?)),
    }
}

/// An uncompressed chunk; returns the length of the payload.
fn copy(input: &[u8], output: &mut [u8]) -> usize {
    if input.len() == output.len() {
        output.copy_from_slice(input);
    }
    input.len()
}
