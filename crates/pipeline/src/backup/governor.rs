//! Connects the running stages to the controller: samples what the stages did, assigns levels, and
//! pauses threads.
//!
//! Invariant: the first thread is never paused, and once any thread runs out of work, none is.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use windlass_codec::Effort;

use crate::adapt::{Bounds, Controller, Flow, Sample, Work};
use crate::control::Control;
use crate::live::Live;
use crate::plan::Plan;
use crate::report::{Adapted, LevelShare, Stages};

/// Minimum time and number of chunks of a sample: less would be noise.
const SAMPLE_TIME: Duration = Duration::from_millis(25);
const SAMPLE_CHUNKS: u64 = 2;

/// How long an idle thread sleeps before checking whether the run continues.
const REST: Duration = Duration::from_millis(50);

/// Adapts one run.
pub(super) struct Governor<'a> {
    live: &'a Live,
    families: u32,
    adapts_level: bool,
    adapts_threads: bool,
    begun: Instant,
    state: Mutex<State>,
    turn: Condvar,
}

struct State {
    controller: Controller,
    window: [Work; Effort::COUNT],
    chunks: u64,
    total: [Work; Effort::COUNT],
    sampled: Duration,
    before: Stages,
    /// Elapsed time multiplied by the number of running threads.
    thread_time: Duration,
    is_over: bool,
}

impl<'a> Governor<'a> {
    pub(super) fn new(plan: &Plan, live: &'a Live) -> Self {
        Self {
            live,
            families: plan.families.max(1) as u32,
            adapts_level: plan.adapts_level,
            adapts_threads: plan.adapts_threads,
            begun: Instant::now(),
            state: Mutex::new(State {
                controller: Controller::new(Bounds {
                    goal: plan.goal,
                    threads_max: plan.threads.value,
                    adapts_level: plan.adapts_level,
                    adapts_threads: plan.adapts_threads,
                }),
                window: [Work::default(); Effort::COUNT],
                chunks: 0,
                total: [Work::default(); Effort::COUNT],
                sampled: Duration::ZERO,
                before: Stages::default(),
                thread_time: Duration::ZERO,
                is_over: false,
            }),
            turn: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while the thread with this number is surplus.
    pub(super) fn wait_turn(&self, thread: usize, control: &Control<'_>) {
        if !self.adapts_threads {
            return;
        }
        let mut state = self.state();
        while thread >= state.controller.threads() && !state.is_over && !control.is_stopped() {
            let waited = self.turn.wait_timeout(state, REST);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The effort for the next chunk; `None` if the level was given.
    pub(super) fn next_effort(&self) -> Option<Effort> {
        self.adapts_level
            .then(|| self.state().controller.next_effort())
    }

    /// Records a chunk, and from time to time samples all stages.
    pub(super) fn done(&self, work: Option<(Effort, Work)>) {
        if !self.adapts_level && !self.adapts_threads {
            return;
        }
        let mut state = self.state();
        state.chunks += 1;
        if let Some((effort, work)) = work {
            state.window[effort.index()].add(&work);
            state.total[effort.index()].add(&work);
        }
        let now = self.begun.elapsed();
        if now.saturating_sub(state.sampled) >= SAMPLE_TIME && state.chunks >= SAMPLE_CHUNKS {
            let threads = state.controller.threads();
            let sample = self.sample(&mut state, now);
            state.controller.observe(&sample);
            if state.controller.threads() > threads {
                self.turn.notify_all();
            }
        }
    }

    fn sample(&self, state: &mut State, now: Duration) -> Sample {
        let stages = self.live.stages();
        let read = stages.read.since(&state.before.read);
        let transform = stages.transform.since(&state.before.transform);
        let write = stages.write.since(&state.before.write);
        let elapsed = now.saturating_sub(state.sampled);
        state.thread_time += elapsed * state.controller.threads() as u32;
        state.sampled = now;
        state.before = stages;
        state.chunks = 0;
        Sample {
            elapsed,
            read: Flow {
                bytes: read.bytes_out,
                busy: read.busy,
            },
            written: Flow {
                bytes: write.bytes_in,
                busy: write.busy / self.families,
            },
            transformed: Flow {
                bytes: transform.bytes_in,
                busy: transform.busy,
            },
            idle: transform.wait_input + transform.wait_output,
            by_effort: std::mem::take(&mut state.window),
        }
    }

    /// Wakes all resting threads: no work is left.
    pub(super) fn finish(&self) {
        self.state().is_over = true;
        self.turn.notify_all();
    }

    /// The decisions taken; valid once all threads are done.
    pub(super) fn adapted(&self) -> Adapted {
        let state = self.state();
        let levels = Effort::ALL.into_iter().filter_map(|effort| {
            let work = state.total[effort.index()];
            (work.chunks > 0).then_some(LevelShare {
                effort,
                chunks: work.chunks,
                raw_bytes: work.raw_bytes,
                stored_bytes: work.stored_bytes,
            })
        });
        let rest = self.begun.elapsed().saturating_sub(state.sampled);
        let time = state.thread_time + rest * state.controller.threads() as u32;
        let mean_threads = match self.adapts_threads {
            true => time.as_secs_f64() / self.begun.elapsed().as_secs_f64().max(1e-9),
            false => 0.0,
        };
        Adapted {
            levels: levels.collect(),
            mean_threads,
        }
    }
}
