//! Expands one block.

use super::bit_reader::BitReader;
use super::decode_table::{DecodeTable, Entry, TABLE_BITS};
use super::{BLOCK_BYTES_MAX, LENGTH_CODE_EXTRA, LENGTH_TABLE_BYTES, MATCH_BYTES_MIN};

/// What is wrong with a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// Shorter than the code lengths.
    #[error("it ends within the code lengths")]
    Truncated,
    /// Code lengths that do not fill the code space exactly.
    #[error("the code lengths do not fill the code space")]
    CodeLengths,
    /// A match from before the start of the block.
    #[error("a match reaches before the start of the block")]
    Offset,
    /// A match beyond the end of the block, or a length in a longer form than necessary.
    #[error("a match has an impossible length")]
    Length,
    /// Bits or bytes missing at the end.
    #[error("it ends before the block is complete")]
    InputEnds,
    /// A block of more than 64 KiB.
    #[error("a block has at most 65536 bytes")]
    BlockTooLong,
}

impl Damage {
    /// The same text as `Display`, without allocation.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Truncated => "it ends within the code lengths",
            Self::CodeLengths => "the code lengths do not fill the code space",
            Self::Offset => "a match reaches before the start of the block",
            Self::Length => "a match has an impossible length",
            Self::InputEnds => "it ends before the block is complete",
            Self::BlockTooLong => "a block has at most 65536 bytes",
        }
    }
}

/// Expands blocks one after another with the same table.
#[derive(Debug)]
pub struct BlockDecoder {
    table: DecodeTable,
}

impl BlockDecoder {
    pub fn new() -> Self {
        Self {
            table: DecodeTable::new(),
        }
    }

    /// Expands `input` into exactly `block.len()` bytes.
    ///
    /// Ignores extra bytes at the end of the input.
    ///
    /// # Errors
    /// [`Damage`] if `input` does not expand to that many bytes; `block` is then undefined.
    pub fn decode_block(&mut self, input: &[u8], block: &mut [u8]) -> Result<(), Damage> {
        if block.len() > BLOCK_BYTES_MAX {
            return Err(Damage::BlockTooLong);
        }
        let (table, stream) = input
            .split_first_chunk::<LENGTH_TABLE_BYTES>()
            .ok_or(Damage::Truncated)?;
        self.table.build(table)?;
        let mut reader = BitReader::new(stream);
        let position = self.decode_fast(&mut reader, block)?;
        self.decode_rest(&mut reader, block, position)?;
        if reader.overran() {
            return Err(Damage::InputEnds);
        }
        Ok(())
    }

    /// Expands until less than [`SLACK`] is left, so that copies may write beyond their ends.
    #[inline(never)]
    fn decode_fast(&self, reader: &mut BitReader<'_>, block: &mut [u8]) -> Result<usize, Damage> {
        let mut position = 0;
        // A copy, which the compiler can keep in registers because nothing else refers to it.
        let mut bits = *reader;
        let Some(limit) = block.len().checked_sub(SLACK) else {
            return Ok(0);
        };
        while position < limit {
            if !bits.refill_evenly() {
                break;
            }
            let entry = self.table.entry(bits.peek(TABLE_BITS));
            if entry.is_rare() {
                if entry.is_longer() {
                    *reader = bits;
                    position = self.decode_longer(reader, block, position)?;
                    bits = *reader;
                } else {
                    position = expand_long_match(&mut bits, entry, block, position)?;
                }
                continue;
            }
            position = expand(&mut bits, entry, block, position)?;
            // Usually there are enough bits for one more.
            let entry = self.table.entry(bits.peek(TABLE_BITS));
            if entry.is_rare() || entry.total_bits() > bits.held() {
                continue;
            }
            position = expand(&mut bits, entry, block, position)?;
        }
        *reader = bits;
        Ok(position)
    }

    /// Expands the rest, one symbol at a time, to the exact end.
    fn decode_rest(
        &self,
        reader: &mut BitReader<'_>,
        block: &mut [u8],
        mut position: usize,
    ) -> Result<(), Damage> {
        while position < block.len() {
            reader.refill();
            position = self.decode_longer(reader, block, position)?;
        }
        Ok(())
    }

    /// Expands one symbol with a code of any length at `position` and returns the position after
    /// it.
    #[inline(never)]
    fn decode_longer(
        &self,
        reader: &mut BitReader<'_>,
        block: &mut [u8],
        position: usize,
    ) -> Result<usize, Damage> {
        let entry = self.table.symbol(reader.peek(16) as u32);
        if entry.is_match() {
            return expand_long_match(reader, entry, block, position);
        }
        reader.skip(entry.code_bits());
        block[position] = entry.literals()[0];
        Ok(position + 1)
    }
}

impl Default for BlockDecoder {
    fn default() -> Self {
        Self::new()
    }
}

/// Bytes that two iterations of the fast loop may advance and write beyond, and some more.
const SLACK: usize = 64;

/// Expands an entry that is not rare, and returns the position after it.
///
/// Whether a match follows the literals is practically random, and a branch misprediction costs
/// more than a copy. So there is no branch: if no match follows, zero bytes are copied from the
/// start of the block.
#[inline(always)]
fn expand(
    bits: &mut BitReader<'_>,
    entry: Entry,
    block: &mut [u8],
    position: usize,
) -> Result<usize, Damage> {
    block[position..position + 2].copy_from_slice(&entry.literals());
    let position = position + entry.literal_count();
    let is_match = entry.match_mask();
    let offset = bits.offset(entry.code_bits(), entry.offset_bits());
    let offset = (offset & is_match) | (position & !is_match);
    let length = (entry.length_code() as usize + MATCH_BYTES_MIN) & is_match;
    bits.skip(entry.total_bits());
    if offset > position {
        return Err(Damage::Offset);
    }
    copy_short_match(block, position, offset, length);
    Ok(position + length)
}

/// Expands a match of any length to its exact end, and returns the position after it.
#[inline(always)]
fn expand_long_match(
    bits: &mut BitReader<'_>,
    entry: Entry,
    block: &mut [u8],
    position: usize,
) -> Result<usize, Damage> {
    bits.skip(entry.code_bits());
    let mut length = entry.length_code() as usize;
    if entry.length_code() == LENGTH_CODE_EXTRA {
        length = read_extra(bits)?;
    }
    let offset = bits.offset(0, entry.offset_bits());
    bits.skip(entry.offset_bits());
    copy_match(block, position, offset, length + MATCH_BYTES_MIN)
}

/// The part of a length that did not fit into its code, less the minimum.
#[inline(always)]
fn read_extra(reader: &mut BitReader<'_>) -> Result<usize, Damage> {
    let [byte] = reader.bytes().ok_or(Damage::InputEnds)?;
    if byte != 255 {
        return Ok(usize::from(byte) + LENGTH_CODE_EXTRA as usize);
    }
    let mut length = u32::from(u16::from_le_bytes(reader.bytes().ok_or(Damage::InputEnds)?));
    if length == 0 {
        length = u32::from_le_bytes(reader.bytes().ok_or(Damage::InputEnds)?);
    }
    if length < LENGTH_CODE_EXTRA || length as usize > BLOCK_BYTES_MAX {
        return Err(Damage::Length);
    }
    Ok(length as usize)
}

/// Copies a match of up to 17 bytes; writes up to [`SLACK`].
#[inline(always)]
fn copy_short_match(block: &mut [u8], position: usize, offset: usize, length: usize) {
    let from = position - offset;
    if offset >= 16 {
        copy_bytes::<16>(block, from, position);
        if length > 16 {
            copy_bytes::<16>(block, from + 16, position + 16);
        }
    } else if offset >= 8 {
        copy_bytes::<8>(block, from, position);
        copy_bytes::<8>(block, from + 8, position + 8);
        if length > 16 {
            copy_bytes::<8>(block, from + 16, position + 16);
        }
    } else {
        repeat(block, position, offset, length);
    }
}

/// Copies a match that overlaps itself closely; writes up to 7 bytes more.
#[inline]
fn repeat(block: &mut [u8], position: usize, offset: usize, length: usize) {
    // Each copy makes only `offset` bytes correct, and the next one starts after them.
    let mut to = position;
    while to < position + length {
        copy_bytes::<8>(block, to - offset, to);
        to += offset;
    }
}

#[inline]
fn copy_bytes<const N: usize>(block: &mut [u8], from: usize, to: usize) {
    let bytes: [u8; N] = block[from..from + N]
        .try_into()
        .expect("a range of N bytes");
    block[to..to + N].copy_from_slice(&bytes);
}

/// Copies a match of any length to its exact end, and returns the position after it.
#[inline(always)]
fn copy_match(
    block: &mut [u8],
    position: usize,
    offset: usize,
    length: usize,
) -> Result<usize, Damage> {
    if offset > position {
        return Err(Damage::Offset);
    }
    if length > block.len() - position {
        return Err(Damage::Length);
    }
    let end = position + length;
    if offset < 16 || block.len() - end < SLACK {
        copy_exactly(block, position, offset, length);
    } else {
        for to in (position..end).step_by(16) {
            copy_bytes::<16>(block, to - offset, to);
        }
    }
    Ok(end)
}

fn copy_exactly(block: &mut [u8], position: usize, offset: usize, length: usize) {
    let end = position + length;
    let from = position - offset;
    let mut to = position;
    while to < end {
        let count = (to - from).min(end - to);
        block.copy_within(from..from + count, to);
        to += count;
    }
}
