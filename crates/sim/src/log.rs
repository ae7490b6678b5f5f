//! Log backups in a simulation: taken while transactions continue, and restored on another disk upon a full backup,
//! with all log backups since.

use std::sync::Arc;

use windlass_engine::{
    BackupDescription, BackupMode, EngineError, LogRefusal, Reached, RecoveryModel, Restore,
    RollForward, StopAt,
};

use crate::copy::{self, Copy};
use crate::disk::Disk;
use crate::world::{State, World};

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

/// Sometimes restores one of the full backups, and all log backups that follow.
pub(crate) fn check(world: &mut World) -> Result<(), String> {
    if world.copies.is_empty() || world.logs.is_empty() || world.rng.chance(50) {
        return Ok(());
    }
    let index = world.rng.below(world.copies.len() as u64) as usize;
    let Some(full) = world.copies.values().nth(index).cloned() else {
        return Ok(());
    };
    let restored = restore(&full, &world.logs)?;
    world.outcome.rolled_forward += u64::from(restored);
    Ok(())
}

/// Whether one of the log backups applied.
fn restore(full: &Copy, logs: &[LogCopy]) -> Result<bool, String> {
    let disk = Disk::new(1);
    let fail = |error: EngineError| error.to_string();
    let begun = copy::restored_data(std::slice::from_ref(full), &disk)?;
    let (mut restore, mut state, mut reached) = begun;
    let mut expected = None;
    for log in logs {
        match roll(&disk, &state, reached, log) {
            Ok(rolled) => (restore, state, reached) = rolled,
            Err(EngineError::LogRefused { refusal, .. }) => match refusal {
                LogRefusal::TooEarly { .. } => continue,
                LogRefusal::TooRecent { .. } => break,
                other => return Err(format!("a log backup is refused: {other}")),
            },
            Err(error) => return Err(fail(error)),
        }
        expected = Some(Arc::clone(&log.state));
    }
    match expected {
        None => Ok(false),
        Some(state) => {
            let rolled = copy::finished(restore, &disk, &state);
            rolled.map_err(|reason| format!("log backups restored: {reason}"))?;
            Ok(true)
        }
    }
}

fn roll(
    disk: &Disk,
    state: &BackupDescription,
    reached: Reached,
    log: &LogCopy,
) -> Result<(Restore, BackupDescription, Reached), EngineError> {
    let description = BackupDescription::decode(&log.description)?;
    let mut roll = RollForward::begin(state, reached, &description, StopAt::End)?;
    for piece in log.log.chunks(10_000) {
        roll.scan(piece)?;
    }
    let files = description.data_files().iter();
    let places: Vec<_> = files.map(|file| file.path.clone()).collect();
    roll.open(Arc::new(disk.clone()), &places)?;
    for piece in log.log.chunks(10_000) {
        roll.apply(piece)?;
    }
    roll.settle()
}
