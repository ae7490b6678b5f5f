//! A database on the engine is a SQLite database: pages, pragmas, files.
#![expect(clippy::unwrap_used, reason = "helpers of a test")]

mod common;

use common::{Folder, assert_sound, run, value};
use rusqlite::Connection;

#[test]
fn what_was_committed_is_there_for_other_connections_and_after_reopening() {
    let folder = Folder::new();
    let first = folder.engine("a.db");
    run(
        &first,
        "CREATE TABLE t(x INTEGER PRIMARY KEY, y TEXT); INSERT INTO t VALUES (1, 'one')",
    );
    let second = folder.engine("a.db");
    assert_eq!(value::<String>(&second, "SELECT y FROM t"), "one");
    run(&second, "INSERT INTO t VALUES (2, 'two')");
    assert_eq!(value::<i64>(&first, "SELECT count(*) FROM t"), 2);
    drop((first, second));
    let again = folder.engine("a.db");
    assert_eq!(value::<i64>(&again, "SELECT sum(x) FROM t"), 3);
    assert_sound(&again);
}

#[test]
fn a_new_database_has_pages_of_the_engine_and_keeps_them() {
    let folder = Folder::new();
    let engine = folder.engine("a.db");
    run(&engine, "PRAGMA page_size = 4096; CREATE TABLE t(x)");
    assert_eq!(value::<i64>(&engine, "PRAGMA page_size"), 8192);
    run(
        &engine,
        "PRAGMA page_size = 1024; VACUUM; INSERT INTO t VALUES (1)",
    );
    assert_eq!(value::<i64>(&engine, "PRAGMA page_size"), 8192);
    assert_sound(&engine);
}

#[test]
fn the_journal_mode_is_told_truthfully_and_cannot_be_changed() {
    let folder = Folder::new();
    let engine = folder.engine("a.db");
    for mode in ["", "=wal", "=delete", "=off", "=truncate", "=persist"] {
        let answer: String = value(&engine, &format!("PRAGMA journal_mode{mode}"));
        assert_eq!(answer, "memory", "after journal_mode{mode}");
    }
    let answer: String = value(&engine, "PRAGMA locking_mode=exclusive");
    assert_eq!(answer, "normal");
    run(&engine, "CREATE TABLE t(x)");
    assert!(!folder.path("a.db-wal").exists());
    assert!(!folder.path("a.db-journal").exists());
}

#[test]
fn encoding_and_auto_vacuum_of_a_new_database_are_the_users_choice() {
    let folder = Folder::new();
    let engine = folder.engine("a.db");
    run(
        &engine,
        "PRAGMA encoding = 'UTF-16le'; PRAGMA auto_vacuum = full",
    );
    run(
        &engine,
        "CREATE TABLE t(x); INSERT INTO t VALUES (zeroblob(1000000))",
    );
    assert_eq!(value::<String>(&engine, "PRAGMA encoding"), "UTF-16le");
    assert_eq!(value::<i64>(&engine, "PRAGMA auto_vacuum"), 1);
    let large: i64 = value(&engine, "PRAGMA page_count");
    run(&engine, "DELETE FROM t");
    let small: i64 = value(&engine, "PRAGMA page_count");
    assert!(large > 120 && small < 6, "{large} pages became {small}");
    assert_sound(&engine);
    let other = folder.engine("a.db");
    assert_eq!(value::<i64>(&other, "PRAGMA page_count"), small);
    assert_sound(&other);
}

#[test]
fn after_the_last_close_the_data_file_is_a_plain_sqlite_database() {
    let folder = Folder::new();
    let engine = folder.engine("a.db");
    run(
        &engine,
        "CREATE TABLE t(x); INSERT INTO t VALUES (zeroblob(100000)), (7)",
    );
    drop(engine);
    let stock = folder.stock("a.db");
    assert_sound(&stock);
    assert_eq!(
        value::<i64>(&stock, "SELECT x FROM t WHERE typeof(x) = 'integer'"),
        7
    );
}

#[test]
fn what_another_sqlite_wrote_between_two_sessions_is_taken_over() {
    let folder = Folder::new();
    run(
        &folder.engine("a.db"),
        "CREATE TABLE t(x); INSERT INTO t VALUES (zeroblob(100000)), (7)",
    );
    let stock = folder.stock("a.db");
    run(&stock, "INSERT INTO t VALUES (zeroblob(500000)), (8)");
    drop(stock);
    let engine = folder.engine("a.db");
    let sum = "SELECT sum(x) FROM t WHERE typeof(x) = 'integer'";
    assert_eq!(value::<i64>(&engine, sum), 15);
    run(&engine, "INSERT INTO t VALUES (9)");
    assert_sound(&engine);
    drop(engine);
    assert_eq!(value::<i64>(&folder.engine("a.db"), sum), 24);
}

#[test]
fn a_database_belongs_to_one_instance_at_a_time() {
    let folder = Folder::new();
    let engine = folder.engine("a.db");
    run(&engine, "CREATE TABLE t(x)");
    common::register_as(
        "second_instance",
        windlass_engine::InstanceOptions::default(),
    );
    let flags = rusqlite::OpenFlags::default();
    let path = folder.path("a.db");
    assert!(Connection::open_with_flags_and_vfs(&path, flags, "second_instance").is_err());
    run(&engine, "INSERT INTO t VALUES (1)");
    drop(engine);
    let second = Connection::open_with_flags_and_vfs(&path, flags, "second_instance").unwrap();
    assert_eq!(value::<i64>(&second, "SELECT x FROM t"), 1);
}

#[test]
fn opening_says_no_where_there_is_nothing_to_open() {
    let folder = Folder::new();
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
    let missing = folder.path("none.db");
    assert!(Connection::open_with_flags_and_vfs(&missing, flags, "windlass").is_err());
    assert!(!missing.exists());
    run(&folder.stock("plain.db"), "CREATE TABLE t(x)");
    let plain = folder.path("plain.db");
    assert!(Connection::open_with_flags_and_vfs(&plain, flags, "windlass").is_err());
    let stock = folder.stock("plain.db");
    assert_eq!(
        value::<i64>(&stock, "SELECT count(*) FROM sqlite_schema"),
        1
    );
}

#[test]
fn a_read_only_connection_reads_and_does_not_write() {
    let folder = Folder::new();
    let writer = folder.engine("a.db");
    run(&writer, "CREATE TABLE t(x); INSERT INTO t VALUES (5)");
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let reader =
        Connection::open_with_flags_and_vfs(folder.path("a.db"), flags, "windlass").unwrap();
    assert_eq!(value::<i64>(&reader, "SELECT x FROM t"), 5);
    assert!(reader.execute("INSERT INTO t VALUES (6)", []).is_err());
    run(&writer, "INSERT INTO t VALUES (6)");
    assert_eq!(value::<i64>(&reader, "SELECT sum(x) FROM t"), 11);
}

#[test]
fn temporary_tables_and_large_sorts_go_to_the_default_vfs() {
    let folder = Folder::new();
    let engine = folder.engine("a.db");
    run(
        &engine,
        "PRAGMA temp_store = file; PRAGMA cache_size = 10; CREATE TEMP TABLE big(x, y);
         INSERT INTO big WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
           SELECT n, hex(randomblob(50)) FROM c;
         CREATE TABLE t AS SELECT * FROM big ORDER BY y",
    );
    assert_eq!(
        value::<i64>(&engine, "SELECT count(DISTINCT x) FROM t"),
        20000
    );
    assert_sound(&engine);
}

#[test]
fn a_blob_of_many_megabytes_comes_back_as_it_went_in() {
    let folder = Folder::new();
    let engine = folder.engine("a.db");
    run(&engine, "CREATE TABLE t(x)");
    let blob: Vec<u8> = (0..20_000_000u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    engine
        .execute("INSERT INTO t VALUES (?1)", [&blob])
        .unwrap();
    let other = folder.engine("a.db");
    assert!(value::<Vec<u8>>(&other, "SELECT x FROM t") == blob);
    assert_sound(&other);
}

#[test]
fn vacuum_into_makes_another_engine_database() {
    let folder = Folder::new();
    let engine = folder.engine("a.db");
    run(
        &engine,
        "CREATE TABLE t(x); INSERT INTO t VALUES (zeroblob(300000)), (3)",
    );
    let target = folder.path("b.db");
    run(&engine, &format!("VACUUM INTO '{}'", target.display()));
    let copy = folder.engine("b.db");
    assert_eq!(value::<i64>(&copy, "SELECT count(*) FROM t"), 2);
    assert_sound(&copy);
}
