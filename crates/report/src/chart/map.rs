//! What lies where in a file: the file from left to right and from top to bottom, like a text, with the
//! offset at the beginning of each line.

use super::canvas::{Anchor, Area, Canvas, Role};
use crate::model::Map;
use crate::number::number;

/// Lines of a file. A small one has fewer.
const LINES_MAX: usize = 16;
/// A line of a small file.
const LINE_BYTES_MIN: u64 = 4096;
const BAR: f64 = 16.0;
const BAR_GAP: f64 = 5.0;
/// Width of the smallest part that is drawn: of smaller ones, the kind with most of it.
const CELL: f64 = 2.0;

/// Classes of the kinds, in order.
const CLASSES: [&str; 10] = [
    "s1", "s0", "s4", "s3", "s2", "before", "s5", "idle", "trouble", "behind",
];

/// The style's class for a kind of parts.
pub(super) fn class(kind: usize) -> &'static str {
    CLASSES
        .get(kind % CLASSES.len())
        .copied()
        .unwrap_or("behind")
}

pub(super) fn draw(map: &Map, width: f64) -> Canvas {
    let mut canvas = Canvas::new(width);
    let total = map
        .parts
        .iter()
        .fold(0_u64, |sum, part| sum.saturating_add(part.bytes));
    let line_bytes = total.div_ceil(LINES_MAX as u64).max(LINE_BYTES_MIN);
    let lines = total.div_ceil(line_bytes);
    let offsets: Vec<String> = (0..lines)
        .map(|line| offset(line * line_bytes, total))
        .collect();
    let widest = offsets.iter().map(|text| Role::Tick.width(text));
    let left = widest.fold(0.0, f64::max) + 8.0;
    let room = (width - left).max(CELL);
    let cells = (room / CELL).floor().max(1.0) as u64;
    let mut kinds = Kinds::new(map);
    let mut y = 4.0;
    for (line, text) in (0..lines).zip(offsets) {
        canvas.text(
            (left - 8.0, y + BAR / 2.0 + 4.0),
            Anchor::End,
            Role::Tick,
            text,
        );
        let at = |cell: u64| {
            let inside = u128::from(line_bytes) * u128::from(cell) / u128::from(cells);
            (line * line_bytes).saturating_add(inside as u64).min(total)
        };
        let drawn: Vec<Option<usize>> = (0..cells)
            .map(|cell| kinds.most_of(at(cell), at(cell + 1)))
            .collect();
        let mut x = left;
        for same in drawn.chunk_by(|one, next| one == next) {
            let length = same.len() as f64 * CELL;
            if let Some(Some(kind)) = same.first() {
                let area = Area::new(x, y, length, BAR);
                canvas.bar(area, class(*kind));
            }
            x += length;
        }
        y += BAR + BAR_GAP;
    }
    canvas.height = y.max(1.0);
    canvas
}

/// An offset in the unit that suits the file.
fn offset(bytes: u64, total: u64) -> String {
    let (unit, size) = [("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)]
        .into_iter()
        .find(|(_, size)| total >= 10 * size)
        .unwrap_or(("bytes", 1));
    format!(
        "{} {unit}",
        number(bytes as f64 / size as f64, usize::from(size > 1))
    )
}

/// The parts of a map, read from the beginning to the end.
struct Kinds<'m> {
    map: &'m Map,
    /// The part that is read, and where it begins.
    next: usize,
    begin: u64,
}

impl<'m> Kinds<'m> {
    fn new(map: &'m Map) -> Self {
        Self {
            map,
            next: 0,
            begin: 0,
        }
    }

    /// The kind with most of the bytes from `from` to `to`, which is not before the last `to`.
    fn most_of(&mut self, from: u64, to: u64) -> Option<usize> {
        let mut bytes = vec![0_u64; self.map.kinds.len()];
        while let Some(part) = self.map.parts.get(self.next).filter(|_| self.begin < to) {
            let end = self.begin.saturating_add(part.bytes);
            let share = end.min(to).saturating_sub(self.begin.max(from));
            if let Some(sum) = bytes.get_mut(part.kind) {
                *sum += share;
            }
            if end > to {
                break;
            }
            self.begin = end;
            self.next += 1;
        }
        // The first of several with the same number of bytes.
        let most = bytes.iter().enumerate().rev();
        let most = most.max_by_key(|(_, bytes)| **bytes)?;
        (*most.1 > 0).then_some(most.0)
    }
}
