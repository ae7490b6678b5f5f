//! A database that proves by its own content that it is one committed state.
//!
//! Each transaction changes random rows, and in the same transaction a digest over all rows and the number of the
//! transaction. A mixture of two states has a wrong digest, and a state without some commit in the middle, too.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, params};

/// Numbers that look random.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % end
    }
}

const DIGEST_MASK: u64 = (1 << 40) - 1;

fn digest(id: i64, value: &[u8]) -> i64 {
    let mut sum = 0xCBF2_9CE4_8422_2325_u64 ^ (id as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for byte in value {
        sum = (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
    }
    ((sum ^ (sum >> 29)) & DIGEST_MASK) as i64
}

pub(crate) fn create(path: &Path, page_bytes: u32) {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(&format!(
            "PRAGMA page_size = {page_bytes};
             PRAGMA auto_vacuum = INCREMENTAL;
             PRAGMA journal_mode = WAL;
             CREATE TABLE item(id INTEGER PRIMARY KEY, value BLOB, digest INTEGER);
             CREATE INDEX item_digest ON item(digest);
             CREATE TABLE state(number INTEGER, total INTEGER);
             INSERT INTO state VALUES (0, 0);"
        ))
        .unwrap();
}

pub(crate) fn connect(path: &Path, autocheckpoint: u32) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(60)).unwrap();
    let settings =
        format!("PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = {autocheckpoint}");
    connection.execute_batch(&settings).unwrap();
    connection
}

/// Commits one transaction of up to `rows` rows; its number.
pub(crate) fn commit(connection: &Connection, random: &mut Random, rows: u64) -> i64 {
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut change = 0_i64;
    for _ in 0..=random.below(rows) {
        let id = random.below(400) as i64;
        let old: Option<i64> = connection
            .prepare_cached("SELECT digest FROM item WHERE id = ?1")
            .unwrap()
            .query_row([id], |row| row.get(0))
            .optional()
            .unwrap();
        change -= old.unwrap_or(0);
        if random.below(5) == 0 {
            let mut delete = connection
                .prepare_cached("DELETE FROM item WHERE id = ?1")
                .unwrap();
            delete.execute([id]).unwrap();
        } else {
            let longest = if random.below(10) == 0 { 9000 } else { 300 };
            let bytes = random.below(longest);
            let seed = random.below(256) as u8;
            let value: Vec<u8> = (0..bytes)
                .map(|at| seed.wrapping_add((at * at) as u8))
                .collect();
            let digest = digest(id, &value);
            change += digest;
            let mut insert = connection
                .prepare_cached("INSERT OR REPLACE INTO item VALUES (?1, ?2, ?3)")
                .unwrap();
            insert.execute(params![id, value, digest]).unwrap();
        }
    }
    if random.below(30) == 0 {
        connection
            .execute_batch("PRAGMA incremental_vacuum(20)")
            .unwrap();
    }
    let number = connection
        .prepare_cached("UPDATE state SET number = number + 1, total = total + ?1 RETURNING number")
        .unwrap()
        .query_row([change], |row| row.get(0))
        .unwrap();
    connection.execute_batch("COMMIT").unwrap();
    number
}

/// Proves that the database at `path` is one committed state; the number of its last transaction.
pub(crate) fn check(path: &Path) -> i64 {
    let connection = Connection::open(path).unwrap();
    let answer: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(answer, "ok", "{}", path.display());
    let (number, total): (i64, i64) = connection
        .query_row("SELECT number, total FROM state", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    let mut items = connection
        .prepare("SELECT id, value, digest FROM item")
        .unwrap();
    let mut rows = items.query([]).unwrap();
    let mut found = 0;
    while let Some(row) = rows.next().unwrap() {
        let (id, value): (i64, Vec<u8>) = (row.get(0).unwrap(), row.get(1).unwrap());
        let stored: i64 = row.get(2).unwrap();
        assert_eq!(
            stored,
            digest(id, &value),
            "item {id} of transaction {number}"
        );
        found += stored;
    }
    assert_eq!(found, total, "transaction {number} is not whole");
    number
}
