//! The bit stream with bytes woven in.
//!
//! Bits go into 16-bit little-endian words, the most significant first. The decoder reads two words
//! ahead, and finds the extra bytes of a length behind the words it has read. So the places of the
//! next two words are kept free, and extra bytes go behind them.

/// Writes codes and bytes into a slice that is known to be long enough.
#[derive(Debug)]
pub(super) struct BitWriter<'a> {
    output: &'a mut [u8],
    /// Bits not yet written, in the low `pending` places; what lies above was written.
    bits: u64,
    /// 1 to 16 between calls, but for the very start.
    pending: u32,
    /// Where the next word goes.
    word: usize,
    /// Where the word after it goes.
    word_after: usize,
    /// Where the byte or the word after those goes.
    next: usize,
}

impl<'a> BitWriter<'a> {
    pub(super) fn new(output: &'a mut [u8]) -> Self {
        Self {
            output,
            bits: 0,
            pending: 0,
            word: 0,
            word_after: 2,
            next: 4,
        }
    }

    /// Appends up to 48 bits that [`BitWriter::flush`] must follow.
    #[inline]
    pub(super) fn put(&mut self, bits: u64, count: u32) {
        self.bits = self.bits << count | bits;
        self.pending += count;
    }

    /// Writes all full words but the last: the decoder has read no further at this point.
    #[inline]
    pub(super) fn flush(&mut self) {
        while self.pending > 16 {
            self.pending -= 16;
            self.put_word((self.bits >> self.pending) as u16);
        }
    }

    /// Appends bytes behind the words that the decoder has read.
    pub(super) fn put_bytes(&mut self, bytes: &[u8]) {
        let end = self.next + bytes.len();
        self.output[self.next..end].copy_from_slice(bytes);
        self.next = end;
    }

    /// Writes what is pending and returns the length of the stream.
    pub(super) fn finish(mut self) -> usize {
        let last = (self.bits << (16 - self.pending)) as u16;
        self.put_word(last);
        self.put_word(0);
        self.next - 4
    }

    #[inline]
    fn put_word(&mut self, word: u16) {
        self.output[self.word..self.word + 2].copy_from_slice(&word.to_le_bytes());
        self.word = self.word_after;
        self.word_after = self.next;
        self.next += 2;
    }
}
