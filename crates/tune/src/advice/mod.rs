//! The three-step procedure of "Optimizing backup speed" (2013), done by the program itself, in
//! bounded time: how fast the database can be read; which compression and how many threads keep up
//! with that; which files and transfers keep up with the compression. Then the settings it arrived
//! at are run once more to predict the whole backup.
//!
//! | file | what |
//! |---|---|
//! | `procedure` | the steps |
//! | `goal` | which of two settings is better |
//! | `target` | where backups go, and their names |
//! | `show` | the results as a report |

mod goal;
mod procedure;
mod show;
mod target;

use std::path::PathBuf;
use std::time::Duration;

use windlass_codec::Compression;
use windlass_report::Spread;

use crate::database::{CachePolicy, Database};
use crate::rounds::Runs;

pub use goal::Goal;
pub use procedure::advise;
pub use show::Statements;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// What the settings are to serve.
    pub goal: Goal,
    /// How long the measurements may take, roughly.
    pub time: Duration,
    /// What happens to the page cache.
    pub cache: CachePolicy,
    /// Folders or files that the backups are to go to; the database's own folder when empty.
    pub targets: Vec<PathBuf>,
}

/// What the procedure found.
#[derive(Debug)]
pub struct Advice {
    /// What to use.
    pub recommendation: Recommendation,
    /// What to expect of it.
    pub prediction: Prediction,
    request: Request,
    database: Database,
    read: Vec<Trial>,
    transform: Vec<Trial>,
    full: Vec<Trial>,
    /// The settings that are recommended, once more.
    confirmed: Trial,
}

/// Settings for a backup. What is absent is best left to the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recommendation {
    /// Algorithm and level.
    pub compression: Compression,
    /// Threads, where fewer than one for each processor are enough.
    pub threads: Option<u32>,
    /// MAXTRANSFERSIZE in bytes, where another than the default is faster.
    pub transfer_bytes: Option<u32>,
    /// The files of the backup.
    pub devices: Vec<PathBuf>,
}

/// What a whole backup with the recommended settings will take.
#[derive(Debug, Clone, Copy)]
pub struct Prediction {
    /// Seconds.
    pub seconds: Spread,
    /// Bytes on media.
    pub stored_bytes: u64,
    /// Megabytes (2^20) of the database in a second.
    pub rate: f64,
    /// The stage that will limit it.
    pub limit: &'static str,
    /// Share of the database that was read to tell, 0 to 1.
    pub sampled: f64,
}

/// A setting and its runs.
#[derive(Debug)]
struct Trial {
    setting: crate::measure::Setting,
    runs: Runs,
    /// Whether the next step goes on with it.
    is_chosen: bool,
}

impl Trial {
    /// Megabytes of the database in a second.
    fn rate(&self) -> f64 {
        self.runs.rate().median
    }
}
