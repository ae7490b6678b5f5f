//! Proves that backups can be restored, by restoring them: to a scratch folder, where the database is checked, asked
//! the user's own question, and deleted.
//!
//! | file | what |
//! |---|---|
//! | `run` | the steps, and the entry in the ledger |
//! | `proof` | the check and the question, in an instance that exists in memory alone |
//!
//! Invariants:
//! 1. Nothing outside of the scratch folder is written, and no database of the instance is touched or registered.
//! 2. A drill succeeds only if every set was restored, the check found nothing, and the question was answered with yes.
//! 3. The ledger has every drill that ended, also those that failed; one that cannot be written there is said.

mod proof;
mod run;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use windlass_base::{Moment, word};
use windlass_crypt::KeyRing;
use windlass_io::queue::IoMethodChoice;
use windlass_media::SetType;

use super::{Aim, DeviceName};

/// The options of a drill.
#[derive(Debug, Clone)]
pub struct DrillOptions {
    /// Backups, and folders of them; those that the history names if empty.
    pub media: Vec<DeviceName>,
    pub aim: Aim,
    /// The folder in which the database is restored, in a new folder of its own.
    pub scratch: PathBuf,
    /// The most bytes that the files of the database may take there.
    pub space_bytes_max: Option<u64>,
    pub depth: word::Depth,
    /// A question in SQL. The first value of its first row must be neither missing, NULL, 0 nor empty.
    pub query: Option<String>,
    /// Leaves the restored files where they are.
    pub keeps_files: bool,
    /// Keys in addition to those of the instance.
    pub keys: KeyRing,
    /// Files of public keys; one of them must have signed each set.
    pub signed_by: Vec<String>,
    pub threads: Option<i64>,
    pub io_method: IoMethodChoice,
}

/// A backup set that a drill restores.
#[derive(Debug, Clone, Copy)]
pub struct DrilledSet {
    pub set_type: SetType,
    pub started: Option<Moment>,
    pub finished: Option<Moment>,
}

impl fmt::Display for DrilledSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.set_type.name())?;
        match self.finished.or(self.started) {
            Some(made) => write!(f, " {made}"),
            None => Ok(()),
        }
    }
}

impl DrillOutcome {
    /// The sets in words.
    pub fn sets_in_words(&self) -> String {
        let sets: Vec<String> = self.sets.iter().map(ToString::to_string).collect();
        sets.join(", ")
    }
}

/// What a drill has proven.
#[derive(Debug, Clone)]
pub struct DrillOutcome {
    /// The sets that were restored, in order.
    pub sets: Vec<DrilledSet>,
    /// The state that was restored: a time, as far as it is known.
    pub restored_to: Option<String>,
    /// Of all files together.
    pub database_bytes: u64,
    /// From the first look at the media to the database that can be opened; `None` in a dry run.
    pub restore: Option<Duration>,
    pub check: Option<Duration>,
    /// What the question was answered with.
    pub answer: Option<String>,
    /// Where the files are, if they were kept.
    pub kept: Option<PathBuf>,
}
