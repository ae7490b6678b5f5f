//! While the engine has a database open, nobody else can use its files: no stock SQLite, no other
//! instance.
#![expect(clippy::unwrap_used, reason = "helpers of a test")]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Folder, register_as, run, value};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{CreateDatabase, EngineError, Instance, InstanceOptions, OpenDatabase};

const FILE: &str = "WINDLASS_LOCKED_FILE";

fn stock(path: &Path) -> Connection {
    let stock = Connection::open(path).unwrap();
    stock.busy_timeout(Duration::ZERO).unwrap();
    stock
}

fn code(outcome: rusqlite::Result<()>) -> Option<ErrorCode> {
    outcome.err().and_then(|error| error.sqlite_error_code())
}

#[test]
fn a_stock_sqlite_is_kept_out_until_the_last_connection_has_closed() {
    let folder = Folder::new();
    let engine = folder.engine("a.db");
    run(&engine, "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    let plain = stock(&folder.path("a.db"));
    for sql in ["SELECT * FROM sqlite_schema", "CREATE TABLE u(x)", "VACUUM"] {
        let found = code(plain.execute_batch(sql));
        assert_eq!(found, Some(ErrorCode::DatabaseBusy), "{sql}");
    }
    // Closing a stock connection in this process drops no lock.
    drop(plain);
    let plain = stock(&folder.path("a.db"));
    let found = code(plain.execute_batch("SELECT * FROM t"));
    assert_eq!(found, Some(ErrorCode::DatabaseBusy));
    run(&engine, "INSERT INTO t VALUES (2)");
    drop(engine);
    assert_eq!(value::<i64>(&plain, "SELECT sum(x) FROM t"), 3);
    run(&plain, "INSERT INTO t VALUES (4)");
    drop(plain);
    assert_eq!(
        value::<i64>(&folder.engine("a.db"), "SELECT sum(x) FROM t"),
        7
    );
}

/// Holds a read transaction until its input ends; run in a separate process, because within one
/// process SQLite's locks are lost when anything closes the file.
#[test]
#[ignore = "the child process of another test"]
fn child_reader() {
    let Some(path) = std::env::var_os(FILE) else {
        return;
    };
    let stock = Connection::open(path).unwrap();
    run(&stock, "BEGIN; SELECT * FROM t");
    std::io::Write::write_all(&mut std::io::stdout(), b"reading\n").unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn a_file_that_a_stock_sqlite_is_reading_is_not_opened() {
    let folder = Folder::new();
    run(&folder.engine("a.db"), "CREATE TABLE t(x)");
    let path = folder.path("a.db");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_reader", "--ignored", "--nocapture"])
        .env(FILE, &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let reported = BufReader::new(child.stdout.take().unwrap()).lines();
    let reads = reported
        .map(Result::unwrap)
        .any(|line| line.contains("reading"));
    assert!(reads);
    let refused =
        Connection::open_with_flags_and_vfs(&path, OpenFlags::default(), "windlass").unwrap_err();
    assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
    drop(child.stdin.take());
    child.wait().unwrap();
    run(&folder.engine("a.db"), "INSERT INTO t VALUES (1)");
}

#[test]
fn a_second_instance_is_refused() {
    let folder = Folder::new();
    register_as("second", InstanceOptions::default());
    let engine = folder.engine("a.db");
    run(&engine, "CREATE TABLE t(x)");
    let path = folder.path("a.db");
    let open = || Connection::open_with_flags_and_vfs(&path, OpenFlags::default(), "second");
    let refused = open().unwrap_err();
    assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
    drop(engine);
    run(&open().unwrap(), "INSERT INTO t VALUES (1)");
}

#[test]
fn a_data_file_is_not_shared_by_two_logs() {
    let folder = Folder::new();
    let make = || {
        let files = std::sync::Arc::new(RealFileSystem);
        Instance::new(InstanceOptions::default(), files).unwrap()
    };
    let (data, log, copy) = (folder.path("a"), folder.path("l"), folder.path("m"));
    let first = make();
    let database = first
        .create_database(&CreateDatabase::new("a", &data, &log))
        .unwrap();
    std::fs::copy(&log, &copy).unwrap();
    let second = make();
    let refused = second
        .open_database(&OpenDatabase::new("a", &copy))
        .unwrap_err();
    assert!(
        matches!(&refused, EngineError::InUse { path } if *path == data),
        "{refused}"
    );
    let refused = second
        .open_database(&OpenDatabase::new("a", &log))
        .unwrap_err();
    assert!(
        matches!(&refused, EngineError::InUse { path } if *path == log),
        "{refused}"
    );
    database.close().unwrap();
    second.open_database(&OpenDatabase::new("a", &log)).unwrap();
}
