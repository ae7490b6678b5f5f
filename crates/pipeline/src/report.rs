//! What a run reports: while it runs, and when it is done.

use std::fmt;
use std::time::Duration;

use serde_json::{Value as Json, json};

use windlass_base::{FilePage, Moment};
use windlass_codec::Effort;
use windlass_crypt::Signer;
use windlass_media::{MediaHeader, SetConfiguration};

use crate::coverage::FileRanges;
use crate::error::Damage;
#[cfg(debug_assertions)]
use crate::fault::{Fault, FaultPoint};
use crate::plan::Plan;
use crate::request::Probe;

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
    /// Transfers of data, or calls.
    pub calls: u64,
    /// Writes to media that contain nothing but blocks of the tape format; not in `calls`.
    pub block_calls: u64,
    /// The part of `bytes_out` in such writes.
    pub block_bytes: u64,
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
            "block_calls": self.block_calls,
            "block_bytes": self.block_bytes,
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

    /// Mean bytes per call, without the writes of blocks alone; 0 without calls.
    pub fn bytes_per_call(&self) -> u64 {
        self.bytes_in
            .max(self.bytes_out.saturating_sub(self.block_bytes))
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
        self.block_calls += other.block_calls;
        self.block_bytes += other.block_bytes;
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
            block_calls: self.block_calls.saturating_sub(earlier.block_calls),
            block_bytes: self.block_bytes.saturating_sub(earlier.block_bytes),
            busy: self.busy.saturating_sub(earlier.busy),
            wait_input: self.wait_input.saturating_sub(earlier.wait_input),
            wait_output: self.wait_output.saturating_sub(earlier.wait_output),
            cpu: self.cpu.saturating_sub(earlier.cpu),
            held_back: self.held_back.saturating_sub(earlier.held_back),
            in_flight: self.in_flight.saturating_sub(earlier.in_flight),
        }
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
    /// In the order of the data.
    pub const ALL: [Self; 3] = [Self::Read, Self::Transform, Self::Write];

    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Transform => "transform",
            Self::Write => "write",
        }
    }

    /// What the stage does, in a verdict.
    pub(crate) fn doing(self) -> &'static str {
        match self {
            Self::Read => "reading",
            Self::Transform => "processing",
            Self::Write => "writing",
        }
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
    pub page: FilePage,
    /// Its first byte in the file.
    pub offset: u64,
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
    /// Bytes of the database in chunks whose text was narrowed.
    pub narrowed_bytes: u64,
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
