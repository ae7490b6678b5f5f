//! Rows that a server would undo or redo are named. No real backup with such rows was available: the test puts
//! transactions in the log of one.
#![expect(clippy::unwrap_used, reason = "a test may")]

#[path = "../../bak/tests/common/mod.rs"]
mod common;

use windlass_bak::page::{PAGE_BYTES, PageHeader};
use windlass_bak::page_checksum;
use windlass_base::Lsn;
use windlass_device::DeviceAddress;
use windlass_sqlserver::{Extracted, ExtractedTable, Format, Source, extract};

const TRANSACTION: u32 = 0x777;

/// Offset of the first record in a log block of SQL Server 2008.
const RECORDS_AT: usize = 0x28;

const LSN_OF_CHANGE: Lsn = Lsn {
    vlf: 90,
    block: 467,
    slot: 2,
};

/// A backup of SQL Server 2008 R2, and the position of its last log block, which is one sector.
fn northwind() -> Option<(Vec<u8>, usize)> {
    let bytes = common::sample("sql2008r2_Northwind.bak")?;
    let mut lsn = LSN_OF_CHANGE.vlf.to_le_bytes().to_vec();
    lsn.extend(LSN_OF_CHANGE.block.to_le_bytes());
    let is_block = |at: &usize| bytes[at + 0x0C..at + 0x14] == lsn[..] && bytes[*at] == 0x58;
    let at = (0..bytes.len() - 512).step_by(512).find(is_block).unwrap();
    Some((bytes, at))
}

/// The position of a page with rows of the table in the file.
fn page_of(bytes: &[u8], object: &str) -> usize {
    let is_page = |at: &usize| {
        let page = &bytes[*at..*at + PAGE_BYTES];
        let header = PageHeader::new(page);
        header.version() == 1
            && header.page_type() == 1
            && header.allocation_unit() >> 48 == 256
            && header.has_checksum()
            && header.checksum() == page_checksum(page)
            && page.windows(object.len() * 2).any(|found| {
                found
                    .chunks(2)
                    .zip(object.bytes())
                    .all(|(unit, letter)| unit == [letter, 0])
            })
    };
    let mut pages = (0..bytes.len() - PAGE_BYTES).step_by(512);
    pages.find(is_page).unwrap()
}

fn record(operation: u8, fixed: u16, rest: &[u8]) -> Vec<u8> {
    let mut record = vec![0; 0x18];
    record[2..4].copy_from_slice(&fixed.to_le_bytes());
    record[0x0E] = 2;
    record[0x10..0x14].copy_from_slice(&TRANSACTION.to_le_bytes());
    record[0x16] = operation;
    record.extend_from_slice(rest);
    record
}

fn begin() -> Vec<u8> {
    let mut rest = vec![0; 0x28];
    // 2016-05-04 06:07:08: days since 1900, ticks of 1/300 s.
    rest[0x10..0x14].copy_from_slice(&(22_028 * 300_u32).to_le_bytes());
    rest[0x14..0x18].copy_from_slice(&42_492_u32.to_le_bytes());
    rest.extend([1, 0, 8, 0]);
    rest.extend("work".encode_utf16().flat_map(u16::to_le_bytes));
    record(0x80, 0x40, &rest)
}

fn insert(page: &[u8]) -> Vec<u8> {
    let mut rest = page[0x20..0x26].to_vec();
    rest.resize(0x18, 0);
    rest.extend(PageHeader::new(page).allocation_unit().to_le_bytes());
    rest.resize(0x28, 0);
    record(0x02, 0x3E, &rest)
}

/// Puts records in place of those of a log block.
fn put(block: &mut [u8], records: &[Vec<u8>]) {
    let (mut at, mut slots) = (RECORDS_AT, Vec::new());
    for record in records {
        slots.push(at as u16);
        block[at..at + record.len()].copy_from_slice(record);
        at += record.len();
    }
    for slot in slots.iter().rev() {
        block[at..at + 2].copy_from_slice(&slot.to_le_bytes());
        at += 2;
    }
    block[2..4].copy_from_slice(&(slots.len() as u16).to_le_bytes());
    block[4..6].copy_from_slice(&(at as u16).to_le_bytes());
}

fn extracted(bytes: &[u8]) -> Extracted {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.bak");
    std::fs::write(&path, bytes).unwrap();
    let mut source = Source::open(&[DeviceAddress::disk(path)], 1).unwrap();
    let to = folder.path().join("x.db");
    extract(&mut source, &to, Format::Sqlite, &[]).unwrap()
}

#[test]
fn a_row_that_had_not_committed_is_named_with_its_table_and_one_not_yet_there_is_not() {
    let Some((bytes, block)) = northwind() else {
        return;
    };
    let settled = extracted(&bytes).unsettled.unwrap();
    assert!(settled.is_settled(), "{settled:?}");
    let at = page_of(&bytes, "Toms Spez");

    let mut open = bytes.clone();
    let records = [begin(), insert(&bytes[at..at + PAGE_BYTES])];
    put(&mut open[block..block + 512], &records);
    // The page was copied before the row was inserted.
    let found = extracted(&open);
    let unsettled = found.unsettled.unwrap();
    let [text] = &unsettled.transactions[..] else {
        panic!("{unsettled:?}");
    };
    assert!(
        text.starts_with("transaction 0000:00000777 'work' of 2016-05-04 06:07:08.000"),
        "{text}"
    );
    assert_eq!(unsettled.objects, []);
    assert!(!unsettled.is_settled());
    assert!(found.tables.iter().all(ExtractedTable::is_whole));

    // It was copied after that.
    let page = &mut open[at..at + PAGE_BYTES];
    page[0x28..0x32].copy_from_slice(&LSN_OF_CHANGE.to_stored());
    let sum = page_checksum(page);
    page[0x3C..0x40].copy_from_slice(&sum.to_le_bytes());
    let found = extracted(&open);
    let broken: Vec<&str> = found
        .tables
        .iter()
        .filter(|table| !table.is_whole())
        .map(|table| &*table.name)
        .collect();
    assert_eq!(broken, ["Customers"]);
    let unsettled = found.unsettled.unwrap();
    let [object] = &unsettled.objects[..] else {
        panic!("{unsettled:?}");
    };
    assert_eq!((object.open_pages, object.rows.inserted), (1, 1));
    assert_eq!(object.older_pages, 0);
}

#[test]
fn a_page_that_was_copied_before_a_committed_row_is_named() {
    let Some((mut bytes, block)) = northwind() else {
        return;
    };
    let at = page_of(&bytes, "Toms Spez");
    let records = [
        begin(),
        insert(&bytes[at..at + PAGE_BYTES]),
        record(0x81, 0x30, &[0; 0x20]),
    ];
    put(&mut bytes[block..block + 512], &records);
    let unsettled = extracted(&bytes).unsettled.unwrap();
    assert_eq!(unsettled.transactions, [""; 0]);
    let [object] = &unsettled.objects[..] else {
        panic!("{unsettled:?}");
    };
    assert_eq!(object.owner.name, "Customers");
    assert_eq!((object.open_pages, object.older_pages), (0, 1));
    assert!(object.text().contains("would redo"), "{}", object.text());
}
