//! Divides a block into literals and matches, and counts the symbols they need.
//!
//! Lazy: a match yields to a better one that starts a byte later. The search at the next position
//! is started before the match at this position is judged, because it is needed in nearly all
//! cases, and so neither waits for the other.

use super::match_finder::{Found, LOOKAHEAD_BYTES, Match, MatchFinder, Weights};
use super::{BLOCK_BYTES_MAX, END_SYMBOL, LENGTH_CODE_EXTRA, MATCH_BYTES_MIN, SYMBOLS};

/// A run of literals and the match after it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sequence {
    /// The number of literals; a match follows, so it is never a whole block.
    pub(super) literals: u16,
    /// The length of the match less [`MATCH_BYTES_MIN`].
    pub(super) length_less_min: u16,
    /// Distance back to the earlier occurrence.
    pub(super) offset: u16,
    /// The symbol of length and offset.
    pub(super) symbol: u16,
}

#[derive(Debug)]
pub(super) struct Parse {
    sequences: Box<[Sequence]>,
    count: usize,
    /// Frequency of each symbol, including the end of the data.
    pub(super) frequencies: [u32; SYMBOLS],
    /// Bytes of lengths outside of their symbols.
    pub(super) extra_bytes: usize,
}

const SEQUENCES_MAX: usize = BLOCK_BYTES_MAX / MATCH_BYTES_MIN;

/// After this many consecutive literals the search starts to skip positions.
const LITERALS_PATIENCE: usize = 128;

/// How much more a later match must save, in quarters of a bit: it costs a literal's symbol.
const SAVINGS_MORE: i32 = 8;

impl Parse {
    pub(super) fn new() -> Self {
        Self {
            sequences: vec![Sequence::default(); SEQUENCES_MAX].into_boxed_slice(),
            count: 0,
            frequencies: [0; SYMBOLS],
            extra_bytes: 0,
        }
    }

    /// The sequences; everything after the last one is literals.
    pub(super) fn sequences(&self) -> &[Sequence] {
        &self.sequences[..self.count]
    }

    pub(super) fn run(&mut self, block: &[u8], finder: &mut MatchFinder, weights: Weights) {
        finder.start(block);
        self.count = 0;
        self.frequencies.fill(0);
        self.extra_bytes = 0;
        // The last position that can be looked up is one before the end.
        let end = block.len().saturating_sub(LOOKAHEAD_BYTES);
        if end > 0 {
            finder.insert(0);
        }
        let mut anchor = 0;
        let mut position = 1;
        while let Some((at, found)) = next_match(finder, weights, anchor, position, end) {
            let longest = finder.longest(at as u16, found);
            let (start, taken) = extend_back(block, anchor, at, longest);
            self.push(&block[anchor..start], taken);
            anchor = start + taken.length;
            // The position after the match's first was inserted when it was searched.
            for covered in at + 2..anchor.min(end) {
                finder.insert(covered as u16);
            }
            position = anchor.max(at + 2);
        }
        self.count_literals(&block[anchor..]);
        self.frequencies[END_SYMBOL] += 1;
    }

    fn push(&mut self, literals: &[u8], found: Match) {
        self.count_literals(literals);
        let length_less_min = found.length - MATCH_BYTES_MIN;
        let length_code = (length_less_min as u32).min(LENGTH_CODE_EXTRA);
        let symbol = 256 | (found.offset.ilog2() << 4 | length_code) as usize;
        self.frequencies[symbol % SYMBOLS] += 1;
        if length_code == LENGTH_CODE_EXTRA {
            self.extra_bytes += extra_bytes(length_less_min);
        }
        self.sequences[self.count] = Sequence {
            literals: literals.len() as u16,
            length_less_min: length_less_min as u16,
            offset: found.offset as u16,
            symbol: symbol as u16,
        };
        self.count += 1;
    }

    fn count_literals(&mut self, literals: &[u8]) {
        for &literal in literals {
            self.frequencies[usize::from(literal)] += 1;
        }
    }
}

/// The first position from `position` on whose match is worth using, and its match; it and the
/// position after it have been inserted.
#[inline]
fn next_match(
    finder: &mut MatchFinder,
    weights: Weights,
    anchor: usize,
    mut position: usize,
    end: usize,
) -> Option<(usize, Found)> {
    if position + 1 >= end {
        return None;
    }
    let mut found = finder.find_and_insert(position as u16);
    loop {
        let next = finder.find_and_insert(position as u16 + 1);
        if is_taken(found, next, weights) {
            return Some((position, found));
        }
        found = next;
        position += 1;
        let literals = position - anchor;
        if literals >= LITERALS_PATIENCE {
            position += 1 + literals / LITERALS_PATIENCE;
            if position + 1 < end {
                found = finder.find_and_insert(position as u16);
            }
        }
        if position + 1 >= end {
            return None;
        }
    }
}

/// Whether a match is better than literals and at least as good as the one a byte later.
#[inline]
fn is_taken(found: Found, next: Found, weights: Weights) -> bool {
    let savings = found.savings(weights);
    let is_best = found.is_long() | (next.savings(weights) <= savings + SAVINGS_MORE);
    (savings > 0) & is_best
}

/// Moves the start of a match back over literals that match too.
#[inline]
fn extend_back(block: &[u8], anchor: usize, position: usize, found: Match) -> (usize, Match) {
    let mut start = position;
    while start > anchor
        && start > found.offset
        && block[start - 1] == block[start - 1 - found.offset]
    {
        start -= 1;
    }
    let length = found.length + position - start;
    (start, Match { length, ..found })
}

/// The number of bytes for the rest of a length that its symbol cannot represent.
fn extra_bytes(length_less_min: usize) -> usize {
    if length_less_min < 15 + 255 { 1 } else { 3 }
}
