//! Stored structures: little-endian fields, read with bounds checks and appended.
//!
//! Bytes from outside are decoded only with a [`Reader`], so that no length in them reaches past
//! their end.

use crate::{Digest, Guid};

/// Reads fields from the start of a byte slice; `None` at its end.
#[derive(Debug, Clone)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Starts at the first of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The remaining bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the next `count` bytes; reads nothing if there are fewer.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    pub fn guid(&mut self) -> Option<Guid> {
        self.array().map(Guid::from_stored)
    }

    pub fn digest(&mut self) -> Option<Digest> {
        self.array().map(Digest)
    }

    /// A 16-bit length and that many bytes, see [`Writer::text`].
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.take(usize::from(length))
    }
}

/// Appends fields.
#[derive(Debug, Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn guid(&mut self, value: Guid) {
        self.bytes(&value.to_stored());
    }

    /// Appends a 16-bit length and the bytes; longer values were rejected on input.
    pub fn text(&mut self, value: &[u8]) {
        self.u16(value.len() as u16);
        self.bytes(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_past_the_end() {
        let mut writer = Writer::default();
        writer.u8(1);
        writer.u16(2);
        writer.u32(3);
        writer.u64(4);
        writer.guid(Guid::from_stored([7; 16]));
        writer.text(b"name");
        let mut reader = Reader::new(&writer.0);
        assert_eq!(reader.u8(), Some(1));
        assert_eq!(reader.u16(), Some(2));
        assert_eq!(reader.u32(), Some(3));
        assert_eq!(reader.u64(), Some(4));
        assert_eq!(reader.guid(), Some(Guid::from_stored([7; 16])));
        assert_eq!(reader.text(), Some(&b"name"[..]));
        assert!(reader.is_empty());
        assert_eq!(reader.u8(), None);
        let mut cut = Reader::new(&[9, 0, b'n']);
        assert_eq!(cut.text(), None, "a length past the end");
        assert_eq!(cut.rest(), b"n");
    }
}
