//! Which bytes of a page a moment has touched: a bit for each eight of them.

use std::ops::Range;

/// Bytes for each bit.
const GRAIN: usize = size_of::<u64>();
/// Bytes of a page for each word of bits.
const WORD_BYTES: usize = GRAIN * u64::BITS as usize;

/// Words for a page. A page has at least 512 bytes.
pub(super) const fn words(page_bytes: usize) -> usize {
    page_bytes / WORD_BYTES
}

/// Marks what differs between two versions of a page.
pub(super) fn mark(touched: &mut [u64], before: &[u8], after: &[u8]) {
    let pairs = before
        .chunks_exact(WORD_BYTES)
        .zip(after.chunks_exact(WORD_BYTES));
    for (word, (before, after)) in touched.iter_mut().zip(pairs) {
        if before == after {
            continue;
        }
        let grains = before.as_chunks::<GRAIN>().0.iter();
        for (bit, (before, after)) in grains.zip(after.as_chunks::<GRAIN>().0).enumerate() {
            *word |= u64::from(before != after) << bit;
        }
    }
}

/// The touched bytes as runs; those with no more than one grain between them are one.
pub(super) fn runs(touched: &[u64]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    let count = touched.len() * u64::BITS as usize;
    let is_set = |grain: usize| touched[grain / 64] >> (grain % 64) & 1 == 1;
    std::iter::from_fn(move || {
        while at < count && !is_set(at) {
            // Words without any are many.
            at = match touched[at / 64] >> (at % 64) {
                0 => (at / 64 + 1) * 64,
                bits => at + bits.trailing_zeros() as usize,
            };
        }
        if at >= count {
            return None;
        }
        let start = at;
        while at < count && (is_set(at) || at + 1 < count && is_set(at + 1)) {
            at += 1;
        }
        Some(start * GRAIN..at * GRAIN)
    })
}

/// How many bytes the runs have.
pub(super) fn bytes(touched: &[u64]) -> usize {
    runs(touched).map(|run| run.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_is_in_a_run() {
        for page_bytes in [512, 1024, 4096, 65536] {
            let before = vec![7_u8; page_bytes];
            let mut touched = vec![0; words(page_bytes)];
            assert_eq!(runs(&touched).count(), 0);
            let mut changed = Vec::new();
            let mut seed = 12345_u64;
            for _ in 0..40 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = (seed >> 33) as usize % page_bytes;
                let mut after = before.clone();
                after[at] ^= 1;
                mark(&mut touched, &before, &after);
                changed.push(at);
                let runs: Vec<_> = runs(&touched).collect();
                assert!(
                    changed
                        .iter()
                        .all(|at| runs.iter().any(|run| run.contains(at)))
                );
                assert!(runs.is_sorted_by(|a, b| a.end < b.start));
                assert!(runs.iter().all(|run| run.end <= page_bytes));
                assert!(bytes(&touched) <= changed.len() * 2 * GRAIN);
            }
        }
    }

    #[test]
    fn what_is_touched_everywhere_is_one_run() {
        let mut touched = vec![0; words(4096)];
        mark(&mut touched, &[0; 4096], &[1; 4096]);
        assert_eq!(runs(&touched).collect::<Vec<_>>(), vec![0..4096]);
    }
}
