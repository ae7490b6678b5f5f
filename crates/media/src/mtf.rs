//! The published layer: descriptor block headers and stream headers of MTF 1.00a.
//!
//! Nothing here is specific to Windlass. Offsets are those of structures 4 and 15 in the
//! specification. A string or other variable field is given by a size and an offset from the start
//! of its descriptor block (structure 2). A whole descriptor block with its strings stays within
//! one format logical block, because readers may buffer no more.

use crate::cursor::{Cursor, Emission, align_up};
use crate::error::MediaError;

/// Bytes of the common descriptor block header.
pub(crate) const BLOCK_HEADER_BYTES: usize = 52;
pub(crate) const STREAM_HEADER_BYTES: usize = 22;
/// The format logical block: descriptor blocks start at its multiples, relative to the `SSET`.
pub(crate) const LOGICAL_BLOCK_BYTES: u64 = 1024;
/// Streams start at multiples of this.
pub(crate) const STREAM_ALIGNMENT: u64 = 4;
/// The unit of the media header's soft filemark block size.
pub(crate) const FILEMARK_UNIT_BYTES: u32 = 512;
/// The only major version of MTF.
pub(crate) const MTF_MAJOR_VERSION: u8 = 1;
/// The operating system id for Unix; we store no data specific to an operating system.
const OS_UNIX: u8 = 28;
/// String type: two-byte characters.
const STRINGS_UTF16: u8 = 2;

/// The four characters that name a descriptor block or a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Id(pub(crate) [u8; 4]);

impl Id {
    pub(crate) const TAPE: Self = Self(*b"TAPE");
    pub(crate) const SSET: Self = Self(*b"SSET");
    pub(crate) const VOLB: Self = Self(*b"VOLB");
    pub(crate) const DIRB: Self = Self(*b"DIRB");
    pub(crate) const FILE: Self = Self(*b"FILE");
    pub(crate) const SFMB: Self = Self(*b"SFMB");
    pub(crate) const ESET: Self = Self(*b"ESET");
    /// Zeros up to the next descriptor block.
    pub(crate) const SPAD: Self = Self(*b"SPAD");
    /// SQL Server's media set stream.
    pub(crate) const RAID: Self = Self(*b"RAID");
    /// Private: media set.
    pub(crate) const WLMS: Self = Self(*b"WLMS");
    /// Private: CRC of a descriptor block.
    pub(crate) const WLCK: Self = Self(*b"WLCK");
    /// Private: set configuration.
    pub(crate) const WLSC: Self = Self(*b"WLSC");
    /// Private: a chunk of data.
    pub(crate) const WLDT: Self = Self(*b"WLDT");
    /// Private: a segment of the chunk index.
    pub(crate) const WLIX: Self = Self(*b"WLIX");
    /// Private: set end.
    pub(crate) const WLES: Self = Self(*b"WLES");

    pub(crate) fn as_number(self) -> u64 {
        u64::from(u32::from_le_bytes(self.0))
    }
}

impl std::fmt::Debug for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

/// XOR of the 16-bit words of `bytes`: MTF's header checksum. It detects every single flipped bit.
pub(crate) fn xor_words(bytes: &[u8]) -> u16 {
    bytes
        .as_chunks::<2>()
        .0
        .iter()
        .fold(0, |sum, &word| sum ^ u16::from_le_bytes(word))
}

/// The common header of a descriptor block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockHeader {
    pub(crate) id: Id,
    pub(crate) first_stream: u16,
    pub(crate) control_block_id: u32,
}

impl BlockHeader {
    /// Reads and checks the header at the start of a block.
    pub(crate) fn parse(bytes: &[u8], offset: u64) -> Result<Self, MediaError> {
        let mut cursor = Cursor::new(bytes, offset, "descriptor block header");
        let mut header = cursor.window(BLOCK_HEADER_BYTES, "descriptor block header")?;
        let sum = xor_words(bytes.get(..BLOCK_HEADER_BYTES - 2).unwrap_or_default());
        let id = Id(header.array()?);
        header.take(4)?;
        let first_stream = header.u16()?;
        header.take(26)?;
        let control_block_id = header.u32()?;
        header.take(10)?;
        header.expect(u64::from(sum), u64::from(header.clone().u16()?))?;
        Ok(Self {
            id,
            first_stream,
            control_block_id,
        })
    }
}

/// The header of a stream, without its constant zero fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamHeader {
    pub(crate) id: Id,
    pub(crate) length: u64,
}

impl StreamHeader {
    /// Reads and checks a stream header.
    pub(crate) fn parse(bytes: &[u8], offset: u64) -> Result<Self, MediaError> {
        let mut cursor = Cursor::new(bytes, offset, "stream header");
        let mut header = cursor.window(STREAM_HEADER_BYTES, "stream header")?;
        let sum = xor_words(bytes.get(..STREAM_HEADER_BYTES - 2).unwrap_or_default());
        let id = Id(header.array()?);
        header.take(4)?;
        let length = header.u64()?;
        header.take(4)?;
        let found = header.u16()?;
        header.expect(u64::from(sum), u64::from(found))?;
        Ok(Self { id, length })
    }

    pub(crate) fn emit(&self, out: &mut Emission<'_>) {
        let begin = out.offset();
        out.bytes(&self.id.0);
        out.zeros(4);
        out.u64(self.length);
        out.zeros(4);
        let sum = xor_words(out.since(begin));
        out.u16(sum);
    }
}

/// Appends a whole stream, on the next multiple of four.
pub(crate) fn emit_stream(out: &mut Emission<'_>, id: Id, data: &[u8]) {
    out.pad_to(STREAM_ALIGNMENT, 0);
    let length = data.len() as u64;
    StreamHeader { id, length }.emit(out);
    out.bytes(data);
}

/// Appends the `SPAD` stream that ends a block, so that the next one starts at a multiple of `unit`
/// relative to `origin`.
pub(crate) fn emit_pad_stream(out: &mut Emission<'_>, unit: u64, origin: u64) {
    out.pad_to(STREAM_ALIGNMENT, 0);
    let data = out.offset() + STREAM_HEADER_BYTES as u64;
    let length = align_up(data - origin, unit) - (data - origin);
    StreamHeader {
        id: Id::SPAD,
        length,
    }
    .emit(out);
    out.zeros(length as usize);
}

/// A descriptor block under construction.
///
/// Strings are collected after the fixed fields; [`BlockBuilder::finish`] places them, fills in the
/// header and aligns for the first stream.
#[derive(Debug)]
pub(crate) struct BlockBuilder<'o, 'e> {
    out: &'e mut Emission<'o>,
    begin: u64,
    strings: Vec<(u64, Vec<u8>)>,
}

impl<'o, 'e> BlockBuilder<'o, 'e> {
    /// Starts a block here.
    pub(crate) fn new(
        out: &'e mut Emission<'o>,
        id: Id,
        logical_address: u64,
        control_block_id: u32,
    ) -> Self {
        let begin = out.offset();
        out.bytes(&id.0);
        out.zeros(6);
        out.bytes(&[OS_UNIX, 0]);
        out.zeros(8);
        out.u64(logical_address);
        out.zeros(8);
        out.u32(control_block_id);
        out.zeros(8);
        out.zeros(4);
        Self {
            out,
            begin,
            strings: Vec::new(),
        }
    }

    /// The place to append fixed fields to.
    pub(crate) fn fields(&mut self) -> &mut Emission<'o> {
        self.out
    }

    /// Appends a fixed field that refers to `text`, which is stored after the fixed fields.
    pub(crate) fn text(&mut self, text: &str) {
        let at = self.out.offset();
        self.out.zeros(4);
        let stored: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        if !stored.is_empty() {
            self.strings.push((at, stored));
        }
    }

    /// Stores the strings, truncating them where the logical block is full, and seals the header.
    pub(crate) fn finish(self) {
        let Self {
            out,
            begin,
            strings,
        } = self;
        if !strings.is_empty() {
            out.patch(begin + 48, &[STRINGS_UTF16]);
        }
        for (field, stored) in &strings {
            out.pad_to(2, 0);
            let at = out.offset() - begin;
            let room = (LOGICAL_BLOCK_BYTES - at) as usize & !1;
            let kept = cut_text(stored, room);
            let [size_low, size_high] = (kept.len() as u16).to_le_bytes();
            let [at_low, at_high] = (at as u16).to_le_bytes();
            out.patch(*field, &[size_low, size_high, at_low, at_high]);
            out.bytes(kept);
        }
        out.pad_to(STREAM_ALIGNMENT, 0);
        let first_stream = (out.offset() - begin) as u16;
        seal_block_header(out, begin, first_stream);
    }
}

/// The longest prefix of UTF-16 text that fits in `room` bytes and ends at a whole character.
fn cut_text(stored: &[u8], room: usize) -> &[u8] {
    let kept = stored.get(..room).unwrap_or(stored);
    match kept.split_last_chunk::<2>() {
        Some((whole, &unit)) if (0xD800..0xDC00).contains(&u16::from_le_bytes(unit)) => whole,
        _ => kept,
    }
}

/// Fills in the offset of the first stream and the checksum of the block header at `begin`.
pub(crate) fn seal_block_header(out: &mut Emission<'_>, begin: u64, first_stream: u16) {
    out.patch(begin + 8, &first_stream.to_le_bytes());
    let header = out.since(begin).get(..BLOCK_HEADER_BYTES - 2);
    let sum = xor_words(header.unwrap_or_default());
    out.patch(begin + 50, &sum.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_header_round_trips_and_every_flipped_bit_is_noticed() {
        let mut bytes = Vec::new();
        let header = StreamHeader {
            id: Id::WLDT,
            length: 0x0123_4567,
        };
        header.emit(&mut Emission::new(&mut bytes, 0));
        assert_eq!(bytes.len(), STREAM_HEADER_BYTES);
        let read = StreamHeader::parse(&bytes, 0).unwrap();
        assert_eq!((read.id, read.length), (header.id, header.length));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(StreamHeader::parse(&flipped, 0).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn long_strings_are_cut_to_one_logical_block() {
        let mut bytes = Vec::new();
        let mut out = Emission::new(&mut bytes, 0);
        let mut block = BlockBuilder::new(&mut out, Id::SSET, 0, 0);
        block.text(&"n".repeat(300));
        block.text(&"d".repeat(300));
        block.finish();
        assert_eq!(bytes.len(), 1024);
        let header = BlockHeader::parse(&bytes, 0).unwrap();
        assert_eq!((header.id, header.first_stream), (Id::SSET, 1024));
    }

    #[test]
    fn pad_stream_ends_on_the_unit_even_when_its_header_does_not_fit() {
        for before in [0_usize, 4, 1000, 1002, 1003, 1023] {
            let mut bytes = vec![0; before];
            let mut out = Emission::new(&mut bytes, 512 + before as u64);
            emit_pad_stream(&mut out, 1024, 512);
            assert_eq!(bytes.len() % 1024, 0, "{before}");
        }
    }
}
