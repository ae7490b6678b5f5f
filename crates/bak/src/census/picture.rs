//! A picture of a file: what lies where in it, in a limited number of cells.

use crate::page::PageHeader;

/// Maximum number of cells. When a file needs more, two cells become one.
const CELLS_MAX: usize = 4096;

/// Bytes of a cell at the beginning.
const CELL_BYTES: u64 = 512;

/// What a part of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartKind {
    /// Descriptor blocks, configurations, the index of a compressed file.
    Headers,
    /// Pages with rows.
    Rows,
    /// Pages of indexes.
    Index,
    /// Pages with long values.
    LongValues,
    /// Allocation maps, file headers, the boot page, and pages of other types.
    Allocation,
    /// Pages that were never formatted.
    Unformatted,
    Log,
    /// Extents that pad a transfer, and zeros between structures.
    Padding,
    /// Extents that belong to no file.
    Unplaced,
}

impl PartKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Headers,
        Self::Rows,
        Self::Index,
        Self::LongValues,
        Self::Allocation,
        Self::Unformatted,
        Self::Log,
        Self::Padding,
        Self::Unplaced,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Headers => "headers",
            Self::Rows => "rows",
            Self::Index => "indexes",
            Self::LongValues => "long values",
            Self::Allocation => "allocation",
            Self::Unformatted => "never formatted",
            Self::Log => "log",
            Self::Padding => "padding",
            Self::Unplaced => "unknown",
        }
    }

    /// The kind of a formatted page.
    pub(super) fn of_page(header: PageHeader<'_>) -> Self {
        match header.page_type() {
            1 => Self::Rows,
            2 => Self::Index,
            3 | 4 => Self::LongValues,
            _ => Self::Allocation,
        }
    }
}

/// Bytes of each kind in a cell.
type Cell = [u64; PartKind::ALL.len()];

/// A picture of a file. Parts are added in the order of their offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    cell_bytes: u64,
    cells: Vec<Cell>,
    /// The part that is not yet added, because its end is not known: its offset and its kind.
    open: (u64, PartKind),
}

impl Default for Picture {
    fn default() -> Self {
        Self {
            cell_bytes: CELL_BYTES,
            cells: Vec::new(),
            open: (0, PartKind::Headers),
        }
    }
}

impl Picture {
    /// A part begins, and with it the one before ends.
    pub(super) fn begin(&mut self, offset: u64, kind: PartKind) {
        let (start, previous) = self.open;
        if kind != previous {
            self.add(start, offset, previous);
            self.open = (offset.max(start), kind);
        }
    }

    /// The file ends.
    pub(super) fn end(&mut self, bytes: u64) {
        let (start, kind) = self.open;
        self.add(start, bytes, kind);
        self.open.0 = bytes;
    }

    fn add(&mut self, start: u64, end: u64, kind: PartKind) {
        while end > self.cell_bytes.saturating_mul(CELLS_MAX as u64) {
            self.cell_bytes = self.cell_bytes.saturating_mul(2);
            self.halve();
        }
        let mut at = start;
        while at < end {
            let index = (at / self.cell_bytes) as usize;
            let next = end.min((at / self.cell_bytes + 1).saturating_mul(self.cell_bytes));
            if self.cells.len() <= index {
                self.cells.resize(index + 1, Cell::default());
            }
            let slot = self.cells.get_mut(index);
            if let Some(bytes) = slot.and_then(|cell| cell.get_mut(kind as usize)) {
                *bytes += next - at;
            }
            at = next;
        }
    }

    fn halve(&mut self) {
        let merged = self.cells.chunks(2).map(|pair| {
            let mut sum = Cell::default();
            for cell in pair {
                for (sum, bytes) in sum.iter_mut().zip(cell) {
                    *sum += bytes;
                }
            }
            sum
        });
        self.cells = merged.collect();
    }

    /// What lies in each part of the file, in order: the kind that has most of a cell, and the bytes of
    /// neighbouring cells of one kind together.
    pub fn parts(&self) -> Vec<(PartKind, u64)> {
        let mut parts: Vec<(PartKind, u64)> = Vec::new();
        for cell in &self.cells {
            let bytes = cell.iter().sum();
            // The first of several with the same number of bytes.
            let kinds = PartKind::ALL.into_iter().zip(cell).rev();
            let Some((kind, _)) = kinds.max_by_key(|(_, bytes)| **bytes) else {
                continue;
            };
            match parts.last_mut() {
                Some((last, sum)) if *last == kind => *sum += bytes,
                _ => parts.push((kind, bytes)),
            }
        }
        parts
    }

    /// Bytes of each kind in the whole file.
    pub fn totals(&self) -> Vec<(PartKind, u64)> {
        let total = |kind: PartKind| {
            let bytes = self.cells.iter().filter_map(|cell| cell.get(kind as usize));
            (kind, bytes.sum())
        };
        PartKind::ALL.into_iter().map(total).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_every_byte_whatever_the_size_of_the_file() {
        for scale in [1, 700, 1 << 20] {
            let mut picture = Picture::default();
            picture.begin(0, PartKind::Headers);
            picture.begin(1000 * scale, PartKind::Rows);
            picture.begin(5000 * scale, PartKind::Rows);
            picture.begin(9000 * scale, PartKind::Log);
            picture.end(9500 * scale);
            let totals = picture.totals();
            assert_eq!(totals[0], (PartKind::Headers, 1000 * scale));
            assert_eq!(totals[1], (PartKind::Rows, 8000 * scale));
            assert_eq!(totals[6], (PartKind::Log, 500 * scale));
            let parts = picture.parts();
            let kinds: Vec<PartKind> = parts.iter().map(|(kind, _)| *kind).collect();
            assert_eq!(
                kinds,
                [PartKind::Headers, PartKind::Rows, PartKind::Log],
                "{scale}"
            );
            assert_eq!(
                parts.iter().map(|(_, bytes)| bytes).sum::<u64>(),
                9500 * scale
            );
            assert!(picture.cells.len() <= CELLS_MAX);
        }
    }

    #[test]
    fn offsets_that_go_back_do_no_harm() {
        let mut picture = Picture::default();
        picture.begin(5000, PartKind::Rows);
        picture.begin(100, PartKind::Log);
        picture.end(u64::MAX);
        picture.end(0);
        assert_eq!(picture.totals()[0], (PartKind::Headers, 5000));
    }
}
