//! Finds earlier occurrences within a block.
//!
//! Positions are kept in rows of eight, chosen by a hash of the next octets, newest first. Each
//! position has a tag, eight more bits of the hash, so that one comparison of 64 bits finds those
//! worth looking at: on database pages nearly all of them match. Rows, other than chains, are read
//! without one load waiting for the other.

use super::BLOCK_BYTES_MAX;

/// Octets that are hashed, the shortest match that is found.
pub(super) const HASHED_BYTES: usize = 4;

/// Octets that a position must have before it to be looked up or inserted.
pub(super) const LOOKAHEAD_BYTES: usize = 8;

const ROW_BITS: u32 = 13;
const TAG_BITS: u32 = 8;

/// Eight positions and their tags, the newest in the low bits of both.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    tags: u64,
    positions: [u64; 2],
}

/// An earlier occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Match {
    pub(super) length: usize,
    pub(super) offset: usize,
}

/// The positions of one block.
#[derive(Debug)]
pub(super) struct MatchFinder {
    rows: Box<[Row; 1 << ROW_BITS]>,
}

impl MatchFinder {
    pub(super) fn new() -> Self {
        let rows = vec![Row::default(); 1 << ROW_BITS].into_boxed_slice();
        Self {
            rows: rows
                .try_into()
                .expect("the vector has the length of the array"),
        }
    }

    /// Forgets the previous block.
    ///
    /// An empty place stands for position 0 with tag 0. That is a real earlier position for all but
    /// position 0 itself, which is therefore never looked up.
    pub(super) fn clear(&mut self) {
        self.rows.fill(Row::default());
    }

    /// Inserts `position`.
    #[inline]
    pub(super) fn insert(&mut self, block: &[u8], position: usize) {
        let (row, tag) = place(block, position);
        self.rows[row].push(tag, position);
    }

    /// The longest earlier occurrence of more than `length_min` octets, and inserts `position`.
    ///
    /// Length 0 if there is none. `position` must not be 0.
    #[inline]
    pub(super) fn find_and_insert(
        &mut self,
        block: &[u8],
        position: usize,
        length_min: usize,
    ) -> Match {
        let (row, tag) = place(block, position);
        let row = &mut self.rows[row];
        let candidates = *row;
        row.push(tag, position);

        let mut best = Match {
            length: length_min,
            offset: 0,
        };
        let mut equal = equal_octets(candidates.tags, tag);
        let first = load_u64(block, position);
        while equal != 0 {
            let slot = (equal.trailing_zeros() / 8) as usize;
            equal &= equal - 1;
            let earlier = candidates.position(slot);
            let difference = load_u64(block, earlier) ^ first;
            if difference != 0 {
                let length = (difference.trailing_zeros() / 8) as usize;
                if length > best.length {
                    best = Match {
                        length,
                        offset: position - earlier,
                    };
                }
                continue;
            }
            // The octet that would make it longer decides most cases.
            let decisive = position + best.length;
            if decisive >= block.len() || block[earlier + best.length] != block[decisive] {
                continue;
            }
            let length = match_length(block, earlier, position);
            if length > best.length {
                best = Match {
                    length,
                    offset: position - earlier,
                };
            }
        }
        if best.offset == 0 {
            Match::default()
        } else {
            best
        }
    }
}

impl Row {
    #[inline]
    fn push(&mut self, tag: u8, position: usize) {
        self.tags = self.tags << 8 | u64::from(tag);
        self.positions[1] = self.positions[1] << 16 | self.positions[0] >> 48;
        self.positions[0] = self.positions[0] << 16 | position as u64;
    }

    #[inline]
    fn position(&self, slot: usize) -> usize {
        usize::from((self.positions[slot / 4 % 2] >> (slot % 4 * 16)) as u16)
    }
}

/// Row and tag of the octets at `position`.
#[inline]
fn place(block: &[u8], position: usize) -> (usize, u8) {
    let octets = load_u64(block, position) << (64 - 8 * HASHED_BYTES);
    let hash = octets.wrapping_mul(0x9E37_79B1_85EB_CA87) >> (64 - ROW_BITS - TAG_BITS);
    ((hash >> TAG_BITS) as usize, hash as u8)
}

/// The top bit of each octet of `octets` that equals `octet`.
#[inline]
fn equal_octets(octets: u64, octet: u8) -> u64 {
    const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    let difference = octets ^ u64::from_le_bytes([octet; 8]);
    !(((difference & LOW) + LOW) | difference | LOW)
}

/// How many octets at `position` equal those at `earlier`; at least eight do.
#[inline]
fn match_length(block: &[u8], earlier: usize, position: usize) -> usize {
    let limit = block.len() - position;
    let mut length = 8;
    while length + 8 <= limit {
        let difference = load_u64(block, earlier + length) ^ load_u64(block, position + length);
        if difference != 0 {
            return length + (difference.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    while length < limit && block[earlier + length] == block[position + length] {
        length += 1;
    }
    length
}

#[inline]
fn load_u64(block: &[u8], position: usize) -> u64 {
    let octets = block[position..position + 8]
        .try_into()
        .expect("the range has eight octets");
    u64::from_le_bytes(octets)
}

const _: () = assert!(BLOCK_BYTES_MAX <= 1 << 16, "positions have 16 bits");
