//! Text narrowing: a reversible filter for UTF-16 text, applied before a compressor.
//!
//! Most of what SQL Server stores is `nvarchar`, and every second byte of that is zero. A compressor
//! that sees bytes pays for the zeros in time and in size. This filter removes them from *runs* of
//! pairs (x, 0) with x not zero, and records where the runs were. Text in records starts at odd and
//! at even offsets, so a run starts at any byte.
//!
//! The *narrowed form* of a chunk is described in `docs/codecs.md`: the text, the other bytes, the list
//! of runs. It is always shorter than the chunk; a chunk that this does not hold for, or that gains
//! little, is compressed as it is.
//!
//! Invariants:
//! 1. [`widen`] reverses [`narrow`].
//! 2. Every chunk has one narrowed form; [`widen`] refuses lists of runs that no chunk has.
//! 3. Both write only within the slices they are given and allocate nothing.
//!
//! Two implementations do the work on bytes: [`portable`] and, on x86-64, `sse2`; tests compare
//! them.

mod portable;
mod runs;
#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "calls instructions that not every processor has"
)]
mod sse2;

use self::runs::{Reader, Writer};

#[cfg(not(target_arch = "x86_64"))]
use self::portable::Portable as Best;
#[cfg(target_arch = "x86_64")]
use self::sse2::Sse2 as Best;

/// Pairs of the shortest run: a shorter one would save less than its entry in the list takes.
const RUN_PAIRS_MIN: usize = 4;

/// Bytes of the two lengths before the text: its own, and that of the other bytes.
const HEAD_BYTES: usize = 8;

/// Bytes that a copy of a short piece moves at once; the rest is overwritten later.
const PIECE_BYTES: usize = 32;

/// The work on bytes.
trait Kernel {
    /// The first position from `at` on where a run starts.
    fn find(input: &[u8], at: usize) -> Option<usize>;

    /// Moves the first bytes of the pairs at the start of `input` to the start of `output`, whose rest may
    /// be overwritten too; returns the number of pairs.
    fn squeeze(input: &[u8], output: &mut [u8]) -> usize;

    /// Fills the start of `output` with pairs of the first `pairs` bytes of `input` and zeros; the rest may
    /// be overwritten too. Returns whether a byte was zero. Both are long enough.
    fn spread(input: &[u8], output: &mut [u8], pairs: usize) -> bool;

    /// The number of pairs in the runs of a short piece; runs across its ends may be cut.
    fn count(piece: &[u8]) -> usize;
}

/// Writes the narrowed form of `chunk` to the start of `output` and returns its length; `None` unless it
/// is at most `bytes_max` long. `output` and `temporary`, which is overwritten, are as long as the chunk.
pub(crate) fn narrow(
    chunk: &[u8],
    bytes_max: usize,
    output: &mut [u8],
    temporary: &mut [u8],
) -> Option<usize> {
    narrow_with::<Best>(chunk, bytes_max, output, temporary)
}

/// Fills `chunk` with what `form` is the narrowed form of.
///
/// # Errors
/// Why `form` is not the narrowed form of a chunk of this length. The content of `chunk` is then
/// undefined.
pub(crate) fn widen(form: &[u8], chunk: &mut [u8]) -> Result<(), &'static str> {
    widen_with::<Best>(form, chunk)
}

/// Estimates from pieces spread over a chunk which share of its bytes is removed, in thousandths.
pub(crate) fn promise(chunk: &[u8]) -> usize {
    promise_with::<Best>(chunk)
}

/// Pieces that [`promise`] looks at, and their length: 32 KB of a chunk of any length.
const SAMPLES: usize = 64;
const SAMPLE_BYTES: usize = 512;

/// Where a sample lies in its part of the chunk, in parts of 2^16: this much further than the one before,
/// the golden section. Pages begin at regular distances, and without text.
const SAMPLE_STEP: usize = 40_503;

fn promise_with<K: Kernel>(chunk: &[u8]) -> usize {
    let part_bytes = (chunk.len() / SAMPLES).max(SAMPLE_BYTES);
    let (mut seen, mut removed) = (0, 0);
    for (index, part) in chunk.chunks(part_bytes).enumerate() {
        let room = part.len().saturating_sub(SAMPLE_BYTES);
        let start = room * (index * SAMPLE_STEP % 65_536) / 65_536;
        let piece = &part[start..part.len().min(start + SAMPLE_BYTES)];
        seen += piece.len();
        removed += K::count(piece);
    }
    removed * 1000 / seen.max(1)
}

fn narrow_with<K: Kernel>(
    chunk: &[u8],
    bytes_max: usize,
    output: &mut [u8],
    temporary: &mut [u8],
) -> Option<usize> {
    // The list is made behind all space that the text can take. A form that is no longer than its chunk has
    // a list that fits there.
    let (text, list) = output.split_at_mut_checked(HEAD_BYTES + chunk.len() / 2)?;
    let mut list = Writer::new(list);
    let (mut read, mut text_bytes, mut other_bytes) = (0, HEAD_BYTES, 0);
    while let Some(start) = K::find(chunk, read) {
        let gap = start - read;
        copy(&chunk[read..], temporary.get_mut(other_bytes..)?, gap)?;
        let pairs = K::squeeze(&chunk[start..], text.get_mut(text_bytes..)?);
        list.push(gap, pairs - RUN_PAIRS_MIN)?;
        other_bytes += gap;
        text_bytes += pairs;
        read = start + 2 * pairs;
    }
    let mut append = |bytes: &[u8]| {
        let room = temporary.get_mut(other_bytes..)?.get_mut(..bytes.len())?;
        room.copy_from_slice(bytes);
        other_bytes += bytes.len();
        Some(())
    };
    append(&chunk[read..])?;
    let lengths = [
        text_bytes - HEAD_BYTES,
        chunk.len() - 2 * (text_bytes - HEAD_BYTES),
    ];
    append(list.bytes())?;
    let bytes = text_bytes + other_bytes;
    if bytes > bytes_max {
        return None;
    }
    for (room, length) in output.as_chunks_mut::<4>().0.iter_mut().zip(lengths) {
        *room = u32::try_from(length).ok()?.to_le_bytes();
    }
    let rest = output.get_mut(text_bytes..bytes)?;
    rest.copy_from_slice(&temporary[..other_bytes]);
    Some(bytes)
}

fn widen_with<K: Kernel>(form: &[u8], chunk: &mut [u8]) -> Result<(), &'static str> {
    const SHORT: &str = "narrowed text ends early";
    const OTHER: &str = "narrowed text does not agree with its runs";
    let number = |at: usize| {
        let bytes = form.get(at..)?.first_chunk::<4>()?;
        usize::try_from(u32::from_le_bytes(*bytes)).ok()
    };
    let (text_bytes, other_bytes) = number(0).zip(number(4)).ok_or(SHORT)?;
    if text_bytes
        .checked_mul(2)
        .and_then(|both| both.checked_add(other_bytes))
        != Some(chunk.len())
    {
        return Err("narrowed text has another length than its chunk");
    }
    let rest = &form[HEAD_BYTES..];
    let (mut text, rest) = rest.split_at_checked(text_bytes).ok_or(SHORT)?;
    let (mut others, list) = rest.split_at_checked(other_bytes).ok_or(SHORT)?;
    let mut runs = Reader::new(list);
    let (mut room, mut is_first, mut has_zero) = (chunk, true, false);
    while let Some((gap, extra)) = runs.next()? {
        if gap == 0 && !is_first {
            return Err("narrowed text has a run divided in two");
        }
        is_first = false;
        let pairs = extra + RUN_PAIRS_MIN;
        if gap > others.len() || pairs > text.len() || gap + 2 * pairs > room.len() {
            return Err(OTHER);
        }
        copy(others, room, gap).ok_or(OTHER)?;
        has_zero |= K::spread(text, &mut room[gap..], pairs);
        others = &others[gap..];
        text = &text[pairs..];
        room = &mut room[gap + 2 * pairs..];
    }
    if !text.is_empty() || others.len() != room.len() {
        return Err(OTHER);
    }
    room.copy_from_slice(others);
    match has_zero {
        true => Err("narrowed text has a run with a zero"),
        false => Ok(()),
    }
}

/// Widens `form` with every implementation, for a fuzzer.
///
/// # Panics
/// If they differ, write beyond the chunk, or what they make does not survive being narrowed.
pub(crate) fn check_widening(form: &[u8], chunk_bytes: usize) {
    const GUARD: [u8; 64] = [0x5A; 64];
    let widened = [widen_with::<Best>, widen_with::<portable::Portable>].map(|widen| {
        let mut chunk = vec![0; chunk_bytes + GUARD.len()];
        chunk[chunk_bytes..].copy_from_slice(&GUARD);
        let result = widen(form, &mut chunk[..chunk_bytes]);
        assert!(chunk[chunk_bytes..] == GUARD, "written beyond the chunk");
        chunk.truncate(chunk_bytes);
        result.map(|()| chunk)
    });
    let [best, portable] = &widened;
    assert!(best == portable, "the implementations differ");
    if let Ok(chunk) = best {
        let (mut form, mut temporary) = (vec![0; chunk_bytes], vec![0; chunk_bytes]);
        if let Some(bytes) = narrow(chunk, chunk_bytes, &mut form, &mut temporary) {
            let mut again = vec![0; chunk_bytes];
            assert_eq!(widen(&form[..bytes], &mut again), Ok(()));
            assert!(again == *chunk, "narrowing changed the chunk");
        }
    }
}

/// Copies `bytes` bytes; `None` if there is no room. Short pieces are copied in one fixed length, which
/// overwrites what follows them.
#[inline]
fn copy(from: &[u8], to: &mut [u8], bytes: usize) -> Option<()> {
    if bytes <= PIECE_BYTES
        && let (Some(from), Some(to)) = (
            from.first_chunk::<PIECE_BYTES>(),
            to.first_chunk_mut::<PIECE_BYTES>(),
        )
    {
        *to = *from;
        return Some(());
    }
    to.get_mut(..bytes)?.copy_from_slice(from.get(..bytes)?);
    Some(())
}

#[cfg(test)]
mod tests;
