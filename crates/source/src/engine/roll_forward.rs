//! The restore of a log backup of a page engine database: rolls the waiting data files forward.
//!
//! The log is collected first; nothing else changes before all of it has been seen. A crash while it is applied
//! leaves [`Progress::Rolling`]: the same log can be applied again, up to the same point or further.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use windlass_engine::storage::OwnFiles;
use windlass_engine::{Restore, RollForward, Scanned};
use windlass_io::DirectFile;

use super::ending::{check_names, complete, make_whole, place};
use super::pending::{Approved, PendingRestore, Progress, pending, remove_all, remove_unheld};
use super::restore::{
    EngineRestoreRequest, Replaced, check_protection, claim, each_piece, modes, places,
};
use super::room::check_log_room;
use super::standby::Standby;
use super::{LOG_FILE_ID, describe, engine_error, io_error, staged};
use crate::{Error, Recovery, RestoreTarget};

/// The restore of a log backup. For its temporary files, see [`super`].
#[derive(Debug)]
pub struct EngineLogTarget {
    /// Until it is applied.
    roll: Option<RollForward>,
    /// The file that collects the log of the set; locked, so that no second restore of the target starts.
    log_bytes: DirectFile,
    state: PendingRestore,
    name: String,
    rolled: Arc<OnceLock<Rolled>>,
    is_over: bool,
    standby: Standby,
    _replaced: Replaced,
}

/// What the restore of a log backup has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rolled {
    /// The state of the database: a log that ends before the point to stop at ends no sequence.
    pub recovery: Recovery,
    /// Whether the point to stop at was reached.
    pub is_reached: bool,
    /// Its data files: those that a log adds behind the point to stop at are none.
    pub data: Vec<PathBuf>,
    /// Where a restore to a time has stopped in the log of a `SQLite` file: the time of its state and that of the next one, in
    /// microseconds since 1970, UTC.
    pub stopped_us: Option<(u64, Option<u64>)>,
}

impl EngineLogTarget {
    /// Claims the waiting files for this restore. A refusal leaves everything unchanged.
    ///
    /// # Errors
    /// [`Error::RestoreRunning`], [`Error::InUse`], [`Error::NoSpace`], [`Error::NotRestoring`],
    /// [`Error::LessProtected`], [`Error::RestoreInterrupted`], those of the engine, above all
    /// [`EngineError::LogRefused`](windlass_engine::EngineError::LogRefused).
    pub fn begin(request: &EngineRestoreRequest) -> Result<Self, Error> {
        let description = describe(&request.description)?;
        let (data, log) = places(&description, &request.files)?;
        complete(&log)?;
        let log_bytes = claim(&log)?;
        let begun = (|| {
            let mut state = waiting_for_log(&log)?;
            let standby = Standby::hold(&state)?;
            state.standby = None;
            check_protection(&state, request)?;
            let stop = request.stop.clone();
            let roll = RollForward::begin(&state.description, state.reached, &description, stop);
            let roll = roll.map_err(engine_error)?;
            check_log_room(&state, request.redo_bytes)?;
            let approved = Approved::of(&state);
            // Those that the log adds; the others stay where they are.
            let known = state.data.len();
            if let Some((path, _)) = data.iter().zip(&state.data).find(|(new, old)| new != old) {
                let path = path.clone();
                return Err(Error::NotRestoring { path });
            }
            state.data.extend(data.into_iter().skip(known));
            for (file_id, mode) in modes(&request.files) {
                state.modes.entry(file_id).or_insert(mode);
            }
            state.set_guid = request.set_guid;
            state.protection = request.protection.clone();
            state.as_is |= request.as_is;
            state.made_for = request.made_for.or(state.made_for);
            let replaced = Replaced::seize(&mut state, request.existing, Some(&approved))?;
            Ok((state, roll, replaced, standby))
        })();
        let (state, roll, replaced, standby) =
            begun.inspect_err(|_: &Error| drop(windlass_io::own::remove(log_bytes.path())))?;
        Ok(Self {
            roll: Some(roll),
            log_bytes,
            state,
            name: request.database_name.clone(),
            rolled: Arc::default(),
            is_over: false,
            standby,
            _replaced: replaced,
        })
    }

    /// What the restore has left, once it has finished.
    pub fn rolled(&self) -> Arc<OnceLock<Rolled>> {
        Arc::clone(&self.rolled)
    }

    /// Looks at all of the log, then applies it.
    fn roll(&mut self, mut roll: RollForward) -> Result<(Restore, Scanned), Error> {
        let Self {
            log_bytes, state, ..
        } = self;
        each_piece(log_bytes, |piece| roll.scan(piece))?;
        let scanned = roll.scanned().map_err(engine_error)?;
        let system = Arc::new(OwnFiles);
        roll.open(system, &state.staged_data())
            .map_err(engine_error)?;
        state.check_staged(roll.data_files())?;
        // The set and the files as they were, so that another program continues from there.
        let mut before = waiting_for_log(&state.log)?;
        before.reached.applied = before.reached.applied.max(scanned.end.0);
        before.standby = None;
        before.store(Progress::Rolling)?;
        each_piece(log_bytes, |piece| roll.apply(piece))?;
        let (restore, description, reached) = roll.settle().map_err(engine_error)?;
        let count = description.data_files().len();
        let targets = state.data.len();
        state.data.truncate(count);
        if state.replaced.len() > targets {
            state.replaced.drain(count..targets);
        }
        state.description = description;
        state.reached = reached;
        state.note_staged(&restore)?;
        Ok((restore, scanned))
    }

    fn give_up(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.is_over, true) {
            return Ok(());
        }
        remove_unheld(&[staged(&self.state.log)])?;
        remove_all(&[self.log_bytes.path().to_owned()])
    }
}

impl RestoreTarget for EngineLogTarget {
    fn write(&self, file_id: u16, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        if file_id != LOG_FILE_ID {
            return Err(Error::OutOfRange {
                file_id,
                offset,
                bytes: bytes.len() as u64,
                size_bytes: 0,
            });
        }
        let path = self.log_bytes.path();
        self.log_bytes
            .write_at(bytes, offset)
            .map_err(|error| io_error("write", path, error))
    }

    fn finish(mut self: Box<Self>, recovery: Recovery) -> Result<(), Error> {
        let Some(roll) = self.roll.take() else {
            return Ok(());
        };
        let (restore, scanned) = self.roll(roll)?;
        // From here on a failure does not cost the sequence: RECOVERY alone can be repeated.
        self.state.store(Progress::Ready)?;
        self.standby.remove()?;
        let left = match scanned.is_reached {
            true => recovery,
            false => Recovery::NoRecovery,
        };
        if left == Recovery::Recovery {
            let restored = make_whole(restore, &self.state, &self.name)?;
            check_names(&self.state)?;
            self.state.store(Progress::Placing)?;
            // From here on what was made is all that there is.
            self.is_over = true;
            place(&self.state, &restored)?;
        }
        self.is_over = true;
        let _first = self.rolled.set(Rolled {
            recovery: left,
            is_reached: scanned.is_reached,
            data: self.state.data.clone(),
            stopped_us: None,
        });
        remove_all(&[self.log_bytes.path().to_owned()])
    }

    fn abandon(mut self: Box<Self>) -> Result<(), Error> {
        self.give_up()
    }
}

impl Drop for EngineLogTarget {
    fn drop(&mut self) {
        // The error cannot be returned from a drop; the next restore removes the remains.
        let _left = self.give_up();
    }
}

/// The unfinished restore at `log`, if a log backup can continue it.
fn waiting_for_log(log: &Path) -> Result<PendingRestore, Error> {
    let not_restoring = || Error::NotRestoring {
        path: log.to_owned(),
    };
    let state = pending(log)?.ok_or_else(not_restoring)?;
    match state.progress {
        Progress::Ready | Progress::Rolling => Ok(state),
        Progress::Applying => Err(Error::RestoreInterrupted {
            path: log.to_owned(),
        }),
        Progress::Placing | Progress::Leaving => Err(not_restoring()),
    }
}
