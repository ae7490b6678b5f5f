//! The only two ways to access bytes: a bounded cursor for reading, an emission for writing.
//!
//! Nothing else in this crate slices bytes, so no length in hostile input can reach beyond its
//! window. All numbers on media are little-endian.

use windlass_base::bytes::Reader;
use windlass_base::{Digest, Guid, Moment, checksum};

use crate::error::MediaError;

/// Reads consecutive fields from a window of the family.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    rest: Reader<'a>,
    offset: u64,
    what: &'static str,
}

impl<'a> Cursor<'a> {
    /// A cursor over `window`, which is at `offset` of the family and contains a `what`.
    pub(crate) fn new(window: &'a [u8], offset: u64, what: &'static str) -> Self {
        Self {
            rest: Reader::new(window),
            offset,
            what,
        }
    }

    /// Family offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes left in the window.
    pub(crate) fn left(&self) -> usize {
        self.rest.rest().len()
    }

    /// The next `length` bytes.
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], MediaError> {
        let Some(taken) = self.rest.take(length) else {
            return Err(self.damaged(length as u64, self.left() as u64));
        };
        self.offset += length as u64;
        Ok(taken)
    }

    /// The next `length` bytes as a separate cursor.
    pub(crate) fn window(&mut self, length: usize, what: &'static str) -> Result<Self, MediaError> {
        let offset = self.offset;
        Ok(Self::new(self.take(length)?, offset, what))
    }

    /// The next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], MediaError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, MediaError> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, MediaError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, MediaError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, MediaError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn guid(&mut self) -> Result<Guid, MediaError> {
        self.array().map(Guid::from_stored)
    }

    pub(crate) fn digest(&mut self) -> Result<Digest, MediaError> {
        self.array().map(Digest)
    }

    /// Takes `length` bytes that must be zero.
    pub(crate) fn zeros(&mut self, length: usize) -> Result<(), MediaError> {
        let offset = self.offset;
        require_zero(self.take(length)?, offset, self.what)
    }

    /// Fails unless `found` equals `expected`; the error points just after the field.
    pub(crate) fn expect(&self, expected: u64, found: u64) -> Result<(), MediaError> {
        if found == expected {
            Ok(())
        } else {
            Err(self.damaged(expected, found))
        }
    }

    /// Fails unless the whole window was read.
    pub(crate) fn end(&self) -> Result<(), MediaError> {
        self.expect(0, self.left() as u64)
    }

    fn damaged(&self, expected: u64, found: u64) -> MediaError {
        MediaError::Damaged {
            offset: self.offset,
            what: self.what,
            expected,
            found,
        }
    }
}

/// Fails unless all `bytes` are zero; `what` is the structure they pad.
pub(crate) fn require_zero(
    bytes: &[u8],
    offset: u64,
    what: &'static str,
) -> Result<(), MediaError> {
    match bytes.iter().position(|&byte| byte != 0) {
        None => Ok(()),
        Some(at) => Err(MediaError::Damaged {
            offset: offset + at as u64,
            what,
            expected: 0,
            found: bytes.get(at).copied().map_or(0, u64::from),
        }),
    }
}

/// Fails unless `found` is at most `maximum`.
pub(crate) fn require_at_most(
    found: u64,
    maximum: u64,
    what: &'static str,
    offset: u64,
) -> Result<(), MediaError> {
    if found <= maximum {
        Ok(())
    } else {
        Err(MediaError::TooLarge {
            offset,
            what,
            found,
            maximum,
        })
    }
}

/// The smallest multiple of `unit`, a power of two, that is at least `value`.
pub(crate) fn align_up(value: u64, unit: u64) -> u64 {
    value.saturating_add(unit - 1) & !(unit - 1)
}

/// Bytes being appended to a family, with their offset in it.
#[derive(Debug)]
pub(crate) struct Emission<'a> {
    out: &'a mut Vec<u8>,
    begin: usize,
    base: u64,
}

impl<'a> Emission<'a> {
    /// Appends to `out`; the next byte has family offset `offset`.
    pub(crate) fn new(out: &'a mut Vec<u8>, offset: u64) -> Self {
        let begin = out.len();
        Self {
            out,
            begin,
            base: offset,
        }
    }

    /// Family offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.base + (self.out.len() - self.begin) as u64
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn guid(&mut self, value: Guid) {
        self.bytes(&value.to_stored());
    }

    pub(crate) fn moment(&mut self, value: Option<Moment>) {
        self.bytes(&value.map_or([0; 5], Moment::to_stored));
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Appends `count` zero bytes.
    pub(crate) fn zeros(&mut self, count: usize) {
        self.out.resize(self.out.len() + count, 0);
    }

    /// Appends zeros up to the next multiple of `unit`, a power of two, relative to `origin`.
    pub(crate) fn pad_to(&mut self, unit: u64, origin: u64) {
        let here = self.offset() - origin;
        self.zeros((align_up(here, unit) - here) as usize);
    }

    /// Overwrites earlier bytes from family offset `at`.
    pub(crate) fn patch(&mut self, at: u64, bytes: &[u8]) {
        let from = self.begin + (at - self.base) as usize;
        if let Some(slot) = self.out.get_mut(from..from + bytes.len()) {
            slot.copy_from_slice(bytes);
        }
    }

    /// The bytes emitted since family offset `from`.
    pub(crate) fn since(&self, from: u64) -> &[u8] {
        let from = self.begin + (from - self.base) as usize;
        self.out.get(from..).unwrap_or_default()
    }

    /// Appends the CRC-64 of everything since family offset `from`.
    pub(crate) fn seal(&mut self, from: u64) {
        let sum = checksum(self.since(from));
        self.u64(sum);
    }
}
