//! The plain stream of a backup, whatever its container.
//!
//! - [`Container`]: which container it is, recognised by the first bytes.
//! - [`PlainStream`]: the stream, read forward only, from a file or a pipe, with the position of
//!   every byte.
//! - `expand`, `parallel`: read and expand the records of the compressed container.

mod expand;
mod parallel;
mod plain;

use std::io;

pub(crate) use expand::Expander;
pub use expand::RECORD_HEADER_BYTES;
pub use plain::PlainStream;

use crate::error::Error;
use crate::fields::Fields;
use crate::mtf::media::{SQL_SERVER_VENDOR, software};

/// Number of bytes that identify the container.
pub const RECOGNISE_BYTES: usize = 512;

/// The container of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// Plain Microsoft Tape Format.
    Tape,
    /// The same, in compressed records.
    Compressed,
}

impl Container {
    /// Recognises the container of a SQL Server backup by its first [`RECOGNISE_BYTES`] bytes (or
    /// fewer, in a shorter file).
    ///
    /// # Errors
    /// [`Error::NotABackup`], or [`Error::OtherSoftware`] for tape format of another program,
    /// including Windlass.
    pub fn recognise(begin: &[u8]) -> Result<Self, Error> {
        if begin.starts_with(b"MSSQLBAK") {
            return Ok(Self::Compressed);
        }
        if !begin.starts_with(b"TAPE") {
            let found = begin.iter().take(16).copied().collect();
            return Err(Error::NotABackup { found });
        }
        let vendor = Fields(begin).u16(0x56);
        let software = software(begin);
        if vendor == SQL_SERVER_VENDOR {
            Ok(Self::Tape)
        } else {
            Err(Error::OtherSoftware { software, vendor })
        }
    }
}

/// The source of a backup: read forward, from a file or a pipe.
pub trait Input {
    /// Reads some bytes; returns 0 at the end.
    ///
    /// # Errors
    /// The device fails.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Skips bytes without reading them; returns `false`, and skips nothing, if it cannot.
    ///
    /// # Errors
    /// The device fails.
    fn skip(&mut self, _bytes: u64) -> io::Result<bool> {
        Ok(false)
    }
}

pub trait SeekInput: Input {
    /// Moves to an offset of the file.
    ///
    /// # Errors
    /// The device fails.
    fn seek(&mut self, offset: u64) -> io::Result<()>;
}

impl Input for &[u8] {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        io::Read::read(self, buffer)
    }

    fn skip(&mut self, bytes: u64) -> io::Result<bool> {
        // There is nothing to skip past the end; the next read notices that.
        let rest = usize::try_from(bytes)
            .ok()
            .and_then(|bytes| self.get(bytes..));
        *self = rest.unwrap_or(self);
        Ok(rest.is_some())
    }
}

impl<I: Input + ?Sized> Input for &mut I {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (**self).read(buffer)
    }

    fn skip(&mut self, bytes: u64) -> io::Result<bool> {
        (**self).skip(bytes)
    }
}

impl<I: Input + ?Sized> Input for Box<I> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (**self).read(buffer)
    }

    fn skip(&mut self, bytes: u64) -> io::Result<bool> {
        (**self).skip(bytes)
    }
}

/// Fills the buffer until the input ends; returns the number of bytes read.
pub(crate) fn read_full(input: &mut dyn Input, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match input.read(rest) {
            Ok(0) => break,
            Ok(count) => filled += count.min(rest.len()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_passed_over_behind_the_end() {
        let mut input = &b"abc"[..];
        assert!(!input.skip(4).unwrap() && !input.skip(u64::MAX).unwrap());
        assert_eq!(input, b"abc");
        assert!(input.skip(3).unwrap());
        assert_eq!(input, b"");
    }
}
