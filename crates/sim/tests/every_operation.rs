//! One short history in which every single disk operation fails once: by a power loss, or by an
//! error after which the process ends and the operating system continues. Then recovery is
//! interrupted at each of its own operations, and restarted.
#![expect(clippy::unwrap_used, reason = "helpers of a test")]

use std::sync::Arc;
use std::time::Duration;

use windlass_base::{PAGE_BYTES, PageNumber};
use windlass_engine::{
    CreateDatabase, Database, EngineError, FileSpec, Instance, InstanceOptions, OpenDatabase,
};
use windlass_sim::disk::{Disk, Fault};

const PAGES: u32 = 20;

/// Enough to reach every operation of the history and of recovery.
const OPERATIONS: u64 = 90;

fn instance(disk: &Disk) -> Arc<Instance> {
    let options = InstanceOptions {
        pool_pages: 12,
        schedulers: 1,
        requests_in_flight: 2,
        background: false,
        version_bytes_max: 1 << 20,
        recovery_interval: Duration::from_secs(1),
    };
    Instance::new(options, Arc::new(disk.clone())).unwrap()
}

fn created(seed: u64, data_files: usize) -> (Disk, Arc<Database>) {
    let disk = Disk::new(seed);
    let mut request = CreateDatabase::new("a", "/d/a.mdf", "/d/a.ldf");
    for name in ["b", "c"].iter().take(data_files - 1) {
        let path = format!("/d/{name}.ndf");
        request.data_files.push(FileSpec::data(name, path));
    }
    request.log.size = 384 * 1024;
    let database = instance(&disk).create_database(&request).unwrap();
    (disk, database)
}

/// The pages that commit `number` fills with its number, besides the last.
fn pages_of(number: u8) -> Vec<u32> {
    let number = u32::from(number);
    (0..3)
        .map(|index| 1 + (number * 5 + index * 7) % PAGES)
        .collect()
}

fn at(number: u32) -> PageNumber {
    PageNumber::from_sqlite(number).unwrap()
}

fn commit(database: &Arc<Database>, number: u8) -> Result<(), EngineError> {
    let mut writer = database.begin_write(&database.begin_read())?;
    writer.write_page(at(PAGES), &[number; PAGE_BYTES])?;
    for page in pages_of(number) {
        writer.write_page(at(page), &[number; PAGE_BYTES])?;
    }
    writer.commit().map(|_| ())
}

/// Six commits with two checkpoints; returns the last acknowledged one.
fn history(database: &Arc<Database>) -> u8 {
    let mut acknowledged = 0;
    for number in 1..=6 {
        if commit(database, number).is_err() {
            return acknowledged;
        }
        acknowledged = number;
        if number % 2 == 0 && database.checkpoint().is_err() {
            return acknowledged;
        }
    }
    acknowledged
}

fn assert_state(database: &Arc<Database>, acknowledged: u8, what: &str) -> u8 {
    let snapshot = database.begin_read();
    let mut bytes = vec![0; PAGE_BYTES];
    let mut found = 0;
    if snapshot.page_count() > 0 {
        snapshot.read_page(at(PAGES), &mut bytes).unwrap();
        found = bytes[0];
    }
    assert!(
        found == acknowledged || found == acknowledged + 1,
        "{what}: {acknowledged} acknowledged, {found} found"
    );
    for page in 1..=snapshot.page_count() {
        let writes = |&number: &u8| page == PAGES || pages_of(number).contains(&page);
        let last = (1..=found).rev().find(writes).unwrap_or(0);
        snapshot.read_page(at(page), &mut bytes).unwrap();
        assert!(
            bytes.iter().all(|&byte| byte == last),
            "{what}: page {page}"
        );
    }
    found
}

fn open(disk: &Disk) -> Result<Arc<Database>, EngineError> {
    instance(disk).open_database(&OpenDatabase::new("a", "/d/a.ldf"))
}

fn fails_at(at: u64, fault: Fault, seed: u64, data_files: usize) {
    for cut in 0..OPERATIONS {
        let what = format!(
            "{fault:?} at {at}, power lost at {cut} of recovery, seed {seed}, {data_files} files"
        );
        let (disk, database) = created(seed, data_files);
        disk.plan(at, fault);
        let acknowledged = history(&database);
        drop(database);
        if disk.is_crashed() {
            disk.restart();
        }
        disk.calm();
        // The first recovery sees the operating system's state; the second sees the disk's.
        disk.plan(cut, Fault::Crash);
        let first = open(&disk);
        let is_cut = disk.is_crashed();
        disk.calm();
        let shown = match &first {
            Ok(database) if !is_cut => assert_state(database, acknowledged, &what),
            _ => acknowledged,
        };
        drop(first);
        disk.restart();
        let again = open(&disk).unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = assert_state(&again, acknowledged, &what);
        assert!(
            is_cut || found == shown,
            "{what}: {shown} was shown, {found} is there"
        );
        commit(&again, found + 1).unwrap();
        assert!(!disk.asked_again(), "{what}");
        if !is_cut {
            return;
        }
    }
    panic!("recovery has more than {OPERATIONS} operations");
}

#[test]
fn whatever_operation_fails_the_acknowledged_commits_are_there() {
    for (seed, data_files) in [(0, 1), (1, 1), (2, 3)] {
        for at in 0..OPERATIONS {
            fails_at(at, Fault::Crash, seed, data_files);
            fails_at(at, Fault::Error, seed, data_files);
        }
    }
}
