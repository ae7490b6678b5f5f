//! Kills a writing process again and again: what it acknowledged must survive, and the transaction
//! in flight completely or not at all. Every other round also runs a backup.
#![expect(clippy::unwrap_used, reason = "a test ends at the first failure")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use windlass_base::{Guid, PAGE_BYTES, PageNumber};
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{
    BackupMode, CreateDatabase, Database, Instance, InstanceOptions, OpenDatabase,
};

const FOLDER: &str = "WINDLASS_KILL_FOLDER";
const WITH_BACKUP: &str = "WINDLASS_KILL_WITH_BACKUP";
const PAGES: u64 = 60;

fn open(folder: &Path) -> (Arc<Instance>, Arc<Database>) {
    let options = InstanceOptions {
        pool_pages: 64,
        ..InstanceOptions::default()
    };
    let instance = Instance::new(options, Arc::new(RealFileSystem)).unwrap();
    let log = folder.join("a.ldf");
    let database = if log.exists() {
        instance
            .open_database(&OpenDatabase::new("a", log))
            .unwrap()
    } else {
        let mut request = CreateDatabase::new("a", folder.join("a.mdf"), log);
        request.log.size = 1 << 20;
        request.target_recovery_time = Some(Duration::from_millis(5));
        instance.create_database(&request).unwrap()
    };
    (instance, database)
}

/// The pages that transaction `number` writes, besides page 1.
fn pages_of(number: u64) -> impl Iterator<Item = u32> {
    (0..4).map(move |index| {
        let mixed = (number * 4 + index).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        (2 + mixed % (PAGES - 1)) as u32
    })
}

fn at(number: u32) -> PageNumber {
    PageNumber::from_sqlite(number).unwrap()
}

fn content(number: u64, page: u32) -> Vec<u8> {
    let mut content = vec![(number % 251) as u8; PAGE_BYTES];
    content[..8].copy_from_slice(&number.to_le_bytes());
    content[8..12].copy_from_slice(&page.to_le_bytes());
    content
}

fn counter(database: &Arc<Database>) -> u64 {
    let snapshot = database.begin_read();
    let mut bytes = [0; 8];
    if snapshot.page_count() > 0 {
        snapshot
            .read_part(PageNumber::FIRST, 0, &mut bytes)
            .unwrap();
    }
    u64::from_le_bytes(bytes)
}

#[test]
#[ignore = "the child process of the other tests"]
fn child_writer() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let (_instance, database) = open(Path::new(&folder));
    if std::env::var_os(WITH_BACKUP).is_some() {
        let database = Arc::clone(&database);
        std::thread::spawn(move || {
            loop {
                let mut backup = database.begin_backup(BackupMode::Full).unwrap();
                let mut buffer = windlass_io::AlignedBuffer::new(65536);
                for range in backup.ranges(65536) {
                    backup.read_range(&range, &mut buffer).unwrap();
                    let bytes = &buffer[..range.bytes];
                    backup.verify(&range, bytes, &mut |_| {});
                }
                backup.finish_data().unwrap();
                backup.read_log(|_| Ok(())).unwrap();
                backup.complete(Guid::random()).unwrap();
            }
        });
    }
    let mut number = counter(&database);
    loop {
        number += 1;
        let mut writer = database.begin_write(&database.begin_read()).unwrap();
        writer
            .write_page(PageNumber::FIRST, &content(number, 1))
            .unwrap();
        for page in pages_of(number) {
            writer.write_page(at(page), &content(number, page)).unwrap();
        }
        writer.commit().unwrap();
        // One write call per line, so that a kill cannot cut a number.
        std::io::Write::write_all(&mut std::io::stdout(), format!("ack {number}\n").as_bytes())
            .unwrap();
    }
}

fn rounds(count: u32) {
    let folder = tempfile::tempdir().unwrap();
    // Created here: a kill during the creation would leave no database.
    drop(open(folder.path()));
    let mut before = 0;
    for round in 0..count {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "child_writer", "--ignored", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped());
        if round % 2 == 1 {
            command.env(WITH_BACKUP, "1");
        }
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let pause = u64::from(round * 37 % 150);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(40 + pause));
            child.kill().unwrap();
            child.wait().unwrap();
        });
        let mut acknowledged = before;
        for line in output.lines() {
            let line = line.unwrap();
            if let Some((_, number)) = line.split_once("ack ") {
                acknowledged = number.parse().unwrap();
            }
        }
        killer.join().unwrap();
        let (_instance, database) = open(folder.path());
        let found = counter(&database);
        assert!(
            found == acknowledged || found == acknowledged + 1,
            "round {round}: {acknowledged} acknowledged, {found} found"
        );
        let mut last = vec![0; PAGES as usize + 1];
        for number in 1..=found {
            for page in pages_of(number) {
                last[page as usize] = number;
            }
        }
        let snapshot = database.begin_read();
        let mut bytes = vec![0; PAGE_BYTES];
        for (page, &number) in last.iter().enumerate().skip(2) {
            if number > 0 {
                snapshot.read_page(at(page as u32), &mut bytes).unwrap();
                assert!(
                    bytes == content(number, page as u32),
                    "round {round}: page {page}"
                );
            }
        }
        drop(snapshot);
        if round % 5 == 4 {
            database.close().unwrap();
        }
        before = found;
    }
    assert!(
        before > u64::from(count),
        "the writer got nowhere: {before}"
    );
}

#[test]
fn ten_kills_lose_nothing_acknowledged() {
    rounds(10);
}

#[test]
#[ignore = "a minute or more"]
fn slow_three_hundred_kills_lose_nothing_acknowledged() {
    rounds(300);
}
