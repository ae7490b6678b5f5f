//! Values stored on their own pages.

use std::collections::HashSet;

use super::pages::{Page, Pages};
use super::record::Kind;
use crate::error::{Error, PageId};
use crate::fields::Fields;
use crate::page::page_pointer;

/// Maximum levels in a tree of pieces; four are enough for 2 GB.
const LEVELS_MAX: u32 = 12;

/// Bytes of a pointer of `text`, `ntext` and `image`.
const OLD_POINTER_BYTES: usize = 16;

/// First byte of an inline root.
const INLINE_ROOT: u8 = 4;

/// First byte of a pointer to a value that overflowed its row.
const OVERFLOW: u8 = 2;

const SMALL_ROOT: u16 = 0;
const INTERNAL: u16 = 2;
const DATA: u16 = 3;
const LARGE_ROOT_2000: u16 = 4;
const LARGE_ROOT: u16 = 5;
const NULL: u16 = 8;

/// A place in a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct RowId {
    page: PageId,
    slot: u16,
}

impl RowId {
    fn read(fields: Fields<'_>, at: usize) -> Self {
        Self {
            page: page_pointer(fields, at),
            slot: fields.u16(at + 6),
        }
    }
}

/// Why a value could not be assembled.
#[derive(Debug)]
pub(super) enum LobError {
    /// The source failed.
    Source(Error),
    /// The value is damaged or missing.
    Value(String),
}

impl From<Error> for LobError {
    fn from(error: Error) -> Self {
        Self::Source(error)
    }
}

/// Assembles a value. Each piece is read at most once, so that no value is longer than the pages.
struct Reader<'p> {
    pages: &'p mut dyn Pages,
    seen: HashSet<RowId>,
    value: Vec<u8>,
}

/// The value at a pointer in a row.
pub(super) fn read_lob(
    pages: &mut dyn Pages,
    pointer: &[u8],
    is_old: bool,
) -> Result<Vec<u8>, LobError> {
    let mut reader = Reader {
        pages,
        seen: HashSet::new(),
        value: Vec::new(),
    };
    let fields = Fields(pointer);
    if is_old && pointer.len() == OLD_POINTER_BYTES {
        reader.piece(RowId::read(fields, 8), LEVELS_MAX)?;
        return Ok(reader.value);
    }
    let is_root = matches!(fields.u8(0), INLINE_ROOT | OVERFLOW);
    if !is_root || pointer.len() < 24 || !pointer.len().is_multiple_of(12) {
        return Err(LobError::Value(format!(
            "a pointer of {} bytes that begins with {:#04x} is not understood",
            pointer.len(),
            fields.u16(0)
        )));
    }
    let mut at = 12;
    while at < pointer.len() {
        reader.piece(RowId::read(fields, at + 4), LEVELS_MAX)?;
        reader.expect(u64::from(fields.u32(at)))?;
        at += 12;
    }
    Ok(reader.value)
}

impl Reader<'_> {
    /// Fails unless the length read so far matches the length in the pointer.
    fn expect(&self, bytes: u64) -> Result<(), LobError> {
        if self.value.len() as u64 == bytes {
            return Ok(());
        }
        Err(LobError::Value(format!(
            "its pieces have {} bytes, not {bytes}",
            self.value.len()
        )))
    }

    fn piece(&mut self, at: RowId, levels: u32) -> Result<(), LobError> {
        let damaged = |what: &str| {
            let RowId { page, slot } = at;
            LobError::Value(format!("{what} in slot {slot} of page {page}"))
        };
        if levels == 0 || !self.seen.insert(at) {
            return Err(damaged("a circle of pieces"));
        }
        let Some(page) = Page::fetch(self.pages, at.page)? else {
            return Err(LobError::Value(Page::absence(self.pages, at.page)?));
        };
        if let Some(damage) = page.damage() {
            return Err(LobError::Value(damage));
        }
        let record = page
            .record(at.slot)
            .filter(|record| Kind::of(record) == Some(Kind::Lob))
            .ok_or_else(|| damaged("no piece"))?;
        let fields = Fields(record);
        match fields.u16(12) {
            NULL => {}
            SMALL_ROOT => {
                let length = usize::from(fields.u16(14));
                let data = record.get(20..20 + length);
                self.value
                    .extend_from_slice(data.ok_or_else(|| damaged("a cut-off piece"))?);
            }
            DATA => {
                let data = record.get(14..usize::from(fields.u16(2)));
                self.value
                    .extend_from_slice(data.ok_or_else(|| damaged("a cut-off piece"))?);
            }
            LARGE_ROOT | LARGE_ROOT_2000 => {
                let base = self.value.len() as u64;
                for link in 0..usize::from(fields.u16(16)) {
                    let at = 24 + 12 * link;
                    self.piece(RowId::read(fields, at + 4), levels - 1)?;
                    self.expect(base + u64::from(fields.u32(at)))?;
                }
            }
            INTERNAL => {
                let base = self.value.len() as u64;
                for link in 0..usize::from(fields.u16(16)) {
                    let at = 20 + 16 * link;
                    self.piece(RowId::read(fields, at + 8), levels - 1)?;
                    self.expect(base.saturating_add(fields.u64(at)))?;
                }
            }
            other => return Err(damaged(&format!("a piece of unknown type {other}"))),
        }
        Ok(())
    }
}
