//! Chunks: compressed or uncompressed ranges of database files, each self-describing.

use windlass_base::{Digest, Guid, blake3};

use crate::cursor::{Cursor, Emission, require_at_most};
use crate::error::MediaError;

/// Maximum bytes of the database in one chunk, and maximum bytes of a payload.
pub const CHUNK_BYTES_MAX: u32 = 8 << 20;

/// Maximum number of ranges, and of extents, in one chunk: 8 MB in extents of 64 KB.
pub const RUNS_MAX: u16 = 128;

/// Bytes of the fixed part of the header.
const FIXED_BYTES: usize = 64;
const RUN_BYTES: usize = 12;
const CHECKSUM_BYTES: usize = 8;

/// Bytes of the tag that authenticates an encrypted chunk.
pub const TAG_BYTES: usize = 16;

/// Bytes of the digest of a payload.
pub const PAYLOAD_DIGEST_BYTES: usize = 32;

/// How a chunk is protected, in bits: by the set's key, by the signature over the set.
const SEALED: u16 = 1;
const SIGNED: u16 = 2;

/// Maximum header length, without the padding after it.
pub(crate) const HEADER_BYTES_MAX: usize = FIXED_BYTES
    + RUNS_MAX as usize * (RUN_BYTES + Digest::BYTES)
    + TAG_BYTES
    + PAYLOAD_DIGEST_BYTES
    + CHECKSUM_BYTES;

const _: () = assert!(
    HEADER_BYTES_MAX + 4096 < u16::MAX as usize,
    "header length and padding fit their field"
);

/// Bytes of a header with this many runs and digests, without the padding after it. `protection` is how
/// the chunk is protected.
pub(crate) fn header_bytes(runs: usize, digests: usize, protection: u16) -> usize {
    let of = |bit, bytes| if protection & bit == 0 { 0 } else { bytes };
    let lists = runs * RUN_BYTES + digests * Digest::BYTES;
    let proofs = of(SEALED, TAG_BYTES) + of(SIGNED, PAYLOAD_DIGEST_BYTES);
    FIXED_BYTES + lists + proofs + CHECKSUM_BYTES
}

/// What a chunk contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ChunkKind {
    /// Pages of a data file.
    Data = 1,
    /// Bytes of the log.
    Log = 2,
}

impl ChunkKind {
    /// Reads the stored form, found at `offset` of a family.
    pub(crate) fn from_stored(found: u8, offset: u64) -> Result<Self, MediaError> {
        match found {
            1 => Ok(Self::Data),
            2 => Ok(Self::Log),
            _ => Err(MediaError::Damaged {
                offset,
                what: "kind of chunk",
                expected: 1,
                found: found.into(),
            }),
        }
    }
}

/// A range of a database file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// First byte in the file.
    pub offset: u64,
    pub bytes: u32,
}

/// What a chunk says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkHeader {
    pub kind: ChunkKind,
    /// How the payload is compressed: 0 not, 1 `MS_XPRESS`, 2 `ZSTD`, 3 `QAT_DEFLATE`.
    pub codec: u8,
    /// What was done before the compression; 0 is nothing.
    pub filter: u16,
    pub file_id: u16,
    /// Media family that it was written to.
    pub family: u16,
    pub set_guid: Guid,
    /// Number within the set, over all families, from 0.
    pub ordinal: u64,
    /// Bytes of the database in it; the sum of its ranges.
    pub raw_bytes: u32,
    /// Bytes of the payload.
    pub stored_bytes: u32,
    /// CRC-64 of the bytes of the database.
    pub raw_checksum: u64,
    /// CRC-64 of the payload.
    pub stored_checksum: u64,
    /// The ranges of the content, in order.
    pub runs: Vec<Run>,
    /// Digests of the extents, in order; empty if none were computed.
    pub digests: Vec<Digest>,
    /// The tag of an encrypted chunk. Its raw checksum and digests are masked.
    pub tag: Option<[u8; TAG_BYTES]>,
    /// BLAKE3 of the payload, in a signed set: through it a signature over the headers covers the
    /// payload.
    pub payload_digest: Option<[u8; PAYLOAD_DIGEST_BYTES]>,
}

/// The contribution of a chunk to the checksum of its set, which is the wrapping sum over all
/// chunks.
///
/// A sum does not depend on the order in which threads finish; the mixing (the finaliser of
/// `SplitMix64` over both values) ensures that swapped or duplicated chunks change it.
pub fn chunk_mix(ordinal: u64, raw_checksum: u64) -> u64 {
    let mut mixed = ordinal.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ raw_checksum;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

impl ChunkHeader {
    /// Length of the header, without the padding after it.
    pub(crate) fn bytes(&self) -> usize {
        header_bytes(self.runs.len(), self.digests.len(), self.protection())
    }

    fn protection(&self) -> u16 {
        let of = |is_there: bool, bit| if is_there { bit } else { 0 };
        of(self.tag.is_some(), SEALED) | of(self.payload_digest.is_some(), SIGNED)
    }

    /// What the tag of an encrypted chunk authenticates besides the payload: everything except the
    /// family, which is chosen later, and values that follow from the payload.
    pub fn authenticated_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes());
        let mut out = Emission::new(&mut bytes, 0);
        out.guid(self.set_guid);
        out.u64(self.ordinal);
        out.u8(self.kind as u8);
        out.u8(self.codec);
        out.u16(self.file_id);
        out.u16(self.runs.len() as u16);
        out.u16(self.digests.len() as u16);
        out.u32(self.raw_bytes);
        out.u32(self.stored_bytes);
        out.u64(self.raw_checksum);
        out.u16(self.filter);
        self.emit_lists(&mut out);
        bytes
    }

    fn emit_lists(&self, out: &mut Emission<'_>) {
        for run in &self.runs {
            out.u64(run.offset);
            out.u32(run.bytes);
        }
        for digest in &self.digests {
            out.bytes(&digest.0);
        }
    }

    /// Bytes from the start of the stream's data to the payload, which starts at a multiple of
    /// `alignment` if the data start at family offset `data_offset`.
    pub(crate) fn padded_bytes(&self, data_offset: u64, alignment: u32) -> u64 {
        let bytes = self.bytes();
        let alignment = u64::from(alignment.max(1));
        (data_offset + bytes as u64).next_multiple_of(alignment) - data_offset
    }

    /// Appends the header and its padding, `padded_bytes` in total.
    pub(crate) fn emit(&self, padded_bytes: u64, out: &mut Emission<'_>) -> Result<(), MediaError> {
        self.check(0)?;
        let maximum = u64::from(u16::MAX);
        require_at_most(padded_bytes, maximum, "length of a chunk header", 0)?;
        let begin = out.offset();
        self.emit_fields(padded_bytes as u16, out);
        out.seal(begin);
        let written = out.offset() - begin;
        out.zeros((padded_bytes - written) as usize);
        Ok(())
    }

    /// Appends the part of the header that a signature covers: all of it except the offset of the
    /// payload, which belongs to the family's layout, and the checksum.
    pub(crate) fn emit_signed(&self, out: &mut Vec<u8>) {
        self.emit_fields(0, &mut Emission::new(out, 0));
    }

    /// BLAKE3 of the part that a signature covers.
    pub fn signed_digest(&self) -> [u8; 32] {
        let mut bytes = Vec::with_capacity(self.bytes());
        self.emit_signed(&mut bytes);
        blake3(&bytes)
    }

    fn emit_fields(&self, padded_bytes: u16, out: &mut Emission<'_>) {
        out.u16(padded_bytes);
        out.u8(self.kind as u8);
        out.u8(self.codec);
        out.u16(self.protection());
        out.u16(self.file_id);
        out.u16(self.family);
        out.u16(self.runs.len() as u16);
        out.u16(self.digests.len() as u16);
        out.u16(self.filter);
        out.u64(self.ordinal);
        out.u32(self.raw_bytes);
        out.u32(self.stored_bytes);
        out.u64(self.raw_checksum);
        out.u64(self.stored_checksum);
        out.guid(self.set_guid);
        self.emit_lists(out);
        if let Some(tag) = &self.tag {
            out.bytes(tag);
        }
        if let Some(digest) = &self.payload_digest {
            out.bytes(digest);
        }
    }

    /// Reads the header at the start of a chunk stream's data and returns it with its length,
    /// including the padding after it. `data` has the header or the whole stream, whichever is
    /// shorter.
    pub(crate) fn parse(data: &[u8], offset: u64) -> Result<(Self, u16), MediaError> {
        const WHAT: &str = "chunk header";
        let mut cursor = Cursor::new(data, offset, WHAT);
        let padded_bytes = cursor.u16()?;
        let kind = ChunkKind::from_stored(cursor.u8()?, offset)?;
        let codec = cursor.u8()?;
        let protection = cursor.u16()?;
        require_at_most(
            protection.into(),
            (SEALED | SIGNED).into(),
            "protection of a chunk",
            offset,
        )?;
        let (file_id, family) = (cursor.u16()?, cursor.u16()?);
        let (run_count, digest_count) = (cursor.u16()?, cursor.u16()?);
        let filter = cursor.u16()?;
        require_at_most(
            u64::from(run_count),
            u64::from(RUNS_MAX),
            "number of ranges",
            offset,
        )?;
        require_at_most(
            u64::from(digest_count),
            u64::from(RUNS_MAX),
            "number of digests",
            offset,
        )?;
        let mut header = Self {
            kind,
            codec,
            filter,
            file_id,
            family,
            ordinal: cursor.u64()?,
            raw_bytes: cursor.u32()?,
            stored_bytes: cursor.u32()?,
            raw_checksum: cursor.u64()?,
            stored_checksum: cursor.u64()?,
            set_guid: cursor.guid()?,
            runs: Vec::with_capacity(run_count.into()),
            digests: Vec::with_capacity(digest_count.into()),
            tag: None,
            payload_digest: None,
        };
        for _ in 0..run_count {
            header.runs.push(Run {
                offset: cursor.u64()?,
                bytes: cursor.u32()?,
            });
        }
        for _ in 0..digest_count {
            header.digests.push(cursor.digest()?);
        }
        header.parse_proofs(protection, &mut cursor)?;
        let covered = (cursor.offset() - offset) as usize;
        let sum = windlass_base::checksum(data.get(..covered).unwrap_or_default());
        let found = cursor.u64()?;
        cursor.expect(sum, found)?;
        header.check(offset)?;
        let used = cursor.offset() - offset;
        if u64::from(padded_bytes) < used {
            let (expected, found) = (used, padded_bytes.into());
            return Err(MediaError::Damaged {
                offset,
                what: "length of a chunk header",
                expected,
                found,
            });
        }
        Ok((header, padded_bytes))
    }

    /// Reads what protects the chunk.
    fn parse_proofs(&mut self, protection: u16, cursor: &mut Cursor<'_>) -> Result<(), MediaError> {
        if protection & SEALED != 0 {
            self.tag = cursor.take(TAG_BYTES)?.try_into().ok();
        }
        if protection & SIGNED != 0 {
            self.payload_digest = cursor.take(PAYLOAD_DIGEST_BYTES)?.try_into().ok();
        }
        Ok(())
    }

    fn check(&self, offset: u64) -> Result<(), MediaError> {
        let maximum = u64::from(CHUNK_BYTES_MAX);
        require_at_most(self.raw_bytes.into(), maximum, "length of a chunk", offset)?;
        require_at_most(
            self.stored_bytes.into(),
            maximum,
            "length of a payload",
            offset,
        )?;
        require_at_most(
            self.runs.len() as u64,
            RUNS_MAX.into(),
            "number of ranges",
            offset,
        )?;
        require_at_most(
            self.digests.len() as u64,
            RUNS_MAX.into(),
            "number of digests",
            offset,
        )?;
        let sum: u64 = self.runs.iter().map(|run| u64::from(run.bytes)).sum();
        if sum != u64::from(self.raw_bytes) {
            let (expected, found) = (self.raw_bytes.into(), sum);
            return Err(MediaError::Damaged {
                offset,
                what: "ranges of a chunk",
                expected,
                found,
            });
        }
        if self.codec == 0 && self.filter != 0 {
            return Err(MediaError::Damaged {
                offset,
                what: "filter of an uncompressed chunk",
                expected: 0,
                found: self.filter.into(),
            });
        }
        let end = |run: &Run| run.offset.checked_add(run.bytes.into());
        if self.runs.iter().any(|run| end(run).is_none()) {
            return Err(MediaError::Damaged {
                offset,
                what: "range of a chunk",
                expected: 0,
                found: u64::MAX,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> ChunkHeader {
        ChunkHeader {
            kind: ChunkKind::Data,
            codec: 2,
            filter: 1,
            file_id: 1,
            family: 2,
            set_guid: Guid::from_stored([5; 16]),
            ordinal: 77,
            raw_bytes: 70_000,
            stored_bytes: 1234,
            raw_checksum: 1,
            stored_checksum: 2,
            runs: vec![
                Run {
                    offset: 65536,
                    bytes: 65536,
                },
                Run {
                    offset: 1 << 40,
                    bytes: 4464,
                },
            ],
            digests: vec![Digest([7; 16]), Digest([9; 16])],
            tag: Some([3; TAG_BYTES]),
            payload_digest: Some([4; PAYLOAD_DIGEST_BYTES]),
        }
    }

    #[test]
    fn payload_begins_where_it_was_asked_to() {
        for (data_offset, alignment) in [(22, 4), (4118, 4096), (4090, 4096)] {
            let mut bytes = Vec::new();
            let padded = header().padded_bytes(data_offset, alignment);
            header()
                .emit(padded, &mut Emission::new(&mut bytes, data_offset))
                .unwrap();
            assert_eq!((data_offset + bytes.len() as u64) % u64::from(alignment), 0);
            assert_eq!(
                ChunkHeader::parse(&bytes, data_offset).unwrap(),
                (header(), bytes.len() as u16)
            );
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let mut bytes = Vec::new();
        let padded = header().padded_bytes(0, 1);
        header()
            .emit(padded, &mut Emission::new(&mut bytes, 0))
            .unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(ChunkHeader::parse(&flipped, 0).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn ranges_must_add_up() {
        let mut wrong = header();
        wrong.runs.pop();
        assert!(
            wrong
                .emit(200, &mut Emission::new(&mut Vec::new(), 0))
                .is_err()
        );
    }

    #[test]
    fn an_uncompressed_chunk_has_no_filter() {
        let mut plain = header();
        plain.codec = 0;
        let refused = plain.emit(400, &mut Emission::new(&mut Vec::new(), 0));
        let what = "filter of an uncompressed chunk";
        assert!(matches!(refused, Err(MediaError::Damaged { what: found, .. }) if found == what));
        plain.filter = 0;
        plain
            .emit(400, &mut Emission::new(&mut Vec::new(), 0))
            .unwrap();
    }

    #[test]
    fn the_tag_of_an_encrypted_chunk_covers_how_it_was_made() {
        let authenticated = header().authenticated_bytes();
        let other = |change: fn(&mut ChunkHeader)| {
            let mut header = header();
            change(&mut header);
            header.authenticated_bytes()
        };
        assert_eq!(other(|header| header.family += 1), authenticated);
        assert_ne!(other(|header| header.codec += 1), authenticated);
        assert_ne!(other(|header| header.filter += 1), authenticated);
    }

    #[test]
    fn swapped_chunks_change_the_sum() {
        assert_ne!(
            chunk_mix(0, 5).wrapping_add(chunk_mix(1, 6)),
            chunk_mix(0, 6).wrapping_add(chunk_mix(1, 5))
        );
    }
}
