//! A set of extents of one file, compact if they are close together.

use std::collections::BTreeMap;
use std::ops::Range;

/// Extents per word.
const WORD: u64 = 64;

/// A set of extents: one bit each, in words that are stored only if a bit is set.
#[derive(Debug, Default)]
pub(super) struct Extents {
    words: BTreeMap<u64, u64>,
}

impl Extents {
    /// Whether any of these extents is in the set.
    pub(super) fn touches(&self, extents: &Range<u64>) -> bool {
        self.words
            .range(extents.start / WORD..extents.end.div_ceil(WORD))
            .any(|(&word, bits)| bits & mask(word, extents) != 0)
    }

    pub(super) fn insert(&mut self, extents: Range<u64>) {
        for word in extents.start / WORD..extents.end.div_ceil(WORD) {
            *self.words.entry(word).or_default() |= mask(word, &extents);
        }
    }

    pub(super) fn remove(&mut self, extents: Range<u64>) {
        for word in extents.start / WORD..extents.end.div_ceil(WORD) {
            if let Some(bits) = self.words.get_mut(&word) {
                *bits &= !mask(word, &extents);
            }
        }
        self.words.retain(|_, bits| *bits != 0);
    }

    /// The extents in order, adjacent ones joined.
    pub(super) fn runs(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut pieces = self
            .words
            .iter()
            .flat_map(|(&word, &bits)| pieces(word, bits));
        let mut joined = pieces.next();
        std::iter::from_fn(move || {
            let mut run = joined.take()?;
            for piece in pieces.by_ref() {
                if piece.start != run.end {
                    joined = Some(piece);
                    break;
                }
                run.end = piece.end;
            }
            Some(run)
        })
    }
}

/// The bits of a word for these extents.
fn mask(word: u64, extents: &Range<u64>) -> u64 {
    let first = word * WORD;
    let from = extents.start.max(first) - first;
    let to = extents.end.min(first + WORD) - first;
    match to - from {
        WORD => u64::MAX,
        count => ((1 << count) - 1) << from,
    }
}

/// The runs of set bits of a word, as extents.
fn pieces(word: u64, bits: u64) -> impl Iterator<Item = Range<u64>> {
    let (mut rest, mut at) = (bits, word * WORD);
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let zeros = rest.trailing_zeros();
        rest >>= zeros;
        at += u64::from(zeros);
        let ones = rest.trailing_ones();
        rest = rest.checked_shr(ones).unwrap_or(0);
        let start = at;
        at += u64::from(ones);
        Some(start..at)
    })
}
