use std::fs;

use rusqlite::Connection;

use super::super::options::SnapshotOptions;
use super::super::snapshot::SqliteSnapshot;
use super::sum::MAGIC;
use super::*;
use crate::Snapshot;

/// A database and its log with several commits, as a crash leaves them.
fn crashed() -> (Vec<u8>, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "PRAGMA page_size = 512; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
             CREATE TABLE t(a INTEGER PRIMARY KEY, b);
             INSERT INTO t VALUES (1, zeroblob(9000)), (2, 'two');
             PRAGMA wal_checkpoint(TRUNCATE);
             UPDATE t SET b = randomblob(2000) WHERE a = 1;
             INSERT INTO t VALUES (3, randomblob(4000));
             DELETE FROM t WHERE a = 3; VACUUM;
             UPDATE t SET b = 'end' WHERE a = 2;",
        )
        .unwrap();
    let log = fs::read(folder.path().join("a.db-wal")).unwrap();
    (fs::read(&path).unwrap(), log)
}

/// The result of this module's recovery of a leftover log.
fn ours(path: &Path) -> Vec<u8> {
    let options = SnapshotOptions {
        frozen: true,
        ..SnapshotOptions::default()
    };
    let snapshot = SqliteSnapshot::open(path, &options).unwrap();
    let mut bytes = vec![0; snapshot.files()[0].size_bytes as usize];
    snapshot.read(1, 0, &mut bytes).unwrap();
    snapshot.close().unwrap();
    bytes
}

/// The result of `SQLite`'s recovery.
fn sqlites(path: &Path) -> Vec<u8> {
    let connection = Connection::open(path).unwrap();
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(connection);
    fs::read(path).unwrap()
}

#[test]
fn damaged_logs_are_recovered_exactly_as_far_as_sqlite_recovers_them() {
    let (database, log) = crashed();
    let frame_bytes = FRAME_HEADER_BYTES + 512;
    let truncations = (0..HEADER_BYTES + FRAME_HEADER_BYTES + 2)
        .chain((0..log.len()).step_by(frame_bytes / 3 + 1))
        .map(|length| (length, 0));
    let flips = (0..log.len()).step_by(61).map(|at| (at, 0x10_u8));
    let mut states = std::collections::BTreeSet::new();
    for (case, (at, bit)) in truncations.chain(flips).chain([(log.len(), 0)]).enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let mut log = log.clone();
        match bit {
            0 => log.truncate(at),
            bit => log[at] ^= bit,
        }
        fs::write(&path, &database).unwrap();
        fs::write(folder.path().join("a.db-wal"), &log).unwrap();
        let ours = ours(&path);
        assert!(ours == sqlites(&path), "case {case}: byte {at}, bit {bit}");
        states.insert(ours);
    }
    assert!(
        states.len() >= 5,
        "the cases reach every commit: {}",
        states.len()
    );
}

/// A log of one frame, under a header of choice with the right checksum.
fn with_header(magic: u32, page_bytes: u32) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let (path, log_path) = (folder.path().join("a.db"), folder.path().join("a.db-wal"));
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "PRAGMA page_size = 512; PRAGMA journal_mode = WAL; PRAGMA user_version = 1;
             PRAGMA wal_checkpoint(TRUNCATE); PRAGMA user_version = 2;",
        )
        .unwrap();
    let (database, mut log) = (fs::read(&path).unwrap(), fs::read(&log_path).unwrap());
    drop(connection);
    assert_eq!(log.len(), HEADER_BYTES + FRAME_HEADER_BYTES + 512);
    log[..4].copy_from_slice(&magic.to_be_bytes());
    log[8..12].copy_from_slice(&page_bytes.to_be_bytes());
    let mut sum = RunningSum::resume(magic & 1 != 0, [0, 0]);
    sum.update(&log[..24]);
    let header = sum.sum().map(u32::to_be_bytes).concat();
    log[24..32].copy_from_slice(&header);
    sum.update(&log[32..40]);
    sum.update(&log[HEADER_BYTES + FRAME_HEADER_BYTES..]);
    let frame = sum.sum().map(u32::to_be_bytes).concat();
    log[48..56].copy_from_slice(&frame);
    fs::write(&path, &database).unwrap();
    fs::write(&log_path, &log).unwrap();
    let is_log = Overlay::leftover(&log_path).unwrap().is_some();
    let ours = ours(&path);
    assert!(
        ours == sqlites(&path),
        "magic {magic:x}, page size {page_bytes}"
    );
    assert!(is_log || ours == database);
    is_log
}

#[test]
fn a_log_is_what_sqlite_takes_for_one() {
    for magic in [MAGIC, MAGIC | 1] {
        assert!(with_header(magic, 512), "one frame is enough");
        for page_bytes in [0, 1, 24, 256, 511, 1536, 131_072] {
            assert!(!with_header(magic, page_bytes), "{page_bytes}");
        }
    }
    for magic in [MAGIC ^ 2, MAGIC ^ 0x8000_0000, 0] {
        assert!(!with_header(magic, 512), "{magic:x}");
    }
}

#[test]
fn a_range_is_covered_when_each_of_its_pages_is_in_the_log() {
    let (_, log) = crashed();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db-wal");
    fs::write(&path, &log).unwrap();
    let mut overlay = Overlay::leftover(&path).unwrap().unwrap();
    let frames = [2, 3, 4, 7, 9, 10];
    overlay.newest = frames
        .map(|page| NewestFrame {
            page: PageNumber::from_sqlite(page).unwrap(),
            frame: 1,
        })
        .into();
    overlay.page_count = 12;
    for (first, last) in (1..=12_u32).flat_map(|first| (first..=12).map(move |l| (first, l))) {
        let (offset, bytes) = (
            u64::from(first - 1) * 512,
            (last - first + 1) as usize * 512,
        );
        let all = (first..=last).all(|page| frames.contains(&page));
        assert_eq!(overlay.covers(offset, bytes), all, "{first} to {last}");
        let within = overlay.frames_within(offset, bytes);
        let within: Vec<u32> = within.iter().map(|newest| newest.page.sqlite()).collect();
        let named = frames
            .into_iter()
            .filter(|page| (first..=last).contains(page));
        assert_eq!(within, named.collect::<Vec<_>>(), "{first} to {last}");
    }
}

#[test]
fn a_log_that_cannot_be_read_is_not_said_to_be_too_short() {
    let (_, log) = crashed();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db-wal");
    fs::write(&path, &log).unwrap();
    let mut overlay = Overlay::leftover(&path).unwrap().unwrap();
    overlay.file = File::options().write(true).open(&path).unwrap();
    let error = overlay.apply(0, &mut [0; 512]).unwrap_err();
    assert!(matches!(error, Error::Io { action: "read", .. }), "{error}");
}

#[test]
fn a_restarted_log_is_noticed() {
    let (_, log) = crashed();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db-wal");
    fs::write(&path, &log).unwrap();
    let overlay = Overlay::leftover(&path).unwrap().unwrap();
    overlay.confirm().unwrap();
    let mut header = log[..HEADER_BYTES].to_vec();
    header[16] ^= 1;
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .write_at(&header, 0)
        .unwrap();
    assert!(matches!(
        overlay.confirm(),
        Err(Error::ChangedWhileReading { .. })
    ));
}
