//! Pages, extents, and ids of database files.
//!
//! Pages are counted in two ways, and each has a type of its own:
//!
//! - A page of a database, whichever file holds it: [`PageNumber`], from 1, as SQLite counts.
//! - A page of a file: [`FilePage`], from 0, as SQL Server counts.
//!
//! Numbers of pages (`page_count`) are integers.

use std::fmt;
use std::num::NonZeroU32;

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

/// A page of a database.
///
/// The number is SQLite's, which counts from 1. SQLite's headers, write-ahead logs and messages, the
/// log of the page engine and its errors all contain this number. Arithmetic needs
/// [`PageNumber::index`], which counts from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageNumber(NonZeroU32);

impl PageNumber {
    /// The page with SQLite's header.
    pub const FIRST: Self = Self(NonZeroU32::MIN);
    /// The highest number that can be written.
    pub const LAST: Self = Self(NonZeroU32::MAX);

    /// From SQLite's number, which counts from 1: no page has the number 0.
    pub const fn from_sqlite(number: u32) -> Option<Self> {
        match NonZeroU32::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// From the number of pages before it: 0 is the first page.
    pub const fn from_index(index: u32) -> Option<Self> {
        Self::from_sqlite(index.wrapping_add(1))
    }

    /// The page that contains a byte of a database stored in one file.
    pub fn at_byte(offset: u64, page_bytes: usize) -> Option<Self> {
        let index = offset / page_bytes as u64;
        u32::try_from(index).ok().and_then(Self::from_index)
    }

    /// All pages of a database of `page_count` pages.
    pub fn all(page_count: u32) -> impl Iterator<Item = Self> {
        (0..page_count).filter_map(Self::from_index)
    }

    /// SQLite's number, from 1.
    pub const fn sqlite(self) -> u32 {
        self.0.get()
    }

    /// The number of pages before it.
    pub const fn index(self) -> u32 {
        self.0.get() - 1
    }

    /// Its first byte in a database stored in one file.
    pub fn byte_offset(self, page_bytes: usize) -> u64 {
        u64::from(self.index()) * page_bytes as u64
    }

    /// The extent it is in, if pages have [`PAGE_BYTES`] bytes.
    pub const fn extent(self) -> ExtentNumber {
        ExtentNumber(self.index() / EXTENT_PAGES)
    }

    /// The number of pages before it in its extent.
    pub const fn index_in_extent(self) -> u32 {
        self.index() % EXTENT_PAGES
    }

    /// Whether a database of `page_count` pages has it.
    pub const fn is_within(self, page_count: u32) -> bool {
        self.0.get() <= page_count
    }
}

impl fmt::Display for PageNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An extent of a database of the page engine, whichever file holds it, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtentNumber(pub u32);

impl ExtentNumber {
    /// All extents of a database of `page_count` pages; the last one may be used in part.
    pub fn all(page_count: u32) -> impl Iterator<Item = Self> {
        (0..page_count.div_ceil(EXTENT_PAGES)).map(Self)
    }

    /// The page with `index` pages before it in the extent.
    pub fn page(self, index: u32) -> Option<PageNumber> {
        let first = self.0.checked_mul(EXTENT_PAGES)?;
        first.checked_add(index).and_then(PageNumber::from_index)
    }

    /// How many of its pages a database of `page_count` pages has.
    pub fn pages_within(self, page_count: u32) -> u32 {
        let before = self.0.saturating_mul(EXTENT_PAGES);
        EXTENT_PAGES.min(page_count.saturating_sub(before))
    }
}

/// A page of a file, as SQL Server identifies it and shows it: `(1:57)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePage {
    pub file_id: FileId,
    /// The number of pages before it in the file: from 0.
    pub page: u64,
}

impl FilePage {
    /// The page that contains a byte of a file.
    pub fn at_byte(file_id: FileId, offset: u64, page_bytes: usize) -> Self {
        let page = offset / page_bytes as u64;
        Self { file_id, page }
    }

    /// Its first byte in the file.
    pub fn byte_offset(self, page_bytes: usize) -> u64 {
        self.page.saturating_mul(page_bytes as u64)
    }
}

impl fmt::Display for FilePage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}:{})", self.file_id, self.page)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_counted_from_1_by_its_number_and_from_0_by_its_index() {
        let number = |sqlite| PageNumber::from_sqlite(sqlite).unwrap();
        assert_eq!(PageNumber::from_sqlite(0), None);
        assert_eq!(PageNumber::from_index(u32::MAX), None);
        for (sqlite, extent, index) in [(1, 0, 0), (8, 0, 7), (9, 1, 0), (u32::MAX, 0x1FFF_FFFF, 6)]
        {
            let page = number(sqlite);
            assert_eq!((page.sqlite(), page.index()), (sqlite, sqlite - 1));
            assert_eq!(PageNumber::from_index(page.index()), Some(page));
            assert_eq!(page.extent(), ExtentNumber(extent));
            assert_eq!(page.index_in_extent(), index);
            assert_eq!(page.extent().page(index), Some(page));
            let offset = page.byte_offset(PAGE_BYTES);
            for byte in [offset, offset + PAGE_BYTES as u64 - 1] {
                assert_eq!(PageNumber::at_byte(byte, PAGE_BYTES), Some(page));
            }
            assert!(page.is_within(sqlite) && !page.is_within(sqlite - 1));
        }
        assert_eq!(PageNumber::at_byte((1 << 32) * 512, 512), None);
        assert_eq!(
            PageNumber::all(2)
                .map(PageNumber::sqlite)
                .collect::<Vec<_>>(),
            [1, 2]
        );
        assert_eq!(ExtentNumber(0x2000_0000).page(0), None);
    }

    #[test]
    fn the_last_extent_has_the_pages_that_remain() {
        for (page_count, last, pages) in
            [(1, 0, 1), (8, 0, 8), (9, 1, 1), (u32::MAX, 0x1FFF_FFFF, 7)]
        {
            let extent = ExtentNumber(last);
            assert_eq!(extent.pages_within(page_count), pages);
            assert_eq!(ExtentNumber(last + 1).pages_within(page_count), 0);
        }
        assert_eq!(ExtentNumber::all(17).last(), Some(ExtentNumber(2)));
        assert_eq!(ExtentNumber::all(0).next(), None);
    }
}
