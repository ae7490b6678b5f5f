//! Import and export: complete and exact, one committed state, even of databases in use.
#![expect(clippy::unwrap_used, reason = "helpers of a test")]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{Folder, assert_sound, dump, run, value};
use rusqlite::Connection;
use windlass_engine::storage::RealFileSystem;
use windlass_engine::storage::unnamed;
use windlass_engine::{CreateDatabase, Instance, InstanceOptions};
use windlass_io::own;
use windlass_vfs::NamedDatabases;
use windlass_vfs::import_export::{PageChecksums, export, import, prepare};
use windlass_vfs::{VfsError, linked};

fn instance() -> Arc<Instance> {
    Instance::new(InstanceOptions::default(), Arc::new(RealFileSystem)).unwrap()
}

fn request(folder: &Folder, name: &str) -> CreateDatabase {
    CreateDatabase::new(
        name,
        folder.path(&format!("{name}.mdf")),
        folder.path(&format!("{name}.ldf")),
    )
}

fn fill(connection: &Connection) {
    run(
        connection,
        "CREATE TABLE t(x INTEGER PRIMARY KEY, y TEXT); CREATE INDEX i ON t(y);
         INSERT INTO t WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 30000)
           SELECT n, hex(randomblob(60)) FROM c",
    );
}

/// Imports, reads through SQLite, exports and compares.
fn there_and_back(folder: &Folder, source: &Path, converted: bool) {
    let stock = Connection::open(source).unwrap();
    let expected = dump(&stock);
    let instance = instance();
    let request = request(folder, "x");
    let imported = import(&instance, source, &request, PageChecksums::AsInSource).unwrap();
    assert_eq!(imported.converted, converted);
    let names = NamedDatabases::default();
    names.add(Arc::clone(&imported.database)).unwrap();
    let vfs = format!(
        "there_and_back_{converted}_{}",
        source.file_name().unwrap().display()
    );
    linked::register(&vfs, Box::new(names.clone())).unwrap();
    let engine = Connection::open(format!("file:x?vfs={vfs}")).unwrap();
    assert!(dump(&engine) == expected);
    assert_sound(&engine);
    run(
        &engine,
        "UPDATE t SET y = 'imported' WHERE x < 10; INSERT INTO t VALUES (-1, 'new')",
    );
    let target = folder.path("out.db");
    let bytes = export(&imported.database, &target).unwrap();
    assert_eq!(std::fs::metadata(&target).unwrap().len(), bytes);
    let exported = Connection::open(&target).unwrap();
    assert!(dump(&exported) == dump(&engine));
    assert_sound(&exported);
    assert!(dump(&stock) == expected, "the source was not changed");
    assert!(matches!(
        export(&imported.database, &target),
        Err(VfsError::Io { .. })
    ));
    names.remove("X").unwrap();
    assert!(Connection::open(format!("file:x?vfs={vfs}")).is_err());
}

#[test]
fn a_file_with_pages_of_the_engine_is_copied() {
    let folder = Folder::new();
    let stock = folder.stock("same.db");
    run(&stock, "PRAGMA page_size = 8192; VACUUM");
    fill(&stock);
    there_and_back(&folder, &folder.path("same.db"), false);
}

#[test]
fn a_checkpointed_wal_database_is_copied_and_leaves_wal_mode() {
    let folder = Folder::new();
    let stock = folder.stock("wal.db");
    run(&stock, "PRAGMA page_size = 8192; VACUUM");
    assert_eq!(value::<String>(&stock, "PRAGMA journal_mode = wal"), "wal");
    fill(&stock);
    drop(stock);
    there_and_back(&folder, &folder.path("wal.db"), false);
}

#[test]
fn other_page_sizes_and_live_logs_are_converted() {
    for (name, setup) in [
        ("small.db", "PRAGMA page_size = 1024; VACUUM"),
        ("usual.db", "PRAGMA page_size = 4096; VACUUM"),
        ("large.db", "PRAGMA page_size = 65536; VACUUM"),
        (
            "live.db",
            "PRAGMA page_size = 8192; VACUUM; PRAGMA wal_autocheckpoint = 0",
        ),
    ] {
        let folder = Folder::new();
        let stock = folder.stock(name);
        run(&stock, setup);
        if name == "live.db" {
            assert_eq!(value::<String>(&stock, "PRAGMA journal_mode = wal"), "wal");
        }
        fill(&stock);
        there_and_back(&folder, &folder.path(name), true);
    }
}

#[test]
fn an_export_of_a_database_in_use_is_one_committed_state() {
    let folder = Folder::new();
    let instance = instance();
    let database = instance.create_database(&request(&folder, "busy")).unwrap();
    let names = NamedDatabases::default();
    names.add(Arc::clone(&database)).unwrap();
    linked::register("busy_export", Box::new(names)).unwrap();
    let open = || Connection::open("file:busy?vfs=busy_export").unwrap();
    fill(&open());
    run(&open(), "UPDATE t SET y = '0'");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let connection = open();
            for round in 1..12 {
                run(&connection, &format!("UPDATE t SET y = '{round}'"));
            }
        });
        let mut number = 0;
        while !writer.is_finished() || number == 0 {
            let target = folder.path(&format!("out{number}.db"));
            export(&database, &target).unwrap();
            let exported = Connection::open(&target).unwrap();
            assert_eq!(
                value::<i64>(&exported, "SELECT count(DISTINCT y) FROM t"),
                1
            );
            assert_sound(&exported);
            number += 1;
        }
    });
}

#[test]
fn what_cannot_be_imported_is_refused_and_leaves_nothing() {
    let folder = Folder::new();
    let instance = instance();
    let request = request(&folder, "x");
    std::fs::write(folder.path("text.db"), "no database at all ".repeat(1000)).unwrap();
    std::fs::write(folder.path("empty.db"), "").unwrap();
    for name in ["text.db", "empty.db", "missing.db"] {
        let path = folder.path(name);
        let error = import(&instance, &path, &request, PageChecksums::AsInSource).unwrap_err();
        assert!(
            matches!(error, VfsError::NotImportable { .. }),
            "{name}: {error}"
        );
    }
    fill(&folder.stock("good.db"));
    std::fs::write(folder.path("x.ldf"), "in the way").unwrap();
    let good = folder.path("good.db");
    assert!(import(&instance, &good, &request, PageChecksums::AsInSource).is_err());
    assert!(!folder.path("x.mdf").exists());
    assert_eq!(std::fs::read(folder.path("x.ldf")).unwrap(), b"in the way");
    assert!(!folder.path("missing.db").exists());
}

#[test]
fn of_two_who_make_a_file_of_one_name_at_once_the_second_is_refused_and_leaves_the_first_alone() {
    let folder = Folder::new();
    let stock = folder.stock("source.db");
    fill(&stock);
    let source = folder.path("source.db");
    let instance = instance();
    let first = prepare(
        &instance,
        &source,
        &request(&folder, "x"),
        PageChecksums::AsInSource,
    )
    .unwrap();
    for checksums in [PageChecksums::AsInSource, PageChecksums::Always] {
        let error = import(&instance, &source, &request(&folder, "x"), checksums).unwrap_err();
        assert!(error.to_string().contains("is making it"), "{error}");
    }
    let error = instance
        .create_database(&request(&folder, "x"))
        .unwrap_err();
    assert!(error.to_string().contains("is making it"), "{error}");
    let database = instance.publish(first.database).unwrap();

    let target = folder.path("out.db");
    let held = own::claim(&unnamed(&target)).unwrap();
    held.write_at(b"of the first", 0).unwrap();
    let error = export(&database, &target).unwrap_err();
    assert!(error.to_string().contains("is making it"), "{error}");
    assert_eq!(std::fs::read(unnamed(&target)).unwrap(), b"of the first");
    drop(held);
    let bytes = export(&database, &target).unwrap();
    assert_eq!(std::fs::metadata(&target).unwrap().len(), bytes);
    assert!(!unnamed(&target).exists());
}
