//! What a backup has come to.

use std::path::PathBuf;

use windlass_base::Message;
use windlass_pipeline::{BackupReport, ProbeReport};

use crate::{Failure, Rehearsal};

/// The result of a backup.
#[derive(Debug, Clone)]
pub enum BackupOutcome {
    /// A backup was made.
    Made(Box<BackupMade>),
    /// The database was measured; nothing was written.
    Measured(Box<ProbeReport>),
    /// A dry run: the report of what would be done.
    Rehearsed(Box<Rehearsal>),
}

#[derive(Debug, Clone)]
pub struct BackupMade {
    pub report: BackupReport,
    /// The devices of the first copy, with the names used in the history.
    pub devices: Vec<String>,
    /// The files of all copies.
    pub files: Vec<PathBuf>,
    /// Whether everything went to NUL.
    pub is_discarded: bool,
    /// Whether it was entered in the history.
    pub is_remembered: bool,
    /// What a log backup lacks at its end.
    pub lacks: Option<Message>,
}

impl BackupOutcome {
    /// Ends the command or statement that wanted the backup.
    ///
    /// # Errors
    /// The backup is complete, and counts, but is not all that was wanted ([`Failure::is_done`]).
    pub fn told(&self) -> Result<(), Failure> {
        match self {
            Self::Made(made) => match &made.lacks {
                Some(lacks) => Err(Failure::of_loss(vec![lacks.clone()])),
                None => Ok(()),
            },
            Self::Measured(_) | Self::Rehearsed(_) => Ok(()),
        }
    }
}
