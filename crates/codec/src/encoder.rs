//! Compresses chunks.

use crate::choice::{FRAME_BYTES_MAX, ZstdChoice};
use crate::deflate::DeflateEncoder;
use crate::xpress::{BlockEncoder, frame};
use crate::zstd::ZstdEncoder;
use crate::{Algorithm, Compression, DeflateProvider, Effort, Error, Level};

/// The result of compressing a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// The payload is the first bytes of the output, as many as given here; fewer than the input.
    Compressed(usize),
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
    Zstd(ZstdEncoder),
    Deflate(DeflateEncoder),
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
                Method::Zstd(ZstdEncoder::new(ZstdChoice::of(level.into()))?)
            }
            Algorithm::QatDeflate => Method::Deflate(DeflateEncoder::new(provider)),
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
    /// [`Error::LevelNotTaken`] if the algorithm has no levels, [`Error::Encode`] if the library
    /// fails.
    pub fn set_effort(&mut self, effort: Effort) -> Result<(), Error> {
        match &mut self.method {
            Method::Zstd(encoder) => encoder.change(ZstdChoice::of(effort)),
            _ => Err(Error::LevelNotTaken {
                algorithm: self.compression.algorithm,
            }),
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
        let room = &mut output[..limit];
        let length = match &mut self.method {
            Method::None => None,
            Method::Xpress(encoder) => frame::encode(encoder, input, room),
            Method::Zstd(encoder) => encoder.encode(input, room)?,
            Method::Deflate(encoder) => encoder.encode(input, room),
        };
        Ok(length.map_or(Stored::Plain, Stored::Compressed))
    }
}
