//! Soft filemarks: the `SFMB` block, one block long.
//!
//! Filemarks separate the media header, the data of a set and its end. They are numbered from 1;
//! the one after the media header and those after the end of a set have odd numbers. The last block
//! of an intact family is one of these, and through MTF's list of earlier filemarks it leads to
//! every set without reading anything in between.
//!
//! MTF's list ends before the last 40 bytes of the block, which are private to Windlass: `u64` own
//! offset, media set GUID, `u16` family number, 6 zero bytes, CRC-64 of the block before it. So a
//! filemark of other media, or one stored in a database, is not taken for one of this family.

use crate::cursor::{Cursor, Emission};
use crate::error::MediaError;
use crate::header::FamilyIdentity;
use crate::mtf::{BLOCK_HEADER_BYTES, BlockBuilder, BlockHeader, Id, seal_block_header};
use crate::streams::{ReadAt, read_exact};

const WHAT: &str = "soft filemark";
const TAIL_BYTES: usize = 40;
const LIST_OFFSET: usize = BLOCK_HEADER_BYTES + 8;
const ENTRY_BYTES: usize = 8;

/// A filemark on the media.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filemark {
    /// Family offset of this filemark.
    pub(crate) offset: u64,
    /// Number within the family, from 1.
    pub(crate) number: u32,
    /// Family offsets of earlier filemarks, newest first, as many as fit.
    pub(crate) earlier: Vec<u64>,
}

/// Number of earlier filemarks that fit a block.
pub(crate) fn capacity(block_bytes: u32) -> usize {
    (block_bytes as usize - LIST_OFFSET - TAIL_BYTES) / ENTRY_BYTES
}

impl Filemark {
    /// Number of the filemark after the end of set `sets`; for 0, after the media header.
    pub(crate) fn number_behind(sets: u16) -> u32 {
        2 * u32::from(sets) + 1
    }

    /// Whether a set may follow, that is, the filemark is not between the data and the end of a
    /// set.
    pub(crate) fn is_between_sets(&self) -> bool {
        self.number % 2 == 1
    }

    /// Number of sets before this filemark, not counting one without an end.
    pub(crate) fn sets(&self) -> u16 {
        (self.number.saturating_sub(1) / 2) as u16
    }

    /// Appends the block.
    pub(crate) fn emit(&self, family: &FamilyIdentity, out: &mut Emission<'_>) {
        let begin = out.offset();
        let block_bytes = family.block_bytes as usize;
        let unit = u64::from(family.block_bytes);
        // No strings and no streams follow the header; the seal comes below.
        drop(BlockBuilder::new(
            out,
            Id::SFMB,
            self.offset / unit,
            self.number,
        ));
        let capacity = capacity(family.block_bytes);
        let used = self.earlier.len().min(capacity);
        out.u32(capacity as u32);
        out.u32(used as u32);
        for offset in self.earlier.iter().take(used) {
            out.u64(offset / unit);
        }
        out.zeros(block_bytes - TAIL_BYTES - (out.offset() - begin) as usize);
        seal_block_header(out, begin, family.block_bytes as u16);
        out.u64(self.offset);
        out.guid(family.media_set_guid);
        out.u16(family.number);
        out.zeros(6);
        out.seal(begin);
    }

    /// Reads the filemark at `offset`.
    pub(crate) fn read(
        source: &dyn ReadAt,
        offset: u64,
        family: &FamilyIdentity,
    ) -> Result<Self, MediaError> {
        let mut block = vec![0; family.block_bytes as usize];
        read_exact(source, offset, &mut block, WHAT)?;
        Self::parse(&block, offset, family)
    }

    /// Reads the filemark in `block`, which is at `offset`.
    pub(crate) fn parse(
        block: &[u8],
        offset: u64,
        family: &FamilyIdentity,
    ) -> Result<Self, MediaError> {
        let header = BlockHeader::parse(block, offset)?;
        let mut cursor = Cursor::new(block, offset, WHAT);
        cursor.expect(Id::SFMB.as_number(), header.id.as_number())?;
        let mut body = cursor.window(block.len().saturating_sub(8), WHAT)?;
        let covered = block.get(..body.left()).unwrap_or_default();
        let found = cursor.u64()?;
        cursor.expect(windlass_base::checksum(covered), found)?;

        body.take(BLOCK_HEADER_BYTES)?;
        let (entries, used) = (body.u32()?, body.u32()?);
        body.expect(capacity(family.block_bytes) as u64, entries.into())?;
        let earlier = list(&mut body, used.min(entries), offset, family)?;
        body.zeros(body.left().saturating_sub(TAIL_BYTES - 8))?;
        let own_offset = body.u64()?;
        body.expect(offset, own_offset)?;
        let (expected, found) = (family.media_set_guid, body.guid()?);
        if expected != found {
            return Err(MediaError::WrongIdentity {
                offset,
                what: "media set",
                expected,
                found,
            });
        }
        let number = body.u16()?;
        body.expect(family.number.into(), number.into())?;
        body.zeros(6)?;
        Ok(Self {
            offset,
            number: header.control_block_id,
            earlier,
        })
    }
}

/// The list of earlier filemarks; each must come before the previous entry.
fn list(
    body: &mut Cursor<'_>,
    used: u32,
    offset: u64,
    family: &FamilyIdentity,
) -> Result<Vec<u64>, MediaError> {
    let mut earlier = Vec::with_capacity(used as usize);
    let mut bound = offset;
    for _ in 0..used {
        let block = body.u64()?;
        match block.checked_mul(family.block_bytes.into()) {
            Some(at) if at < bound => {
                earlier.push(at);
                bound = at;
            }
            _ => {
                return Err(MediaError::TooLarge {
                    offset,
                    what: "address of an earlier filemark",
                    found: block,
                    maximum: (bound / u64::from(family.block_bytes)).saturating_sub(1),
                });
            }
        }
    }
    Ok(earlier)
}

#[cfg(test)]
mod tests {
    use windlass_base::Guid;

    use super::*;

    fn family(block_bytes: u32) -> FamilyIdentity {
        FamilyIdentity {
            media_set_guid: Guid::from_stored([3; 16]),
            number: 2,
            block_bytes,
        }
    }

    #[test]
    fn a_filemark_is_one_block_and_guards_each_bit() {
        for block_bytes in [512, 65536] {
            let mark = Filemark {
                offset: 1 << 20,
                number: 7,
                earlier: vec![131_072, 65536],
            };
            let mut bytes = Vec::new();
            mark.emit(
                &family(block_bytes),
                &mut Emission::new(&mut bytes, 1 << 20),
            );
            assert_eq!(bytes.len(), block_bytes as usize);
            let read = |bytes: &[u8]| Filemark::parse(bytes, 1 << 20, &family(block_bytes));
            assert_eq!(read(&bytes).unwrap(), mark);
            for bit in (0..block_bytes as usize * 8).step_by(61) {
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(read(&bytes).is_err(), "bit {bit}");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn filemarks_of_other_places_and_media_are_refused() {
        let mark = Filemark {
            offset: 4096,
            number: 1,
            earlier: Vec::new(),
        };
        let mut bytes = Vec::new();
        mark.emit(&family(512), &mut Emission::new(&mut bytes, 4096));
        assert!(Filemark::parse(&bytes, 8192, &family(512)).is_err());
        let other_set = FamilyIdentity {
            media_set_guid: Guid::NIL,
            ..family(512)
        };
        let other_family = FamilyIdentity {
            number: 1,
            ..family(512)
        };
        assert!(Filemark::parse(&bytes, 4096, &other_set).is_err());
        assert!(Filemark::parse(&bytes, 4096, &other_family).is_err());
    }
}
