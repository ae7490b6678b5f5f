//! Database pages: their headers, and the file and position of an extent.

use windlass_base::Lsn;
pub use windlass_base::page::{EXTENT_BYTES, EXTENT_PAGES, PAGE_BYTES};

use crate::error::PageId;
use crate::fields::Fields;

/// Bytes of a page sector, the unit of checksums and torn-page protection.
pub const SECTOR_BYTES: usize = 512;

/// Bytes of a page header.
pub const HEADER_BYTES: usize = 96;

/// Type of pages that pad a transfer and belong to no file.
const FILLER_TYPE: u8 = 0x65;

/// The highest page type in a database.
const TYPE_MAX: u8 = 20;

#[derive(Debug, Clone, Copy)]
pub struct PageHeader<'a>(Fields<'a>);

impl<'a> PageHeader<'a> {
    pub fn new(page: &'a [u8]) -> Self {
        Self(Fields(page))
    }

    /// Version of the header, 1.
    pub fn version(self) -> u8 {
        self.0.u8(0)
    }

    pub fn page_type(self) -> u8 {
        self.0.u8(1)
    }

    /// Level in its tree; 0 is a leaf.
    pub fn level(self) -> u8 {
        self.0.u8(3)
    }

    /// Whether the page has a checksum.
    pub fn has_checksum(self) -> bool {
        self.0.u16(4) & 0x0200 != 0
    }

    /// Whether the page has torn-page bits.
    pub fn has_torn_bits(self) -> bool {
        self.0.u16(4) & 0x0100 != 0
    }

    /// The allocation unit, as written by servers since 2005.
    pub fn allocation_unit(self) -> u64 {
        u64::from(self.0.u16(6)) << 48 | u64::from(self.0.u32(0x18)) << 16
    }

    /// Index number and object number of a page written by SQL Server 2000.
    pub fn old_identity(self) -> (u16, u32) {
        (self.0.u16(6), self.0.u32(0x18))
    }

    /// Length of the fixed part of a record.
    pub fn fixed_bytes(self) -> u16 {
        self.0.u16(0x0E)
    }

    pub fn next(self) -> PageId {
        page_pointer(self.0, 0x10)
    }

    pub fn slots(self) -> u16 {
        self.0.u16(0x16)
    }

    pub fn flags(self) -> u16 {
        self.0.u16(4)
    }

    /// Its own file and page number.
    pub fn id(self) -> PageId {
        page_pointer(self.0, 0x20)
    }

    /// LSN of its last change.
    pub fn lsn(self) -> Lsn {
        self.0.lsn(0x28)
    }

    /// The stored checksum or torn-page bits.
    pub fn checksum(self) -> u32 {
        self.0.u32(0x3C)
    }

    /// Whether this can be the header of page `index` of an extent.
    fn is_plausible(self, index: u32, files: &[u16]) -> bool {
        let id = self.id();
        self.version() == 1
            && (1..=TYPE_MAX).contains(&self.page_type())
            && id.page % EXTENT_PAGES == index
            && files.binary_search(&id.file).is_ok()
    }
}

/// Flag of a page of a database with transparent data encryption, according to public notes. Other pages can have it.
const FLAG_SEALED: u16 = 0x0008;

/// Types of pages with records: data, index, and the two of long values.
const TYPES_WITH_RECORDS: std::ops::RangeInclusive<u8> = 1..=4;

/// Whether the content of a page seems to be encrypted: its header says so, and most of its slots make no sense. No such
/// page was ever seen.
pub fn is_sealed(page: &[u8]) -> bool {
    let header = PageHeader::new(page);
    let slots = usize::from(header.slots()).min(PAGE_BYTES / 2);
    if header.flags() & FLAG_SEALED == 0 || !TYPES_WITH_RECORDS.contains(&header.page_type()) {
        return false;
    }
    let end = PAGE_BYTES - 2 * slots;
    let is_wrong = |slot: &usize| {
        let offset = usize::from(Fields(page).u16(PAGE_BYTES - 2 * (slot + 1)));
        offset != 0 && !(HEADER_BYTES..end).contains(&offset)
    };
    2 * (0..slots).filter(is_wrong).count() > slots
}

/// A page pointer: `u32` page, `u16` file.
pub(crate) fn page_pointer(fields: Fields<'_>, at: usize) -> PageId {
    PageId {
        page: fields.u32(at),
        file: fields.u16(at + 4),
    }
}

/// The position of 64 KB of page data in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Located {
    Extent {
        first: PageId,
    },
    /// None: they pad a transfer.
    Filler,
    /// Unknown: no page header identifies them.
    Unknown,
}

/// Finds the position of an extent from its page headers; `files` are the data files of the database in
/// ascending order.
pub fn locate(extent: &[u8], files: &[u16]) -> Located {
    let mut votes: [(PageId, u32); 8] = Default::default();
    let mut fillers = 0;
    for (index, page) in (0..EXTENT_PAGES).zip(extent.chunks(PAGE_BYTES)) {
        let header = PageHeader::new(page);
        if header.page_type() == FILLER_TYPE {
            fillers += 1;
        }
        if !header.is_plausible(index, files) {
            continue;
        }
        let id = header.id();
        let first = PageId {
            page: id.page - index,
            ..id
        };
        let slot = votes
            .iter_mut()
            .find(|(page, count)| *count == 0 || *page == first);
        if let Some((page, count)) = slot {
            *page = first;
            *count += 1;
        }
    }
    match votes.iter().max_by_key(|(_, count)| *count) {
        Some((first, 1..)) => Located::Extent { first: *first },
        _ if fillers == EXTENT_PAGES => Located::Filler,
        _ => Located::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(pages: [Option<PageId>; 8]) -> Vec<u8> {
        let mut extent = vec![0; EXTENT_BYTES];
        for (page, id) in extent.chunks_mut(PAGE_BYTES).zip(pages) {
            if let Some(id) = id {
                page[0] = 1;
                page[1] = 1;
                page[0x20..0x24].copy_from_slice(&id.page.to_le_bytes());
                page[0x24..0x26].copy_from_slice(&id.file.to_le_bytes());
            }
        }
        extent
    }

    #[test]
    fn the_majority_of_the_headers_places_an_extent() {
        let id = |page| Some(PageId { file: 1, page });
        let pages = [None, id(17), id(18), id(3), None, None, id(22), None];
        assert_eq!(
            locate(&extent(pages), &[1]),
            Located::Extent {
                first: PageId { file: 1, page: 16 }
            }
        );
        assert_eq!(locate(&extent(pages), &[3]), Located::Unknown);
    }
}
