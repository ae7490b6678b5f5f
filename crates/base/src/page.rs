//! Pages, extents, and ids of database files.

use std::fmt;

/// Bytes in a page of SQL Server and of the page engine; the unit in which messages count pages.
pub const PAGE_BYTES: usize = 8192;

/// Bytes in an extent, the unit in which backups think of database files.
pub const EXTENT_BYTES: usize = EXTENT_PAGES as usize * PAGE_BYTES;

/// Pages in an extent.
pub const EXTENT_PAGES: u32 = 8;

/// Number of pages for a number of bytes, rounded up.
pub fn pages_of(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE_BYTES as u64)
}

/// The number of a file within its database, as SQL Server counts: never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u16);

impl FileId {
    /// The first data file.
    pub const PRIMARY: Self = Self(1);
    /// The log file.
    pub const LOG: Self = Self(2);

    /// The data file with this place among the data files, from 0: 1, 3, 4, ...
    pub fn of_data(index: usize) -> Self {
        match index {
            0 => Self::PRIMARY,
            other => Self(u16::try_from(other + 2).unwrap_or(u16::MAX)),
        }
    }

    /// The file's place among the data files; `None` for the log.
    pub fn data_index(self) -> Option<usize> {
        match self {
            Self::PRIMARY => Some(0),
            Self(0) | Self::LOG => None,
            Self(other) => Some(usize::from(other) - 2),
        }
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Checksums in SQLite's reserved bytes, as SQLite's checksum VFS computes them.
///
/// A database whose page 1 reserves eight bytes at the end of each page (byte 20 is 8) stores in them a
/// checksum of the bytes before: two running sums over little-endian words.
/// Source: `SQLite`, `ext/misc/cksumvfs.c`, functions `cksmCompute` and `cksmRead`.
pub mod checksum {
    /// Bytes of a checksum, at the end of the page.
    pub const CHECKSUM_BYTES: usize = 8;

    /// Whether a database with this first page reserves space for checksums.
    pub fn is_reserved(first_page: &[u8]) -> bool {
        first_page.starts_with(b"SQLite format 3\0")
            && first_page.get(20).copied().map(usize::from) == Some(CHECKSUM_BYTES)
    }

    fn compute(content: &[u8]) -> [u8; CHECKSUM_BYTES] {
        let (mut first, mut second) = (0_u32, 0_u32);
        let (pairs, _) = content.as_chunks::<8>();
        for &[a, b, c, d, e, f, g, h] in pairs {
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

    /// Writes the checksum into the last bytes of a page.
    pub fn stamp(page: &mut [u8]) {
        if let Some((content, stored)) = page.split_last_chunk_mut() {
            *stored = compute(content);
        }
    }

    /// Compares the checksum at the end of `page` with its content; `(expected, found)` where they differ.
    ///
    /// A page that was never written (a hole, the lock-byte page) is all zero and has no mismatch.
    pub fn mismatch(page: &[u8]) -> Option<(u64, u64)> {
        let Some((content, stored)) = page.split_last_chunk() else {
            return Some((0, 0));
        };
        let expected = compute(content);
        (expected != *stored).then(|| (u64::from_le_bytes(expected), u64::from_le_bytes(*stored)))
    }

    /// Whether the page's checksum is correct.
    pub fn is_valid(page: &[u8]) -> bool {
        mismatch(page).is_none()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_single_changed_bit_is_noticed() {
            let mut page: Vec<u8> = (0..512_u32).map(|index| (index * 7 % 251) as u8).collect();
            stamp(&mut page);
            assert!(is_valid(&page));
            for index in [0, 100, 503, 504, 511] {
                page[index] ^= 1;
                assert!(!is_valid(&page), "byte {index}");
                page[index] ^= 1;
            }
        }

        #[test]
        fn the_sum_is_that_of_the_checksum_vfs() {
            // By hand: s1 += w0 + s2, s2 += w1 + s1, words little-endian.
            let content = [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0];
            assert_eq!(compute(&content), [7, 0, 0, 0, 14, 0, 0, 0]);
            assert!(is_valid(&[0; 4096]), "a page that was never written");
        }
    }
}
