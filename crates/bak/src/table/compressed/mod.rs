//! Rows of tables with ROW or PAGE compression.
//!
//! - [`record`]: what a record has for each column.
//! - [`page`]: what the rows of a page share, with PAGE compression.
//! - [`value`]: values without the bytes that they do not need; [`scsu`] text, [`vardecimal`] decimals.
//!
//! Invariant: however often a row names a long value that its page has once, its values together are
//! never longer than [`ROW_BYTES_MAX`].

mod page;
mod record;
mod scsu;
#[cfg(test)]
mod tests;
mod value;
mod vardecimal;

use self::page::Shared;
use self::record::Slot;
pub(super) use self::record::is_compressed;
pub(super) use self::value::decode_vardecimal;
use super::layout::Field;
use super::pages::{Page, Pages};
use super::value::{SqlType, Value, id};
use crate::error::PageId;

/// Maximum number of bytes of the values in a row. The server allows 8060.
const ROW_BYTES_MAX: usize = 1 << 16;

/// The compression of a rowset's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Row,
    Page,
    Columnstore,
}

impl Compression {
    pub(super) fn from_stored(level: u8) -> Self {
        match level {
            0 => Self::None,
            1 => Self::Row,
            2 => Self::Page,
            _ => Self::Columnstore,
        }
    }
}

/// A column's content in a compressed row.
#[derive(Debug)]
pub(super) enum Content<'a> {
    /// The row was written before the column was added.
    Older,
    Value(Value),
    /// A pointer to the value.
    Pointer(&'a [u8]),
}

/// Decodes compressed rows, page by page.
#[derive(Debug, Default)]
pub(super) struct CompressedRows {
    shared: Shared,
    slots: Vec<Slot>,
    whole: Vec<u8>,
    /// Bytes that the values of the row may still have.
    bytes_left: usize,
}

impl CompressedRows {
    /// Starts a page; the error says why its rows cannot be read.
    pub(super) fn enter(
        &mut self,
        page: &Page,
        compression: Compression,
    ) -> Result<(), &'static str> {
        self.shared.clear();
        match (compression, page.first_record()) {
            (Compression::Page, Some(first)) => self.shared.read(page.bytes(), first),
            _ => Ok(()),
        }
    }

    /// Starts a record. Returns `false` if it is no row.
    pub(super) fn begin(&mut self, record: &[u8]) -> Result<bool, &'static str> {
        if !is_compressed(record) {
            return Err("an uncompressed row in a compressed table");
        }
        if !record::is_row(record) {
            return Ok(false);
        }
        self.bytes_left = ROW_BYTES_MAX;
        record::parse(record, &mut self.slots)?;
        Ok(true)
    }

    /// The content of a column of the record that was started.
    pub(super) fn content<'a>(
        &mut self,
        record: &'a [u8],
        field: &Field,
    ) -> Result<Content<'a>, String> {
        let column = usize::from(field.null_bit)
            .checked_sub(1)
            .ok_or("a column without a place in the row")?;
        let Some(slot) = self.slots.get(column).copied() else {
            return Ok(Content::Older);
        };
        let stored = |at: u16, length: u16| {
            let (at, length) = (usize::from(at), usize::from(length));
            record.get(at..at + length).unwrap_or_default()
        };
        let bytes = match slot {
            Slot::Null => return Ok(Content::Value(Value::Null)),
            Slot::True if field.sql_type.id == id::BIT => {
                return Ok(Content::Value(Value::Integer(1)));
            }
            Slot::True => return Err("a bit in a column of another type".to_owned()),
            Slot::Pointer { at, length } => return Ok(Content::Pointer(stored(at, length))),
            Slot::Empty => self.shared.empty(column)?,
            Slot::Bytes { at, length } => {
                let stored = stored(at, length);
                self.shared.value(column, stored, &mut self.whole)?
            }
            Slot::Symbol(number) => {
                let entry = self.shared.entry(number)?;
                self.shared.value(column, entry, &mut self.whole)?
            }
        };
        let used = bytes.len() + field.sql_type.padding();
        self.bytes_left = self
            .bytes_left
            .checked_sub(used)
            .ok_or("its values are longer than those of any row")?;
        let value = field.sql_type.decode_compressed(bytes)?;
        Ok(Content::Value(value))
    }
}

/// Decodes the first page as one of compressed rows whose columns are described by four bytes each.
/// Must not panic.
pub(crate) fn fuzz_page(columns: &[u8], pages: &mut dyn Pages) {
    let field = |(column, bytes): (u16, &[u8; 4])| Field {
        column: u32::from(column),
        physical: u32::from(column),
        sql_type: SqlType {
            id: bytes[0],
            length: i16::from_le_bytes([bytes[1], bytes[2]]),
            precision: 38,
            scale: bytes[3],
            collation: 0,
        },
        offset: -1,
        null_bit: column,
        bit: 0,
    };
    let columns = columns.as_chunks::<4>().0;
    let fields: Vec<Field> = (1..).zip(columns).map(field).collect();
    let first = PageId { file: 1, page: 0 };
    let Ok(Some(page)) = Page::fetch(pages, first) else {
        return;
    };
    let mut rows = CompressedRows::default();
    for compression in [Compression::Row, Compression::Page] {
        if rows.enter(&page, compression).is_err() {
            continue;
        }
        for slot in 0..page.header().slots() {
            let record = page.record(slot).unwrap_or_default();
            if rows.begin(record) == Ok(true) {
                for field in &fields {
                    // Only that the call returns matters, not its result.
                    rows.content(record, field).ok();
                }
            }
        }
    }
}
