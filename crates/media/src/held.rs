//! Which extents of a data file a set contains, if not all.
//!
//! Stored as runs if they fit, else as their number and a sum. Both show whether a set is complete;
//! only runs show what is missing.

use std::ops::Range;

use crate::chunk::chunk_mix;

const RUNS: u8 = 1;
const SUM: u8 = 2;

/// Maximum bytes for the runs of all files of a set: every reader of the headers reads them.
pub const HELD_BYTES_MAX: usize = 120 << 10;

/// What [`DatabaseFile::held`](crate::DatabaseFile::held) says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held<'a> {
    Whole,
    Runs(HeldRuns<'a>),
    /// This many, with this sum: see [`Held::sum_of`].
    Sum {
        extents: u64,
        /// Sum over their runs.
        sum: u64,
    },
}

/// Runs of extents, ascending, with at least one extent between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRuns<'a> {
    rest: &'a [u8],
    at: u64,
}

impl Iterator for HeldRuns<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        let start = self.at.checked_add(number(&mut self.rest)?)?;
        let end = start.checked_add(number(&mut self.rest)?)?;
        self.at = end;
        Some(start..end)
    }
}

impl<'a> Held<'a> {
    /// Reads the stored form; `None` if invalid.
    pub fn parse(stored: &'a [u8]) -> Option<Self> {
        match stored.split_first() {
            None => Some(Self::Whole),
            Some((&RUNS, rest)) => {
                let mut runs = HeldRuns { rest, at: 0 };
                let mut before = None;
                while !runs.rest.is_empty() {
                    let run = runs.next()?;
                    if run.is_empty() || before == Some(run.start) {
                        return None;
                    }
                    before = Some(run.end);
                }
                Some(Self::Runs(HeldRuns { rest, at: 0 }))
            }
            Some((&SUM, rest)) => {
                let (extents, sum) = rest.split_first_chunk::<8>()?;
                Some(Self::Sum {
                    extents: u64::from_le_bytes(*extents),
                    sum: u64::from_le_bytes(sum.try_into().ok()?),
                })
            }
            Some(_) => None,
        }
    }

    /// The stored form of ascending runs with at least one extent between them: the runs themselves
    /// if they take at most `bytes_max` bytes.
    pub fn store(runs: impl Iterator<Item = Range<u64>> + Clone, bytes_max: usize) -> Vec<u8> {
        let (mut stored, mut at) = (vec![RUNS], 0);
        for run in runs.clone() {
            put_number(&mut stored, run.start - at);
            put_number(&mut stored, run.end - run.start);
            at = run.end;
            if stored.len() > bytes_max {
                let (extents, sum) = Self::sum_of(runs);
                stored = vec![SUM];
                stored.extend_from_slice(&extents.to_le_bytes());
                stored.extend_from_slice(&sum.to_le_bytes());
                break;
            }
        }
        stored
    }

    /// The number of extents, and the sum modulo 2^64 of [`chunk_mix`] of the first extent and the
    /// length of each run.
    pub fn sum_of(runs: impl Iterator<Item = Range<u64>>) -> (u64, u64) {
        runs.fold((0, 0), |(extents, sum), run| {
            let count = run.end.saturating_sub(run.start);
            let mixed = chunk_mix(run.start, count);
            (extents + count, u64::wrapping_add(sum, mixed))
        })
    }
}

/// Appends a number with seven bits per byte, lowest first; the top bit says that more follow.
fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7F {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a number; `None` if it does not end, is longer than necessary, or has more than 63 bits.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return (byte != 0 || shift == 0).then_some(value);
        }
    }
    None
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "one run is one range here")]
mod tests {
    use super::*;

    fn runs_of(stored: &[u8]) -> Vec<Range<u64>> {
        match Held::parse(stored).unwrap() {
            Held::Runs(runs) => runs.collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn runs_round_trip_and_are_small() {
        for runs in [
            vec![],
            vec![0..1],
            vec![5..300],
            vec![126..127, 254..382],
            vec![127..255, 383..384],
            vec![0..16384, 16390..16391, 1 << 40..1 << 41],
        ] {
            let stored = Held::store(runs.iter().cloned(), 100);
            assert_eq!(runs_of(&stored), runs);
        }
        assert_eq!(Held::store([0..100].into_iter(), 100), [RUNS, 0, 100]);
        assert_eq!(Held::parse(&[]), Some(Held::Whole));
    }

    #[test]
    fn too_many_runs_become_a_sum_that_tells_other_runs() {
        let runs = (0..100).map(|number| 2 * number..2 * number + 1);
        let stored = Held::store(runs.clone(), 50);
        let (extents, sum) = Held::sum_of(runs.clone());
        assert_eq!(extents, 100);
        assert_eq!(Held::parse(&stored), Some(Held::Sum { extents, sum }));
        let bytes = Held::store(runs.clone(), usize::MAX).len();
        assert_eq!(Held::store(runs.clone(), bytes).len(), bytes, "just enough");
        assert_eq!(Held::store(runs.clone(), bytes - 1), stored);
        assert_ne!(Held::sum_of(runs.clone().skip(1)), (extents, sum));
        let moved = runs.map(|run| if run.start == 50 { 51..52 } else { run });
        assert_ne!(Held::sum_of(moved), (extents, sum));
    }

    #[test]
    fn what_no_writer_stores_is_refused() {
        for stored in [
            &[0][..],
            &[3, 0, 1],
            &[RUNS, 0],
            &[RUNS, 0, 0],
            &[RUNS, 0, 1, 0, 1],
            &[RUNS, 0x80, 0, 1],
            &[
                RUNS, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1,
            ],
            &[RUNS, 0, 0x80],
            &[SUM, 1, 2, 3],
            &[SUM, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ] {
            assert_eq!(Held::parse(stored), None, "{stored:?}");
        }
        let most = [RUNS, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F];
        let twice = [&most[..], &most[1..], &[1, 1]].concat();
        assert_eq!(Held::parse(&twice), None, "beyond all numbers");
    }
}
