//! Cells of b-tree pages: where they end and where their rowid is.
//!
//! After "B-tree Pages" and "Cell Payload Overflow Pages" of SQLite's file format.

use super::Kind;

/// The longest varint; its last byte has eight bits.
const VARINT_BYTES_MAX: usize = 9;

/// No cell is shorter: its place becomes a free block, which is that long.
const CELL_BYTES_MIN: usize = 4;

/// The number of a page: of a left child, or of the first overflow page.
const PAGE_NUMBER_BYTES: usize = 4;

/// A cell of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) at: u16,
    bytes: usize,
    /// Of a row; the keys of interior pages stay as they are.
    pub(super) rowid: Option<RowId>,
}

/// A varint in a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowId {
    at: usize,
    bytes: usize,
    pub(super) value: u64,
}

impl Cell {
    /// The cell at `at`; `None` if it does not fit into `usable`, the page without what is reserved.
    pub(super) fn read(usable: &[u8], kind: Kind, at: u16) -> Option<Self> {
        let start = usize::from(at);
        let mut end = start;
        if matches!(kind, Kind::InteriorIndex | Kind::InteriorTable) {
            end += PAGE_NUMBER_BYTES;
        }
        let mut payload_bytes = 0;
        if kind != Kind::InteriorTable {
            let (payload, bytes) = varint(usable, end)?;
            payload_bytes = local_bytes(payload, usable.len(), kind);
            end += bytes;
        }
        let mut rowid = None;
        if matches!(kind, Kind::InteriorTable | Kind::LeafTable) {
            let (value, bytes) = varint(usable, end)?;
            rowid = (kind == Kind::LeafTable).then_some(RowId {
                at: end,
                bytes,
                value,
            });
            end += bytes;
        }
        let bytes = (end + payload_bytes - start).max(CELL_BYTES_MIN);
        (start + bytes <= usable.len()).then_some(Self { at, bytes, rowid })
    }

    /// The place behind it; that of a page of 64 KB may be 65,536.
    pub(super) fn end(&self) -> usize {
        usize::from(self.at) + self.bytes
    }
}

impl RowId {
    /// Whether every value of its length can be written: nine bytes have another form.
    pub(super) fn can_change(&self) -> bool {
        self.bytes < VARINT_BYTES_MAX
    }

    /// Writes the lower bits of `value`, in as many bytes as it has.
    pub(super) fn write(self, page: &mut [u8], value: u64) -> Self {
        let mut rest = value;
        for byte in page[self.at..self.at + self.bytes].iter_mut().rev() {
            *byte = (*byte & 0x80) | (rest & 0x7F) as u8;
            rest >>= 7;
        }
        let value = value & ((1 << (7 * self.bytes)) - 1);
        Self { value, ..self }
    }
}

/// How many bytes of a payload are in its cell, the number of its first overflow page included.
fn local_bytes(payload: u64, usable: usize, kind: Kind) -> usize {
    let usable = usable as u64;
    let max = match kind {
        Kind::LeafTable => usable - 35,
        _ => (usable - 12) * 64 / 255 - 23,
    };
    if payload <= max {
        return payload as usize;
    }
    let min = (usable - 12) * 32 / 255 - 23;
    let with_rest = min + (payload - min) % (usable - 4);
    let local = if with_rest <= max { with_rest } else { min };
    local as usize + PAGE_NUMBER_BYTES
}

/// The varint at `at`, and its length.
fn varint(page: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = *page.get(at)?;
    if first < 0x80 {
        return Some((first.into(), 1));
    }
    let mut value = u64::from(first & 0x7F);
    for index in 1..VARINT_BYTES_MAX {
        let byte = *page.get(at + index)?;
        if index == VARINT_BYTES_MAX - 1 {
            return Some((value << 8 | u64::from(byte), VARINT_BYTES_MAX));
        }
        value = value << 7 | u64::from(byte & 0x7F);
        if byte < 0x80 {
            return Some((value, index + 1));
        }
    }
    None
}
