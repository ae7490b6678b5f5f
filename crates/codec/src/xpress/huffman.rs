//! Code lengths and canonical codes of the 512 symbols.
//!
//! Lengths are at most 15 bits and fill the code space exactly, as in every block written by SQL
//! Server; the decoder relies on it.

use super::{CODE_BITS_MAX, LENGTH_TABLE_BYTES, SYMBOLS};

/// Computes code lengths and codes from symbol frequencies.
#[derive(Debug)]
pub(super) struct HuffmanBuilder {
    /// `frequency << 9 | symbol` of the symbols that occur, ascending.
    order: [u32; SYMBOLS],
    /// Weights, then parents, then depths of the tree's nodes.
    nodes: [u32; SYMBOLS],
}

/// A symbol's code: the code in the low bits, its length above [`Code::LENGTH_SHIFT`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Code(u32);

impl Code {
    const LENGTH_SHIFT: u32 = 16;

    fn new(code: u32, length: u32) -> Self {
        Self(length << Self::LENGTH_SHIFT | code)
    }

    pub(super) fn bits(self) -> u64 {
        u64::from(self.0 & 0xFFFF)
    }

    pub(super) fn length(self) -> u32 {
        self.0 >> Self::LENGTH_SHIFT
    }
}

impl HuffmanBuilder {
    pub(super) fn new() -> Self {
        Self {
            order: [0; SYMBOLS],
            nodes: [0; SYMBOLS],
        }
    }

    /// Sets the code of each symbol that occurs, and no code (length 0) for the others.
    ///
    /// # Panics
    /// If fewer than two symbols occur, or one more than 2^22 times: bugs in the caller.
    pub(super) fn build(&mut self, frequencies: &[u32; SYMBOLS], codes: &mut [Code; SYMBOLS]) {
        let count = self.sort(frequencies);
        assert!(count >= 2, "a code space of one symbol cannot be filled");
        let mut lengths_of = self.depth_counts(count);
        limit_depths(&mut lengths_of);
        self.assign(count, &lengths_of, codes);
    }

    /// Sorts the symbols that occur by frequency; returns their number.
    fn sort(&mut self, frequencies: &[u32; SYMBOLS]) -> usize {
        let mut count = 0;
        for (symbol, &frequency) in (0_u32..).zip(frequencies) {
            if frequency != 0 {
                assert!(frequency < 1 << 22, "a block has fewer symbols");
                self.order[count] = frequency << 9 | symbol;
                count += 1;
            }
        }
        self.order[..count].sort_unstable();
        count
    }

    /// The number of symbols at each depth of the optimal tree, without a depth limit.
    ///
    /// The in-place method of Moffat and Katajainen: `nodes` contains weights of leaves not yet
    /// merged, weights of internal nodes not yet merged, and parents of merged nodes, all in one
    /// array.
    fn depth_counts(&mut self, count: usize) -> [u32; SYMBOLS] {
        let nodes = &mut self.nodes[..count];
        for (node, &leaf) in nodes.iter_mut().zip(&self.order) {
            *node = leaf >> 9;
        }
        let (mut leaf, mut internal) = (0, 0);
        for next in 0..count - 1 {
            let mut weight = 0;
            for _ in 0..2 {
                if internal < next && (leaf >= count || nodes[internal] < nodes[leaf]) {
                    weight += nodes[internal];
                    nodes[internal] = next as u32;
                    internal += 1;
                } else {
                    weight += nodes[leaf];
                    leaf += 1;
                }
            }
            nodes[next] = weight;
        }
        let root = count - 2;
        let mut internals_at = [0_u32; SYMBOLS];
        nodes[root] = 0;
        internals_at[0] = 1;
        for index in (0..root).rev() {
            let depth = nodes[nodes[index] as usize] + 1;
            nodes[index] = depth;
            internals_at[depth as usize] += 1;
        }
        // Each internal node has two children one level down; the others are leaves.
        let mut leaves_at = [0_u32; SYMBOLS];
        for depth in 1..SYMBOLS {
            leaves_at[depth] = 2 * internals_at[depth - 1] - internals_at[depth];
        }
        leaves_at
    }

    /// Gives the longest codes to the rarest symbols, then canonical codes by length and number.
    fn assign(&self, count: usize, lengths_of: &[u32; SYMBOLS], codes: &mut [Code; SYMBOLS]) {
        let mut lengths = [0_u8; SYMBOLS];
        let mut rarest = self.order[..count].iter();
        for length in (1..=CODE_BITS_MAX).rev() {
            for &leaf in rarest.by_ref().take(lengths_of[length] as usize) {
                lengths[(leaf & 0x1FF) as usize] = length as u8;
            }
        }
        let mut next_code = [0_u32; CODE_BITS_MAX + 1];
        for length in 2..=CODE_BITS_MAX {
            next_code[length] = (next_code[length - 1] + lengths_of[length - 1]) << 1;
        }
        for (code, &length) in codes.iter_mut().zip(&lengths) {
            let next = &mut next_code[usize::from(length)];
            *code = Code::new(*next, u32::from(length));
            *next += u32::from(length != 0);
        }
    }
}

/// Moves leaves deeper than the limit up to it, and moves shallower ones down to make room.
///
/// Each leaf beyond the limit is moved to it. The code space is then overfull by a whole number of
/// codes of the longest length; splitting the deepest shorter leaf frees one such code at the least
/// cost. Source: the heuristic of zlib and its descendants.
fn limit_depths(lengths_of: &mut [u32; SYMBOLS]) {
    let beyond: u32 = lengths_of[CODE_BITS_MAX + 1..].iter().sum();
    if beyond == 0 {
        return;
    }
    lengths_of[CODE_BITS_MAX + 1..].fill(0);
    lengths_of[CODE_BITS_MAX] += beyond;
    let used: u32 = (1..=CODE_BITS_MAX)
        .map(|length| lengths_of[length] << (CODE_BITS_MAX - length))
        .sum();
    for _ in 0..used - (1 << CODE_BITS_MAX) {
        let length = (1..CODE_BITS_MAX)
            .rev()
            .find(|&length| lengths_of[length] != 0)
            .expect("512 codes of 15 bits do not overfill the space");
        lengths_of[length] -= 1;
        lengths_of[length + 1] += 2;
        lengths_of[CODE_BITS_MAX] -= 1;
    }
}

/// Writes the lengths of all codes, two per byte, the lower symbol in the low half.
pub(super) fn write_lengths(codes: &[Code; SYMBOLS], table: &mut [u8; LENGTH_TABLE_BYTES]) {
    for (byte, pair) in table.iter_mut().zip(codes.as_chunks::<2>().0) {
        *byte = (pair[0].length() | pair[1].length() << 4) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xpress::Damage;
    use crate::xpress::decode_table::DecodeTable;

    /// Builds the codes and checks what readers rely on.
    fn codes_of(frequencies: &[u32; SYMBOLS]) -> [Code; SYMBOLS] {
        let mut codes = [Code::default(); SYMBOLS];
        HuffmanBuilder::new().build(frequencies, &mut codes);
        let mut space = 0;
        for (frequency, code) in frequencies.iter().zip(&codes) {
            assert_eq!(*frequency == 0, code.length() == 0);
            assert!(code.length() as usize <= CODE_BITS_MAX);
            if code.length() != 0 {
                space += 1 << (CODE_BITS_MAX as u32 - code.length());
            }
        }
        assert_eq!(space, 1 << CODE_BITS_MAX, "the code space is filled");
        let mut table = [0; LENGTH_TABLE_BYTES];
        write_lengths(&codes, &mut table);
        let mut decode = DecodeTable::new();
        decode.build(&table).unwrap();
        for (symbol, code) in (0_u32..).zip(&codes).filter(|(_, code)| code.length() != 0) {
            let entry = decode.symbol((code.bits() as u32) << (16 - code.length()));
            assert_eq!(entry.code_bits(), code.length());
            assert_eq!(entry.is_match(), symbol >= 256);
            let found = if entry.is_match() {
                256 | entry.offset_bits() << 4 | entry.length_code()
            } else {
                u32::from(entry.literals()[0])
            };
            assert_eq!(found, symbol);
        }
        codes
    }

    #[test]
    fn one_symbol_and_the_end_take_a_bit_each() {
        let mut frequencies = [0; SYMBOLS];
        frequencies[7] = 65_536;
        frequencies[256] = 1;
        let codes = codes_of(&frequencies);
        assert_eq!([codes[7].length(), codes[256].length()], [1, 1]);
    }

    #[test]
    fn all_symbols_alike_take_nine_bits_each() {
        let codes = codes_of(&[128; SYMBOLS]);
        assert!(codes.iter().all(|code| code.length() == 9));
    }

    #[test]
    fn frequencies_that_double_are_cut_to_the_longest_code() {
        let mut frequencies = [0; SYMBOLS];
        for (index, frequency) in frequencies.iter_mut().take(22).enumerate() {
            *frequency = 1 << index;
        }
        let codes = codes_of(&frequencies);
        assert_eq!(codes[0].length() as usize, CODE_BITS_MAX);
        assert_eq!(codes[21].length(), 1);
    }

    #[test]
    fn all_symbols_with_the_deepest_tree_still_fit() {
        let mut frequencies = [1; SYMBOLS];
        for (index, frequency) in frequencies.iter_mut().take(21).enumerate() {
            *frequency = 1 << index;
        }
        codes_of(&frequencies);
    }

    #[test]
    fn lengths_that_do_not_fill_the_code_space_are_refused() {
        let mut decode = DecodeTable::new();
        for byte in [0x00, 0x11, 0x88, 0xFF] {
            let table = [byte; LENGTH_TABLE_BYTES];
            assert_eq!(decode.build(&table), Err(Damage::CodeLengths), "{byte:#x}");
        }
    }
}
