//! Regular pages: a reversible filter for the pages of SQLite's b-trees, applied before a compressor.
//!
//! A b-tree page repeats itself in a form that no compressor sees. Its cell pointers are two bytes a
//! cell and say only where the cells are, which their lengths say too if they lie one after the other,
//! as in every page that was filled in order of its keys. And the rowids of a table grow by one from row
//! to row, so each differs from the one before. The filter replaces every pointer by its difference to the
//! place that the next cell's end predicts, and every rowid by its difference to the following one: mostly
//! zeros. Nothing moves and no length changes.
//!
//! The *regular form* of a page is described in `docs/codecs.md`. The type byte of a page in this form has
//! its highest bit set, so no list of pages is stored; a chunk with a page that has such a byte already is
//! left as it is.
//!
//! Invariants:
//! 1. [`restore`] reverses [`regularize`].
//! 2. Only pages whose cells lie in descending order without overlap are changed; no cell is read twice.
//! 3. Neither allocates, or touches a byte outside of its page; `restore` returns for any input.

mod cell;
#[cfg(test)]
mod tests;

use self::cell::{Cell, RowId};

/// How the pages of a file are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BTreePages {
    page_bytes: u32,
    reserved_bytes: u8,
}

impl BTreePages {
    pub const PAGE_BYTES_MIN: u32 = 512;
    pub const PAGE_BYTES_MAX: u32 = 65_536;

    /// The header of a SQLite file.
    pub const FILE_HEADER_BYTES: usize = 100;

    /// SQLite's limit: what a page has room for at least.
    const USABLE_BYTES_MIN: u32 = 480;

    /// Pages of `page_bytes`, whose last `reserved_bytes` belong to no cell; `None` if SQLite has no such
    /// pages.
    pub fn new(page_bytes: u32, reserved_bytes: u8) -> Option<Self> {
        let is_taken = page_bytes.is_power_of_two()
            && (Self::PAGE_BYTES_MIN..=Self::PAGE_BYTES_MAX).contains(&page_bytes)
            && page_bytes - u32::from(reserved_bytes) >= Self::USABLE_BYTES_MIN;
        is_taken.then_some(Self {
            page_bytes,
            reserved_bytes,
        })
    }

    /// The layout that the header of a SQLite file names, if `start` begins with one.
    pub fn of_file(start: &[u8]) -> Option<Self> {
        let header = start.first_chunk::<{ Self::FILE_HEADER_BYTES }>()?;
        let page_bytes = match u16_at(header, 16) {
            1 => Self::PAGE_BYTES_MAX,
            bytes => bytes.into(),
        };
        let layout = Self::new(page_bytes, header[20])?;
        header.starts_with(MAGIC).then_some(layout)
    }

    pub fn page_bytes(self) -> u32 {
        self.page_bytes
    }

    pub fn reserved_bytes(self) -> u8 {
        self.reserved_bytes
    }

    fn usable_bytes(self) -> usize {
        self.page_bytes as usize - usize::from(self.reserved_bytes)
    }
}

/// What a SQLite file starts with.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Set in the type byte of a page in regular form.
const REGULAR: u8 = 0x80;

/// Where the header of a page has its fields.
const CELL_COUNT_AT: usize = 3;
const CONTENT_START_AT: usize = 5;

/// The types of b-tree pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    InteriorIndex,
    InteriorTable,
    LeafIndex,
    LeafTable,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            2 => Some(Self::InteriorIndex),
            5 => Some(Self::InteriorTable),
            10 => Some(Self::LeafIndex),
            13 => Some(Self::LeafTable),
            _ => None,
        }
    }

    fn header_bytes(self) -> usize {
        match self {
            Self::InteriorIndex | Self::InteriorTable => 12,
            Self::LeafIndex | Self::LeafTable => 8,
        }
    }
}

/// The header of a page, as far as it matters here.
#[derive(Debug, Clone, Copy)]
struct Shape {
    kind: Kind,
    cells: usize,
    usable: usize,
}

impl Shape {
    /// `None` if the pointers do not fit into the page, or there are none.
    fn of(page: &[u8], kind: Kind, usable: usize) -> Option<Self> {
        let cells = usize::from(u16_at(page, CELL_COUNT_AT));
        let shape = Self {
            kind,
            cells,
            usable,
        };
        (cells > 0 && shape.pointers_end() <= usable).then_some(shape)
    }

    fn pointer_at(&self, index: usize) -> usize {
        self.kind.header_bytes() + 2 * index
    }

    fn pointers_end(&self) -> usize {
        self.pointer_at(self.cells)
    }

    fn cell(&self, page: &[u8], index: usize) -> Option<Cell> {
        let at = u16_at(page, self.pointer_at(index));
        Cell::read(&page[..self.usable], self.kind, at)
    }

    /// The cell at `index`, if it ends at `above` at most and lies behind the pointers.
    fn cell_below(&self, page: &[u8], index: usize, above: usize) -> Option<Cell> {
        let cell = self.cell(page, index)?;
        (cell.end() <= above && usize::from(cell.at) >= self.pointers_end()).then_some(cell)
    }
}

/// Whether regular forms may pay for a chunk: enough of it are b-tree pages, and none looks as if it was
/// in that form already.
pub(crate) fn promises(chunk: &[u8], pages: BTreePages) -> bool {
    let page_bytes = pages.page_bytes as usize;
    let mut found = 0;
    for page in chunk.chunks_exact(page_bytes) {
        let byte = page[0];
        if Kind::from_byte(byte & !REGULAR).is_some() {
            if byte & REGULAR != 0 {
                return false;
            }
            found += 1;
        }
    }
    found * SHARE_MIN >= (chunk.len() / page_bytes).max(1)
}

/// One page of so many must be of a b-tree: with fewer, copying the chunk costs more than it saves.
const SHARE_MIN: usize = 16;

/// Copies a chunk that [`promises`] to `form`, which is as long, with each page for which that is possible
/// in its regular form; returns whether there is one.
pub(crate) fn regularize(chunk: &[u8], form: &mut [u8], pages: BTreePages) -> bool {
    let usable = pages.usable_bytes();
    let page_bytes = pages.page_bytes as usize;
    let mut changed = false;
    for (page, form) in chunk.chunks(page_bytes).zip(form.chunks_mut(page_bytes)) {
        form.copy_from_slice(page);
        // Bytes behind the last page are of no page.
        if page.len() < page_bytes {
            break;
        }
        match regularize_page(page, form, usable) {
            Some(()) => changed = true,
            // What was changed before a cell out of order was found.
            None => form.copy_from_slice(page),
        }
    }
    changed
}

fn regularize_page(page: &[u8], form: &mut [u8], usable: usize) -> Option<()> {
    let kind = Kind::from_byte(page[0])?;
    let shape = Shape::of(page, kind, usable)?;
    let mut cell = shape.cell_below(page, 0, usable)?;
    for index in 1..shape.cells {
        let next = shape.cell_below(page, index, usize::from(cell.at))?;
        write_rowid(form, &cell, next.rowid, |own, next| {
            next.wrapping_sub(own).wrapping_sub(1)
        });
        let residual = cell.at.wrapping_sub(next.end() as u16);
        put_u16(form, shape.pointer_at(index - 1), residual);
        cell = next;
    }
    let start = u16_at(page, CONTENT_START_AT);
    let last = shape.pointer_at(shape.cells - 1);
    put_u16(form, last, cell.at.wrapping_sub(start));
    form[0] |= REGULAR;
    Some(())
}

/// Reverses [`regularize`].
///
/// # Errors
/// Why a page that is marked is no regular form. The content of `chunk` is then undefined.
pub(crate) fn restore(chunk: &mut [u8], pages: BTreePages) -> Result<(), &'static str> {
    let usable = pages.usable_bytes();
    for page in chunk.chunks_exact_mut(pages.page_bytes as usize) {
        let byte = page[0];
        if byte & REGULAR == 0 {
            continue;
        }
        if let Some(kind) = Kind::from_byte(byte & !REGULAR) {
            page[0] = byte & !REGULAR;
            restore_page(page, kind, usable).ok_or("a page is no regular form")?;
        }
    }
    Ok(())
}

fn restore_page(page: &mut [u8], kind: Kind, usable: usize) -> Option<()> {
    let shape = Shape::of(page, kind, usable)?;
    let mut predicted = u16_at(page, CONTENT_START_AT);
    let mut next = None;
    for index in (0..shape.cells).rev() {
        let pointer = shape.pointer_at(index);
        let at = predicted.wrapping_add(u16_at(page, pointer));
        // A cell over the pointers would change those that are still to be read.
        if usize::from(at) < shape.pointers_end() {
            return None;
        }
        put_u16(page, pointer, at);
        let cell = Cell::read(&page[..usable], kind, at)?;
        predicted = cell.end() as u16;
        next = write_rowid(page, &cell, next, |residual, next| {
            next.wrapping_sub(residual).wrapping_sub(1)
        });
    }
    Some(())
}

/// Replaces the rowid of `cell` by `change` of it and of the following one, in as many bytes; returns what
/// it is then.
fn write_rowid(
    page: &mut [u8],
    cell: &Cell,
    next: Option<RowId>,
    change: impl FnOnce(u64, u64) -> u64,
) -> Option<RowId> {
    let own = cell.rowid?;
    match next {
        Some(next) if own.can_change() => Some(own.write(page, change(own.value, next.value))),
        _ => Some(own),
    }
}

fn u16_at(page: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([page[at], page[at + 1]])
}

fn put_u16(page: &mut [u8], at: usize, value: u16) {
    page[at..at + 2].copy_from_slice(&value.to_be_bytes());
}
