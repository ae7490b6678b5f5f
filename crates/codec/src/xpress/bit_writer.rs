//! The bit stream with interleaved bytes.
//!
//! Bits go into 16-bit little-endian words, the most significant first. The decoder reads two words
//! ahead, and finds the extra bytes of a length after the words it has read. So the places of the
//! next two words are reserved, and extra bytes go after them.

/// Writes codes and bytes into a slice that is long enough.
#[derive(Debug)]
pub(super) struct BitWriter<'a> {
    output: &'a mut [u8],
    /// Bits not yet written, in the low `pending` places; the bits above were written.
    bits: u64,
    /// 1 to 16 between calls, except at the very start.
    pending: u32,
    /// Position of the next word.
    word: usize,
    /// Position of the word after it.
    word_after: usize,
    /// Position of the byte or word after those.
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

    /// Appends up to 48 bits; [`BitWriter::flush`] must follow.
    #[inline]
    pub(super) fn put(&mut self, bits: u64, count: u32) {
        self.bits = self.bits << count | bits;
        self.pending += count;
    }

    /// Writes all full words except the last: the decoder has read no further at this point.
    #[inline]
    pub(super) fn flush(&mut self) {
        while self.pending > 16 {
            self.pending -= 16;
            self.put_word((self.bits >> self.pending) as u16);
        }
    }

    /// Appends bytes after the words that the decoder has read.
    pub(super) fn put_bytes(&mut self, bytes: &[u8]) {
        let end = self.next + bytes.len();
        self.output[self.next..end].copy_from_slice(bytes);
        self.next = end;
    }

    /// Writes pending bits and returns the length of the stream.
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
