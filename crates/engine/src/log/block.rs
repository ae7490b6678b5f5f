//! Log blocks: the 64-byte header before the records, and its checks.

use windlass_base::{ChecksumBuilder, Guid};

use super::Position;
use crate::storage::SECTOR_BYTES;
use windlass_base::bytes::{Reader, Writer};

/// Bytes before the records.
pub(crate) const HEADER_BYTES: usize = 64;

/// Maximum bytes of records in a block. SQL Server's blocks have the same maximum length.
pub(crate) const BLOCK_BYTES_MAX: usize = 60 * 1024;

const MAGIC: u32 = u32::from_le_bytes(*b"WLB1");
const FIRST: u16 = 1;
const LAST: u16 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    pub(crate) first: bool,
    pub(crate) last: bool,
    pub(crate) records: u16,
    pub(crate) position: Position,
    pub(crate) previous: u64,
    /// Number of the commit; for groups without one, of the last commit.
    pub(crate) sequence: u64,
    /// Number of the recovery after which the block was written.
    pub(crate) epoch: u32,
    /// Bytes of records.
    pub(crate) payload: u32,
    pub(crate) guid: Guid,
    /// Checksum of header and records.
    pub(crate) checksum: u64,
}

impl BlockHeader {
    /// Bytes in the file: header and records, rounded up to sectors.
    pub(crate) fn stored_bytes(&self) -> usize {
        stored_bytes(self.payload as usize)
    }

    /// Position of the next block, if it is in the same virtual log file.
    pub(crate) fn end(&self) -> Position {
        Position(self.position.0 + (self.stored_bytes() / SECTOR_BYTES) as u64)
    }

    fn encode(&self) -> Writer {
        let mut out = Writer::default();
        out.u32(MAGIC);
        let first = u16::from(self.first) * FIRST;
        out.u16(first | (u16::from(self.last) * LAST));
        out.u16(self.records);
        out.u64(self.position.0);
        out.u64(self.previous);
        out.u64(self.sequence);
        out.u32(self.epoch);
        out.u32(self.payload);
        out.guid(self.guid);
        out
    }

    /// Appends header, records and padding to `out`; returns the checksum.
    pub(crate) fn write(&self, records: &[u8], out: &mut Vec<u8>) -> u64 {
        let header = self.encode();
        let mut sum = ChecksumBuilder::new();
        sum.update(&header.0);
        sum.update(records);
        let checksum = sum.finish();
        let end = out.len() + self.stored_bytes();
        out.extend_from_slice(&header.0);
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(records);
        out.resize(end, 0);
        checksum
    }

    /// Reads a header; `None` if it is invalid or its sizes are impossible. Does not check the
    /// records.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut input = Reader::new(bytes);
        if input.u32()? != MAGIC {
            return None;
        }
        let flags = input.u16()?;
        let header = Self {
            first: flags & FIRST != 0,
            last: flags & LAST != 0,
            records: input.u16()?,
            position: Position(input.u64()?),
            previous: input.u64()?,
            sequence: input.u64()?,
            epoch: input.u32()?,
            payload: input.u32()?,
            guid: input.guid()?,
            checksum: input.u64()?,
        };
        (header.payload as usize <= BLOCK_BYTES_MAX).then_some(header)
    }

    /// Whether the checksum matches these records.
    pub(crate) fn covers(&self, records: &[u8]) -> bool {
        let mut sum = ChecksumBuilder::new();
        sum.update(&self.encode().0);
        sum.update(records);
        sum.finish() == self.checksum
    }
}

/// Bytes in the file of a block with `payload` bytes of records.
pub(crate) const fn stored_bytes(payload: usize) -> usize {
    (HEADER_BYTES + payload).next_multiple_of(SECTOR_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_anywhere_is_found() {
        let header = BlockHeader {
            first: true,
            last: true,
            records: 1,
            position: Position::new(3, 9),
            previous: 77,
            sequence: 5,
            epoch: 2,
            payload: 10,
            guid: Guid::from_stored([9; 16]),
            checksum: 0,
        };
        let mut stored = Vec::new();
        header.write(b"0123456789", &mut stored);
        assert_eq!(stored.len(), SECTOR_BYTES);
        let whole = |bytes: &[u8]| {
            BlockHeader::parse(bytes).is_some_and(|found| {
                found.payload as usize <= bytes.len() - HEADER_BYTES
                    && found.covers(&bytes[HEADER_BYTES..HEADER_BYTES + found.payload as usize])
            })
        };
        assert!(whole(&stored));
        for bit in 0..(HEADER_BYTES + 10) * 8 {
            // Only unused flags have bytes without meaning.
            if (4 * 8 + 2..6 * 8).contains(&bit) {
                continue;
            }
            stored[bit / 8] ^= 1 << (bit % 8);
            assert!(!whole(&stored), "bit {bit}");
            stored[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
