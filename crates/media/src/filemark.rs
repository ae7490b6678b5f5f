//! Soft filemarks: the `SFMB` block, one block size long.
//!
//! Filemarks separate the media header, the data of a set and its end. The last block of a good
//! family is one, and each knows the one before, so all sets are found from the end backwards.
//!
//! The list of earlier filemarks is MTF's; its capacity ends before the last 32 octets of the
//! block, which are ours: `u64` own offset, `u64` offset of the filemark before (0 for none),
//! `u16` complete sets so far, 6 zero octets, CRC-64 of the block before it.

use crate::cursor::{Cursor, Emission, require_zero};
use crate::error::MediaError;
use crate::mtf::{BLOCK_HEADER_BYTES, BlockHeader, Id, seal_block_header};
use crate::streams::{ReadAt, read_exact};

const TAIL_BYTES: usize = 32;
const LIST_OFFSET: usize = BLOCK_HEADER_BYTES + 8;
/// The block's unsigned attribute "end of family is not yet known", as other writers set it.
const ATTRIBUTES: u32 = 0;

/// A filemark as it stands on the media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Filemark {
    /// Family offset of this filemark.
    pub(crate) offset: u64,
    /// Family offset of the one before; 0 for none.
    pub(crate) previous: u64,
    /// Complete sets before this filemark.
    pub(crate) sets: u16,
}

/// Earlier filemarks that fit a block, newest first.
pub(crate) fn capacity(block_bytes: u32) -> usize {
    (block_bytes as usize - LIST_OFFSET - TAIL_BYTES) / 4
}

impl Filemark {
    /// Appends the block. `earlier` holds the offsets of earlier filemarks, newest first.
    pub(crate) fn emit(&self, block_bytes: u32, earlier: &[u64], out: &mut Emission<'_>) {
        let begin = out.offset();
        out.bytes(&Id::SFMB.0);
        out.u32(ATTRIBUTES);
        out.zeros(BLOCK_HEADER_BYTES - 8);
        let capacity = capacity(block_bytes);
        let used = earlier.len().min(capacity);
        out.u32(capacity as u32);
        out.u32(used as u32);
        for offset in earlier.iter().take(used) {
            // Addresses are in blocks; one beyond 32 bits is told by our own fields alone.
            out.u32(u32::try_from(offset / u64::from(block_bytes)).unwrap_or(u32::MAX));
        }
        out.zeros((capacity - used) * 4);
        let gap = block_bytes as usize - LIST_OFFSET - TAIL_BYTES - capacity * 4;
        out.zeros(gap);
        seal_block_header(out, begin, block_bytes as u16);
        out.u64(self.offset);
        out.u64(self.previous);
        out.u16(self.sets);
        out.zeros(6);
        out.seal(begin);
    }

    /// Reads the filemark at `offset`.
    pub(crate) fn read(
        family: &dyn ReadAt,
        offset: u64,
        block_bytes: u32,
    ) -> Result<Self, MediaError> {
        const WHAT: &str = "soft filemark";
        let mut block = vec![0; block_bytes as usize];
        read_exact(family, offset, &mut block, WHAT)?;
        let header = BlockHeader::parse(&block, offset)?;
        if header.id != Id::SFMB {
            let (expected, found) = (Id::SFMB.as_number(), header.id.as_number());
            return Err(MediaError::Damaged {
                offset,
                what: "descriptor block type",
                expected,
                found,
            });
        }
        let (body, sum) = block
            .split_last_chunk::<8>()
            .ok_or(MediaError::BlockSize { found: block_bytes })?;
        let (expected, found) = (windlass_base::checksum(body), u64::from_le_bytes(*sum));
        if expected != found {
            return Err(MediaError::Damaged {
                offset,
                what: WHAT,
                expected,
                found,
            });
        }
        let tail_at = block.len() - TAIL_BYTES;
        let mut tail = Cursor::new(
            block.get(tail_at..).unwrap_or_default(),
            offset + tail_at as u64,
            WHAT,
        );
        let mark = Self {
            offset: tail.u64()?,
            previous: tail.u64()?,
            sets: tail.u16()?,
        };
        require_zero(tail.take(6)?, offset, WHAT)?;
        if mark.offset != offset || (mark.previous != 0 && mark.previous >= offset) {
            return Err(MediaError::Damaged {
                offset,
                what: "place of a filemark",
                expected: offset,
                found: mark.offset,
            });
        }
        Ok(mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filemark_is_one_block_and_guards_each_bit() {
        for block_bytes in [512, 65536] {
            let mark = Filemark {
                offset: 1 << 20,
                previous: 4096,
                sets: 3,
            };
            let mut octets = vec![0; 1 << 20];
            let mut out = Emission::new(&mut octets, 1 << 20);
            mark.emit(block_bytes, &[65536, 4096], &mut out);
            assert_eq!(octets.len(), (1 << 20) + block_bytes as usize);
            assert_eq!(
                Filemark::read(&octets.as_slice(), 1 << 20, block_bytes).unwrap(),
                mark
            );
            for bit in (0..block_bytes as usize * 8).step_by(61) {
                let at = (1 << 20) + bit / 8;
                octets[at] ^= 1 << (bit % 8);
                assert!(
                    Filemark::read(&octets.as_slice(), 1 << 20, block_bytes).is_err(),
                    "bit {bit}"
                );
                octets[at] ^= 1 << (bit % 8);
            }
        }
    }
}
