//! What a run reports: while it runs, and when it is done.

use std::fmt;
use std::time::Duration;

use serde_json::{Value as Json, json};

use windlass_base::Moment;
use windlass_codec::{Algorithm, Effort};
use windlass_crypt::Signer;
use windlass_media::{MediaHeader, SetConfiguration};

use crate::coverage::FileRanges;
use crate::error::Damage;
#[cfg(debug_assertions)]
use crate::fault::{Fault, FaultPoint};
use crate::limits::Limit;
use crate::plan::Plan;
use crate::request::{Goal, Probe};

/// Observes a run and may stop it. Called from the threads of the pipeline.
pub trait Observer: Sync {
    /// `done` of `total` bytes of the database are processed; they took `stored` bytes on media.
    fn progress(&self, done: u64, total: u64, stored: u64) {
        let _ = (done, total, stored);
    }

    /// The plan is made and the run starts.
    fn planned(&self, plan: &Plan) {
        let _ = plan;
    }

    /// What each stage has done so far. Called as often as `progress`, just before it.
    fn moved(&self, stages: &Stages) {
        let _ = stages;
    }

    /// Whether the run should stop as soon as it can, leaving nothing behind.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// The fault to inject at this point: for tests of this crate.
    #[cfg(debug_assertions)]
    #[doc(hidden)]
    fn fault(&self, at: FaultPoint) -> Option<Fault> {
        let _ = at;
        None
    }
}

/// An observer that ignores everything.
#[derive(Debug)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// What one stage did. Times are summed over its threads.
#[derive(Debug, Clone, Copy, Default)]
pub struct StageCounters {
    pub threads: u32,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Transfers or calls.
    pub calls: u64,
    pub busy: Duration,
    /// Time waiting for the previous stage.
    pub wait_input: Duration,
    /// Time waiting for space in the next stage.
    pub wait_output: Duration,
    /// CPU time of the stage's threads.
    pub cpu: Duration,
    /// Part of `busy` spent waiting for a rate limit.
    pub held_back: Duration,
    /// Requests in flight at the device, integrated over the time spent waiting for it; divided by
    /// `busy`, their average number.
    pub in_flight: Duration,
}

/// Unit of the times in a JSON report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimesIn {
    /// `busy_seconds`, a fraction.
    Seconds,
    /// `busy_time` in milliseconds, as SQL Server's views count.
    Milliseconds,
}

impl StageCounters {
    /// Every figure as an object.
    pub fn to_json(&self, times: TimesIn) -> Json {
        let mut object = json!({
            "threads": self.threads,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "calls": self.calls,
            "bytes_per_call": self.bytes_per_call(),
            "mean_in_flight": self.mean_in_flight(),
        });
        for (name, time) in [
            ("held_back", self.held_back),
            ("cpu", self.cpu),
            ("busy", self.busy),
            ("wait_input", self.wait_input),
            ("wait_output", self.wait_output),
        ] {
            match times {
                TimesIn::Seconds => object[format!("{name}_seconds")] = json!(time.as_secs_f64()),
                TimesIn::Milliseconds => {
                    object[format!("{name}_time")] = json!(time.as_millis() as u64);
                }
            }
        }
        object
    }

    /// For one thread of a stage.
    pub(crate) fn of_thread() -> Self {
        Self {
            threads: 1,
            ..Self::default()
        }
    }

    /// Mean bytes per call; 0 without calls.
    pub fn bytes_per_call(&self) -> u64 {
        self.bytes_in
            .max(self.bytes_out)
            .checked_div(self.calls)
            .unwrap_or(0)
    }

    /// Mean number of requests in flight at the device while waiting for it.
    pub fn mean_in_flight(&self) -> f64 {
        if self.busy.is_zero() {
            0.0
        } else {
            self.in_flight.as_secs_f64() / self.busy.as_secs_f64()
        }
    }

    /// Adds the counters of another thread of the same stage.
    pub(crate) fn add(&mut self, other: &Self) {
        self.threads += other.threads;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.calls += other.calls;
        self.busy += other.busy;
        self.wait_input += other.wait_input;
        self.wait_output += other.wait_output;
        self.cpu += other.cpu;
        self.held_back += other.held_back;
        self.in_flight += other.in_flight;
    }

    /// The difference to an `earlier` state of the same threads.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            threads: self.threads.saturating_sub(earlier.threads),
            bytes_in: self.bytes_in.saturating_sub(earlier.bytes_in),
            bytes_out: self.bytes_out.saturating_sub(earlier.bytes_out),
            calls: self.calls.saturating_sub(earlier.calls),
            busy: self.busy.saturating_sub(earlier.busy),
            wait_input: self.wait_input.saturating_sub(earlier.wait_input),
            wait_output: self.wait_output.saturating_sub(earlier.wait_output),
            cpu: self.cpu.saturating_sub(earlier.cpu),
            held_back: self.held_back.saturating_sub(earlier.held_back),
            in_flight: self.in_flight.saturating_sub(earlier.in_flight),
        }
    }

    /// Whether the stage spent its time waiting for a rate limit.
    fn is_held_back(&self) -> bool {
        self.held_back * 2 > self.busy
    }
}

/// The three stages of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stages {
    /// Reading the database (backup) or the media (restore, verify).
    pub read: StageCounters,
    /// Checksums, digests, compression or their reverse.
    pub transform: StageCounters,
    /// Writing the media (backup) or the database (restore). Empty for verify.
    pub write: StageCounters,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Read,
    Transform,
    Write,
}

impl Stage {
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Transform => "transform",
            Self::Write => "write",
        }
    }

    fn doing(self) -> &'static str {
        match self {
            Self::Read => "reading",
            Self::Transform => "processing",
            Self::Write => "writing",
        }
    }
}

impl Stages {
    /// The stage that limited the run.
    ///
    /// The transform threads are in the middle, so their times show it: time waiting for input is due to
    /// the reading stage, time waiting for space is due to the writing stage, and the rest is their own.
    /// If the reading stage itself waits for buffers, the writing stage is the cause, because it has
    /// them.
    pub fn limiting(&self) -> Stage {
        let (read, transform) = (&self.read, &self.transform);
        let hungry = match read.wait_output > read.busy {
            true => Stage::Write,
            false => Stage::Read,
        };
        let candidates = [
            (Stage::Transform, transform.busy),
            (Stage::Write, transform.wait_output),
            (hungry, transform.wait_input),
        ];
        let longest = candidates.into_iter().max_by_key(|candidate| candidate.1);
        longest.map_or(Stage::Read, |candidate| candidate.0)
    }
}

impl Stages {
    /// The limit that held back a stage for most of its time.
    fn held_back(&self, stage: Stage, plan: &Plan) -> Option<Limit> {
        let counters = match stage {
            Stage::Read => &self.read,
            Stage::Transform => &self.transform,
            Stage::Write => &self.write,
        };
        let limit = plan.limits.given().find(|limit| limit.stage == stage);
        limit.filter(|_| counters.is_held_back())
    }

    /// The bottleneck of the run and what would help, in one line.
    pub fn verdict(&self, plan: &Plan, direction: Way) -> String {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let is_plain = plan.compression.algorithm == Algorithm::None;
        let transform = match direction {
            _ if is_plain => "checksums",
            Way::Backup => "compression",
            Way::Reading => "decompression",
        };
        let limiting = self.limiting();
        if let Some(limit) = self.held_back(limiting, plan) {
            return format!(
                "bottleneck: {}, limited by {}",
                limiting.doing(),
                limit.option
            );
        }
        let (bottleneck, advice) = match (limiting, direction) {
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
                return format!(
                    "bottleneck: {transform} {}",
                    transform_advice(plan, direction, cores)
                );
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
        };
        format!("bottleneck: {bottleneck}{advice}")
    }
}

/// Why the transform stage is the bottleneck, and what would help.
fn transform_advice(plan: &Plan, direction: Way, cores: usize) -> &'static str {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Backup,
    /// From media: restore and verification.
    Reading,
}

/// What one level of compression contributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelShare {
    pub effort: Effort,
    pub chunks: u64,
    /// Bytes of the database in them.
    pub raw_bytes: u64,
    /// Their size on media.
    pub stored_bytes: u64,
}

/// What a run decided while it ran.
#[derive(Debug, Clone, Default)]
pub struct Adapted {
    /// The levels used, from fast to small; empty if the level was given.
    pub levels: Vec<LevelShare>,
    /// Mean number of running threads over time; 0 if the number was given.
    pub mean_threads: f64,
}

impl fmt::Display for Adapted {
    /// Shares of the database by level; empty if the level was given.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: u64 = self.levels.iter().map(|level| level.raw_bytes).sum();
        for (index, level) in self.levels.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            let percent = level.raw_bytes as f64 * 100.0 / all.max(1) as f64;
            write!(f, "{separator}{} {percent:.0} %", level.effort)?;
        }
        Ok(())
    }
}

/// A page of the database with a wrong checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedPage {
    pub file_id: u16,
    /// Page number, from 0.
    pub page: u64,
    /// The file's physical name.
    pub file: String,
}

/// What one database file contributed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePages {
    pub logical_name: String,
    /// Processed pages of 8 KB, rounded up.
    pub pages: u64,
}

#[derive(Debug, Clone)]
pub struct BackupReport {
    pub media: MediaHeader,
    /// The final configuration of the set.
    pub set: SetConfiguration,
    /// Pages by file, in the order of the messages.
    pub files: Vec<FilePages>,
    /// Bytes of the database that were processed; for a differential, the changed ones.
    pub processed_bytes: u64,
    /// From the first read to the last sync.
    pub elapsed: Duration,
    pub finished: Moment,
    pub plan: Plan,
    pub stages: Stages,
    pub adapted: Adapted,
    /// Damage that was tolerated (`CONTINUE_AFTER_ERROR`).
    pub damaged: Vec<DamagedPage>,
    /// How long the database's writers were locked out; `None` if they never were.
    pub writers_held: Option<Duration>,
}

/// A completed measuring run.
#[derive(Debug, Clone)]
pub struct ProbeReport {
    /// The stages that were measured.
    pub probe: Probe,
    pub processed_bytes: u64,
    /// What a backup would have written; equal to the bytes read if nothing was compressed.
    pub stored_bytes: u64,
    /// From the first read to the end of the last.
    pub elapsed: Duration,
    pub plan: Plan,
    pub stages: Stages,
    pub adapted: Adapted,
}

/// Losses of a set that were tolerated.
#[derive(Debug, Clone, Default)]
pub struct DamagedChunks {
    /// Chunks that exist but cannot be used.
    pub count: u64,
    /// The first damage found, with its device.
    pub first: Option<(String, Damage)>,
    /// Their content.
    pub ranges: FileRanges,
    /// Chunks that do not exist.
    pub missing_count: u64,
    /// Ranges that no chunk contains, neither a good nor a damaged one.
    pub missing: FileRanges,
    /// Damaged chunks whose number no other chunk has.
    pub(crate) known: u64,
}

impl DamagedChunks {
    /// Whether the set was complete.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.missing_count == 0 && self.missing.is_empty()
    }
}

#[derive(Debug, Clone)]
pub struct ReadReport {
    pub files: Vec<FilePages>,
    /// Bytes of the database in the set.
    pub processed_bytes: u64,
    /// Bytes read from the media.
    pub stored_bytes: u64,
    /// From the first read to the last sync.
    pub elapsed: Duration,
    pub plan: Plan,
    pub stages: Stages,
    /// What could not be read and was skipped (`CONTINUE_AFTER_ERROR`).
    pub damaged: DamagedChunks,
    /// The signer of everything that was read, if a signature was checked.
    pub signer: Option<Signer>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(busy: u64, wait_input: u64, wait_output: u64) -> StageCounters {
        StageCounters {
            busy: Duration::from_secs(busy),
            wait_input: Duration::from_secs(wait_input),
            wait_output: Duration::from_secs(wait_output),
            ..StageCounters::of_thread()
        }
    }

    #[test]
    fn whoever_lets_the_others_wait_is_the_limit() {
        for (read, transform, expected) in [
            (stage(9, 0, 1), stage(2, 8, 0), Stage::Read),
            (stage(1, 0, 9), stage(9, 0, 1), Stage::Transform),
            (stage(1, 0, 9), stage(2, 1, 7), Stage::Write),
            (stage(1, 0, 9), stage(2, 8, 0), Stage::Write),
        ] {
            let write = StageCounters::default();
            let stages = Stages {
                read,
                transform,
                write,
            };
            assert_eq!(stages.limiting(), expected);
        }
    }
}
