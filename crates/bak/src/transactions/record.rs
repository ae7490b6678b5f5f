//! Log records.

use std::fmt;

use windlass_base::Lsn;

use super::RowChanges;
use crate::error::PageId;
use crate::fields::{Fields, utf16};
use crate::page::page_pointer;
use crate::table::datetime_text;

const INSERT_ROWS: u8 = 0x02;
const DELETE_ROWS: u8 = 0x03;
const MODIFY_ROW: u8 = 0x04;
const MODIFY_COLUMNS: u8 = 0x06;
const BEGIN: u8 = 0x80;
const COMMIT: u8 = 0x81;
/// Never seen in a sample.
const ABORT: u8 = 0x82;

/// Operations below this change pages.
const FIRST_OTHER: u8 = 0x80;

/// Bytes of a record with a page, up to its allocation unit.
const PAGE_RECORD_BYTES: usize = 0x38;

/// Offset of the time in a record that begins a transaction.
const BEGIN_TIME_AT: usize = 0x28;

/// Maximum bytes of the name of a transaction: 32 characters.
const NAME_BYTES_MAX: usize = 64;

/// The number of a transaction, as the server prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(u16, u32);

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:08x}", self.0, self.1)
    }
}

/// The beginning of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begin {
    /// Its name; empty if it has none.
    pub name: String,
    /// Local time of the server.
    pub time: String,
}

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Begin,
    /// A transaction was committed, or undone completely.
    End,
    /// A row changed.
    Rows(RowChanges),
    /// Something else on a page changed.
    Page,
    Other,
}

/// A log record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) lsn: Lsn,
    fields: Fields<'a>,
}

impl<'a> Record<'a> {
    pub(super) fn new(lsn: Lsn, bytes: &'a [u8]) -> Self {
        Self {
            lsn,
            fields: Fields(bytes),
        }
    }

    /// Its transaction; `None` for records of the server itself.
    pub(super) fn transaction(self) -> Option<TransactionId> {
        let id = TransactionId(self.fields.u16(0x14), self.fields.u32(0x10));
        (id != TransactionId(0, 0)).then_some(id)
    }

    pub(super) fn operation(self) -> Operation {
        let (inserted, deleted, modified) = match self.fields.u8(0x16) {
            BEGIN => return Operation::Begin,
            COMMIT | ABORT => return Operation::End,
            code if code >= FIRST_OTHER => return Operation::Other,
            _ if self.fields.0.len() < PAGE_RECORD_BYTES => return Operation::Other,
            INSERT_ROWS => (1, 0, 0),
            DELETE_ROWS => (0, 1, 0),
            MODIFY_ROW | MODIFY_COLUMNS => (0, 0, 1),
            _ => return Operation::Page,
        };
        Operation::Rows(RowChanges {
            inserted,
            deleted,
            modified,
        })
    }

    /// The page that it changes.
    pub(super) fn page(self) -> PageId {
        page_pointer(self.fields, 0x18)
    }

    /// The allocation unit of that page.
    pub(super) fn unit(self) -> u64 {
        self.fields.u64(0x30)
    }

    fn time(self) -> String {
        let (ticks, days) = (
            self.fields.u32(BEGIN_TIME_AT),
            self.fields.u32(BEGIN_TIME_AT + 4),
        );
        datetime_text(ticks, days.cast_signed()).unwrap_or_else(|_| "an unknown time".to_owned())
    }

    /// The fields of a record that begins a transaction: its name is the first variable part.
    pub(super) fn begin(self) -> Begin {
        let fixed_end = usize::from(self.fields.u16(2));
        let parts = usize::from(self.fields.u16(fixed_end));
        let length = match parts {
            0 => 0,
            _ => usize::from(self.fields.u16(fixed_end + 2)),
        };
        let name_at = (fixed_end + 2 + 2 * parts).next_multiple_of(4);
        let name = self.fields.bytes(name_at, length.min(NAME_BYTES_MAX));
        Begin {
            name: utf16(name).trim_end_matches('\0').to_owned(),
            time: self.time(),
        }
    }
}
