//! Transactions on the engine: isolation, locks, rollback in all its forms, several databases.
#![expect(clippy::unwrap_used, reason = "helpers of a test")]

mod common;

use std::time::Duration;

use common::{Folder, assert_sound, dump, run, value};
use rusqlite::{Connection, ErrorCode};

const FILL: &str =
    "INSERT INTO t WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000)
    SELECT n, hex(randomblob(100)) FROM c";

fn filled(folder: &Folder, name: &str) -> Connection {
    let engine = folder.engine(name);
    run(
        &engine,
        "CREATE TABLE t(x INTEGER PRIMARY KEY, y TEXT); CREATE INDEX i ON t(y)",
    );
    run(&engine, FILL);
    engine
}

fn extended_code(connection: &Connection, sql: &str) -> i32 {
    match connection.execute_batch(sql) {
        Err(rusqlite::Error::SqliteFailure(error, _)) => error.extended_code,
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn a_reader_keeps_its_first_snapshot_and_blocks_nobody() {
    let folder = Folder::new();
    let writer = filled(&folder, "a.db");
    let reader = folder.engine("a.db");
    run(&reader, "BEGIN");
    let before = dump(&reader);
    run(
        &writer,
        "UPDATE t SET y = 'changed'; DELETE FROM t WHERE x > 1000; VACUUM",
    );
    assert_eq!(dump(&reader), before);
    assert_sound(&reader);
    run(&reader, "COMMIT");
    assert_eq!(
        value::<i64>(&reader, "SELECT count(*) FROM t WHERE y = 'changed'"),
        1000
    );
}

#[test]
fn a_writer_blocks_writers_only_and_a_stale_reader_may_not_write() {
    let folder = Folder::new();
    let writer = filled(&folder, "a.db");
    let other = folder.engine("a.db");
    other.busy_timeout(Duration::ZERO).unwrap();
    run(&other, "BEGIN; SELECT count(*) FROM t");
    value::<i64>(&other, "SELECT count(*) FROM t");
    run(&writer, "BEGIN IMMEDIATE; UPDATE t SET y = '' WHERE x = 1");
    assert_eq!(
        extended_code(&other, "UPDATE t SET y = 'z'"),
        rusqlite::ffi::SQLITE_BUSY
    );
    run(&writer, "COMMIT");
    assert_eq!(
        extended_code(&other, "UPDATE t SET y = 'z'"),
        rusqlite::ffi::SQLITE_BUSY_SNAPSHOT
    );
    run(
        &other,
        "COMMIT; BEGIN IMMEDIATE; UPDATE t SET y = 'z'; COMMIT",
    );
    assert_eq!(
        value::<i64>(&writer, "SELECT count(*) FROM t WHERE y = 'z'"),
        2000
    );
}

#[test]
fn a_transaction_larger_than_the_cache_stays_private_until_it_commits() {
    let folder = Folder::new();
    let writer = filled(&folder, "a.db");
    let reader = folder.engine("a.db");
    let before = dump(&reader);
    run(
        &writer,
        "PRAGMA cache_size = 5; BEGIN; UPDATE t SET y = hex(randomblob(150))",
    );
    run(&writer, "INSERT INTO t SELECT x + 5000, y FROM t");
    let inside = dump(&writer);
    assert_ne!(inside, before);
    assert_eq!(dump(&reader), before);
    run(&writer, "COMMIT");
    assert_eq!(dump(&writer), inside);
    assert_eq!(dump(&reader), inside);
    assert_sound(&reader);
    assert_sound(&writer);
}

#[test]
fn a_rollback_after_a_spill_leaves_nothing_and_commits_nothing() {
    let folder = Folder::new();
    let writer = filled(&folder, "a.db");
    let before = dump(&writer);
    let reader = folder.engine("a.db");
    run(&reader, "BEGIN");
    dump(&reader);
    run(&writer, "PRAGMA cache_size = 5");
    for _ in 0..3 {
        run(
            &writer,
            "BEGIN; UPDATE t SET y = hex(randomblob(150)); DELETE FROM t WHERE x % 3 = 0",
        );
        run(&writer, "INSERT INTO t SELECT x + 5000, y FROM t; ROLLBACK");
        assert_eq!(dump(&writer), before);
    }
    // Had a rollback been committed, the reader's snapshot would be stale.
    run(&reader, "INSERT INTO t VALUES (0, 'not stale'); COMMIT");
    assert_sound(&writer);
}

#[test]
fn savepoints_and_failed_statements_undo_their_part_even_after_a_spill() {
    let folder = Folder::new();
    let writer = filled(&folder, "a.db");
    run(
        &writer,
        "PRAGMA cache_size = 5; BEGIN; UPDATE t SET y = 'kept' WHERE x <= 500",
    );
    let kept = dump(&writer);
    run(
        &writer,
        "SAVEPOINT s; UPDATE t SET y = hex(randomblob(200)); DELETE FROM t WHERE x > 1500",
    );
    run(&writer, "ROLLBACK TO s");
    assert_eq!(dump(&writer), kept);
    let failing = "INSERT INTO t SELECT 4001 - x, hex(randomblob(100)) FROM t";
    assert!(
        writer
            .execute_batch(&format!(
                "{failing}; INSERT INTO t SELECT 1999 - x, y FROM t"
            ))
            .is_err()
    );
    run(&writer, "ROLLBACK TO s; RELEASE s; COMMIT");
    assert_eq!(dump(&writer), kept);
    let other = folder.engine("a.db");
    assert_eq!(dump(&other), kept);
    assert_sound(&other);
}

#[test]
fn vacuum_shrinks_the_database() {
    let folder = Folder::new();
    let writer = filled(&folder, "a.db");
    run(&writer, "DELETE FROM t WHERE x > 100");
    let before: i64 = value(&writer, "PRAGMA page_count");
    let content = dump(&writer);
    run(&writer, "PRAGMA cache_size = 5; VACUUM");
    let after: i64 = value(&writer, "PRAGMA page_count");
    assert!(after * 4 < before, "{before} pages became {after}");
    let other = folder.engine("a.db");
    assert_eq!(value::<i64>(&other, "PRAGMA page_count"), after);
    assert_eq!(dump(&other), content);
    assert_sound(&other);
    run(
        &writer,
        FILL.replace("SELECT n,", "SELECT n + 10000,").as_str(),
    );
    assert_sound(&other);
    drop((writer, other));
    assert_sound(&folder.engine("a.db"));
}

#[test]
fn incremental_vacuum_gives_pages_back() {
    let folder = Folder::new();
    let engine = folder.engine("a.db");
    run(
        &engine,
        "PRAGMA auto_vacuum = incremental; CREATE TABLE t(x); INSERT INTO t VALUES (zeroblob(2000000))",
    );
    run(&engine, "DELETE FROM t");
    let before: i64 = value(&engine, "PRAGMA page_count");
    let mut vacuum = engine.prepare("PRAGMA incremental_vacuum(100)").unwrap();
    let mut pages = vacuum.query([]).unwrap();
    while pages.next().unwrap().is_some() {}
    drop(pages);
    assert_eq!(value::<i64>(&engine, "PRAGMA page_count"), before - 100);
    assert_sound(&folder.engine("a.db"));
}

#[test]
fn attached_engine_databases_take_part_in_one_transaction() {
    let folder = Folder::new();
    let a = filled(&folder, "a.db");
    let b = filled(&folder, "b.db");
    run(
        &a,
        &format!("ATTACH '{}' AS b", folder.path("b.db").display()),
    );
    run(
        &a,
        "BEGIN; UPDATE t SET y = 'both'; UPDATE b.t SET y = 'both'; ROLLBACK",
    );
    assert_eq!(
        value::<i64>(&b, "SELECT count(*) FROM t WHERE y = 'both'"),
        0
    );
    run(
        &a,
        "BEGIN; UPDATE t SET y = 'both'; UPDATE b.t SET y = 'both'; COMMIT",
    );
    assert_eq!(
        value::<i64>(&b, "SELECT count(*) FROM t WHERE y = 'both'"),
        2000
    );
    assert_eq!(
        value::<i64>(&a, "SELECT count(*) FROM main.t WHERE y = 'both'"),
        2000
    );
    assert_sound(&b);
    assert_sound(&a);
}

#[test]
fn a_commit_is_taken_back_when_the_next_database_refuses_its_own() {
    let folder = Folder::new();
    let options = windlass_engine::InstanceOptions {
        version_bytes_max: 1 << 17,
        ..Default::default()
    };
    common::register_as("refuses", options);
    let a = filled(&folder, "a.db");
    let before = dump(&a);
    let b = format!("file:{}?vfs=refuses", folder.path("b.db").display());
    run(&a, &format!("ATTACH '{b}' AS b; CREATE TABLE b.u(x)"));
    for _ in 0..50 {
        run(&a, "INSERT INTO b.u VALUES (zeroblob(30000))");
    }
    let reader = Connection::open(&b).unwrap();
    run(&reader, "BEGIN");
    let untouched = dump(&reader);
    let both = "BEGIN; UPDATE t SET y = 'both'; UPDATE b.u SET x = randomblob(30000)";
    run(&a, both);
    assert_eq!(extended_code(&a, "COMMIT"), rusqlite::ffi::SQLITE_FULL);
    assert!(a.is_autocommit());
    assert!(dump(&a) == before);
    assert!(dump(&folder.engine("a.db")) == before);
    assert!(dump(&Connection::open(&b).unwrap()) == untouched);
    run(&reader, "COMMIT");
    run(&a, both);
    run(&a, "COMMIT");
    assert!(dump(&folder.engine("a.db")) != before);
    assert!(dump(&reader) != untouched);
    assert_sound(&a);
    assert_sound(&reader);
}

#[test]
fn a_stock_database_can_be_attached_and_keeps_its_own_journal_mode() {
    let folder = Folder::new();
    run(
        &folder.stock("s.db"),
        "PRAGMA journal_mode = wal; CREATE TABLE u(x)",
    );
    let a = filled(&folder, "a.db");
    run(
        &a,
        &format!(
            "ATTACH 'file:{}?vfs=unix' AS s",
            folder.path("s.db").display()
        ),
    );
    run(&a, "INSERT INTO u SELECT x FROM t");
    assert_eq!(value::<String>(&a, "PRAGMA s.journal_mode"), "wal");
    assert_eq!(
        value::<i64>(&folder.stock("s.db"), "SELECT count(*) FROM u"),
        2000
    );
}

/// `PRAGMA journal_mode` without a schema name reaches attached databases, and SQLite does not ask
/// their VFS.
#[test]
fn no_journal_mode_that_slips_past_the_vfs_breaks_a_transaction() {
    for mode in ["delete", "truncate", "persist", "wal", "off", "memory"] {
        let folder = Folder::new();
        let direct = filled(&folder, "a.db");
        let before = dump(&direct);
        let main = folder.stock("main.db");
        run(
            &main,
            &format!(
                "ATTACH 'file:{}?vfs=windlass' AS e",
                folder.path("a.db").display()
            ),
        );
        run(&main, &format!("PRAGMA journal_mode = {mode}"));
        run(&main, "PRAGMA e.cache_size = 5");
        if mode != "off" {
            run(
                &main,
                "BEGIN; UPDATE e.t SET y = hex(randomblob(150)); ROLLBACK",
            );
            assert_eq!(dump(&direct), before, "{mode}");
        }
        run(&main, "BEGIN; UPDATE e.t SET y = 'new'; COMMIT");
        assert_eq!(
            value::<i64>(&direct, "SELECT count(*) FROM t WHERE y = 'new'"),
            2000,
            "{mode}"
        );
        assert_sound(&direct);
        for beside in ["a.db-journal", "a.db-wal", "a.db-shm"] {
            assert!(!folder.path(beside).exists(), "{mode} left {beside}");
        }
    }
}

/// The same holds for `PRAGMA locking_mode`.
#[test]
fn exclusive_locking_that_slips_past_the_vfs_shows_no_stale_pages() {
    let folder = Folder::new();
    let direct = filled(&folder, "a.db");
    direct.busy_timeout(Duration::ZERO).unwrap();
    let main = folder.stock("main.db");
    run(
        &main,
        &format!(
            "ATTACH 'file:{}?vfs=windlass' AS e",
            folder.path("a.db").display()
        ),
    );
    run(&main, "PRAGMA locking_mode = exclusive");
    for round in 0..5 {
        // SQLite changes the change counter in the first round only.
        run(
            &main,
            &format!("UPDATE e.t SET y = 'round {round}' WHERE x = 7"),
        );
        let seen: String = value(&direct, "SELECT y FROM t WHERE x = 7");
        assert_eq!(seen, format!("round {round}"));
    }
    // If another writer commits in between, the exclusive one must notice, and not overwrite it.
    if direct
        .execute("UPDATE t SET y = 'direct' WHERE x = 8", [])
        .is_ok()
    {
        let result = main.execute("UPDATE e.t SET y = 'last' WHERE x = 9", []);
        assert!(
            result.is_err() || value::<String>(&direct, "SELECT y FROM t WHERE x = 8") == "direct"
        );
    }
    assert_sound(&direct);
}

#[test]
fn the_backup_interface_of_sqlite_copies_into_an_engine_database() {
    let folder = Folder::new();
    let stock = folder.stock("s.db");
    run(
        &stock,
        "PRAGMA page_size = 8192; VACUUM; CREATE TABLE t(x); INSERT INTO t VALUES (zeroblob(99999)), (4)",
    );
    let mut engine = folder.engine("a.db");
    let backup = rusqlite::backup::Backup::new(&stock, &mut engine).unwrap();
    backup.run_to_completion(100, Duration::ZERO, None).unwrap();
    drop(backup);
    assert_eq!(dump(&engine), dump(&stock));
    assert_sound(&engine);

    let small = folder.stock("small.db");
    run(&small, "PRAGMA page_size = 4096; VACUUM; CREATE TABLE u(x)");
    let before = dump(&engine);
    let backup = rusqlite::backup::Backup::new(&small, &mut engine).unwrap();
    let error = backup
        .run_to_completion(100, Duration::ZERO, None)
        .unwrap_err();
    assert_eq!(error.sqlite_error_code(), Some(ErrorCode::ReadOnly));
    drop(backup);
    assert_eq!(dump(&engine), before);
    assert_sound(&engine);
}

/// The engine keeps replaced pages for readers, up to a limit; a writer without readers needs none.
#[test]
fn a_transaction_that_replaces_more_than_the_engine_keeps_for_readers_needs_to_be_alone() {
    let folder = Folder::new();
    let options = windlass_engine::InstanceOptions {
        version_bytes_max: 1 << 20,
        ..Default::default()
    };
    common::register_as("few_versions", options);
    let open = || {
        let flags = rusqlite::OpenFlags::default();
        Connection::open_with_flags_and_vfs(folder.path("a.db"), flags, "few_versions").unwrap()
    };
    let writer = open();
    run(&writer, "CREATE TABLE t(x INTEGER PRIMARY KEY, y BLOB)");
    for x in 0..100 {
        run(
            &writer,
            &format!("INSERT INTO t VALUES ({x}, zeroblob(40000))"),
        );
    }
    let reader = open();
    run(&reader, "BEGIN");
    let before = dump(&reader);
    let update = "UPDATE t SET y = randomblob(40000)";
    assert_eq!(extended_code(&writer, update), rusqlite::ffi::SQLITE_FULL);
    let reason: String = value(&writer, "PRAGMA windlass_last_error");
    assert!(reason.contains("readers"), "{reason}");
    assert!(dump(&writer) == before);
    assert!(dump(&reader) == before);
    run(&reader, "COMMIT");
    run(&writer, update);
    assert!(dump(&reader) != before);
    assert!(dump(&reader) == dump(&writer));
    assert_sound(&writer);
    run(
        &writer,
        "PRAGMA cache_size = 5; DELETE FROM t WHERE x % 2 = 0; VACUUM",
    );
    assert_sound(&reader);
}
