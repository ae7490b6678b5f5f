//! Tests the engine on real files: snapshots, durability, several files, the file left by a close.
#![expect(clippy::unwrap_used, reason = "a test ends at the first failure")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use windlass_base::{FileId, FilePage, PAGE_BYTES, PageNumber};
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{
    CheckpointKind, CreateDatabase, Database, EngineError, FileSpec, Growth, Instance,
    InstanceOptions, OpenDatabase,
};

fn instance(pool_pages: u64) -> Arc<Instance> {
    let options = InstanceOptions {
        pool_pages,
        ..InstanceOptions::default()
    };
    Instance::new(options, Arc::new(RealFileSystem)).unwrap()
}

fn small(folder: &Path) -> CreateDatabase {
    CreateDatabase::new("a", folder.join("a.mdf"), folder.join("a.ldf"))
}

fn at(number: u32) -> PageNumber {
    PageNumber::from_sqlite(number).unwrap()
}

fn page(seed: u32) -> Vec<u8> {
    (0..PAGE_BYTES as u32)
        .map(|at| (at.wrapping_mul(seed.wrapping_add(7)) >> 3) as u8)
        .collect()
}

fn put(database: &Arc<Database>, pages: &[(u32, u32)]) {
    let snapshot = database.begin_read();
    let mut writer = database.begin_write(&snapshot).unwrap();
    drop(snapshot);
    for &(number, seed) in pages {
        writer.write_page(at(number), &page(seed)).unwrap();
    }
    writer.commit().unwrap();
}

fn assert_page(database: &Arc<Database>, number: u32, seed: u32) {
    let mut found = vec![0; PAGE_BYTES];
    database
        .begin_read()
        .read_page(at(number), &mut found)
        .unwrap();
    assert!(found == page(seed), "page {number}");
}

#[test]
fn snapshots_do_not_see_later_commits_and_one_writer_writes() {
    let folder = tempfile::tempdir().unwrap();
    let instance = instance(64);
    let database = instance.create_database(&small(folder.path())).unwrap();
    put(&database, &[(1, 1), (2, 2)]);
    let before = database.begin_read();
    let writer = database.begin_write(&before).unwrap();
    let busy = database.begin_write(&before).unwrap_err();
    assert!(matches!(busy, EngineError::Busy { .. }), "{busy}");
    drop(writer);
    put(&database, &[(2, 9), (5, 5)]);
    let stale = database.begin_write(&before).unwrap_err();
    assert!(matches!(stale, EngineError::BusySnapshot { .. }), "{stale}");
    let mut found = vec![0; PAGE_BYTES];
    before.read_page(at(2), &mut found).unwrap();
    assert!(found == page(2));
    assert!(before.read_page(at(5), &mut found).is_err());
    assert_page(&database, 2, 9);
    database.begin_read().read_page(at(4), &mut found).unwrap();
    assert!(found.iter().all(|&byte| byte == 0), "never written");
}

#[test]
fn commits_survive_without_a_close_and_the_file_is_whole_after_one() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("a.ldf");
    {
        let instance = instance(64);
        let database = instance.create_database(&small(folder.path())).unwrap();
        for round in 0..50 {
            put(&database, &[(1, round), (2 + round, round)]);
        }
    }
    let instance = instance(64);
    let request = OpenDatabase::new("a", &log);
    let database = instance.open_database(&request).unwrap();
    assert_eq!(database.begin_read().page_count(), 51);
    for round in 0..50 {
        assert_page(&database, 2 + round, round);
    }
    let again = instance.open_database(&request).unwrap_err();
    assert!(again.to_string().contains("in use"), "{again}");
    database.close().unwrap();
    let plain = std::fs::read(folder.path().join("a.mdf")).unwrap();
    assert_eq!(plain.len(), 51 * PAGE_BYTES);
    assert!(plain[..PAGE_BYTES] == page(49)[..]);
    assert!(plain[50 * PAGE_BYTES..] == page(49)[..]);
    drop(database);
    let database = instance.open_database(&request).unwrap();
    assert_eq!(database.counters().changed_extents, 7);
    assert_page(&database, 51, 49);
}

#[test]
fn more_pages_than_buffers_and_several_files() {
    let folder = tempfile::tempdir().unwrap();
    let instance = instance(64);
    let mut request = small(folder.path());
    request.data_files.push(FileSpec {
        size: 65536,
        growth: Growth::Percent(10),
        ..FileSpec::data("b", folder.path().join("b.ndf"))
    });
    let database = instance.create_database(&request).unwrap();
    let all: Vec<_> = (1..=500).map(|number| (number, number)).collect();
    put(&database, &all);
    database
        .add_file(&FileSpec::data("c", folder.path().join("c.ndf")))
        .unwrap();
    let more: Vec<_> = (501..=900).map(|number| (number, number)).collect();
    put(&database, &more);
    for number in 1..=900 {
        assert_page(&database, number, number);
    }
    assert!(database.counters().pages_written > 400);
    database.checkpoint().unwrap();
    assert_eq!(database.counters().dirty_pages, 0);
    drop(database);
    let again = OpenDatabase::new("a", folder.path().join("a.ldf"));
    let database = instance.open_database(&again).unwrap();
    for number in 1..=900 {
        assert_page(&database, number, number);
    }
    let files = database.files();
    let ids: Vec<_> = files.iter().map(|file| file.file_id).collect();
    assert_eq!(ids, [1, 2, 3, 4].map(FileId));
    assert!(files[1].is_log && files[2].spec.size > 65536);
}

#[test]
fn an_indirect_checkpoint_visits_its_pages_and_an_automatic_one_the_pool() {
    let folder = tempfile::tempdir().unwrap();
    let instance = instance(100_000);
    let database = instance.create_database(&small(folder.path())).unwrap();
    put(&database, &[(1, 1), (2, 2), (3, 3)]);
    let report = database.checkpoint().unwrap();
    assert_eq!(report.kind, CheckpointKind::Indirect);
    assert_eq!((report.visited, report.written), (3, 3));
    database.set_target_recovery_time(None).unwrap();
    put(&database, &[(1, 7)]);
    let report = database.checkpoint().unwrap();
    assert_eq!(report.kind, CheckpointKind::Automatic);
    assert_eq!((report.visited, report.written), (100_000, 1));
}

#[test]
fn an_automatic_checkpoint_begins_when_recovery_would_exceed_the_interval() {
    let folder = tempfile::tempdir().unwrap();
    let options = InstanceOptions {
        pool_pages: 4096,
        background: false,
        ..InstanceOptions::default()
    };
    let instance = Instance::new(options, Arc::new(RealFileSystem)).unwrap();
    let database = instance.create_database(&small(folder.path())).unwrap();
    database.set_target_recovery_time(None).unwrap();
    for number in 1..100 {
        put(&database, &[(number, 1)]);
    }
    let dirty = database.counters().dirty_pages;
    assert!(dirty > 90);
    database.recovery_writer_step().unwrap();
    assert_eq!(database.counters().dirty_pages, dirty, "a minute");
    instance.set_recovery_interval(Duration::from_micros(10));
    database.recovery_writer_step().unwrap();
    assert_eq!(database.counters().dirty_pages, 0, "ten microseconds");
}

#[test]
fn a_full_log_is_refused_before_anything_happened() {
    let folder = tempfile::tempdir().unwrap();
    let instance = instance(4096);
    let mut request = small(folder.path());
    request.log.size = 1 << 20;
    request.log.growth = Growth::Fixed;
    let database = instance.create_database(&request).unwrap();
    put(&database, &[(1, 1)]);
    let mut writer = database.begin_write(&database.begin_read()).unwrap();
    for number in 1..=200 {
        writer.write_page(at(number), &page(number)).unwrap();
    }
    let refused = writer.commit().unwrap_err();
    assert!(matches!(refused, EngineError::LogFull { .. }), "{refused}");
    assert_eq!(database.begin_read().page_count(), 1);
    for round in 0..300 {
        put(&database, &[(1, round), (2, round)]);
    }
    assert_page(&database, 1, 299);
    assert!(database.counters().log_size < 1 << 20);
}

#[test]
fn a_full_data_file_is_refused_before_anything_happened() {
    let folder = tempfile::tempdir().unwrap();
    let instance = instance(4096);
    let mut request = small(folder.path());
    request.data_files[0].size = 65536;
    request.data_files[0].growth = Growth::Fixed;
    let database = instance.create_database(&request).unwrap();
    let mut writer = database.begin_write(&database.begin_read()).unwrap();
    writer.write_page(at(9), &page(9)).unwrap();
    let refused = writer.commit().unwrap_err();
    assert!(matches!(refused, EngineError::FileFull { .. }), "{refused}");
    put(&database, &[(8, 8)]);
    assert_page(&database, 8, 8);
}

#[test]
fn a_flipped_bit_in_a_page_with_a_checksum_is_reported_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("a.ldf");
    let mut first = page(1);
    first[..16].copy_from_slice(b"SQLite format 3\0");
    first[20] = 8;
    {
        let database = instance(64).create_database(&small(folder.path())).unwrap();
        let mut writer = database.begin_write(&database.begin_read()).unwrap();
        writer.write_page(at(1), &first).unwrap();
        writer.write_page(at(12), &page(12)).unwrap();
        writer.commit().unwrap();
        database.close().unwrap();
    }
    let path = folder.path().join("a.mdf");
    let mut plain = std::fs::read(&path).unwrap();
    plain[11 * PAGE_BYTES + 1000] ^= 1;
    std::fs::write(&path, &plain).unwrap();
    let database = instance(64)
        .open_database(&OpenDatabase::new("a", &log))
        .unwrap();
    let mut found = vec![0; PAGE_BYTES];
    let damage = database
        .begin_read()
        .read_page(at(12), &mut found)
        .unwrap_err();
    match damage {
        EngineError::PageChecksum {
            page, file_page, ..
        } => {
            let (file_id, index) = (FileId::PRIMARY, 11);
            let expected = FilePage {
                file_id,
                page: index,
            };
            assert_eq!((page, file_page), (at(12), expected));
        }
        other => panic!("{other}"),
    }
    database.begin_read().read_page(at(1), &mut found).unwrap();
}

#[test]
fn an_old_snapshot_reads_a_page_that_was_cut_off_before_pages_carried_checksums() {
    let folder = tempfile::tempdir().unwrap();
    let database = instance(8).create_database(&small(folder.path())).unwrap();
    put(&database, &[(1, 1), (2, 2), (9, 9)]);
    let before = database.begin_read();
    let mut first = page(1);
    first[..16].copy_from_slice(b"SQLite format 3\0");
    first[20] = 8;
    let mut writer = database.begin_write(&database.begin_read()).unwrap();
    writer.truncate(8).unwrap();
    writer.write_page(at(1), &first).unwrap();
    writer.commit().unwrap();
    database.checkpoint().unwrap();
    let mut found = vec![0; PAGE_BYTES];
    // Page 9 is evicted for these.
    for number in 1..=8 {
        database
            .begin_read()
            .read_page(at(number), &mut found)
            .unwrap();
    }
    before.read_page(at(9), &mut found).unwrap();
    assert!(found == page(9));
}

#[test]
fn readers_and_a_writer_at_the_same_time_see_whole_commits() {
    let folder = tempfile::tempdir().unwrap();
    let instance = instance(64);
    let mut request = small(folder.path());
    request.target_recovery_time = Some(Duration::from_millis(1));
    let database = instance.create_database(&request).unwrap();
    let all = |seed: u32| (1..=40).map(|number| (number, seed)).collect::<Vec<_>>();
    put(&database, &all(0));
    std::thread::scope(|scope| {
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        for _ in 0..3 {
            let (database, stop) = (&database, Arc::clone(&stop));
            scope.spawn(move || {
                let mut found = vec![0; PAGE_BYTES];
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let snapshot = database.begin_read();
                    let mut first = vec![0; PAGE_BYTES];
                    snapshot.read_page(at(1), &mut first).unwrap();
                    for number in (2..=40).rev() {
                        snapshot.read_page(at(number), &mut found).unwrap();
                        assert!(found == first, "page {number} is of another commit");
                    }
                }
            });
        }
        for seed in 1..200 {
            put(&database, &all(seed));
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(database.counters().readers, 0);
    assert_eq!(database.counters().version_bytes, 0);
}

#[test]
fn several_writers_share_syncs_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let instance = instance(1024);
    let database = instance.create_database(&small(folder.path())).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let database = &database;
            scope.spawn(move || {
                let mut done = 0;
                while done < 100 {
                    let snapshot = database.begin_read();
                    let Ok(mut writer) = database.begin_write(&snapshot) else {
                        std::thread::yield_now();
                        continue;
                    };
                    drop(snapshot);
                    writer.write_page(at(1 + thread), &page(done)).unwrap();
                    writer.commit().unwrap();
                    done += 1;
                }
            });
        }
    });
    let counters = database.counters();
    assert_eq!(counters.commits, 400);
    assert!(counters.log_syncs < counters.commits, "{counters:?}");
    for thread in 0..4 {
        assert_page(&database, 1 + thread, 99);
    }
}
