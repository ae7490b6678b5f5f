//! The work on bytes for any processor, four pairs at a time.

use super::{Kernel, RUN_PAIRS_MIN};

pub(super) struct Portable;

/// Four pairs as a little-endian number.
const SECOND_BYTES: u64 = 0xFF00_FF00_FF00_FF00;
const CARRIES: u64 = 0x0100_0100_0100_0100;
const FIRST_BYTES: u64 = 0x00FF_00FF_00FF_00FF;

/// Whether these are four pairs (x, 0) with x not zero.
fn are_pairs(word: u64) -> bool {
    // Adding 255 carries into the second byte of a pair if its first is not zero.
    word & SECOND_BYTES == 0 && (word + FIRST_BYTES) & CARRIES == CARRIES
}

fn is_pair(pair: [u8; 2]) -> bool {
    pair[0] != 0 && pair[1] == 0
}

impl Kernel for Portable {
    fn find(input: &[u8], at: usize) -> Option<usize> {
        let windows = input.get(at..)?.array_windows_of_eight();
        windows
            .enumerate()
            .find_map(|(index, window)| are_pairs(u64::from_le_bytes(window)).then_some(at + index))
    }

    fn squeeze(input: &[u8], output: &mut [u8]) -> usize {
        let pairs = input.as_chunks::<2>().0.iter();
        let pairs = pairs.take_while(|pair| is_pair(**pair));
        let moved = output.iter_mut().zip(pairs).map(|(to, pair)| *to = pair[0]);
        moved.count()
    }

    fn spread(input: &[u8], output: &mut [u8], pairs: usize) -> bool {
        let input = &input[..pairs];
        for (pair, &byte) in output.as_chunks_mut::<2>().0.iter_mut().zip(input) {
            *pair = [byte, 0];
        }
        input.contains(&0)
    }

    fn count(piece: &[u8]) -> usize {
        let (mut at, mut pairs) = (0, 0);
        while let Some(start) = Self::find(piece, at) {
            let run = piece[start..].as_chunks::<2>().0.iter();
            let run = run.take_while(|pair| is_pair(**pair)).count();
            pairs += run;
            at = start + 2 * run;
        }
        pairs
    }
}

trait Eights {
    /// Every eight neighbouring bytes.
    fn array_windows_of_eight(&self) -> impl Iterator<Item = [u8; 2 * RUN_PAIRS_MIN]>;
}

impl Eights for [u8] {
    fn array_windows_of_eight(&self) -> impl Iterator<Item = [u8; 2 * RUN_PAIRS_MIN]> {
        self.windows(2 * RUN_PAIRS_MIN)
            .filter_map(|window| window.try_into().ok())
    }
}
