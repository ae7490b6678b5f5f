//! Sequences of restores, and what becomes of the files.

use crate::sales::MAKE;
use crate::support::{Place, rows, sql, succeed};

#[test]
fn full_and_differential_lead_to_the_state_of_the_differential() {
    let place = Place::new();
    let numbers = place.numbers(
        "BACKUP DATABASE app TO DISK = 'd:\\f.bak', DISK = 'd:\\g.bak' WITH FORMAT, COMPRESSION
         GO
         USE app
         DELETE FROM t WHERE id > 350
         USE master
         BACKUP DATABASE app TO DISK = 'd:\\f.bak', DISK = 'd:\\g.bak' WITH DIFFERENTIAL
         GO
         RESTORE DATABASE copy FROM DISK = 'd:\\g.bak', DISK = 'd:\\f.bak' WITH FILE = 2, MOVE 'app' TO 'd:\\copy.db'
         RESTORE DATABASE copy FROM DISK = 'd:\\g.bak', DISK = 'd:\\f.bak' WITH MOVE 'app' TO 'd:\\copy.db', NORECOVERY
         GO
         USE copy
         GO
         BACKUP DATABASE copy TO DISK = 'NUL'
         RESTORE DATABASE copy FROM DISK = 'd:\\f.bak', DISK = 'd:\\g.bak' WITH FILE = 2
         RESTORE DATABASE copy FROM DISK = 'd:\\f.bak', DISK = 'd:\\g.bak' WITH FILE = 2",
    );
    assert_eq!(
        numbers,
        [
            4035, 3014, 4035, 3014, // both backups
            3118, 3013, // nothing to put the differential on
            4035, 3014, // the full backup
            927, 927, 3013, // not to be used meanwhile
            4035, 3014, // the differential
            3117, 3013, // the sequence is over
        ]
    );
    assert_eq!(rows(&place.path("copy.db")), 350);
    assert_eq!(
        std::fs::read(place.path("copy.db")).expect("the copy"),
        std::fs::read(place.path("app.db")).expect("the original")
    );
}

#[test]
fn a_differential_fits_only_its_own_base() {
    let place = Place::new();
    let numbers = place.numbers(
        "BACKUP DATABASE app TO DISK = 'd:\\one.bak' WITH FORMAT
         BACKUP DATABASE app TO DISK = 'd:\\two.bak' WITH FORMAT
         BACKUP DATABASE app TO DISK = 'd:\\two.bak' WITH DIFFERENTIAL
         RESTORE DATABASE copy FROM DISK = 'd:\\one.bak' WITH MOVE 'app' TO 'd:\\copy.db', NORECOVERY
         RESTORE DATABASE copy FROM DISK = 'd:\\two.bak' WITH FILE = 2
         RESTORE DATABASE copy WITH RECOVERY",
    );
    assert_eq!(
        numbers,
        [
            4035, 3014, 4035, 3014, 4035, 3014, 4035, 3014, 3136, 3013, 3014
        ]
    );
    assert_eq!(rows(&place.path("copy.db")), 400);
    let run = place.sql(
        "RESTORE DATABASE copy FROM DISK = 'd:\\one.bak' WITH REPLACE, NORECOVERY, MOVE 'app' TO 'd:\\copy.db'
         RESTORE DATABASE copy FROM DISK = 'd:\\two.bak' WITH FILE = 2",
    );
    let media = place.succeed(&["header", "two.bak", "--json"]);
    let full = &media.results()[0][0]["BackupSetGUID"];
    let needed = format!(
        "needs the full backup with BackupSetGUID {}",
        full.as_str().expect("a GUID")
    );
    assert!(run.err.contains(&needed), "{}", run.err);
}

#[test]
fn a_copy_of_the_same_family_may_be_overwritten_and_another_database_only_with_replace() {
    let place = Place::new();
    let numbers = place.numbers(
        "BACKUP DATABASE app TO DISK = 'd:\\f.bak' WITH FORMAT
         RESTORE DATABASE copy FROM DISK = 'd:\\f.bak' WITH MOVE 'app' TO 'd:\\copy.db'
         RESTORE DATABASE copy FROM DISK = 'd:\\f.bak'
         RESTORE DATABASE other FROM DISK = 'd:\\f.bak'
         RESTORE DATABASE other FROM DISK = 'd:\\f.bak' WITH REPLACE",
    );
    assert_eq!(
        numbers,
        [4035, 3014, 4035, 3014, 4035, 3014, 3154, 3013, 4035, 3014]
    );
    assert_eq!(rows(&place.path("other.db")), 400);
    assert_eq!(rows(&place.path("copy.db")), 400);
}

#[test]
fn dropping_deletes_what_the_instance_restored_and_leaves_what_was_attached() {
    let place = Place::new();
    let run = place.sql(
        "BACKUP DATABASE app TO DISK = 'd:\\f.bak' WITH FORMAT
         RESTORE DATABASE copy FROM DISK = 'd:\\f.bak' WITH MOVE 'app' TO 'd:\\copy.db'
         RESTORE DATABASE half FROM DISK = 'd:\\f.bak' WITH MOVE 'app' TO 'd:\\half.db', NORECOVERY
         DROP DATABASE copy, half, app
         DROP DATABASE IF EXISTS app
         SELECT name FROM sys.databases WHERE database_id > 4",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(!place.path("copy.db").exists());
    assert!(place.path("app.db").exists());
    let left: Vec<_> = std::fs::read_dir(place.path(""))
        .expect("the folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a name")
        })
        .filter(|name| name.starts_with("half"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(
        run.out.contains("other") && !run.out.contains("app"),
        "{}",
        run.out
    );
}

#[test]
fn a_database_that_is_in_use_is_neither_replaced_nor_dropped() {
    let place = Place::new();
    place.sql("BACKUP DATABASE app TO DISK = 'd:\\f.bak' WITH FORMAT");
    let reader = rusqlite::Connection::open(place.path("app.db")).expect("a connection");
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM t;")
        .expect("a read transaction");
    let numbers = place.numbers("RESTORE DATABASE app FROM DISK = 'd:\\f.bak'");
    assert_eq!(numbers, [3101, 3013]);
    drop(reader);
    assert_eq!(
        place.numbers("RESTORE DATABASE app FROM DISK = 'd:\\f.bak'"),
        [4035, 3014]
    );
}

#[test]
fn damage_is_found_by_verifying_and_not_restored() {
    let place = Place::new();
    place.sql("BACKUP DATABASE app TO DISK = 'd:\\f.bak' WITH FORMAT");
    let mut bytes = std::fs::read(place.path("f.bak")).expect("the backup");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(place.path("f.bak"), bytes).expect("the damage");
    let run = place.run(&["verify", "f.bak"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("Msg 3189"), "{}", run.err);
    let run = place.run(&["restore", "f.bak", "--to", "copy.db"]);
    assert_eq!(run.code, Some(1));
    assert!(!place.path("copy.db").exists());
    assert!(run.err.contains("Msg 3189"), "{}", run.err);
    // Nothing more is to be said; in T-SQL, SQL Server's last line follows.
    assert!(!run.err.contains("terminating abnormally"), "{}", run.err);
}

/// Makes the catalog refuse the entries of databases for which a condition holds.
fn refuse_entries(place: &Place, condition: &str) {
    let trigger = format!(
        "DROP TRIGGER IF EXISTS no; CREATE TRIGGER no BEFORE INSERT ON own_database \
         WHEN {condition} BEGIN SELECT RAISE(ABORT, 'no'); END"
    );
    let catalog = catalog(place);
    catalog.execute_batch(&trigger).expect("a trigger");
}

fn catalog(place: &Place) -> rusqlite::Connection {
    rusqlite::Connection::open(place.path("instance/windlass.catalog")).expect("the catalog")
}

#[test]
fn a_catalog_that_cannot_be_written_keeps_the_old_database_or_is_told_after_the_restore() {
    for (name, rows_of, moves) in [
        ("app", "t", "MOVE 'app' TO 'd:\\fresh.db'"),
        (
            "Sales",
            "orders",
            "MOVE 'Sales_1' TO 'd:\\f1.mdf', MOVE 'Sales_2' TO 'd:\\f2.ndf', \
             MOVE 'Sales_log' TO 'd:\\f.ldf'",
        ),
    ] {
        let place = Place::new();
        succeed(
            &place,
            &format!(
                "{MAKE}EXEC sp_attach_db 'app', 'd:\\app.db'
GO
BACKUP DATABASE {name} TO DISK = 'd:\\1.bak'
GO
USE {name}
GO
DELETE FROM {rows_of} WHERE id > 100
GO
USE master
BACKUP DATABASE {name} TO DISK = 'd:\\2.bak'"
            ),
        );
        let count = |of: &str| {
            let text = format!("USE {of}\nGO\nSELECT count(*) AS n FROM {rows_of}");
            succeed(&place, &text).results()[0][0]["n"].clone()
        };
        let restore = format!("RESTORE DATABASE {name} FROM DISK = 'd:\\1.bak' WITH REPLACE");
        let fresh = format!("RESTORE DATABASE fresh FROM DISK = 'd:\\1.bak' WITH REPLACE, {moves}");
        let old = count(name);
        refuse_entries(&place, "1");
        for refused in [&restore, &fresh] {
            let numbers = sql(&place, refused).numbers();
            assert!(numbers.ends_with(&[50009, 3013]), "{refused}: {numbers:?}");
        }
        assert_eq!(count(name), old);
        for file in ["fresh.db", "f1.mdf", "f2.ndf", "f.ldf"] {
            assert!(!place.path(file).exists(), "{file}");
        }
        let base: String = catalog(&place)
            .query_row(
                "SELECT base_set_guid FROM own_database WHERE name = ?1",
                [name],
                |row| row.get(0),
            )
            .expect("the base");
        let is_changed = format!("NEW.base_set_guid IS NOT '{base}'");
        for (of, text, condition) in [
            (name, &restore, is_changed.as_str()),
            ("fresh", &fresh, "NEW.name = 'fresh' AND NEW.state = 0"),
        ] {
            refuse_entries(&place, condition);
            let run = succeed(&place, text);
            let numbers = run.numbers();
            assert!(
                numbers.ends_with(&[3009, 50069, 3014]),
                "{text}: {numbers:?}"
            );
            assert!(run.err.contains("Repeat the restore"), "{}", run.err);
            refuse_entries(&place, "0");
            if of == name {
                assert_ne!(count(of), old);
            }
            // What it left is good for the same statement.
            let numbers = succeed(&place, text).numbers();
            assert!(numbers.ends_with(&[4035, 3014]), "{text}: {numbers:?}");
            assert_ne!(count(of), old);
        }
    }
}
