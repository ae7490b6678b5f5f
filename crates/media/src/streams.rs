//! Walks the streams of a descriptor block, and reads bytes within bounds.

use windlass_base::checksum;

use crate::cursor::{Emission, align_up, require_at_most, require_zero};
use crate::error::{MediaError, ReadError};
use crate::mtf::{
    BLOCK_HEADER_BYTES, BlockHeader, Id, STREAM_ALIGNMENT, STREAM_HEADER_BYTES, StreamHeader,
    emit_stream,
};
use crate::record::LIST_BYTES_MAX;

/// Bytes of a media family, by position.
pub trait ReadAt {
    /// Length of the family.
    fn len(&self) -> u64;

    /// Whether the family has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// If the family ends before that, or the device fails.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadError>;
}

impl ReadAt for &[u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        let window = usize::try_from(offset)
            .ok()
            .and_then(|from| self.get(from..)?.get(..buffer.len()));
        match window {
            Some(window) => {
                buffer.copy_from_slice(window);
                Ok(())
            }
            None => {
                let source = std::io::ErrorKind::UnexpectedEof.into();
                Err(ReadError {
                    offset,
                    length: buffer.len() as u64,
                    source,
                })
            }
        }
    }
}

/// Fills `buffer`, or reports the structure in which the family ends.
pub(crate) fn read_exact(
    family: &dyn ReadAt,
    offset: u64,
    buffer: &mut [u8],
    what: &'static str,
) -> Result<(), MediaError> {
    let needed = offset.saturating_add(buffer.len() as u64);
    let available = family.len();
    if needed > available {
        return Err(MediaError::Truncated {
            offset,
            what,
            needed,
            available,
        });
    }
    Ok(family.read_at(offset, buffer)?)
}

/// Fails unless all bytes from `from` to `to` are zero. Reads in small pieces.
pub(crate) fn require_zeros_between(
    family: &dyn ReadAt,
    from: u64,
    to: u64,
    what: &'static str,
) -> Result<(), MediaError> {
    let mut piece = [0; 4096];
    let mut at = from;
    while at < to {
        let count = (to - at).min(piece.len() as u64) as usize;
        let window = piece.get_mut(..count).unwrap_or_default();
        read_exact(family, at, window, what)?;
        require_zero(window, at, what)?;
        at += count as u64;
    }
    Ok(())
}

/// A stream found in a family.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    pub(crate) id: Id,
    /// Family offset of its header.
    pub(crate) offset: u64,
    /// Family offset of its data.
    pub(crate) data_offset: u64,
    /// Bytes of data.
    pub(crate) length: u64,
}

/// The streams of a descriptor block, in order.
pub(crate) struct Streams<'a> {
    family: &'a dyn ReadAt,
    block_offset: u64,
    next: u64,
}

impl<'a> Streams<'a> {
    /// Reads the block header at `offset`, which must be of type `wanted`.
    pub(crate) fn open(
        family: &'a dyn ReadAt,
        offset: u64,
        wanted: Id,
    ) -> Result<Self, MediaError> {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        read_exact(family, offset, &mut bytes, "descriptor block header")?;
        let header = BlockHeader::parse(&bytes, offset)?;
        if header.id != wanted {
            let (expected, found) = (wanted.as_number(), header.id.as_number());
            return Err(MediaError::Damaged {
                offset,
                what: "descriptor block type",
                expected,
                found,
            });
        }
        Ok(Self {
            family,
            block_offset: offset,
            next: offset + u64::from(header.first_stream),
        })
    }

    /// The streams from `next` on, within the block at `block_offset`.
    pub(crate) fn at(family: &'a dyn ReadAt, block_offset: u64, next: u64) -> Self {
        Self {
            family,
            block_offset,
            next,
        }
    }

    /// Reads the next stream header. Padding before it must be zero.
    pub(crate) fn next(&mut self) -> Result<Stream, MediaError> {
        let offset = align_up(self.next, STREAM_ALIGNMENT);
        require_zeros_between(self.family, self.next, offset, "padding between streams")?;
        let mut bytes = [0; STREAM_HEADER_BYTES];
        read_exact(self.family, offset, &mut bytes, "stream header")?;
        let header = StreamHeader::parse(&bytes, offset)?;
        let data_offset = offset + STREAM_HEADER_BYTES as u64;
        let needed = data_offset.saturating_add(header.length);
        let available = self.family.len();
        if needed > available {
            return Err(MediaError::Truncated {
                offset,
                what: "stream",
                needed,
                available,
            });
        }
        self.next = needed;
        Ok(Stream {
            id: header.id,
            offset,
            data_offset,
            length: header.length,
        })
    }

    /// The next stream, which must be of type `wanted`.
    pub(crate) fn expect(&mut self, wanted: Id) -> Result<Stream, MediaError> {
        let stream = self.next()?;
        if stream.id == wanted {
            return Ok(stream);
        }
        let (expected, found) = (wanted.as_number(), stream.id.as_number());
        Err(MediaError::Damaged {
            offset: stream.offset,
            what: "stream type",
            expected,
            found,
        })
    }

    /// The data of a stream other than a chunk.
    pub(crate) fn read_data(&self, stream: &Stream) -> Result<Vec<u8>, MediaError> {
        require_at_most(
            stream.length,
            LIST_BYTES_MAX,
            "length of a stream",
            stream.offset,
        )?;
        let mut bytes = vec![0; stream.length as usize];
        read_exact(self.family, stream.data_offset, &mut bytes, "stream")?;
        Ok(bytes)
    }

    /// The `WLCK` stream, whose CRC must match the block up to here.
    pub(crate) fn check_stream(&mut self) -> Result<(), MediaError> {
        let stream = self.expect(Id::WLCK)?;
        let bytes = self.read_data(&stream)?;
        let covered = stream.offset - self.block_offset;
        require_at_most(
            covered,
            LIST_BYTES_MAX * 2,
            "length of a descriptor block",
            self.block_offset,
        )?;
        let mut block = vec![0; covered as usize];
        read_exact(
            self.family,
            self.block_offset,
            &mut block,
            "descriptor block",
        )?;
        let expected = checksum(&block);
        match <[u8; 8]>::try_from(bytes.as_slice()).map(u64::from_le_bytes) {
            Ok(found) if found == expected => Ok(()),
            found => Err(MediaError::Damaged {
                offset: stream.data_offset,
                what: "checksum of a descriptor block",
                expected,
                found: found.unwrap_or(0),
            }),
        }
    }

    /// The `SPAD` stream, whose data must be zero; returns where it ends.
    pub(crate) fn pad(&mut self) -> Result<u64, MediaError> {
        let stream = self.expect(Id::SPAD)?;
        self.pad_data(&stream)
    }

    /// Checks that the data of a `SPAD` stream are zero; returns where they end.
    pub(crate) fn pad_data(&self, stream: &Stream) -> Result<u64, MediaError> {
        // No block needs more padding: the stream only claims to be padding.
        require_at_most(stream.length, 2 * 65536, "length of padding", stream.offset)?;
        let end = stream.data_offset + stream.length;
        require_zeros_between(self.family, stream.data_offset, end, "padding")?;
        Ok(end)
    }
}

/// Appends the `WLCK` stream with the CRC-64 of the block from `begin` up to here.
pub(crate) fn emit_check_stream(out: &mut Emission<'_>, begin: u64) {
    out.pad_to(STREAM_ALIGNMENT, 0);
    let sum = checksum(out.since(begin));
    emit_stream(out, Id::WLCK, &sum.to_le_bytes());
}
