//! The transfer buffer of a device: gathers small pieces into large aligned writes.
//!
//! Invariant: the byte for file offset `o` has an index in the buffer that is congruent to `o`
//! modulo the direct-I/O alignment, so that a buffer with an aligned file range is aligned in
//! memory too.

use std::ops::Range;

use windlass_io::{AlignedBuffer, DIRECT_ALIGNMENT};

/// Bytes gathered for the next write, and their offset.
#[derive(Debug)]
pub(crate) struct TransferBuffer {
    memory: AlignedBuffer,
    /// Index of the first gathered byte.
    start: usize,
    /// Index after the last gathered byte.
    end: usize,
    /// File offset of the first gathered byte.
    offset: u64,
}

impl TransferBuffer {
    /// A buffer for transfers of `bytes` that starts at file offset `offset`.
    pub(crate) fn new(bytes: usize, offset: u64) -> Self {
        let memory = AlignedBuffer::new(bytes.max(DIRECT_ALIGNMENT));
        let start = Self::phase(offset);
        Self {
            memory,
            start,
            end: start,
            offset,
        }
    }

    fn phase(offset: u64) -> usize {
        (offset % DIRECT_ALIGNMENT as u64) as usize
    }

    /// File offset after the last gathered byte.
    pub(crate) fn position(&self) -> u64 {
        self.offset + (self.end - self.start) as u64
    }

    /// Copies as much of `bytes` as fits and returns how much.
    pub(crate) fn fill(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.memory.len() - self.end);
        self.memory[self.end..self.end + count].copy_from_slice(&bytes[..count]);
        self.end += count;
        count
    }

    pub(crate) fn is_full(&self) -> bool {
        self.end == self.memory.len()
    }

    /// Returns the memory with the gathered bytes, their range in it and their file offset, and
    /// continues at `offset` in `fresh` memory of the same length.
    pub(crate) fn exchange(
        &mut self,
        fresh: AlignedBuffer,
        offset: u64,
    ) -> (AlignedBuffer, Range<usize>, u64) {
        let memory = std::mem::replace(&mut self.memory, fresh);
        let gathered = (memory, self.start..self.end, self.offset);
        self.restart(offset);
        gathered
    }

    /// Discards the gathered bytes; the next byte goes to `offset`.
    pub(crate) fn restart(&mut self, offset: u64) {
        self.start = Self::phase(offset);
        self.end = self.start;
        self.offset = offset;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_the_alignment_of_the_file() {
        let mut buffer = TransferBuffer::new(8192, 4096 + 512);
        assert_eq!(
            buffer.fill(&[1; 10_000]),
            8192 - 512,
            "up to the next aligned file offset"
        );
        assert!(buffer.is_full());
        assert_eq!(buffer.position(), 4096 + 8192);
        buffer.restart(4096 + 8192);
        assert_eq!(buffer.fill(&[2; 10_000]), 8192);
        assert!(!buffer.is_empty());
        let (memory, range, offset) = buffer.exchange(AlignedBuffer::new(8192), 4096 + 16384);
        assert_eq!((range, offset), (0..8192, 4096 + 8192));
        assert_eq!(memory[0], 2);
        assert_eq!(buffer.position(), 4096 + 16384);
    }
}
