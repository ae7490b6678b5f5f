//! Backups in a simulation: taken while transactions continue, restored on another disk and
//! compared.

use std::path::PathBuf;
use std::sync::Arc;

use windlass_base::Guid;
use windlass_engine::{
    Backup, BackupDescription, BackupMode, BackupRange, EngineError, FileSpec, OpenDatabase,
    Reached, Restore,
};

use crate::disk::Disk;
use crate::outcome::compare;
use crate::world::{State, World, log_path};

/// The content of a backup's medium.
#[derive(Debug, Clone)]
pub(crate) struct Copy {
    description: Vec<u8>,
    ranges: Vec<(BackupRange, Vec<u8>)>,
    log: Vec<u8>,
}

/// Makes a backup of any kind; restores and compares it.
pub(crate) fn backup(world: &mut World) -> Result<(), String> {
    let kind = match world.rng.below(4) {
        0 | 1 => BackupMode::Full,
        2 => BackupMode::CopyOnly,
        _ => BackupMode::Differential,
    };
    if kind == BackupMode::Differential && world.database()?.differential_base().set.is_nil() {
        return Ok(());
    }
    run(world, kind)
}

/// Sometimes after a crash: a differential backup on the base that survived.
pub(crate) fn check_map(world: &mut World) -> Result<(), String> {
    if world.database()?.differential_base().set.is_nil() || world.rng.chance(50) {
        return Ok(());
    }
    run(world, BackupMode::Differential)
}

pub(crate) fn run(world: &mut World, kind: BackupMode) -> Result<(), String> {
    let database = world.database()?;
    let set = Guid::from_stored((u128::from(world.rng.draw()) | 1).to_le_bytes());
    let base = database.differential_base().set;
    let mut backup = match database.begin_backup(kind) {
        Ok(backup) => backup,
        Err(error) => return world.may_fail(Err(error)),
    };
    let Some((copy, state)) = take(world, &mut backup)? else {
        return Ok(());
    };
    if world.rng.chance(10) {
        // The medium failed: nothing may have changed.
        return Ok(());
    }
    if kind == BackupMode::Full {
        // The copy of the base is known, whether a crash now leaves the old or the new base.
        world.copies.insert(set, copy.clone());
    }
    if let Err(error) = backup.complete(set) {
        return world.may_fail(Err(error));
    }
    let chain = match kind {
        BackupMode::Differential => {
            let full = world
                .copies
                .get(&base)
                .ok_or("the base is no backup that was taken")?;
            let full = full.clone();
            world.differentials.push((base, copy.clone()));
            vec![full, copy]
        }
        _ => vec![copy],
    };
    world.outcome.restores += 1;
    world.outcome.differentials += u64::from(kind == BackupMode::Differential);
    restore(&chain, &state).map_err(|reason| format!("{kind:?} backup restored: {reason}"))
}

/// Copies data and log while transactions continue; `None` if a fault ended it.
fn take(world: &mut World, backup: &mut Backup) -> Result<Option<(Copy, State)>, String> {
    let mut ranges = Vec::new();
    for range in backup.ranges(128 * 1024) {
        if world.rng.chance(40) {
            world.operation_during_backup()?;
        }
        let mut bytes = vec![0; range.bytes];
        if let Err(error) = backup.read_range(&range, &mut bytes) {
            return world.may_fail(Err(error)).map(|()| None);
        }
        let mut damage = None;
        backup.verify(&range, &bytes, &mut |error| damage = Some(error));
        if let Some(error) = damage {
            return Err(format!("backup: {error}"));
        }
        ranges.push((range, bytes));
    }
    let state = Arc::clone(&world.acknowledged);
    let description = match backup.finish_data() {
        Ok(description) => description.encode(),
        Err(error) => return world.may_fail(Err(error)).map(|()| None),
    };
    if world.rng.chance(40) {
        world.operation_during_backup()?;
    }
    let mut log = Vec::new();
    let outcome = backup.read_log(|bytes| {
        log.extend_from_slice(bytes);
        Ok(())
    });
    if let Err(error) = outcome {
        return world.may_fail(Err(error)).map(|()| None);
    }
    let copy = Copy {
        description: description.map_err(|error| error.to_string())?,
        ranges,
        log,
    };
    Ok(Some((copy, state)))
}

fn restore(chain: &[Copy], state: &State) -> Result<(), String> {
    let disk = Disk::new(1);
    let (restore, ..) = restored_data(chain, &disk)?;
    finished(restore, &disk, std::slice::from_ref(state))
}

/// Restores a full backup, and perhaps a differential one.
pub(crate) fn restored_data(
    chain: &[Copy],
    disk: &Disk,
) -> Result<(Restore, BackupDescription, Reached), String> {
    let fail = |error: EngineError| error.to_string();
    let mut done: Option<(Restore, BackupDescription)> = None;
    for copy in chain {
        let description = BackupDescription::decode(&copy.description).map_err(fail)?;
        let files = Arc::new(disk.clone());
        let mut step = match done {
            None => Restore::begin(files, &description, &[]),
            Some(_) => Restore::onto(files, &description, &[]),
        }
        .map_err(fail)?;
        for (range, bytes) in &copy.ranges {
            step.write_range(range, bytes).map_err(fail)?;
        }
        for part in copy.log.chunks(10_000) {
            step.apply_log(part).map_err(fail)?;
        }
        step.settle().map_err(fail)?;
        done = Some((step, description));
    }
    let (step, description) = done.ok_or("nothing to restore")?;
    let reached = step.reached();
    Ok((step, description, reached))
}

/// Ends a restore, and compares the database with the states of which it should be one.
pub(crate) fn finished(step: Restore, disk: &Disk, states: &[State]) -> Result<(), String> {
    let fail = |error: EngineError| error.to_string();
    let log = FileSpec {
        size: 384 * 1024,
        ..FileSpec::log("log", PathBuf::from("/d/restored.ldf"))
    };
    step.finish("a", &log, None).map_err(fail)?;
    disk.restart();
    let instance = World::instance(&mut crate::rng::Rng::new(1), disk)?;
    let request = OpenDatabase::new("a", &log.path);
    let database = instance.open_database(&request).map_err(fail)?;
    debug_assert_ne!(log.path, log_path());
    let snapshot = database.begin_read();
    let mut outcome = Err("no state is expected".to_owned());
    for state in states {
        outcome = compare(&snapshot, state, disk);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}
