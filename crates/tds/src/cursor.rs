//! Reads fields of a message, never past its end.

use windlass_base::bytes::Reader;

use crate::Error;

/// Text of the protocol: UTF-16, little-endian.
pub(crate) fn utf16(bytes: &[u8]) -> String {
    let units = bytes
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    char::decode_utf16(units)
        .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

/// The rest of a structure named `what`.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    rest: Reader<'a>,
    what: &'static str,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self {
            rest: Reader::new(bytes),
            what,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest.rest()
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let what = self.what;
        self.rest.take(count).ok_or(Error::CutShort { what })
    }

    /// A window over the next `count` bytes, which are consumed.
    pub(crate) fn window(&mut self, count: usize) -> Result<Self, Error> {
        Ok(Self::new(self.take(count)?, self.what))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Error> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, Error> {
        self.array().map(i32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.array()
    }

    /// `B_VARCHAR`: the number of UTF-16 units in one byte, then the units.
    pub(crate) fn short_text(&mut self) -> Result<String, Error> {
        let units = usize::from(self.u8()?);
        self.take(2 * units).map(utf16)
    }

    /// `US_VARCHAR`: the same with a two-byte number.
    pub(crate) fn long_text(&mut self) -> Result<String, Error> {
        let units = usize::from(self.u16()?);
        self.take(2 * units).map(utf16)
    }
}
