//! How a statement waits for another session's transaction on an engine database: in turn, not by trying again.
//!
//! SQLite calls a busy handler on the thread that runs the statement, without saying for which connection. A session
//! runs on one thread, so what its statement waits for is kept there.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use windlass_engine::Database;

/// Pause before a statement that had its turn and was refused for another reason tries again.
const REFUSED: Duration = Duration::from_millis(1);

struct Waiting {
    database: Weak<Database>,
    limit: Duration,
    cancel: Arc<AtomicBool>,
    begun: Instant,
}

thread_local! {
    static WAITING: RefCell<Option<Waiting>> = const { RefCell::new(None) };
}

/// Says what the next statement of this thread waits for, and how long.
pub(super) fn prepare(database: Option<Arc<Database>>, limit: Duration, cancel: &Arc<AtomicBool>) {
    WAITING.with_borrow_mut(|waiting| {
        *waiting = database.map(|database| Waiting {
            database: Arc::downgrade(&database),
            limit,
            cancel: Arc::clone(cancel),
            begun: Instant::now(),
        });
    });
}

/// Waits until it is this thread's turn to write; `false` if the time is over or the session is cancelled. SQLite gives
/// the number of calls for the same lock.
pub(super) fn wait(calls: i32) -> bool {
    WAITING.with_borrow_mut(|waiting| {
        let Some(waiting) = waiting else {
            return false;
        };
        if calls == 0 {
            waiting.begun = Instant::now();
        }
        let left = waiting.limit.saturating_sub(waiting.begun.elapsed());
        let Some(database) = waiting.database.upgrade().filter(|_| !left.is_zero()) else {
            return false;
        };
        if calls > 1 {
            std::thread::sleep(REFUSED.min(left));
        }
        let cancel = &waiting.cancel;
        database.await_writer(left, &|| cancel.load(Ordering::Relaxed))
    })
}
