//! From the pipeline's threads to the session's sink: progress, `STATS` messages, cancelling.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use windlass_base::message::table;
use windlass_pipeline::{Observer, Plan, Stages};

use super::trace;
use crate::requests::Announced;
use crate::{Event, Progress, Session, Sink};

/// Observes one run.
pub(super) struct Watch<'a> {
    operation: &'static str,
    database: Arc<str>,
    begun: Instant,
    cancel: Arc<AtomicBool>,
    traces_buffers: bool,
    /// Has its own lock, because publishing to other sessions is file I/O: a thread that finds it locked
    /// continues.
    announced: Mutex<Option<Announced>>,
    stages: Mutex<Stages>,
    inner: Mutex<Inner<'a>>,
}

struct Inner<'a> {
    sink: &'a mut dyn Sink,
    stats: Option<Stats>,
}

/// When the next `STATS` line is due.
///
/// As on SQL Server: the percentage reached is printed if it is at or above the threshold, which then
/// moves to the next multiple; 100 is always the last.
#[derive(Debug, Clone, Copy)]
struct Stats {
    every: u64,
    threshold: u64,
}

impl Stats {
    fn due(&mut self, percent: u64) -> bool {
        let is_due = percent >= self.threshold;
        if is_due {
            self.threshold = if percent >= 100 {
                u64::MAX
            } else {
                ((percent / self.every + 1) * self.every).min(100)
            };
        }
        is_due
    }
}

impl<'a> Watch<'a> {
    /// Starts observing. `operation` is SQL Server's name for it, such as `BACKUP DATABASE`.
    pub(super) fn new(
        session: &Session,
        operation: &'static str,
        database: &str,
        stats: Option<u32>,
        sink: &'a mut dyn Sink,
    ) -> Self {
        let stats = stats.map(|every| Stats {
            every: u64::from(every.max(1)),
            threshold: u64::from(every.max(1)),
        });
        Self {
            operation,
            database: database.into(),
            begun: Instant::now(),
            cancel: session.cancel_flag(),
            traces_buffers: session.settings.traces_buffers && session.settings.tells_traces,
            announced: Mutex::new(Announced::begin(
                session.instance.folder(),
                session.number(),
                operation,
                database,
            )),
            stages: Mutex::default(),
            inner: Mutex::new(Inner { sink, stats }),
        }
    }

    /// Ends with success; prints the line for 100 percent even if there was nothing to process.
    pub(super) fn finish(self) {
        let mut inner = self
            .inner
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        inner.announce(100);
    }
}

impl Inner<'_> {
    fn announce(&mut self, percent: u64) {
        if self.stats.as_mut().is_some_and(|stats| stats.due(percent)) {
            self.sink.message(table::percent_processed(percent));
        }
    }
}

impl Observer for Watch<'_> {
    fn progress(&self, done: u64, total: u64, stored: u64) {
        let progress = Progress {
            operation: self.operation,
            database: Arc::clone(&self.database),
            done_bytes: done,
            total_bytes: total,
            stored_bytes: stored,
            elapsed: self.begun.elapsed(),
        };
        if let Ok(mut announced) = self.announced.try_lock()
            && let Some(announced) = announced.as_mut()
        {
            let stages = *self.stages.lock().unwrap_or_else(PoisonError::into_inner);
            announced.announce(&progress, &stages);
        }
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.sink.event(Event::Progress(&progress));
        // 100 percent is printed when the run has succeeded.
        let percent = done.saturating_mul(100).checked_div(total).unwrap_or(0);
        if percent < 100 {
            inner.announce(percent);
        }
    }

    fn moved(&self, stages: &Stages) {
        *self.stages.lock().unwrap_or_else(PoisonError::into_inner) = *stages;
    }

    fn planned(&self, plan: &Plan) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.sink.event(Event::Planned(plan));
        if self.traces_buffers {
            for line in trace::buffer_configuration(plan) {
                inner.sink.message(table::trace(line));
            }
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(every: u64, reached: &[u64]) -> Vec<u64> {
        let mut stats = Stats {
            every,
            threshold: every,
        };
        reached
            .iter()
            .copied()
            .filter(|percent| stats.due(*percent))
            .collect()
    }

    #[test]
    fn lines_come_at_the_first_percentage_past_each_multiple() {
        assert_eq!(
            reported(10, &[3, 16, 18, 24, 32, 99, 100, 100]),
            [16, 24, 32, 99, 100]
        );
        assert_eq!(reported(50, &[49, 50, 51, 99, 100]), [50, 100]);
        assert_eq!(reported(30, &[95, 99, 100]), [95, 100]);
        assert_eq!(reported(1, &[1, 1, 2]), [1, 2]);
    }
}
