//! The checksums of a SQL Server backup: of headers, of pages, of streams and of compressed records.

use crate::fields::Fields;
use crate::page::{PAGE_BYTES, SECTOR_BYTES};

/// Offset of a page's checksum.
const PAGE_CHECKSUM_AT: usize = 0x3C;

/// XOR of the 16-bit words: of descriptor block headers and stream headers.
pub(crate) fn xor16(bytes: &[u8]) -> u16 {
    let (words, _) = bytes.as_chunks::<2>();
    words
        .iter()
        .fold(0, |sum, word| sum ^ u16::from_le_bytes(*word))
}

/// XOR of the 32-bit words; the last one is padded with zeros.
fn xor32(bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last.iter_mut()
        .zip(rest)
        .for_each(|(slot, byte)| *slot = *byte);
    words.iter().fold(u32::from_le_bytes(last), |sum, word| {
        sum ^ u32::from_le_bytes(*word)
    })
}

/// The checksum of a payload or of the entries of an index record in a compressed backup.
pub(crate) fn record_checksum(payload: &[u8]) -> u32 {
    payload
        .chunks(4)
        .fold(0_u32, |sum, word| sum.rotate_left(1) ^ xor32(word))
}

/// The checksum of a page, computed from its bytes.
pub fn page_checksum(page: &[u8]) -> u32 {
    let sum = StreamChecksum::default().with(page).0;
    // The stored value counts as zero: it is in the first of sixteen sectors, which is rotated
    // fifteen times.
    sum ^ Fields(page).u32(PAGE_CHECKSUM_AT).rotate_left(15)
}

/// The checksum of WITH CHECKSUM over a whole stream, updated 512 bytes at a time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StreamChecksum(pub(crate) u32);

impl StreamChecksum {
    /// Adds bytes: whole sectors, except at the end of the stream.
    pub(crate) fn with(self, bytes: &[u8]) -> Self {
        Self(
            bytes
                .chunks(SECTOR_BYTES)
                .fold(self.0, |sum, sector| sum.rotate_left(1) ^ xor32(sector)),
        )
    }
}

/// Whether the two low bits at the end of each sector match the word at 3C.
pub fn torn_bits_agree(page: &[u8]) -> bool {
    let fields = Fields(page);
    let pattern = fields.u8(PAGE_CHECKSUM_AT) & 3;
    (pattern == 1 || pattern == 2)
        && (1..PAGE_BYTES / SECTOR_BYTES)
            .all(|sector| fields.u8(sector * SECTOR_BYTES + SECTOR_BYTES - 1) & 3 == pattern)
}

/// Restores the bits that torn-page protection replaced at the ends of the sectors.
pub fn restore_torn_bits(page: &mut [u8]) {
    let bits = Fields(page).u32(PAGE_CHECKSUM_AT);
    for sector in 1..PAGE_BYTES / SECTOR_BYTES {
        if let Some(last) = page.get_mut(sector * SECTOR_BYTES + SECTOR_BYTES - 1) {
            *last = *last & !3 | (bits >> (2 * sector) & 3) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of the page checksum, implemented literally.
    fn page_checksum_by_definition(page: &[u8]) -> u32 {
        let mut page = page.to_vec();
        page[0x3C..0x40].fill(0);
        let mut sum = 0_u32;
        for sector in page.chunks(512) {
            sum = sum.rotate_left(1);
            for word in sector.chunks(4) {
                sum ^= u32::from_le_bytes(word.try_into().unwrap());
            }
        }
        sum
    }

    #[test]
    fn the_page_checksum_does_not_count_itself() {
        let mut page: Vec<u8> = (0..8192_u32).map(|i| ((i * 31) >> 3) as u8).collect();
        let sum = page_checksum(&page);
        assert_eq!(sum, page_checksum_by_definition(&page));
        page[0x3C..0x40].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(page_checksum(&page), sum);
        page[5000] ^= 1;
        assert_ne!(page_checksum(&page), sum);
    }

    #[test]
    fn torn_bits_are_found_and_put_back() {
        let original: Vec<u8> = (0..8192_u32).map(|i| (i % 251) as u8).collect();
        let mut page = original.clone();
        let mut word = 2_u32;
        for sector in 1..16 {
            let last = &mut page[sector * 512 + 511];
            word |= u32::from(*last & 3) << (2 * sector);
            *last = *last & !3 | 2;
        }
        page[0x3C..0x40].copy_from_slice(&word.to_le_bytes());
        assert!(torn_bits_agree(&page));
        let mut torn = page.clone();
        torn[512 * 7 + 511] ^= 1;
        assert!(!torn_bits_agree(&torn));
        restore_torn_bits(&mut page);
        assert_eq!(page[0x40..], original[0x40..]);
    }
}
