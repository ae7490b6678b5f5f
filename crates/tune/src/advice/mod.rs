//! Automates the three-step procedure of "Optimizing backup speed" (2013) in bounded time: it
//! measures how fast the database can be read, then which compression and how many threads keep up
//! with that, then which files and transfer sizes keep up with the compression. Finally it runs the
//! resulting settings once more to predict the whole backup.
//!
//! | file | what |
//! |---|---|
//! | `procedure` | the steps |
//! | `choice` | decides between settings that were measured several times |
//! | `goal` | compares settings |
//! | `target` | folders and names of backups |
//! | `show` | the results as a report |

mod choice;
mod goal;
mod procedure;
mod show;
mod target;

use std::path::PathBuf;
use std::time::Duration;

use windlass_codec::{Algorithm, Compression};
use windlass_report::Spread;

use crate::database::{CachePolicy, Database};
use crate::rounds::Runs;

pub use goal::Goal;
pub use procedure::advise;
pub use show::Statements;

#[derive(Debug, Clone)]
pub struct Request {
    /// What to optimise.
    pub goal: Goal,
    /// Approximate time limit of the measurements.
    pub time: Duration,
    pub cache: CachePolicy,
    /// Algorithms that a backup could not use.
    pub without: Vec<Algorithm>,
    /// Folders or files for the backups; the database's own folder if empty.
    pub targets: Vec<PathBuf>,
}

/// The results of the procedure.
#[derive(Debug)]
pub struct Advice {
    pub recommendation: Recommendation,
    /// The expected result.
    pub prediction: Prediction,
    request: Request,
    database: Database,
    read: Vec<Trial>,
    write: Vec<Trial>,
    transform: Vec<Trial>,
    full: Vec<Trial>,
    /// The recommended settings, run once more.
    confirmed: Trial,
    decisions: Vec<Decision>,
}

/// How a step chose.
#[derive(Debug)]
struct Decision {
    subject: String,
    chosen: String,
    certainty: &'static str,
    /// The candidates that are not shown to be worse.
    others: Vec<String>,
    rounds: usize,
}

/// Settings for a backup. The plan chooses absent ones best.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recommendation {
    /// Algorithm and level.
    pub compression: Compression,
    /// Number of threads, if fewer than one per core are enough.
    pub threads: Option<u32>,
    /// MAXTRANSFERSIZE in bytes, if one other than the default is faster.
    pub transfer_bytes: Option<u32>,
    pub devices: Vec<PathBuf>,
}

/// The expected cost of a whole backup with the recommended settings.
#[derive(Debug, Clone, Copy)]
pub struct Prediction {
    pub seconds: Spread,
    /// Bytes on media.
    pub stored_bytes: u64,
    /// Megabytes (2^20) of the database per second.
    pub rate: f64,
    /// The stage that will be the bottleneck.
    pub limit: &'static str,
    /// Share of the database that was read for the prediction, 0 to 1.
    pub sampled: f64,
}

/// A setting and its runs.
#[derive(Debug)]
struct Trial {
    setting: crate::measure::Setting,
    runs: Runs,
    /// Whether the next step uses it.
    is_chosen: bool,
}

impl Trial {
    /// Megabytes of the database per second.
    fn rate(&self) -> f64 {
        self.runs.rate().median
    }
}
