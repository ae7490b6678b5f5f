//! Finds earlier occurrences within a block.
//!
//! Each position is stored under two hashes: of its next four bytes, which finds short matches near
//! by, and of its next seven, which finds long ones anywhere. Each hash has the newest two
//! positions. All four candidates are always compared over sixteen bytes, without a branch: on a
//! database page the best candidate cannot be predicted, and a misprediction costs more than all
//! the comparisons. Chains of positions find more, but each step waits for the previous one.
//!
//! The block is copied into a window of fixed length, so that any 16-bit position can be loaded
//! without a check.

use super::BLOCK_BYTES_MAX;

/// Bytes that must follow a position so that it can be looked up or inserted.
pub(super) const LOOKAHEAD_BYTES: usize = 16;

/// Bytes compared per candidate at first.
const COMPARED_BYTES: usize = LOOKAHEAD_BYTES;

const NEAR_BYTES: u32 = 4;
const NEAR_BITS: u32 = 14;
const FAR_BYTES: u32 = 7;
const FAR_BITS: u32 = 15;

/// An earlier occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) length: usize,
    pub(super) offset: usize,
}

/// The positions of one block.
#[derive(Debug)]
pub(super) struct MatchFinder {
    window: Box<Window>,
    /// Bytes of the window that belong to the block; zeros follow.
    block_bytes: usize,
    near: Box<[Newest; 1 << NEAR_BITS]>,
    far: Box<[Newest; 1 << FAR_BITS]>,
}

type Window = [u8; BLOCK_BYTES_MAX + COMPARED_BYTES];

/// The newest two positions of a hash, the newer one in the low half.
///
/// An empty slot means position 0. That is a real earlier position for all positions except 0 itself,
/// which is therefore never searched for.
#[derive(Debug, Clone, Copy, Default)]
struct Newest(u32);

/// The candidates of a position, and what is known of the best one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    /// How many bytes match, if fewer than [`COMPARED_BYTES`].
    length: usize,
    offset: u16,
    near: Newest,
    far: Newest,
}

/// The cost of literals and matches, in quarters of a bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weights {
    pub(super) literal: i32,
    /// A match without the bits of its offset.
    pub(super) matched: i32,
}

impl MatchFinder {
    pub(super) fn new() -> Self {
        Self {
            window: boxed(0),
            block_bytes: 0,
            near: boxed(Newest::default()),
            far: boxed(Newest::default()),
        }
    }

    /// Discards the previous block and starts with this one.
    pub(super) fn start(&mut self, block: &[u8]) {
        self.near.fill(Newest::default());
        self.far.fill(Newest::default());
        self.window[..block.len()].copy_from_slice(block);
        self.window[block.len()..][..COMPARED_BYTES].fill(0);
        self.block_bytes = block.len();
    }

    #[inline]
    pub(super) fn insert(&mut self, position: u16) {
        let (near, far) = self.places(position);
        self.near[near].push(position);
        self.far[far].push(position);
    }

    /// The best earlier occurrence of the bytes at `position`, which is inserted.
    ///
    /// `position` must not be 0, and must not have been inserted.
    #[inline]
    pub(super) fn find_and_insert(&mut self, position: u16) -> Found {
        let (near_place, far_place) = self.places(position);
        let (near, far) = (self.near[near_place], self.far[far_place]);
        self.near[near_place].push(position);
        self.far[far_place].push(position);
        let here = self.load(position);
        // The longest match, and the newest of those: matching bytes count more than the position.
        let rank = |earlier: u16| {
            let equal_bits = (self.load(earlier) ^ here).trailing_zeros() & !7;
            equal_bits << 16 | u32::from(earlier)
        };
        let best_far = rank(far.newer()).max(rank(far.older()));
        let best = best_far.max(rank(near.newer()).max(rank(near.older())));
        Found {
            length: (best >> 19) as usize,
            offset: position - best as u16,
            near,
            far,
        }
    }

    /// The match to use among those found at `position`.
    #[inline]
    pub(super) fn longest(&self, position: u16, found: Found) -> Match {
        if found.is_long() {
            return self.longest_of_long(position, found);
        }
        Match {
            length: found.length,
            offset: usize::from(found.offset),
        }
    }

    /// Compares candidates of at least [`COMPARED_BYTES`] to their ends.
    #[inline(never)]
    fn longest_of_long(&self, position: u16, found: Found) -> Match {
        let (near, far) = (found.near, found.far);
        let here = self.load(position);
        let position_at = usize::from(position);
        let mut best = Match {
            length: 0,
            offset: 0,
        };
        for earlier in [near.newer(), far.newer(), near.older(), far.older()] {
            if self.load(earlier) == here {
                let offset = position_at - usize::from(earlier);
                let length = self.match_length(position_at, offset);
                if length > best.length {
                    best = Match { length, offset };
                }
            }
        }
        best
    }

    /// The number of bytes that repeat those `offset` before; at least [`COMPARED_BYTES`].
    fn match_length(&self, position: usize, offset: usize) -> usize {
        let block = &self.window[..self.block_bytes];
        let ahead = &block[position + COMPARED_BYTES..];
        let behind = &block[position + COMPARED_BYTES - offset..];
        let (ahead_words, ahead_rest) = ahead.as_chunks::<8>();
        let behind_words = behind.as_chunks::<8>().0;
        let mut length = COMPARED_BYTES;
        for (one, other) in ahead_words.iter().zip(behind_words) {
            let difference = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
            if difference != 0 {
                return length + (difference.trailing_zeros() / 8) as usize;
            }
            length += 8;
        }
        let behind_rest = &behind[length - COMPARED_BYTES..];
        let equal = ahead_rest
            .iter()
            .zip(behind_rest)
            .take_while(|(one, other)| one == other);
        length + equal.count()
    }

    /// The slots for positions with the same bytes as `position`.
    #[inline]
    fn places(&self, position: u16) -> (usize, usize) {
        const MULTIPLIER: u64 = 0x9E37_79B1_85EB_CA87;
        let word = self.load(position) as u64;
        let hash = |bytes: u32, bits: u32| {
            ((word << (64 - 8 * bytes)).wrapping_mul(MULTIPLIER) >> (64 - bits)) as usize
        };
        (hash(NEAR_BYTES, NEAR_BITS), hash(FAR_BYTES, FAR_BITS))
    }

    #[inline]
    fn load(&self, position: u16) -> u128 {
        let start = usize::from(position);
        let bytes = self.window[start..start + COMPARED_BYTES]
            .try_into()
            .expect("the range has that many bytes");
        u128::from_le_bytes(bytes)
    }
}

impl Newest {
    #[inline]
    fn push(&mut self, position: u16) {
        self.0 = self.0 << 16 | u32::from(position);
    }

    #[inline]
    fn newer(self) -> u16 {
        self.0 as u16
    }

    #[inline]
    fn older(self) -> u16 {
        (self.0 >> 16) as u16
    }
}

impl Found {
    /// Whether all the compared bytes match, and possibly more.
    #[inline]
    pub(super) fn is_long(&self) -> bool {
        self.length >= COMPARED_BYTES
    }

    /// Savings of the match, in quarters of a bit; 0 or less if literals are no worse.
    #[inline]
    pub(super) fn savings(&self, weights: Weights) -> i32 {
        let offset_bits = (u32::from(self.offset) | 1).ilog2();
        self.length as i32 * weights.literal - (4 * offset_bits).cast_signed() - weights.matched
    }
}

/// A large array allocated on the heap.
fn boxed<T: Copy + std::fmt::Debug, const N: usize>(value: T) -> Box<[T; N]> {
    vec![value; N]
        .into_boxed_slice()
        .try_into()
        .expect("the vector has the length of the array")
}

const _: () = assert!(BLOCK_BYTES_MAX <= 1 << 16, "positions have 16 bits");
