//! Who may change the database.
//!
//! Those who wait get their turn in the order in which they came. A turn is kept for its thread for a moment, because
//! a connection of SQLite that waited has to begin again before it writes.
//!
//! Invariant: at most one [`WriterToken`] of a database exists. A write transaction holds it until
//! its commit is published or it is dropped; closing the database and restoring pages hold it, too.
//! What only the writer may do takes the token as an argument.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::{Thread, ThreadId};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

/// How long a turn is kept for a thread that does not take it.
const TURN: Duration = Duration::from_millis(50);
/// How often the first of those who wait looks whether a turn has lapsed.
const FIRST_LOOKS: Duration = Duration::from_millis(20);
/// How often the others look whether they are cancelled.
const OTHERS_LOOK: Duration = Duration::from_millis(200);

/// Hands out the writer's token.
#[derive(Debug, Default)]
pub(super) struct Writer(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_taken: bool,
    /// Whose turn it is, and since when; only while nobody has the token.
    turn: Option<(ThreadId, Instant)>,
    waiting: VecDeque<Thread>,
}

impl State {
    /// Whether a thread may take the token now.
    fn is_free_for(&self, thread: ThreadId) -> bool {
        let is_others =
            |(whose, since): (ThreadId, Instant)| whose != thread && since.elapsed() < TURN;
        !self.is_taken && !self.turn.is_some_and(is_others)
    }

    /// Gives the turn to the next, and wakes only that one: to wake all would cost more than what they wait for.
    fn pass_on(&mut self) {
        let next = self.waiting.pop_front();
        self.turn = next.as_ref().map(|next| (next.id(), Instant::now()));
        if let Some(next) = next {
            next.unpark();
        }
    }

    /// Until when a thread may sleep, if it is not woken.
    fn pause(&self, thread: ThreadId) -> Duration {
        match self.waiting.front() {
            Some(first) if first.id() == thread => FIRST_LOOKS,
            _ => OTHERS_LOOK,
        }
    }

    fn has_turn(&self, thread: ThreadId) -> bool {
        self.turn.is_some_and(|(whose, _)| whose == thread)
    }
}

/// The right to change the database, until it is dropped.
#[derive(Debug)]
pub(super) struct WriterToken(Arc<Shared>);

impl Writer {
    /// `None` if another writer has it, or it is the turn of one who waited.
    pub(super) fn try_take(&self) -> Option<WriterToken> {
        let mut state = self.0.state.lock();
        if !state.is_free_for(std::thread::current().id()) {
            return None;
        }
        state.turn = None;
        state.is_taken = true;
        Some(WriterToken(Arc::clone(&self.0)))
    }

    /// Waits for this thread's turn, at most as long as `patience`, and until `is_cancelled`. Whether it came: then
    /// [`Writer::try_take`] succeeds, if it is called soon.
    pub(super) fn wait(&self, patience: Duration, is_cancelled: &dyn Fn() -> bool) -> bool {
        let (begun, own) = (Instant::now(), std::thread::current());
        let thread = own.id();
        let mut state = self.0.state.lock();
        if state.is_free_for(thread) && state.waiting.is_empty() {
            state.turn = Some((thread, Instant::now()));
            return true;
        }
        state.waiting.push_back(own);
        loop {
            let left = patience.saturating_sub(begun.elapsed());
            if state.has_turn(thread) {
                return true;
            }
            if left.is_zero() || is_cancelled() {
                state.waiting.retain(|waiting| waiting.id() != thread);
                return false;
            }
            // The one whose turn it was did not take it.
            if state.is_free_for(thread) {
                state.pass_on();
                continue;
            }
            let pause = state.pause(thread).min(left);
            MutexGuard::unlocked(&mut state, || std::thread::park_timeout(pause));
        }
    }

    /// Waits for the current writer, at most as long as `patience`.
    pub(super) fn take_within(&self, patience: Duration) -> Option<WriterToken> {
        self.wait(patience, &|| false);
        self.try_take()
    }
}

impl Drop for WriterToken {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_taken = false;
        state.pass_on();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn never() -> bool {
        false
    }

    #[test]
    fn turns_come_in_order() {
        let writer = Writer::default();
        let order = Mutex::new(Vec::new());
        let queued = AtomicUsize::new(0);
        let first = writer.try_take().unwrap();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (writer, order, queued) = (&writer, &order, &queued);
                scope.spawn(move || {
                    while queued.load(Ordering::SeqCst) < number {
                        std::thread::yield_now();
                    }
                    // The next may come once this one waits.
                    let comes = || {
                        let _next = queued.compare_exchange(
                            number,
                            number + 1,
                            Ordering::SeqCst,
                            Ordering::SeqCst,
                        );
                        false
                    };
                    assert!(writer.wait(LONG, &comes));
                    let token = writer.try_take().unwrap();
                    order.lock().push(number);
                    drop(token);
                });
            }
            while queued.load(Ordering::SeqCst) < 8 {
                std::thread::yield_now();
            }
            drop(first);
        });
        assert_eq!(*order.lock(), (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn a_turn_is_kept_for_its_thread_and_lapses() {
        let writer = Writer::default();
        assert!(writer.wait(LONG, &never));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(writer.try_take().is_none(), "it is another's turn");
                assert!(writer.wait(LONG, &never), "which has lapsed");
                assert!(writer.try_take().is_some());
            });
        });
        assert!(writer.try_take().is_some());
    }

    #[test]
    fn who_waits_gives_up_when_time_is_over_or_it_is_cancelled() {
        let writer = Writer::default();
        let token = writer.try_take().unwrap();
        assert!(!writer.wait(Duration::from_millis(1), &never));
        let is_cancelled = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let waiting =
                scope.spawn(|| writer.wait(LONG, &|| is_cancelled.load(Ordering::SeqCst)));
            is_cancelled.store(true, Ordering::SeqCst);
            assert!(!waiting.join().unwrap());
        });
        drop(token);
        assert!(writer.try_take().is_some(), "nobody waits any more");
    }
}
