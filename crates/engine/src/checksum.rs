//! Page checksums in SQLite's reserved bytes, as SQLite's checksum VFS computes them.
//!
//! A database whose page 1 reserves eight bytes at the end of each page (byte 20 is 8) carries in
//! them a checksum of the bytes before: two running sums over little-endian words. The engine
//! stamps pages when they are committed and checks them when they are read from disk.

use crate::options::PAGE_SIZE;

/// Bytes at the end of a page that hold the checksum.
pub(crate) const CHECKSUM_BYTES: usize = 8;

/// Whether a database with this first page reserves room for checksums.
pub fn is_reserved(first_page: &[u8]) -> bool {
    first_page.starts_with(b"SQLite format 3\0")
        && first_page.get(20).copied().map(usize::from) == Some(CHECKSUM_BYTES)
}

/// The checksum of a page, as stored.
pub(crate) fn compute(page: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let (mut first, mut second) = (0_u32, 0_u32);
    for pair in page[..page.len() - CHECKSUM_BYTES].chunks_exact(8) {
        let word =
            |at: usize| u32::from_le_bytes([pair[at], pair[at + 1], pair[at + 2], pair[at + 3]]);
        first = first.wrapping_add(word(0)).wrapping_add(second);
        second = second.wrapping_add(word(4)).wrapping_add(first);
    }
    let mut out = [0; CHECKSUM_BYTES];
    out[..4].copy_from_slice(&first.to_le_bytes());
    out[4..].copy_from_slice(&second.to_le_bytes());
    out
}

/// Writes the checksum into the last bytes of a page.
pub fn stamp(page: &mut [u8]) {
    let sum = compute(page);
    page[PAGE_SIZE - CHECKSUM_BYTES..].copy_from_slice(&sum);
}

/// Whether the page carries its checksum.
pub fn is_valid(page: &[u8]) -> bool {
    verify(page).is_none()
}

/// Compares; `(expected, found)` when they differ.
pub(crate) fn verify(page: &[u8]) -> Option<(u64, u64)> {
    let expected = compute(page);
    let found = &page[page.len() - CHECKSUM_BYTES..];
    if expected == found {
        return None;
    }
    let mut stored = [0; CHECKSUM_BYTES];
    stored.copy_from_slice(found);
    Some((u64::from_le_bytes(expected), u64::from_le_bytes(stored)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamped_page_is_valid_until_a_bit_flips() {
        let mut page: Vec<u8> = (0..PAGE_SIZE).map(|at| (at * 7 % 251) as u8).collect();
        stamp(&mut page);
        assert_eq!(verify(&page), None);
        page[100] ^= 4;
        assert!(verify(&page).is_some());
        assert_eq!(verify(&[0; PAGE_SIZE]), None, "an unwritten page");
    }
}
