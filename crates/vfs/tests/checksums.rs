//! Page checksums through SQLite: new databases have them, and a flipped bit is found and located.
#![expect(clippy::unwrap_used, reason = "helpers of a test")]

mod common;

use common::{Folder, assert_sound, damaged, flip, run, value};
use rusqlite::Connection;

fn fill(connection: &Connection) {
    run(
        connection,
        "CREATE TABLE t(x INTEGER PRIMARY KEY, y);
         INSERT INTO t VALUES (1, zeroblob(100000)), (2, hex(randomblob(50000)));
         CREATE INDEX i ON t(length(y));",
    );
}

#[test]
fn every_page_of_a_new_database_carries_its_checksum() {
    let folder = Folder::new();
    let engine = folder.engine("a.db");
    run(&engine, "PRAGMA auto_vacuum = INCREMENTAL");
    fill(&engine);
    let empty = folder.path("b.db");
    run(&engine, &format!("ATTACH '{}' AS b", empty.display()));
    drop(engine);
    assert!(damaged(&folder.path("a.db")).is_empty());
    let engine = folder.engine("a.db");
    assert_eq!(value::<i64>(&engine, "PRAGMA auto_vacuum"), 2);
    run(&engine, "VACUUM; UPDATE t SET y = y || 'more'");
    drop(engine);
    assert!(damaged(&folder.path("a.db")).is_empty());
}

#[test]
fn a_database_made_by_attach_carries_them_too() {
    let folder = Folder::new();
    let engine = folder.engine("a.db");
    let other = folder.path("b.db");
    run(&engine, &format!("ATTACH '{}' AS b", other.display()));
    run(
        &engine,
        "CREATE TABLE b.t(x); INSERT INTO b.t VALUES (zeroblob(50000))",
    );
    drop(engine);
    assert!(damaged(&other).is_empty());
}

#[test]
fn a_flipped_bit_is_found_when_its_page_is_read_and_its_place_told() {
    let folder = Folder::new();
    fill(&folder.engine("a.db"));
    // An overflow page of zeros, in which SQLite itself would not notice the change.
    flip(&folder.path("a.db"), 6, 4000);
    assert_eq!(damaged(&folder.path("a.db")), [6]);
    let engine = folder.engine("a.db");
    let error = engine
        .query_row("SELECT sum(length(hex(y))) FROM t", [], |row| {
            row.get::<_, i64>(0)
        })
        .unwrap_err();
    assert_eq!(
        error.sqlite_error().unwrap().extended_code,
        rusqlite::ffi::SQLITE_IOERR_DATA,
        "{error}"
    );
    let reported: String = value(&engine, "PRAGMA windlass_last_error");
    assert!(
        reported.contains("page 6 of database") && reported.contains("page 5 of file 1"),
        "{reported}"
    );
}

#[test]
fn a_file_that_a_stock_sqlite_wrote_to_is_taken_over_with_new_checksums() {
    let folder = Folder::new();
    fill(&folder.engine("a.db"));
    let stock = folder.stock("a.db");
    run(
        &stock,
        "PRAGMA journal_mode = WAL; UPDATE t SET y = upper(y) || 'x' WHERE x = 2;
         INSERT INTO t VALUES (3, zeroblob(30000))",
    );
    drop(stock);
    assert!(!damaged(&folder.path("a.db")).is_empty());
    let engine = folder.engine("a.db");
    assert_eq!(value::<i64>(&engine, "SELECT count(length(y)) FROM t"), 3);
    assert_sound(&engine);
    drop(engine);
    assert!(damaged(&folder.path("a.db")).is_empty());
}

#[test]
fn a_file_with_changes_that_lie_beside_it_is_not_taken() {
    let folder = Folder::new();
    fill(&folder.engine("a.db"));
    let stock = folder.stock("a.db");
    run(
        &stock,
        "PRAGMA journal_mode = WAL; DELETE FROM t WHERE x = 2",
    );
    // As a crash leaves them.
    let wal = folder.path("a.db-wal");
    let left = std::fs::read(&wal).unwrap();
    drop(stock);
    std::fs::write(&wal, left).unwrap();
    let path = folder.path("a.db");
    let flags = rusqlite::OpenFlags::default();
    Connection::open_with_flags_and_vfs(&path, flags, "windlass").unwrap_err();
    drop(
        folder
            .stock("a.db")
            .execute_batch("PRAGMA journal_mode = DELETE"),
    );
    let engine = folder.engine("a.db");
    assert_eq!(value::<i64>(&engine, "SELECT count(*) FROM t"), 1);
}

#[test]
fn pages_of_another_size_do_not_get_in_by_a_backup() {
    let folder = Folder::new();
    let stock = folder.stock("small.db");
    run(
        &stock,
        "PRAGMA page_size = 4096; CREATE TABLE t(x); INSERT INTO t VALUES (1)",
    );
    let mut engine = folder.engine("a.db");
    run(&engine, "CREATE TABLE u(x)");
    let backup = rusqlite::backup::Backup::new(&stock, &mut engine).unwrap();
    let outcome = backup.step(-1);
    assert!(
        !matches!(outcome, Ok(rusqlite::backup::StepResult::Done)),
        "{outcome:?}"
    );
    drop(backup);
    drop(engine);
    let engine = folder.engine("a.db");
    assert_eq!(value::<i64>(&engine, "SELECT count(*) FROM u"), 0);
}
