//! The same random statements on stock SQLite and on the engine must give the same answers.
#![expect(clippy::unwrap_used, reason = "helpers of a test")]

mod common;

use common::{Folder, assert_sound, dump, run};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rusqlite::Connection;

/// A random statement over a small schema. Everything in it is deterministic.
fn statement(random: &mut StdRng) -> String {
    let table = ["a", "b", "c"][random.random_range(0..3)];
    let x: i64 = random.random_range(0..400);
    let length = [3, 40, 900, 9000, 40_000][random.random_range(0..5)];
    let text = format!("replace(hex(zeroblob({length})), '00', '{}')", x % 10);
    match random.random_range(0..40) {
        0..=11 => format!(
            "INSERT OR REPLACE INTO {table} VALUES ({x}, {text}, {})",
            x % 17
        ),
        12..=15 => format!("UPDATE {table} SET y = {text} WHERE z = {}", x % 17),
        16..=17 => format!("UPDATE {table} SET z = z + 1 WHERE x > {x}"),
        18..=20 => format!("DELETE FROM {table} WHERE x BETWEEN {x} AND {}", x + 30),
        21 => format!("DELETE FROM {table}"),
        22 => format!("INSERT OR IGNORE INTO {table} SELECT x + 1, y, z FROM b"),
        23 => format!("INSERT INTO {table} SELECT 400 - x, y, z FROM a"),
        24 => "BEGIN".to_owned(),
        25 => "BEGIN IMMEDIATE".to_owned(),
        26..=27 => "COMMIT".to_owned(),
        28 => "ROLLBACK".to_owned(),
        29 => "SAVEPOINT s".to_owned(),
        30 => "ROLLBACK TO s".to_owned(),
        31 => "RELEASE s".to_owned(),
        32 => "VACUUM".to_owned(),
        33 => format!("DROP INDEX IF EXISTS i{table}"),
        34 => format!("CREATE INDEX IF NOT EXISTS i{table} ON {table}(z, y)"),
        35 => format!(
            "PRAGMA cache_size = {}",
            [5, 20, 2000][random.random_range(0..3)]
        ),
        36 => "PRAGMA incremental_vacuum".to_owned(),
        37 => format!("ALTER TABLE {table} RENAME TO tmp; ALTER TABLE tmp RENAME TO {table}"),
        38 => "REINDEX".to_owned(),
        _ => format!(
            "DROP TABLE {table}; CREATE TABLE {table}(x INTEGER PRIMARY KEY, y TEXT, z INT)"
        ),
    }
}

fn outcome(connection: &Connection, sql: &str) -> String {
    match connection.execute_batch(sql) {
        Ok(()) => format!("ok, {} changes", connection.total_changes()),
        Err(rusqlite::Error::SqliteFailure(error, message)) => {
            format!("{} {message:?}", error.extended_code)
        }
        Err(error) => format!("{error}"),
    }
}

fn compare(seed: u64, statements: usize) {
    let mut random = StdRng::seed_from_u64(seed);
    let folder = Folder::new();
    let pair = [folder.stock("stock.db"), folder.engine("engine.db")];
    let auto_vacuum = seed % 3;
    for connection in &pair {
        run(
            connection,
            &format!("PRAGMA page_size = 8192; PRAGMA auto_vacuum = {auto_vacuum}"),
        );
        for table in ["a", "b", "c"] {
            run(
                connection,
                &format!("CREATE TABLE {table}(x INTEGER PRIMARY KEY, y TEXT, z INT)"),
            );
        }
    }
    // A third connection sees only what is committed; its page cache must notice every commit.
    let witness = folder.engine("engine.db");
    for number in 0..statements {
        let sql = statement(&mut random);
        let answers = pair.each_ref().map(|connection| outcome(connection, &sql));
        assert_eq!(
            answers[0], answers[1],
            "seed {seed}, statement {number}: {sql}"
        );
        if number % 20 == 0 {
            let dumps = pair.each_ref().map(dump);
            assert!(
                dumps[0] == dumps[1],
                "seed {seed}, after statement {number}: {sql}"
            );
            if pair[0].is_autocommit() {
                assert!(
                    dump(&witness) == dumps[0],
                    "seed {seed}, witness, {number}: {sql}"
                );
            }
        }
    }
    for connection in &pair {
        if !connection.is_autocommit() {
            run(connection, "ROLLBACK");
        }
        assert_sound(connection);
    }
    assert_sound(&witness);
    let dumps = pair.each_ref().map(dump);
    assert!(dumps[0] == dumps[1], "seed {seed}, at the end");
    drop((witness, pair));
    let reopened = folder.engine("engine.db");
    assert_sound(&reopened);
    assert!(dump(&reopened) == dumps[0], "seed {seed}, reopened");
    drop(reopened);
    let plain = folder.stock("engine.db");
    assert_sound(&plain);
    assert!(
        dump(&plain) == dumps[0],
        "seed {seed}, opened by stock SQLite"
    );
}

#[test]
fn random_statements_give_the_same_answers_on_stock_sqlite_and_on_the_engine() {
    for seed in 0..3 {
        compare(seed, 250);
    }
}

#[test]
#[ignore = "long: run with --ignored"]
fn slow_many_random_statements_give_the_same_answers() {
    for seed in 100..200 {
        compare(seed, 1000);
    }
}
