//! The recovery model, and the chain of log backups.
//!
//! A chain begins with a full or differential backup in the recovery model FULL, and ends when the database
//! leaves that model, or another program has changed its only data file. While there is a chain, the log
//! before its *tail* is in log backups, and nothing of the tail is reused.
//!
//! Invariants:
//! - The tail starts at the first position of the backup that began the chain, or where a log backup ended
//!   whose set is durable. A header says so before any of the log before it is reused.
//! - One backup at a time moves the start of the tail, and the recovery model does not change meanwhile.
//! - A backup begins a chain only if the database had the recovery model FULL all the time: only then the log
//!   says which data files were added.

use parking_lot::{Mutex, MutexGuard};
use windlass_base::Lsn;

use super::Database;
use crate::error::{EngineError, Result};
use crate::log::{LogReuseWait, Position, Tail};
use crate::options::RecoveryModel;

/// Who may move the start of the tail.
#[derive(Debug, Default)]
pub(super) struct LogChain(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// A log backup is under way that will truncate the log.
    is_taken: bool,
    /// Number of changes of the recovery model since opening.
    switches: u64,
}

impl LogChain {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// For a log backup that will truncate the log; `false` if there is one.
    pub(super) fn take(&self) -> bool {
        !std::mem::replace(&mut self.state().is_taken, true)
    }

    pub(super) fn give_back(&self) {
        self.state().is_taken = false;
    }
}

/// The recovery model when a backup began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ModelThen {
    model: RecoveryModel,
    switches: u64,
}

impl Database {
    pub fn recovery_model(&self) -> RecoveryModel {
        self.header.recovery_model()
    }

    /// Changes the recovery model. SIMPLE ends the chain of log backups; after FULL it begins with the next full
    /// or differential backup.
    ///
    /// # Errors
    /// [`EngineError::BackupRunning`] while a log backup is under way.
    pub fn set_recovery_model(&self, model: RecoveryModel) -> Result<()> {
        self.check_writable()?;
        let mut state = self.log_chain.state();
        if state.is_taken {
            return Err(EngineError::BackupRunning {
                database: self.name.clone(),
            });
        }
        if self.recovery_model() == model {
            return Ok(());
        }
        state.switches += 1;
        // No data file is added meanwhile.
        let gate = self.commits.gate();
        if model == RecoveryModel::Simple {
            // No restore goes back to a time of the chain that ends here.
            self.header.forget_time(&gate);
        }
        self.header.write(&self.log, &self.data, |header| {
            header.recovery_model = model;
            header.tail = None;
        })?;
        self.log.set_tail(None);
        Ok(())
    }

    /// What keeps the log from being reused.
    pub fn log_reuse_wait(&self) -> LogReuseWait {
        self.log.reuse_wait()
    }

    /// Where the next log backup begins; `None` if no chain has begun.
    pub fn tail_start(&self) -> Option<Lsn> {
        self.log.tail().map(|tail| tail.start.lsn(1))
    }

    pub(super) fn model_now(&self) -> ModelThen {
        let state = self.log_chain.state();
        ModelThen {
            model: self.recovery_model(),
            switches: state.switches,
        }
    }

    /// Begins a chain at `first`, which the caller holds, if there is none and the recovery model has been FULL
    /// since `then`. The next header makes it durable. Returns whether it did.
    pub(super) fn begin_chain(&self, first: Position, then: ModelThen) -> Result<bool> {
        let state = self.log_chain.state();
        let is_unbroken = then.switches == state.switches && then.model == RecoveryModel::Full;
        if !is_unbroken || self.log.tail().is_some() {
            return Ok(false);
        }
        // The log from here on is on disk: the backup has it.
        let Some((header, _)) = self.log.reader(first).next()? else {
            return Err(EngineError::Corrupt {
                path: self.log_path(),
                what: format!("it has no block at {first:?}, where the backup began"),
            });
        };
        let tail = Tail {
            start: first,
            previous: header.previous,
        };
        self.log.set_tail(Some(tail));
        self.header.note_tail(Some(tail));
        Ok(true)
    }

    /// Ends the chain: the log does not say what changed.
    pub(super) fn break_chain(&self) {
        self.header.note_tail(None);
        self.log.set_tail(None);
    }

    /// Moves the start of the tail from `from` to `to`, durably, and frees the log before it.
    pub(super) fn move_tail(&self, from: Tail, to: Tail) -> Result<()> {
        if self.log.tail() != Some(from) {
            return Err(EngineError::Invalid(format!(
                "the log of database '{}' was not truncated: its tail has changed during the backup",
                self.name
            )));
        }
        self.header
            .write(&self.log, &self.data, |header| header.tail = Some(to))?;
        self.log.set_tail(Some(to));
        Ok(())
    }
}
