//! Backs up a database while it is written to, and restores it elsewhere.
#![expect(clippy::unwrap_used, reason = "a test ends at the first failure")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windlass_base::{Guid, PAGE_BYTES, PageNumber};
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{
    Backup, BackupDescription, BackupMode, BackupPhase, BackupRange, CreateDatabase, Database,
    EngineError, FileSpec, Instance, InstanceOptions, OpenDatabase, Restore,
};

struct Copy {
    description: Vec<u8>,
    ranges: Vec<(BackupRange, Vec<u8>)>,
    log: Vec<u8>,
    pages: Vec<Vec<u8>>,
}

fn instance(pool_pages: u64) -> Arc<Instance> {
    let options = InstanceOptions {
        pool_pages,
        ..InstanceOptions::default()
    };
    Instance::new(options, Arc::new(RealFileSystem)).unwrap()
}

fn create(instance: &Arc<Instance>, folder: &Path) -> Arc<Database> {
    let mut request = CreateDatabase::new("a", folder.join("a.mdf"), folder.join("a.ldf"));
    let second = FileSpec::data("b", folder.join("b.ndf"));
    request.data_files.push(second);
    instance.create_database(&request).unwrap()
}

fn write(database: &Arc<Database>, pages: impl Iterator<Item = u32>, fill: u8) {
    let mut writer = database.begin_write(&database.begin_read()).unwrap();
    for page in pages {
        writer
            .write_page(
                PageNumber::from_sqlite(page).unwrap(),
                &[fill ^ page as u8; PAGE_BYTES],
            )
            .unwrap();
    }
    writer.commit().unwrap();
}

fn all_pages(database: &Arc<Database>) -> Vec<Vec<u8>> {
    let snapshot = database.begin_read();
    let read = |page| {
        let mut content = vec![0; PAGE_BYTES];
        snapshot.read_page(page, &mut content).unwrap();
        content
    };
    PageNumber::all(snapshot.page_count()).map(read).collect()
}

/// Copies the ranges and calls `between` before each; the pages are those at the end of the copy
/// and must not change any more.
fn take(backup: &mut Backup, database: &Arc<Database>, mut between: impl FnMut(usize)) -> Copy {
    let mut ranges = Vec::new();
    for (index, range) in backup.ranges(1 << 20).into_iter().enumerate() {
        between(index);
        let mut bytes = vec![0; range.bytes];
        backup.read_range(&range, &mut bytes).unwrap();
        backup.verify(&range, &bytes, &mut |damage| panic!("{damage}"));
        ranges.push((range, bytes));
    }
    let description = backup.finish_data().unwrap().encode().unwrap();
    let mut log = Vec::new();
    backup
        .read_log(|bytes| {
            log.extend_from_slice(bytes);
            Ok(())
        })
        .unwrap();
    Copy {
        description,
        ranges,
        log,
        pages: all_pages(database),
    }
}

fn restore(copies: &[&Copy], folder: &Path) -> Arc<Database> {
    let places: Vec<PathBuf> = ["a.mdf", "b.ndf"]
        .iter()
        .map(|name| folder.join(name))
        .collect();
    let mut done: Option<Restore> = None;
    for copy in copies {
        let description = BackupDescription::decode(&copy.description).unwrap();
        let files = Arc::new(RealFileSystem);
        let mut step = match done {
            None => Restore::begin(files, &description, &places).unwrap(),
            Some(_) => Restore::onto(files, &description, &places).unwrap(),
        };
        for (range, bytes) in &copy.ranges {
            step.write_range(range, bytes).unwrap();
        }
        step.apply_log(&copy.log).unwrap();
        step.settle().unwrap();
        done = Some(step);
    }
    let log = FileSpec::log("a_log", folder.join("a.ldf"));
    done.unwrap().finish("r", &log, None).unwrap();
    let request = OpenDatabase::new("r", &log.path);
    instance(256).open_database(&request).unwrap()
}

#[test]
fn a_full_and_a_differential_backup_under_writes_restore_to_the_end_of_the_copy() {
    let folder = tempfile::tempdir().unwrap();
    let instance = instance(256);
    let database = create(&instance, folder.path());
    write(&database, 1..=1000, 3);
    let set = Guid::random();
    let mut backup = database.begin_backup(BackupMode::Full).unwrap();
    let full = take(&mut backup, &database, |index| {
        write(&database, (1..200).step_by(index + 1), index as u8);
        write(&database, [1001 + index as u32].into_iter(), 5);
    });
    backup.complete(set).unwrap();
    assert_eq!(database.differential_base().set, set);

    write(&database, [500, 777].into_iter(), 9);
    let mut backup = database.begin_backup(BackupMode::Differential).unwrap();
    let differential = take(&mut backup, &database, |_| {
        write(&database, [901].into_iter(), 11);
    });
    backup.complete(Guid::random()).unwrap();
    let bytes = |copy: &Copy| {
        copy.ranges
            .iter()
            .map(|(range, _)| range.bytes)
            .sum::<usize>()
    };
    assert!(bytes(&differential) * 3 < bytes(&full));

    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let restored = restore(&[&full], places[0].path());
    assert!(all_pages(&restored) == full.pages);
    let restored = restore(&[&full, &differential], places[1].path());
    assert!(all_pages(&restored) == differential.pages);
    assert!(restored.begin_backup(BackupMode::Differential).is_err());
    write(&restored, 1..=20, 77);
}

#[test]
fn what_a_backup_visits_depends_on_the_database_and_not_on_the_pool() {
    for pool_pages in [4096, 400_000] {
        let folder = tempfile::tempdir().unwrap();
        let instance = instance(pool_pages);
        let database = create(&instance, folder.path());
        write(&database, 1..=50, 3);
        let visited = |database: &Arc<Database>| {
            let mut backup = database.begin_backup(BackupMode::Full).unwrap();
            take(&mut backup, database, |_| {});
            let phases = backup.complete(Guid::random()).unwrap();
            assert_eq!(phases[0].phase, BackupPhase::ClearDifferentialMap);
            phases.iter().map(|phase| phase.visited).sum::<u64>()
        };
        assert_eq!(visited(&database), 50);
        database.set_target_recovery_time(None).unwrap();
        // To find the modifiers of the differential map, and to wait for pending writes. The checkpoint between
        // them writes what the first sweep found: everything that was dirty then.
        write(&database, 1..=50, 4);
        assert_eq!(visited(&database), 2 * pool_pages);
        assert_eq!(database.counters().dirty_pages, 0);
    }
}

#[test]
fn writers_go_on_during_a_backup_and_the_log_is_kept_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let instance = instance(256);
    let database = create(&instance, folder.path());
    write(&database, 1..=500, 1);
    let stop = AtomicBool::new(false);
    let (copy, end) = std::thread::scope(|scope| {
        let (writer, stop) = (&database, &stop);
        scope.spawn(move || {
            let mut fill = 0_u8;
            while !stop.load(Ordering::Relaxed) {
                fill = fill.wrapping_add(1);
                write(writer, (1..=500).step_by(7), fill);
            }
        });
        let mut backup = database.begin_backup(BackupMode::CopyOnly).unwrap();
        let copy = take(&mut backup, &database, |_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            database.checkpoint().unwrap();
        });
        stop.store(true, Ordering::Relaxed);
        (copy, backup.first_lsn())
    });
    assert!(!end.is_zero());
    let place = tempfile::tempdir().unwrap();
    let pages = all_pages(&restore(&[&copy], place.path()));
    // One commit: all pages that the writer writes together have the same fill byte.
    let fill = pages[0][0] ^ 1;
    for page in (1..=500_u32).step_by(7) {
        assert!(
            pages[page as usize - 1] == [fill ^ page as u8; PAGE_BYTES],
            "page {page}"
        );
    }
    assert_eq!(pages.len(), 500);
}

#[test]
fn a_log_that_is_damaged_or_too_short_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let instance = instance(256);
    let database = create(&instance, folder.path());
    write(&database, 1..=20, 1);
    let mut backup = database.begin_backup(BackupMode::CopyOnly).unwrap();
    write(&database, 1..=20, 2);
    let copy = take(&mut backup, &database, |_| {});
    let attempt = |log: &[u8]| -> Result<(), EngineError> {
        let place = tempfile::tempdir().unwrap();
        let places: Vec<PathBuf> = ["x", "y"]
            .iter()
            .map(|name| place.path().join(name))
            .collect();
        let description = BackupDescription::decode(&copy.description)?;
        let mut step = Restore::begin(Arc::new(RealFileSystem), &description, &places)?;
        step.apply_log(log)?;
        step.settle()
    };
    attempt(&copy.log).unwrap();
    assert!(attempt(&copy.log[..copy.log.len() - 512]).is_err());
    let mut damaged = copy.log.clone();
    damaged[70] ^= 1;
    assert!(attempt(&damaged).is_err());
}

#[test]
fn of_two_full_backups_at_once_the_one_that_began_last_is_the_base_whichever_ends_last() {
    for newer_ends_last in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let instance = instance(256);
        let database = create(&instance, folder.path());
        write(&database, 1..=300, 3);
        let mut older = database.begin_backup(BackupMode::Full).unwrap();
        write(&database, [50].into_iter(), 4);
        let mut newer = database.begin_backup(BackupMode::Full).unwrap();
        let (old_set, new_set) = (Guid::random(), Guid::random());
        take(&mut older, &database, |_| {});
        let full = take(&mut newer, &database, |_| {});
        if newer_ends_last {
            older.complete(old_set).unwrap();
            newer.complete(new_set).unwrap();
        } else {
            newer.complete(new_set).unwrap();
            older.complete(old_set).unwrap();
        }
        assert_eq!(database.differential_base().set, new_set);
        write(&database, [200].into_iter(), 9);
        let mut differential = database.begin_backup(BackupMode::Differential).unwrap();
        let differential_copy = take(&mut differential, &database, |_| {});
        let target = tempfile::tempdir().unwrap();
        let restored = restore(&[&full, &differential_copy], target.path());
        assert_eq!(all_pages(&restored), all_pages(&database));
    }
}
