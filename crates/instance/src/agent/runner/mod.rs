//! The agent: one thread that waits for what is due or asked for, and one thread for each job that runs.
//!
//! It looks at the catalog at short intervals, and reads it only when another connection has changed it or something
//! is due. So it follows changes by any process.

mod watch;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use windlass_base::local_now;
use windlass_base::message::table;
use windlass_catalog::HistoryLimits;

use self::watch::Watch;
use super::Hook;
use super::execution::{Factory, Stopper};
use super::lock::Lock;
use crate::{Failure, Session};

/// Between two looks at the catalog.
const POLL: Duration = Duration::from_millis(500);

/// The time, which tests set.
pub trait Clock: Send + Sync + fmt::Debug {
    fn now(&self) -> Timestamp;

    /// The zone of schedules and history.
    fn zone(&self) -> TimeZone;
}

/// The clock and the zone of the system.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn zone(&self) -> TimeZone {
        local_now().time_zone().clone()
    }
}

/// How an agent works.
#[derive(Debug, Clone)]
pub struct Options {
    pub clock: Arc<dyn Clock>,
    /// Between two looks at the catalog, and at the clock before a retry.
    pub poll: Duration,
    pub history: HistoryLimits,
    /// Called when a job fails.
    pub on_failure: Option<Hook>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            poll: POLL,
            history: HistoryLimits::default(),
            on_failure: None,
        }
    }
}

/// A running agent. Dropped, it stops as [`Agent::stop`] does, and cancels what runs.
#[derive(Debug)]
pub struct Agent {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the threads of an agent share.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_stopping: bool,
    /// The jobs that run, by their identities.
    running: BTreeMap<String, Arc<Stopper>>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the jobs of the instance in a folder until it is stopped. Each step has a session of its own, from `sessions`.
///
/// # Errors
/// 50223 if another agent runs them, 50224, those of the catalog.
pub fn start(
    folder: &Path,
    sessions: impl Fn() -> Result<Session, Failure> + Send + Sync + 'static,
    options: Options,
) -> Result<Agent, Failure> {
    let lock = Lock::take(folder)?;
    let sessions: Factory = Arc::new(sessions);
    let shared = Arc::new(Shared::default());
    let mut watch = Watch::begin(folder, sessions, options, Arc::clone(&shared))?;
    let thread = std::thread::Builder::new()
        .name("windlass-agent".to_owned())
        .spawn(move || {
            watch.run();
            drop(lock);
        })
        .map_err(|error| table::agent_not_started(folder.display(), error))?;
    Ok(Agent {
        shared,
        thread: Some(thread),
    })
}

impl Agent {
    /// Starts no further job, and returns when those that run have ended. With `cancels` they are stopped.
    pub fn stop(mut self, cancels: bool) {
        self.end(cancels);
    }

    /// How many jobs run.
    pub fn running(&self) -> usize {
        self.shared.state().running.len()
    }

    fn end(&mut self, cancels: bool) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        let mut state = self.shared.state();
        state.is_stopping = true;
        if cancels {
            for stopper in state.running.values() {
                stopper.stop("the stop of the agent");
            }
        }
        drop(state);
        self.shared.changed.notify_all();
        if thread.join().is_err() {
            tracing::error!("the thread of the agent has panicked");
        }
        let mut state = self.shared.state();
        while !state.running.is_empty() {
            let waited = self.shared.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.end(true);
    }
}

#[cfg(test)]
mod tests;
