//! The work on bytes with SSE2, which every x86-64 processor has: 16 bytes at a time.
//!
//! Only the calls into this code need `unsafe`. The compiler makes single instructions of the conversions
//! in [`load`] and [`store`], so pointers are not needed.

use std::arch::x86_64::{
    __m128i, _mm_cmpeq_epi8, _mm_cvtsi128_si64, _mm_movemask_epi8, _mm_packus_epi16,
    _mm_set_epi64x, _mm_setzero_si128, _mm_unpackhi_epi8, _mm_unpackhi_epi64, _mm_unpacklo_epi8,
};

use super::portable::Portable;
use super::{Kernel, RUN_PAIRS_MIN};

pub(super) struct Sse2;

/// Bytes of a register.
const LANES: usize = 16;

/// Bytes whose zeros fit a mask.
const MASK_BYTES: usize = 64;

/// Positions of a mask at which it is known whether a run starts.
const KNOWN: usize = MASK_BYTES - (2 * RUN_PAIRS_MIN - 1);

/// The zeros of 16 pairs.
const SECOND_BYTES: u32 = 0xAAAA_AAAA;

#[inline]
#[target_feature(enable = "sse2")]
fn load(bytes: &[u8; LANES]) -> __m128i {
    let number = u128::from_le_bytes(*bytes);
    _mm_set_epi64x((number >> 64) as i64, number as i64)
}

#[inline]
#[target_feature(enable = "sse2")]
fn store(bytes: &mut [u8; LANES], lanes: __m128i) {
    let (low, high) = (
        _mm_cvtsi128_si64(lanes) as u64,
        _mm_cvtsi128_si64(_mm_unpackhi_epi64(lanes, lanes)) as u64,
    );
    *bytes = (u128::from(high) << 64 | u128::from(low)).to_le_bytes();
}

/// A bit for each zero of 16 bytes.
#[inline]
#[target_feature(enable = "sse2")]
fn zeros(lanes: __m128i) -> u32 {
    _mm_movemask_epi8(_mm_cmpeq_epi8(lanes, _mm_setzero_si128())) as u32
}

/// A bit for each position of 64 bytes at which a run starts, or goes on for at least as long; only the
/// first [`KNOWN`] count.
#[inline]
#[target_feature(enable = "sse2")]
fn starts(bytes: &[u8; MASK_BYTES]) -> u64 {
    let mut mask = 0;
    for (index, lanes) in bytes.as_chunks::<LANES>().0.iter().enumerate() {
        mask |= u64::from(zeros(load(lanes))) << (LANES * index);
    }
    let pairs = !mask & mask >> 1;
    let two = pairs & pairs >> 2;
    two & two >> 4
}

impl Kernel for Sse2 {
    #[inline]
    fn find(input: &[u8], at: usize) -> Option<usize> {
        // SAFETY: every x86-64 processor has SSE2.
        unsafe { find(input, at) }
    }

    #[inline]
    fn squeeze(input: &[u8], output: &mut [u8]) -> usize {
        // SAFETY: as above.
        unsafe { squeeze(input, output) }
    }

    #[inline]
    fn spread(input: &[u8], output: &mut [u8], pairs: usize) -> bool {
        // SAFETY: as above.
        unsafe { spread(input, output, pairs) }
    }

    #[inline]
    fn count(piece: &[u8]) -> usize {
        // SAFETY: as above.
        unsafe { count(piece) }
    }
}

#[inline]
#[target_feature(enable = "sse2")]
fn find(input: &[u8], mut at: usize) -> Option<usize> {
    while let Some(bytes) = input.get(at..).and_then(<[u8]>::first_chunk::<MASK_BYTES>) {
        let starts = starts(bytes);
        if starts != 0 {
            return Some(at + starts.trailing_zeros() as usize);
        }
        at += KNOWN;
    }
    Portable::find(input, at)
}

#[inline]
#[target_feature(enable = "sse2")]
fn squeeze(input: &[u8], output: &mut [u8]) -> usize {
    let (pieces, _) = input.as_chunks::<{ 2 * LANES }>();
    let (rooms, _) = output.as_chunks_mut::<LANES>();
    let mut pairs = 0;
    for (piece, room) in pieces.iter().zip(rooms) {
        let [low, high] = piece.as_chunks::<LANES>().0 else {
            break;
        };
        let (low, high) = (load(low), load(high));
        // Of a pair, this keeps the first byte.
        store(room, _mm_packus_epi16(low, high));
        let others = (zeros(low) | zeros(high) << LANES) ^ SECOND_BYTES;
        if others != 0 {
            return pairs + others.trailing_zeros() as usize / 2;
        }
        pairs += LANES;
    }
    let (input, output) = (&input[2 * pairs..], &mut output[pairs..]);
    pairs + Portable::squeeze(input, output)
}

#[inline]
#[target_feature(enable = "sse2")]
fn spread(input: &[u8], output: &mut [u8], pairs: usize) -> bool {
    let none = _mm_setzero_si128();
    let (pieces, _) = input.as_chunks::<LANES>();
    let (rooms, _) = output.as_chunks_mut::<{ 2 * LANES }>();
    let (mut done, mut found) = (0, 0);
    for (piece, room) in pieces.iter().zip(rooms) {
        let [low, high] = room.as_chunks_mut::<LANES>().0 else {
            break;
        };
        let lanes = load(piece);
        store(low, _mm_unpacklo_epi8(lanes, none));
        store(high, _mm_unpackhi_epi8(lanes, none));
        if pairs - done <= LANES {
            return (found | zeros(lanes) << (LANES - (pairs - done))) as u16 != 0;
        }
        found |= zeros(lanes);
        done += LANES;
    }
    let rest = Portable::spread(&input[done..], &mut output[2 * done..], pairs - done);
    rest || found != 0
}

#[inline]
#[target_feature(enable = "sse2")]
fn count(piece: &[u8]) -> usize {
    let masks = piece.as_chunks::<MASK_BYTES>().0.iter();
    let counted = masks.map(|bytes| {
        let starts = starts(bytes);
        let two = starts | starts << 2;
        (two | two << 4).count_ones() as usize
    });
    counted.sum()
}
