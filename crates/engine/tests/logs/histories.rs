//! Random histories; random moments of them, restored through random chains, equal the model.

use windlass_base::Guid;
use windlass_engine::{BackupMode, EngineError, LogRefusal, RecoveryModel, StopAt, WantedMark};

use crate::world::{Kind, Moment, Restored, Rng, Set, World, pages_of, refusal};

/// Some steps of a history. Backups of a chain that the database does not have are refused.
fn live(world: &mut World, steps: u32) {
    for _ in 0..steps {
        let is_full = world.database.recovery_model() == RecoveryModel::Full;
        let has_chain = world.database.tail_start().is_some();
        match world.rng.below(100) {
            0..50 => world.commit().unwrap(),
            50..58 => drop(world.database.checkpoint().unwrap()),
            58..64 => {
                let mode = match world.rng.below(5) {
                    0 => BackupMode::CopyOnly,
                    1..3 if !world.database.differential_base().set.is_nil() => {
                        BackupMode::Differential
                    }
                    _ => BackupMode::Full,
                };
                let completes = !world.rng.chance(15);
                world.back_up(mode, completes).unwrap();
                let begins = is_full && completes && mode != BackupMode::CopyOnly;
                assert_eq!(world.database.tail_start().is_some(), has_chain || begins);
            }
            64..88 => {
                let (truncates, completes) = (!world.rng.chance(15), !world.rng.chance(15));
                let before = world.sets.len();
                match world.back_up_log(truncates, completes) {
                    Ok(()) => {
                        assert!(has_chain);
                        // The engine did not hear of its end, because the set was not kept.
                        let is_lost = !completes && world.rng.chance(50);
                        world.sets.truncate(before + usize::from(!is_lost));
                    }
                    Err(EngineError::NoLogChain { model, .. }) => {
                        assert!(!has_chain);
                        assert_eq!(model == RecoveryModel::Full, is_full);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            88..91 => world.add_file().unwrap(),
            91..94 => world.reopen(),
            94..98 => {
                let folder = tempfile::tempdir().unwrap();
                world.crash(folder.path());
            }
            _ => {
                let model = match (is_full, world.rng.chance(50)) {
                    (true, true) => RecoveryModel::Simple,
                    _ => RecoveryModel::Full,
                };
                world.database.set_recovery_model(model).unwrap();
                world.chain += u32::from(model == RecoveryModel::Simple);
            }
        }
    }
}

/// What a restore begins with, and the log backups to roll it forward with.
struct Chain<'a> {
    data: Vec<&'a Set>,
    logs: Vec<&'a Set>,
}

/// A full backup, perhaps a differential, and all log backups after it.
fn choose<'a>(sets: &'a [Set], rng: &mut Rng) -> Option<Chain<'a>> {
    let fulls: Vec<usize> = (0..sets.len())
        .filter(|index| matches!(sets[*index].kind, Kind::Full | Kind::CopyOnly))
        .collect();
    let mut last = *fulls.get(rng.below(fulls.len() as u64) as usize)?;
    let full: &Set = &sets[last];
    let mut data = vec![full];
    let of = |set: &Set, base: Guid| set.kind == Kind::Differential(base);
    let differentials: Vec<usize> = (last..sets.len())
        .filter(|index| of(&sets[*index], full.guid))
        .collect();
    if rng.chance(50)
        && let Some(index) = differentials.get(rng.below(differentials.len() as u64) as usize)
    {
        last = *index;
        data.push(&sets[last]);
    }
    let logs = sets.iter().filter(|set| set.kind == Kind::Log).collect();
    Some(Chain { data, logs })
}

/// The mark of a moment, and the first moment behind `begin` that has it, from a time on or ever.
fn mark_at(
    moments: &[Moment],
    begin: usize,
    wanted: usize,
    rng: &mut Rng,
) -> Option<(WantedMark, usize)> {
    let name = moments[wanted].mark.clone()?;
    let is_it = |index: &usize| moments[*index].mark.as_ref() == Some(&name);
    // The time must be between two commits.
    let is_later = wanted > 0 && moments[wanted - 1].after_ms < moments[wanted].before_ms;
    if is_later && rng.chance(50) {
        let after_ms = moments[wanted].before_ms;
        return (wanted > begin).then_some((WantedMark { name, after_ms }, wanted));
    }
    let first = (begin + 1..moments.len()).find(is_it)?;
    Some((WantedMark { name, after_ms: 0 }, first))
}

/// Restores a random moment, as far as the chain goes.
fn restore_one(world: &mut World) {
    let (sets, moments) = (world.sets.clone(), world.moments.clone());
    let Some(chain) = choose(&sets, &mut world.rng) else {
        return;
    };
    let rng = &mut world.rng;
    let data = chain.data[chain.data.len() - 1];
    let begin = data.moment;
    let wanted = begin + rng.below((moments.len() - begin) as u64) as usize;
    let marked = mark_at(&moments, begin, wanted, rng);
    let (stop, expected) = match rng.below(6) {
        1 if wanted > begin => (StopAt::Lsn(moments[wanted].lsn), Some(wanted)),
        2 if wanted > begin => (StopAt::BeforeLsn(moments[wanted].lsn), Some(wanted - 1)),
        // The time must be between two commits.
        3 if wanted > begin
            && moments
                .get(wanted + 1)
                .is_none_or(|next| next.before_ms > moments[wanted].after_ms) =>
        {
            (StopAt::Time(moments[wanted].after_ms), Some(wanted))
        }
        4 | 5 => match (marked, rng.chance(50)) {
            (Some((mark, at)), true) => (StopAt::Mark(mark), Some(at)),
            (Some((mark, at)), false) => (StopAt::BeforeMark(mark), Some(at - 1)),
            (None, _) => (StopAt::End, None),
        },
        _ => (StopAt::End, None),
    };
    let left_out = rng
        .chance(20)
        .then(|| rng.below(chain.logs.len() as u64 + 1) as usize);
    let folder = tempfile::tempdir().unwrap();
    let mut restored = Restored::data(&chain.data, folder.path());
    let (mut at, mut is_reached) = (begin, false);
    let mut model = data.describe().recovery_model();
    for (index, set) in chain.logs.iter().enumerate() {
        if Some(index) == left_out {
            continue;
        }
        if rng.chance(15) {
            let torn = rng.below(set.log.len() as u64 + 1) as usize;
            let _torn = restored.roll(set, stop.clone(), Some(torn));
        }
        match restored.roll(set, stop.clone(), None) {
            Ok(reached) => {
                at = at.max(set.moment);
                model = RecoveryModel::Full;
                is_reached = reached && stop != StopAt::End;
            }
            Err(error) => match refusal(&error).unwrap_or_else(|| panic!("{error}")) {
                // Older than what is restored already.
                LogRefusal::TooEarly { .. } => {}
                // A set is left out, or the database had the recovery model SIMPLE in between.
                LogRefusal::TooRecent { .. } => {
                    let is_whole = left_out.is_none() && data.chain.is_some();
                    assert!(!is_whole || data.chain != set.chain, "a gap");
                    break;
                }
                other => panic!("{other}"),
            },
        }
        if is_reached {
            at = expected.unwrap();
            break;
        }
    }
    let database = restored.recover();
    assert!(
        pages_of(&database) == *moments[at].pages,
        "{stop:?}: not moment {at} of {}, from {begin}",
        moments.len()
    );
    assert_eq!(database.recovery_model(), model);
    assert!(database.tail_start().is_none());
}

fn history(seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path(), seed);
    world.commit().unwrap();
    world.back_up(BackupMode::Full, true).unwrap();
    for _ in 0..3 {
        live(&mut world, 25);
        restore_one(&mut world);
    }
}

/// The number of histories: as the environment says, or else this many.
pub(crate) fn count(default: u64) -> u64 {
    let count = std::env::var("WINDLASS_HISTORIES").ok();
    count
        .and_then(|count| count.parse().ok())
        .unwrap_or(default)
}

#[test]
fn random_moments_restored_through_random_chains_equal_the_model() {
    run(count(24));
}

#[test]
#[ignore = "hours"]
fn slow_random_moments() {
    run(count(20_000));
}

fn run(count: u64) {
    let first = std::env::var("WINDLASS_SEED").ok();
    let first: u64 = first.and_then(|seed| seed.parse().ok()).unwrap_or(1);
    for seed in first..first + count {
        let done = std::panic::catch_unwind(|| history(seed));
        assert!(done.is_ok(), "seed {seed}");
    }
}
