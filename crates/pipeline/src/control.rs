//! How a run stops: the first error is kept, and all threads exit.
//!
//! Invariant: once [`Control::fail`] was called, every thread exits within one transfer: pools are
//! closed, so no thread waits for a buffer, and each loop checks [`Control::is_stopped`] between
//! transfers. Only the first error is kept; later ones are its consequences.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use windlass_base::panic::contained;
use windlass_io::BufferPool;

use crate::coverage::Coverage;
use crate::error::Error;
use crate::live::Live;
use crate::report::Observer;

/// Shared by all threads of a run.
pub(crate) struct Control<'a> {
    observer: &'a dyn Observer,
    stopped: AtomicBool,
    first_error: Mutex<Option<Error>>,
    pools: Vec<BufferPool>,
    /// The parts of the database that are on the media, or skipped on purpose.
    pub(crate) coverage: Coverage,
    pub(crate) live: Live,
    total_bytes: u64,
    done_bytes: AtomicU64,
    stored_bytes: AtomicU64,
}

impl<'a> Control<'a> {
    /// For a run over `total_bytes` of the database, with buffers from `pools`.
    pub(crate) fn new(
        observer: &'a dyn Observer,
        total_bytes: u64,
        pools: Vec<BufferPool>,
        coverage: Coverage,
    ) -> Self {
        Self {
            observer,
            stopped: AtomicBool::new(false),
            first_error: Mutex::new(None),
            pools,
            coverage,
            live: Live::default(),
            total_bytes,
            done_bytes: AtomicU64::new(0),
            stored_bytes: AtomicU64::new(0),
        }
    }

    #[cfg(debug_assertions)]
    pub(crate) fn observer(&self) -> &dyn Observer {
        self.observer
    }

    /// Stops the run because of `error`.
    pub(crate) fn fail(&self, error: Error) {
        let mut first = self
            .first_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        drop(first);
        self.stopped.store(true, Ordering::Release);
        for pool in &self.pools {
            pool.close();
        }
    }

    /// Runs a thread's work and stops the run if it fails or panics.
    pub(crate) fn guard<T: Default>(
        &self,
        worker: &'static str,
        work: impl FnOnce() -> Result<T, Error>,
    ) -> T {
        let worked = contained(worker, work).unwrap_or_else(|panicked| Err(panicked.into()));
        worked.unwrap_or_else(|error| {
            self.fail(error);
            T::default()
        })
    }

    /// Starts a thread for guarded work. If the system has none, the run fails, and the work and what it holds are gone.
    pub(crate) fn spawn<'scope, T: Default + Send + 'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        worker: &'static str,
        work: impl FnOnce() -> Result<T, Error> + Send + 'scope,
    ) -> Option<ScopedJoinHandle<'scope, T>> {
        let started = Builder::new().spawn_scoped(scope, move || self.guard(worker, work));
        started
            .inspect_err(|error| self.fail(Error::no_thread(worker, error)))
            .ok()
    }

    /// Joins a thread whose work was guarded, if it was started.
    pub(crate) fn join<T: Default>(&self, thread: Option<ScopedJoinHandle<'_, T>>) -> T {
        let Some(thread) = thread else {
            return T::default();
        };
        let worker = "thread of the run";
        self.guard(worker, || {
            Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
        })
    }

    /// Whether threads should exit. Asks the observer, so cancellation stops here too.
    pub(crate) fn is_stopped(&self) -> bool {
        if self.stopped.load(Ordering::Acquire) {
            return true;
        }
        if self.observer.is_cancelled() {
            self.fail(Error::Cancelled);
            return true;
        }
        false
    }

    /// Counts processed bytes of the database, and their size on media.
    pub(crate) fn advance(&self, done: u64, stored: u64) {
        let done = self.done_bytes.fetch_add(done, Ordering::Relaxed) + done;
        let stored = self.stored_bytes.fetch_add(stored, Ordering::Relaxed) + stored;
        self.observer.moved(&self.live.stages());
        self.observer
            .progress(done.min(self.total_bytes), self.total_bytes, stored);
    }

    /// The result: `Err` with the first error.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        // A run cancelled during its last chunk did all its work, but the user was told that it would
        // stop.
        self.is_stopped();
        match self
            .first_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// Adds the time of some work or waiting to `into`.
pub(crate) fn timed<T>(into: &mut Duration, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = work();
    *into += begun.elapsed();
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Unobserved;

    #[test]
    fn the_first_error_is_the_one_reported() {
        let control = Control::new(
            &Unobserved,
            0,
            vec![BufferPool::new(0, 1)],
            Coverage::default(),
        );
        control.fail(Error::Cancelled);
        control.fail(Error::SetNotFound {
            device: "a".to_owned(),
            position: 3,
            count: 1,
        });
        assert!(control.is_stopped());
        assert!(matches!(control.finish(), Err(Error::Cancelled)));
    }

    #[test]
    fn a_panic_is_an_error_that_names_the_worker_and_wakes_whoever_waits_for_a_buffer() {
        let pool = BufferPool::new(0, 1);
        let control = Control::new(&Unobserved, 0, vec![pool.clone()], Coverage::default());
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(pool.take().is_none()));
            let done: u8 = control.guard("reader", || panic!("page 7"));
            assert_eq!(done, 0);
        });
        let error = control.finish().unwrap_err();
        assert!(matches!(&error, Error::Panicked(panicked)
            if panicked.worker == "reader" && panicked.reason == "page 7"));
    }
}
