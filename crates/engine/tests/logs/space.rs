//! The space of the log in the recovery model FULL.

use windlass_base::PAGE_BYTES;
use windlass_engine::{
    BackupMode, CreateDatabase, EngineError, FileSpec, Growth, LogReuseWait, RecoveryModel, StopAt,
};

use crate::world::{Restored, World, pages_of};

/// A small database whose log does not grow.
fn request(folder: &std::path::Path) -> CreateDatabase {
    let mut request = CreateDatabase::new("a", folder.join("a.mdf"), folder.join("a.ldf"));
    request.log.size = 640 << 10;
    request.log.growth = Growth::Fixed;
    request.data_files[0].size = 1 << 20;
    request
}

fn fixed(folder: &std::path::Path) -> World {
    World::create(folder, 11, &request(folder))
}

fn fill(world: &mut World) -> u32 {
    for count in 0..10_000 {
        match world.commit() {
            Ok(()) => {}
            Err(EngineError::LogFull { wait, .. }) => {
                assert_eq!(wait, LogReuseWait::LogBackup);
                return count;
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the log never fills");
}

#[test]
fn only_a_log_backup_frees_the_log_and_a_full_log_loses_nothing() {
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let mut world = fixed(folders[0].path());
    // Before the first full backup, checkpoints truncate.
    for _ in 0..400 {
        world.commit().unwrap();
    }
    assert_ne!(world.database.log_reuse_wait(), LogReuseWait::LogBackup);
    world.back_up(BackupMode::Full, true).unwrap();
    assert!(fill(&mut world) > 5);
    assert_eq!(world.database.log_reuse_wait(), LogReuseWait::LogBackup);
    // Checkpoints do not help, nor do backups that are no log backups, or that were not completed.
    let _full = world.database.checkpoint();
    assert!(matches!(world.commit(), Err(EngineError::LogFull { .. })));
    world.back_up_log(false, true).unwrap();
    world.back_up_log(true, false).unwrap();
    assert!(matches!(world.commit(), Err(EngineError::LogFull { .. })));
    // Nor does opening it again, however often: it opens, and nothing is lost.
    for round in 0..12 {
        match round % 2 {
            0 => world.reopen(),
            _ => world.crash(folders[1].path()),
        }
    }
    assert!(matches!(world.commit(), Err(EngineError::LogFull { .. })));
    world.sets.truncate(1);
    world.back_up_log(true, true).unwrap();
    assert_eq!(world.database.log_reuse_wait(), LogReuseWait::Nothing);
    for _ in 0..3 {
        fill(&mut world);
        world.back_up_log(true, true).unwrap();
    }
    world.commit().unwrap();
    world.back_up_log(true, true).unwrap();
    let sets = world.sets.clone();
    let mut restored = Restored::data(&[&sets[0]], folders[2].path());
    for set in &sets[1..] {
        assert!(restored.roll(set, StopAt::End, None).unwrap());
    }
    assert!(pages_of(&restored.recover()) == *world.latest().pages);
    world
        .database
        .set_recovery_model(RecoveryModel::Simple)
        .unwrap();
    for _ in 0..400 {
        world.commit().unwrap();
    }
}

/// Small transactions until the log is full, if it does not grow.
fn touches_until_full() -> u32 {
    let folder = tempfile::tempdir().unwrap();
    let mut world = fixed(folder.path());
    world.commit().unwrap();
    world.back_up(BackupMode::Full, true).unwrap();
    for count in 0..10_000 {
        match world.touch() {
            Ok(()) => {}
            Err(EngineError::LogFull { .. }) => return count,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the log never fills");
}

#[test]
fn the_addition_of_a_file_grows_a_log_that_has_no_room_for_it() {
    let touches = touches_until_full();
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let request = CreateDatabase {
        log: FileSpec {
            growth: Growth::Bytes(256 << 10),
            ..request(folders[0].path()).log
        },
        ..request(folders[0].path())
    };
    let mut world = World::create(folders[0].path(), 11, &request);
    world.commit().unwrap();
    world.back_up(BackupMode::Full, true).unwrap();
    for _ in 0..touches {
        world.touch().unwrap();
    }
    let log = |world: &World| world.database.files()[1].spec.size;
    assert_eq!(log(&world), request.log.size);
    world.add_file().unwrap();
    assert!(log(&world) > request.log.size);
    world.commit().unwrap();
    world.crash(folders[1].path());
    world.commit().unwrap();
    world.back_up_log(true, true).unwrap();
    let sets = world.sets.clone();
    let mut restored = Restored::data(&[&sets[0]], folders[2].path());
    assert!(restored.roll(&sets[1], StopAt::End, None).unwrap());
    assert!(pages_of(&restored.recover()) == *world.latest().pages);
}

#[test]
fn a_file_is_not_added_to_a_full_log_that_does_not_grow() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let mut world = fixed(folders[0].path());
    world.commit().unwrap();
    world.back_up(BackupMode::Full, true).unwrap();
    while world.touch().is_ok() {}
    let refused = world.add_file().unwrap_err();
    assert!(matches!(refused, EngineError::LogFull { .. }), "{refused}");
    assert_eq!(world.database.files().len(), 2);
    assert!(!world.folder.join("f1").exists());
    world.crash(folders[1].path());
    world.back_up_log(true, true).unwrap();
    world.add_file().unwrap();
    world.commit().unwrap();
}

#[test]
fn a_file_that_another_program_changed_ends_the_chain() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path(), 4);
    world.commit().unwrap();
    world.back_up(BackupMode::Full, true).unwrap();
    world.commit().unwrap();
    world.back_up_log(true, true).unwrap();
    world.database.close().unwrap();
    // As another SQLite would, which leaves the length and the header as they should be.
    let path = world.folder.join("a.mdf");
    let mut content = std::fs::read(&path).unwrap();
    content[50] ^= 1;
    content.resize(content.len() + PAGE_BYTES, 7);
    std::fs::write(&path, &content).unwrap();
    let options = windlass_engine::InstanceOptions {
        background: false,
        ..windlass_engine::InstanceOptions::default()
    };
    let files = std::sync::Arc::new(windlass_engine::storage::RealFileSystem);
    let instance = windlass_engine::Instance::new(options, files).unwrap();
    let log = world.folder.join("a.ldf");
    let request = windlass_engine::OpenDatabase::new("a", log);
    let database = instance.open_database(&request).unwrap();
    assert!(database.tail_start().is_none());
    let refused = database.begin_log_backup(true).unwrap_err();
    assert!(
        matches!(refused, EngineError::NoLogChain { .. }),
        "{refused}"
    );
}
