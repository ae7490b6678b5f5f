//! From bits to symbols.
//!
//! The next [`TABLE_BITS`] bits choose an entry that tells one match, or one or two literals: on
//! UTF-16 text every other literal is a zero with a short code. Longer codes are rare and are found
//! by comparing with the first code of each length.

use super::{CODE_BITS_MAX, Damage, LENGTH_TABLE_BYTES, SYMBOLS};

/// Bits that choose an entry.
pub(super) const TABLE_BITS: u32 = 11;

const ENTRIES: usize = 1 << TABLE_BITS;

/// What the next bits mean.
///
/// Bits 0 to 7: the first literal; for a match, its length code in 0 to 3 and its number of offset
/// bits in 4 to 7. Bits 8 to 15: the second literal. Bits 16 to 20: bits to skip. Bits 24 to 27: bits
/// of the first literal alone. Bit 28: there is a second literal. Bit 29: a literal. Bit 30: a longer
/// code. A match has neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry(u32);

impl Entry {
    const TWO: u32 = 1 << 28;
    const LITERAL: u32 = 1 << 29;
    const LONGER: u32 = 1 << 30;

    #[inline]
    fn new(symbol: u16, length: u32) -> Self {
        let kind = if symbol < 256 { Self::LITERAL } else { 0 };
        Self(u32::from(symbol & 0xFF) | length << 16 | length << 24 | kind)
    }

    #[inline]
    pub(super) fn is_literal(self) -> bool {
        self.0 & Self::LITERAL != 0
    }

    #[inline]
    pub(super) fn is_longer(self) -> bool {
        self.0 & Self::LONGER != 0
    }

    /// One or two literals; the second octet means nothing if there is one.
    #[inline]
    pub(super) fn literals(self) -> [u8; 2] {
        [self.0 as u8, (self.0 >> 8) as u8]
    }

    #[inline]
    pub(super) fn literal_count(self) -> usize {
        1 + (self.0 >> 28 & 1) as usize
    }

    /// Bits of all that this entry tells.
    #[inline]
    pub(super) fn code_bits(self) -> u32 {
        self.0 >> 16 & 0x1F
    }

    #[inline]
    pub(super) fn length_code(self) -> u32 {
        self.0 & 15
    }

    #[inline]
    pub(super) fn offset_bits(self) -> u32 {
        self.0 >> 4 & 15
    }

    /// The first literal alone.
    pub(super) fn first(self) -> Self {
        let length = self.0 >> 24 & 15;
        Self::new(u16::from(self.0 as u8), length)
    }
}

/// The codes of one block.
#[derive(Debug)]
pub(super) struct DecodeTable {
    entries: Box<[Entry; ENTRIES]>,
    /// The symbols that have codes, in the order of their codes.
    order: [u16; SYMBOLS],
    /// For each length: one past its last code, shifted to the top of 16 bits.
    code_end: [u32; CODE_BITS_MAX + 1],
    /// For each length: what to add to a code to get its place in `order`.
    order_base: [i32; CODE_BITS_MAX + 1],
}

impl DecodeTable {
    pub(super) fn new() -> Self {
        let entries = vec![Entry(0); ENTRIES].into_boxed_slice();
        Self {
            entries: entries
                .try_into()
                .expect("the vector has the length of the array"),
            order: [0; SYMBOLS],
            code_end: [0; CODE_BITS_MAX + 1],
            order_base: [0; CODE_BITS_MAX + 1],
        }
    }

    /// Reads the code lengths at the start of a block.
    pub(super) fn build(&mut self, table: &[u8; LENGTH_TABLE_BYTES]) -> Result<(), Damage> {
        let mut lengths = [0_u8; SYMBOLS];
        for (pair, octet) in lengths.as_chunks_mut::<2>().0.iter_mut().zip(table) {
            *pair = [octet & 15, octet >> 4];
        }
        let mut count_of = [0_usize; CODE_BITS_MAX + 1];
        for &length in &lengths {
            count_of[usize::from(length)] += 1;
        }
        let space: usize = (1..=CODE_BITS_MAX)
            .map(|length| count_of[length] << (CODE_BITS_MAX - length))
            .sum();
        if space != 1 << CODE_BITS_MAX {
            return Err(Damage::CodeLengths);
        }
        self.sort(&lengths, &count_of);
        self.fill(&count_of);
        self.pair_literals();
        Ok(())
    }

    /// The entry for the next bits.
    #[inline]
    pub(super) fn entry(&self, index: usize) -> Entry {
        self.entries[index % ENTRIES]
    }

    /// The symbol of a code longer than the table's index, from the next 16 bits.
    #[cold]
    pub(super) fn longer(&self, bits: u32) -> Entry {
        let length = (TABLE_BITS as usize + 1..CODE_BITS_MAX)
            .find(|&length| bits < self.code_end[length])
            .unwrap_or(CODE_BITS_MAX);
        let code = (bits >> (16 - length)) as i32;
        let place = (code + self.order_base[length]) as usize;
        Entry::new(self.order[place % SYMBOLS], length as u32)
    }

    /// Orders the symbols by length and number, which is the order of their codes.
    fn sort(&mut self, lengths: &[u8; SYMBOLS], count_of: &[usize; CODE_BITS_MAX + 1]) {
        let mut place_of = [0_usize; CODE_BITS_MAX + 1];
        let (mut place, mut code) = (0, 0);
        for length in 1..=CODE_BITS_MAX {
            place_of[length] = place;
            self.order_base[length] = place as i32 - code;
            place += count_of[length];
            code += count_of[length] as i32;
            self.code_end[length] = (code as u32) << (16 - length);
            code <<= 1;
        }
        for (symbol, &length) in (0_u16..).zip(lengths) {
            let place = &mut place_of[usize::from(length)];
            if length != 0 {
                self.order[*place] = symbol;
                *place += 1;
            }
        }
    }

    /// Codes ascend with the order, so each fills the next entries.
    fn fill(&mut self, count_of: &[usize; CODE_BITS_MAX + 1]) {
        let mut symbols = self.order.iter();
        let mut rest = self.entries.as_mut_slice();
        for length in 1..=TABLE_BITS {
            let width = 1 << (TABLE_BITS - length);
            for &symbol in symbols.by_ref().take(count_of[length as usize]) {
                let (own, behind) = rest.split_at_mut(width);
                own.fill(Entry::new(symbol, length));
                rest = behind;
            }
        }
        rest.fill(Entry(Entry::LONGER));
    }

    /// Adds a second literal wherever its whole code is among the bits.
    fn pair_literals(&mut self) {
        for index in 0..ENTRIES {
            let first = self.entries[index];
            if !first.is_literal() {
                continue;
            }
            let used = first.code_bits();
            let second = self.entries[(index << used) % ENTRIES];
            // An entry already paired still tells its first literal and that one's bits.
            let total = used + (second.0 >> 24 & 15);
            if second.is_literal() && total <= TABLE_BITS {
                self.entries[index] = Entry(
                    first.0 & !(0x1F << 16) | (second.0 & 0xFF) << 8 | total << 16 | Entry::TWO,
                );
            }
        }
    }
}
