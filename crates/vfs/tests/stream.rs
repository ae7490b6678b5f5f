//! A long stream of random transactions, the same on stock SQLite and on the engine, from connections that
//! take turns: every answer is equal, and so is the content at the end.
//!
//! The short form runs with the other tests. The long one has a million transactions, or as many as
//! `WINDLASS_TRANSACTIONS` says; in a folder without real syncs (`TMPDIR=/dev/shm`) it takes minutes.
#![expect(clippy::unwrap_used, reason = "helpers of a test")]
#![expect(clippy::print_stdout, reason = "the long form tells how far it is")]

mod common;

use std::time::Instant;

use common::{Folder, assert_sound, dump, run};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rusqlite::Connection;

const CONNECTIONS: usize = 3;

/// A change that may fail: constraints are broken on purpose now and then.
fn change(random: &mut StdRng) -> String {
    let id: i64 = random.random_range(0..3000);
    let other: i64 = random.random_range(0..3000);
    let amount: i64 = random.random_range(-50..50);
    let length = [0, 8, 60, 400, 5000][random.random_range(0..5)];
    match random.random_range(0..20) {
        0..=5 => format!(
            "INSERT OR REPLACE INTO account VALUES ({id}, {amount}, hex(zeroblob({length})))"
        ),
        6..=9 => format!("UPDATE account SET balance = balance + {amount} WHERE id = {id}"),
        10..=11 => format!(
            "UPDATE account SET balance = balance - {amount} WHERE id = {id};
             UPDATE account SET balance = balance + {amount} WHERE id = {other}"
        ),
        12..=13 => format!("DELETE FROM account WHERE id = {id}"),
        14 => format!("INSERT INTO account VALUES ({id}, {amount}, 'new')"),
        15..=16 => format!("INSERT INTO journal(account, amount) VALUES ({id}, {amount})"),
        17 => "DELETE FROM journal WHERE n < (SELECT max(n) FROM journal) - 500".to_owned(),
        18 => format!("UPDATE account SET id = {other} WHERE id = {id}"),
        _ => format!("UPDATE account SET note = note || 'x' WHERE id BETWEEN {id} AND {id} + 5"),
    }
}

fn transaction(random: &mut StdRng) -> Vec<String> {
    if random.random_range(0..3) == 0 {
        return vec![change(random)];
    }
    let mut statements = vec!["BEGIN IMMEDIATE".to_owned()];
    for _ in 0..random.random_range(1..5) {
        match random.random_range(0..12) {
            0 => statements.push("SAVEPOINT s".to_owned()),
            1 => statements.push("ROLLBACK TO s".to_owned()),
            _ => statements.push(change(random)),
        }
    }
    let end = if random.random_range(0..10) == 0 {
        "ROLLBACK"
    } else {
        "COMMIT"
    };
    statements.push(end.to_owned());
    statements
}

/// What a statement answers, and whether a transaction is open after it.
fn answer(connection: &Connection, sql: &str) -> (Option<i32>, u64, bool) {
    let code = match connection.execute_batch(sql) {
        Ok(()) => None,
        Err(error) => Some(error.sqlite_error().map_or(-1, |error| error.extended_code)),
    };
    (code, connection.total_changes(), connection.is_autocommit())
}

fn stream(seed: u64, transactions: u64) {
    let folder = Folder::new();
    let open = |name: &str| -> Vec<Connection> {
        (0..CONNECTIONS)
            .map(|_| match name {
                "engine.db" => folder.engine(name),
                _ => folder.stock(name),
            })
            .collect()
    };
    let (stock, engine) = (open("stock.db"), open("engine.db"));
    run(
        &stock[0],
        "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL",
    );
    for connection in &stock {
        run(connection, "PRAGMA synchronous = OFF");
    }
    for connection in [&stock[0], &engine[0]] {
        run(
            connection,
            "CREATE TABLE account(id INTEGER PRIMARY KEY, balance INT CHECK(balance > -200), note TEXT);
             CREATE INDEX by_balance ON account(balance);
             CREATE TABLE journal(n INTEGER PRIMARY KEY, account INT, amount INT)",
        );
    }
    let mut random = StdRng::seed_from_u64(seed);
    let (begun, mut reported) = (Instant::now(), 0);
    for number in 0..transactions {
        let turn = random.random_range(0..CONNECTIONS);
        for sql in transaction(&mut random) {
            let pair = [&stock[turn], &engine[turn]].map(|connection| answer(connection, &sql));
            assert_eq!(pair[0], pair[1], "seed {seed}, transaction {number}: {sql}");
        }
        if number % 20_000 == 500 {
            assert!(
                dump(&stock[0]) == dump(&engine[0]),
                "seed {seed}, after {number}"
            );
        }
        if begun.elapsed().as_secs() >= reported + 30 {
            reported = begun.elapsed().as_secs();
            println!("{number} transactions after {reported} s");
        }
    }
    for connection in &engine {
        assert_sound(connection);
    }
    let expected = dump(&stock[1]);
    assert!(expected == dump(&engine[1]), "seed {seed}, at the end");
    drop(engine);
    assert!(
        expected == dump(&folder.engine("engine.db")),
        "seed {seed}, reopened"
    );
    assert!(
        expected == dump(&folder.stock("engine.db")),
        "seed {seed}, by stock SQLite"
    );
    println!(
        "{transactions} transactions, equal, in {:.0} s",
        begun.elapsed().as_secs_f64()
    );
}

#[test]
fn a_stream_of_transactions_is_answered_as_by_stock_sqlite() {
    stream(1, 700);
}

#[test]
#[ignore = "long: run with --ignored"]
fn slow_a_million_transactions_are_answered_as_by_stock_sqlite() {
    let count = std::env::var("WINDLASS_TRANSACTIONS").ok();
    stream(2, count.map_or(1_000_000, |count| count.parse().unwrap()));
}
