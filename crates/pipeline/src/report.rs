//! What a run tells about itself: while it runs, and when it is done.

use std::time::Duration;

use windlass_base::Moment;
use windlass_codec::Algorithm;
use windlass_media::{MediaHeader, SetConfiguration};

use crate::error::Damage;
use crate::plan::Plan;
use crate::request::Probe;

/// Watches a run and may stop it. Called from the threads of the pipeline.
pub trait Observer: Sync {
    /// `done` of `total` octets of the database are through; they took `stored` octets on media.
    fn progress(&self, done: u64, total: u64, stored: u64) {
        let _ = (done, total, stored);
    }

    /// The plan is made and the run begins.
    fn planned(&self, plan: &Plan) {
        let _ = plan;
    }

    /// Whether the run should stop as soon as it can, leaving nothing behind.
    fn is_cancelled(&self) -> bool {
        false
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
    /// Octets that went in.
    pub bytes_in: u64,
    /// Octets that came out.
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

    /// Octets in an average call; 0 when there was none.
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
        self.in_flight += other.in_flight;
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
            (Stage::Read, Way::Backup) => {
                "the database's disk gives no more; a faster disk, or less other work on it"
            }
            (Stage::Read, Way::Reading) if plan.families == 1 => {
                "the media's disk gives no more; stripes on several disks"
            }
            (Stage::Read, Way::Reading) => "the media's disks give no more; faster disks",
            (Stage::Transform, _) if plan.threads.value < cores => {
                "more threads: THREADCOUNT or --threads"
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
            (Stage::Write, Way::Backup) => {
                "the devices take no more; stronger compression, or stripes on other disks"
            }
        };
        format!("limited by the {} stage: {advice}", stage.name())
    }
}

/// Which way octets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From a database to media.
    Backup,
    /// From media: restore and verification.
    Reading,
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
    /// Octets of the database that were processed (stored or, for a differential, kept).
    pub processed_bytes: u64,
    /// From the first read to the last sync.
    pub elapsed: Duration,
    /// When it was finished.
    pub finished: Moment,
    /// The numbers that were used.
    pub plan: Plan,
    /// What the stages did.
    pub stages: Stages,
    /// Damage that was found and carried on from (`CONTINUE_AFTER_ERROR`).
    pub damaged: Vec<DamagedPage>,
}

/// A measuring run that came to its end.
#[derive(Debug, Clone)]
pub struct ProbeReport {
    /// How far pages came.
    pub probe: Probe,
    /// Octets of the database that were read.
    pub processed_bytes: u64,
    /// Octets that a backup would have written; the same as read when nothing was compressed.
    pub stored_bytes: u64,
    /// From the first read to the end of the last.
    pub elapsed: Duration,
    /// The numbers that were used.
    pub plan: Plan,
    /// What the stages did.
    pub stages: Stages,
}

/// Chunks that were found damaged and carried on from.
#[derive(Debug, Clone, Default)]
pub struct DamagedChunks {
    /// How many.
    pub count: u64,
    /// The first that was met: its device and what is wrong.
    pub first: Option<(String, Damage)>,
}

/// A restore or a verification that succeeded.
#[derive(Debug, Clone)]
pub struct ReadReport {
    /// Pages by file.
    pub files: Vec<FilePages>,
    /// Octets of the database in the set.
    pub processed_bytes: u64,
    /// Octets read from the media.
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
