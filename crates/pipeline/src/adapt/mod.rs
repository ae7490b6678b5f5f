//! How a running backup adapts: which level the next chunk gets, and how many threads run.
//!
//! Pure: no clock, no threads, no I/O. Samples of what the stages did go in
//! ([`Controller::observe`]), decisions come out ([`Controller::next_effort`],
//! [`Controller::threads`]); `backup::governor` connects this to the running stages.
//!
//! The level is computed, not raised step by step until throughput drops. [`model`] estimates what
//! each stage could do: the rates of the source and the devices, and the cost and output size of
//! each level. From these follows the level at which compression takes just less time than reading
//! and writing. Between two levels both are used alternately, so such a point always exists.
//! Estimates cover the last fraction of a second, so a device that recovers is noticed as fast as
//! one that slows down. A level that was not used for a while is tried on a single chunk; the more
//! expensive the level, the rarer the trial.

mod model;

use std::time::Duration;

use windlass_codec::Effort;

use self::model::Model;
use crate::request::Goal;

/// Position on the ladder of levels: 0 is [`Effort::Least`], 1.5 is half LOW and half MEDIUM.
type Place = f64;

/// Share of the slowest other stage's time that compression may take. The rest is a margin for what
/// the estimates miss, so that compression does not become the bottleneck by mistake.
const FILLED: f64 = 0.92;

/// How much longer than the shortest time [`Goal::Small`] may take.
pub(crate) const SMALL_FACTOR: f64 = 3.0;

/// Changes of place below this are ignored.
const STILL: Place = 0.08;

/// First step onto a level whose only known cost is the usual one: one chunk in four.
const FIRST_STEP: Place = 0.25;

/// Maximum cost of trying a level, as a share of all compression.
const TRIAL_SHARE: f64 = 0.02;

/// Idle threads' worth of time above which one thread is paused.
const IDLE_TOO_MANY: f64 = 1.25;

/// Idle share of the threads' time below which one more thread is woken.
const IDLE_TOO_FEW: f64 = 0.10;

/// Consecutive samples that must agree before a thread is paused.
const PATIENCE: u32 = 5;

/// What the controller may decide.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) goal: Goal,
    pub(crate) threads_max: usize,
    pub(crate) adapts_level: bool,
    pub(crate) adapts_threads: bool,
}

/// Bytes that went through a stage, and the time it was busy with them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Flow {
    pub(crate) bytes: u64,
    pub(crate) busy: Duration,
}

/// Chunks compressed with one effort.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Work {
    pub(crate) chunks: u64,
    pub(crate) raw_bytes: u64,
    pub(crate) stored_bytes: u64,
    /// Time in the compressor, summed over the threads.
    pub(crate) encoding: Duration,
}

impl Work {
    pub(crate) fn add(&mut self, other: &Self) {
        self.chunks += other.chunks;
        self.raw_bytes += other.raw_bytes;
        self.stored_bytes += other.stored_bytes;
        self.encoding += other.encoding;
    }
}

/// What happened since the previous sample.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sample {
    pub(crate) elapsed: Duration,
    /// Bytes of the database; time of the reading stage.
    pub(crate) read: Flow,
    /// Bytes on all devices; mean busy time of a device.
    pub(crate) written: Flow,
    /// Bytes of the database; time summed over the threads that transform.
    pub(crate) transformed: Flow,
    /// Time those threads waited for a neighbouring stage.
    pub(crate) idle: Duration,
    pub(crate) by_effort: [Work; Effort::COUNT],
}

/// Makes the decisions of one run.
#[derive(Debug)]
pub(crate) struct Controller {
    bounds: Bounds,
    model: Model,
    place: Place,
    threads: usize,
    /// Consecutive samples with too much idle time.
    idle_samples: u32,
    /// Fraction of a chunk still due to the level above, carried between chunks.
    remainder: f64,
    /// Chunks since each level was last used.
    unused: [u32; Effort::COUNT],
    /// Chunks since a level was last tried.
    untried: u32,
}

impl Controller {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            model: Model::default(),
            place: Effort::Low.index() as Place,
            threads: bounds.threads_max,
            idle_samples: 0,
            remainder: 0.0,
            unused: [0; Effort::COUNT],
            untried: 0,
        }
    }

    /// The number of threads that should run.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Takes a sample into account.
    pub(crate) fn observe(&mut self, sample: &Sample) {
        self.model.observe(sample);
        if self.bounds.adapts_threads {
            self.adapt_threads(sample);
        }
        if self.bounds.adapts_level {
            self.adapt_level();
        }
    }

    /// The effort for the next chunk.
    pub(crate) fn next_effort(&mut self) -> Effort {
        let effort = match self.trial() {
            Some(effort) => {
                self.untried = 0;
                effort
            }
            None => self.regular(),
        };
        for unused in &mut self.unused {
            *unused = unused.saturating_add(1);
        }
        self.untried = self.untried.saturating_add(1);
        if let Some(unused) = self.unused.get_mut(effort.index()) {
            *unused = 0;
        }
        effort
    }

    /// Alternates between the two levels around the place, in proportion to their distance.
    fn regular(&mut self) -> Effort {
        let below = self.place.floor();
        self.remainder += self.place - below;
        let step = if self.remainder >= 1.0 {
            self.remainder -= 1.0;
            1
        } else {
            0
        };
        effort_at(below as usize + step)
    }

    /// A neighbouring level whose numbers are old and whose trial is affordable.
    fn trial(&self) -> Option<Effort> {
        let here = self.place.round() as usize;
        let highest = self.highest();
        let neighbours = [here.checked_sub(1), Some(here + 1)];
        neighbours.into_iter().flatten().find_map(|index| {
            let effort = effort_at(index);
            let extra = self.model.extra_cost(effort_at(here), effort)?;
            let earned = f64::from(self.untried) * TRIAL_SHARE >= extra;
            let is_old = f64::from(*self.unused.get(index)?) * TRIAL_SHARE >= extra;
            (index <= highest && earned && is_old).then_some(effort)
        })
    }

    /// The highest level the goal allows.
    fn highest(&self) -> usize {
        match self.bounds.goal {
            // Levels above LOW would take CPU time from the database's users.
            Goal::Gentle => Effort::Low.index(),
            Goal::Fast | Goal::Small => Effort::COUNT - 1,
        }
    }

    fn adapt_level(&mut self) {
        let threads = self.bounds.threads_max as f64;
        let highest = self.highest() as Place;
        let Some(fastest) = self.model.balance(threads, FILLED, highest) else {
            return;
        };
        let wanted = match self.bounds.goal {
            Goal::Fast | Goal::Gentle => fastest,
            Goal::Small => {
                let seconds = self.model.seconds(fastest, threads) * SMALL_FACTOR;
                self.model.affordable(threads, seconds, highest)
            }
        };
        self.place = self.step(wanted);
    }

    /// The next place on the way to `wanted`: `wanted` itself, unless the way leads over unmeasured
    /// levels.
    fn step(&self, wanted: Place) -> Place {
        let next = effort_at(self.place.floor() as usize + 1);
        let wanted = if wanted > self.place && !self.model.has_seen(next) {
            wanted.min(self.place.floor() + FIRST_STEP)
        } else {
            wanted.min(self.place.floor() + 1.0)
        };
        let is_end = wanted <= 0.0 || wanted >= self.highest() as Place;
        if (wanted - self.place).abs() < STILL && !is_end {
            self.place
        } else {
            wanted
        }
    }

    fn adapt_threads(&mut self, sample: &Sample) {
        let elapsed = sample.elapsed.as_secs_f64();
        if elapsed <= 0.0 {
            return;
        }
        let idle = sample.idle.as_secs_f64() / elapsed;
        self.idle_samples = match idle >= IDLE_TOO_MANY {
            true => self.idle_samples + 1,
            false => 0,
        };
        if self.idle_samples >= PATIENCE && self.threads > 1 {
            self.threads -= 1;
            self.idle_samples = 0;
        } else if idle < IDLE_TOO_FEW * self.threads as f64 {
            self.threads = (self.threads + 1).min(self.bounds.threads_max);
        }
    }
}

fn effort_at(index: usize) -> Effort {
    Effort::ALL.get(index).copied().unwrap_or(Effort::High)
}

#[cfg(test)]
mod tests;
