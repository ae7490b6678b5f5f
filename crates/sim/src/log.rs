//! Log backups in a simulation: taken while transactions continue, and restored on another disk upon a full backup and
//! perhaps a differential, up to a commit, to a time or to their end.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use windlass_base::{Guid, Lsn};
use windlass_engine::{
    BackupDescription, BackupMode, EngineError, LogRefusal, Reached, RecoveryModel, Restore,
    RollForward, StopAt,
};

use crate::copy::{self, Copy};
use crate::disk::Disk;
use crate::rng::Rng;
use crate::world::{State, World};

/// A commit, and the state that it has left.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    /// Its last record; `None` if nobody heard of it.
    pub(crate) lsn: Option<Lsn>,
    /// The time before it, and the time after it, in milliseconds since 1970, UTC.
    pub(crate) begun_ms: u64,
    pub(crate) ended_ms: u64,
    pub(crate) state: State,
}

impl Moment {
    /// A commit that has just ended.
    pub(crate) fn new(lsn: Option<Lsn>, begun_ms: u64, state: &State) -> Self {
        Self {
            lsn,
            begun_ms,
            ended_ms: now_ms(),
            state: Arc::clone(state),
        }
    }
}

/// In milliseconds since 1970, UTC.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_millis() as u64)
}

/// The content of a log backup's medium, and the state that it leads to.
#[derive(Debug, Clone)]
pub(crate) struct LogCopy {
    description: Vec<u8>,
    log: Vec<u8>,
    state: State,
}

/// Makes a log backup; restores and compares it, sometimes. Before, the database gets the recovery model for it.
pub(crate) fn backup(world: &mut World) -> Result<(), String> {
    let database = world.database()?;
    if database.recovery_model() == RecoveryModel::Simple {
        let outcome = database.set_recovery_model(RecoveryModel::Full);
        return world.may_fail(outcome);
    }
    if database.tail_start().is_none() {
        return copy::run(world, BackupMode::Full);
    }
    let truncates = world.rng.chance(85);
    let backup = match database.begin_log_backup(truncates) {
        Ok(backup) => backup,
        Err(error) => return world.may_fail(Err(error)),
    };
    let state = Arc::clone(&world.acknowledged);
    let (mut copy, mut log) = (backup.copy(), Vec::new());
    let mut piece = vec![0; 64 << 10];
    loop {
        match copy.read(&mut piece) {
            Ok(0) => break,
            Ok(bytes) => log.extend_from_slice(&piece[..bytes]),
            Err(error) => return world.may_fail(Err(error)),
        }
        if world.rng.chance(40) {
            world.operation_during_backup()?;
        }
    }
    let description = backup.description().encode();
    world.logs.push(LogCopy {
        description: description.map_err(|error| error.to_string())?,
        log,
        state,
    });
    world.outcome.log_backups += 1;
    if world.rng.chance(15) {
        // The set is durable, and its end was not heard of.
        return check(world);
    }
    let completed = backup.complete();
    world.may_fail(completed)?;
    check(world)
}

/// Sometimes restores one of the full backups, perhaps a differential of it, and the log backups that follow, up to some
/// moment or to their end.
pub(crate) fn check(world: &mut World) -> Result<(), String> {
    if world.copies.is_empty() || world.logs.is_empty() || world.rng.chance(50) {
        return Ok(());
    }
    let index = world.rng.below(world.copies.len() as u64) as usize;
    let Some((&set, full)) = world.copies.iter().nth(index) else {
        return Ok(());
    };
    // Seeds that were found earlier go on as they did.
    let mut rng = Rng::new(world.disk.operations());
    let mut data = vec![full.clone()];
    let of_full = |(base, _): &&(Guid, Copy)| *base == set;
    let upon: Vec<&Copy> = (world.differentials.iter())
        .filter(of_full)
        .map(|(_, copy)| copy)
        .collect();
    if let Some(copy) = upon.get(rng.below(upon.len() as u64) as usize)
        && rng.chance(60)
    {
        data.push(Copy::clone(copy));
    }
    let restored = restore(&data, &world.logs, &world.moments, &mut rng)?;
    let outcome = &mut world.outcome;
    outcome.rolled_forward += u64::from(restored.is_rolled);
    outcome.rolled_upon_differential += u64::from(restored.is_rolled && data.len() > 1);
    match restored.stopped {
        Some(StopAt::Time(_)) => outcome.stopped_at_time += 1,
        Some(_) => outcome.stopped_at_commit += 1,
        None => {}
    }
    Ok(())
}

/// How far a restore came.
#[derive(Default)]
struct Restored {
    /// Whether one of the log backups applied.
    is_rolled: bool,
    /// The point that was reached, if it was not the end.
    stopped: Option<StopAt>,
}

/// A point behind what was restored, and the states of which it can be one. Times are those of the clock beside the
/// commit, so that one may be in a state before or after.
fn point(moments: &[Moment], state: &BackupDescription, rng: &mut Rng) -> (StopAt, Vec<State>) {
    let is_behind = |index: &usize| {
        let lsn = moments[*index].lsn;
        lsn.is_some_and(|lsn| lsn > state.last_lsn())
    };
    let behind: Vec<usize> = (1..moments.len()).filter(is_behind).collect();
    let Some(&wanted) = behind.get(rng.below(behind.len() as u64) as usize) else {
        return (StopAt::End, Vec::new());
    };
    let moment = &moments[wanted];
    let Some(lsn) = moment.lsn else {
        return (StopAt::End, Vec::new());
    };
    match rng.below(5) {
        0 => (StopAt::End, Vec::new()),
        1 => (StopAt::Lsn(lsn), vec![Arc::clone(&moment.state)]),
        2 => {
            let before = Arc::clone(&moments[wanted - 1].state);
            (StopAt::BeforeLsn(lsn), vec![before])
        }
        _ => {
            let unix_ms = moment.ended_ms;
            let is_possible = |index: &usize| {
                let next = moments.get(index + 1);
                moments[*index].begun_ms <= unix_ms
                    && next.is_none_or(|next| next.ended_ms > unix_ms)
            };
            let possible = (wanted..moments.len()).filter(is_possible);
            let states = possible.map(|index| Arc::clone(&moments[index].state));
            (StopAt::Time(unix_ms), states.collect())
        }
    }
}

fn restore(
    data: &[Copy],
    logs: &[LogCopy],
    moments: &[Moment],
    rng: &mut Rng,
) -> Result<Restored, String> {
    let disk = Disk::new(1);
    let fail = |error: EngineError| error.to_string();
    let (mut restore, mut state, mut reached) = copy::restored_data(data, &disk)?;
    let (stop, states) = point(moments, &state, rng);
    let mut expected = Vec::new();
    let mut restored = Restored::default();
    for log in logs {
        let is_reached;
        match roll(&disk, &state, reached, (log, &stop)) {
            Ok(rolled) => (restore, state, reached, is_reached) = rolled,
            Err(EngineError::LogRefused { refusal, .. }) => match refusal {
                LogRefusal::TooEarly { .. } => continue,
                LogRefusal::TooRecent { .. } => break,
                other => return Err(format!("a log backup is refused: {other}")),
            },
            Err(error) => return Err(fail(error)),
        }
        restored.is_rolled = true;
        if is_reached && stop != StopAt::End {
            expected.clone_from(&states);
            restored.stopped = Some(stop.clone());
            break;
        }
        if let StopAt::Lsn(lsn) | StopAt::BeforeLsn(lsn) = stop
            && lsn < state.last_lsn()
        {
            return Err(format!(
                "a log backup ends behind {lsn}, and it is not reached"
            ));
        }
        expected = vec![Arc::clone(&log.state)];
    }
    if restored.is_rolled {
        let rolled = copy::finished(restore, &disk, &expected);
        rolled.map_err(|reason| format!("log backups restored to {stop:?}: {reason}"))?;
    }
    Ok(restored)
}

type Rolled = (Restore, BackupDescription, Reached, bool);

fn roll(
    disk: &Disk,
    state: &BackupDescription,
    reached: Reached,
    (log, stop): (&LogCopy, &StopAt),
) -> Result<Rolled, EngineError> {
    let description = BackupDescription::decode(&log.description)?;
    let mut roll = RollForward::begin(state, reached, &description, stop.clone())?;
    for piece in log.log.chunks(10_000) {
        roll.scan(piece)?;
    }
    let scanned = roll.scanned()?;
    let files = description.data_files().iter();
    let places: Vec<_> = files.map(|file| file.path.clone()).collect();
    roll.open(Arc::new(disk.clone()), &places)?;
    for piece in log.log.chunks(10_000) {
        roll.apply(piece)?;
    }
    let (restore, state, reached) = roll.settle()?;
    Ok((restore, state, reached, scanned.is_reached))
}
