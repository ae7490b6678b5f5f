//! What happens to a chunk before it is compressed.

use std::fmt;

use crate::memory::Buffer;
use crate::{Algorithm, narrow};

/// The filter that made of a chunk what the compressor saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u16)]
pub enum Filter {
    #[default]
    None = 0,
    /// UTF-16 text without its zeros.
    Narrow = 1,
}

impl Filter {
    pub const ALL: [Self; 2] = [Self::None, Self::Narrow];

    /// The number on media. Numbers never change.
    pub fn id(self) -> u16 {
        self as u16
    }

    /// The filter with this number on media.
    pub fn from_id(id: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|filter| filter.id() == id)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Narrow => "NARROW",
        }
    }

    /// Whether payloads of `algorithm` may be made through this filter. Those of `MS_XPRESS` are exactly
    /// SQL Server's, and uncompressed chunks are written as they were read.
    pub fn is_taken_by(self, algorithm: Algorithm) -> bool {
        match self {
            Self::None => true,
            Self::Narrow => matches!(algorithm, Algorithm::Zstd | Algorithm::QatDeflate),
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The share of a chunk, in thousandths, that narrowing must remove to be used: with less, the list of
/// runs costs as much as the zeros, or more.
const REMOVED_MIN: usize = 150;

/// Narrows chunks into memory of its own.
#[derive(Debug, Default)]
pub(crate) struct Narrowing {
    form: Buffer,
    is_off: bool,
}

impl Narrowing {
    /// Leaves all chunks as they are from now on.
    pub(crate) fn turn_off(&mut self) {
        self.is_off = true;
    }

    /// The narrowed form of a chunk, or the chunk itself if that is better. `temporary` is as long as the
    /// chunk, and is overwritten. No chunk is longer than `frame_bytes_max`; memory for that is taken when
    /// it is first needed.
    pub(crate) fn filter<'a>(
        &'a mut self,
        chunk: &'a [u8],
        frame_bytes_max: usize,
        temporary: &mut [u8],
    ) -> (&'a [u8], Filter) {
        match self.narrow(chunk, frame_bytes_max, temporary) {
            Some(form) => (form, Filter::Narrow),
            None => (chunk, Filter::None),
        }
    }

    fn narrow(
        &mut self,
        chunk: &[u8],
        frame_bytes_max: usize,
        temporary: &mut [u8],
    ) -> Option<&[u8]> {
        if self.is_off || narrow::promise(chunk) < REMOVED_MIN {
            return None;
        }
        let bytes_max = chunk.len() - chunk.len() * REMOVED_MIN / 1000;
        let form = self.form.of(frame_bytes_max)?;
        let bytes = narrow::narrow(chunk, bytes_max, form, temporary)?;
        form.get(..bytes)
    }
}
