//! Divides a block into literals and matches, and counts the symbols they take.

use super::match_finder::{HASHED_BYTES, LOOKAHEAD_BYTES, Match, MatchFinder};
use super::{BLOCK_BYTES_MAX, END_SYMBOL, LENGTH_CODE_EXTRA, MATCH_BYTES_MIN, SYMBOLS};

/// A run of literals and the match behind it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sequence {
    /// How many literals come first; 65,536 cannot come, because a match follows.
    pub(super) literals: u16,
    /// The length of the match less [`MATCH_BYTES_MIN`].
    pub(super) length_less_min: u16,
    /// Octets back to the earlier occurrence.
    pub(super) offset: u16,
    /// The symbol of length and offset.
    pub(super) symbol: u16,
}

/// A divided block.
#[derive(Debug)]
pub(super) struct Parse {
    sequences: Box<[Sequence]>,
    count: usize,
    /// How often each symbol occurs, the end of the data included.
    pub(super) frequencies: [u32; SYMBOLS],
    /// Octets that lengths take outside their symbols.
    pub(super) extra_octets: usize,
}

const SEQUENCES_MAX: usize = BLOCK_BYTES_MAX / HASHED_BYTES;

impl Parse {
    pub(super) fn new() -> Self {
        Self {
            sequences: vec![Sequence::default(); SEQUENCES_MAX].into_boxed_slice(),
            count: 0,
            frequencies: [0; SYMBOLS],
            extra_octets: 0,
        }
    }

    pub(super) fn sequences(&self) -> &[Sequence] {
        &self.sequences[..self.count]
    }

    /// Divides `block`; what follows the last sequence is literals.
    pub(super) fn run(&mut self, block: &[u8], finder: &mut MatchFinder) {
        finder.clear();
        self.count = 0;
        self.frequencies.fill(0);
        self.extra_octets = 0;
        let end = block.len().saturating_sub(LOOKAHEAD_BYTES);
        let mut anchor = 0;
        let mut position = 1;
        if end > 0 {
            finder.insert(block, 0);
        }
        while position < end {
            let mut found = finder.find_and_insert(block, position, HASHED_BYTES - 1);
            if found.length == 0 || !worth(found) {
                position += 1 + ((position - anchor) >> SKIP_SHIFT);
                continue;
            }
            let start = position;
            while found.length < NICE && position + 1 < end {
                let next = finder.find_and_insert(block, position + 1, found.length - 1);
                if next.length == 0 || !better(next, found) {
                    break;
                }
                found = next;
                position += 1;
            }
            let _ = start;
            self.push(block, anchor, position, found);
            anchor = position + found.length;
            let mut p = position + 2;
            let stop = anchor.min(end);
            while p < stop {
                finder.insert(block, p);
                p += 1;
            }
            position = anchor;
        }
        self.count_literals(&block[anchor..]);
        self.frequencies[END_SYMBOL] += 1;
    }

    fn push(&mut self, block: &[u8], anchor: usize, position: usize, found: Match) {
        self.count_literals(&block[anchor..position]);
        let length_less_min = found.length - MATCH_BYTES_MIN;
        let length_code = (length_less_min as u32).min(LENGTH_CODE_EXTRA);
        let symbol = 256 + (found.offset.ilog2() << 4 | length_code) as usize;
        self.frequencies[symbol] += 1;
        if length_code == LENGTH_CODE_EXTRA {
            self.extra_octets += extra_octets(length_less_min);
        }
        self.sequences[self.count] = Sequence {
            literals: (position - anchor) as u16,
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

fn worth(found: Match) -> bool {
    match found.length {
        4 => found.offset < M4,
        5 => found.offset < M5,
        _ => true,
    }
}
fn better(next: Match, found: Match) -> bool {
    4 * (next.length as i32 - found.length as i32)
        + (found.offset.ilog2() as i32 - next.offset.ilog2() as i32)
        > 2
}

const SKIP_SHIFT: usize = 8;
const NICE: usize = 64;
const M4: usize = 4096;
const M5: usize = 65536;

/// How many octets the rest of a length takes that its symbol cannot hold.
pub(super) fn extra_octets(length_less_min: usize) -> usize {
    if length_less_min < 15 + 255 { 1 } else { 3 }
}
