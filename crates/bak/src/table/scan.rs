//! The pages of a heap or of the leaf level of an index, in order.

use std::collections::HashSet;

use super::pages::{Allocation, Page, Pages};
use super::record::Kind;
use crate::error::{Error, PageId};
use crate::fields::Fields;
use crate::page::{EXTENT_PAGES, page_pointer};

/// Maximum levels of an index; no real index has as many.
const LEVELS_MAX: u32 = 32;

/// Type of a page with rows.
const TYPE_DATA: u8 = 1;

/// Type of a page of the upper levels of an index.
const TYPE_INDEX: u8 = 2;

/// Type of an IAM page.
const TYPE_IAM: u8 = 10;

/// Extents covered by an IAM page.
const IAM_EXTENTS: u32 = 63_904;

/// Offset of the first page number of an IAM page's range.
const IAM_START_AT: usize = 0x88;

/// Offset of its single pages.
const IAM_SINGLES_AT: usize = 0x8E;

/// Number of single pages in an IAM page.
const IAM_SINGLES: usize = 8;

/// Offset of its bitmap.
const IAM_MAP_AT: usize = 0xC2;

/// What to read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scan {
    /// Pages linked to each other, and the allocation unit that they are of.
    Chain { first: PageId, unit: UnitPages },
    /// The leaf level of an index.
    Index { root: PageId, unit: UnitPages },
    /// All pages of an allocation unit.
    Heap(UnitPages),
}

/// The pages of an allocation unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnitPages {
    pub(super) first_iam: PageId,
    /// Its id.
    pub(super) unit: u64,
    /// Its table, which pages of SQL Server 2000 contain instead.
    pub(super) object: u32,
}

/// The result of a scan.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scanned {
    pub(super) pages: u64,
    pub(super) problems: Problems,
}

/// Problems: the first ones as text, and the total number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    /// The first ones.
    pub texts: Vec<String>,
    pub count: u64,
}

/// Maximum number of problems kept as text.
const PROBLEM_TEXTS_MAX: usize = 20;

/// Number of missing pages at which a heap is given up.
const MISSING_MAX: u64 = 100_000;

impl Problems {
    pub(super) fn push(&mut self, text: String) {
        self.count += 1;
        if self.texts.len() < PROBLEM_TEXTS_MAX {
            self.texts.push(text);
        }
    }

    /// Adds the damage of a page, if it has any. What is on it is read all the same.
    pub(super) fn add(&mut self, page: &Page) {
        if let Some(damage) = page.damage() {
            self.push(damage);
        }
    }

    /// Adds others; one of the same words, as of a page that was read for several tables, is not said again.
    pub(super) fn extend(&mut self, other: Self) {
        self.count += other.count.saturating_sub(other.texts.len() as u64);
        for text in other.texts {
            if !self.texts.contains(&text) {
                self.push(text);
            }
        }
    }
}

/// Called with each page, and with the page source, for values stored elsewhere.
pub(super) type Each<'a> = dyn FnMut(&mut dyn Pages, &Page) -> Result<(), Error> + 'a;

/// Passes every page with rows to `each`.
pub(super) fn scan(
    pages: &mut dyn Pages,
    allocation: &mut Allocation,
    what: Scan,
    each: &mut Each<'_>,
) -> Result<Scanned, Error> {
    let mut scanned = Scanned::default();
    let mut damaged = Problems::default();
    let mut each = |pages: &mut dyn Pages, page: &Page| {
        damaged.add(page);
        each(pages, page)
    };
    let mut seen = HashSet::new();
    // The unit whose pages are all to be read that were not seen.
    let unit = match what {
        Scan::Chain { first, unit } => {
            let is_whole = follow(pages, first, unit, &mut each, &mut seen, &mut scanned)?;
            Some(unit).filter(|_| !is_whole)
        }
        Scan::Index { root, unit } => {
            let found = first_leaf(pages, root, &mut scanned)?;
            // What is damaged on the way can lead to the middle of the leaves.
            let is_first = scanned.problems.count == 0;
            let is_whole = match found {
                Some(first) => {
                    follow(pages, first, unit, &mut each, &mut seen, &mut scanned)? && is_first
                }
                None => root == PageId::default(),
            };
            Some(unit).filter(|_| !is_whole)
        }
        Scan::Heap(unit) => Some(unit),
    };
    if let Some(unit) = unit {
        let mut take = |pages: &mut dyn Pages, id| {
            if seen.contains(&id) || !allocation.is_allocated(pages, id)? {
                return Ok(None);
            }
            let Some(page) = Page::fetch(pages, id)? else {
                return Ok(Some(Page::absence(pages, id)?));
            };
            if unit.has(&page) {
                each(pages, &page)?;
                return Ok(Some(String::new()));
            }
            Ok(None)
        };
        heap(pages, unit.first_iam, &mut take, &mut scanned)?;
        scanned
            .problems
            .extend(std::mem::take(&mut allocation.problems));
    }
    scanned.problems.extend(damaged);
    Ok(scanned)
}

impl UnitPages {
    /// Whether it is a page with rows of this unit.
    fn has(&self, page: &Page) -> bool {
        let header = page.header();
        let (index, object) = header.old_identity();
        let is_ours = header.allocation_unit() == self.unit || object == self.object && index <= 1;
        header.page_type() == TYPE_DATA && is_ours
    }
}

/// Follows a chain to its end; returns `false` if it breaks off before that, or can have missed pages.
fn follow(
    pages: &mut dyn Pages,
    first: PageId,
    unit: UnitPages,
    each: &mut Each<'_>,
    seen: &mut HashSet<PageId>,
    scanned: &mut Scanned,
) -> Result<bool, Error> {
    let mut next = first;
    let mut is_whole = true;
    while next != PageId::default() {
        if !seen.insert(next) {
            scanned
                .problems
                .push(format!("the page chain loops at page {next}"));
            return Ok(false);
        }
        let Some(page) = Page::fetch(pages, next)? else {
            let absence = Page::absence(pages, next)?;
            scanned.problems.push(format!(
                "{absence}, and with it the link to the pages after it is lost"
            ));
            return Ok(false);
        };
        if !unit.has(&page) {
            scanned.problems.add(&page);
            scanned.problems.push(format!(
                "page {next} is linked as one of the rows that are read, but its header says that it has type {} and \
                 belongs to allocation unit {}, not type {TYPE_DATA} and {}",
                page.header().page_type(),
                page.header().allocation_unit(),
                unit.unit
            ));
            return Ok(false);
        }
        // The link of a damaged page may be wrong.
        is_whole &= page.damage().is_none();
        scanned.pages += 1;
        each(pages, &page)?;
        next = page.header().next();
    }
    Ok(is_whole)
}

/// Follows the first child from the root down to the leaf level.
fn first_leaf(
    pages: &mut dyn Pages,
    root: PageId,
    scanned: &mut Scanned,
) -> Result<Option<PageId>, Error> {
    let mut at = root;
    if at == PageId::default() {
        return Ok(None);
    }
    for _ in 0..LEVELS_MAX {
        let Some(page) = Page::fetch(pages, at)? else {
            let absence = Page::absence(pages, at)?;
            let what = format!("{absence}: it is on the way to the first leaf");
            scanned.problems.push(what);
            return Ok(None);
        };
        let header = page.header();
        if header.page_type() == TYPE_INDEX {
            scanned.problems.add(&page);
        }
        match header.page_type() {
            TYPE_DATA => return Ok(Some(at)),
            TYPE_INDEX => {}
            other => {
                let what = format!("page {at}, on the way to the first leaf, has type {other}");
                scanned.problems.push(what);
                return Ok(None);
            }
        }
        let fixed = usize::from(header.fixed_bytes());
        let child = page.record(0).filter(|record| {
            Kind::of(record) == Some(Kind::Index) && record.len() >= fixed && fixed >= 6
        });
        let Some(child) = child else {
            scanned
                .problems
                .push(format!("page {at} has no first child"));
            return Ok(None);
        };
        at = page_pointer(Fields(child), fixed - 6);
    }
    scanned
        .problems
        .push(format!("more than {LEVELS_MAX} levels below page {root}"));
    Ok(None)
}

/// Reads a page. Returns `None` if it has no rows, a problem, or an empty text if it was read.
type Take<'a> = dyn FnMut(&mut dyn Pages, PageId) -> Result<Option<String>, Error> + 'a;

fn heap(
    pages: &mut dyn Pages,
    first_iam: PageId,
    take: &mut Take<'_>,
    scanned: &mut Scanned,
) -> Result<(), Error> {
    let mut seen = HashSet::new();
    let mut next = first_iam;
    while next != PageId::default() {
        let Some(iam) = Page::fetch(pages, next)? else {
            let absence = Page::absence(pages, next)?;
            scanned
                .problems
                .push(format!("{absence}: it has an allocation map"));
            return Ok(());
        };
        let found = iam.header().page_type();
        if found != TYPE_IAM || !seen.insert(next) {
            scanned.problems.push(format!(
                "page {next} has no allocation map, or one that was read before: its type is {found}, an allocation \
                 map has {TYPE_IAM}"
            ));
            return Ok(());
        }
        scanned.problems.add(&iam);
        for id in listed(&iam, seen.len() == 1) {
            match take(pages, id)? {
                None => {}
                Some(problem) if problem.is_empty() => scanned.pages += 1,
                Some(problem) => scanned.problems.push(problem),
            }
            if scanned.problems.count > MISSING_MAX {
                return Ok(());
            }
        }
        next = iam.header().next();
    }
    Ok(())
}

/// The pages that an IAM page lists, in order.
fn listed(iam: &Page, is_first: bool) -> Vec<PageId> {
    let fields = iam.fields();
    let start = page_pointer(fields, IAM_START_AT);
    let mut listed = Vec::new();
    if is_first {
        let singles =
            (0..IAM_SINGLES).map(|index| page_pointer(fields, IAM_SINGLES_AT + 6 * index));
        listed.extend(singles.filter(|page| *page != PageId::default()));
    }
    for extent in 0..IAM_EXTENTS {
        let byte = fields.u8(IAM_MAP_AT + (extent / 8) as usize);
        if byte >> (extent % 8) & 1 == 0 {
            continue;
        }
        let first = start.page.saturating_add(extent * EXTENT_PAGES);
        listed.extend((0..EXTENT_PAGES).map(|index| PageId {
            page: first.saturating_add(index),
            ..start
        }));
    }
    listed.sort_unstable();
    listed
}
