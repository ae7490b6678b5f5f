//! Expands chunks.

use crate::btree;
use crate::deflate::DeflateDecoder;
use crate::memory::Buffer;
use crate::narrow;
use crate::xpress::{BlockDecoder, frame};
use crate::zstd::ZstdDecoder;
use crate::{Algorithm, Error, Filter};

/// Expands chunks of every algorithm; contexts are created when first needed and reused.
#[derive(Debug, Default)]
pub struct Decoder {
    xpress: Option<Box<BlockDecoder>>,
    zstd: Option<ZstdDecoder>,
    deflate: Option<DeflateDecoder>,
    /// What the filter of a chunk made of it.
    filtered: Buffer,
}

impl Decoder {
    /// A decoder without contexts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Expands the payload `input` of a chunk of exactly `output.len()` bytes, which was made by
    /// `algorithm` of what `filter` had made of the chunk.
    ///
    /// On an error the content of `output` is undefined.
    ///
    /// # Errors
    /// [`Error::Corrupt`] or [`Error::Length`] if the payload is not one of `algorithm` and `filter` that
    /// expands to that length; [`Error::FilterNotTaken`] if the two do not go together;
    /// [`Error::Memory`] if a library cannot allocate its context.
    pub fn decode(
        &mut self,
        algorithm: Algorithm,
        filter: Filter,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Error> {
        if !filter.is_taken_by(algorithm) {
            return Err(Error::FilterNotTaken { algorithm, filter });
        }
        if filter.is_narrowed {
            self.decode_narrowed(algorithm, input, output)?;
        } else {
            let found = self.expand(algorithm, input, output)?;
            if found != output.len() {
                return Err(Error::Length {
                    algorithm,
                    expected: output.len(),
                    found,
                });
            }
        }
        let Some(pages) = filter.pages else {
            return Ok(());
        };
        btree::restore(output, pages).map_err(|reason| Error::Corrupt {
            algorithm,
            payload: input.len(),
            reason,
        })
    }

    fn decode_narrowed(
        &mut self,
        algorithm: Algorithm,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Error> {
        let mut filtered = std::mem::take(&mut self.filtered);
        // A narrowed form is shorter than its chunk.
        let room = filtered
            .of(output.len())
            .ok_or(Error::Memory { algorithm })?;
        let expanded = self.expand(algorithm, input, room);
        let widened = expanded.and_then(|bytes| {
            let form = room.get(..bytes).unwrap_or_default();
            narrow::widen(form, output).map_err(|reason| Error::Corrupt {
                algorithm,
                payload: input.len(),
                reason,
            })
        });
        self.filtered = filtered;
        widened
    }

    /// Expands a payload into the start of `output`; returns how many bytes it has.
    fn expand(
        &mut self,
        algorithm: Algorithm,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<usize, Error> {
        match algorithm {
            Algorithm::None => Ok(copy(input, output)),
            Algorithm::MsXpress => {
                let decoder = self.xpress.get_or_insert_default();
                frame::decode(decoder, input, output).map(|()| output.len())
            }
            Algorithm::Zstd => context(&mut self.zstd, ZstdDecoder::new)?.decode(input, output),
            Algorithm::QatDeflate => self
                .deflate
                .get_or_insert_with(DeflateDecoder::new)
                .decode(input, output),
        }
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
