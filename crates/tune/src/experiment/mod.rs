//! The articles' experiments. Each creates its variants, runs them alternately, and compares the results
//! with the article's figures, as ratios within one article and within one run.

mod checkpoint;
mod compression;
mod devices;
mod restore;
mod stages;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use windlass_codec::Compression;

use crate::database::{CachePolicy, Database};
use crate::error::Error;
use crate::measure::{Laboratory, Measured};
use crate::present::{self, Outcome};

pub use checkpoint::{CheckpointConditions, POOL_PAGES, run_checkpoint};
pub(crate) use devices::short_size;
pub(crate) use stages::limits_table;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Experiment {
    /// Algorithms and levels, to a file and to NUL, and `QAT_DEFLATE` and `MS_XPRESS` to four
    /// files.
    Compression { compressions: Vec<Compression> },
    /// Files, BLOCKSIZE, MAXTRANSFERSIZE.
    Devices {
        /// Numbers of files.
        files: Vec<usize>,
        /// BLOCKSIZE in bytes.
        block_bytes: Vec<u32>,
        /// MAXTRANSFERSIZE in bytes.
        transfer_bytes: Vec<u32>,
        compression: Compression,
    },
    /// Reading only, reading and compressing, whole backups, for each number of threads.
    Stages {
        compressions: Vec<Compression>,
        /// Numbers of compression threads.
        threads: Vec<u32>,
    },
    /// Backup, verification and restore.
    Restore { compressions: Vec<Compression> },
}

/// Conditions of an experiment.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// Runs of each variant.
    pub rounds: usize,
    pub cache: CachePolicy,
    /// Folders for the backups; files are spread over them.
    pub folders: Vec<PathBuf>,
}

/// Runs an experiment on a database. Reports progress to `announce`; `cancel` stops it.
///
/// # Errors
/// The first run that failed; nothing is left behind.
pub fn run(
    experiment: &Experiment,
    database: &Database,
    conditions: &Conditions,
    cancel: &AtomicBool,
    announce: &dyn Fn(&str),
) -> Result<Outcome, Error> {
    let laboratory = Laboratory::new(database, &conditions.folders, conditions.cache, cancel)?;
    let bench = Bench {
        laboratory: &laboratory,
        conditions,
        announce,
    };
    let mut outcome = match experiment {
        Experiment::Compression { compressions } => compression::run(&bench, compressions),
        Experiment::Devices {
            files,
            block_bytes,
            transfer_bytes,
            compression,
        } => devices::run(
            &bench,
            &devices::Grid {
                files,
                block_bytes,
                transfer_bytes,
                compression: *compression,
            },
        ),
        Experiment::Stages {
            compressions,
            threads,
        } => stages::run(&bench, compressions, threads),
        Experiment::Restore { compressions } => restore::run(&bench, compressions),
    }?;
    let rounds = match conditions.rounds {
        1 => "each variant once".to_owned(),
        rounds => format!("{rounds} rounds, variants alternate"),
    };
    outcome.report.facts = present::facts(database, conditions.cache, rounds);
    outcome.report.notes.extend(present::notes());
    Ok(outcome)
}

/// Data shared by all experiments.
struct Bench<'a> {
    laboratory: &'a Laboratory<'a>,
    conditions: &'a Conditions,
    announce: &'a dyn Fn(&str),
}

impl Bench<'_> {
    /// Reports that a run starts.
    fn announce(&self, round: usize, label: &str) {
        let rounds = self.conditions.rounds;
        (self.announce)(&format!("round {} of {rounds}: {label}", round + 1));
    }

    /// Reports and runs a variant.
    fn step(
        &self,
        round: usize,
        label: &str,
        run: impl FnOnce(&Laboratory<'_>) -> Result<Measured, Error>,
    ) -> Result<Measured, Error> {
        self.announce(round, label);
        run(self.laboratory)
    }

    fn title(&self, what: &str) -> String {
        format!("{what}: {}", self.laboratory.database.name())
    }
}

/// The numbers of threads worth comparing: powers of two, all cores, and one more, which should
/// gain nothing.
pub fn thread_counts() -> Vec<u32> {
    let processors = crate::measure::processors() as u32;
    let powers = (0..10).map(|power| 1 << power);
    let mut counts: Vec<u32> = powers.take_while(|count| *count < processors).collect();
    counts.extend([processors, processors + 1]);
    counts
}

/// The name of a compression in tables and charts.
pub(crate) fn name(compression: Compression) -> String {
    match compression.level {
        Some(level) => format!("{} {level}", compression.algorithm),
        None => compression.algorithm.to_string(),
    }
}

/// Bytes in MB (2^20).
pub(crate) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
