//! A set of numbers below 2^32 as bits; only the parts in use take memory.

use std::collections::BTreeMap;

/// Numbers in a part.
const PART: u32 = 4096;

const WORDS: usize = PART as usize / 64;

/// The set.
#[derive(Debug, Clone, Default)]
pub(crate) struct SparseBits(BTreeMap<u32, Box<[u64; WORDS]>>);

impl SparseBits {
    /// Adds or removes a number.
    pub(crate) fn put(&mut self, number: u32, is_in: bool) {
        let part = self
            .0
            .entry(number / PART)
            .or_insert_with(|| Box::new([0; WORDS]));
        let (word, bit) = (number % PART / 64, number % 64);
        if let Some(word) = part.get_mut(word as usize) {
            *word = *word & !(1 << bit) | u64::from(is_in) << bit;
        }
    }

    /// Whether the set contains a number.
    pub(crate) fn has(&self, number: u32) -> bool {
        let word = self
            .0
            .get(&(number / PART))
            .and_then(|part| part.get((number % PART / 64) as usize));
        word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_far_apart_take_two_parts() {
        let mut bits = SparseBits::default();
        bits.put(5, true);
        bits.put(u32::MAX, true);
        bits.put(6, true);
        bits.put(6, false);
        assert!(bits.has(5) && bits.has(u32::MAX));
        assert!(!bits.has(6) && !bits.has(70_000));
        assert_eq!(bits.0.len(), 2);
    }
}
