//! Imports: the treatment of page checksums, and that the source stays unchanged, byte by byte.
#![expect(clippy::unwrap_used, reason = "helpers of a test")]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{Folder, PAGE_SIZE, assert_sound, checksum, damaged, dump, engine, flip, run, value};
use rusqlite::Connection;
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{
    CreateDatabase, Database, FileSpec, Growth, Instance, InstanceOptions, OpenDatabase,
};
use windlass_vfs::import_export::{PageChecksums, export, import};
use windlass_vfs::{VfsError, log_path};

/// What an import reports.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    converted: bool,
    page_checksums: bool,
}

const COPIED: Said = Said {
    converted: false,
    page_checksums: true,
};

const REWRITTEN: Said = Said {
    converted: true,
    page_checksums: true,
};

const WITHOUT: Said = Said {
    converted: true,
    page_checksums: false,
};

const PLAIN: Said = Said {
    converted: false,
    page_checksums: false,
};

/// Imports into `x.db` of the folder, and closes it.
fn try_import(folder: &Folder, source: &Path, checksums: PageChecksums) -> Result<Said, VfsError> {
    let instance = Instance::new(InstanceOptions::default(), Arc::new(RealFileSystem)).unwrap();
    let data = folder.path("x.db");
    let request = CreateDatabase::new("x", &data, log_path(&data));
    let imported = import(&instance, source, &request, checksums)?;
    Ok(Said {
        converted: imported.converted,
        page_checksums: imported.page_checksums,
    })
}

/// Imports into three data files of the folder, closes them, and opens them in another instance.
fn spread(folder: &Folder, source: &Path, checksums: PageChecksums) -> (Said, Arc<Database>) {
    let files = ["x1.mdf", "x2.ndf", "x3.ndf"].map(|name| folder.path(name));
    let log = folder.path("x.ldf");
    let mut request = CreateDatabase::new("x", &files[0], &log);
    for (file, number) in files.iter().zip(1..).skip(1) {
        let spec = FileSpec::data(&format!("x{number}"), file);
        request.data_files.push(spec);
    }
    let opened = || Instance::new(InstanceOptions::default(), Arc::new(RealFileSystem)).unwrap();
    let imported = import(&opened(), source, &request, checksums).unwrap();
    imported.database.close().unwrap();
    let said = Said {
        converted: imported.converted,
        page_checksums: imported.page_checksums,
    };
    let database = opened().open_database(&OpenDatabase::new("x", &log));
    (said, database.unwrap())
}

#[test]
fn the_pages_of_a_source_are_spread_over_several_data_files() {
    for (setup, checksums, expected) in [
        ("page_size = 4096", PageChecksums::Always, REWRITTEN),
        ("page_size = 8192", PageChecksums::Always, REWRITTEN),
        ("page_size = 8192", PageChecksums::AsInSource, PLAIN),
    ] {
        let (source, target) = (Folder::new(), Folder::new());
        let stock = source.stock("source.db");
        run(&stock, &format!("PRAGMA {setup}"));
        fill(&stock);
        let content = dump(&stock);
        drop(stock);
        let before = contents(&source);
        let (said, database) = spread(&target, &source.path("source.db"), checksums);
        assert_eq!(said, expected, "{setup}");
        assert!(contents(&source) == before, "{setup}");
        let names: Vec<_> = contents(&target).into_iter().map(|file| file.0).collect();
        assert_eq!(names, ["x.ldf", "x1.mdf", "x2.ndf", "x3.ndf"], "{setup}");
        let used = database.pages_used();
        let used: Vec<_> = used.iter().map(|(_, pages)| *pages).collect();
        assert_eq!(used.len(), 3);
        assert!(used.iter().all(|pages| *pages > 24), "{setup}: {used:?}");
        let plain = target.path("plain.db");
        export(&database, &plain).unwrap();
        let exported = Connection::open(&plain).unwrap();
        assert!(dump(&exported) == content, "{setup}");
        assert_sound(&exported);
    }
}

#[test]
fn an_import_into_several_files_that_fails_leaves_nothing() {
    let (source, target) = (Folder::new(), Folder::new());
    let stock = source.stock("source.db");
    run(&stock, "PRAGMA page_size = 4096");
    fill(&stock);
    drop(stock);
    let mut request = CreateDatabase::new("x", target.path("x1.mdf"), target.path("x.ldf"));
    let mut second = FileSpec::data("x2", target.path("x2.ndf"));
    (second.size, second.growth) = (1 << 16, Growth::Fixed);
    request.data_files.push(second);
    let instance = Instance::new(InstanceOptions::default(), Arc::new(RealFileSystem)).unwrap();
    let path = source.path("source.db");
    let error = import(&instance, &path, &request, PageChecksums::Always).unwrap_err();
    assert!(error.to_string().contains("'x2'"), "{error}");
    assert_eq!(contents(&target), []);
}

#[track_caller]
fn imported(folder: &Folder, source: &str, checksums: PageChecksums) -> Said {
    try_import(folder, &folder.path(source), checksums).unwrap()
}

/// Creates tables of all kinds, with content of all kinds.
fn fill(connection: &Connection) {
    run(
        connection,
        "CREATE TABLE t(x INTEGER PRIMARY KEY, y TEXT); CREATE INDEX i ON t(y) WHERE x % 2;
         INSERT INTO t WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 3000)
           SELECT n, hex(randomblob(60)) FROM c;
         CREATE TABLE counted(x INTEGER PRIMARY KEY AUTOINCREMENT, y, z AS (y || '!'));
         INSERT INTO counted(y) VALUES (NULL), (1.5), (zeroblob(100000)), ('text'); DELETE FROM counted WHERE x = 4;
         CREATE TABLE keyless(y UNIQUE); INSERT INTO keyless VALUES (3), (1), (2); DELETE FROM keyless WHERE y = 1;
         CREATE TABLE pairs(a, b, PRIMARY KEY (b, a)) WITHOUT ROWID; INSERT INTO pairs SELECT y, x FROM t;
         CREATE VIRTUAL TABLE words USING fts5(text); INSERT INTO words VALUES ('one two'), ('two three');
         CREATE VIEW v AS SELECT count(*) FROM t; CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM pairs; END;
         PRAGMA user_version = 77; PRAGMA application_id = 78; ANALYZE",
    );
}

fn assert_same(source: &str, engine: &Connection) {
    assert!(dump(engine) == source, "content");
    assert_sound(engine);
    assert_eq!(value::<i64>(engine, "PRAGMA user_version"), 77);
    assert_eq!(value::<i64>(engine, "PRAGMA application_id"), 78);
    let found = "SELECT count(*) FROM words WHERE words MATCH 'two'";
    assert_eq!(value::<i64>(engine, found), 2);
}

/// Names and contents of the files in a folder, except a -shm, which has no content.
fn contents(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder.path("")).unwrap();
    let mut contents: Vec<_> = entries
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()))
        .filter(|(name, _)| !name.ends_with("-shm"))
        .map(|(name, path)| (name, std::fs::read(path).unwrap()))
        .collect();
    contents.sort();
    contents
}

#[test]
fn every_page_carries_a_checksum_whatever_the_source_is() {
    for setup in [
        "page_size = 512",
        "page_size = 4096",
        "page_size = 8192",
        "page_size = 65536",
        "auto_vacuum = FULL",
        "encoding = 'UTF-16be'",
    ] {
        let folder = Folder::new();
        let stock = folder.stock("source.db");
        run(&stock, &format!("PRAGMA {setup}"));
        fill(&stock);
        let expected = dump(&stock);
        drop(stock);
        let before = std::fs::read(folder.path("source.db")).unwrap();
        let said = imported(&folder, "source.db", PageChecksums::Always);
        assert_eq!(said, REWRITTEN, "{setup}");
        assert!(std::fs::read(folder.path("source.db")).unwrap() == before);
        assert!(damaged(&folder.path("x.db")).is_empty(), "{setup}");
        let engine = engine(&folder.path("x.db"));
        assert_same(&expected, &engine);
        run(&engine, "UPDATE t SET y = y || 'more'; VACUUM");
        drop(engine);
        assert!(damaged(&folder.path("x.db")).is_empty(), "{setup}");
    }
}

#[test]
fn other_reserves_give_way_to_checksums_only_when_asked() {
    for (page_size, reserve, checksums, expected) in [
        (8192, 32, PageChecksums::Always, REWRITTEN),
        (4096, 8, PageChecksums::Always, REWRITTEN),
        (4096, 8, PageChecksums::AsInSource, REWRITTEN),
        (4096, 32, PageChecksums::AsInSource, WITHOUT),
        (4096, 0, PageChecksums::AsInSource, WITHOUT),
    ] {
        let folder = Folder::new();
        let stock = folder.stock("source.db");
        run(&stock, &format!("PRAGMA page_size = {page_size}"));
        fill(&stock);
        let reserved = format!(
            "file:{}?reserve={reserve}",
            folder.path("reserved.db").display()
        );
        stock.execute("VACUUM INTO ?1", [reserved]).unwrap();
        let expected_content = dump(&stock);
        let bytes = std::fs::read(folder.path("reserved.db")).unwrap();
        assert_eq!(bytes[20], reserve);
        assert_eq!(imported(&folder, "reserved.db", checksums), expected);
        let wanted = if expected.page_checksums { 8 } else { reserve };
        assert_eq!(std::fs::read(folder.path("x.db")).unwrap()[20], wanted);
        if expected.page_checksums {
            assert!(damaged(&folder.path("x.db")).is_empty());
        }
        assert_same(&expected_content, &engine(&folder.path("x.db")));
    }
}

#[test]
fn checksums_of_the_source_are_kept_and_so_is_the_damage_that_they_show() {
    for checksums in [PageChecksums::AsInSource, PageChecksums::Always] {
        let folder = Folder::new();
        fill(&folder.engine("source.db"));
        let source = folder.path("source.db");
        flip(&source, 20, 4000);
        // As SQLite's checksum VFS leaves it in WAL mode.
        let mut bytes = std::fs::read(&source).unwrap();
        bytes[18..20].fill(2);
        let first = checksum(&bytes[..PAGE_SIZE]);
        bytes[PAGE_SIZE - 8..PAGE_SIZE].copy_from_slice(&first);
        std::fs::write(&source, &bytes).unwrap();
        assert_eq!(damaged(&source), [20]);
        assert_eq!(imported(&folder, "source.db", checksums), COPIED);
        let copy = std::fs::read(folder.path("x.db")).unwrap();
        assert_eq!(copy[18..20], [1, 1]);
        assert!(copy[PAGE_SIZE..] == bytes[PAGE_SIZE..]);
        assert_eq!(damaged(&folder.path("x.db")), [20]);
        assert!(std::fs::read(&source).unwrap() == bytes);
    }
}

#[test]
fn a_source_that_a_stock_sqlite_wrote_to_gets_its_checksums_again() {
    let folder = Folder::new();
    fill(&folder.engine("source.db"));
    let stock = folder.stock("source.db");
    run(&stock, "UPDATE t SET y = lower(y) WHERE x % 10 = 0");
    let expected = dump(&stock);
    drop(stock);
    assert!(damaged(&folder.path("source.db")).len() > 2);
    let said = imported(&folder, "source.db", PageChecksums::AsInSource);
    assert_eq!(said, COPIED);
    assert!(damaged(&folder.path("x.db")).is_empty());
    assert_same(&expected, &engine(&folder.path("x.db")));
}

/// Files as a crash leaves them: the source and the files next to it, copied while `connection` is
/// open.
fn crashed(name: &str, suffix: &str) -> (Folder, String) {
    let (live, left) = (Folder::new(), Folder::new());
    let stock = live.stock(name);
    if suffix == "-wal" {
        run(&stock, "PRAGMA page_size = 8192; VACUUM");
        assert_eq!(value::<String>(&stock, "PRAGMA journal_mode = wal"), "wal");
        run(&stock, "PRAGMA wal_autocheckpoint = 0");
    }
    fill(&stock);
    let expected = dump(&stock);
    if suffix == "-journal" {
        run(&stock, "PRAGMA cache_size = 1; BEGIN; UPDATE t SET y = 'x'");
    }
    for suffix in ["", suffix] {
        let name = format!("{name}{suffix}");
        std::fs::copy(live.path(&name), left.path(&name)).unwrap();
    }
    (left, expected)
}

#[test]
fn a_log_that_nobody_checkpointed_is_read_and_left_as_it_is() {
    for checksums in [PageChecksums::AsInSource, PageChecksums::Always] {
        let (left, expected) = crashed("a%20?b#.db", "-wal");
        let before = contents(&left);
        assert!(before.iter().all(|(_, bytes)| bytes.len() > 4096));
        let target = Folder::new();
        let said = try_import(&target, &left.path("a%20?b#.db"), checksums).unwrap();
        assert!(said.converted);
        assert_eq!(said.page_checksums, checksums == PageChecksums::Always);
        assert!(contents(&left) == before);
        let names: Vec<_> = contents(&target)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["x.db", "x.db-log"]);
        assert_same(&expected, &engine(&target.path("x.db")));
    }
}

#[test]
fn a_database_in_wal_mode_keeps_no_trace_of_having_been_read() {
    for checksums in [PageChecksums::AsInSource, PageChecksums::Always] {
        let (source, target) = (Folder::new(), Folder::new());
        let stock = source.stock("source.db");
        run(&stock, "PRAGMA page_size = 8192; VACUUM");
        assert_eq!(value::<String>(&stock, "PRAGMA journal_mode = wal"), "wal");
        fill(&stock);
        drop(stock);
        let before = contents(&source);
        try_import(&target, &source.path("source.db"), checksums).unwrap();
        assert!(contents(&source) == before);
        assert!(!source.path("source.db-shm").exists());
    }
}

#[test]
fn a_transaction_that_must_be_rolled_back_first_is_refused() {
    for checksums in [PageChecksums::AsInSource, PageChecksums::Always] {
        let (left, expected) = crashed("source.db", "-journal");
        let before = contents(&left);
        let target = Folder::new();
        let error = try_import(&target, &left.path("source.db"), checksums).unwrap_err();
        assert!(error.to_string().contains("source.db-journal'"), "{error}");
        assert!(contents(&left) == before && contents(&target).is_empty());
        // Open it once, as the message advises.
        assert!(dump(&left.stock("source.db")) == expected);
        try_import(&target, &left.path("source.db"), checksums).unwrap();
        assert_same(&expected, &engine(&target.path("x.db")));
    }
}

/// Files as an interrupted import leaves them.
fn leave_unfinished(folder: &Folder) {
    for suffix in ["", "-journal"] {
        let name = format!("x.db.windlass-new{suffix}");
        std::fs::write(folder.path(&name), "left").unwrap();
    }
}

#[test]
fn a_source_that_sqlite_cannot_rewrite_leaves_nothing() {
    let (source, target) = (Folder::new(), Folder::new());
    fill(&source.stock("source.db"));
    let path = source.path("source.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 40960].fill(0xa5);
    std::fs::write(&path, &bytes).unwrap();
    leave_unfinished(&target);
    let error = try_import(&target, &path, PageChecksums::Always).unwrap_err();
    assert!(matches!(error, VfsError::NotImportable { .. }), "{error}");
    assert!(contents(&target).is_empty());
    assert!(std::fs::read(&path).unwrap() == bytes);
}

#[test]
fn what_an_interrupted_import_left_is_gone_after_the_next() {
    let (source, target) = (Folder::new(), Folder::new());
    let stock = source.stock("source.db");
    run(&stock, "PRAGMA page_size = 8192");
    fill(&stock);
    leave_unfinished(&target);
    let path = source.path("source.db");
    let said = try_import(&target, &path, PageChecksums::AsInSource).unwrap();
    assert!(!said.converted, "SQLite has no hand in it");
    let names: Vec<_> = contents(&target)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["x.db", "x.db-log"]);
}
