//! Checksums of what is read, to compare with what is read again.

use std::io;
use std::ops::Range;

use windlass_bak::Input;
use windlass_bak::page::EXTENT_BYTES;
use windlass_base::checksum::ChecksumBuilder;

use crate::BackupInput;

/// Gaps up to this are read, not skipped: they are padding within a set.
const PADDING_BYTES_MAX: u64 = 1 << 20;

/// An input that computes the checksum of each extent of a range, counted from its start.
pub(crate) struct Summing {
    input: BackupInput,
    at: u64,
    range: Range<u64>,
    sums: Vec<u64>,
    sum: ChecksumBuilder,
}

impl Summing {
    pub(crate) fn new(input: BackupInput, range: Range<u64>) -> Self {
        Self {
            input,
            at: 0,
            range,
            sums: Vec::new(),
            sum: ChecksumBuilder::new(),
        }
    }

    /// The checksums of the range, as far as it was read.
    pub(crate) fn finish(self) -> Vec<u64> {
        self.sums
    }

    fn add(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && self.at < self.range.end {
            if self.at < self.range.start {
                let before = (self.range.start - self.at).min(rest.len() as u64);
                rest = rest.get(before as usize..).unwrap_or_default();
                self.at += before;
                continue;
            }
            let inside = (self.at - self.range.start) % EXTENT_BYTES as u64;
            let extent = EXTENT_BYTES as u64 - inside;
            let count = extent.min(self.range.end - self.at).min(rest.len() as u64);
            let (now, later) = rest.split_at(count as usize);
            self.sum.update(now);
            self.at += count;
            rest = later;
            if count == extent || self.at == self.range.end {
                self.sums.push(self.sum.finish());
                self.sum = ChecksumBuilder::new();
            }
        }
        self.at += rest.len() as u64;
    }
}

impl Input for Summing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.add(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }

    fn skip(&mut self, bytes: u64) -> io::Result<bool> {
        let is_inside =
            self.at < self.range.end && self.at.saturating_add(bytes) > self.range.start;
        if is_inside || bytes < PADDING_BYTES_MAX {
            return Ok(false);
        }
        let is_skipped = self.input.skip(bytes)?;
        if is_skipped {
            self.at += bytes;
        }
        Ok(is_skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_extents_of_the_range_whatever_the_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let bytes: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(&path, &bytes).unwrap();
        for range in [0..1_200_000, 70_001..1_000_003, 5..6] {
            for piece in [1_000, 65_536, 1 << 20] {
                let mut input = Summing::new(BackupInput::open_file(&path).unwrap(), range.clone());
                let mut buffer = vec![0; piece];
                while input.read(&mut buffer).unwrap() > 0 {}
                let copied = &bytes[range.start as usize..range.end as usize];
                let expected = copied.chunks(EXTENT_BYTES);
                let expected: Vec<u64> = expected.map(windlass_base::checksum::checksum).collect();
                assert_eq!(input.finish(), expected, "{range:?} in pieces of {piece}");
            }
        }
    }
}
