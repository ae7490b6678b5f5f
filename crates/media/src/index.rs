//! The chunk index of a family: the position of each chunk, and the digests of its extents.
//!
//! Written in segments (`WLIX`) of at most [`SEGMENT_CHUNKS_MAX`] chunks between the chunks, so
//! that neither writer nor reader has more than one segment in memory.

use windlass_base::Guid;

use crate::chunk::{ChunkHeader, ChunkKind, RUNS_MAX, Run, header_bytes};
use crate::cursor::{Cursor, Emission, require_at_most};
use crate::error::MediaError;
use crate::mtf::STREAM_HEADER_BYTES;

/// Maximum number of chunks in a segment.
pub const SEGMENT_CHUNKS_MAX: u32 = 1024;

const WHAT: &str = "chunk index";

/// The index entry of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    /// Number within the set.
    pub ordinal: u64,
    /// Offset of the chunk's stream header, relative to the set's first block.
    pub stream_offset: u64,
    /// Bytes of the payload.
    pub stored_bytes: u32,
    /// Bytes of the database.
    pub raw_bytes: u32,
    /// What the chunk contains.
    pub kind: ChunkKind,
    /// How the payload is compressed.
    pub codec: u8,
    /// What was done before the compression.
    pub filter: u16,
    /// Database file.
    pub file_id: u16,
    /// The ranges of the content.
    pub runs: Vec<Run>,
    /// Digests of the extents.
    pub digests: Vec<windlass_base::Digest>,
}

impl IndexEntry {
    pub(crate) fn of(header: &ChunkHeader, stream_offset: u64) -> Self {
        Self {
            ordinal: header.ordinal,
            stream_offset,
            stored_bytes: header.stored_bytes,
            raw_bytes: header.raw_bytes,
            kind: header.kind,
            codec: header.codec,
            filter: header.filter,
            file_id: header.file_id,
            runs: header.runs.clone(),
            digests: header.digests.clone(),
        }
    }
}

/// Consecutive chunks of a family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexSegment {
    /// The set it belongs to.
    pub set_guid: Guid,
    /// Offset of the previous segment, relative to the set's first block; 0 if there is none.
    pub previous: u64,
    /// The chunks since the previous segment, in order.
    pub entries: Vec<IndexEntry>,
}

impl IndexSegment {
    /// The stored form.
    pub(crate) fn emit(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut out = Emission::new(&mut bytes, 0);
        out.guid(self.set_guid);
        out.u64(self.previous);
        out.u32(self.entries.len() as u32);
        for entry in &self.entries {
            out.u64(entry.ordinal);
            out.u64(entry.stream_offset);
            out.u32(entry.stored_bytes);
            out.u32(entry.raw_bytes);
            out.u8(entry.codec);
            out.u8(entry.kind as u8);
            out.u16(entry.file_id);
            out.u16(entry.runs.len() as u16);
            out.u16(entry.digests.len() as u16);
            out.u16(entry.filter);
            for run in &entry.runs {
                out.u64(run.offset);
                out.u32(run.bytes);
            }
            for digest in &entry.digests {
                out.bytes(&digest.0);
            }
        }
        out.seal(0);
        bytes
    }

    /// Reads the stored form, found at `offset` of a family.
    pub(crate) fn parse(bytes: &[u8], offset: u64) -> Result<Self, MediaError> {
        let records = crate::record::open(bytes, offset, WHAT)?;
        let mut cursor = Cursor::new(records, offset, WHAT);
        let set_guid = cursor.guid()?;
        let previous = cursor.u64()?;
        let count = cursor.u32()?;
        require_at_most(
            count.into(),
            SEGMENT_CHUNKS_MAX.into(),
            "chunks in an index segment",
            offset,
        )?;
        let mut entries = Vec::with_capacity(count as usize);
        for _ in 0..count {
            entries.push(Self::parse_entry(&mut cursor)?);
        }
        cursor.end()?;
        Ok(Self {
            set_guid,
            previous,
            entries,
        })
    }

    /// Checks that the chunks precede the segment at `own` of the set, without overlaps, so that
    /// reading all their headers reads no byte twice.
    pub(crate) fn check_places(&self, own: u64, offset: u64) -> Result<(), MediaError> {
        let mut free = self.previous;
        for entry in &self.entries {
            let header = header_bytes(entry.runs.len(), entry.digests.len(), 0) as u64;
            let end = entry.stream_offset.saturating_add(
                STREAM_HEADER_BYTES as u64 + header + u64::from(entry.stored_bytes),
            );
            if entry.stream_offset < free || end > own {
                return Err(MediaError::Damaged {
                    offset,
                    what: "place of a chunk in the index",
                    expected: free,
                    found: entry.stream_offset,
                });
            }
            free = end;
        }
        Ok(())
    }

    fn parse_entry(cursor: &mut Cursor<'_>) -> Result<IndexEntry, MediaError> {
        let (ordinal, stream_offset) = (cursor.u64()?, cursor.u64()?);
        let (stored_bytes, raw_bytes) = (cursor.u32()?, cursor.u32()?);
        let codec = cursor.u8()?;
        let kind = ChunkKind::from_stored(cursor.u8()?, cursor.offset())?;
        let file_id = cursor.u16()?;
        let (run_count, digest_count) = (cursor.u16()?, cursor.u16()?);
        let filter = cursor.u16()?;
        let at = cursor.offset();
        require_at_most(run_count.into(), RUNS_MAX.into(), "number of ranges", at)?;
        require_at_most(
            digest_count.into(),
            RUNS_MAX.into(),
            "number of digests",
            at,
        )?;
        let mut runs = Vec::with_capacity(run_count.into());
        for _ in 0..run_count {
            runs.push(Run {
                offset: cursor.u64()?,
                bytes: cursor.u32()?,
            });
        }
        let mut digests = Vec::with_capacity(digest_count.into());
        for _ in 0..digest_count {
            digests.push(cursor.digest()?);
        }
        Ok(IndexEntry {
            ordinal,
            stream_offset,
            stored_bytes,
            raw_bytes,
            kind,
            codec,
            filter,
            file_id,
            runs,
            digests,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_lie_one_behind_the_other_and_before_their_segment() {
        let entry = |stream_offset| IndexEntry {
            ordinal: 0,
            stream_offset,
            stored_bytes: 1000,
            raw_bytes: 1000,
            kind: ChunkKind::Data,
            codec: 0,
            filter: 0,
            file_id: 1,
            runs: vec![Run {
                offset: 0,
                bytes: 1000,
            }],
            digests: Vec::new(),
        };
        let chunk_bytes = (STREAM_HEADER_BYTES + header_bytes(1, 0, 0)) as u64 + 1000;
        let (first, second) = (500, 500 + chunk_bytes);
        let check = |places: [u64; 2], own| {
            let segment = IndexSegment {
                set_guid: Guid::NIL,
                previous: first,
                entries: places.map(entry).into(),
            };
            segment.check_places(own, 7)
        };
        let own = second + chunk_bytes;
        check([first, second], own).unwrap();
        check([first, second + 4], own + 4).unwrap();
        for (places, own) in [
            ([first - 1, second], own),
            ([first, second - 1], own),
            ([second, first], own),
            ([first, first], own),
            ([first, second], own - 1),
            ([first, u64::MAX], own),
        ] {
            let refused = check(places, own).unwrap_err();
            assert!(matches!(refused, MediaError::Damaged { offset: 7, .. }));
        }
    }
}
