//! Real tables, compressed by the documented format, have the same rows as before.

#[path = "../../../tests/common/mod.rs"]
mod common;
mod compressor;

use std::collections::HashMap;

use self::compressor::compress;
use super::Compression;
use crate::error::{Error, PageId};
use crate::page::{EXTENT_PAGES, Located, PAGE_BYTES, locate};
use crate::table::pages::{Allocation, Page, Pages};
use crate::table::scan::{Scan, UnitPages, scan};
use crate::table::system::System;
use crate::table::{Database, Value};
use crate::{Configuration, ExtentPlace, Visit, walk};

const SAMPLES: [&str; 6] = [
    "sql2008r2_Northwind.bak",
    "sql2008_Northwind_sp2.bak",
    "sql2012_pubs_a.bak",
    "sql2014c_AWDataWarehouse_copyonly_3datafiles.bak",
    "sql2016c_TSQL2012.bak",
    "sql2017c_aspnetboilerplate.bak",
];

/// Offset of the compression in a row of `sysrowsets`.
const COMPRESSION_AT: usize = 39;

/// Object number of `sysrowsets`.
const SYSROWSETS: u64 = 5;

/// The pages of a database.
#[derive(Default)]
struct Memory {
    data_files: Vec<u16>,
    pages: HashMap<PageId, Vec<u8>>,
}

impl Visit for Memory {
    fn configuration(&mut self, configuration: &Configuration, _is_final: bool) {
        self.data_files = configuration.data_files();
    }

    fn extent(&mut self, _at: ExtentPlace, extent: &[u8]) -> Result<(), Error> {
        if let Located::Extent { first } = locate(extent, &self.data_files) {
            for (index, page) in (0..EXTENT_PAGES).zip(extent.chunks(PAGE_BYTES)) {
                let page_id = PageId {
                    page: first.page + index,
                    ..first
                };
                self.pages.insert(page_id, page.to_vec());
            }
        }
        Ok(())
    }
}

impl Pages for Memory {
    fn page(&mut self, id: PageId, page: &mut [u8]) -> Result<bool, Error> {
        let found = self.pages.get(&id);
        if let Some(found) = found {
            page.copy_from_slice(found);
        }
        Ok(found.is_some())
    }
}

type Rows = Vec<(String, Vec<String>)>;

/// The rows of all tables, sorted.
fn rows(pages: &mut Memory) -> Rows {
    let database = Database::open(pages).unwrap();
    let mut tables = Vec::new();
    for table in &database.tables {
        let mut rows = Vec::new();
        let mut take = |row: &[Value]| {
            rows.push(format!("{row:?}"));
            Ok(())
        };
        let tally = database.read(pages, table, &mut take).unwrap();
        assert_eq!(tally.problems.texts, [""; 0], "{}", table.name);
        assert_eq!(tally.rows, table.counted_rows, "{}", table.name);
        rows.sort();
        tables.push((table.name.clone(), rows));
    }
    tables
}

/// The pages of a scan.
fn scanned(pages: &mut Memory, what: Scan) -> Vec<Page> {
    let mut found = Vec::new();
    let mut each = |_: &mut dyn Pages, page: &Page| {
        found.push(page.clone());
        Ok(())
    };
    scan(pages, &mut Allocation::default(), what, &mut each).unwrap();
    found
}

/// Compresses the user tables whose pages become no larger; returns the number of pages.
fn compress_tables(pages: &mut Memory, compression: Compression) -> usize {
    let system = System::read(pages).unwrap();
    let mut count = 0;
    for rowset in &system.rowsets {
        let units = system.units.get(&rowset.id);
        let unit = units.and_then(|units| units.iter().find(|unit| unit.kind == 1));
        let (Some(unit), Some(fields)) = (unit, system.fields.get(&rowset.id)) else {
            continue;
        };
        // System tables have small numbers.
        if rowset.object < 1000 || rowset.index > 1 {
            continue;
        }
        let what = Scan::Heap(UnitPages {
            first_iam: unit.first_iam,
            unit: unit.id,
            object: rowset.object,
        });
        let found = scanned(pages, what);
        let compressed = found.iter().map(|page| compress(page, fields, compression));
        let Some(compressed) = compressed.collect::<Option<Vec<_>>>() else {
            continue;
        };
        for (page, compressed) in found.iter().zip(compressed) {
            pages.pages.insert(page.id, compressed);
            count += 1;
        }
        set_compression(pages, &system, rowset.id, compression);
    }
    count
}

/// Number of pages whose rows share something.
fn sharing(pages: &Memory, compression: Compression) -> usize {
    let shares = |page: &&Vec<u8>| {
        page[1] == 1 && page[5].trailing_zeros() >= 2 && matches!(page[96], 2 | 6)
    };
    match compression {
        Compression::Page => pages.pages.values().filter(shares).count(),
        _ => 0,
    }
}

fn set_compression(pages: &mut Memory, system: &System, rowset: u64, compression: Compression) {
    let own = system.units[&(SYSROWSETS << 16)][0];
    let chain = Scan::Chain {
        first: own.first,
        unit: UnitPages {
            first_iam: own.first_iam,
            unit: own.id,
            object: u32::MAX,
        },
    };
    for page in scanned(pages, chain) {
        for slot in 0..page.header().slots() {
            let record = page.record(slot).unwrap();
            if record[4..12] == rowset.to_le_bytes() {
                let at = usize::from(page.fields().u16(PAGE_BYTES - 2 * (usize::from(slot) + 1)));
                let mut bytes = page.bytes().to_vec();
                // Neither a checksum nor torn bits.
                bytes[5] &= !3;
                bytes[at + COMPRESSION_AT] = compression as u8;
                pages.pages.insert(page.id, bytes);
                return;
            }
        }
    }
    panic!("no rowset {rowset}");
}

fn memory(name: &str) -> Option<Memory> {
    let mut memory = Memory::default();
    walk(&common::sample(name)?[..], &mut memory).unwrap();
    Some(memory)
}

#[test]
fn compressed_tables_have_the_rows_of_the_same_tables_without_compression() {
    let (mut total, mut shared, mut counts) = (0, 0, Vec::new());
    for name in SAMPLES {
        let Some(mut pages) = memory(name) else {
            return;
        };
        let expected = rows(&mut pages);
        for compression in [Compression::Row, Compression::Page] {
            let mut pages = memory(name).unwrap();
            let count = compress_tables(&mut pages, compression);
            counts.push(count);
            shared += sharing(&pages, compression);
            let found = rows(&mut pages);
            for ((table, expected), (_, found)) in expected.iter().zip(&found) {
                let differs = expected.iter().zip(found).find(|(a, b)| a != b);
                assert_eq!(differs, None, "{name}: {table}, {compression:?}");
                total += found.len();
            }
        }
    }
    assert!(total > 350_000, "{total}");
    assert_eq!(counts.iter().sum::<usize>(), 1994, "pages: {counts:?}");
    assert!(shared > 600, "pages that share something: {shared}");
}

#[test]
fn damaged_compressed_pages_never_panic_and_never_grow() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    let Some(mut pages) = memory("sql2012_pubs_a.bak") else {
        return;
    };
    compress_tables(&mut pages, Compression::Page);
    let database = Database::open(&mut pages).unwrap();
    let ids: Vec<PageId> = pages.pages.keys().copied().collect();
    for _ in 0..60 {
        for _ in 0..200 {
            let page = pages.pages.get_mut(&ids[random() % ids.len()]).unwrap();
            // Most often among what the rows share and the first of them.
            let at = 96 + random() % if random() % 2 == 0 { 200 } else { 8096 };
            page[at] = random() as u8;
        }
        for table in &database.tables {
            let mut longest = 0;
            let mut take = |row: &[Value]| {
                let length = row.iter().map(|value| match value {
                    Value::Text(text) => text.len(),
                    Value::Binary(bytes) => bytes.len(),
                    _ => 0,
                });
                longest = longest.max(length.sum());
                Ok(())
            };
            database.read(&mut pages, table, &mut take).unwrap();
            assert!(longest < 4 * super::ROW_BYTES_MAX + 200_000, "{longest}");
        }
    }
}
