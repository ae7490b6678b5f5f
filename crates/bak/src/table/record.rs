//! Records: rows and the other content of a page's slots.

use crate::fields::Fields;

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Row,
    ForwardedRow,
    Stub,
    Index,
    Lob,
    Ghost,
}

impl Kind {
    pub(super) fn of(record: &[u8]) -> Option<Self> {
        match record.first()? >> 1 & 7 {
            0 => Some(Self::Row),
            1 => Some(Self::ForwardedRow),
            2 => Some(Self::Stub),
            3 => Some(Self::Index),
            4 => Some(Self::Lob),
            5..=7 => Some(Self::Ghost),
            _ => None,
        }
    }
}

const HAS_NULL_BITMAP: u8 = 0x10;
const HAS_VARIABLE: u8 = 0x20;
const COMPLEX: u16 = 0x8000;

/// An uncompressed row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    bytes: &'a [u8],
    fixed_end: usize,
    columns: u16,
    nulls: &'a [u8],
    variable_count: u16,
    ends: &'a [u8],
    variable_at: usize,
}

/// A value of a variable part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Variable<'a> {
    pub(super) bytes: &'a [u8],
    /// Whether the bytes are a pointer to the value and not the value.
    pub(super) is_complex: bool,
}

impl<'a> Row<'a> {
    /// Parses a row; `None` if its parts are inconsistent.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let fields = Fields(bytes);
        let status = *bytes.first()?;
        let fixed_end = usize::from(fields.u16(2));
        if fixed_end < 4 || fixed_end > bytes.len() {
            return None;
        }
        let mut row = Self {
            bytes,
            fixed_end,
            columns: 0,
            nulls: &[],
            variable_count: 0,
            ends: &[],
            variable_at: bytes.len(),
        };
        let mut at = fixed_end;
        if status & HAS_NULL_BITMAP != 0 {
            row.columns = fields.u16(at);
            let length = usize::from(row.columns).div_ceil(8);
            row.nulls = bytes.get(at + 2..at + 2 + length)?;
            at += 2 + length;
        }
        if status & HAS_VARIABLE != 0 {
            row.variable_count = fields.u16(at);
            let length = 2 * usize::from(row.variable_count);
            row.ends = bytes.get(at + 2..at + 2 + length)?;
            row.variable_at = at + 2 + length;
        }
        Some(row)
    }

    /// Whether the row was written before the column with this null bit was added.
    pub(super) fn is_older_than(&self, null_bit: u16) -> bool {
        null_bit > self.columns
    }

    /// Whether the column with this null bit, from 1, is NULL.
    pub(super) fn is_null(&self, null_bit: u16) -> bool {
        let index = usize::from(null_bit.wrapping_sub(1));
        let byte = self.nulls.get(index / 8).copied().unwrap_or(0);
        byte >> (index % 8) & 1 == 1
    }

    /// Bytes of the fixed part; `None` if they are outside it.
    pub(super) fn fixed(&self, at: usize, length: usize) -> Option<&'a [u8]> {
        let end = at.checked_add(length)?;
        if end > self.fixed_end {
            return None;
        }
        self.bytes.get(at..end)
    }

    /// An entry of the variable part, from 1: empty if the row ends before it, `None` if it is
    /// invalid.
    pub(super) fn variable(&self, number: u16) -> Option<Variable<'a>> {
        if number == 0 || number > self.variable_count {
            return Some(Variable {
                bytes: &[],
                is_complex: false,
            });
        }
        let end_of = |number: u16| Fields(self.ends).u16(2 * (usize::from(number) - 1));
        let start = if number == 1 {
            self.variable_at
        } else {
            usize::from(end_of(number - 1) & !COMPLEX)
        };
        let end = end_of(number);
        let bytes = self.bytes.get(start..usize::from(end & !COMPLEX))?;
        Some(Variable {
            bytes,
            is_complex: end & COMPLEX != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_taken_apart() {
        // Status, fixed part of an int, 3 columns of which the second is NULL, two variable entries.
        let bytes = [
            0x30, 0, 8, 0, 42, 0, 0, 0, 3, 0, 0b010, 2, 0, 19, 0, 21, 0x80, b'h', b'i', 9, 9, 7, 7,
        ];
        let row = Row::parse(&bytes).unwrap();
        assert_eq!(row.fixed(4, 4), Some(&[42, 0, 0, 0][..]));
        assert_eq!(row.fixed(5, 4), None);
        assert!(!row.is_null(1) && row.is_null(2) && !row.is_null(3));
        assert!(row.is_older_than(4) && !row.is_older_than(3));
        assert_eq!(row.variable(1).unwrap().bytes, b"hi");
        let second = row.variable(2).unwrap();
        assert_eq!((second.bytes, second.is_complex), (&[9, 9][..], true));
        assert_eq!(row.variable(3).unwrap().bytes, b"");
    }
}
