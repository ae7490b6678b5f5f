//! What a run tells about itself: while it runs, and when it is done.

use std::time::Duration;

use windlass_base::Moment;
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
}

impl StageCounters {
    /// Adds what another thread of the same stage did.
    pub(crate) fn add(&mut self, other: &Self) {
        self.threads += other.threads;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.calls += other.calls;
        self.busy += other.busy;
        self.wait_input += other.wait_input;
        self.wait_output += other.wait_output;
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

impl Stages {
    /// The stage that limited the run: the one whose threads were busy for most of the time.
    pub fn limiting(&self) -> &'static str {
        let share = |stage: &StageCounters| {
            let threads = f64::from(stage.threads.max(1));
            stage.busy.as_secs_f64() / threads
        };
        let stages = [
            ("read", share(&self.read)),
            ("transform", share(&self.transform)),
            ("write", share(&self.write)),
        ];
        let busiest = stages.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        busiest.map_or("read", |stage| stage.0)
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
