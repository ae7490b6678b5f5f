//! The base system tables: the rowsets, the positions of their pages, and the layout of their
//! columns.
//!
//! Whatever is damaged in them hides tables or rows, so that nothing of it goes unsaid: pages that are damaged or missing,
//! rows that cannot be decoded, and other numbers of rows than the server counts are problems of the database.

use std::collections::{BTreeMap, HashMap};

use super::compressed::Compression;
use super::layout::Field;
use super::pages::{Allocation, Page, Pages};
use super::record::{Kind, Row};
use super::scan::{Problems, Scan, UnitPages, scan};
use super::value::SqlType;
use crate::error::{Error, PageId};
use crate::fields::Fields;
use crate::page::{is_sealed, page_pointer};

const BOOT_PAGE: PageId = PageId { file: 1, page: 9 };

/// Type of the boot page.
const TYPE_BOOT: u8 = 13;

/// Offset in the boot page of the pointer to the first page of `sysallocunits`.
const ALLOCATION_UNITS_AT: usize = 0x264;

/// Object numbers of the base tables.
const SYSRSCOLS: u64 = 3;
const SYSROWSETCOLUMNS: u64 = 4;
const SYSROWSETS: u64 = 5;
const SYSALLOCUNITS: u64 = 7;
const SYSHOBTCOLUMNS: u64 = 13;

/// The number of no table.
const NO_OBJECT: u32 = u32::MAX;

/// An allocation unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) id: u64,
    /// 1 rows, 2 LOB, 3 row overflow.
    pub(super) kind: u8,
    pub(super) first: PageId,
    pub(super) root: PageId,
    pub(super) first_iam: PageId,
    pub(super) data_pages: u64,
}

/// A rowset: a heap or an index of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rowset {
    pub(super) id: u64,
    pub(super) object: u32,
    pub(super) index: u32,
    pub(super) partition: u32,
    /// Number of rows according to the server.
    pub(super) rows: u64,
    pub(super) compression: Compression,
}

/// The content of the base tables.
#[derive(Debug, Default)]
pub(super) struct System {
    /// Units by their owner.
    pub(super) units: HashMap<u64, Vec<Unit>>,
    pub(super) rowsets: Vec<Rowset>,
    /// Columns by rowset.
    pub(super) fields: HashMap<u64, Vec<Field>>,
    /// Version of the database.
    pub(super) version: u16,
    /// Problems with reading the base tables.
    pub(super) problems: Problems,
}

impl System {
    /// Reads the base tables.
    pub(super) fn read(pages: &mut dyn Pages) -> Result<Self, Error> {
        let mut system = Self::default();
        let Some(boot) = Page::fetch(pages, BOOT_PAGE)? else {
            let absence = Page::absence(pages, BOOT_PAGE)?;
            system.problems.push(absence);
            return Err(system.missing("the boot page"));
        };
        system.problems.add(&boot);
        if boot.header().page_type() != TYPE_BOOT {
            let found = boot.header().page_type();
            let what = format!("page {BOOT_PAGE} has type {found}, not {TYPE_BOOT}");
            system.problems.push(what);
            return Err(system.missing("the boot page"));
        }
        system.version = boot.fields().u16(0x64);
        let first = page_pointer(boot.fields(), ALLOCATION_UNITS_AT);
        if let Some(page) = Page::fetch(pages, first)?.filter(|page| is_sealed(page.bytes())) {
            let flags = page.header().flags();
            return Err(Error::SealedPage { page: first, flags });
        }
        system.read_units(pages, first)?;
        if system.units.is_empty() {
            return Err(system.missing("the allocation units (sysallocunits)"));
        }
        let rowsets = system.read_rowsets(pages)?;
        if rowsets == 0 {
            return Err(system.missing("the rowsets (sysrowsets)"));
        }
        let units: u64 = system.units.values().map(|units| units.len() as u64).sum();
        system.compare(SYSALLOCUNITS, "sysallocunits", units);
        system.compare(SYSROWSETS, "sysrowsets", rowsets);
        if system.is_2005() {
            system.read_columns_of_2005(pages)?;
        } else {
            system.read_columns(pages)?;
        }
        if system.fields.is_empty() {
            return Err(system.missing("the columns of the rowsets (sysrscols)"));
        }
        Ok(system)
    }

    /// Why the base tables cannot be read: the first problem, or that this one is not there.
    fn missing(&self, what: &'static str) -> Error {
        let reason = self.problems.texts.first().cloned();
        let reason = reason.unwrap_or_else(|| "the system tables do not list it".to_owned());
        Error::Catalog { what, reason }
    }

    /// Whether the columns are stored as in SQL Server 2005.
    fn is_2005(&self) -> bool {
        self.base_unit(SYSRSCOLS).is_none() && self.base_unit(SYSHOBTCOLUMNS).is_some()
    }

    /// Notes a number of rows other than the server counts.
    fn compare(&mut self, object: u64, name: &str, rows: u64) {
        let is_it = |rowset: &&Rowset| u64::from(rowset.object) == object && rowset.index <= 1;
        let counted = self.rowsets.iter().find(is_it).map(|rowset| rowset.rows);
        if counted.is_none() {
            let what = format!("{name} is not in the list of rowsets (sysrowsets)");
            self.problems.push(what);
        } else if let Some(counted) = counted.filter(|counted| *counted != rows) {
            self.problems.push(other_count(name, rows, counted));
        }
    }

    fn base_unit(&self, object: u64) -> Option<Unit> {
        let units = self.units.get(&(object << 16))?;
        units.iter().find(|unit| unit.kind == 1).copied()
    }

    fn read_units(&mut self, pages: &mut dyn Pages, first: PageId) -> Result<(), Error> {
        let unit = UnitPages {
            first_iam: PageId::default(),
            unit: SYSALLOCUNITS << 16,
            object: NO_OBJECT,
        };
        let problems = self.units_in(pages, Scan::Chain { first, unit })?;
        // Where the pages of this table are listed is only known from the table itself, from its first page as a rule.
        if problems > 0
            && let Some(own) = self.base_unit(SYSALLOCUNITS)
        {
            self.units_in(pages, Scan::Heap(pages_of(&own)))?;
        }
        Ok(())
    }

    /// Adds the units that are not known yet; returns the number of problems.
    fn units_in(&mut self, pages: &mut dyn Pages, what: Scan) -> Result<u64, Error> {
        let units = &mut self.units;
        let before = self.problems.count;
        base(pages, what, &mut self.problems, &mut |row| {
            let unit = Unit {
                id: number(row, 4, 8),
                kind: number(row, 12, 1) as u8,
                first: pointer(row, 27),
                root: pointer(row, 33),
                first_iam: pointer(row, 39),
                data_pages: number(row, 53, 8),
            };
            let of_owner = units.entry(number(row, 13, 8)).or_default();
            if !of_owner.contains(&unit) {
                of_owner.push(unit);
            }
        })?;
        Ok(self.problems.count - before)
    }

    /// Returns the number of rowsets.
    fn read_rowsets(&mut self, pages: &mut dyn Pages) -> Result<u64, Error> {
        let unit = self
            .base_unit(SYSROWSETS)
            .ok_or_else(|| self.missing("the list of rowsets (sysrowsets)"))?;
        let is_2005 = self.is_2005();
        let rowsets = &mut self.rowsets;
        base(pages, whole(&unit), &mut self.problems, &mut |row| {
            rowsets.push(Rowset {
                id: number(row, 4, 8),
                object: number(row, 13, 4) as u32,
                index: number(row, 17, 4) as u32,
                partition: number(row, 21, 4) as u32,
                rows: number(row, 31, 8),
                compression: match is_2005 {
                    true => Compression::None,
                    false => Compression::from_stored(number(row, 39, 1) as u8),
                },
            });
        })
    }

    fn read_columns(&mut self, pages: &mut dyn Pages) -> Result<(), Error> {
        let unit = self
            .base_unit(SYSRSCOLS)
            .ok_or_else(|| self.missing("the list of columns (sysrscols)"))?;
        let fields = &mut self.fields;
        let rows = base(pages, whole(&unit), &mut self.problems, &mut |row| {
            let field = Field {
                column: number(row, 12, 4) as u32,
                physical: number(row, 16, 4) as u32,
                sql_type: SqlType::from_packed(
                    number(row, 28, 4) as u32,
                    number(row, 32, 4) as u32,
                ),
                offset: number(row, 44, 2) as i16,
                null_bit: number(row, 48, 2) as u16,
                bit: number(row, 52, 1) as u8,
            };
            fields.entry(number(row, 4, 8)).or_default().push(field);
        })?;
        self.compare(SYSRSCOLS, "sysrscols", rows);
        Ok(())
    }

    /// SQL Server 2005 stores the same information in two tables.
    fn read_columns_of_2005(&mut self, pages: &mut dyn Pages) -> Result<(), Error> {
        let unit = self
            .base_unit(SYSHOBTCOLUMNS)
            .ok_or_else(|| self.missing("the list of columns (syshobtcolumns)"))?;
        let mut physical: HashMap<(u64, u32), Field> = HashMap::new();
        let rows = base(pages, whole(&unit), &mut self.problems, &mut |row| {
            let sql_type = SqlType {
                id: number(row, 22, 1) as u8,
                length: number(row, 23, 2) as i16,
                precision: number(row, 25, 1) as u8,
                scale: number(row, 26, 1) as u8,
                collation: number(row, 27, 4) as u32,
            };
            let field = Field {
                column: 0,
                physical: number(row, 12, 4) as u32,
                sql_type,
                offset: number(row, 31, 2) as i16,
                null_bit: number(row, 37, 2) as u16,
                bit: number(row, 35, 1) as u8,
            };
            physical.insert((number(row, 4, 8), field.physical), field);
        })?;
        self.compare(SYSHOBTCOLUMNS, "syshobtcolumns", rows);
        let unit = self
            .base_unit(SYSROWSETCOLUMNS)
            .ok_or_else(|| self.missing("the list of columns (sysrowsetcolumns)"))?;
        let fields = &mut self.fields;
        let rows = base(pages, whole(&unit), &mut self.problems, &mut |row| {
            let (rowset, column) = (number(row, 4, 8), number(row, 12, 4) as u32);
            let key = (rowset, number(row, 16, 4) as u32);
            if let Some(field) = physical.get(&key) {
                let field = Field { column, ..*field };
                fields.entry(rowset).or_default().push(field);
            }
        })?;
        self.compare(SYSROWSETCOLUMNS, "sysrowsetcolumns", rows);
        Ok(())
    }

    /// The rowsets of each table's heap or clustered index, one per partition.
    pub(super) fn rowsets_of(&self) -> BTreeMap<u32, Vec<Rowset>> {
        let mut by_object: BTreeMap<u32, Vec<Rowset>> = BTreeMap::new();
        for rowset in self.rowsets.iter().filter(|rowset| rowset.index <= 1) {
            by_object.entry(rowset.object).or_default().push(*rowset);
        }
        by_object
    }
}

/// Says that other rows were read than the server counts.
pub(super) fn other_count(name: &str, rows: u64, counted: u64) -> String {
    format!("{name}: {rows} rows were read, the server counted {counted}")
}

/// The pages of a base table.
fn pages_of(unit: &Unit) -> UnitPages {
    UnitPages {
        first_iam: unit.first_iam,
        unit: unit.id,
        object: NO_OBJECT,
    }
}

/// How a base table is read: from its first page, and as its allocation map says if the chain of pages breaks.
fn whole(unit: &Unit) -> Scan {
    Scan::Chain {
        first: unit.first,
        unit: pages_of(unit),
    }
}

/// Passes the rows of a base table to `take`, and returns their number.
fn base(
    pages: &mut dyn Pages,
    what: Scan,
    problems: &mut Problems,
    take: &mut dyn FnMut(&Row<'_>),
) -> Result<u64, Error> {
    let mut allocation = Allocation::default();
    let mut rows = 0;
    let mut undecoded = Problems::default();
    let mut each = |_: &mut dyn Pages, page: &Page| {
        for slot in 0..page.header().slots() {
            let is_row = |record: &&[u8]| Kind::of(record) == Some(Kind::Row);
            let Some(record) = page.record(slot).filter(is_row) else {
                continue;
            };
            if let Some(row) = Row::parse(record) {
                rows += 1;
                take(&row);
            } else {
                undecoded.push(format!(
                    "the row in slot {slot} of page {}: its parts do not fit",
                    page.id
                ));
            }
        }
        Ok(())
    };
    let scanned = scan(pages, &mut allocation, what, &mut each)?;
    problems.extend(undecoded);
    problems.extend(scanned.problems);
    Ok(rows)
}

fn number(row: &Row<'_>, at: usize, bytes: usize) -> u64 {
    let mut wide = [0; 8];
    let found = row.fixed(at, bytes).unwrap_or_default();
    wide.iter_mut()
        .zip(found)
        .for_each(|(slot, byte)| *slot = *byte);
    u64::from_le_bytes(wide)
}

fn pointer(row: &Row<'_>, at: usize) -> PageId {
    page_pointer(Fields(row.fixed(at, 6).unwrap_or_default()), 0)
}
