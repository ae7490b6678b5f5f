//! Virtual log files: the parts of the log file, which are used in turn and reused.
//!
//! Invariants: virtual log files in use have consecutive sequence numbers; the current one has the
//! highest; one is free if its number is below the floor.

use windlass_base::{Guid, checksum};

use crate::storage::SECTOR_BYTES;
use windlass_base::bytes::{Reader, Writer};

/// Maximum number of virtual log files in a log.
pub(crate) const VLF_COUNT_MAX: usize = 1024;

/// Minimum bytes of a virtual log file: a block with the largest record, and the first sector.
pub(crate) const VLF_BYTES_MIN: u64 = 64 * 1024;

const MAGIC: u32 = u32::from_le_bytes(*b"WLV1");

/// A part of the log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Vlf {
    /// Its byte offset in the file.
    pub(crate) offset: u64,
    /// Its length in sectors; the first contains its own header.
    pub(crate) blocks: u32,
    /// Its sequence number since it was last started; 0 before.
    pub(crate) sequence: u32,
}

impl Vlf {
    /// The first sector: sequence number, epoch, identity and a checksum.
    pub(crate) fn header(sequence: u32, epoch: u32, guid: Guid) -> Vec<u8> {
        let mut out = Writer::default();
        out.u32(MAGIC);
        out.u32(sequence);
        out.u32(epoch);
        out.guid(guid);
        out.u64(checksum(&out.0));
        out.0.resize(SECTOR_BYTES, 0);
        out.0
    }

    /// The sequence number in a first sector, if it belongs to this database.
    pub(crate) fn parse(sector: &[u8], guid: Guid) -> Option<u32> {
        let mut input = Reader::new(sector);
        let magic = input.u32()?;
        let sequence = input.u32()?;
        let _epoch = input.u32()?;
        let owner = input.guid()?;
        let stored = input.u64()?;
        (magic == MAGIC && owner == guid && stored == checksum(&sector[..28])).then_some(sequence)
    }
}

/// Divides `bytes` of the log file from `offset` on into virtual log files, as SQL Server does: a
/// few large ones, so that their number stays limited.
pub(crate) fn divide(offset: u64, bytes: u64) -> Vec<Vlf> {
    let wanted = match bytes >> 20 {
        0..=63 => 4,
        64..=1023 => 8,
        _ => 16,
    };
    let count = wanted.min(bytes / VLF_BYTES_MIN).max(1);
    let sector = SECTOR_BYTES as u64;
    // A block number has 32 bits.
    let each = (bytes / count / sector).min(u64::from(u32::MAX));
    (0..count)
        .map(|index| Vlf {
            offset: offset + index * each * sector,
            blocks: each as u32,
            sequence: 0,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_divided_without_overlap() {
        for bytes in [VLF_BYTES_MIN, 1 << 20, 100 << 20, 8 << 30] {
            let parts = divide(1024, bytes);
            for pair in parts.windows(2) {
                assert_eq!(
                    pair[0].offset + u64::from(pair[0].blocks) * 512,
                    pair[1].offset
                );
            }
            let last = parts.last().unwrap();
            assert!(last.offset + u64::from(last.blocks) * 512 <= 1024 + bytes);
        }
    }

    #[test]
    fn a_header_of_another_database_is_not_taken() {
        let guid = Guid::from_stored([1; 16]);
        let mut header = Vlf::header(7, 1, guid);
        assert_eq!(Vlf::parse(&header, guid), Some(7));
        assert_eq!(Vlf::parse(&header, Guid::from_stored([2; 16])), None);
        header[4] ^= 1;
        assert_eq!(Vlf::parse(&header, guid), None);
    }
}
