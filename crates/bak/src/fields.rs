//! Fields at fixed offsets of a structure.
//!
//! All decoding in this crate uses this module, so that no number in hostile input can reach beyond
//! the structure it was found in. Older servers write shorter structures: fields beyond the end
//! read as zero, which means "absent" in every field. Code that requires a field checks the length
//! first.

use windlass_base::{Guid, Lsn, Moment};

/// A structure, and its fields by offset. All numbers are little-endian.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn array<const N: usize>(self, at: usize) -> [u8; N] {
        at.checked_add(N)
            .and_then(|end| self.0.get(at..end))
            .and_then(|bytes| bytes.try_into().ok())
            .unwrap_or([0; N])
    }

    pub(crate) fn u8(self, at: usize) -> u8 {
        self.0.get(at).copied().unwrap_or(0)
    }

    pub(crate) fn u16(self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    pub(crate) fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    pub(crate) fn u64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    pub(crate) fn guid(self, at: usize) -> Guid {
        Guid::from_stored(self.array(at))
    }

    pub(crate) fn lsn(self, at: usize) -> Lsn {
        Lsn::from_stored(self.array(at))
    }

    pub(crate) fn moment(self, at: usize) -> Option<Moment> {
        Moment::from_stored(self.array(at))
    }

    /// The bytes of a range, or fewer if the structure ends within it.
    pub(crate) fn bytes(self, at: usize, length: usize) -> &'a [u8] {
        let end = at.saturating_add(length).min(self.0.len());
        self.0.get(at..end).unwrap_or_default()
    }

    /// The text at the string pointer at `at`: `u16` length, `u16` offset from the start.
    pub(crate) fn text(self, at: usize) -> String {
        utf16(self.bytes(self.u16(at + 2).into(), self.u16(at).into()))
            .trim_end_matches('\0')
            .to_owned()
    }
}

/// UTF-16LE, with the replacement character for invalid units.
pub(crate) fn utf16(bytes: &[u8]) -> String {
    let units: Vec<u16> = bytes
        .as_chunks::<2>()
        .0
        .iter()
        .map(|pair| u16::from_le_bytes(*pair))
        .collect();
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beyond_the_end_reads_as_zero() {
        let fields = Fields(&[1, 2, 3]);
        assert_eq!(fields.u16(0), 0x0201);
        assert_eq!(fields.u16(2), 0, "half of it is not there");
        assert_eq!(fields.u32(usize::MAX), 0);
        assert_eq!(fields.bytes(2, 9), [3]);
        assert_eq!(fields.text(2), "");
    }
}
