//! Work that waits for other machines, done for several things at once.

use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

/// Most threads at a time.
const THREADS_MAX: usize = 64;

/// Does the work for each item, for all of them at once if they are `remote`, and returns the results in order. Where the
/// system has no thread for an item, it is done here.
///
/// # Panics
/// If the work does.
pub fn at_once<T, R>(
    items: impl IntoIterator<Item = T>,
    remote: bool,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R>
where
    T: Send,
    R: Send,
{
    let mut items: Vec<T> = items.into_iter().collect();
    if !remote || items.len() < 2 {
        return items.into_iter().map(work).collect();
    }
    let mut results = Vec::with_capacity(items.len());
    while !items.is_empty() {
        let rest = items.split_off(items.len().min(THREADS_MAX));
        let here = std::mem::replace(&mut items, rest).into_iter();
        let slots: Vec<Mutex<Option<T>>> = here.map(|item| Mutex::new(Some(item))).collect();
        let taken = |slot: &Mutex<Option<T>>| {
            let item = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
            item.map(&work)
        };
        let work = &taken;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (slots.iter())
                .map(|slot| Builder::new().spawn_scoped(scope, move || work(slot)))
                .collect();
            let joined = threads
                .into_iter()
                .zip(&slots)
                .map(|(thread, slot)| match thread {
                    Ok(thread) => thread
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                    Err(_) => work(slot),
                });
            results.extend(joined.flatten());
        });
    }
    results
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn results_are_in_order_and_only_remote_work_is_done_at_once() {
        let together = Barrier::new(3);
        let waits = |number: usize| {
            together.wait();
            number * 2
        };
        assert_eq!(at_once(0..3, true, waits), [0, 2, 4]);
        let here = std::thread::current().id();
        let is_here = |_| std::thread::current().id() == here;
        assert_eq!(at_once(0..3, false, is_here), [true; 3]);
        let many: Vec<usize> = at_once(0..200, true, |number| number);
        assert!(many.into_iter().eq(0..200));
    }

    #[test]
    #[should_panic(expected = "on purpose")]
    fn a_panic_is_that_of_the_caller() {
        at_once(0..2, true, |number| assert_ne!(number, 1, "on purpose"));
    }
}
