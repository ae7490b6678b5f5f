//! The pages of each object: a file is read once, so the system tables are kept until its end.

use std::collections::{BTreeMap, HashMap};

use super::FileCensus;
use crate::error::{Error, PageId};
use crate::page::{PAGE_BYTES, PageHeader};
use crate::table::{Database, Owner, OwnerPart, Pages};

/// Maximum number of pages that are kept: 128 MB.
const KEPT_MAX: usize = 16_384;

/// The object numbers of the tables that are kept. Allocation maps have 99.
const OBJECTS_KEPT: std::ops::Range<u32> = 1..99;

/// The number of no object.
const NO_OBJECT: u32 = 0;

/// The page that leads to the system tables.
const BOOT_PAGE: PageId = PageId { file: 1, page: 9 };

/// The pages of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectCensus {
    pub owner: Owner,
    /// Pages of its rows.
    pub row_pages: u64,
    /// Pages of its other indexes.
    pub index_pages: u64,
    /// Pages of values too long for their row.
    pub long_pages: u64,
}

impl ObjectCensus {
    fn of(owner: Owner) -> Self {
        Self {
            owner,
            row_pages: 0,
            index_pages: 0,
            long_pages: 0,
        }
    }

    pub fn pages(&self) -> u64 {
        self.row_pages + self.index_pages + self.long_pages
    }

    pub fn bytes(&self) -> u64 {
        self.pages() * PAGE_BYTES as u64
    }
}

/// The pages of a set that say who owns the others.
#[derive(Debug, Default)]
pub(super) struct SystemPages {
    pages: HashMap<PageId, Vec<u8>>,
    is_full: bool,
}

impl SystemPages {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Keeps the page if it belongs to the system tables. A later copy replaces an earlier one.
    pub(super) fn offer(&mut self, id: PageId, page: &[u8]) {
        let header = PageHeader::new(page);
        let (index, object) = header.old_identity();
        let is_system = index < 256 && OBJECTS_KEPT.contains(&object);
        if header.id() != id || !is_system && id != BOOT_PAGE {
            return;
        }
        if self.pages.len() >= KEPT_MAX && !self.pages.contains_key(&id) {
            self.is_full = true;
            return;
        }
        self.pages.insert(id, page.to_vec());
    }

    /// Whether all pages of the system tables were too many to keep.
    pub(super) fn are_too_many(&self) -> bool {
        self.is_full
    }

    /// The objects of these files, the largest first, and whether the system tables are whole; `None` if they cannot be
    /// read.
    pub(super) fn objects<'f>(
        &mut self,
        files: impl Iterator<Item = &'f FileCensus>,
    ) -> Option<(Vec<ObjectCensus>, bool)> {
        if self.is_full || !self.pages.contains_key(&BOOT_PAGE) {
            return None;
        }
        let mut database = Database::open(self).ok()?;
        let is_whole = database.problems.count == 0;
        let owners = database.owners(self).ok()?;
        let mut objects: BTreeMap<u32, ObjectCensus> = BTreeMap::new();
        for (unit, pages) in files.flat_map(|file| &file.units) {
            let (number, part) = match owners.of(*unit) {
                Some((owner, part)) => (owner.object, part),
                None => (NO_OBJECT, OwnerPart::Rows),
            };
            let object = objects.entry(number).or_insert_with(|| {
                let owner = owners.of(*unit).map(|(owner, _)| owner.clone());
                ObjectCensus::of(owner.unwrap_or_else(unknown))
            });
            match part {
                OwnerPart::Rows => object.row_pages += pages,
                OwnerPart::Index => object.index_pages += pages,
                OwnerPart::LongValues => object.long_pages += pages,
            }
        }
        let mut objects: Vec<ObjectCensus> = objects.into_values().collect();
        objects.sort_by_key(|object| (std::cmp::Reverse(object.pages()), object.owner.object));
        Some((objects, is_whole))
    }
}

/// Stands for pages of no object.
fn unknown() -> Owner {
    Owner {
        object: NO_OBJECT,
        schema: String::new(),
        name: "allocation maps, and pages of unknown objects".to_owned(),
        kind: String::new(),
    }
}

impl Pages for SystemPages {
    fn page(&mut self, id: PageId, page: &mut [u8]) -> Result<bool, Error> {
        let found = self.pages.get(&id);
        if let Some(found) = found {
            page.copy_from_slice(found);
        }
        Ok(found.is_some())
    }
}
