//! The reader's entry points, fed with arbitrary bytes.
//!
//! Checksums block a fuzzer: nearly every change it makes is detected at once, and the code after
//! the check is never reached. So the first byte can request that all checksums are corrected
//! first.

use windlass_base::checksum;

use crate::craft::Counted;
use crate::cursor::align_up;
use crate::mtf::{
    BLOCK_HEADER_BYTES, BlockHeader, Id, STREAM_ALIGNMENT, STREAM_HEADER_BYTES, StreamHeader,
    xor_words,
};
use crate::reader::FamilyReader;
use crate::streams::ReadAt;

/// Bytes of a CRC-64.
const SUM_BYTES: usize = 8;
/// Position of the counts of ranges and digests in a chunk header.
const CHUNK_COUNTS: std::ops::Range<usize> = 10..14;

/// Reads `data` as a media family through every entry point. Must neither panic nor take unbounded time.
///
/// Bytes that start like a family are read unchanged, and again with all checksums corrected.
/// Otherwise the first byte decides: if even, the rest is read unchanged; if odd, it is corrected
/// first.
///
/// # Panics
/// If more is read than the length of the family allows.
pub fn fuzz_family(data: &[u8]) {
    if data.starts_with(&Id::TAPE.0) {
        read_everything(data);
        read_repaired(data);
        return;
    }
    match data.split_first() {
        Some((&mode, bytes)) if mode % 2 == 0 => read_everything(bytes),
        Some((_, bytes)) => read_repaired(bytes),
        None => {}
    }
}

fn read_repaired(bytes: &[u8]) {
    let mut repaired = bytes.to_vec();
    repair(&mut repaired);
    read_everything(&repaired);
}

/// Maximum bytes read for listing a family, and for walking all its sets and everything their
/// indexes lead to: a multiple of its length plus a constant.
fn budget(family: u64) -> u64 {
    10 * family + (64 << 10)
}

/// Fails if more bytes were read since the last call than the budget allows.
fn check(family: &Counted<'_>, what: &str) {
    let (read, length) = (family.read.take(), family.len());
    assert!(
        read <= budget(length),
        "{what}: {read} bytes read of {length}"
    );
}

fn read_everything(bytes: &[u8]) {
    let family = Counted::new(bytes);
    let Ok((reader, _)) = FamilyReader::open(&family) else {
        return;
    };
    // Whether these succeed does not matter, only that they return soon.
    drop(reader.check_header());
    let listing = reader.list();
    check(&family, "list");
    for set in &listing.sets {
        drop(reader.walk(set, &mut |header, offset| {
            offset <= bytes.len() as u64 && header.stored_bytes < u32::MAX
        }));
    }
    check(&family, "walk");
    for set in &listing.sets {
        drop(reader.index(set, &mut |segment| {
            for entry in &segment.entries {
                drop(reader.chunk(set, entry.stream_offset));
            }
            true
        }));
        drop(reader.configuration(set));
    }
    check(&family, "index");
    for sets in 0..=listing.complete_sets() {
        drop(listing.append_position(sets));
    }
}

/// Corrects all checksums that a walk over `family` finds: descriptor blocks, streams, and the CRCs of
/// Windlass's own streams and of filemarks.
pub(crate) fn repair(family: &mut [u8]) {
    let mut at = 0;
    // Each iteration advances by at least a block header.
    while let Some(next) = repair_block(family, at) {
        at = next;
    }
}

/// Corrects the block at `at` and its streams; returns the offset of the next block.
fn repair_block(family: &mut [u8], at: usize) -> Option<usize> {
    let block_bytes = usize::from(u16_at(family, 64)?) * 512;
    let header = family.get_mut(at..at.checked_add(BLOCK_HEADER_BYTES)?)?;
    put_xor(header);
    let parsed = BlockHeader::parse(header, at as u64).ok()?;
    if parsed.id == Id::SFMB {
        let end = at.checked_add(block_bytes.max(BLOCK_HEADER_BYTES + SUM_BYTES))?;
        put_sum(family.get_mut(at..end)?);
        return Some(end);
    }
    let first = usize::from(parsed.first_stream).max(BLOCK_HEADER_BYTES);
    let mut stream_at = at.checked_add(first)?;
    loop {
        stream_at = align_up(stream_at as u64, STREAM_ALIGNMENT) as usize;
        let data_at = stream_at.checked_add(STREAM_HEADER_BYTES)?;
        let header = family.get_mut(stream_at..data_at)?;
        put_xor(header);
        let parsed = StreamHeader::parse(header, stream_at as u64).ok()?;
        let end = data_at.checked_add(usize::try_from(parsed.length).ok()?)?;
        if parsed.id == Id::WLCK {
            let sum = checksum(family.get(at..stream_at)?);
            let slot = family.get_mut(data_at..data_at + SUM_BYTES)?;
            slot.copy_from_slice(&sum.to_le_bytes());
        } else if parsed.id == Id::WLDT {
            let length = chunk_header_bytes(family.get(data_at..end)?)?;
            put_sum(family.get_mut(data_at..data_at + length)?);
        } else if parsed.id != Id::SPAD {
            put_sum(family.get_mut(data_at..end)?);
        }
        if parsed.id == Id::SPAD {
            return Some(end);
        }
        stream_at = end;
    }
}

/// Length of a chunk header up to the end of its CRC.
fn chunk_header_bytes(data: &[u8]) -> Option<usize> {
    let counts = data.get(CHUNK_COUNTS)?;
    let (runs, digests) = (u16_at(counts, 0)?, u16_at(counts, 2)?);
    let protection = u16_at(data, 4)?;
    Some(crate::chunk::header_bytes(
        runs.into(),
        digests.into(),
        protection,
    ))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let (value, _) = bytes.get(at..)?.split_first_chunk::<2>()?;
    Some(u16::from_le_bytes(*value))
}

/// Ends `bytes` with the XOR of the words before.
fn put_xor(bytes: &mut [u8]) {
    if let Some((words, sum)) = bytes.split_last_chunk_mut::<2>() {
        *sum = xor_words(words).to_le_bytes();
    }
}

/// Ends `bytes` with the CRC-64 of those before.
fn put_sum(bytes: &mut [u8]) {
    if let Some((covered, sum)) = bytes.split_last_chunk_mut::<SUM_BYTES>() {
        *sum = checksum(covered).to_le_bytes();
    }
}
