//! The layout of a rowset's columns.

use super::record::{Row, Variable};
use super::value::{SqlType, id};

/// Number of the first column that was dropped.
const FIRST_DROPPED: u32 = 0x0400_0000;

/// A column of a rowset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    /// Number of the column in its table; 0 is the uniquifier.
    pub(super) column: u32,
    /// Number of the column in the rowset; it does not change when other columns are dropped.
    pub(super) physical: u32,
    pub(super) sql_type: SqlType,
    /// Positive: offset in the fixed part; negative: entry of the variable part.
    pub(super) offset: i16,
    pub(super) null_bit: u16,
    pub(super) bit: u8,
}

/// A column's content in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell<'a> {
    Null,
    /// The row was written before the column was added.
    Older,
    Bit(bool),
    Bytes(&'a [u8]),
    /// A pointer to the value.
    Pointer(&'a [u8]),
}

impl Field {
    /// Whether users can see the column.
    pub(super) fn is_visible(&self) -> bool {
        (1..FIRST_DROPPED).contains(&self.column)
    }

    /// The column's content in a row; the error describes what is invalid.
    pub(super) fn cell<'a>(&self, row: &Row<'a>) -> Result<Cell<'a>, &'static str> {
        if row.is_older_than(self.null_bit) {
            return Ok(Cell::Older);
        }
        if row.is_null(self.null_bit) {
            return Ok(Cell::Null);
        }
        if self.offset < 0 {
            let entry = row.variable(self.offset.unsigned_abs());
            let Variable { bytes, is_complex } = entry.ok_or("a value beyond the row")?;
            return Ok(if is_complex {
                Cell::Pointer(bytes)
            } else {
                Cell::Bytes(bytes)
            });
        }
        let length = self
            .sql_type
            .fixed_bytes()
            .ok_or("a type without a length in the fixed part")?;
        let at = usize::from(self.offset.unsigned_abs());
        let Some(bytes) = row.fixed(at, length) else {
            return Ok(Cell::Older);
        };
        if self.sql_type.id == id::BIT {
            let byte = bytes.first().copied().unwrap_or(0);
            return Ok(Cell::Bit(byte >> (self.bit & 7) & 1 == 1));
        }
        Ok(Cell::Bytes(bytes))
    }
}
