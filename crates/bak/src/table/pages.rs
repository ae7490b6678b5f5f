//! Access to pages by number, wherever they are stored.

use super::scan::Problems;
use crate::checksum::{page_checksum, restore_torn_bits, torn_bits_agree};
use crate::error::{Error, PageId};
use crate::fields::Fields;
use crate::page::{PAGE_BYTES, PageHeader, is_sealed};

/// Pages covered by one PFS page.
const PFS_PAGES: u32 = 8088;

/// Offset of its bytes.
const PFS_AT: usize = 0x64;

/// Type of a PFS page.
const TYPE_PFS: u8 = 11;

/// Bit of a PFS byte: the page is allocated.
const PFS_ALLOCATED: u8 = 0x40;

/// A source of pages.
pub trait Pages {
    /// Fills `page`, 8192 bytes, as on disk; returns `false` if the page does not exist.
    ///
    /// # Errors
    /// The page cannot be read.
    fn page(&mut self, id: PageId, page: &mut [u8]) -> Result<bool, Error>;
}

/// A page in its logical form.
#[derive(Debug, Clone)]
pub(super) struct Page {
    pub(super) id: PageId,
    bytes: Vec<u8>,
    /// What its checksum or its torn-page bits say against it.
    damage: Option<String>,
}

impl Page {
    /// The page, with the bits that torn-page protection replaced restored; `None` if it is
    /// missing, or has another number.
    pub(super) fn fetch(pages: &mut dyn Pages, id: PageId) -> Result<Option<Self>, Error> {
        let mut bytes = vec![0; PAGE_BYTES];
        if !pages.page(id, &mut bytes)? {
            return Ok(None);
        }
        let header = PageHeader::new(&bytes);
        if header.version() != 1 || header.id() != id {
            return Ok(None);
        }
        let damage = damage(header, &bytes);
        if header.has_torn_bits() {
            restore_torn_bits(&mut bytes);
        }
        Ok(Some(Self { id, bytes, damage }))
    }

    /// Why a page cannot be fetched, in words.
    pub(super) fn absence(pages: &mut dyn Pages, id: PageId) -> Result<String, Error> {
        let mut bytes = vec![0; PAGE_BYTES];
        if !pages.page(id, &mut bytes)? {
            return Ok(format!("page {id} is missing"));
        }
        let header = PageHeader::new(&bytes);
        let what = match header.version() {
            1 => format!("its header says that it is page {}", header.id()),
            other => format!("its header has version {other}, not 1"),
        };
        Ok(format!("page {id} is damaged: {what}"))
    }

    /// Why its content cannot be trusted.
    pub(super) fn damage(&self) -> Option<String> {
        let damage = self.damage.as_ref()?;
        Some(format!("page {} is damaged: {damage}", self.id))
    }

    pub(super) fn header(&self) -> PageHeader<'_> {
        PageHeader::new(&self.bytes)
    }

    pub(super) fn fields(&self) -> Fields<'_> {
        Fields(&self.bytes)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The offset of the record that begins first; `None` without records.
    pub(super) fn first_record(&self) -> Option<usize> {
        let slots = 0..self.header().slots();
        let offsets = slots.filter_map(|slot| {
            let at = PAGE_BYTES.checked_sub(2 * (usize::from(slot) + 1))?;
            Some(usize::from(self.fields().u16(at)))
        });
        offsets.filter(|offset| *offset > 0).min()
    }

    /// The record in a slot, up to the slot array; `None` if the slot is empty or invalid.
    pub(super) fn record(&self, slot: u16) -> Option<&[u8]> {
        let slots = self.header().slots();
        if slot >= slots {
            return None;
        }
        let at = PAGE_BYTES.checked_sub(2 * (usize::from(slot) + 1))?;
        let offset = usize::from(self.fields().u16(at));
        if offset < crate::page::HEADER_BYTES {
            return None;
        }
        let end = PAGE_BYTES.saturating_sub(2 * usize::from(slots));
        self.bytes.get(offset..end.max(offset))
    }
}

fn damage(header: PageHeader<'_>, page: &[u8]) -> Option<String> {
    let slots = usize::from(header.slots());
    if crate::page::HEADER_BYTES + 2 * slots > PAGE_BYTES {
        return Some(format!("its {slots} slots do not fit on a page"));
    }
    if header.has_checksum() {
        let (found, expected) = (header.checksum(), page_checksum(page));
        let differs = || format!("its checksum is {found:#010x}, computed {expected:#010x}");
        if found != expected {
            return Some(differs());
        }
    }
    if is_sealed(page) {
        return Some("it seems to be encrypted (transparent data encryption)".to_owned());
    }
    let is_torn = header.has_torn_bits() && !torn_bits_agree(page);
    is_torn.then(|| "its sectors were written at different times".to_owned())
}

/// Finds out which pages are allocated.
#[derive(Debug, Default)]
pub(super) struct Allocation {
    /// The PFS page that was read last: its number, and its content if it is there.
    read: Option<(PageId, Option<Page>)>,
    /// The PFS pages that are damaged or missing.
    pub(super) problems: Problems,
}

impl Allocation {
    /// Whether a page is allocated; pages whose PFS page is missing count as allocated.
    pub(super) fn is_allocated(
        &mut self,
        pages: &mut dyn Pages,
        id: PageId,
    ) -> Result<bool, Error> {
        let interval = id.page / PFS_PAGES;
        let wanted = PageId {
            page: if interval == 0 {
                1
            } else {
                interval * PFS_PAGES
            },
            ..id
        };
        if self.read.as_ref().is_none_or(|(read, _)| *read != wanted) {
            let page = self.fetch(pages, wanted)?;
            self.read = Some((wanted, page));
        }
        let at = PFS_AT + (id.page % PFS_PAGES) as usize;
        let page = self.read.as_ref().and_then(|(_, page)| page.as_ref());
        let state = page.map(|page| page.fields().u8(at));
        Ok(state.is_none_or(|state| state & PFS_ALLOCATED != 0))
    }

    fn fetch(&mut self, pages: &mut dyn Pages, id: PageId) -> Result<Option<Page>, Error> {
        let Some(page) = Page::fetch(pages, id)? else {
            let absence = Page::absence(pages, id)?;
            let what = format!("{absence}: which pages are free is unknown");
            self.problems.push(what);
            return Ok(None);
        };
        self.problems.add(&page);
        let found = page.header().page_type();
        if found != TYPE_PFS {
            self.problems.push(format!(
                "page {id} has type {found}, not {TYPE_PFS}: which pages are free is unknown"
            ));
            return Ok(None);
        }
        Ok(Some(page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_with_more_slots_than_fit_is_damaged() {
        let id = PageId { file: 1, page: 9 };
        for slots in [4049_u16, 4096, 4097, u16::MAX] {
            let mut bytes = vec![0; PAGE_BYTES];
            bytes[0x16..0x18].copy_from_slice(&slots.to_le_bytes());
            let damage = damage(PageHeader::new(&bytes), &bytes);
            assert!(
                damage.as_ref().is_some_and(|why| why.contains("slots")),
                "{slots}: {damage:?}"
            );
            let page = Page { id, bytes, damage };
            assert!((0..slots).all(|slot| page.record(slot).is_none_or(<[u8]>::is_empty)));
        }
        let mut bytes = vec![0; PAGE_BYTES];
        bytes[0x16..0x18].copy_from_slice(&4048_u16.to_le_bytes());
        assert_eq!(damage(PageHeader::new(&bytes), &bytes), None);
    }
}
