//! A snapshot that is only partly read, so that a huge database is measured in bounded time.
//!
//! The pieces are contiguous, one frame or a multiple of it long, and evenly spread: chunks cut
//! from them resemble those of the whole database, and so do their ratios.

use std::ops::Range;

use windlass_source::{FileRanges, Snapshot};

const EXTENT_BYTES: u64 = windlass_base::EXTENT_BYTES as u64;

/// Maximum number of pieces: more would mean more seeks than in a backup.
const PIECES_MAX: u64 = 32;

/// Leaves about `wanted_bytes` of a snapshot to be read, in pieces of `frame_bytes`, a multiple of the
/// extent size, or a multiple of that; everything if it is not larger, and at least one piece.
pub(crate) fn sample(snapshot: &mut dyn Snapshot, wanted_bytes: u64, frame_bytes: u64) {
    let ids = snapshot.files().iter().map(|file| file.id);
    let all: FileRanges = ids.map(|id| (id, snapshot.ranges(id))).collect();
    snapshot.narrow(pick(&all, wanted_bytes, frame_bytes));
}

fn pick(all: &[(u16, Vec<Range<u64>>)], wanted_bytes: u64, frame_bytes: u64) -> FileRanges {
    let length =
        |ranges: &[Range<u64>]| -> u64 { ranges.iter().map(|range| range.end - range.start).sum() };
    let total: u64 = all.iter().map(|(_, ranges)| length(ranges)).sum();
    let count = (wanted_bytes / frame_bytes).clamp(1, PIECES_MAX);
    let piece = (wanted_bytes / count / frame_bytes).max(1) * frame_bytes;
    if total <= count * piece {
        return all.to_vec();
    }
    let stride = total / count;
    let starts = (0..count).map(|index| index * stride / EXTENT_BYTES * EXTENT_BYTES);
    let wanted: Vec<Range<u64>> = starts.map(|start| start..start + piece).collect();
    // `wanted` counts bytes as if all ranges of all files were concatenated.
    let mut before = 0;
    let mut picked = Vec::new();
    for (id, ranges) in all {
        let mut parts: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            for piece in &wanted {
                let start = piece.start.max(before) - before;
                let end = piece
                    .end
                    .saturating_sub(before)
                    .min(range.end - range.start);
                if start < end {
                    // After a range of odd length, positions are no longer multiples of an extent.
                    let start = start / EXTENT_BYTES * EXTENT_BYTES;
                    push(
                        &mut parts,
                        range.start + start..range.start + end,
                        range.end,
                    );
                }
            }
            before += range.end - range.start;
        }
        picked.push((*id, parts));
    }
    picked
}

/// Adds a part, rounded up to an extent, and joins it with the previous one if they touch.
fn push(parts: &mut Vec<Range<u64>>, part: Range<u64>, limit: u64) {
    let end = part.end.next_multiple_of(EXTENT_BYTES).min(limit);
    match parts.last_mut() {
        Some(last) if part.start <= last.end => last.end = last.end.max(end),
        _ => parts.push(part.start..end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;
    const FRAME: u64 = 4 * MB;

    fn total(picked: &[(u16, Vec<Range<u64>>)]) -> u64 {
        let ranges = picked.iter().flat_map(|(_, ranges)| ranges);
        ranges.map(|range| range.end - range.start).sum()
    }

    #[test]
    fn pieces_are_spread_over_everything_and_about_as_long_as_wanted() {
        let all = [
            (1, std::iter::once(0..1000 * MB).collect()),
            (2, vec![0..300 * MB, 400 * MB..700 * MB + 512]),
        ];
        for wanted in [1, 4 * MB, 64 * MB, 200 * MB, 700 * MB] {
            let picked = pick(&all, wanted, FRAME);
            let bytes = total(&picked);
            let expected = wanted.max(FRAME);
            assert!(
                bytes <= expected + MB && bytes * 2 > expected,
                "{bytes} of {wanted}"
            );
            for (id, ranges) in &picked {
                let (_, allowed) = all.iter().find(|(known, _)| known == id).unwrap();
                for (index, range) in ranges.iter().enumerate() {
                    let is_inside =
                        |outer: &&Range<u64>| outer.start <= range.start && range.end <= outer.end;
                    let outer = allowed.iter().find(is_inside).unwrap();
                    assert!(range.start.is_multiple_of(EXTENT_BYTES));
                    assert!(range.end.is_multiple_of(EXTENT_BYTES) || range.end == outer.end);
                    assert!(index == 0 || ranges[index - 1].end < range.start);
                }
            }
            if wanted >= 64 * MB {
                assert!(
                    picked.iter().all(|(_, ranges)| !ranges.is_empty()),
                    "{wanted}"
                );
            }
        }
    }

    #[test]
    fn a_small_database_is_taken_whole() {
        let all = [(1, std::iter::once(0..3 * MB).collect())];
        assert_eq!(pick(&all, 1, FRAME), all);
        assert_eq!(pick(&all, 100 * MB, FRAME), all);
    }
}
