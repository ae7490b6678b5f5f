//! Which media family gets which chunk.
//!
//! By demand, the family that is free first takes the next chunk, so that a slow device holds up no other. Evenly,
//! each chunk goes to the family with the fewest bytes: the stripes differ by at most one chunk, and the slowest
//! device sets the pace.

use std::sync::{Mutex, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded};

/// Where the transform stage puts its chunks.
#[derive(Debug)]
pub(super) struct Stripes<T> {
    /// One queue for all families, or one for each.
    queues: Vec<Sender<T>>,
    /// Bytes that each queue was given.
    given: Mutex<Vec<u64>>,
}

impl<T> Stripes<T> {
    /// Queues for `families`, of which each holds as many chunks as there can be; and their ends, in order.
    pub(super) fn new(families: usize, is_even: bool, chunks: usize) -> (Self, Vec<Receiver<T>>) {
        let families = families.max(1);
        let queues = if is_even { families } else { 1 };
        let (queues, ends): (Vec<_>, Vec<_>) = (0..queues).map(|_| bounded(chunks)).unzip();
        let given = Mutex::new(vec![0; queues.len()]);
        let ends = ends.into_iter().cycle().take(families).collect();
        (Self { queues, given }, ends)
    }

    /// Passes on a chunk of `bytes`. `false` if nobody takes it any more.
    pub(super) fn send(&self, chunk: T, bytes: u64) -> bool {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let least = (0..given.len()).min_by_key(|queue| given[*queue]);
        let least = least.unwrap_or_default();
        if let Some(given) = given.get_mut(least) {
            *given += bytes;
        }
        drop(given);
        let queue = self.queues.get(least);
        queue.is_some_and(|queue| queue.send(chunk).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends chunks of very different sizes; returns the bytes that each family has then.
    fn spread(families: usize, is_even: bool) -> Vec<u64> {
        let sizes = (1..500).map(|number: u64| number * 7919 % 1000 + 1);
        let (stripes, ends) = Stripes::new(families, is_even, 500);
        for bytes in sizes {
            assert!(stripes.send(bytes, bytes));
        }
        drop(stripes);
        ends.iter().map(|end| end.iter().sum()).collect()
    }

    #[test]
    fn even_stripes_differ_by_at_most_one_chunk() {
        for families in [1, 2, 3, 8] {
            let bytes = spread(families, true);
            let (least, most) = (bytes.iter().min(), bytes.iter().max());
            assert!(most.unwrap() - least.unwrap() <= 1000, "{bytes:?}");
        }
    }

    #[test]
    fn by_demand_the_first_that_is_free_takes_everything() {
        let bytes = spread(3, false);
        assert!(bytes[0] > 0 && bytes[1..] == [0, 0], "{bytes:?}");
    }

    #[test]
    fn nobody_waits_for_a_family_that_is_gone() {
        let (stripes, ends) = Stripes::new(2, true, 1);
        drop(ends);
        assert!(!stripes.send(1, 1));
    }
}
