//! What each stage could do, estimated from what it did.
//!
//! - *Source and devices*: bytes per second of busy time. For a stage that is always busy this is
//!   its rate. For one that mostly waits it is too high rather than too low, which is the safe
//!   direction: loading the stage further then reveals its real rate.
//! - *Levels*: seconds and stored bytes per byte of the database. A change observed on one level
//!   (busy cores, other pages) is assumed for all levels, and corrected where they are used.

use windlass_codec::Effort;

use super::{Flow, Place, Sample, Work, effort_at};

/// Seconds after which new samples outweigh an older estimate of a stage.
const MEMORY_SECONDS: f64 = 0.25;

/// Chunks after which new samples make up half of the estimate of a level.
const MEMORY_CHUNKS: f64 = 4.0;

/// As [`MEMORY_CHUNKS`], for the size ratio between two levels: sizes differ more from chunk to
/// chunk than from level to level.
const MEMORY_SIZES: u64 = 64;

/// Number of chunks by which the initial values are weighted.
const USUAL_CHUNKS: u64 = 4;

/// Weight of the first chunk of a level against the usual values.
const FIRST_WEIGHT: f64 = 0.7;

/// Share of busy time in a sample below which a stage's time is set to this share.
const LEAST_BUSY: f64 = 0.02;

/// Shares of busy time in a sample: above the first, a stage may be the bottleneck; above the
/// second, it is.
const HALF: f64 = 0.5;
const MOSTLY: f64 = 0.85;

/// Weight of a sample of a stage that was busy throughout and slower than estimated.
const AT_ONCE: f64 = 0.5;

/// Seconds per byte relative to LOW (`docs/codecs.md`), until a level has been used.
const USUAL_COST: [f64; Effort::COUNT] = [0.75, 1.0, 3.5, 9.0];

/// Stored bytes relative to LOW.
const USUAL_SIZE: [f64; Effort::COUNT] = [1.09, 1.0, 0.875, 0.84];

/// A higher level is not worth its time if it leaves more than this share of the size of the level
/// below.
const WORTH: f64 = 0.985;

/// Bisection steps in the search for a place: a hundredth of a level.
const HALVINGS: u32 = 9;

#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    /// Bytes of the database per second, if nothing else limits.
    source: Option<f64>,
    /// Stored bytes per second, if nothing else limits.
    devices: Option<f64>,
    /// Thread seconds per byte, besides compression.
    overhead: Option<f64>,
    /// Share of the bytes read that is compressed: a differential skips most of them.
    kept: Option<f64>,
    levels: Option<Levels>,
}

/// Estimates of each level.
#[derive(Debug, Clone)]
struct Levels {
    cost: [f64; Effort::COUNT],
    size: [f64; Effort::COUNT],
    /// Chunks compressed with it.
    chunks: [u64; Effort::COUNT],
}

impl Model {
    pub(super) fn observe(&mut self, sample: &Sample) {
        let seconds = sample.elapsed.as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        let weight = 1.0 - (-seconds / MEMORY_SECONDS).exp();
        observe_rate(&mut self.source, sample.read, seconds, weight);
        observe_rate(&mut self.devices, sample.written, seconds, weight);
        let encoding: f64 = (sample.by_effort.iter())
            .map(|work| work.encoding.as_secs_f64())
            .sum();
        let raw = sample.transformed.bytes as f64;
        if raw > 0.0 {
            let overhead = (sample.transformed.busy.as_secs_f64() - encoding).max(0.0) / raw;
            blend(&mut self.overhead, Some(overhead), weight);
            let compressed: u64 = sample.by_effort.iter().map(|work| work.raw_bytes).sum();
            blend(&mut self.kept, Some(compressed as f64 / raw), weight);
        }
        self.observe_levels(&sample.by_effort);
    }

    fn observe_levels(&mut self, by_effort: &[Work; Effort::COUNT]) {
        let most = (by_effort.iter().enumerate()).max_by_key(|(_, work)| work.raw_bytes);
        let Some((main, work)) = most.filter(|(_, work)| work.raw_bytes > 0) else {
            return;
        };
        let (cost, size) = numbers(work);
        let levels = self.levels.get_or_insert_with(|| Levels {
            cost: USUAL_COST.map(|usual| usual / USUAL_COST[main] * cost),
            size: USUAL_SIZE.map(|usual| usual / USUAL_SIZE[main] * size),
            chunks: [0; Effort::COUNT],
        });
        // A change on the most used level is assumed for all levels.
        let weight = weight_of(work);
        let cost_change = 1.0 + weight * (cost / levels.cost[main] - 1.0);
        let size_change = 1.0 + weight * (size / levels.size[main] - 1.0);
        levels.cost = levels.cost.map(|cost| cost * cost_change);
        levels.size = levels.size.map(|size| (size * size_change).min(1.0));
        for (index, work) in by_effort.iter().enumerate() {
            if work.raw_bytes == 0 {
                continue;
            }
            let (cost, size) = numbers(work);
            if index != main {
                let of_cost = match levels.chunks[index] {
                    0 => FIRST_WEIGHT,
                    _ => weight_of(work),
                };
                let known = (USUAL_CHUNKS + levels.chunks[index]).min(MEMORY_SIZES);
                let of_size = work.chunks as f64 / (work.chunks + known) as f64;
                levels.cost[index] += of_cost * (cost - levels.cost[index]);
                levels.size[index] += of_size * (size - levels.size[index]);
            }
            levels.chunks[index] += work.chunks;
        }
    }

    /// Whether the level was used.
    pub(super) fn has_seen(&self, effort: Effort) -> bool {
        (self.levels.as_ref()).is_some_and(|levels| levels.chunks[effort.index()] > 0)
    }

    /// Extra cost of a chunk at `other` over one at `here`, in chunks at `here`; at least one, because a
    /// cheaper level needs more space on the devices.
    pub(super) fn extra_cost(&self, here: Effort, other: Effort) -> Option<f64> {
        let levels = self.levels.as_ref()?;
        let extra = levels.cost[other.index()] / levels.cost[here.index()].max(f64::MIN_POSITIVE);
        Some((extra - 1.0).max(1.0))
    }

    /// The highest place at which `threads` compress within `filled` of the other stages' time; 0
    /// if the cores are the limit even there. `None` before the first sample.
    pub(super) fn balance(&self, threads: f64, filled: f64, highest: Place) -> Option<Place> {
        let levels = self.levels.as_ref()?;
        let fits =
            |place| self.cost(levels, place) / threads <= filled * self.others(levels, place);
        Some(search(fits, levels.useful(highest)))
    }

    /// The highest place at which `threads` compress a byte within `seconds`.
    pub(super) fn affordable(&self, threads: f64, seconds: f64, highest: Place) -> Place {
        let Some(levels) = &self.levels else {
            return 0.0;
        };
        let fits = |place| self.cost(levels, place) / threads <= seconds;
        search(fits, levels.useful(highest))
    }

    /// Seconds that a run takes per byte of the database at `place`.
    pub(super) fn seconds(&self, place: Place, threads: f64) -> f64 {
        let Some(levels) = &self.levels else {
            return 0.0;
        };
        (self.cost(levels, place) / threads).max(self.others(levels, place))
    }

    /// Thread seconds per byte.
    fn cost(&self, levels: &Levels, place: Place) -> f64 {
        self.overhead.unwrap_or(0.0) + self.kept.unwrap_or(1.0) * between(&levels.cost, place)
    }

    /// Seconds per byte of the slower of source and devices.
    fn others(&self, levels: &Levels, place: Place) -> f64 {
        let source = self.source.map_or(0.0, |rate| 1.0 / rate);
        let devices = self.devices.map_or(0.0, |rate| {
            self.kept.unwrap_or(1.0) * between(&levels.size, place) / rate
        });
        source.max(devices)
    }
}

impl Levels {
    /// The highest place below `highest` up to which each level is smaller than the one below it.
    fn useful(&self, highest: Place) -> Place {
        let steps = self.size.windows(2).take(highest as usize);
        steps.take_while(|pair| pair[1] <= pair[0] * WORTH).count() as Place
    }
}

/// The highest place up to `highest` that fits; `fits` must hold below some place and fail above
/// it.
fn search(fits: impl Fn(Place) -> bool, highest: Place) -> Place {
    if fits(highest) {
        return highest;
    }
    let (mut low, mut high) = (0.0, highest);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The value at a place, interpolated between two levels.
fn between(values: &[f64; Effort::COUNT], place: Place) -> f64 {
    let (below, share) = (place.floor(), place.fract());
    let value = |index: usize| values[effort_at(index).index()];
    let below = below as usize;
    value(below) * (1.0 - share) + value(below + 1) * share
}

/// Takes in what a stage did in `elapsed` seconds.
///
/// A stage that was busy most of the time shows its real rate, which counts at once if it is lower
/// than estimated. A stage that has never been busy half of the time is not a bottleneck and has no
/// rate: what it takes into its buffers at the start says nothing.
fn observe_rate(estimate: &mut Option<f64>, flow: Flow, elapsed: f64, weight: f64) {
    if flow.bytes == 0 {
        return;
    }
    let share = flow.busy.as_secs_f64() / elapsed;
    let found = flow.bytes as f64 / flow.busy.as_secs_f64().max(LEAST_BUSY * elapsed);
    match *estimate {
        None if share < HALF => {}
        Some(old) if share >= MOSTLY && found < old => {
            blend(estimate, Some(found), weight.max(AT_ONCE));
        }
        _ => blend(estimate, Some(found), weight),
    }
}

/// Seconds and stored bytes per byte.
fn numbers(work: &Work) -> (f64, f64) {
    let raw = work.raw_bytes as f64;
    let cost = work.encoding.as_secs_f64().max(1e-9) / raw;
    (cost, (work.stored_bytes as f64 / raw).max(1e-6))
}

fn weight_of(work: &Work) -> f64 {
    work.chunks as f64 / (work.chunks as f64 + MEMORY_CHUNKS)
}

/// Moves an estimate by a share of the difference, in ratios: a device that becomes fifty times
/// slower is noticed as fast as one that becomes fifty times faster.
fn blend(estimate: &mut Option<f64>, found: Option<f64>, weight: f64) {
    *estimate = match (*estimate, found) {
        (Some(old), Some(new)) if old > 0.0 && new > 0.0 => Some(old * (new / old).powf(weight)),
        (Some(old), Some(new)) => Some(old + weight * (new - old)),
        (old, new) => old.or(new),
    };
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A device that wrote `bytes` in a tenth of a second, of which it was busy for `busy`.
    fn wrote(bytes: u64, busy: u64) -> Sample {
        Sample {
            elapsed: Duration::from_millis(100),
            written: Flow {
                bytes,
                busy: Duration::from_millis(busy),
            },
            ..Sample::default()
        }
    }

    #[test]
    fn what_goes_into_buffers_is_no_rate_and_a_real_one_counts_at_once() {
        let mut model = Model::default();
        model.observe(&wrote(4_000_000, 1));
        assert_eq!(model.devices, None);
        model.observe(&wrote(2_000_000, 100));
        assert_eq!(model.devices, Some(2e7));
        for _ in 0..4 {
            model.observe(&wrote(500_000, 100));
        }
        let slow = model.devices.unwrap();
        assert!(slow < 5.6e6, "{slow}");
        model.observe(&wrote(4_000_000, 100));
        let faster = model.devices.unwrap();
        assert!(
            faster > slow && faster < 2e7,
            "one sample is not trusted upwards: {faster}"
        );
    }

    #[test]
    fn a_differential_has_time_for_more_on_what_it_keeps() {
        let place = |kept: u64| {
            let mut model = Model::default();
            let raw = 100_000_000;
            let work = Work {
                chunks: 25,
                raw_bytes: raw / kept,
                stored_bytes: raw / kept / 4,
                encoding: Duration::from_millis(300 / kept),
            };
            let mut sample = wrote(raw / kept / 4, 10);
            sample.read = Flow {
                bytes: raw,
                busy: Duration::from_millis(100),
            };
            sample.transformed = Flow {
                bytes: raw,
                busy: Duration::from_millis(300 / kept + 10),
            };
            sample.by_effort[Effort::Low.index()] = work;
            model.observe(&sample);
            model.balance(4.0, 0.92, 3.0).unwrap()
        };
        assert!(
            place(1) < 1.5 && place(10) > 2.5,
            "{} {}",
            place(1),
            place(10)
        );
    }
}
