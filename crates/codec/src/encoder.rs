//! Compresses chunks.

use crate::choice::{FRAME_BYTES_MAX, ZstdChoice};
use crate::deflate::DeflateEncoder;
use crate::filter::Filters;
use crate::xpress::{BlockEncoder, frame};
use crate::zstd::ZstdEncoder;
use crate::{Algorithm, BTreePages, Compression, DeflateProvider, Effort, Error, Filter, Level};

/// The result of compressing a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    Compressed {
        /// The payload is that many first bytes of the output; fewer than the input.
        bytes: usize,
        /// What happened before the compression.
        filter: Filter,
    },
    /// The chunk would not shrink: store the input uncompressed, with [`Algorithm::None`].
    Plain,
}

/// Compresses chunks one after another with the same contexts.
#[derive(Debug)]
pub struct Encoder {
    compression: Compression,
    frame_bytes_max: usize,
    method: Method,
}

#[derive(Debug)]
enum Method {
    None,
    Xpress(Box<BlockEncoder>),
    Zstd(Tuned, Filters),
    Deflate(DeflateEncoder, Filters),
}

/// ZSTD with the parameters of an effort, which differ for narrowed chunks.
#[derive(Debug)]
struct Tuned {
    encoder: ZstdEncoder,
    effort: Effort,
    /// What the parameters of `encoder` were set for: the effort, and whether for narrowed chunks.
    set_for: (Effort, bool),
}

impl Tuned {
    fn new(effort: Effort) -> Result<Self, Error> {
        let set_for = (effort, false);
        let encoder = ZstdEncoder::new(ZstdChoice::of(effort, false))?;
        Ok(Self {
            encoder,
            effort,
            set_for,
        })
    }

    fn encode(
        &mut self,
        filter: Filter,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<Option<usize>, Error> {
        let wanted = (self.effort, filter.is_narrowed);
        if self.set_for != wanted {
            self.encoder
                .change(ZstdChoice::of(self.effort, filter.is_narrowed))?;
            self.set_for = wanted;
        }
        self.encoder.encode(input, output)
    }
}

impl Encoder {
    /// An encoder for chunks of up to `frame_bytes_max` bytes.
    ///
    /// # Errors
    /// [`Error::LevelNotTaken`], [`Error::FrameTooLong`] above [`FRAME_BYTES_MAX`], and
    /// [`Error::Memory`] if a library cannot allocate its context.
    pub fn new(compression: Compression, frame_bytes_max: usize) -> Result<Self, Error> {
        Self::with_provider(compression, frame_bytes_max, None)
    }

    /// As [`Encoder::new`], but compresses `QAT_DEFLATE` with `provider`, as long as it works.
    ///
    /// # Errors
    /// As [`Encoder::new`].
    pub fn with_provider(
        compression: Compression,
        frame_bytes_max: usize,
        provider: Option<&dyn DeflateProvider>,
    ) -> Result<Self, Error> {
        let compression = compression.resolved()?;
        if frame_bytes_max > FRAME_BYTES_MAX {
            return Err(Error::FrameTooLong {
                found: frame_bytes_max,
            });
        }
        let method = match compression.algorithm {
            Algorithm::None => Method::None,
            Algorithm::MsXpress => Method::Xpress(Box::default()),
            Algorithm::Zstd => {
                let level = compression.level.unwrap_or(Level::Low);
                Method::Zstd(Tuned::new(level.into())?, Filters::default())
            }
            Algorithm::QatDeflate => {
                Method::Deflate(DeflateEncoder::new(provider), Filters::default())
            }
        };
        Ok(Self {
            compression,
            frame_bytes_max,
            method,
        })
    }

    /// Changes the effort for the following chunks.
    ///
    /// # Errors
    /// [`Error::LevelNotTaken`] if the algorithm has no levels.
    pub fn set_effort(&mut self, effort: Effort) -> Result<(), Error> {
        match &mut self.method {
            Method::Zstd(tuned, _) => {
                tuned.effort = effort;
                Ok(())
            }
            _ => Err(Error::LevelNotTaken {
                algorithm: self.compression.algorithm,
            }),
        }
    }

    /// The following chunks consist of pages of b-trees, with this layout, or of something else.
    pub fn set_pages(&mut self, pages: Option<BTreePages>) {
        match &mut self.method {
            Method::None | Method::Xpress(_) => {}
            Method::Zstd(_, filters) | Method::Deflate(_, filters) => filters.set_pages(pages),
        }
    }

    /// Compresses the following chunks without filters: for comparisons.
    pub fn turn_filters_off(&mut self) {
        match &mut self.method {
            Method::None | Method::Xpress(_) => {}
            Method::Zstd(_, filters) | Method::Deflate(_, filters) => filters.turn_off(),
        }
    }

    /// The compression of this encoder, with the level filled in.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Compresses a chunk into the start of `output`, whose rest may be overwritten too.
    ///
    /// # Errors
    /// [`Error::ChunkTooLong`], [`Error::OutputTooShort`] if `output` is shorter than `input`, and
    /// [`Error::Encode`] if a library fails.
    pub fn encode(&mut self, input: &[u8], output: &mut [u8]) -> Result<Stored, Error> {
        if input.len() > self.frame_bytes_max {
            return Err(Error::ChunkTooLong {
                found: input.len(),
                max: self.frame_bytes_max,
            });
        }
        if output.len() < input.len() {
            return Err(Error::OutputTooShort {
                found: output.len(),
                needed: input.len(),
            });
        }
        // One byte less than the chunk: a payload as long as its chunk is not worth expanding.
        let Some(limit) = input.len().checked_sub(1) else {
            return Ok(Stored::Plain);
        };
        let frame_bytes_max = self.frame_bytes_max;
        let (length, filter) = match &mut self.method {
            Method::None => (None, Filter::NONE),
            Method::Xpress(encoder) => {
                let length = frame::encode(encoder, input, &mut output[..limit]);
                (length, Filter::NONE)
            }
            Method::Zstd(tuned, filters) => {
                let (input, filter) = filters.filter(input, frame_bytes_max, output);
                let length = tuned.encode(filter, input, &mut output[..limit])?;
                (length, filter)
            }
            Method::Deflate(encoder, filters) => {
                let (input, filter) = filters.filter(input, frame_bytes_max, output);
                (encoder.encode(input, &mut output[..limit]), filter)
            }
        };
        Ok(length.map_or(Stored::Plain, |bytes| Stored::Compressed { bytes, filter }))
    }
}
