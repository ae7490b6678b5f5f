//! Text narrowing: a reversible filter for UTF-16 text, applied before a compressor.
//!
//! Most of what SQL Server stores is `nvarchar`, and every second byte of that is zero. A compressor
//! that sees bytes pays for the zeros in time and in size. This filter removes them from *runs* of
//! pairs (x, 0) with x not zero, and records where the runs were. Text in records starts at odd and
//! at even offsets, so a run starts at any byte.
//!
//! The *narrowed form* of a chunk is described in `docs/codecs.md`: the length of the body, the body,
//! the list of runs. It is always shorter than the chunk; a chunk that this does not hold for, or
//! that gains little, is compressed as it is.
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

/// Bytes of the length before the body.
const LENGTH_BYTES: usize = 4;

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
/// is at most `bytes_max` long. `output` is as long as the chunk; `list`, too, is overwritten.
pub(crate) fn narrow(
    chunk: &[u8],
    bytes_max: usize,
    output: &mut [u8],
    list: &mut [u8],
) -> Option<usize> {
    narrow_with::<Best>(chunk, bytes_max, output, list)
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

fn promise_with<K: Kernel>(chunk: &[u8]) -> usize {
    let distance = (chunk.len() / SAMPLES).max(SAMPLE_BYTES);
    let (mut seen, mut removed) = (0, 0);
    for start in chunk.chunks(distance) {
        let piece = &start[..start.len().min(SAMPLE_BYTES)];
        seen += piece.len();
        removed += K::count(piece);
    }
    removed * 1000 / seen.max(1)
}

fn narrow_with<K: Kernel>(
    chunk: &[u8],
    bytes_max: usize,
    output: &mut [u8],
    list: &mut [u8],
) -> Option<usize> {
    let body = output.get_mut(LENGTH_BYTES..)?;
    let mut list = Writer::new(list);
    let (mut read, mut written) = (0, 0);
    while let Some(start) = K::find(chunk, read) {
        copy(&chunk[read..], body.get_mut(written..)?, start - read)?;
        written += start - read;
        let pairs = K::squeeze(&chunk[start..], body.get_mut(written..)?);
        written += pairs;
        list.push(start - read, pairs - RUN_PAIRS_MIN)?;
        read = start + 2 * pairs;
    }
    let rest = &chunk[read..];
    body.get_mut(written..)?
        .get_mut(..rest.len())?
        .copy_from_slice(rest);
    written += rest.len();
    let list = list.bytes();
    body.get_mut(written..)?
        .get_mut(..list.len())?
        .copy_from_slice(list);
    output[..LENGTH_BYTES].copy_from_slice(&u32::try_from(written).ok()?.to_le_bytes());
    let bytes = LENGTH_BYTES + written + list.len();
    (bytes <= bytes_max).then_some(bytes)
}

fn widen_with<K: Kernel>(form: &[u8], chunk: &mut [u8]) -> Result<(), &'static str> {
    const SHORT: &str = "narrowed text ends early";
    const LONG: &str = "narrowed text is longer than its chunk";
    let (length, rest) = form.split_first_chunk::<LENGTH_BYTES>().ok_or(SHORT)?;
    let length = u32::from_le_bytes(*length) as usize;
    let (body, list) = rest.split_at_checked(length).ok_or(SHORT)?;
    let mut runs = Reader::new(list);
    let (mut read, mut written) = (0, 0);
    let mut has_zero = false;
    while let Some((gap, extra)) = runs.next()? {
        if gap == 0 && written > 0 {
            return Err("narrowed text has a run divided in two");
        }
        let pairs = extra + RUN_PAIRS_MIN;
        let (from, to) = (
            body.get(read..).ok_or(SHORT)?,
            chunk.get_mut(written..).ok_or(LONG)?,
        );
        if from.len() < gap + pairs {
            return Err(SHORT);
        }
        if to.len() < gap + 2 * pairs {
            return Err(LONG);
        }
        copy(from, to, gap).ok_or(LONG)?;
        has_zero |= K::spread(&from[gap..], &mut to[gap..], pairs);
        read += gap + pairs;
        written += gap + 2 * pairs;
    }
    let (rest, to) = (&body[read..], &mut chunk[written..]);
    if rest.len() != to.len() {
        return Err("narrowed text has another length than its chunk");
    }
    to.copy_from_slice(rest);
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
        let (mut form, mut list) = (vec![0; chunk_bytes], vec![0; chunk_bytes]);
        if let Some(bytes) = narrow(chunk, chunk_bytes, &mut form, &mut list) {
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
