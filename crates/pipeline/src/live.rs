//! What the stages have done so far, for other sessions and for the controller.
//!
//! Each thread has its own counters and publishes the difference after every transfer, so the
//! totals lag by the transfers in flight.

use std::sync::{Mutex, PoisonError};

use windlass_io::processor::thread_time;

use crate::report::{Stage, StageCounters, Stages};

/// The totals over all threads.
#[derive(Debug, Default)]
pub(crate) struct Live {
    stages: [Mutex<StageCounters>; 3],
}

impl Live {
    fn stage(&self, stage: Stage) -> &Mutex<StageCounters> {
        match stage {
            Stage::Read => &self.stages[0],
            Stage::Transform => &self.stages[1],
            Stage::Write => &self.stages[2],
        }
    }

    /// The current totals of all stages.
    pub(crate) fn stages(&self) -> Stages {
        let of = |stage| {
            let counters = self.stage(stage).lock();
            *counters.unwrap_or_else(PoisonError::into_inner)
        };
        Stages {
            read: of(Stage::Read),
            transform: of(Stage::Transform),
            write: of(Stage::Write),
        }
    }
}

/// The counters of one thread.
#[derive(Debug)]
pub(crate) struct Meter<'a> {
    live: &'a Live,
    stage: Stage,
    pub(crate) counters: StageCounters,
    reported: StageCounters,
}

impl<'a> Meter<'a> {
    /// For a thread of `stage` that starts its work.
    pub(crate) fn begin(live: &'a Live, stage: Stage) -> Self {
        Self {
            live,
            stage,
            counters: StageCounters::of_thread(),
            reported: StageCounters::default(),
        }
    }

    /// Publishes what was done since the last call.
    pub(crate) fn announce(&mut self) {
        self.counters.cpu = thread_time();
        let done = self.counters.since(&self.reported);
        self.reported = self.counters;
        let sum = self.live.stage(self.stage).lock();
        sum.unwrap_or_else(PoisonError::into_inner).add(&done);
    }

    /// Publishes the rest; returns everything the thread did.
    pub(crate) fn end(mut self) -> StageCounters {
        self.announce();
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_adds_up_over_threads_and_is_told_once() {
        let live = Live::default();
        let mut first = Meter::begin(&live, Stage::Write);
        let mut second = Meter::begin(&live, Stage::Write);
        first.counters.bytes_out = 5;
        first.announce();
        second.counters.bytes_out = 7;
        second.counters.held_back = std::time::Duration::from_secs(1);
        second.announce();
        first.announce();
        let sum = live.stages().write;
        assert_eq!(
            (sum.threads, sum.bytes_out, sum.held_back.as_secs()),
            (2, 12, 1)
        );
        first.counters.bytes_out += 1;
        assert_eq!(first.end().bytes_out, 6);
        assert_eq!(live.stages().write.bytes_out, 13);
    }
}
