//! Several connections in several threads: every reader sees one committed state, nobody loses a commit.
#![expect(clippy::unwrap_used, reason = "helpers of a test")]

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::{Folder, assert_sound, engine, run, value};
use rand::{RngExt, SeedableRng, rngs::StdRng};

const ACCOUNTS: i64 = 300;
const SUM: i64 = ACCOUNTS * 1000;

fn accounts(folder: &Folder) {
    run(
        &folder.engine("a.db"),
        &format!(
            "CREATE TABLE account(id INTEGER PRIMARY KEY, balance INTEGER, note TEXT);
             INSERT INTO account WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {ACCOUNTS})
               SELECT n, 1000, hex(zeroblob(200)) FROM c;
             CREATE INDEX i ON account(balance)"
        ),
    );
}

/// Moves money; in some transactions with a cache so small that pages spill, some rolled back.
fn transfers(folder: &Folder, seed: u64, count: usize) {
    let connection = folder.engine("a.db");
    let mut random = StdRng::seed_from_u64(seed);
    run(&connection, "PRAGMA cache_size = 8");
    for _ in 0..count {
        let (from, to) = (
            random.random_range(1..=ACCOUNTS),
            random.random_range(1..=ACCOUNTS),
        );
        let end = if random.random_range(0..8) == 0 {
            "ROLLBACK"
        } else {
            "COMMIT"
        };
        let spill = if random.random_range(0..10) == 0 {
            "UPDATE account SET note = hex(randomblob(100));"
        } else {
            ""
        };
        run(
            &connection,
            &format!(
                "BEGIN IMMEDIATE;
                 UPDATE account SET balance = balance - 7 WHERE id = {from}; {spill}
                 UPDATE account SET balance = balance + 7 WHERE id = {to};
                 {end}"
            ),
        );
    }
}

#[test]
fn readers_always_see_the_same_sum_while_a_writer_commits() {
    let folder = Folder::new();
    accounts(&folder);
    let stop = AtomicBool::new(false);
    let reads = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for reader in 0..4 {
            let (folder, stop, reads) = (&folder, &stop, &reads);
            scope.spawn(move || {
                let connection = folder.engine("a.db");
                // No busy timeout: a reader that gets BUSY fails the test.
                connection.busy_timeout(Duration::ZERO).unwrap();
                if reader % 2 == 0 {
                    run(&connection, "PRAGMA cache_size = 8");
                }
                while !stop.load(Ordering::Relaxed) {
                    run(&connection, "BEGIN");
                    assert_eq!(
                        value::<i64>(&connection, "SELECT sum(balance) FROM account"),
                        SUM
                    );
                    let by_index =
                        "SELECT sum(balance) FROM account INDEXED BY i WHERE balance > -100000";
                    assert_eq!(value::<i64>(&connection, by_index), SUM);
                    run(&connection, "COMMIT");
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        transfers(&folder, 1, 400);
        stop.store(true, Ordering::Relaxed);
    });
    assert!(reads.into_inner() > 10);
    assert_sound(&folder.engine("a.db"));
}

#[test]
fn several_writers_take_turns_and_lose_nothing() {
    let folder = Folder::new();
    accounts(&folder);
    let path = folder.path("a.db");
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let (folder, path) = (&folder, &path);
            scope.spawn(move || {
                transfers(folder, writer, 60);
                let connection = engine(path);
                for _ in 0..40 {
                    run(&connection, "BEGIN IMMEDIATE; UPDATE account SET note = note || 'x' WHERE id = 1; COMMIT");
                }
            });
        }
    });
    let connection = folder.engine("a.db");
    assert_eq!(
        value::<i64>(&connection, "SELECT sum(balance) FROM account"),
        SUM
    );
    assert_sound(&connection);
}

#[test]
fn every_increment_of_many_writers_is_counted() {
    let folder = Folder::new();
    run(
        &folder.engine("a.db"),
        "CREATE TABLE n(x); INSERT INTO n VALUES (0)",
    );
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let folder = &folder;
            scope.spawn(move || {
                let connection = folder.engine("a.db");
                for _ in 0..50 {
                    run(&connection, "UPDATE n SET x = x + 1");
                }
            });
        }
    });
    assert_eq!(value::<i64>(&folder.engine("a.db"), "SELECT x FROM n"), 200);
}

#[test]
#[ignore = "long: a million transactions; run with --ignored"]
fn slow_a_million_transactions() {
    let folder = Folder::new();
    let connection = folder.engine("a.db");
    run(
        &connection,
        "CREATE TABLE n(k INTEGER PRIMARY KEY, x INTEGER); INSERT INTO n VALUES (0, 0)",
    );
    let mut insert = connection
        .prepare("INSERT INTO n VALUES (?1 % 1000 + 1, 1) ON CONFLICT DO UPDATE SET x = x + 1")
        .unwrap();
    let reader = folder.engine("a.db");
    for number in 0..1_000_000i64 {
        insert.execute([number]).unwrap();
        if number % 50_000 == 0 {
            assert_eq!(value::<i64>(&reader, "SELECT sum(x) FROM n"), number + 1);
            assert_sound(&reader);
        }
    }
    assert_eq!(value::<i64>(&reader, "SELECT sum(x) FROM n"), 1_000_000);
    drop((insert, reader));
    drop(connection);
    let again = folder.engine("a.db");
    assert_eq!(value::<i64>(&again, "SELECT sum(x) FROM n"), 1_000_000);
    assert_sound(&again);
}
