//! Runs every entry point on arbitrary bytes.
//!
//! Checksums would stop a fuzzer early, so the first byte can request that the checksums of headers
//! are corrected, or that the rest is read as the pages of a data file, as the description of a
//! copied set, as a page of compressed rows, or as log blocks.

use windlass_base::Lsn;

use crate::census::Census;
use crate::checksum::{page_checksum, xor16};
use crate::container::{Input, SeekInput};
use crate::data_file::{self, Boot};
use crate::error::{Error, PageId};
use crate::fields::Fields;
use crate::listing::Listing;
use crate::mtf::log::{LOG_SECTOR_BYTES, VirtualLog};
use crate::mtf::{DescriptorHeader, STREAM_BYTES, StreamHeader, Tag};
use crate::original::Original;
use crate::outline::Outline;
use crate::page::PAGE_BYTES;
use crate::stream_reader::StreamReader;
use crate::table::{Database, Pages, decode_xml, fuzz_page};
use crate::transactions::Transactions;
use crate::verify::Verifier;

/// Where the log to be read begins in its file.
const LOG_AT: u64 = 1 << 42;

/// Reads bytes through every entry point. Must not panic or hang.
pub fn fuzz_file(bytes: &[u8]) {
    match bytes.split_first() {
        Some((0, rest)) => read_file(rest),
        Some((1, rest)) => {
            let mut repaired = rest.to_vec();
            repair(&mut repaired);
            read_file(&repaired);
        }
        Some((2, rest)) => read_tables(rest),
        Some((3, rest)) => drop(Original::load(rest)),
        Some((4, rest)) => read_compressed(rest),
        Some((5, rest)) => read_log(rest),
        _ => read_file(bytes),
    }
}

fn read_file(bytes: &[u8]) {
    // Only that the call returns matters, not its result.
    Listing::read(bytes).ok();
    Census::read(bytes).ok();
    let mut verifier = Verifier::new(1);
    verifier.family(bytes).ok();
    verifier.finish();
    if let Ok(outline) = Outline::read(bytes) {
        copy(bytes, &outline);
    }
}

/// Describes each set, and reads the stream at both its ends.
fn copy(bytes: &[u8], outline: &Outline) {
    let outlines = std::slice::from_ref(outline);
    for index in 0..outline.sets.len().min(10) {
        if let Ok(stored) = Original::store(outlines, index) {
            Original::load(&stored);
        }
    }
    let mut reader = StreamReader::new(Cursor(bytes, 0), outline);
    let mut buffer = [0; 1 << 17];
    let end = outline.stream_bytes.saturating_sub(buffer.len() as u64);
    for offset in [0, end / 2, end, u64::MAX] {
        reader.read_at(offset, &mut buffer, &mut Vec::new()).ok();
    }
}

/// Bytes that can be read anywhere.
struct Cursor<'b>(&'b [u8], usize);

impl Input for Cursor<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut rest = self.0.get(self.1..).unwrap_or_default();
        let read = rest.read(buffer)?;
        self.1 += read;
        Ok(read)
    }
}

impl SeekInput for Cursor<'_> {
    fn seek(&mut self, offset: u64) -> std::io::Result<()> {
        self.1 = usize::try_from(offset).unwrap_or(usize::MAX);
        Ok(())
    }
}

/// Corrects the checksums of headers.
fn repair(bytes: &mut [u8]) {
    for at in (0..bytes.len()).step_by(512) {
        let Some(block) = bytes.get_mut(at..) else {
            return;
        };
        let header = DescriptorHeader(Fields(block));
        if !header.tag().is_block() {
            continue;
        }
        let mut stream = header.first_stream();
        set(block, 0x32);
        for _ in 0..8 {
            let Some(rest) = block
                .get_mut(stream..)
                .filter(|rest| rest.len() >= STREAM_BYTES)
            else {
                break;
            };
            set(rest, 0x14);
            let header = StreamHeader(Fields(rest));
            let next = usize::try_from(header.bytes()).unwrap_or(usize::MAX);
            if header.tag() == Tag::SPAD {
                break;
            }
            stream = stream
                .saturating_add(STREAM_BYTES)
                .saturating_add(next)
                .saturating_add(3)
                & !3;
        }
    }
}

/// Writes the XOR of the words before `at` to `at`.
fn set(bytes: &mut [u8], at: usize) {
    let sum = xor16(bytes.get(..at).unwrap_or_default());
    if let Some(slot) = bytes.get_mut(at..at + 2) {
        slot.copy_from_slice(&sum.to_le_bytes());
    }
}

/// A data file in which every page has its own number.
struct DataFile<'b>(&'b [u8]);

impl Pages for DataFile<'_> {
    fn page(&mut self, id: PageId, page: &mut [u8]) -> Result<bool, Error> {
        let at = (id.page as usize).saturating_mul(PAGE_BYTES);
        let Some(found) = self.0.get(at..at.saturating_add(PAGE_BYTES)) else {
            return Ok(false);
        };
        page.copy_from_slice(found);
        for (at, bytes) in [
            (0, &[1][..]),
            (0x20, &id.page.to_le_bytes()),
            (0x24, &id.file.to_le_bytes()),
        ] {
            if let Some(slot) = page.get_mut(at..at + bytes.len()) {
                slot.copy_from_slice(bytes);
            }
        }
        Ok(id.file == 1)
    }
}

fn read_tables(bytes: &[u8]) {
    let mut pages = DataFile(bytes);
    let Ok(database) = Database::open(&mut pages) else {
        return;
    };
    for table in database.tables.iter().take(100) {
        database.read(&mut pages, table, &mut |_| Ok(())).ok();
    }
}

/// The length of the pieces, then the blocks of a virtual log file.
fn read_log(bytes: &[u8]) {
    let (length, bytes) = bytes.split_at(bytes.len().min(2));
    let log = VirtualLog {
        file: 2,
        first_byte: LOG_AT,
        end_byte: LOG_AT.saturating_add(bytes.len() as u64),
        sequence: Fields(bytes).u32(0x0C),
        bytes: bytes.len() as u64,
        offset: LOG_AT.saturating_sub(u64::from(Fields(bytes).u32(0x10)) * LOG_SECTOR_BYTES),
        parity: 0x40,
        created: Lsn::ZERO,
        version: 5,
    };
    let mut transactions = Transactions::default();
    let mut at = LOG_AT;
    for piece in bytes.chunks(usize::from(Fields(length).u16(0)).max(1)) {
        transactions.piece(&log, at, piece);
        at += piece.len() as u64;
    }
    for transaction in transactions.open() {
        let text = transaction.to_string();
        assert!(text.len() < 1000, "{text}");
    }
}

/// Reads the tokens of an `xml` value, behind the head that every one has. Must not panic or grow without limit.
pub fn fuzz_xml(bytes: &[u8]) {
    let document = [&[0xDF, 0xFF, 2, 0xB0, 4], bytes].concat();
    if let Ok(text) = decode_xml(&document) {
        assert!(text.len() <= (document.len() + 256) * 256, "{}", text.len());
    }
}

/// Reads the pages of a data file as an offline database is read. Must not panic.
pub fn fuzz_data_file(bytes: &[u8]) {
    let (number, bytes) = bytes.split_at(bytes.len().min(6));
    let id = PageId {
        file: Fields(number).u16(4),
        page: Fields(number).u32(0),
    };
    // Of a short page too, and with a checksum that fits.
    let (pfs, page) = bytes.split_at(bytes.len() / 2);
    for length in [page.len().min(PAGE_BYTES), PAGE_BYTES] {
        let mut page = page.to_vec();
        page.resize(length, 0);
        for is_sealed in [false, true] {
            if is_sealed && length == PAGE_BYTES {
                let sum = page_checksum(&page).to_le_bytes();
                page.splice(0x3C..0x40, sum);
            }
            Boot::read(&page);
            data_file::file_of_first_page(&page);
            data_file::is_damaged(&page, id, || data_file::is_allocated(pfs, id));
        }
    }
}

/// The columns, then the page.
fn read_compressed(bytes: &[u8]) {
    const COLUMNS_BYTES: usize = 160;
    let (columns, page) = bytes.split_at(bytes.len().min(COLUMNS_BYTES));
    let mut whole = page.to_vec();
    whole.resize(PAGE_BYTES, 0);
    fuzz_page(columns, &mut DataFile(&whole));
}
