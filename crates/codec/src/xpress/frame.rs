//! A chunk as a sequence of independent blocks.
//!
//! Layout: for each 64 KiB of the chunk a little-endian `u16`, the stored length of its block,
//! where 0 means that the block is stored uncompressed; then the blocks. See `docs/codecs.md`.

use super::{BLOCK_BYTES_MAX, BlockDecoder, BlockEncoder};
use crate::{Algorithm, Error};

/// Bytes of one entry of the length table.
const LENGTH_BYTES: usize = 2;

/// The length of the payload, or `None` if it does not fit into `output`.
pub(crate) fn encode(encoder: &mut BlockEncoder, input: &[u8], output: &mut [u8]) -> Option<usize> {
    // A chunk always produces the same payload, whatever came before it.
    encoder.restart();
    let blocks = input.len().div_ceil(BLOCK_BYTES_MAX);
    let (lengths, mut room) = output.split_at_mut_checked(blocks * LENGTH_BYTES)?;
    let mut written = lengths.len();
    let entries = lengths.as_chunks_mut::<LENGTH_BYTES>().0;
    for (entry, block) in entries.iter_mut().zip(input.chunks(BLOCK_BYTES_MAX)) {
        let shorter = room.len().min(block.len() - 1);
        let length = encoder.encode_block(block, &mut room[..shorter]);
        if length.is_none() {
            room.get_mut(..block.len())?.copy_from_slice(block);
        }
        *entry = u16::try_from(length.unwrap_or(0))
            .expect("a compressed block is shorter than 64 KiB")
            .to_le_bytes();
        let taken = length.unwrap_or(block.len());
        room = &mut room[taken..];
        written += taken;
    }
    Some(written)
}

/// Expands a payload into exactly `output.len()` bytes.
pub(crate) fn decode(
    decoder: &mut BlockDecoder,
    input: &[u8],
    output: &mut [u8],
) -> Result<(), Error> {
    let damaged = |reason| Error::Corrupt {
        algorithm: Algorithm::MsXpress,
        payload: input.len(),
        reason,
    };
    let blocks = output.len().div_ceil(BLOCK_BYTES_MAX);
    let (lengths, mut rest) = input
        .split_at_checked(blocks * LENGTH_BYTES)
        .ok_or_else(|| damaged("it ends within the block lengths"))?;
    let entries = lengths.as_chunks::<LENGTH_BYTES>().0;
    for (entry, block) in entries.iter().zip(output.chunks_mut(BLOCK_BYTES_MAX)) {
        let stored = usize::from(u16::from_le_bytes(*entry));
        let taken = if stored == 0 { block.len() } else { stored };
        let (payload, behind) = rest
            .split_at_checked(taken)
            .ok_or_else(|| damaged("it ends within a block"))?;
        if stored == 0 {
            block.copy_from_slice(payload);
        } else {
            decoder
                .decode_block(payload, block)
                .map_err(|damage| damaged(damage.reason()))?;
        }
        rest = behind;
    }
    if !rest.is_empty() {
        return Err(damaged("bytes follow the last block"));
    }
    Ok(())
}
