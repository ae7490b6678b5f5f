//! Alternative DEFLATE implementations.
//!
//! This crate loads no libraries and accesses no devices. A crate that does
//! (`windlass-accelerator`) passes in an implementation of these traits; the format on media is the
//! same for all implementations.

use std::fmt;

/// Creates compressors of raw DEFLATE (RFC 1951), one per thread, using less than 1 MiB each.
pub trait DeflateProvider: fmt::Debug + Send + Sync {
    /// A new compressor; `None` if none is available (any more).
    fn compressor(&self) -> Option<Box<dyn RawDeflate>>;
}

/// Compresses chunks one after another, each into a complete stream.
pub trait RawDeflate: fmt::Debug + Send {
    /// The length of the stream written to the start of `output`; `None` if it does not fit.
    ///
    /// # Errors
    /// [`DeflateFailed`] if the implementation cannot continue. It is not called again; the bundled
    /// library compresses this chunk and those after it.
    fn deflate(&mut self, input: &[u8], output: &mut [u8]) -> Result<Option<usize>, DeflateFailed>;
}

/// An implementation failed. The provider reports the cause, because it knows its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeflateFailed;
