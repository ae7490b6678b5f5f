//! Snapshots of a database that other processes write to and checkpoint.
//!
//! Each transaction moves an amount between accounts (the sum stays 0), adds the next number to a
//! sequence, and sometimes makes the database grow or shrink.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use windlass_base::EXTENT_BYTES;
use windlass_io::AlignedBuffer;
use windlass_source::sqlite::SqliteSnapshot;
use windlass_source::{Recovery, Snapshot};

use crate::process::{Process, say};
use crate::support::{image, open, request, restore};

fn create(path: &Path, page_bytes: u32, journal_mode: &str) {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(&format!(
            "PRAGMA page_size = {page_bytes};
             PRAGMA auto_vacuum = INCREMENTAL;
             PRAGMA journal_mode = {journal_mode};
             CREATE TABLE account(id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
             CREATE TABLE step(number INTEGER PRIMARY KEY, payload BLOB);
             CREATE INDEX step_payload ON step(payload);
             WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 500)
               INSERT INTO account SELECT v, 0 FROM n;
             INSERT INTO step VALUES (1, zeroblob(10));"
        ))
        .unwrap();
}

/// The role of the writer.
pub(crate) fn write_for_ever(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(30)).unwrap();
    connection
        .execute_batch("PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 200")
        .unwrap();
    say("ready");
    for round in 0_i64.. {
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        let (from, to, amount) = (1 + round % 500, 1 + round * 7 % 500, round % 97);
        let move_amount = "UPDATE account SET balance = balance + ?2 WHERE id = ?1";
        connection
            .execute(move_amount, params![from, -amount])
            .unwrap();
        connection
            .execute(move_amount, params![to, amount])
            .unwrap();
        connection
            .execute(
                "INSERT INTO step SELECT max(number) + 1, randomblob(?1) FROM step",
                [round % 41 * 100],
            )
            .unwrap();
        connection.execute_batch("COMMIT").unwrap();
        // Fast enough to be busy at any time, slow enough to stay small.
        std::thread::sleep(Duration::from_micros(500));
        if round % 150 == 149 {
            connection
                .execute_batch(
                    "BEGIN IMMEDIATE;
                     UPDATE step SET payload = NULL
                       WHERE payload IS NOT NULL AND number < (SELECT max(number) - 60 FROM step);
                     PRAGMA incremental_vacuum; COMMIT",
                )
                .unwrap();
        }
    }
}

/// Restores an image, checks its invariants and returns the last number of the sequence.
fn verify(bytes: &[u8]) -> i64 {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("copy.db");
    restore(
        &request(&target, bytes.len() as u64),
        bytes,
        Recovery::Recovery,
    );
    let connection = Connection::open(&target).unwrap();
    let text = |sql| {
        connection
            .query_row(sql, [], |row| row.get::<_, String>(0))
            .unwrap()
    };
    let number = |sql| {
        connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    assert_eq!(text("PRAGMA integrity_check"), "ok");
    assert_eq!(
        number("SELECT sum(balance) FROM account"),
        0,
        "a transfer is torn"
    );
    let last = number("SELECT max(number) FROM step");
    assert_eq!(
        number("SELECT count(*) FROM step"),
        last,
        "the sequence has a hole"
    );
    last
}

/// Waits until the writer has committed more than `number`, as it must be able to.
fn wait_for_a_write(path: &Path, number: i64) {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(30)).unwrap();
    let newest = || -> i64 {
        connection
            .query_row("SELECT max(number) FROM step", [], |row| row.get(0))
            .unwrap()
    };
    let begun = Instant::now();
    while newest() <= number {
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "the writer is held up"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Reads as slowly as slow media would write.
fn slow_image(snapshot: SqliteSnapshot, pause: Duration) -> Vec<u8> {
    let size_bytes = snapshot.files()[0].size_bytes as usize;
    let mut bytes = AlignedBuffer::new(size_bytes);
    for (index, extent) in bytes[..size_bytes].chunks_mut(EXTENT_BYTES).enumerate() {
        snapshot
            .read(1, (index * EXTENT_BYTES) as u64, extent)
            .unwrap();
        std::thread::sleep(pause);
    }
    snapshot.close().unwrap();
    drop(snapshot);
    bytes[..size_bytes].to_vec()
}

#[test]
fn every_copy_of_a_database_being_written_is_a_committed_state() {
    for (page_bytes, rounds) in [(4096, 20), (512, 5), (65536, 3)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("busy.db");
        create(&path, page_bytes, "WAL");
        let _writer = Process::start("writer", &path);
        let mut last = 0;
        for round in 0..rounds {
            wait_for_a_write(&path, last);
            let number = verify(&image(open(&path), 1 + round % 16));
            assert!(number > last, "{number} after {last}");
            last = number;
        }
    }
}

#[test]
fn checkpoints_by_others_do_not_reach_a_slow_copy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stormy.db");
    create(&path, 1024, "WAL");
    let _writer = Process::start("writer", &path);
    let _checkpointer = Process::start("checkpointer", &path);
    let mut last = 0;
    for _ in 0..8 {
        wait_for_a_write(&path, last);
        let number = verify(&slow_image(open(&path), Duration::from_millis(15)));
        assert!(number > last);
        last = number;
    }
}

#[test]
fn a_log_that_is_checkpointed_entirely_is_not_restarted_under_the_copy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reset.db");
    create(&path, 4096, "WAL");
    let other = Connection::open(&path).unwrap();
    for mode in ["PASSIVE", "TRUNCATE"] {
        other
            .execute(
                "INSERT INTO step SELECT max(number) + 1, zeroblob(9000) FROM step",
                [],
            )
            .unwrap();
        other
            .query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(()))
            .unwrap();
        let count: i64 = other
            .query_row("SELECT max(number) FROM step", [], |row| row.get(0))
            .unwrap();

        let snapshot = open(&path);
        let writer = Process::start("writer", &path);
        let checkpointer = Process::start("checkpointer", &path);
        wait_for_a_write(&path, count + 20);
        drop((writer, checkpointer));
        assert_eq!(verify(&image(snapshot, 4)), count, "{mode}");
    }
}

#[test]
fn copies_in_rollback_mode_hold_writers_up_only_for_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollback.db");
    create(&path, 4096, "DELETE");
    let _writer = Process::start("writer", &path);
    let mut last = 0;
    for round in 0..10 {
        wait_for_a_write(&path, last);
        let number = verify(&image(open(&path), 1 + round));
        assert!(number > last, "the writer goes on between the copies");
        last = number;
    }
}
