//! Codes and octets in the interleaving that [MS-XCA] wants.
//!
//! A decoder holds two words of 16 bits and fetches another as soon as fewer than 16 bits are left;
//! octets outside of the codes (long lengths) lie where it would fetch next. The writer therefore
//! keeps the places of the next two words reserved while later octets already follow them.

/// Writes into a slice that the caller has measured to be long enough.
#[derive(Debug)]
pub(super) struct BitWriter<'a> {
    output: &'a mut [u8],
    /// The low `bit_count` bits are not yet in the output; the higher ones are.
    bits: u64,
    bit_count: u32,
    /// Where the next word goes, and the one after it.
    reserved: [usize; 2],
    /// Where octets go, and the word after the reserved ones.
    next: usize,
}

impl<'a> BitWriter<'a> {
    /// A writer that starts at `start`.
    pub(super) fn new(output: &'a mut [u8], start: usize) -> Self {
        Self {
            output,
            bits: 0,
            bit_count: 0,
            reserved: [start, start + 2],
            next: start + 4,
        }
    }

    /// Octets that `bit_count` bits of codes take, without the octets between them.
    pub(super) fn bytes_for(bit_count: usize) -> usize {
        4 + bit_count.saturating_sub(1) / 16 * 2
    }

    /// Appends the low `count` bits of `value`, whose others are zero; at most 45 bits between two
    /// calls of [`Self::settle`].
    #[inline(always)]
    pub(super) fn add(&mut self, value: u32, count: u32) {
        self.bits = (self.bits << count) | u64::from(value);
        self.bit_count += count;
    }

    /// Stores whole words until at most 16 bits are left.
    #[inline(always)]
    pub(super) fn settle(&mut self) {
        while self.bit_count > 16 {
            self.bit_count -= 16;
            let word = (self.bits >> self.bit_count) as u16;
            self.put(self.reserved[0], word);
            self.reserved = [self.reserved[1], self.next];
            self.next += 2;
        }
    }

    /// Appends octets outside of the codes; [`Self::settle`] must have been called.
    pub(super) fn add_octets(&mut self, octets: &[u8]) {
        self.output[self.next..self.next + octets.len()].copy_from_slice(octets);
        self.next += octets.len();
    }

    /// Stores what is left and returns the end of the output.
    pub(super) fn finish(mut self) -> usize {
        self.settle();
        let last = (self.bits << (16 - self.bit_count)) as u16;
        self.put(self.reserved[0], last);
        self.put(self.reserved[1], 0);
        self.next
    }

    #[inline(always)]
    fn put(&mut self, at: usize, word: u16) {
        self.output[at..at + 2].copy_from_slice(&word.to_le_bytes());
    }
}
