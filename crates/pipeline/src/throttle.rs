//! Limits a stage to the rate set by the user.

use std::time::{Duration, Instant};

use windlass_base::rate::RateLimit;

use crate::control::Control;
use crate::report::StageCounters;

/// Maximum sleep before checking whether the run continues.
const SLEEP: Duration = Duration::from_millis(50);

/// A rate limit and its clock. Owned by one thread.
#[derive(Debug)]
pub(crate) struct Throttle {
    limit: RateLimit,
    begun: Instant,
}

impl Throttle {
    /// A limit starting now; `None` without a rate.
    pub(crate) fn new(bytes_per_second: Option<u64>) -> Option<Self> {
        bytes_per_second.map(|rate| Self {
            limit: RateLimit::new(rate),
            begun: Instant::now(),
        })
    }

    /// Whether bytes may move now.
    pub(crate) fn is_open(&self) -> bool {
        self.limit.wait(self.begun.elapsed()).is_zero()
    }

    /// Sleeps until bytes may move, or the run stops.
    pub(crate) fn hold(&self, control: &Control<'_>, counters: &mut StageCounters) {
        let begun = Instant::now();
        loop {
            let wait = self.limit.wait(self.begun.elapsed());
            if wait.is_zero() || control.is_stopped() {
                break;
            }
            std::thread::sleep(wait.min(SLEEP));
        }
        let held = begun.elapsed();
        counters.busy += held;
        counters.held_back += held;
    }

    /// Counts bytes that move.
    pub(crate) fn take(&mut self, bytes: u64) {
        self.limit.take(bytes, self.begun.elapsed());
    }
}
