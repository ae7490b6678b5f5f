//! The bit stream with interleaved bytes, read four bytes at a time.
//!
//! [MS-XCA]'s decoder has 16 to 31 bits buffered after each symbol and finds the extra bytes of a length
//! after the words it has read. This one reads further ahead, so it must compute the position of that
//! decoder: words have 16 bits, so the number of buffered bits modulo 16 is the same for both.

/// Two of the four words in 64 bits.
const EVEN_WORDS: u64 = 0x0000_FFFF_0000_FFFF;

/// Reads bits and bytes of a slice; after its end it returns zeros, which [`BitReader::overran`]
/// reports.
#[derive(Debug, Clone, Copy)]
pub(super) struct BitReader<'a> {
    input: &'a [u8],
    /// The next bits, from the most significant.
    bits: u64,
    /// How many of them are valid.
    held: u32,
    /// The byte after the last word read.
    next: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self {
            input,
            bits: 0,
            held: 0,
            next: 0,
        }
    }

    /// Makes at least 33 bits available; at the end of the input, zeros.
    #[inline]
    pub(super) fn refill(&mut self) {
        if self.held <= 32 {
            // Nothing but the counted bits may be set, because the end of the input is followed by
            // zeros.
            self.bits &= !(u64::MAX >> self.held);
            let bytes = match self.input.get(self.next..self.next + 4) {
                Some(bytes) => [bytes[0], bytes[1], bytes[2], bytes[3]],
                None => last_bytes(self.input, self.next),
            };
            let words = u32::from_le_bytes(bytes).rotate_left(16);
            self.bits |= u64::from(words) << (32 - self.held);
            self.held += 32;
            self.next += 4;
        }
    }

    /// Makes at least 49 bits available, without a branch on the number of bits, which would be
    /// hard to predict. There may be at most 63.
    ///
    /// Does nothing and returns false if the input is near its end.
    #[inline(always)]
    pub(super) fn refill_evenly(&mut self) -> bool {
        let rest = self.input.get(self.next..);
        let Some(bytes) = rest.and_then(|rest| rest.first_chunk::<8>()) else {
            return false;
        };
        // The words are in the order of the stream, the first at the top.
        let words = u64::from_le_bytes(*bytes).rotate_left(32);
        let words = (words & EVEN_WORDS) << 16 | (words >> 16 & EVEN_WORDS);
        // Bits of a word that is not counted are read again with it, and are the same.
        self.bits |= words >> (self.held & 63);
        let words_taken = (64 - self.held) / 16;
        self.held += words_taken * 16;
        self.next += words_taken as usize * 2;
        true
    }

    /// The number of buffered bits.
    #[inline]
    pub(super) fn held(&self) -> u32 {
        self.held
    }

    /// The next `count` bits, 1 to 63.
    #[inline]
    pub(super) fn peek(&self, count: u32) -> usize {
        (self.bits >> (64 - count)) as usize
    }

    /// An offset of `count` bits that follow the next `skipped`, with its leading one added.
    #[inline]
    pub(super) fn offset(&self, skipped: u32, count: u32) -> usize {
        // Two shifts, because a shift by 64 has no effect.
        1 << count | (self.bits << skipped >> 1 >> (63 - count)) as usize
    }

    /// Consumes `count` bits, up to 63.
    #[inline]
    pub(super) fn skip(&mut self, count: u32) {
        self.bits <<= count & 63;
        self.held -= count;
    }

    /// The next `N` bytes after the words that [MS-XCA]'s decoder would have read; `None` if the
    /// input ends.
    ///
    /// Must follow the skipping of a symbol, and leaves at least 16 bits.
    pub(super) fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let held = 16 + self.held % 16;
        let start = self.next - (self.held - held) as usize / 8;
        let bytes = *self.input.get(start..)?.first_chunk::<N>()?;
        self.bits &= u64::MAX << (64 - held);
        self.held = held;
        self.next = start + N;
        Some(bytes)
    }

    /// Whether bits beyond the end of the input were consumed.
    pub(super) fn overran(&self) -> bool {
        self.next * 8 - self.held as usize > self.input.len() * 8
    }
}

/// The bytes from `start` on, followed by zeros.
#[cold]
fn last_bytes(input: &[u8], start: usize) -> [u8; 4] {
    let mut bytes = [0; 4];
    let rest = input.get(start..).unwrap_or_default();
    bytes[..rest.len()].copy_from_slice(rest);
    bytes
}
