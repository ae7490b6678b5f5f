//! Where DEFLATE may come from besides the bundled library.
//!
//! This crate loads nothing and talks to no device. Whoever does (`windlass-accelerator`) hands in an
//! implementation of these traits; the format on media is the same whoever wrote it.

use std::fmt;

/// Makes compressors of raw DEFLATE (RFC 1951), one for each thread, of less than 1 MiB each.
pub trait DeflateProvider: fmt::Debug + Send + Sync {
    /// A new compressor; `None` if there is none to be had (any more).
    fn compressor(&self) -> Option<Box<dyn RawDeflate>>;
}

/// Compresses one chunk after the other, each into one finished stream.
pub trait RawDeflate: fmt::Debug + Send {
    /// The length of the stream written to the start of `output`; `None` if it does not fit.
    ///
    /// # Errors
    /// [`DeflateFailed`] when the implementation cannot go on. Nothing is asked of it again; the chunk
    /// and those after it are compressed by the bundled library.
    fn deflate(&mut self, input: &[u8], output: &mut [u8]) -> Result<Option<usize>, DeflateFailed>;
}

/// An implementation gave up. What went wrong is told by the provider, which knows its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeflateFailed;
