//! Compresses pages as the server does it: an inverse of the decoder for tests.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::Compression;
use crate::page::{HEADER_BYTES, PAGE_BYTES};
use crate::table::layout::{Cell, Field};
use crate::table::pages::Page;
use crate::table::record::{Kind, Row};
use crate::table::value::{SqlType, Value, id};

/// A value of a column.
#[derive(Clone, PartialEq)]
enum Packed {
    Null,
    Empty,
    True,
    Bytes(Vec<u8>),
    Pointer(Vec<u8>),
    Symbol(u8),
}

/// Longest value among those in the record.
const SHORT: usize = 8;

/// The page with the same rows, compressed; `None` if that makes it larger. As on the server, a page may
/// share nothing because that would not make it smaller.
pub(super) fn compress(page: &Page, fields: &[Field], compression: Compression) -> Option<Vec<u8>> {
    let whole = bytes_of(page, fields, compression);
    whole.or_else(|| bytes_of(page, fields, Compression::Row))
}

fn bytes_of(page: &Page, fields: &[Field], compression: Compression) -> Option<Vec<u8>> {
    let mut records: Vec<(u8, Vec<Packed>)> = Vec::new();
    for slot in 0..page.header().slots() {
        let Some(record) = page.record(slot) else {
            continue;
        };
        let kind = match Kind::of(record).unwrap() {
            Kind::Row => 0,
            Kind::ForwardedRow => 4,
            Kind::Stub => 2,
            _ => 3,
        };
        let columns = match kind {
            0 | 4 => columns(&Row::parse(record).unwrap(), fields),
            _ => Vec::new(),
        };
        records.push((kind, columns));
    }
    let mut shared = Vec::new();
    if compression == Compression::Page {
        let prefixes = take_prefixes(&mut records);
        let dictionary = take_dictionary(&mut records);
        shared = shared_bytes(&prefixes, &dictionary);
    }
    let mut bytes = page.bytes()[..HEADER_BYTES].to_vec();
    // Neither a checksum nor torn bits.
    bytes[5] &= !3;
    bytes[0x16..0x18].copy_from_slice(&(records.len() as u16).to_le_bytes());
    bytes.extend(shared);
    let mut offsets = Vec::new();
    for (kind, columns) in &records {
        offsets.push(bytes.len() as u16);
        bytes.extend(record_bytes(*kind, columns));
    }
    let end = PAGE_BYTES - 2 * offsets.len();
    if bytes.len() > end {
        return None;
    }
    bytes.resize(end, 0);
    bytes.extend(offsets.iter().rev().flat_map(|offset| offset.to_le_bytes()));
    Some(bytes)
}

fn columns(row: &Row<'_>, fields: &[Field]) -> Vec<Packed> {
    let count = fields.iter().map(|field| field.null_bit).max().unwrap();
    let mut columns = vec![Packed::Null; count.into()];
    for field in fields {
        let packed = match field.cell(row).unwrap() {
            Cell::Null | Cell::Older => Packed::Null,
            Cell::Bit(true) => Packed::True,
            Cell::Pointer(pointer) => Packed::Pointer(pointer.to_vec()),
            // No bytes: the number that makes the first row of a key unique.
            Cell::Bit(false) | Cell::Bytes([]) => Packed::Empty,
            Cell::Bytes(bytes) => match packed(&field.sql_type, bytes) {
                bytes if bytes.is_empty() => Packed::Empty,
                bytes => Packed::Bytes(bytes),
            },
        };
        columns[usize::from(field.null_bit) - 1] = packed;
    }
    let older = fields
        .iter()
        .filter(|field| row.is_older_than(field.null_bit));
    columns.truncate(usize::from(count) - older.count());
    columns
}

fn packed(sql: &SqlType, bytes: &[u8]) -> Vec<u8> {
    let number = || match sql.decode(bytes) {
        Ok(Value::Integer(number)) => number,
        Ok(Value::Decimal(digits, _)) => digits as i64,
        other => panic!("{other:?}"),
    };
    match sql.id {
        id::SMALLINT | id::INT | id::BIGINT | id::MONEY | id::SMALLMONEY => integer(number()),
        id::DECIMAL | id::NUMERIC => match sql.decode(bytes).unwrap() {
            Value::Decimal(digits, scale) => decimal(digits, scale),
            other => panic!("{other:?}"),
        },
        id::DATETIME => datetime(bytes),
        id::TINYINT | id::DATE | id::TIME | id::DATETIME2 | id::DATETIMEOFFSET | id::BINARY => {
            without_last(bytes, 0)
        }
        id::REAL | id::FLOAT | id::SMALLDATETIME => without_first(bytes),
        id::TIMESTAMP => without_first(&bytes.iter().rev().copied().collect::<Vec<u8>>()),
        id::CHAR => without_last(bytes, b' '),
        id::NCHAR => {
            let mut bytes = bytes;
            while let Some(shorter) = bytes.strip_suffix(b" \0") {
                bytes = shorter;
            }
            unicode(bytes)
        }
        id::NVARCHAR if sql.length > 0 => unicode(bytes),
        _ => bytes.to_vec(),
    }
}

fn without_last(bytes: &[u8], filler: u8) -> Vec<u8> {
    let end = bytes.iter().rposition(|byte| *byte != filler);
    bytes[..end.map_or(0, |end| end + 1)].to_vec()
}

fn without_first(bytes: &[u8]) -> Vec<u8> {
    let begin = bytes.iter().position(|byte| *byte != 0);
    bytes[begin.unwrap_or(bytes.len())..].to_vec()
}

fn integer(number: i64) -> Vec<u8> {
    if number == 0 {
        return Vec::new();
    }
    let half = |bytes: u32| 1_i128 << (8 * bytes - 1);
    let fits = |bytes: &u32| (-half(*bytes)..half(*bytes)).contains(&number.into());
    let bytes = (1..=8).find(fits).unwrap();
    let stored = i128::from(number) + half(bytes);
    stored.to_be_bytes()[16 - bytes as usize..].to_vec()
}

fn datetime(bytes: &[u8]) -> Vec<u8> {
    let ticks = u32::from_le_bytes(bytes[..4].try_into().unwrap());
    let days = i32::from_le_bytes(bytes[4..].try_into().unwrap());
    match days {
        0 => integer(ticks.into()),
        _ => [integer(days.into()), ticks.to_be_bytes().to_vec()].concat(),
    }
}

fn decimal(digits: i128, scale: u8) -> Vec<u8> {
    if digits == 0 {
        return Vec::new();
    }
    let text = digits.unsigned_abs().to_string();
    let exponent = text.len() as i32 - 1 - i32::from(scale);
    let sign = if digits < 0 { 0 } else { 0x80 };
    let mut bytes = vec![sign | (exponent + 64) as u8];
    let mut bits = String::new();
    for group in text.as_bytes().chunks(3) {
        let group = format!("{:0<3}", std::str::from_utf8(group).unwrap());
        write!(bits, "{:010b}", group.parse::<u32>().unwrap()).unwrap();
    }
    for byte in bits.as_bytes().chunks(8) {
        let byte = format!("{:0<8}", std::str::from_utf8(byte).unwrap());
        bytes.push(u8::from_str_radix(&byte, 2).unwrap());
    }
    without_last(&bytes, 0)
}

/// Letters below 256 in one byte each, with a filler so that their number is odd; or UTF-16.
fn unicode(bytes: &[u8]) -> Vec<u8> {
    let pairs = bytes.as_chunks::<2>().0;
    let is_plain =
        |pair: &[u8; 2]| pair[1] == 0 && (pair[0] >= 0x20 || b"\0\t\n\r".contains(&pair[0]));
    if bytes.is_empty() || !pairs.iter().all(is_plain) {
        return bytes.to_vec();
    }
    let mut compressed: Vec<u8> = pairs.iter().map(|pair| pair[0]).collect();
    if compressed.len().is_multiple_of(2) {
        compressed.push(0x10);
    }
    compressed
}

/// Replaces values by the length of the prefix that they share with that of their column, and the rest.
fn take_prefixes(records: &mut [(u8, Vec<Packed>)]) -> Vec<Packed> {
    let count = records.iter().map(|(_, columns)| columns.len()).max();
    let mut prefixes = vec![Packed::Null; count.unwrap_or(0)];
    for (column, prefix) in prefixes.iter_mut().enumerate() {
        let has_bits = |(_, columns): &(u8, Vec<Packed>)| {
            matches!(columns.get(column), Some(Packed::True | Packed::Pointer(_)))
        };
        // Some columns have none, some an empty one.
        if column % 4 == 3 || records.iter().any(has_bits) {
            continue;
        }
        let values = records
            .iter()
            .filter_map(|(_, columns)| match columns.get(column) {
                Some(Packed::Bytes(bytes)) if column % 7 != 2 => Some(bytes.clone()),
                _ => None,
            });
        let longest = values.max_by_key(Vec::len).unwrap_or_default();
        for (_, columns) in records.iter_mut() {
            let Some(value @ (Packed::Empty | Packed::Bytes(_))) = columns.get_mut(column) else {
                continue;
            };
            let bytes = match value {
                Packed::Bytes(bytes) => std::mem::take(bytes),
                _ => Vec::new(),
            };
            *value = match bytes == longest {
                true => Packed::Empty,
                false => Packed::Bytes(with_prefix(&bytes, &longest)),
            };
        }
        *prefix = match longest.is_empty() {
            true => Packed::Empty,
            false => Packed::Bytes(longest),
        };
    }
    prefixes
}

fn with_prefix(bytes: &[u8], prefix: &[u8]) -> Vec<u8> {
    let common = bytes.iter().zip(prefix).take_while(|(a, b)| a == b).count();
    let mut stored = match u8::try_from(common) {
        Ok(length @ 0..0x80) => vec![length],
        _ => vec![0x80 | (common >> 8) as u8, common as u8],
    };
    stored.extend_from_slice(&bytes[common..]);
    stored
}

/// Replaces values that occur several times by their number.
fn take_dictionary(records: &mut [(u8, Vec<Packed>)]) -> Vec<Vec<u8>> {
    let mut counts: HashMap<Vec<u8>, u32> = HashMap::new();
    for value in records.iter().flat_map(|(_, columns)| columns) {
        if let Packed::Bytes(bytes) = value {
            *counts.entry(bytes.clone()).or_default() += 1;
        }
    }
    let mut entries: Vec<Vec<u8>> = counts
        .into_iter()
        .filter(|(bytes, count)| bytes.len() > 3 && *count > 1)
        .map(|(bytes, _)| bytes)
        .collect();
    entries.sort();
    entries.truncate(256);
    for value in records.iter_mut().flat_map(|(_, columns)| columns) {
        if let Packed::Bytes(bytes) = value
            && let Ok(number) = entries.binary_search(bytes)
        {
            *value = Packed::Symbol(number as u8);
        }
    }
    entries
}

fn shared_bytes(prefixes: &[Packed], dictionary: &[Vec<u8>]) -> Vec<u8> {
    let record = record_bytes(0, prefixes);
    let head = if dictionary.is_empty() { 5 } else { 7 };
    let mut bytes = vec![2, 0, 0];
    bytes.extend(((head + record.len()) as u16).to_le_bytes());
    if dictionary.is_empty() {
        bytes.extend(record);
        return bytes;
    }
    bytes[0] |= 4;
    let mut entries = (dictionary.len() as u16).to_le_bytes().to_vec();
    let mut end = 2 + 2 * dictionary.len();
    for entry in dictionary {
        end += entry.len();
        entries.extend((end as u16).to_le_bytes());
    }
    entries.extend(dictionary.concat());
    bytes.extend(((head + record.len() + entries.len()) as u16).to_le_bytes());
    bytes.extend(record);
    bytes.extend(entries);
    bytes
}

fn record_bytes(kind: u8, columns: &[Packed]) -> Vec<u8> {
    let mut bytes = vec![1 | kind << 2];
    if !matches!(kind, 0 | 4) {
        bytes.extend([0xEE; 8]);
        return bytes;
    }
    match u8::try_from(columns.len()) {
        Ok(count @ 0..0x80) => bytes.push(count),
        _ => bytes.extend([0x80 | (columns.len() >> 8) as u8, columns.len() as u8]),
    }
    let bits = |value: &Packed| match value {
        Packed::Null => 0,
        Packed::Empty => 1,
        Packed::Bytes(bytes) if bytes.len() <= SHORT => bytes.len() as u8 + 1,
        Packed::Bytes(_) | Packed::Pointer(_) => 0xA,
        Packed::True => 0xB,
        Packed::Symbol(_) => 0xC,
    };
    for pair in columns.chunks(2) {
        bytes.push(bits(&pair[0]) | pair.get(1).map_or(0, bits) << 4);
    }
    let clusters = columns.len().saturating_sub(1) / 30;
    bytes.extend(vec![0; clusters]);
    let (mut ends, mut long): (Vec<u16>, Vec<u8>) = (Vec::new(), Vec::new());
    for value in columns {
        match value {
            Packed::Bytes(short) if short.len() <= SHORT => bytes.extend(short),
            Packed::Symbol(number) => bytes.push(*number),
            Packed::Bytes(value) => {
                long.extend(value);
                ends.push(long.len() as u16);
            }
            Packed::Pointer(value) => {
                long.extend(value);
                ends.push(long.len() as u16 | 0x8000);
            }
            _ => {}
        }
    }
    if !ends.is_empty() {
        bytes[0] |= 0x20;
        bytes.push(1);
        bytes.extend((ends.len() as u16).to_le_bytes());
        bytes.extend(ends.iter().flat_map(|end| end.to_le_bytes()));
        bytes.extend(vec![0; clusters]);
        bytes.extend(long);
    }
    bytes
}
