//! Walks one backup set from its first block to its last filemark and checks every byte that is not
//! a payload: headers, checksums, index against chunks, and padding, which must be zero.

use windlass_base::{Blake3Builder, Guid};

use crate::chunk::{ChunkHeader, HEADER_BYTES_MAX};
use crate::configuration::SetConfiguration;
use crate::error::MediaError;
use crate::filemark::Filemark;
use crate::header::FamilyIdentity;
use crate::index::{IndexEntry, IndexSegment, SEGMENT_CHUNKS_MAX};
use crate::mtf::Id;
use crate::reader::{check_configuration, read_set_end};
use crate::set_blocks::SetEnd;
use crate::streams::{ReadAt, Stream, Streams, read_exact, require_zeros_between};

/// A set that was walked to its end.
#[derive(Debug)]
pub struct WalkedSet {
    /// The final configuration.
    pub configuration: SetConfiguration,
    pub end: SetEnd,
    /// BLAKE3 of all chunk headers, in stored order.
    pub chunk_headers: [u8; 32],
    /// Family offset of the filemark after the data.
    pub(crate) data_filemark: u64,
    /// Family offset of the filemark after the end.
    pub(crate) end_filemark: u64,
    /// What is wrong with that filemark.
    pub(crate) end_trouble: Option<MediaError>,
}

impl WalkedSet {
    /// The set, if its filemark follows it.
    ///
    /// # Errors
    /// The family is cut off there.
    pub fn closed(self) -> Result<Self, MediaError> {
        match self.end_trouble {
            None => Ok(self),
            Some(trouble) => Err(trouble),
        }
    }
}

/// Position of the walk, and what it has seen.
pub(crate) struct Walk<'a> {
    family: &'a dyn ReadAt,
    family_number: u16,
    set_guid: Guid,
    set_offset: u64,
    /// Chunks since the last index segment.
    unindexed: Vec<IndexEntry>,
    previous_segment: u64,
    chunk_count: u64,
    stored_bytes: u64,
    headers: Blake3Builder,
    configuration: Option<(SetConfiguration, u64)>,
    buffer: Vec<u8>,
    /// A chunk header as a signature covers it; reused.
    signed: Vec<u8>,
}

/// Walks the set whose first block is at `offset`. Calls `visit` with each chunk's header and the family
/// offset of its payload; it returns whether to continue. Stopping causes the error of a truncated set.
pub(crate) fn walk_set(
    family: &dyn ReadAt,
    offset: u64,
    identity: &FamilyIdentity,
    visit: &mut dyn FnMut(ChunkHeader, u64) -> bool,
) -> Result<WalkedSet, MediaError> {
    let (walk, mark) = walk_data(family, offset, identity, visit)?;
    let (end, end_filemark) = read_set_end(family, mark.offset + u64::from(identity.block_bytes))?;
    let chunk_headers = walk.headers.finish();
    let configuration = walk.finish(&end, end_filemark)?;
    let end_trouble = check_end_filemark(family, identity, &mark, end_filemark).err();
    Ok(WalkedSet {
        configuration,
        end,
        chunk_headers,
        data_filemark: mark.offset,
        end_filemark,
        end_trouble,
    })
}

/// Walks the data of a set, up to the filemark after them; the set need not have an end.
pub(crate) fn walk_data<'a>(
    family: &'a dyn ReadAt,
    offset: u64,
    identity: &FamilyIdentity,
    visit: &mut dyn FnMut(ChunkHeader, u64) -> bool,
) -> Result<(Walk<'a>, Filemark), MediaError> {
    let mut streams = Streams::open(family, offset, Id::SSET)?;
    let stream = streams.expect(Id::WLSC)?;
    let bytes = streams.read_data(&stream)?;
    let start = SetConfiguration::parse(&bytes, stream.data_offset)?;
    streams.check_stream()?;
    let mut next = streams.pad()?;
    for id in [Id::VOLB, Id::DIRB] {
        let mut streams = Streams::open(family, next, id)?;
        streams.check_stream()?;
        next = streams.pad()?;
    }
    let mut streams = Streams::open(family, next, Id::FILE)?;
    streams.check_stream()?;
    let mut walk = Walk {
        family,
        family_number: identity.number,
        set_guid: start.set_guid,
        set_offset: offset,
        unindexed: Vec::new(),
        previous_segment: 0,
        chunk_count: 0,
        stored_bytes: 0,
        headers: Blake3Builder::default(),
        configuration: None,
        buffer: vec![0; HEADER_BYTES_MAX],
        signed: Vec::new(),
    };
    let data_filemark = walk.data(&mut streams, visit)?;
    let mark = Filemark::read(family, data_filemark, identity)?;
    let before = offset.saturating_sub(identity.block_bytes.into());
    check_data_filemark(&mark, before, start.position)?;
    Ok((walk, mark))
}

/// The number of the filemark after the data of a set must follow that of the filemark before the
/// set.
fn check_data_filemark(mark: &Filemark, before: u64, position: u16) -> Result<(), MediaError> {
    let previous = mark.earlier.first().copied().unwrap_or(0);
    expect("chain of filemarks", mark.offset, before, previous)?;
    let expected = 2 * u64::from(position);
    expect(
        "number of a filemark",
        mark.offset,
        expected,
        mark.number.into(),
    )
}

/// The number of the filemark after the end of a set must follow that of the filemark after its
/// data.
fn check_end_filemark(
    family: &dyn ReadAt,
    identity: &FamilyIdentity,
    behind_data: &Filemark,
    offset: u64,
) -> Result<(), MediaError> {
    let last = Filemark::read(family, offset, identity)?;
    let previous = last.earlier.first().copied().unwrap_or(0);
    expect("chain of filemarks", offset, behind_data.offset, previous)?;
    let expected = u64::from(behind_data.number) + 1;
    expect("number of a filemark", offset, expected, last.number.into())
}

fn expect(what: &'static str, offset: u64, expected: u64, found: u64) -> Result<(), MediaError> {
    if expected == found {
        Ok(())
    } else {
        Err(MediaError::Damaged {
            offset,
            what,
            expected,
            found,
        })
    }
}

/// Reads the header of the chunk in `stream`; also returns the offset of its payload. `buffer` has space
/// for the longest header.
pub(crate) fn read_chunk(
    family: &dyn ReadAt,
    stream: &Stream,
    set_guid: Guid,
    family_number: u16,
    buffer: &mut [u8],
) -> Result<(ChunkHeader, u64), MediaError> {
    let present = stream.length.min(buffer.len() as u64) as usize;
    let window = buffer.get_mut(..present).unwrap_or_default();
    read_exact(family, stream.data_offset, window, "chunk header")?;
    let (header, padded_bytes) = ChunkHeader::parse(window, stream.data_offset)?;
    let (expected, found) = (set_guid, header.set_guid);
    if expected != found {
        return Err(MediaError::WrongIdentity {
            offset: stream.data_offset,
            what: "backup set",
            expected,
            found,
        });
    }
    expect(
        "family of a chunk",
        stream.data_offset,
        family_number.into(),
        header.family.into(),
    )?;
    let length = u64::from(padded_bytes) + u64::from(header.stored_bytes);
    expect(
        "length of a chunk's stream",
        stream.offset,
        length,
        stream.length,
    )?;
    let payload_offset = stream.data_offset + u64::from(padded_bytes);
    let used = header.padded_bytes(stream.data_offset, 1);
    require_zeros_between(
        family,
        stream.data_offset + used,
        payload_offset,
        "padding of a chunk header",
    )?;
    Ok((header, payload_offset))
}

impl Walk<'_> {
    /// The streams of the `FILE` block; returns where its padding ends.
    fn data(
        &mut self,
        streams: &mut Streams<'_>,
        visit: &mut dyn FnMut(ChunkHeader, u64) -> bool,
    ) -> Result<u64, MediaError> {
        loop {
            let stream = streams.next()?;
            if self.configuration.is_some() && stream.id != Id::SPAD {
                return Err(unexpected(&stream, Id::SPAD));
            }
            match stream.id {
                Id::WLDT => {
                    let (header, payload_offset) = self.chunk(&stream)?;
                    if !visit(header, payload_offset) {
                        let needed = stream.data_offset + stream.length;
                        return Err(MediaError::Truncated {
                            offset: stream.offset,
                            what: "set, whose walk was stopped",
                            needed,
                            available: stream.offset,
                        });
                    }
                }
                Id::WLIX => self.segment(&stream, &streams.read_data(&stream)?)?,
                Id::WLSC => {
                    let bytes = streams.read_data(&stream)?;
                    let configuration = SetConfiguration::parse(&bytes, stream.data_offset)?;
                    self.configuration = Some((configuration, stream.offset));
                }
                Id::SPAD => return streams.pad_data(&stream),
                _ => return Err(unexpected(&stream, Id::WLDT)),
            }
        }
    }

    /// Reads a chunk's header; also returns the offset of its payload.
    fn chunk(&mut self, stream: &Stream) -> Result<(ChunkHeader, u64), MediaError> {
        let (header, payload_offset) = read_chunk(
            self.family,
            stream,
            self.set_guid,
            self.family_number,
            &mut self.buffer,
        )?;
        if self.unindexed.len() >= SEGMENT_CHUNKS_MAX as usize {
            return Err(unexpected(stream, Id::WLIX));
        }
        self.unindexed
            .push(IndexEntry::of(&header, stream.offset - self.set_offset));
        self.signed.clear();
        header.emit_signed(&mut self.signed);
        self.headers.update(&self.signed);
        self.chunk_count += 1;
        self.stored_bytes += u64::from(header.stored_bytes);
        Ok((header, payload_offset))
    }

    /// Checks that the index segment describes exactly the chunks since the previous one.
    fn segment(&mut self, stream: &Stream, bytes: &[u8]) -> Result<(), MediaError> {
        let segment = IndexSegment::parse(bytes, stream.data_offset)?;
        expect(
            "previous index segment",
            stream.offset,
            self.previous_segment,
            segment.previous,
        )?;
        if segment.entries != self.unindexed || segment.set_guid != self.set_guid {
            let (expected, found) = (self.unindexed.len() as u64, segment.entries.len() as u64);
            return Err(MediaError::Damaged {
                offset: stream.offset,
                what: "chunk index",
                expected,
                found,
            });
        }
        self.unindexed.clear();
        self.previous_segment = stream.offset - self.set_offset;
        Ok(())
    }

    /// Compares what was seen with the end of the set.
    fn finish(self, end: &SetEnd, offset: u64) -> Result<SetConfiguration, MediaError> {
        let Some((configuration, configuration_offset)) = self.configuration else {
            return Err(MediaError::Damaged {
                offset,
                what: "final configuration",
                expected: 1,
                found: 0,
            });
        };
        check_configuration(&configuration, end, configuration_offset)?;
        let (expected, found) = (self.set_guid, end.set_guid);
        if expected != found {
            return Err(MediaError::WrongIdentity {
                offset,
                what: "backup set",
                expected,
                found,
            });
        }
        expect(
            "chunks without index",
            offset,
            0,
            self.unindexed.len() as u64,
        )?;
        expect(
            "chunks of a family",
            offset,
            end.chunk_count,
            self.chunk_count,
        )?;
        expect(
            "bytes of a family",
            offset,
            end.stored_bytes,
            self.stored_bytes,
        )?;
        expect(
            "last index segment",
            offset,
            end.index_offset,
            self.previous_segment,
        )?;
        expect(
            "place of the configuration",
            offset,
            end.configuration_offset,
            configuration_offset - self.set_offset,
        )?;
        Ok(configuration)
    }
}

/// A stream of a type other than the one required here.
fn unexpected(stream: &Stream, wanted: Id) -> MediaError {
    MediaError::Damaged {
        offset: stream.offset,
        what: "stream type",
        expected: wanted.as_number(),
        found: stream.id.as_number(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filemark_behind_the_data_is_the_next_one_after_that_in_front_of_the_set() {
        let mark = |number, earlier: &[u64]| Filemark {
            offset: 9000,
            number,
            earlier: earlier.to_vec(),
        };
        check_data_filemark(&mark(4, &[4096, 512]), 4096, 2).unwrap();
        check_data_filemark(&mark(2, &[4096]), 4096, 1).unwrap();
        for (mark, position) in [
            (mark(4, &[512, 4096]), 2),
            (mark(4, &[]), 2),
            (mark(3, &[4096]), 2),
            (mark(4, &[4096]), 1),
        ] {
            let refused = check_data_filemark(&mark, 4096, position).unwrap_err();
            assert!(matches!(refused, MediaError::Damaged { offset: 9000, .. }));
        }
    }
}
