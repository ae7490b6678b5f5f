//! Page checksums of databases that were written through `SQLite`'s checksum VFS.
//!
//! That VFS keeps an 8-byte checksum in the reserved bytes at the end of every page; the database
//! header then says that 8 bytes are reserved. Other extensions reserve bytes too, so a database
//! counts as checksummed only if its first page verifies.
//! Source: `SQLite`, `ext/misc/cksumvfs.c`, functions `cksmCompute` and `cksmRead`.

/// Bytes of a checksum, at the end of the page.
pub(super) const CHECKSUM_BYTES: usize = 8;

/// Whether the checksum at the end of `page` is that of its content.
///
/// A page that was never written (a hole, the lock-byte page) is all zero and verifies.
pub(super) fn verifies(page: &[u8]) -> bool {
    let Some((content, stored)) = page.split_last_chunk::<CHECKSUM_BYTES>() else {
        return false;
    };
    compute(content) == *stored
}

fn compute(content: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let (mut first, mut second) = (0_u32, 0_u32);
    for pair in content.chunks_exact(8) {
        let [a, b, c, d, e, f, g, h] = *pair else {
            continue;
        };
        first = first
            .wrapping_add(u32::from_le_bytes([a, b, c, d]))
            .wrapping_add(second);
        second = second
            .wrapping_add(u32::from_le_bytes([e, f, g, h]))
            .wrapping_add(first);
    }
    let mut bytes = [0; CHECKSUM_BYTES];
    bytes[..4].copy_from_slice(&first.to_le_bytes());
    bytes[4..].copy_from_slice(&second.to_le_bytes());
    bytes
}

/// Writes the checksum at the end of `page`.
#[cfg(test)]
pub(super) fn seal(page: &mut [u8]) {
    let content_bytes = page.len() - CHECKSUM_BYTES;
    let sum = compute(&page[..content_bytes]);
    page[content_bytes..].copy_from_slice(&sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_changed_bit_is_noticed() {
        let mut page: Vec<u8> = (0..512_u32).map(|index| (index * 7 % 251) as u8).collect();
        seal(&mut page);
        assert!(verifies(&page));
        for index in [0, 100, 503, 504, 511] {
            page[index] ^= 1;
            assert!(!verifies(&page), "byte {index}");
            page[index] ^= 1;
        }
    }

    #[test]
    fn the_sum_is_that_of_the_checksum_vfs() {
        // By hand: s1 += w0 + s2, s2 += w1 + s1, words little-endian.
        let content = [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0];
        assert_eq!(compute(&content), [7, 0, 0, 0, 14, 0, 0, 0]);
        assert!(verifies(&[0; 4096]), "a page that was never written");
    }
}
