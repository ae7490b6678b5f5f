//! The state of a data file during verification: extents seen, pages with their own number, and the
//! content of its maps.

use std::collections::BTreeMap;

use super::Checked;
use super::sparse::SparseBits;
use crate::error::{Damage, Finding, PageId, Place};
use crate::fields::Fields;
use crate::listing::{FINDINGS_MAX, SetListing};
use crate::mtf::configuration::{BackupType, Configuration, StoredFile};
use crate::page::{EXTENT_BYTES, EXTENT_PAGES, PAGE_BYTES};

/// Pages covered by one PFS page.
pub(crate) const PFS_PAGES: u32 = 8088;

/// Pages covered by one GAM page or one differential map page.
pub(crate) const GAM_PAGES: u32 = 511_232;

/// Offset of the bits of a map in its page.
pub(crate) const MAP_AT: usize = 0xC2;

const MAP_BYTES: usize = (GAM_PAGES / EXTENT_PAGES / 8) as usize;

/// Offset of the bytes of a PFS page.
pub(crate) const PFS_AT: usize = 0x64;

/// Bit of a PFS byte: the page is allocated.
pub(crate) const PFS_ALLOCATED: u8 = 0x40;

/// Maximum number of maps kept per file: enough for 16 TB.
const MAPS_MAX: usize = 4096;

const TYPE_GAM: u8 = 8;
const TYPE_PFS: u8 = 11;
const TYPE_BOOT: u8 = 13;
const TYPE_FILE_HEADER: u8 = 15;
const TYPE_DIFFERENTIAL: u8 = 16;

/// Consecutive extents, both in a file of the database and in the backup.
#[derive(Debug, Clone, Copy)]
struct Run {
    extent: u32,
    count: u32,
    input: usize,
    place: Place,
}

impl Run {
    /// The position of extent `index` of the run.
    fn place_of(&self, index: u32) -> Place {
        let behind = u64::from(index) * EXTENT_BYTES as u64;
        Place {
            stream: self.place.stream + behind,
            file: self.place.file + behind,
        }
    }
}

/// A data file.
#[derive(Debug, Default)]
pub(super) struct FileCheck {
    runs: Vec<Run>,
    extents: SparseBits,
    extent_count: u64,
    /// Pages that have their own number.
    own: SparseBits,
    /// Pages marked allocated by the PFS pages seen so far, by interval.
    allocated: BTreeMap<u32, Vec<u8>>,
    free: BTreeMap<u32, Vec<u8>>,
    changed: BTreeMap<u32, Vec<u8>>,
    first_type: Option<u8>,
    boot_type: Option<u8>,
    /// Pages that are wrong if they are allocated.
    pub(super) suspects: BTreeMap<u32, (usize, Finding)>,
}

/// The result of verifying a file.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) findings: Vec<(usize, Finding)>,
    pub(super) notes: Vec<String>,
    pub(super) unchecked: Vec<String>,
    pub(super) is_mapped: bool,
}

impl Outcome {
    fn report(&mut self, (input, place): (usize, Place), damage: Damage) {
        // Keeps one more than the limit, as a sign that there are more.
        if self.findings.len() <= FINDINGS_MAX {
            self.findings.push((input, Finding { place, damage }));
        }
    }
}

impl FileCheck {
    /// Adds an extent; returns `false` if it already exists.
    pub(super) fn add(&mut self, extent: u32, input: usize, place: Place) -> bool {
        let is_new = !self.extents.has(extent);
        self.extents.put(extent, true);
        self.extent_count += u64::from(is_new);
        if let Some(run) = self.runs.last_mut() {
            let bytes = u64::from(run.count) * EXTENT_BYTES as u64;
            let is_next = run.extent.checked_add(run.count) == Some(extent)
                && run.place.stream + bytes == place.stream;
            if is_next && run.input == input && place.file == place.stream {
                run.count += 1;
                return is_new;
            }
        }
        self.runs.push(Run {
            extent,
            count: 1,
            input,
            place,
        });
        is_new
    }

    /// The position of an extent.
    fn place_of(&self, extent: u32) -> (usize, Place) {
        let run = self
            .runs
            .iter()
            .rev()
            .find(|run| (run.extent..run.extent + run.count).contains(&extent));
        run.map_or((0, Place::default()), |run| {
            (run.input, run.place_of(extent - run.extent))
        })
    }

    /// Records a page's number, and its content if it is a map.
    pub(super) fn note_page(&mut self, page: u32, is_own: bool, page_type: u8, bytes: &[u8]) {
        self.own.put(page, is_own);
        if page == 0 {
            self.first_type = Some(page_type);
        }
        if page == 9 {
            self.boot_type = Some(page_type);
        }
        if !is_own {
            return;
        }
        let fields = Fields(bytes);
        let map = |at, length| fields.bytes(at, length).to_vec();
        match page_type {
            TYPE_PFS if page == 1 || page.is_multiple_of(PFS_PAGES) => {
                let states = fields.bytes(PFS_AT, PFS_PAGES as usize);
                let mut bits = vec![0; (PFS_PAGES / 8) as usize];
                for (index, state) in states.iter().enumerate() {
                    if let Some(byte) = bits.get_mut(index / 8) {
                        *byte |= u8::from(state & PFS_ALLOCATED != 0) << (index % 8);
                    }
                }
                self.allocated.insert(page / PFS_PAGES, bits);
            }
            TYPE_GAM if is_map(page, 2, 0) && self.free.len() < MAPS_MAX => {
                self.free.insert(page / GAM_PAGES, map(MAP_AT, MAP_BYTES));
            }
            TYPE_DIFFERENTIAL if is_map(page, 6, 6) && self.changed.len() < MAPS_MAX => {
                self.changed
                    .insert(page / GAM_PAGES, map(MAP_AT, MAP_BYTES));
            }
            _ => {}
        }
    }

    pub(super) fn suspect(&mut self, page: u32, input: usize, finding: Finding) {
        if self.suspects.len() <= FINDINGS_MAX {
            self.suspects.insert(page, (input, finding));
        }
    }

    /// Whether the PFS marks a page allocated; `None` if its PFS page is missing.
    fn is_allocated(&self, page: u32) -> Option<bool> {
        let bits = self.allocated.get(&(page / PFS_PAGES))?;
        let index = page % PFS_PAGES;
        let byte = bits.get((index / 8) as usize)?;
        Some(byte >> (index % 8) & 1 == 1)
    }

    /// Compares the extents found with the map of required extents, and with their expected number.
    pub(super) fn compare(
        &self,
        set: &SetListing,
        configuration: &Configuration,
        file: &StoredFile,
        outcome: &mut Outcome,
    ) {
        let expected = u64::from(set.stored_pages(file) / EXTENT_PAGES);
        if expected != self.extent_count {
            let damage = Damage::ExtentCount {
                file: file.id,
                expected,
                found: self.extent_count,
            };
            outcome.report((0, set.place), damage);
        }
        let (maps, name, marked) = match configuration.backup_type {
            BackupType::Database => (&self.free, "the GAM", 0),
            BackupType::Differential => (&self.changed, "the differential map", 1),
            other => {
                outcome.unchecked.push(format!(
                    "that file {} has all its extents: not known for a backup of type '{}'",
                    file.id,
                    other.description()
                ));
                return;
            }
        };
        let extents = u32::try_from(file.bytes / EXTENT_BYTES as u64).unwrap_or(u32::MAX);
        let interval_extents = GAM_PAGES / EXTENT_PAGES;
        outcome.is_mapped = true;
        for interval in 0..extents.div_ceil(interval_extents) {
            let Some(map) = maps.get(&interval) else {
                outcome.is_mapped = false;
                if u32::from(interval == 0) == 1 || outcome.unchecked.len() < 16 {
                    outcome.unchecked.push(format!(
                        "that file {} has all its extents: {name} of its interval {interval} is \
                         not in the set",
                        file.id
                    ));
                }
                if outcome.unchecked.len() >= 16 {
                    return;
                }
                continue;
            };
            let first = interval * interval_extents;
            let end = extents.min(first.saturating_add(interval_extents));
            for extent in first..end {
                let index = extent - first;
                let byte = map.get((index / 8) as usize).copied().unwrap_or(0);
                let is_marked = byte >> (index % 8) & 1 == marked;
                let page = PageId {
                    file: file.id,
                    page: extent.saturating_mul(EXTENT_PAGES),
                };
                self.compare_extent(page, (is_marked, name), set, outcome);
            }
        }
    }

    fn compare_extent(
        &self,
        page: PageId,
        (is_marked, map): (bool, &'static str),
        set: &SetListing,
        outcome: &mut Outcome,
    ) {
        match (is_marked, self.extents.has(page.page / EXTENT_PAGES)) {
            (true, false) => {
                let damage = Damage::ExtentMissing { page, map };
                if set.has_second_copy() {
                    // The map was read again after the data, and may be newer.
                    outcome.notes.push(damage.to_string());
                } else {
                    outcome.report((0, set.place), damage);
                }
            }
            (false, true) if outcome.notes.len() < FINDINGS_MAX => {
                // An extent that was freed during the backup does no harm.
                let damage = Damage::ExtentExtra { page, map };
                outcome.notes.push(damage.to_string());
            }
            _ => {}
        }
    }

    /// Checks each page of each extent again, now that the PFS pages are known.
    pub(super) fn check_pages(
        &self,
        file: u16,
        is_full: bool,
        checked: &mut Checked,
        outcome: &mut Outcome,
    ) {
        let mut seen = SparseBits::default();
        for run in &self.runs {
            for index in 0..run.count {
                let extent = run.extent.saturating_add(index);
                if seen.has(extent) {
                    continue;
                }
                seen.put(extent, true);
                let at = (run.input, run.place_of(index));
                for page in 0..EXTENT_PAGES {
                    let page = extent.saturating_mul(EXTENT_PAGES) + page;
                    self.check_page(PageId { file, page }, at, checked, outcome);
                }
            }
        }
        if is_full {
            self.check_type(
                PageId { file, page: 0 },
                self.first_type,
                TYPE_FILE_HEADER,
                outcome,
            );
            if file == 1 {
                self.check_type(PageId { file, page: 9 }, self.boot_type, TYPE_BOOT, outcome);
            }
        }
    }

    fn check_page(
        &self,
        id: PageId,
        at: (usize, Place),
        checked: &mut Checked,
        outcome: &mut Outcome,
    ) {
        let is_own = self.own.has(id.page);
        let is_allocated = self.is_allocated(id.page);
        if is_own && is_allocated == Some(true) {
            checked.allocated_pages += 1;
        }
        if let Some((input, finding)) = self.suspects.get(&id.page) {
            // A page that was never formatted can contain anything, but does not have its own
            // number.
            if is_own || is_allocated == Some(true) {
                outcome.report((*input, finding.place), finding.damage.clone());
                return;
            }
        }
        if is_own {
            return;
        }
        if is_allocated == Some(true) {
            let damage = Damage::PageIdentity {
                page: id,
                found: PageId::default(),
            };
            outcome.report(at, damage);
        } else {
            checked.unformatted_pages += 1;
        }
    }

    fn check_type(&self, id: PageId, found: Option<u8>, expected: u8, outcome: &mut Outcome) {
        let at = self.place_of(id.page / EXTENT_PAGES);
        match found {
            Some(found) if found == expected => {}
            Some(found) => outcome.report(
                at,
                Damage::PageType {
                    page: id,
                    expected,
                    found,
                },
            ),
            None => outcome.unchecked.push(format!(
                "that page {id} is of type {expected}: it is not in the set"
            )),
        }
    }
}

/// Whether a page is the map of its interval: at `first` in the first interval, at `later` in the
/// others.
fn is_map(page: u32, first: u32, later: u32) -> bool {
    page == first || page > GAM_PAGES - 1 && page % GAM_PAGES == later
}

const _: () = assert!(MAP_AT + MAP_BYTES <= PAGE_BYTES);
