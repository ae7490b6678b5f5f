//! Data files that are damaged or lost come back from any full backup, log backups and the log of the database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_base::FileId;
use windlass_engine::storage::{FileSystem, OwnFiles, RealFileSystem};
use windlass_engine::{
    BackupMode, EngineError, FilePlaces, FileRoll, FileRollBegin, FilesEnd, LogRefusal, PageRefusal,
};

use crate::world::{Kind, Set, World, pages_of, refusal};

fn beside(path: &Path) -> PathBuf {
    path.with_extension("beside")
}

fn at<R>(world: &World, run: impl FnOnce(FilePlaces<'_>) -> R) -> R {
    let files: Arc<dyn FileSystem> = Arc::new(RealFileSystem);
    run(FilePlaces {
        files: &files,
        own: &OwnFiles,
        log: &world.folder.join("a.ldf"),
        beside,
    })
}

fn begin(world: &World, set: &Set, ids: &[FileId]) -> Result<FileRoll, EngineError> {
    let mut begin = at(world, |places| {
        FileRollBegin::begin(places, &set.describe(), ids)
    })?;
    for (range, bytes) in set.ranges.iter() {
        if begin.wants(range.file) {
            begin.write(range.file, range.offset, bytes)?;
        }
    }
    for piece in set.log.chunks(7000) {
        begin.apply_log(piece)?;
    }
    stored(&begin.settle()?)
}

/// The same as another program reads it.
fn stored(roll: &FileRoll) -> Result<FileRoll, EngineError> {
    let read = FileRoll::decode(&roll.encode()?)?;
    assert!(read == *roll);
    Ok(read)
}

/// Applies a log backup; with `crashes_after` pieces, what a crash leaves.
fn roll(
    world: &World,
    roll: FileRoll,
    set: &Set,
    crashes_after: usize,
) -> Result<FileRoll, EngineError> {
    let mut log = at(world, |places| roll.begin_log(places, &set.describe()))?;
    for piece in set.log.chunks(7777) {
        log.scan(piece)?;
    }
    let before = stored(&log.scanned()?)?;
    for piece in set.log.chunks(999).take(crashes_after) {
        log.apply(piece)?;
    }
    match crashes_after > set.log.len() / 999 {
        true => stored(&log.settle()?),
        false => Ok(before),
    }
}

/// Completes the files and gives them their names; `None` if log is missing.
fn finish(world: &World, roll: FileRoll) -> Result<Option<usize>, EngineError> {
    match at(world, |places| roll.finish(places))? {
        FilesEnd::LogNeeded(_) => Ok(None),
        FilesEnd::Sealed(sealed) => {
            for file in sealed.restored() {
                std::fs::rename(&file.staged, &file.path).unwrap();
            }
            Ok(Some(sealed.restored().len()))
        }
    }
}

fn history(seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path(), seed);
    for _ in 0..3 {
        world.commit().unwrap();
    }
    if world.rng.chance(70) {
        world.add_file().unwrap();
    }
    for _ in 0..12 {
        match world.rng.below(11) {
            0 => world.back_up(BackupMode::CopyOnly, true).unwrap(),
            1..3 => world.back_up(BackupMode::Full, true).unwrap(),
            3..6 if world.database.tail_start().is_some() => {
                let truncates = world.rng.chance(80);
                world.back_up_log(truncates, true).unwrap();
            }
            6 => world.reopen(),
            7 => drop(world.database.checkpoint().unwrap()),
            8 if world.rng.chance(30) => world.add_file().unwrap(),
            _ => world.commit().unwrap(),
        }
    }
    if world.database.tail_start().is_none() {
        return;
    }
    let fulls: Vec<usize> = (0..world.sets.len())
        .filter(|index| matches!(world.sets[*index].kind, Kind::Full | Kind::CopyOnly))
        .collect();
    let full = fulls[world.rng.below(fulls.len() as u64) as usize];
    let described = world.sets[full].describe();
    let count = described.data_files().len();
    let mut ids: Vec<FileId> = (0..count).map(FileId::of_data).collect();
    ids.retain(|_| world.rng.chance(60));
    if ids.is_empty() {
        return;
    }
    world.database.close().unwrap();
    let paths = ids
        .iter()
        .filter_map(|id| described.data_files().get(id.data_index()?));
    for path in paths.map(|file| &file.path) {
        match world.rng.chance(50) {
            // A single file that was closed is a plain SQLite file, and is not replaced if it was changed.
            true if count > 1 => {
                std::fs::write(path, b"rubbish").unwrap();
            }
            _ => std::fs::remove_file(path).unwrap(),
        }
    }
    let mut files = begin(&world, &world.sets[full], &ids).unwrap();
    let mut is_whole = world.sets[full].chain == Some(world.chain);
    for index in full..world.sets.len() {
        if world.sets[index].kind != Kind::Log {
            continue;
        }
        if world.rng.chance(30) && finish(&world, files.clone()).unwrap().is_some() {
            end(&mut world, seed);
            return;
        }
        let pieces = match world.rng.chance(30) {
            true => world.rng.below(20) as usize,
            false => usize::MAX,
        };
        let set = world.sets[index].clone();
        let rolled = roll(&world, files.clone(), &set, pieces)
            // After the crash it is applied again.
            .and_then(|left| match pieces {
                usize::MAX => Ok(left),
                _ => roll(&world, left, &set, usize::MAX),
            });
        match rolled {
            Ok(rolled) => files = rolled,
            Err(error) => match refusal(&error) {
                Some(LogRefusal::TooEarly { .. }) => {}
                // The backup was made before the chain began.
                Some(LogRefusal::TooRecent { .. }) => {
                    is_whole = false;
                    break;
                }
                other => panic!("{other:?} {error}"),
            },
        }
    }
    match finish(&world, files).unwrap() {
        Some(restored) => {
            assert_eq!(restored, ids.len());
            end(&mut world, seed);
        }
        None => assert!(!is_whole, "seed {seed}"),
    }
}

fn end(world: &mut World, seed: u64) {
    world.open_unchecked();
    assert!(
        pages_of(&world.database) == *world.latest().pages,
        "seed {seed}"
    );
    world.commit().unwrap();
    world.reopen();
}

#[test]
fn lost_files_are_rolled_forward_to_the_last_commit() {
    run(crate::histories::count(40));
}

#[test]
#[ignore = "hours"]
fn slow_lost_files() {
    run(crate::histories::count(20_000));
}

fn run(count: u64) {
    for seed in 1..=count {
        let done = std::panic::catch_unwind(|| history(seed));
        assert!(done.is_ok(), "seed {seed}");
    }
}

/// The set ends with more pages than the database has now.
#[test]
fn pages_that_were_cut_off_since_are_not_missed() {
    history(579);
}

#[test]
fn files_without_all_of_their_log_are_not_completed() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let mut world = World::new(folders[0].path(), 3);
    world.commit().unwrap();
    world.add_file().unwrap();
    world.commit().unwrap();
    world.back_up(BackupMode::Full, true).unwrap();
    for _ in 0..2 {
        world.commit().unwrap();
        world.back_up_log(true, true).unwrap();
    }
    world.commit().unwrap();
    let ids = [FileId(3)];
    let sets = world.sets.clone();
    let used = begin(&world, &sets[0], &ids).unwrap_err();
    assert!(matches!(used, EngineError::InUse { .. }), "{used}");
    world.database.close().unwrap();
    let path = sets[0].describe().data_files()[1].path.clone();
    std::fs::remove_file(&path).unwrap();
    assert!(begin(&world, &sets[0], &[FileId(9)]).is_err());
    assert!(begin(&world, &sets[1], &ids).is_err(), "a log backup");
    let files = begin(&world, &sets[0], &ids).unwrap();
    assert_eq!(finish(&world, files.clone()).unwrap(), None);
    let gap = roll(&world, files.clone(), &sets[2], usize::MAX).unwrap_err();
    assert!(matches!(refusal(&gap), Some(LogRefusal::TooRecent { .. })));
    let one = roll(&world, files, &sets[1], usize::MAX).unwrap();
    assert_eq!(finish(&world, one.clone()).unwrap(), None);
    assert!(!path.exists());
    // What is stored of it with a bit flipped.
    let bytes = one.encode().unwrap();
    for at in (0..bytes.len()).step_by(97) {
        let mut changed = bytes.clone();
        changed[at] ^= 2;
        assert!(FileRoll::decode(&changed).is_err(), "{at}");
    }
    let two = roll(&world, one, &sets[2], usize::MAX).unwrap();
    // Another file has the temporary name by now.
    let (staged, kept) = (beside(&path), path.with_extension("kept"));
    std::fs::rename(&staged, &kept).unwrap();
    std::fs::copy(&kept, &staged).unwrap();
    assert!(finish(&world, two.clone()).is_err());
    std::fs::rename(&kept, &staged).unwrap();
    assert_eq!(finish(&world, two).unwrap(), Some(1));
    end(&mut world, 3);
    // A set that lacks a part of the file.
    let mut short = world.sets[0].clone();
    Arc::make_mut(&mut short.ranges).retain(|(range, _)| range.file != FileId::PRIMARY);
    world.database.close().unwrap();
    match begin(&world, &short, &[FileId::PRIMARY]) {
        Err(EngineError::PageRefused { refusal, .. }) => {
            assert_eq!(refusal, PageRefusal::NotInSet);
        }
        other => panic!("{other:?}"),
    }
    // Another database.
    let mut other = World::new(folders[1].path(), 4);
    other.commit().unwrap();
    other.back_up(BackupMode::Full, true).unwrap();
    other.database.close().unwrap();
    assert!(begin(&other, &world.sets[0], &[FileId::PRIMARY]).is_err());
}
