//! Canonical codes of limited length from symbol counts.

use super::{CODE_BITS_MAX, SYMBOLS};

/// Depths of code words that are counted apart.
const DEPTHS: usize = CODE_BITS_MAX as usize + 1;

/// Code words and their lengths by symbol; length 0 means that the symbol has none.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) lengths: [u8; SYMBOLS],
    pub(super) words: [u16; SYMBOLS],
    /// Used symbols, rarest first: `count << 9 | symbol`.
    sorted: [u32; SYMBOLS],
    /// Weights, then parents, then depths of the inner nodes.
    nodes: [u32; SYMBOLS],
}

impl Code {
    pub(super) fn new() -> Self {
        Self {
            lengths: [0; SYMBOLS],
            words: [0; SYMBOLS],
            sorted: [0; SYMBOLS],
            nodes: [0; SYMBOLS],
        }
    }

    /// Makes the best code of at most 15 bits (nearly: see [`limit`]) for `counts`, of which at
    /// least two must not be zero and none may exceed 2^23.
    ///
    /// The code is complete: its words fill the code space exactly.
    pub(super) fn assign(&mut self, counts: &[u32; SYMBOLS]) {
        let used = self.sort(counts);
        debug_assert!(used >= 2, "a complete code has two words at least");
        let mut depth_counts = self.depth_counts(used);
        limit(&mut depth_counts);
        self.assign_lengths(used, &depth_counts);
        self.assign_words(&depth_counts);
    }

    /// Fills `sorted`; returns the number of used symbols.
    fn sort(&mut self, counts: &[u32; SYMBOLS]) -> usize {
        let mut used = 0;
        for (symbol, &count) in counts.iter().enumerate() {
            if count > 0 {
                self.sorted[used] = count << 9 | symbol as u32;
                used += 1;
            }
        }
        self.sorted[..used].sort_unstable();
        used
    }

    /// Builds Huffman's tree with two queues, the sorted leaves and the inner nodes in the order of
    /// their making, and counts the leaves by depth; depths beyond the last are counted in the last.
    fn depth_counts(&mut self, used: usize) -> [u32; DEPTHS] {
        let inner_count = used - 1;
        let (mut leaf, mut inner) = (0, 0);
        for made in 0..inner_count {
            let mut weight = 0;
            for _ in 0..2 {
                let take_leaf = leaf < used
                    && (inner >= made || self.sorted[leaf] >> 9 <= self.nodes[inner]);
                if take_leaf {
                    weight += self.sorted[leaf] >> 9;
                    leaf += 1;
                } else {
                    weight += self.nodes[inner];
                    self.nodes[inner] = made as u32;
                    inner += 1;
                }
            }
            self.nodes[made] = weight;
        }
        self.count_leaves(inner_count)
    }

    /// From the root down: each inner node at a depth turns one leaf there into two below it.
    fn count_leaves(&mut self, inner_count: usize) -> [u32; DEPTHS] {
        let mut counts = [0; DEPTHS];
        counts[1] = 2;
        let root = inner_count - 1;
        self.nodes[root] = 0;
        for node in (0..root).rev() {
            let depth = self.nodes[self.nodes[node] as usize] + 1;
            self.nodes[node] = depth;
            let depth = (depth as usize).min(DEPTHS - 1);
            let below = (depth + 1).min(DEPTHS - 1);
            counts[depth] = counts[depth].wrapping_sub(1);
            counts[below] = counts[below].wrapping_add(2);
        }
        counts
    }

    /// The rarest symbols get the longest words.
    fn assign_lengths(&mut self, used: usize, depth_counts: &[u32; DEPTHS]) {
        self.lengths.fill(0);
        let mut symbols = self.sorted[..used].iter();
        for depth in (1..DEPTHS).rev() {
            for &entry in symbols.by_ref().take(depth_counts[depth] as usize) {
                self.lengths[entry as usize % SYMBOLS] = depth as u8;
            }
        }
    }

    /// Words in order of length, then of symbol.
    fn assign_words(&mut self, depth_counts: &[u32; DEPTHS]) {
        let mut next = [0_u32; DEPTHS];
        for depth in 2..DEPTHS {
            next[depth] = (next[depth - 1] + depth_counts[depth - 1]) << 1;
        }
        for (word, &length) in self.words.iter_mut().zip(&self.lengths) {
            let place = &mut next[usize::from(length) % DEPTHS];
            *word = *place as u16;
            *place += 1;
        }
    }
}

/// Makes the counts those of a complete code again after deep leaves were counted at the last depth.
///
/// Every step takes one leaf of the last depth away from an overfull code by hanging it beside the
/// deepest leaf above; this costs a fraction of a percent against the best limited code, and only
/// for the rare codes that are too deep.
fn limit(depth_counts: &mut [u32; DEPTHS]) {
    let deepest = DEPTHS - 1;
    let full = 1_u32 << deepest;
    let mut taken: u32 = (1..DEPTHS)
        .map(|depth| depth_counts[depth] << (deepest - depth))
        .sum();
    while taken > full {
        let Some(depth) = (1..deepest).rev().find(|&depth| depth_counts[depth] > 0) else {
            return;
        };
        depth_counts[depth] -= 1;
        depth_counts[depth + 1] += 2;
        depth_counts[deepest] -= 1;
        taken -= 1;
    }
}
