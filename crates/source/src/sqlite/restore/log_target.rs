//! The restore of a log backup: rolls the waiting staging file forward.
//!
//! The log is collected in a file beside the target; nothing else changes before all of it has been seen. Then the state
//! is marked as *rolling*, with the time up to which the log is applied, and the pages of its moments are written. A
//! crash meanwhile leaves that mark: the same log, or one that goes on from the same state, can be applied again, up to
//! the same point or further, because every page that a moment changed is written again.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use windlass_base::{Guid, Lsn};

use super::collected_log::CollectedLog;
use super::forward::{Applier, position_of};
use super::staging_file::StagingFile;
use super::state::{self, RestoreProgress, RestoringState};
use super::{Existing, ExistingTarget, Publish, fault, number_of, replaceable, resolve};
use crate::engine::{Rolled, StopAt};
use crate::sqlite::log_description::LogDescription;
use crate::sqlite::spool::{self, Reach, SpoolError, Stop};
use crate::{Error, Protection, Recovery, RestoreTarget};

/// A restore of a log backup.
#[derive(Debug, Clone)]
pub struct LogRestoreRequest {
    /// The target of the restore WITH NORECOVERY before it.
    pub target: PathBuf,
    /// What the set says of its log.
    pub description: Vec<u8>,
    pub family_guid: Guid,
    pub set_guid: Guid,
    pub checkpoint_lsn: Lsn,
    pub stop: StopAt,
    pub existing: Existing,
    pub protection: Protection,
    /// Allows a log that is less protected than its base.
    pub allow_less_protected: bool,
    pub made_for: Option<Guid>,
    /// Setting it makes the restore stop.
    pub cancel: Arc<AtomicBool>,
}

/// A log backup that is applied to the staging file of a sequence of restores.
#[derive(Debug)]
pub struct SqliteLogTarget {
    request: LogRestoreRequest,
    target: PathBuf,
    state: RestoringState,
    /// Held, so that no second restore of the target starts.
    staging: Option<StagingFile>,
    existing: Option<ExistingTarget>,
    /// Collects the log of the set.
    log: CollectedLog,
    rolled: Arc<OnceLock<Rolled>>,
}

impl SqliteLogTarget {
    /// Claims the waiting files for this restore. A refusal leaves everything unchanged.
    ///
    /// # Errors
    /// [`Error::NotRestoring`], [`Error::LessProtected`], [`Error::RestoreRunning`], [`Error::InUse`], [`SpoolError`].
    pub fn begin(request: LogRestoreRequest) -> Result<Self, Error> {
        let target = resolve(&request.target)?;
        let mut state = state::read_for_log(&target)?;
        let description = described(&request.description)?;
        check(&request, &state, &description, &target)?;
        let staging = match state.progress {
            RestoreProgress::Rolling => StagingFile::reopen_any(&target)?,
            _ => StagingFile::reopen(&target, state.size_bytes)?,
        };
        let existing = replaceable(&target, request.existing, Some(&state))?;
        let log = CollectedLog::create(description, &state::log_path(&target))?;
        state.made_for = request.made_for.unwrap_or(state.made_for);
        state.replaced = number_of(existing.as_ref());
        Ok(Self {
            request,
            target,
            state,
            staging: Some(staging),
            existing,
            log,
            rolled: Arc::default(),
        })
    }

    /// What the restore has left, once it has finished.
    pub fn rolled(&self) -> Arc<OnceLock<Rolled>> {
        Arc::clone(&self.rolled)
    }

    /// The state that is reached, and whether that is where the restore is to stop.
    fn reach(&self) -> Result<(Reach, bool), Error> {
        let (begin_us, end_us) = self.log.description.times_us();
        let (stop, is_reached) = match &self.request.stop {
            StopAt::End => (Stop::Latest, true),
            &StopAt::Time(unix_ms) if unix_ms.saturating_mul(1000) > end_us => {
                (Stop::Latest, false)
            }
            &StopAt::Time(unix_ms) => (Stop::Time(unix_ms.saturating_mul(1000)), true),
            StopAt::Lsn(_) | StopAt::BeforeLsn(_) | StopAt::Mark(_) | StopAt::BeforeMark(_) => {
                return Err(SpoolError::NoMarks.told());
            }
        };
        if let Stop::Time(wanted) = stop
            && wanted < begin_us
        {
            return Err(self.before_log(stop));
        }
        let base = position_of(&self.state)?;
        let mut records = self.log.records();
        let reach = spool::find_in(&mut records, &self.request.target, &base, stop);
        let reach = reach.map_err(|error| match error {
            Error::Spool(SpoolError::NotTied { .. }) => SpoolError::OtherHistory.told(),
            error => error,
        })?;
        if reach.time_us < self.state.rolling_us {
            return Err(Error::RollInterrupted {
                path: self.target.clone(),
            });
        }
        Ok((reach, is_reached))
    }

    /// The wanted time is before the first state of the log.
    fn before_log(&self, stop: Stop) -> Error {
        let (begin_us, _) = self.log.description.times_us();
        let time = windlass_base::time_text;
        let (why, before) = match self.log.description.gap() {
            Some((from_us, to_us, reason)) => (
                format!(
                    "commits may be missing between {} and {} ({reason})",
                    time(from_us),
                    time(to_us)
                ),
                time(from_us),
            ),
            None => (
                "it is before the log of this backup set".to_owned(),
                "an earlier log backup".to_owned(),
            ),
        };
        SpoolError::NotCaptured {
            wanted: stop.to_string(),
            why,
            before,
            after: time(begin_us),
        }
        .told()
    }

    fn apply(&mut self, staging: &StagingFile, reach: &Reach) -> Result<(), Error> {
        if reach.records.is_some() {
            let before = RestoringState {
                progress: RestoreProgress::Rolling,
                rolling_us: reach.time_us,
                is_differential: true,
                ..self.state.clone()
            };
            before.write(&self.target)?;
            fault::point("log marked");
            let mut size_bytes = staging.bytes()?;
            let mut applier = Applier {
                records: self.log.records(),
                staging,
                size_bytes: &mut size_bytes,
                cancel: &self.request.cancel,
            };
            applier.run(reach)?;
            self.state.size_bytes = size_bytes;
            fault::point("log applied");
        }
        staging.sync(self.state.size_bytes)
    }
}

fn described(bytes: &[u8]) -> Result<LogDescription, Error> {
    LogDescription::parse(bytes).ok_or_else(|| SpoolError::NotDescribed.told())
}

fn check(
    request: &LogRestoreRequest,
    state: &RestoringState,
    description: &LogDescription,
    target: &Path,
) -> Result<(), Error> {
    if state.family_guid != request.family_guid {
        return Err(SpoolError::OtherHistory.told());
    }
    if !state.protection.admits(&request.protection) && !request.allow_less_protected {
        return Err(Error::LessProtected {
            path: target.to_owned(),
            base: state.protection.clone(),
            found: request.protection.clone(),
        });
    }
    let (first, last) = (description.first_lsn(), description.last_lsn());
    let reached = state.reached_lsn();
    if first > reached && !is_begin(state, description) {
        return Err(SpoolError::TooRecent {
            first,
            needed: reached,
        }
        .told());
    }
    match last < reached {
        true => Err(SpoolError::TooEarly {
            last,
            needed: reached,
        }
        .told()),
        false => Ok(()),
    }
}

/// Whether the state is that with which the log begins.
fn is_begin(state: &RestoringState, description: &LogDescription) -> bool {
    let position = &description.begin.position;
    !position.is_unknown() && position_of(state).is_ok_and(|found| found.is_same_content(position))
}

impl RestoreTarget for SqliteLogTarget {
    fn write(&self, file_id: u16, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.log.write(file_id, offset, bytes)
    }

    fn finish(mut self: Box<Self>, recovery: Recovery) -> Result<(), Error> {
        let not_restoring = || Error::NotRestoring {
            path: self.target.clone(),
        };
        self.log.check()?;
        let (reach, is_reached) = self.reach()?;
        let staging = self.staging.take().ok_or_else(not_restoring)?;
        let recovery = if is_reached {
            recovery
        } else {
            Recovery::NoRecovery
        };
        self.apply(&staging, &reach)?;
        if recovery == Recovery::Recovery {
            staging.check_content(&self.target, self.state.as_is)?;
        }
        // From here on, a failure does not cost the sequence: RECOVERY alone can be repeated.
        let (_, end_us) = self.log.description.times_us();
        self.state.reached_us = match (is_reached, &self.request.stop) {
            (true, StopAt::Time(_)) => reach.time_us,
            _ => end_us,
        };
        self.state.set_guid = self.request.set_guid;
        self.state.checkpoint_lsn = self.request.checkpoint_lsn;
        self.state.protection = self.request.protection.clone();
        self.state.is_differential = true;
        self.state.rolling_us = 0;
        self.state.wal_position = reach.position.to_string();
        self.state.progress = RestoreProgress::Ready;
        self.state.write(&self.target)?;
        fault::point("log ready");
        let _first = self.rolled.set(Rolled {
            recovery,
            is_reached,
            data: vec![self.target.clone()],
            stopped_us: (is_reached && matches!(self.request.stop, StopAt::Time(_)))
                .then_some((reach.time_us, reach.next_us)),
        });
        if recovery == Recovery::NoRecovery {
            return Ok(());
        }
        let publish = Publish {
            target: &self.target,
            state: &self.state,
            cancel: &self.request.cancel,
        };
        publish.run(self.existing.as_mut(), staging)
    }

    fn abandon(self: Box<Self>) -> Result<(), Error> {
        self.log.remove()
    }
}
