//! The chosen numbers: frame size, library level, window, and the memory they cost.
//!
//! `docs/codecs.md` holds the measurements behind each.

use zstd_safe::CParameter;

use crate::{Algorithm, Compression, Level};

/// The shortest frame a backup uses.
pub const FRAME_BYTES_MIN: usize = 64 << 10;

/// The longest frame a backup uses, and the longest chunk any encoder takes.
pub const FRAME_BYTES_MAX: usize = 4 << 20;

/// Parameters of libzstd for one level.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ZstdChoice {
    pub(crate) level: i32,
}

impl ZstdChoice {
    pub(crate) fn of(level: Level) -> Self {
        let level = match level {
            Level::Low => 1,
            Level::Medium => 4,
            Level::High => 9,
        };
        Self { level }
    }

    pub(crate) fn parameters(self) -> impl Iterator<Item = CParameter> {
        [CParameter::CompressionLevel(self.level)].into_iter()
    }
}

/// libdeflate's level for `QAT_DEFLATE`.
pub(crate) const DEFLATE_LEVEL: i32 = 1;

impl Compression {
    /// The preferred length of a chunk: a multiple of 64 KiB between 64 KiB and 4 MiB.
    pub fn frame_bytes(&self) -> usize {
        match (self.algorithm, self.level) {
            (Algorithm::Zstd, Some(Level::Medium | Level::High)) => 4 << 20,
            _ => 1 << 20,
        }
    }

    /// Upper bound of the memory that one encoder takes for chunks up to `frame_bytes`.
    pub fn encoder_bytes(&self, frame_bytes: usize) -> usize {
        match self.algorithm {
            Algorithm::None => 0,
            Algorithm::MsXpress | Algorithm::QatDeflate => 1 << 20,
            Algorithm::Zstd => (16 << 20) + frame_bytes * 2,
        }
    }

    /// Upper bound of the memory that one decoder takes for chunks up to `frame_bytes`.
    pub fn decoder_bytes(&self, _frame_bytes: usize) -> usize {
        match self.algorithm {
            Algorithm::None => 0,
            Algorithm::MsXpress | Algorithm::QatDeflate | Algorithm::Zstd => 256 << 10,
        }
    }
}
