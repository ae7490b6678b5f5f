//! From bits to symbols.
//!
//! The next [`TABLE_BITS`] bits select an entry that describes one match, or one or two literals:
//! in UTF-16 text every other literal is a zero with a short code. Longer codes are rare and are
//! found by comparison with the first code of each length.

use super::{CODE_BITS_MAX, Damage, LENGTH_CODE_EXTRA, LENGTH_TABLE_BYTES, SYMBOLS};

/// Bits that select an entry.
pub(super) const TABLE_BITS: u32 = 12;

const ENTRIES: usize = 1 << TABLE_BITS;

/// What the next bits mean: one or two literals, a match, or a literal and a match.
///
/// | bits | |
/// |---|---|
/// | 0 to 7 | bits to skip, including those of the offset |
/// | 8 to 15 | the first literal, if any |
/// | 16 to 23 | the second literal; or the length code in 16 to 19, offset bits in 20 to 23 |
/// | 24 to 27 | bits before those of the offset |
/// | 28, 29 | number of literals |
/// | 30 | rare: a longer code, or a match whose length needs extra bytes |
/// | 31 | a match |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry(u32);

impl Entry {
    const ONE_LITERAL: u32 = 1 << 28;
    const RARE: u32 = 1 << 30;
    const MATCH: u32 = 1 << 31;

    /// The code is longer than the table's index.
    pub(super) const LONGER: Self = Self(Self::RARE);

    fn new(symbol: u16, length: u32) -> Self {
        let symbol = u32::from(symbol);
        if symbol < 256 {
            return Self(Self::ONE_LITERAL | length << 24 | symbol << 8 | length);
        }
        let (length_code, offset_bits) = (symbol & 15, symbol >> 4 & 15);
        let rare = if length_code == LENGTH_CODE_EXTRA {
            Self::RARE
        } else {
            0
        };
        let total = length + offset_bits;
        Self(Self::MATCH | rare | length << 24 | offset_bits << 20 | length_code << 16 | total)
    }

    /// This literal followed by one more symbol, which is not rare.
    fn with(self, second: Self) -> Self {
        // All fields add up, except for a second literal, which goes to another place.
        let literal_moved = if second.is_match() {
            0
        } else {
            (second.0 & 0xFF00) << 8
        };
        Self((self.0 + (second.0 & !0xFF00)) | literal_moved)
    }

    #[inline]
    pub(super) fn is_match(self) -> bool {
        self.0 & Self::MATCH != 0
    }

    /// All bits set for a match, else zero.
    #[inline]
    pub(super) fn match_mask(self) -> usize {
        (self.0.cast_signed() >> 31) as usize
    }

    #[inline]
    pub(super) fn is_rare(self) -> bool {
        self.0 & Self::RARE != 0
    }

    #[inline]
    pub(super) fn is_longer(self) -> bool {
        self == Self::LONGER
    }

    /// Up to two literals; those beyond their count are undefined.
    #[inline]
    pub(super) fn literals(self) -> [u8; 2] {
        [(self.0 >> 8) as u8, (self.0 >> 16) as u8]
    }

    #[inline]
    pub(super) fn literal_count(self) -> usize {
        (self.0 >> 28 & 3) as usize
    }

    /// Bits of everything in this entry.
    #[inline]
    pub(super) fn total_bits(self) -> u32 {
        self.0 & 0xFF
    }

    /// Bits before those of the offset.
    #[inline]
    pub(super) fn code_bits(self) -> u32 {
        self.0 >> 24 & 15
    }

    #[inline]
    pub(super) fn length_code(self) -> u32 {
        self.0 >> 16 & 15
    }

    #[inline]
    pub(super) fn offset_bits(self) -> u32 {
        self.0 >> 20 & 15
    }
}

/// The codes of one block.
#[derive(Debug)]
pub(super) struct DecodeTable {
    entries: Box<[Entry; ENTRIES]>,
    /// The symbols with codes, in the order of their codes.
    order: [u16; SYMBOLS],
    /// For each length: one past its last code, shifted to the top of 16 bits.
    code_end: [u32; CODE_BITS_MAX + 1],
    /// For each length: add this to a code to get its index in `order`.
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
        for (pair, byte) in lengths.as_chunks_mut::<2>().0.iter_mut().zip(table) {
            *pair = [byte & 15, byte >> 4];
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
        Ok(())
    }

    /// The entry for the next bits.
    #[inline]
    pub(super) fn entry(&self, index: usize) -> Entry {
        self.entries[index % ENTRIES]
    }

    /// The symbol whose code starts the next 16 bits, however long the code.
    #[cold]
    pub(super) fn symbol(&self, bits: u32) -> Entry {
        let length = (1..CODE_BITS_MAX)
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

    /// Codes ascend in this order, so each fills the next entries; the symbols after a literal fill
    /// parts of the literal's entries in the same way.
    fn fill(&mut self, count_of: &[usize; CODE_BITS_MAX + 1]) {
        let mut singles = [Entry::LONGER; SYMBOLS];
        let mut count = 0;
        for length in 1..=TABLE_BITS {
            for _ in 0..count_of[length as usize] {
                singles[count] = Entry::new(self.order[count], length);
                count += 1;
            }
        }
        let singles = &singles[..count];
        let mut rest = self.entries.as_mut_slice();
        for &first in singles {
            let (own, behind) = rest.split_at_mut(ENTRIES >> first.code_bits());
            rest = behind;
            if first.is_match() {
                own.fill(first);
            } else {
                fill_pairs(own, first, singles);
            }
        }
        rest.fill(Entry::LONGER);
    }
}

/// Fills the entries of a literal with the symbols that may follow, if their codes fit.
fn fill_pairs(own: &mut [Entry], first: Entry, singles: &[Entry]) {
    let bits_left = TABLE_BITS - first.code_bits();
    let mut rest = own;
    for &second in singles {
        let bits = second.code_bits();
        if bits > bits_left {
            break;
        }
        let (part, behind) = rest.split_at_mut(1 << (bits_left - bits));
        part.fill(if second.is_rare() {
            first
        } else {
            first.with(second)
        });
        rest = behind;
    }
    rest.fill(first);
}
