//! How a running backup adapts: the level of the next chunk, and how many threads are at work.
//!
//! Pure: no clock, no threads, no I/O. Samples of what the stages did go in ([`Controller::observe`]),
//! decisions come out ([`Controller::next_effort`], [`Controller::threads`]); `backup::governor` stands
//! between this and the running stages.
//!
//! The level is not climbed step by step until something hurts. [`model`] estimates what each stage
//! could do: what the source gives, what the devices take, what each level costs and leaves. From that
//! follows the level at which compressing takes just less time than reading and writing do. Between two
//! levels both are used in turn, so there is always such a point. Estimates are those of the last
//! fraction of a second, so a device that recovers is noticed as fast as one that slows down; a
//! level that was not used for a while is tried on a single chunk, as seldom as it is dear.

mod model;

use std::time::Duration;

use windlass_codec::Effort;

use self::model::Model;
use crate::request::Goal;

/// Position on the ladder of levels: 0 is [`Effort::Least`], 1.5 is half LOW and half MEDIUM.
type Place = f64;

/// Share of the time that the slowest other stage takes which compression may take. The rest is for
/// what the estimates do not see, so that compression does not become the limit by mistake.
const FILLED: f64 = 0.92;

/// How much longer than the fastest way [`Goal::Small`] may take.
pub(crate) const SMALL_FACTOR: f64 = 3.0;

/// A difference of place that is not worth a move.
const STILL: Place = 0.08;

/// A first step onto a level of which only the usual cost is known: one chunk in four.
const FIRST_STEP: Place = 0.25;

/// What trying a level may cost, as a share of all compression.
const TRIAL_SHARE: f64 = 0.02;

/// Idle threads' worth of time after which one thread is sent away.
const IDLE_TOO_MANY: f64 = 1.25;

/// Idle share of the threads' time below which one more is called.
const IDLE_TOO_FEW: f64 = 0.10;

/// Samples in a row that must agree before a thread is sent away.
const PATIENCE: u32 = 5;

/// What the controller may decide.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) goal: Goal,
    pub(crate) threads_max: usize,
    pub(crate) adapts_level: bool,
    pub(crate) adapts_threads: bool,
}

/// Bytes that went through a stage, and the time it was at work on them.
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

/// What happened since the sample before.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sample {
    pub(crate) elapsed: Duration,
    /// Bytes of the database; time of the reading stage.
    pub(crate) read: Flow,
    /// Bytes on all devices; mean time of a device.
    pub(crate) written: Flow,
    /// Bytes of the database; time summed over the threads that transform.
    pub(crate) transformed: Flow,
    /// Time those threads waited for either neighbour.
    pub(crate) idle: Duration,
    pub(crate) by_effort: [Work; Effort::COUNT],
}

/// Decides for one run.
#[derive(Debug)]
pub(crate) struct Controller {
    bounds: Bounds,
    model: Model,
    place: Place,
    threads: usize,
    /// Samples in a row with too much idle time.
    idle_samples: u32,
    /// What is due of the level above, between two chunks.
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

    /// Threads that should be at work.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Takes in what happened.
    pub(crate) fn observe(&mut self, sample: &Sample) {
        self.model.observe(sample);
        if self.bounds.adapts_threads {
            self.adapt_threads(sample);
        }
        if self.bounds.adapts_level {
            self.adapt_level();
        }
    }

    /// How hard the next chunk is compressed.
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

    /// The two levels around the place in turn, each as often as it is near.
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

    /// A neighbouring level whose numbers are old and whose trial has been earned.
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

    /// The highest level that the goal allows.
    fn highest(&self) -> usize {
        match self.bounds.goal {
            // More than LOW would be time taken from the database's users.
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

    /// Where to go from here to come to `wanted`: at once, unless the way leads over unknown ground.
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
