//! Chains that do not fit are refused, and what was restored stays as it was.

use std::sync::Arc;

use windlass_base::Lsn;
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{
    BackupMode, EngineError, LogBackup, LogCheck, LogRefusal, RecoveryModel, StopAt,
};

use crate::world::{Restored, Set, World, now_ms, pages_of, refusal};

/// Two log backups after a full one.
fn world(folder: &std::path::Path) -> (World, Vec<Set>) {
    let mut world = World::new(folder, 7);
    world.commit().unwrap();
    world.back_up(BackupMode::Full, true).unwrap();
    for _ in 0..3 {
        world.commit().unwrap();
        world.back_up_log(true, true).unwrap();
    }
    let sets = world.sets.clone();
    (world, sets)
}

fn refused(restored: &mut Restored, set: &Set, stop: StopAt) -> LogRefusal {
    let before = restored.state.clone();
    let error = restored.roll(set, stop, None).unwrap_err();
    assert!(before == restored.state);
    refusal(&error).unwrap_or_else(|| panic!("{error}"))
}

#[test]
fn sets_that_do_not_continue_the_state_are_refused_and_it_stays_as_it_was() {
    let folders = [(); 4].map(|()| tempfile::tempdir().unwrap());
    let [first, other, place, forged] = folders.each_ref().map(tempfile::TempDir::path);
    let (world, sets) = world(first);
    let (_, others) = self::world(other);
    let mut restored = Restored::data(&[&sets[0]], place);
    let at = restored.state.last_lsn();
    // A log is left out.
    let too_recent = refused(&mut restored, &sets[2], StopAt::End);
    assert_eq!(
        too_recent,
        LogRefusal::TooRecent {
            first: sets[2].describe().first_lsn(),
            reached: at
        }
    );
    // Of another database, and of no log at all.
    assert_eq!(
        refused(&mut restored, &others[1], StopAt::End),
        LogRefusal::OtherFork
    );
    assert!(matches!(
        restored.roll(&sets[0], StopAt::End, None),
        Err(EngineError::Invalid(_))
    ));
    // Points before what is restored.
    for stop in [
        StopAt::Time(1),
        StopAt::Lsn(Lsn::ZERO),
        StopAt::BeforeLsn(Lsn::ZERO),
    ] {
        let passed = refused(&mut restored, &sets[1], stop);
        assert_eq!(passed, LogRefusal::StopPassed { reached: at });
    }
    assert!(restored.roll(&sets[1], StopAt::End, None).unwrap());
    assert!(restored.roll(&sets[2], StopAt::End, None).unwrap());
    // Again: nothing more is in it.
    assert!(restored.roll(&sets[2], StopAt::End, None).unwrap());
    let early = refused(&mut restored, &sets[1], StopAt::End);
    assert!(matches!(early, LogRefusal::TooEarly { .. }));
    // Its log ends before the point to stop at: it is applied, and the point is not reached.
    let far = StopAt::Time(now_ms() + 1_000_000);
    assert!(!restored.roll(&sets[3], far, None).unwrap());
    assert!(pages_of(&restored.recover()) == *world.moments[sets[3].moment].pages);
    // A set whose blocks are those of another history with the same positions.
    let mut restored = Restored::data(&[&sets[0]], forged);
    restored.reached.checksum = restored.reached.checksum.map(|checksum| checksum ^ 1);
    let torn = refused(&mut restored, &sets[1], StopAt::End);
    assert_eq!(torn, LogRefusal::Discontinuous { reached: at });
}

#[test]
fn a_set_of_which_a_byte_is_lost_or_changed_is_not_applied() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let (_, sets) = world(folders[0].path());
    let mut restored = Restored::data(&[&sets[0]], folders[1].path());
    let before = restored.state.clone();
    let log = &sets[1].log;
    let cuts = [0, 512, log.len() / 2 / 512 * 512, log.len() - 512];
    let mut damaged: Vec<Vec<u8>> = cuts.iter().map(|cut| log[..*cut].to_vec()).collect();
    damaged.extend(cuts.iter().skip(1).map(|cut| log[*cut..].to_vec()));
    damaged.extend([70, 130, log.len() - 500].map(|at| {
        let mut changed = log.to_vec();
        changed[at] ^= 4;
        changed
    }));
    for (index, log) in damaged.into_iter().enumerate() {
        let mut check = LogCheck::new(sets[1].describe());
        let checked = check.piece(0, &log).and_then(|()| check.finish());
        let bad = Set {
            log: Arc::new(log),
            ..sets[1].clone()
        };
        // A bit in the zeros after the records of a block means nothing.
        if checked.is_ok() {
            assert!(bad.log.len() == sets[1].log.len(), "{index}");
            continue;
        }
        assert!(restored.roll(&bad, StopAt::End, None).is_err(), "{index}");
        assert!(before == restored.state);
    }
    assert!(restored.roll(&sets[1], StopAt::End, None).unwrap());
}

#[test]
fn an_interrupted_restore_goes_on_to_the_same_point_or_further_and_not_back() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let mut world = World::new(folders[0].path(), 5);
    world.commit().unwrap();
    world.back_up(BackupMode::Full, true).unwrap();
    for _ in 0..6 {
        world.commit().unwrap();
    }
    world.back_up_log(true, true).unwrap();
    let (sets, moments) = (world.sets.clone(), world.moments.clone());
    let full = sets[0].moment;
    let mut restored = Restored::data(&[&sets[0]], folders[1].path());
    let to = |index: usize| StopAt::Lsn(moments[full + index].lsn);
    restored.roll(&sets[1], to(4), Some(usize::MAX)).unwrap();
    let back = restored.roll(&sets[1], to(2), None).unwrap_err();
    assert!(
        matches!(refusal(&back), Some(LogRefusal::GoneFurther { .. })),
        "{back}"
    );
    assert!(restored.roll(&sets[1], to(5), None).unwrap());
    assert!(pages_of(&restored.recover()) == *moments[full + 5].pages);
}

#[test]
fn a_chain_begins_with_a_full_backup_in_the_model_full_and_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path(), 3);
    let no_chain = |world: &mut World, expected: RecoveryModel| match world.back_up_log(true, true)
    {
        Err(EngineError::NoLogChain { model, .. }) => assert_eq!(model, expected),
        other => panic!("{other:?}"),
    };
    world.commit().unwrap();
    no_chain(&mut world, RecoveryModel::Full);
    world.back_up(BackupMode::CopyOnly, true).unwrap();
    no_chain(&mut world, RecoveryModel::Full);
    // The model was not FULL all the time.
    let backup = world.database.begin_backup(BackupMode::Full);
    let mut backup = backup.unwrap();
    world
        .database
        .set_recovery_model(RecoveryModel::Simple)
        .unwrap();
    world
        .database
        .set_recovery_model(RecoveryModel::Full)
        .unwrap();
    backup.finish_data().unwrap();
    backup.complete(windlass_base::Guid::random()).unwrap();
    no_chain(&mut world, RecoveryModel::Full);
    world.back_up(BackupMode::Differential, true).unwrap();
    world.back_up_log(true, true).unwrap();
    // The model does not change under a log backup, and one at a time truncates.
    let running = world.database.begin_log_backup(true).unwrap();
    let refused = world.database.set_recovery_model(RecoveryModel::Simple);
    assert!(matches!(refused, Err(EngineError::BackupRunning { .. })));
    let second = world.database.begin_log_backup(true);
    assert!(matches!(second, Err(EngineError::BackupRunning { .. })));
    drop(world.database.begin_log_backup(false).unwrap());
    drop(running);
    world
        .database
        .set_recovery_model(RecoveryModel::Simple)
        .unwrap();
    no_chain(&mut world, RecoveryModel::Simple);
    world.reopen();
    no_chain(&mut world, RecoveryModel::Simple);
    world
        .database
        .set_recovery_model(RecoveryModel::Full)
        .unwrap();
    world.reopen();
    no_chain(&mut world, RecoveryModel::Full);
}

#[test]
fn the_tail_is_read_from_the_log_file_alone() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let (mut world, mut sets) = world(folders[0].path());
    world.commit().unwrap();
    world.commit().unwrap();
    let log = world.folder.join("a.ldf");
    let used = LogBackup::of_file(&RealFileSystem, &log).unwrap_err();
    assert!(matches!(used, EngineError::InUse { .. }), "{used}");
    assert!(windlass_engine::has_unsaved_tail(&RealFileSystem, &log).unwrap());
    world.database.close().unwrap();
    std::fs::remove_file(world.folder.join("a.mdf")).unwrap();
    let backup = LogBackup::of_file(&RealFileSystem, &log).unwrap();
    let moment = world.moments.len() - 1;
    world.keep(&backup, moment).unwrap();
    drop(backup);
    sets.push(world.sets[world.sets.len() - 1].clone());
    let mut restored = Restored::data(&[&sets[0]], folders[1].path());
    for set in &sets[1..] {
        assert!(restored.roll(set, StopAt::End, None).unwrap());
    }
    assert!(pages_of(&restored.recover()) == *world.latest().pages);
}
