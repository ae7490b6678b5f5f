//! The rows of a rowset, decoded.

use std::collections::HashMap;

use super::layout::{Cell, Field};
use super::lob::{LobError, read_lob};
use super::pages::{Allocation, Page, Pages};
use super::record::{Kind, Row};
use super::scan::{Problems, Scan, scan};
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
        let what = if rowset.index == 0 {
            Scan::Heap {
                first_iam: unit.first_iam,
                unit: unit.id,
                object: rowset.object,
            }
        } else {
            Scan::Index { root: unit.root }
        };
        let mut values = Vec::with_capacity(self.fields.len());
        let mut allocation = Allocation::default();
        let mut each = |pages: &mut dyn Pages, page: &Page| {
            for slot in 0..page.header().slots() {
                let Some(record) = page.record(slot) else {
                    continue;
                };
                if !matches!(Kind::of(record), Some(Kind::Row | Kind::ForwardedRow)) {
                    continue;
                }
                match self.row(pages, record, &mut values) {
                    Ok(()) => {
                        tally.rows += 1;
                        take(&values)?;
                    }
                    Err(LobError::Source(error)) => return Err(error),
                    Err(LobError::Value(what)) => tally.problems.push(format!(
                        "the row in slot {slot} of page {}: {what}",
                        page.id
                    )),
                }
            }
            Ok(())
        };
        let scanned = scan(pages, &mut allocation, what, &mut each)?;
        tally.pages = scanned.pages;
        tally.problems.extend(scanned.problems);
        Ok(tally)
    }

    fn row(
        &self,
        pages: &mut dyn Pages,
        record: &[u8],
        values: &mut Vec<Value>,
    ) -> Result<(), LobError> {
        values.clear();
        let compressed = record.first().is_some_and(|status| status & 1 == 1);
        if compressed {
            return Err(LobError::Value("an unexpected compressed row".to_owned()));
        }
        let row =
            Row::parse(record).ok_or_else(|| LobError::Value("its parts do not fit".to_owned()))?;
        for field in self.fields {
            let value = self.value(pages, field, &row);
            values.push(value.map_err(|error| match error {
                LobError::Value(what) => {
                    LobError::Value(format!("column {}: {what}", field.column))
                }
                LobError::Source(error) => LobError::Source(error),
            })?);
        }
        Ok(())
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
            Cell::Older => Ok(self
                .defaults
                .get(&field.physical)
                .cloned()
                .unwrap_or(Value::Null)),
            Cell::Bit(bit) => Ok(Value::Integer(bit.into())),
            Cell::Bytes(bytes) => field.sql_type.decode(bytes),
            Cell::Pointer(pointer) => {
                let bytes = read_lob(pages, pointer, field.sql_type.is_old_lob())?;
                field.sql_type.decode(&bytes)
            }
        };
        decoded.map_err(LobError::Value)
    }
}
