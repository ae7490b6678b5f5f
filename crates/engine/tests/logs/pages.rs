//! Pages that are damaged in the data file come back from any full backup, log backups and the log of the database.

use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use windlass_base::{FileId, FilePage, PAGE_BYTES};
use windlass_engine::{BackupMode, EngineError, LogRefusal, PageRoll, PagesEnded};

use crate::world::{Kind, Set, World, pages_of, refusal};

const PATIENCE: Duration = Duration::from_secs(5);

fn name(index: usize) -> FilePage {
    FilePage {
        file_id: FileId::PRIMARY,
        page: index as u64,
    }
}

/// Closes the database, writes nonsense over some of its pages, and opens it again.
fn damage(world: &mut World, indexes: &[usize]) {
    world.database.checkpoint().unwrap();
    world.database.close().unwrap();
    let file = std::fs::File::options()
        .write(true)
        .open(world.folder.join("a.mdf"))
        .unwrap();
    for index in indexes {
        // The first bytes of the file are those that the log's header names.
        let offset = (index * PAGE_BYTES) as u64 + 128;
        file.write_all_at(&[0xAB; PAGE_BYTES - 128], offset)
            .unwrap();
    }
    world.open_unchecked();
}

fn begin(world: &World, set: &Set, names: &[FilePage]) -> Result<PageRoll, EngineError> {
    let mut begin = world.database.begin_page_roll(&set.describe(), names)?;
    for (range, bytes) in set.ranges.iter() {
        if begin.wants(range.file, range.offset, bytes.len() as u64) {
            begin.take(range.file, range.offset, bytes);
        }
    }
    for piece in set.log.chunks(7000) {
        begin.apply_log(piece)?;
    }
    begin.settle()
}

fn roll(roll: PageRoll, set: &Set) -> Result<PageRoll, EngineError> {
    let mut log = roll.begin_log(&set.describe())?;
    for piece in set.log.chunks(7777) {
        log.scan(piece)?;
    }
    log.scanned()?;
    for piece in set.log.chunks(9999) {
        log.apply(piece)?;
    }
    let roll = log.settle()?;
    let stored = roll.encode()?;
    assert!(PageRoll::decode(&stored)? == roll);
    Ok(roll)
}

fn history(seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path(), seed);
    for _ in 0..3 {
        world.commit().unwrap();
    }
    for _ in 0..12 {
        match world.rng.below(10) {
            0 => world.back_up(BackupMode::CopyOnly, true).unwrap(),
            1..3 => world.back_up(BackupMode::Full, true).unwrap(),
            3..6 if world.database.tail_start().is_some() => {
                let truncates = world.rng.chance(80);
                world.back_up_log(truncates, true).unwrap();
            }
            6 => world.reopen(),
            7 => drop(world.database.checkpoint().unwrap()),
            _ => world.commit().unwrap(),
        }
    }
    if world.database.tail_start().is_none() {
        return;
    }
    let count = world.latest().pages.len();
    let chosen: Vec<usize> = (0..=world.rng.below(4))
        .map(|_| world.rng.below(count as u64) as usize)
        .collect();
    damage(&mut world, &chosen);
    assert!(pages_of(&world.database) != *world.latest().pages);
    // Life goes on, on pages that are whole: what is damaged is not read by these commits.
    let names: Vec<FilePage> = chosen.iter().copied().map(name).collect();
    let fulls: Vec<usize> = (0..world.sets.len())
        .filter(|index| matches!(world.sets[*index].kind, Kind::Full | Kind::CopyOnly))
        .collect();
    let full = fulls[world.rng.below(fulls.len() as u64) as usize];
    let mut pages = begin(&world, &world.sets[full], &names).unwrap();
    let mut is_whole = world.sets[full].chain == Some(world.chain);
    for index in full..world.sets.len() {
        if world.sets[index].kind != Kind::Log {
            continue;
        }
        let needed = world.database.finish_page_roll(pages.clone(), PATIENCE);
        if let Ok(PagesEnded::Written(_)) = needed {
            // The log of the database has the rest.
            break;
        }
        match roll(pages.clone(), &world.sets[index]) {
            Ok(rolled) => pages = rolled,
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
    match world.database.finish_page_roll(pages, PATIENCE).unwrap() {
        PagesEnded::Written(_) => {
            assert!(
                pages_of(&world.database) == *world.latest().pages,
                "seed {seed}"
            );
            world.reopen();
            world.commit().unwrap();
        }
        PagesEnded::LogNeeded(_) => assert!(!is_whole, "seed {seed}"),
    }
}

#[test]
fn damaged_pages_are_rolled_forward_to_the_last_commit() {
    run(crate::histories::count(40));
}

#[test]
#[ignore = "hours"]
fn slow_damaged_pages() {
    run(crate::histories::count(20_000));
}

fn run(count: u64) {
    for seed in 1..=count {
        let done = std::panic::catch_unwind(|| history(seed));
        assert!(done.is_ok(), "seed {seed}");
    }
}

#[test]
fn pages_without_all_of_their_log_are_not_written() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let mut world = World::new(folders[0].path(), 3);
    world.commit().unwrap();
    world.back_up(BackupMode::Full, true).unwrap();
    for _ in 0..2 {
        world.commit().unwrap();
        world.back_up_log(true, true).unwrap();
    }
    world.commit().unwrap();
    damage(&mut world, &[0]);
    let damaged = pages_of(&world.database);
    let sets = world.sets.clone();
    let pages = begin(&world, &sets[0], &[name(0)]).unwrap();
    let needed = world.database.finish_page_roll(pages.clone(), PATIENCE);
    let tail = world.database.tail_start().unwrap();
    assert_eq!(needed.unwrap(), PagesEnded::LogNeeded(tail));
    let gap = roll(pages.clone(), &sets[2]).unwrap_err();
    assert!(matches!(refusal(&gap), Some(LogRefusal::TooRecent { .. })));
    let one = roll(pages.clone(), &sets[1]).unwrap();
    let needed = world.database.finish_page_roll(one.clone(), PATIENCE);
    assert_eq!(needed.unwrap(), PagesEnded::LogNeeded(tail));
    assert!(pages_of(&world.database) == damaged);
    // Another database, and what is stored of it with a bit flipped.
    let other = World::new(folders[1].path(), 4);
    assert!(begin(&other, &sets[0], &[name(0)]).is_err());
    let stored = one.encode().unwrap();
    for at in (0..stored.len()).step_by(97) {
        let mut changed = stored.clone();
        changed[at] ^= 2;
        assert!(PageRoll::decode(&changed).is_err(), "{at}");
    }
    let two = roll(one, &sets[2]).unwrap();
    let ended = world.database.finish_page_roll(two, PATIENCE).unwrap();
    assert_eq!(ended, PagesEnded::Written(1));
    assert!(pages_of(&world.database) == *world.latest().pages);
}
