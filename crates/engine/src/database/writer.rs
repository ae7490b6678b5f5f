//! Who may change the database.
//!
//! Invariant: at most one [`WriterToken`] of a database exists. A write transaction holds it until
//! its commit is published or it is dropped; closing the database and restoring pages hold it, too.
//! What only the writer may do takes the token as an argument.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval for checking whether the writer has ended.
const POLL: Duration = Duration::from_millis(5);

/// Hands out the writer's token.
#[derive(Debug, Default)]
pub(super) struct Writer {
    taken: Arc<AtomicBool>,
}

/// The right to change the database, until it is dropped.
#[derive(Debug)]
pub(super) struct WriterToken(Arc<AtomicBool>);

impl Writer {
    /// `None` if another writer has it.
    pub(super) fn try_take(&self) -> Option<WriterToken> {
        let was_taken = self.taken.swap(true, Ordering::Acquire);
        (!was_taken).then(|| WriterToken(Arc::clone(&self.taken)))
    }

    /// Waits for the current writer, at most as long as `patience`.
    pub(super) fn take_within(&self, patience: Duration) -> Option<WriterToken> {
        let start = Instant::now();
        loop {
            let token = self.try_take();
            if token.is_some() || start.elapsed() >= patience {
                return token;
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for WriterToken {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
