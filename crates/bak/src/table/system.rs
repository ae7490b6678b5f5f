//! The base system tables: the rowsets, the positions of their pages, and the layout of their
//! columns.

use std::collections::{BTreeMap, HashMap};

use super::compressed::Compression;
use super::layout::Field;
use super::pages::{Allocation, Page, Pages};
use super::record::{Kind, Row};
use super::scan::{Scan, UnitPages, scan};
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
}

/// Why the base tables cannot be read.
fn missing(what: &'static str) -> Error {
    Error::Catalog { what }
}

impl System {
    /// Reads the base tables.
    pub(super) fn read(pages: &mut dyn Pages) -> Result<Self, Error> {
        let boot = Page::fetch(pages, BOOT_PAGE)?
            .filter(|page| page.header().page_type() == TYPE_BOOT)
            .ok_or_else(|| missing("the boot page"))?;
        let mut system = Self {
            version: boot.fields().u16(0x64),
            ..Self::default()
        };
        let first = page_pointer(boot.fields(), ALLOCATION_UNITS_AT);
        if let Some(page) = Page::fetch(pages, first)?.filter(|page| is_sealed(page.bytes())) {
            let flags = page.header().flags();
            return Err(Error::SealedPage { page: first, flags });
        }
        system.read_units(pages, first)?;
        if system.units.is_empty() {
            return Err(missing("the allocation units (sysallocunits)"));
        }
        system.read_rowsets(pages)?;
        if system.rowsets.is_empty() {
            return Err(missing("the rowsets (sysrowsets)"));
        }
        if system.base_unit(SYSRSCOLS).is_some() {
            system.read_columns(pages)?;
        } else {
            system.read_columns_of_2005(pages)?;
        }
        if system.fields.is_empty() {
            return Err(missing("the columns of the rowsets (sysrscols)"));
        }
        Ok(system)
    }

    fn base_unit(&self, object: u64) -> Option<Unit> {
        let units = self.units.get(&(object << 16))?;
        units.iter().find(|unit| unit.kind == 1).copied()
    }

    fn read_units(&mut self, pages: &mut dyn Pages, first: PageId) -> Result<(), Error> {
        let units = &mut self.units;
        chain(pages, first, None, &mut |row| {
            let unit = Unit {
                id: number(row, 4, 8),
                kind: number(row, 12, 1) as u8,
                first: pointer(row, 27),
                root: pointer(row, 33),
                first_iam: pointer(row, 39),
                data_pages: number(row, 53, 8),
            };
            units.entry(number(row, 13, 8)).or_default().push(unit);
        })
    }

    fn read_rowsets(&mut self, pages: &mut dyn Pages) -> Result<(), Error> {
        let unit = self
            .base_unit(SYSROWSETS)
            .ok_or_else(|| missing("sysrowsets"))?;
        let is_2005 = self.base_unit(SYSRSCOLS).is_none();
        let rowsets = &mut self.rowsets;
        base(pages, &unit, &mut |row| {
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
            .ok_or_else(|| missing("sysrscols"))?;
        let fields = &mut self.fields;
        base(pages, &unit, &mut |row| {
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
        })
    }

    /// SQL Server 2005 stores the same information in two tables.
    fn read_columns_of_2005(&mut self, pages: &mut dyn Pages) -> Result<(), Error> {
        let unit = self
            .base_unit(SYSHOBTCOLUMNS)
            .ok_or_else(|| missing("syshobtcolumns"))?;
        let mut physical: HashMap<(u64, u32), Field> = HashMap::new();
        base(pages, &unit, &mut |row| {
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
        let unit = self
            .base_unit(SYSROWSETCOLUMNS)
            .ok_or_else(|| missing("sysrowsetcolumns"))?;
        let fields = &mut self.fields;
        base(pages, &unit, &mut |row| {
            let (rowset, column) = (number(row, 4, 8), number(row, 12, 4) as u32);
            let key = (rowset, number(row, 16, 4) as u32);
            if let Some(field) = physical.get(&key) {
                let field = Field { column, ..*field };
                fields.entry(rowset).or_default().push(field);
            }
        })
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

/// The rows of a base table, starting at its first page.
fn base(pages: &mut dyn Pages, unit: &Unit, take: &mut dyn FnMut(&Row<'_>)) -> Result<(), Error> {
    let pages_of = UnitPages {
        first_iam: unit.first_iam,
        unit: unit.id,
        object: NO_OBJECT,
    };
    chain(pages, unit.first, Some(pages_of), take)
}

/// The rows of a chain of linked pages.
fn chain(
    pages: &mut dyn Pages,
    first: PageId,
    unit: Option<UnitPages>,
    take: &mut dyn FnMut(&Row<'_>),
) -> Result<(), Error> {
    let mut allocation = Allocation::default();
    let mut each = |_: &mut dyn Pages, page: &Page| {
        for slot in 0..page.header().slots() {
            let record = page.record(slot);
            let is_row = |record: &&[u8]| Kind::of(record) == Some(Kind::Row);
            if let Some(row) = record.filter(is_row).and_then(Row::parse) {
                take(&row);
            }
        }
        Ok(())
    };
    scan(
        pages,
        &mut allocation,
        Scan::Chain { first, unit },
        &mut each,
    )?;
    Ok(())
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
