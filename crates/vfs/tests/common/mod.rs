//! Shared by all tests of the VFS: a folder, an instance, connections.
#![allow(dead_code, reason = "each test program uses a part")]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{Instance, InstanceOptions};
use windlass_vfs::{PathDatabases, linked};

pub(crate) const PAGE_SIZE: usize = 8192;

/// The checksum of SQLite's checksum VFS, implemented a second time from its documentation.
pub(crate) fn checksum(page: &[u8]) -> Vec<u8> {
    let words: Vec<u32> = page[..PAGE_SIZE - 8]
        .chunks(4)
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
        .collect();
    let (mut first, mut second) = (0_u32, 0_u32);
    for pair in words.chunks(2) {
        first = first.wrapping_add(pair[0].wrapping_add(second));
        second = second.wrapping_add(pair[1].wrapping_add(first));
    }
    [first.to_le_bytes(), second.to_le_bytes()].concat()
}

/// Pages of a closed file with a wrong checksum.
pub(crate) fn damaged(path: &Path) -> Vec<usize> {
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(bytes[20], 8, "bytes reserved at the end of a page");
    let pages = bytes.chunks(PAGE_SIZE).enumerate();
    pages
        .filter(|(_, page)| page[PAGE_SIZE - 8..] != checksum(page))
        .map(|(index, _)| index + 1)
        .collect()
}

/// Flips a bit of a closed file. Pages count from 1.
pub(crate) fn flip(path: &Path, page: usize, byte: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[(page - 1) * PAGE_SIZE + byte] ^= 16;
    std::fs::write(path, bytes).unwrap();
}

/// A folder that is removed at the end.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        register();
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// An engine database, created if missing.
    pub(crate) fn engine(&self, name: &str) -> Connection {
        engine(&self.path(name))
    }

    /// A plain SQLite database.
    pub(crate) fn stock(&self, name: &str) -> Connection {
        Connection::open(self.path(name)).unwrap()
    }
}

/// Registers the VFS once per process.
pub(crate) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| register_as("windlass", InstanceOptions::default()));
}

/// Registers a VFS with its own instance.
pub(crate) fn register_as(name: &str, options: InstanceOptions) {
    let instance = Instance::new(options, Arc::new(RealFileSystem)).unwrap();
    linked::register(name, Box::new(PathDatabases::new(instance))).unwrap();
}

pub(crate) fn engine(path: &Path) -> Connection {
    let connection =
        Connection::open_with_flags_and_vfs(path, OpenFlags::default(), "windlass").unwrap();
    connection.busy_timeout(Duration::from_secs(20)).unwrap();
    connection
}

/// The only value that a query returns.
pub(crate) fn value<T: rusqlite::types::FromSql>(connection: &Connection, sql: &str) -> T {
    connection
        .query_row(sql, [], |row| row.get(0))
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

pub(crate) fn run(connection: &Connection, sql: &str) {
    connection
        .execute_batch(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// Checks that `PRAGMA integrity_check` finds nothing.
pub(crate) fn assert_sound(connection: &Connection) {
    assert_eq!(value::<String>(connection, "PRAGMA integrity_check"), "ok");
}

/// Everything in a database, as SQL text.
pub(crate) fn dump(connection: &Connection) -> String {
    let mut text = String::new();
    let tables: Vec<(String, String)> = connection
        .prepare("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for (name, sql) in tables {
        text.push_str(&sql);
        text.push('\n');
        if !sql.starts_with("CREATE TABLE") {
            continue;
        }
        let mut rows = connection
            .prepare(&format!("SELECT * FROM \"{name}\" ORDER BY 1"))
            .unwrap();
        let columns = rows.column_count();
        let mut rows = rows.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..columns {
                let value: rusqlite::types::Value = row.get(column).unwrap();
                write!(text, "{value:?} ").unwrap();
            }
            text.push('\n');
        }
    }
    text
}
