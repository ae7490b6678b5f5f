//! Pages of a data file outside of a backup: whether one is damaged, and what the file says of its database.

use windlass_base::{Guid, Lsn};

use crate::checksum::{page_checksum, torn_bits_agree};
use crate::error::PageId;
use crate::fields::Fields;
use crate::page::{PAGE_BYTES, PageHeader};
use crate::verify::{PFS_ALLOCATED, PFS_AT, PFS_PAGES};

/// The page of the first data file that describes the database.
pub const BOOT_PAGE: u32 = 9;

const TYPE_PFS: u8 = 11;
const TYPE_BOOT: u8 = 13;
const TYPE_FILE_HEADER: u8 = 15;

/// What the boot page says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boot {
    /// Version of the database.
    pub version: u16,
    /// Bits, as in the configuration of a backup.
    pub status: u32,
    /// Shared by the database and its restored copies.
    pub family: Guid,
    pub checkpoint: Lsn,
}

impl Boot {
    /// Reads it; `None` if it is no boot page.
    pub fn read(page: &[u8]) -> Option<Self> {
        let header = PageHeader::new(page);
        let fields = Fields(page);
        let is_boot = page.len() == PAGE_BYTES
            && header.page_type() == TYPE_BOOT
            && header.id()
                == PageId {
                    file: 1,
                    page: BOOT_PAGE,
                };
        is_boot.then(|| Self {
            version: fields.u16(0x64),
            status: fields.u32(0x84),
            family: fields.guid(0x1F8),
            checkpoint: fields.lsn(0x1BC),
        })
    }
}

/// The number of the data file that begins with this page; `None` if none does.
pub fn file_of_first_page(page: &[u8]) -> Option<u16> {
    let header = PageHeader::new(page);
    let is_first = page.len() == PAGE_BYTES
        && header.version() == 1
        && header.page_type() == TYPE_FILE_HEADER
        && header.id().page == 0;
    is_first.then(|| header.id().file)
}

/// The page that says whether a page is allocated.
pub fn pfs_page_of(page: u32) -> u32 {
    match page / PFS_PAGES {
        0 => 1,
        interval => interval * PFS_PAGES,
    }
}

/// Whether a page is allocated, according to its PFS page; if that is none, nobody knows, and it counts as allocated.
pub fn is_allocated(pfs: &[u8], id: PageId) -> bool {
    let header = PageHeader::new(pfs);
    let own = PageId {
        page: pfs_page_of(id.page),
        ..id
    };
    if header.page_type() != TYPE_PFS || header.id() != own {
        return true;
    }
    let state = Fields(pfs).u8(PFS_AT + (id.page % PFS_PAGES) as usize);
    state & PFS_ALLOCATED != 0
}

/// Whether a page is damaged: its checksum or its torn-page bits are wrong, or it is allocated and another page is in
/// its place. What is neither allocated nor has its own number can be anything.
pub fn is_damaged(page: &[u8], id: PageId, is_allocated: impl FnOnce() -> bool) -> bool {
    let header = PageHeader::new(page);
    if header.version() != 1 || header.id() != id {
        return is_allocated();
    }
    (header.has_checksum() && header.checksum() != page_checksum(page))
        || (header.has_torn_bits() && !torn_bits_agree(page))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(id: PageId, page_type: u8) -> Vec<u8> {
        let mut page = vec![0; PAGE_BYTES];
        page[..2].copy_from_slice(&[1, page_type]);
        page[4..6].copy_from_slice(&0x0200_u16.to_le_bytes());
        page[0x20..0x24].copy_from_slice(&id.page.to_le_bytes());
        page[0x24..0x26].copy_from_slice(&id.file.to_le_bytes());
        page
    }

    fn sealed(mut page: Vec<u8>) -> Vec<u8> {
        let sum = page_checksum(&page);
        page[0x3C..0x40].copy_from_slice(&sum.to_le_bytes());
        page
    }

    #[test]
    fn an_allocated_page_must_be_itself_and_a_free_one_can_be_anything() {
        let id = PageId { file: 1, page: 300 };
        let whole = sealed(page(id, 1));
        assert!(!is_damaged(&whole, id, || true));
        let other = PageId { page: 301, ..id };
        assert!(is_damaged(&whole, other, || true));
        assert!(!is_damaged(&whole, other, || false));
        assert!(is_damaged(&[0; PAGE_BYTES], id, || true));
        let mut flipped = whole;
        flipped[5000] ^= 1;
        assert!(is_damaged(&flipped, id, || false));
    }

    #[test]
    fn a_pfs_page_tells_what_is_allocated_and_without_one_everything_is() {
        let at = |page| PageId { file: 1, page };
        let mut pfs = page(at(1), TYPE_PFS);
        pfs[PFS_AT + 300] = PFS_ALLOCATED;
        assert!(is_allocated(&pfs, at(300)));
        assert!(!is_allocated(&pfs, at(301)));
        assert!(is_allocated(&pfs, at(PFS_PAGES + 5)));
        let mut second = page(at(PFS_PAGES), TYPE_PFS);
        second[PFS_AT + 5] = PFS_ALLOCATED;
        assert_eq!(pfs_page_of(PFS_PAGES + 5), PFS_PAGES);
        assert!(is_allocated(&second, at(PFS_PAGES + 5)));
        assert!(!is_allocated(&second, at(PFS_PAGES + 6)));
    }

    #[test]
    fn only_a_boot_page_is_read_as_one() {
        let id = PageId {
            file: 1,
            page: BOOT_PAGE,
        };
        let mut boot = page(id, TYPE_BOOT);
        boot[0x64..0x66].copy_from_slice(&957_u16.to_le_bytes());
        assert_eq!(Boot::read(&boot).map(|boot| boot.version), Some(957));
        boot[1] = 1;
        assert_eq!(Boot::read(&boot), None);
        assert_eq!(Boot::read(&[]), None);
    }
}
