//! What happens to a chunk before it is compressed.

use std::fmt;

use crate::btree::{self, BTreePages};
use crate::memory::Buffer;
use crate::{Algorithm, narrow};

/// The filters that made of a chunk what the compressor saw: first that of pages, then that of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Filter {
    /// Pages of b-trees are in their regular form.
    pub pages: Option<BTreePages>,
    /// UTF-16 text lost its zeros.
    pub is_narrowed: bool,
}

/// The bits of a filter's number.
mod bits {
    pub(super) const NARROWED: u16 = 1;
    pub(super) const PAGES: u16 = 2;
    /// The logarithm of the page's length, less that of the shortest page.
    pub(super) const PAGE_BYTES_AT: u32 = 4;
    pub(super) const PAGE_BYTES_MAX: u16 = 7;
    pub(super) const RESERVED_BYTES_AT: u32 = 8;
}

impl Filter {
    pub const NONE: Self = Self {
        pages: None,
        is_narrowed: false,
    };
    pub const NARROW: Self = Self {
        pages: None,
        is_narrowed: true,
    };

    /// The number on media. Numbers never change.
    pub fn id(self) -> u16 {
        let pages = self.pages.map_or(0, |pages| {
            let length = pages.page_bytes().ilog2() - BTreePages::PAGE_BYTES_MIN.ilog2();
            bits::PAGES
                | (length as u16) << bits::PAGE_BYTES_AT
                | u16::from(pages.reserved_bytes()) << bits::RESERVED_BYTES_AT
        });
        pages | if self.is_narrowed { bits::NARROWED } else { 0 }
    }

    /// The filter with this number on media.
    pub fn from_id(id: u16) -> Option<Self> {
        let mut filter = Self {
            pages: None,
            is_narrowed: id & bits::NARROWED != 0,
        };
        if id & bits::PAGES != 0 {
            let length = id >> bits::PAGE_BYTES_AT & bits::PAGE_BYTES_MAX;
            let reserved = (id >> bits::RESERVED_BYTES_AT) as u8;
            filter.pages = Some(BTreePages::new(
                BTreePages::PAGE_BYTES_MIN << length,
                reserved,
            )?);
        }
        // Bits without a meaning are those of another filter.
        (filter.id() == id).then_some(filter)
    }

    pub fn name(self) -> &'static str {
        match (self.pages.is_some(), self.is_narrowed) {
            (false, false) => "NONE",
            (false, true) => "NARROW",
            (true, false) => "PAGES",
            (true, true) => "PAGES, NARROW",
        }
    }

    /// Whether payloads of `algorithm` may be made through this filter. Those of `MS_XPRESS` are exactly
    /// SQL Server's, and uncompressed chunks are written as they were read.
    pub fn is_taken_by(self, algorithm: Algorithm) -> bool {
        self == Self::NONE || matches!(algorithm, Algorithm::Zstd | Algorithm::QatDeflate)
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The share of a chunk, in thousandths, that narrowing must remove to be used: with less, the list of
/// runs costs as much as the zeros, or more.
const REMOVED_MIN: usize = 150;

/// Filters chunks into memory of its own.
#[derive(Debug, Default)]
pub(crate) struct Filters {
    /// A chunk with its pages in regular form.
    regular: Buffer,
    /// The narrowed form of that or of a chunk.
    narrowed: Buffer,
    /// The layout of the pages of the following chunks, if they are of b-trees.
    pages: Option<BTreePages>,
    is_off: bool,
}

impl Filters {
    /// Leaves all chunks as they are from now on.
    pub(crate) fn turn_off(&mut self) {
        self.is_off = true;
    }

    pub(crate) fn set_pages(&mut self, pages: Option<BTreePages>) {
        self.pages = pages;
    }

    /// The filtered form of a chunk, or the chunk itself if that is better. `temporary` is as long as the
    /// chunk, and is overwritten. No chunk is longer than `frame_bytes_max`; memory for that is taken when
    /// it is first needed.
    pub(crate) fn filter<'a>(
        &'a mut self,
        chunk: &'a [u8],
        frame_bytes_max: usize,
        temporary: &mut [u8],
    ) -> (&'a [u8], Filter) {
        if self.is_off {
            return (chunk, Filter::NONE);
        }
        let pages = self.pages.filter(|pages| btree::promises(chunk, *pages));
        let regular = pages.and_then(|pages| {
            let form = self.regular.of(frame_bytes_max)?.get_mut(..chunk.len())?;
            btree::regularize(chunk, form, pages).then_some((&*form, pages))
        });
        let (form, pages) = match regular {
            Some((form, pages)) => (form, Some(pages)),
            None => (chunk, None),
        };
        let narrowed = narrow(form, &mut self.narrowed, frame_bytes_max, temporary);
        let filter = Filter {
            pages,
            is_narrowed: narrowed.is_some(),
        };
        (narrowed.unwrap_or(form), filter)
    }
}

/// The narrowed form of a chunk, in `room`, if it is worth it.
fn narrow<'a>(
    chunk: &[u8],
    room: &'a mut Buffer,
    frame_bytes_max: usize,
    temporary: &mut [u8],
) -> Option<&'a [u8]> {
    if narrow::promise(chunk) < REMOVED_MIN {
        return None;
    }
    let bytes_max = chunk.len() - chunk.len() * REMOVED_MIN / 1000;
    let form = room.of(frame_bytes_max)?;
    let bytes = narrow::narrow(chunk, bytes_max, form, temporary)?;
    form.get(..bytes)
}
