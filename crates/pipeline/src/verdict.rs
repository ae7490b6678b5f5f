//! What limited a run, and what would help.

use std::time::Duration;

use windlass_codec::Algorithm;

use crate::limits::Limit;
use crate::plan::Plan;
use crate::report::{Stage, StageCounters, Stages, Way};
use crate::request::Goal;

/// A shorter run gets no verdict: most of it is its start and its end.
const TELLING: Duration = Duration::from_millis(100);

impl Stages {
    /// The stage that limited the run: the one that was busy for the largest share of the time its threads
    /// had, while the others waited for it. `None` for a run that is too short to tell.
    pub fn limiting(&self) -> Option<Stage> {
        let elapsed = Stage::ALL
            .map(|stage| self.of(stage).time_of_thread())
            .into_iter()
            .max()?;
        if elapsed < TELLING {
            return None;
        }
        let share = |stage| self.of(stage).busy_share(elapsed);
        Stage::ALL
            .into_iter()
            .max_by(|left, right| share(*left).total_cmp(&share(*right)))
    }

    fn of(&self, stage: Stage) -> &StageCounters {
        match stage {
            Stage::Read => &self.read,
            Stage::Transform => &self.transform,
            Stage::Write => &self.write,
        }
    }

    /// The limit that held back a stage for most of its time.
    fn held_back(&self, stage: Stage, plan: &Plan) -> Option<Limit> {
        let limit = plan.limits.given().find(|limit| limit.stage == stage);
        let counters = self.of(stage);
        limit.filter(|_| counters.held_back * 2 > counters.busy)
    }

    /// The bottleneck of the run and what would help, in one line; `None` for a run that is too short to
    /// tell.
    pub fn verdict(&self, plan: &Plan, direction: Way) -> Option<String> {
        let limiting = self.limiting()?;
        if let Some(limit) = self.held_back(limiting, plan) {
            let doing = limiting.doing();
            return Some(format!("bottleneck: {doing}, limited by {}", limit.option));
        }
        let (bottleneck, advice) = bottleneck(limiting, plan, direction);
        Some(format!("bottleneck: {bottleneck}{advice}"))
    }
}

impl StageCounters {
    fn time(&self) -> Duration {
        self.busy + self.wait_input + self.wait_output
    }

    /// The mean time that a thread of the stage ran, without pauses.
    fn time_of_thread(&self) -> Duration {
        self.time().checked_div(self.threads).unwrap_or_default()
    }

    /// The share of time in which the stage was busy, in a run of `elapsed`: a reader may end long before
    /// the others, and paused threads count neither as busy nor as waiting.
    fn busy_share(&self, elapsed: Duration) -> f64 {
        self.busy.as_secs_f64() / self.time().max(elapsed).as_secs_f64()
    }
}

/// What is slow, and what to try.
fn bottleneck(limiting: Stage, plan: &Plan, direction: Way) -> (&'static str, &'static str) {
    let is_plain = plan.compression.algorithm == Algorithm::None;
    match (limiting, direction) {
        (Stage::Read, Way::Backup) => (
            "reading the database (disk at its limit)",
            "; try a faster disk, or less other load on it",
        ),
        (Stage::Read, Way::Reading) if plan.families == 1 => (
            "reading the media (disk at its limit)",
            "; try stripes on several disks",
        ),
        (Stage::Read, Way::Reading) => (
            "reading the media (disks at their limit)",
            "; try faster disks",
        ),
        (Stage::Transform, direction) => {
            let what = match direction {
                _ if is_plain => "checksums ",
                Way::Backup => "compression ",
                Way::Reading => "decompression ",
            };
            (what, transform_advice(plan, direction))
        }
        (Stage::Write, Way::Reading) => (
            "writing the database (disk at its limit)",
            "; try a faster disk",
        ),
        (Stage::Write, Way::Backup) => (
            "writing the media (devices at their limit)",
            match is_plain {
                true => "; try compression, or stripes on other disks",
                false if plan.adapts_level => "; try stripes on other disks",
                false => "; try stronger compression, or stripes on other disks",
            },
        ),
    }
}

/// Why the transform stage is the bottleneck, and what would help.
fn transform_advice(plan: &Plan, direction: Way) -> &'static str {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let is_plain = plan.compression.algorithm == Algorithm::None;
    if direction == Way::Backup && plan.goal == Goal::Gentle {
        "(GENTLE leaves cores to others); the goal FAST uses all of them"
    } else if plan.threads.value < cores {
        "(fewer threads than cores); try more threads: THREADCOUNT or --threads"
    } else if direction == Way::Backup && !is_plain && !plan.adapts_level {
        "(all cores busy); try a faster algorithm or a lower level"
    } else {
        "(all cores busy); more cores would help"
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const FRAMES: usize = 4000;
    const DEPTH: usize = 4;

    /// A backup with known rates, simulated frame by frame. Times are in microseconds.
    struct Run {
        /// To read a frame; the source reads one at a time.
        read: u64,
        /// To transform a frame, on each of `threads`.
        transform: u64,
        threads: usize,
        /// To write a frame, on each of `families`.
        write: u64,
        families: usize,
        /// Whether a frame is written from the buffer into which it was read.
        is_plain: bool,
    }

    fn micros(time: u64) -> Duration {
        Duration::from_micros(time)
    }

    /// Takes the worker that is free first; returns when it starts and for how long it waited.
    fn next(free: &mut [u64], ready: u64, time: u64) -> (u64, u64) {
        let worker = (0..free.len()).min_by_key(|worker| free[*worker]).unwrap();
        let start = free[worker].max(ready);
        let waited = start - free[worker];
        free[worker] = start + time;
        (start + time, waited)
    }

    impl Run {
        fn stages(&self) -> Stages {
            let mut stages = Stages::default();
            let buffers = match self.is_plain {
                true => self.threads + DEPTH + self.families + self.families * DEPTH,
                false => self.threads + DEPTH + self.families,
            };
            let mut free: VecDeque<u64> = vec![0; buffers].into();
            // Compressed frames wait for their write in buffers of their own.
            let mut outputs: VecDeque<u64> = vec![0; self.threads + self.families + 1].into();
            let (mut transforms, mut writers) = (vec![0; self.threads], vec![0; self.families]);
            let (mut device_free, mut reads): (u64, VecDeque<u64>) = (0, VecDeque::new());
            let mut busy_until = 0;
            for _ in 0..FRAMES {
                let buffer = free.pop_front().unwrap();
                let oldest = match reads.len() {
                    DEPTH => reads.pop_front().unwrap(),
                    _ => 0,
                };
                let submitted = buffer.max(oldest);
                let done = device_free.max(submitted) + self.read;
                device_free = done;
                reads.push_back(done);
                // With nothing in flight the reader waits for a buffer.
                stages.read.wait_output += micros(submitted.saturating_sub(busy_until));
                stages.read.busy += micros(done - submitted.max(busy_until));
                busy_until = done;
                let ready = match self.is_plain {
                    true => done,
                    false => done.max(outputs.pop_front().unwrap()),
                };
                let (transformed, waited) = next(&mut transforms, ready, self.transform);
                let for_output = waited.min(ready - done);
                stages.transform.wait_output += micros(for_output);
                stages.transform.wait_input += micros(waited - for_output);
                stages.transform.busy += micros(self.transform);
                let (written, waited) = next(&mut writers, transformed, self.write);
                stages.write.wait_input += micros(waited);
                stages.write.busy += micros(self.write);
                if !self.is_plain {
                    outputs.push_back(written);
                    outputs.make_contiguous().sort_unstable();
                }
                free.push_back(if self.is_plain { written } else { transformed });
                free.make_contiguous().sort_unstable();
            }
            stages.read.threads = 1;
            stages.transform.threads = self.threads as u32;
            stages.write.threads = self.families as u32;
            stages
        }
    }

    /// The times with which one stage has three quarters of the rate of the next.
    fn run(limit: Stage, threads: usize, families: usize, is_plain: bool) -> Run {
        let slow = |stage| if stage == limit { 1000 } else { 750 };
        Run {
            read: slow(Stage::Read),
            transform: slow(Stage::Transform) * threads as u64,
            threads,
            write: slow(Stage::Write) * families as u64,
            families,
            is_plain,
        }
    }

    #[test]
    fn the_slowest_stage_of_simulated_runs_is_the_limit() {
        for limit in Stage::ALL {
            for threads in [1, 2, 8] {
                for families in [1, 2, 8, 64] {
                    for is_plain in [false, true] {
                        let stages = run(limit, threads, families, is_plain).stages();
                        let case = format!("{limit:?} {threads} {families} {is_plain} {stages:?}");
                        assert_eq!(stages.limiting(), Some(limit), "{case}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_run_that_only_reads_has_no_writer_to_blame() {
        let mut stages = run(Stage::Read, 2, 1, true).stages();
        stages.write = StageCounters::default();
        assert_eq!(stages.limiting(), Some(Stage::Read));
    }

    #[test]
    fn a_reader_that_ended_early_is_not_the_limit() {
        let mut stages = run(Stage::Transform, 2, 1, false).stages();
        stages.read.busy = Duration::from_millis(20);
        stages.read.wait_output = Duration::ZERO;
        assert_eq!(stages.limiting(), Some(Stage::Transform));
    }

    #[test]
    fn a_short_run_has_no_limit() {
        let read = StageCounters {
            busy: TELLING / 2,
            ..StageCounters::of_thread()
        };
        let stages = Stages {
            read,
            ..Stages::default()
        };
        assert_eq!(stages.limiting(), None);
        assert_eq!(Stages::default().limiting(), None);
    }
}
