//! What a run tells about itself: while it runs, and when it is done.

use std::fmt;
use std::time::Duration;

use windlass_base::Moment;
use windlass_codec::{Algorithm, Effort};
use windlass_media::{MediaHeader, SetConfiguration};

use crate::coverage::Stretches;
use crate::error::Damage;
#[cfg(debug_assertions)]
use crate::fault::{Fault, FaultPoint};
use crate::plan::Plan;
use crate::request::{Goal, Probe};

/// Watches a run and may stop it. Called from the threads of the pipeline.
pub trait Observer: Sync {
    /// `done` of `total` bytes of the database are through; they took `stored` bytes on media.
    fn progress(&self, done: u64, total: u64, stored: u64) {
        let _ = (done, total, stored);
    }

    /// The plan is made and the run begins.
    fn planned(&self, plan: &Plan) {
        let _ = plan;
    }

    /// What each stage has done so far. Told as often as progress, before it.
    fn moved(&self, stages: &Stages) {
        let _ = stages;
    }

    /// Whether the run should stop as soon as it can, leaving nothing behind.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// What happens to the thread that has come to this place: for tests of this crate.
    #[cfg(debug_assertions)]
    #[doc(hidden)]
    fn fault(&self, at: FaultPoint) -> Option<Fault> {
        let _ = at;
        None
    }
}

/// An observer that neither looks nor stops.
#[derive(Debug)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// What one stage did. Times are summed over its threads.
#[derive(Debug, Clone, Copy, Default)]
pub struct StageCounters {
    /// Threads that worked in the stage.
    pub threads: u32,
    /// Bytes that went in.
    pub bytes_in: u64,
    /// Bytes that came out.
    pub bytes_out: u64,
    /// Transfers or calls.
    pub calls: u64,
    /// Time at work.
    pub busy: Duration,
    /// Time waiting for the stage before.
    pub wait_input: Duration,
    /// Time waiting for room in the stage behind.
    pub wait_output: Duration,
    /// Processor time of the stage's threads.
    pub cpu: Duration,
    /// Part of `busy` that was waiting for a limit on the rate.
    pub held_back: Duration,
    /// Requests in flight at the device, summed over the time that was spent waiting for it:
    /// divided by `busy` it is how many there were on average.
    pub in_flight: Duration,
}

impl StageCounters {
    /// For one thread of a stage.
    pub(crate) fn of_thread() -> Self {
        Self {
            threads: 1,
            ..Self::default()
        }
    }

    /// Bytes in an average call; 0 when there was none.
    pub fn bytes_per_call(&self) -> u64 {
        self.bytes_in
            .max(self.bytes_out)
            .checked_div(self.calls)
            .unwrap_or(0)
    }

    /// Requests in flight at the device, on average while waiting for it.
    pub fn mean_in_flight(&self) -> f64 {
        if self.busy.is_zero() {
            0.0
        } else {
            self.in_flight.as_secs_f64() / self.busy.as_secs_f64()
        }
    }

    /// Adds what another thread of the same stage did.
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

    /// What was done since `earlier`, which is of the same threads.
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

    /// Whether a limit on the rate was what took the stage's time.
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

/// A stage, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The first.
    Read,
    /// The second.
    Transform,
    /// The last.
    Write,
}

impl Stage {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Transform => "transform",
            Self::Write => "write",
        }
    }
}

impl Stages {
    /// The stage that limited the run.
    ///
    /// The transform threads stand in the middle, so their time tells: what they spend waiting for
    /// input is the reading stage's fault, what they spend waiting for room is the writing stage's,
    /// and the rest is their own. A reading stage that itself waits for buffers is not to blame: the
    /// writing stage holds them.
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
    /// Which stage limited the run and what would help, in one line.
    pub fn verdict(&self, plan: &Plan, direction: Way) -> String {
        let stage = self.limiting();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let is_plain = plan.compression.algorithm == Algorithm::None;
        let advice = match (stage, direction) {
            (Stage::Read, _) if self.read.is_held_back() => "held back by --max-rate (MAXRATE)",
            (Stage::Write, _) if self.write.is_held_back() => {
                "held back by --max-write-rate (MAXWRITERATE)"
            }
            (Stage::Read, Way::Backup) => {
                "the database's disk gives no more; a faster disk, or less other work on it"
            }
            (Stage::Read, Way::Reading) if plan.families == 1 => {
                "the media's disk gives no more; stripes on several disks"
            }
            (Stage::Read, Way::Reading) => "the media's disks give no more; faster disks",
            (Stage::Transform, Way::Backup) if plan.goal == Goal::Gentle => {
                "GENTLE leaves the processors to others; the goal FAST takes all of them"
            }
            (Stage::Transform, _) if plan.threads.value < cores => {
                "more threads: THREADCOUNT or --threads"
            }
            (Stage::Transform, Way::Backup) if plan.adapts_level => {
                "all processors compress, at the level that suits; more processors"
            }
            (Stage::Transform, Way::Backup) if !is_plain => {
                "all processors compress; a faster algorithm or level"
            }
            (Stage::Transform, Way::Reading) if !is_plain => {
                "all processors expand; more processors"
            }
            (Stage::Transform, _) => "checksums take all processors; more processors",
            (Stage::Write, Way::Reading) => "the target's disk takes no more; a faster disk",
            (Stage::Write, Way::Backup) if is_plain => {
                "the devices take no more; compression, or stripes on other disks"
            }
            (Stage::Write, Way::Backup) if plan.adapts_level => {
                "the devices take no more, at the level that suits; stripes on other disks"
            }
            (Stage::Write, Way::Backup) => {
                "the devices take no more; stronger compression, or stripes on other disks"
            }
        };
        format!("limited by the {} stage: {advice}", stage.name())
    }
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From a database to media.
    Backup,
    /// From media: restore and verification.
    Reading,
}

/// What one level of compression contributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelShare {
    /// The level.
    pub effort: Effort,
    /// Chunks compressed with it.
    pub chunks: u64,
    /// Bytes of the database in them.
    pub raw_bytes: u64,
    /// Bytes that they take on media.
    pub stored_bytes: u64,
}

/// What a run decided while it ran.
#[derive(Debug, Clone, Default)]
pub struct Adapted {
    /// The levels that were used, from fast to small; empty unless the level was left open.
    pub levels: Vec<LevelShare>,
    /// Threads that were at work, on average over the time; 0 when their number was given.
    pub mean_threads: f64,
}

impl fmt::Display for Adapted {
    /// Shares of the database by level, and threads; nothing when nothing was left open.
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

/// A page of the database whose own checksum does not match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedPage {
    /// File it is in.
    pub file_id: u16,
    /// Page, counted from 0.
    pub page: u64,
    /// The file's physical name.
    pub file: String,
}

/// What one database file contributed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePages {
    /// Logical name.
    pub logical_name: String,
    /// Pages of 8 KB that were processed, rounded up.
    pub pages: u64,
}

/// A backup that was made.
#[derive(Debug, Clone)]
pub struct BackupReport {
    /// The media it is on.
    pub media: MediaHeader,
    /// The set as its final configuration describes it.
    pub set: SetConfiguration,
    /// Pages by file, in the order of the messages.
    pub files: Vec<FilePages>,
    /// Bytes of the database that were processed (stored or, for a differential, kept).
    pub processed_bytes: u64,
    /// From the first read to the last sync.
    pub elapsed: Duration,
    /// When it was finished.
    pub finished: Moment,
    /// The numbers that were used.
    pub plan: Plan,
    /// What the stages did.
    pub stages: Stages,
    /// What was adapted to.
    pub adapted: Adapted,
    /// Damage that was found and carried on from (`CONTINUE_AFTER_ERROR`).
    pub damaged: Vec<DamagedPage>,
    /// For how long the database's writers were shut out; none when they were not.
    pub writers_held: Option<Duration>,
}

/// A measuring run that came to its end.
#[derive(Debug, Clone)]
pub struct ProbeReport {
    /// How far pages came.
    pub probe: Probe,
    /// Bytes of the database that were read.
    pub processed_bytes: u64,
    /// Bytes that a backup would have written; the same as read when nothing was compressed.
    pub stored_bytes: u64,
    /// From the first read to the end of the last.
    pub elapsed: Duration,
    /// The numbers that were used.
    pub plan: Plan,
    /// What the stages did.
    pub stages: Stages,
    /// What was adapted to.
    pub adapted: Adapted,
}

/// What a set does not give any more, and was carried on from.
#[derive(Debug, Clone, Default)]
pub struct DamagedChunks {
    /// Chunks that are there and cannot be used.
    pub count: u64,
    /// The first that was met: its device and what is wrong.
    pub first: Option<(String, Damage)>,
    /// What they held.
    pub stretches: Stretches,
    /// Chunks that are not there at all.
    pub missing_count: u64,
    /// What no chunk holds, neither a good nor a damaged one.
    pub missing: Stretches,
    /// Damaged chunks of which no other one took the number.
    pub(crate) known: u64,
}

impl DamagedChunks {
    /// Whether the set gave everything that it should.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.missing_count == 0 && self.missing.is_empty()
    }
}

/// A restore or a verification that succeeded.
#[derive(Debug, Clone)]
pub struct ReadReport {
    /// Pages by file.
    pub files: Vec<FilePages>,
    /// Bytes of the database in the set.
    pub processed_bytes: u64,
    /// Bytes read from the media.
    pub stored_bytes: u64,
    /// From the first read to the last sync.
    pub elapsed: Duration,
    /// The numbers that were used.
    pub plan: Plan,
    /// What the stages did.
    pub stages: Stages,
    /// What could not be read and was left out (`CONTINUE_AFTER_ERROR`).
    pub damaged: DamagedChunks,
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
