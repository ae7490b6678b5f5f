//! The log: virtual log files (`MSTL`) and the blocks in their streams (`MQTL`).

use windlass_base::Lsn;

use crate::fields::Fields;

/// Bytes of a log sector, the unit of the block number in an LSN.
pub(crate) const LOG_SECTOR_BYTES: u64 = 512;

/// Bytes of a log block header that are read.
pub(crate) const BLOCK_HEADER_BYTES: usize = 0x16;

/// A virtual log file, and the range of it in a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualLog {
    pub file: u16,
    /// Offset of the first byte of the log file in the set; 0 if the set has none.
    pub first_byte: u64,
    /// Offset after the last one.
    pub end_byte: u64,
    /// Sequence number if it is active, otherwise 0.
    pub sequence: u32,
    pub bytes: u64,
    /// Its offset in the log file.
    pub offset: u64,
    /// Parity: 0x40, 0x80, or 0 if it was never used.
    pub parity: u8,
    pub created: Lsn,
    pub version: u16,
}

impl VirtualLog {
    /// Reads the block.
    pub(crate) fn read(block: &[u8]) -> Self {
        let fields = Fields(block);
        Self {
            file: fields.u32(0x4C) as u16,
            first_byte: fields.u64(0x3C),
            end_byte: fields.u64(0x44),
            sequence: fields.u32(0x5C),
            bytes: fields.u64(0x60),
            offset: fields.u64(0x68),
            parity: fields.u8(0x72),
            created: fields.lsn(0x74),
            version: fields.u16(0x7E),
        }
    }

    /// Number of the log file's bytes in the set.
    pub fn stored_bytes(&self) -> u64 {
        self.end_byte.saturating_sub(self.first_byte)
    }
}

/// The header of a log block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogBlock<'a>(pub(crate) Fields<'a>);

impl LogBlock<'_> {
    pub(crate) fn bytes(self) -> u64 {
        self.0.u16(6).into()
    }

    pub(crate) fn lsn(self) -> Lsn {
        self.0.lsn(0x0C)
    }
}
