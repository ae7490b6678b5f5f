//! The rows of a rowset, decoded.

use std::collections::HashMap;

use super::compressed::{self, CompressedRows, Compression, Content};
use super::layout::{Cell, Field};
use super::lob::{LobError, read_lob};
use super::pages::{Allocation, Page, Pages};
use super::record::{Kind, Row};
use super::scan::{Problems, Scan, UnitPages, scan};
use super::system::{Rowset, Unit};
use super::value::Value;
use crate::error::Error;

/// The result of reading a rowset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of rows passed to the receiver.
    pub rows: u64,
    pub pages: u64,
    pub problems: Problems,
    /// Values that are returned as they are stored because they were not understood: `xml`.
    pub undecoded: Problems,
}

pub type TakeRow<'a> = dyn FnMut(&[Value]) -> Result<(), Error> + 'a;

/// Decodes the rows of a rowset.
pub(super) struct RowReader<'f> {
    pub(super) fields: &'f [Field],
    /// Values of columns that were added without rewriting the rows, by physical number.
    pub(super) defaults: &'f HashMap<u32, Value>,
}

impl RowReader<'_> {
    /// Passes every row to `take`.
    pub(super) fn read(
        &self,
        pages: &mut dyn Pages,
        rowset: &Rowset,
        unit: &Unit,
        take: &mut TakeRow<'_>,
    ) -> Result<Tally, Error> {
        let mut tally = Tally::default();
        let mut values = Vec::with_capacity(self.fields.len());
        let mut rows = CompressedRows::default();
        let is_compressed = rowset.compression != Compression::None;
        let mut each = |pages: &mut dyn Pages, page: &Page| {
            if is_compressed && let Err(what) = rows.enter(page, rowset.compression) {
                let problem = format!("the rows of page {} cannot be read: {what}", page.id);
                tally.problems.push(problem);
                return Ok(());
            }
            for slot in 0..page.header().slots() {
                let Some(record) = page.record(slot) else {
                    continue;
                };
                let taken = match is_compressed {
                    true => self.compressed_row(pages, record, &mut rows, &mut values),
                    false => self.row(pages, record, &mut values),
                };
                match taken {
                    Ok(true) => {
                        tally.rows += 1;
                        self.note_undecoded(page, slot, &values, &mut tally.undecoded);
                        take(&values)?;
                    }
                    Ok(false) => {}
                    Err(LobError::Source(error)) => return Err(error),
                    Err(LobError::Value(what)) => tally.problems.push(format!(
                        "the row in slot {slot} of page {}: {what}",
                        page.id
                    )),
                }
            }
            Ok(())
        };
        let mut allocation = Allocation::default();
        let scanned = scan(
            pages,
            &mut allocation,
            way(rowset, unit, is_compressed),
            &mut each,
        )?;
        tally.pages = scanned.pages;
        tally.problems.extend(scanned.problems);
        Ok(tally)
    }

    fn note_undecoded(&self, page: &Page, slot: u16, values: &[Value], noted: &mut Problems) {
        for (field, value) in self.fields.iter().zip(values) {
            if let Some(why) = field.sql_type.undecoded(value) {
                noted.push(format!(
                    "column {} of the row in slot {slot} of page {}: {why}",
                    field.column, page.id
                ));
            }
        }
    }

    /// Decodes a row. Returns `false` if the record is none.
    fn row(
        &self,
        pages: &mut dyn Pages,
        record: &[u8],
        values: &mut Vec<Value>,
    ) -> Result<bool, LobError> {
        if !matches!(Kind::of(record), Some(Kind::Row | Kind::ForwardedRow)) {
            return Ok(false);
        }
        values.clear();
        if compressed::is_compressed(record) {
            return Err(LobError::Value("an unexpected compressed row".to_owned()));
        }
        let row =
            Row::parse(record).ok_or_else(|| LobError::Value("its parts do not fit".to_owned()))?;
        for field in self.fields {
            let value = self.value(pages, field, &row);
            values.push(value.map_err(|error| of_column(field, error))?);
        }
        Ok(true)
    }

    fn value(
        &self,
        pages: &mut dyn Pages,
        field: &Field,
        row: &Row<'_>,
    ) -> Result<Value, LobError> {
        let cell = field
            .cell(row)
            .map_err(|what| LobError::Value(what.to_owned()))?;
        let decoded = match cell {
            Cell::Null => Ok(Value::Null),
            Cell::Older => Ok(self.default_of(field)),
            Cell::Bit(bit) => Ok(Value::Integer(bit.into())),
            // The vardecimal storage format of SQL Server 2005.
            Cell::Bytes(bytes) if field.offset < 0 && field.sql_type.is_decimal() => {
                compressed::decode_vardecimal(bytes, field.sql_type.scale)
            }
            Cell::Bytes(bytes) => field.sql_type.decode(bytes),
            Cell::Pointer(pointer) => return pointed_to(pages, field, pointer),
        };
        decoded.map_err(LobError::Value)
    }

    fn compressed_row(
        &self,
        pages: &mut dyn Pages,
        record: &[u8],
        rows: &mut CompressedRows,
        values: &mut Vec<Value>,
    ) -> Result<bool, LobError> {
        values.clear();
        let is_row = rows.begin(record);
        if !is_row.map_err(|what| LobError::Value(what.to_owned()))? {
            return Ok(false);
        }
        for field in self.fields {
            let value = match rows.content(record, field) {
                Ok(Content::Value(value)) => Ok(value),
                Ok(Content::Older) => Ok(self.default_of(field)),
                Ok(Content::Pointer(pointer)) => pointed_to(pages, field, pointer),
                Err(what) => Err(LobError::Value(what)),
            };
            values.push(value.map_err(|error| of_column(field, error))?);
        }
        Ok(true)
    }

    /// The value of a column in rows from before it was added.
    fn default_of(&self, field: &Field) -> Value {
        let stored = self.defaults.get(&field.physical);
        stored.cloned().unwrap_or(Value::Null)
    }
}

/// How to find the pages of a rowset. The upper levels of a compressed index are compressed, too: its
/// pages are those that are allocated to it.
fn way(rowset: &Rowset, unit: &Unit, is_compressed: bool) -> Scan {
    let pages = UnitPages {
        first_iam: unit.first_iam,
        unit: unit.id,
        object: rowset.object,
    };
    match rowset.index == 0 || is_compressed {
        true => Scan::Heap(pages),
        false => Scan::Index {
            root: unit.root,
            unit: pages,
        },
    }
}

/// The value at a pointer in a row.
fn pointed_to(pages: &mut dyn Pages, field: &Field, pointer: &[u8]) -> Result<Value, LobError> {
    let bytes = read_lob(pages, pointer, field.sql_type.is_old_lob())?;
    field.sql_type.decode(&bytes).map_err(LobError::Value)
}

fn of_column(field: &Field, error: LobError) -> LobError {
    match error {
        LobError::Value(what) => LobError::Value(format!("column {}: {what}", field.column)),
        LobError::Source(error) => LobError::Source(error),
    }
}
