//! DROP DATABASE and RESTORE over files that are not the database's any more.

use std::fs;

use rusqlite::Connection;

use crate::support::{Place, Run, rows, sql, succeed};

const CREATE: &str = "CREATE DATABASE own ON (NAME = a, FILENAME = 'D:\\a.mdf'), (NAME = b, FILENAME = 'D:\\b.ndf') \
                      LOG ON (NAME = l, FILENAME = 'D:\\l.ldf')\nGO\nUSE own\nGO\nCREATE TABLE t(x)\nINSERT INTO t VALUES (1)";

const FILES: [&str; 3] = ["a.mdf", "b.ndf", "l.ldf"];

fn place() -> Place {
    let place = Place::new();
    succeed(&place, "EXEC sp_attach_db 'app', 'd:\\app.db'");
    place
}

/// Runs a script in another instance.
#[track_caller]
fn elsewhere(place: &Place, script: &str) -> Run {
    let drive = format!("d={}", place.text(""));
    let run = place.type_in(&["sql", "--instance", "second", "--drive", &drive], script);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    run
}

/// Puts another file under a name.
fn replace(place: &Place, name: &str, content: &[u8]) {
    fs::write(place.path("new"), content).expect("a file");
    fs::rename(place.path("new"), place.path(name)).expect("its name");
}

fn exist(place: &Place) -> Vec<&'static str> {
    let there = FILES.into_iter().filter(|name| place.path(name).exists());
    there.collect()
}

#[test]
fn the_database_of_another_instance_that_took_the_place_of_one_stays_when_that_is_dropped() {
    let place = place();
    succeed(&place, CREATE);
    for name in FILES {
        fs::remove_file(place.path(name)).expect("it");
    }
    elsewhere(
        &place,
        &CREATE.replace("own", "theirs").replace("(1)", "(7)"),
    );
    let run = succeed(&place, "DROP DATABASE own");
    for name in FILES {
        let told = format!("The file '{}' was not deleted", place.text(name));
        assert!(run.err.contains(&told), "{}", run.err);
    }
    assert!(!run.err.contains("were deleted"), "{}", run.err);
    let run = elsewhere(&place, "USE theirs\nGO\nSELECT x FROM t");
    assert!(run.out.contains('7'), "{}", run.out);
    // The name is free again.
    let run = sql(&place, CREATE);
    assert_ne!(run.code, Some(0), "the files are theirs");
    elsewhere(&place, "DROP DATABASE theirs");
    assert_eq!(exist(&place), [""; 0]);
    succeed(&place, CREATE);
}

#[test]
fn of_the_files_of_a_database_only_those_go_that_were_made_for_it() {
    let place = place();
    let other = fs::read(place.path("other.db")).expect("a database");
    for replaced in FILES {
        succeed(&place, CREATE);
        replace(&place, replaced, &other);
        let run = succeed(&place, "DROP DATABASE own");
        assert_eq!(exist(&place), [replaced]);
        assert!(run.err.contains("The 2 files"), "{}", run.err);
        let kept = fs::read(place.path(replaced)).expect("it");
        assert!(kept == other, "{replaced} is what it was");
        fs::remove_file(place.path(replaced)).expect("it");
    }
    // Another database's log was copied into the file, which stays the same file.
    let theirs = CREATE
        .replace("own", "theirs")
        .replace("D:\\", "D:\\temp\\");
    succeed(&place, &theirs);
    succeed(&place, CREATE);
    fs::copy(place.path("temp/l.ldf"), place.path("l.ldf")).expect("a copy");
    let run = succeed(&place, "DROP DATABASE own");
    assert!(
        run.err.contains("the log of database 'theirs'"),
        "{}",
        run.err
    );
    assert_eq!(exist(&place), ["l.ldf"]);
}

#[test]
fn links_and_remains_under_the_names_of_a_database_do_not_mislead_its_deletion() {
    let place = place();
    for replaced in FILES {
        succeed(&place, CREATE);
        fs::rename(place.path(replaced), place.path("temp/moved")).expect("a move");
        std::os::unix::fs::symlink(place.path("temp/moved"), place.path(replaced)).expect("a link");
        let run = succeed(&place, "DROP DATABASE own");
        assert!(run.err.contains("symbolic link"), "{}", run.err);
        assert_eq!(exist(&place), [replaced]);
        fs::remove_file(place.path(replaced)).expect("it");
        // A second name keeps the content.
        succeed(&place, CREATE);
        fs::hard_link(place.path(replaced), place.path("temp/second")).expect("a link");
        succeed(&place, "DROP DATABASE own");
        assert_eq!(exist(&place), [""; 0]);
        assert!(place.path("temp/second").exists());
        fs::remove_file(place.path("temp/second")).expect("it");
        // What a killed creation leaves: empty files, reserved space, zeros.
        for remains in [&b""[..], &[0; 3 << 20]] {
            succeed(&place, CREATE);
            replace(&place, replaced, remains);
            succeed(&place, "DROP DATABASE own");
            assert_eq!(exist(&place), [""; 0]);
        }
    }
}

#[test]
fn a_sqlite_file_that_was_replaced_since_its_restore_stays_when_the_database_is_dropped() {
    let place = place();
    let restore = "RESTORE DATABASE n FROM DISK = 'd:\\app.bak' WITH MOVE 'app' TO 'd:\\n.db'";
    succeed(
        &place,
        &format!("BACKUP DATABASE app TO DISK = 'd:\\app.bak'\n{restore}"),
    );
    // A database in use, with changes in its log.
    fs::rename(place.path("other.db"), place.path("n.db")).expect("it takes the name");
    let users = Connection::open(place.path("n.db")).expect("a database");
    users
        .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE theirs(x)")
        .expect("a change");
    let run = succeed(&place, "DROP DATABASE n");
    let told = format!("The file '{}' was not deleted", place.text("n.db"));
    assert!(run.err.contains(&told), "{}", run.err);
    assert!(place.path("n.db-wal").exists());
    drop(users);
    assert_eq!(rows(&place.path("n.db")), 10);
    fs::remove_file(place.path("n.db")).expect("it");
    succeed(&place, restore);
    succeed(&place, "DROP DATABASE n");
    assert!(!place.path("n.db").exists());
}

/// For both kinds of databases.
#[test]
fn a_restore_goes_over_what_took_the_place_of_its_database_only_if_a_move_names_it() {
    let place = place();
    let other = fs::read(place.path("other.db")).expect("a database");
    succeed(&place, CREATE);
    succeed(
        &place,
        "BACKUP DATABASE own TO DISK = 'd:\\own.bak'
         BACKUP DATABASE app TO DISK = 'd:\\app.bak'
         RESTORE DATABASE n FROM DISK = 'd:\\app.bak' WITH MOVE 'app' TO 'd:\\n.db'",
    );
    for (name, replaced, moved) in [
        ("own", "a.mdf", "MOVE 'a' TO 'd:\\a.mdf'"),
        ("own", "b.ndf", "MOVE 'b' TO 'd:\\b.ndf'"),
        ("own", "l.ldf", "MOVE 'l' TO 'd:\\l.ldf'"),
        ("n", "n.db", "MOVE 'app' TO 'd:\\n.db'"),
    ] {
        let medium = if name == "n" { "app" } else { name };
        let restore =
            format!("RESTORE DATABASE {name} FROM DISK = 'd:\\{medium}.bak' WITH REPLACE");
        succeed(&place, &restore);
        replace(&place, replaced, &other);
        let run = sql(&place, &restore);
        assert_eq!(run.numbers(), [3142, 3156, 3119, 3013], "{}", run.err);
        assert!(
            run.err.contains("is not the file that was made"),
            "{}",
            run.err
        );
        let kept = fs::read(place.path(replaced)).expect("it");
        assert!(kept == other, "{replaced} is what it was");
        succeed(&place, &format!("{restore}, {moved}"));
        succeed(&place, &restore);
    }
    succeed(&place, "DROP DATABASE own, n");
    assert_eq!(exist(&place), [""; 0]);
    assert!(!place.path("n.db").exists());
}

#[test]
fn every_file_that_is_made_for_a_database_is_known_to_be_its_own() {
    let place = place();
    succeed(&place, CREATE);
    succeed(
        &place,
        "BACKUP DATABASE own TO DISK = 'd:\\own.bak'
         GO
         ALTER DATABASE own ADD FILE (NAME = c, FILENAME = 'd:\\c.ndf')
         GO
         USE own
         GO
         INSERT INTO t VALUES (2)
         BACKUP DATABASE own TO DISK = 'd:\\own.bak' WITH DIFFERENTIAL
         GO
         USE master
         GO
         RESTORE DATABASE own FROM DISK = 'd:\\own.bak' WITH NORECOVERY, REPLACE
         RESTORE DATABASE own FROM DISK = 'd:\\own.bak' WITH FILE = 2",
    );
    let gone = |script: &str, files: &[&str]| {
        for name in files {
            assert!(place.path(name).exists(), "{name}");
        }
        let run = succeed(&place, script);
        assert!(!run.err.contains("not deleted"), "{}", run.err);
        for name in files {
            assert!(!place.path(name).exists(), "{name}");
        }
    };
    gone("DROP DATABASE own", &["a.mdf", "b.ndf", "c.ndf", "l.ldf"]);
    // Restored in two steps, with its end apart, and one file again.
    succeed(
        &place,
        "RESTORE DATABASE own FROM DISK = 'd:\\own.bak' WITH NORECOVERY
         RESTORE DATABASE own WITH RECOVERY",
    );
    fs::remove_file(place.path("b.ndf")).expect("it");
    succeed(
        &place,
        "RESTORE DATABASE own FILE = 'b' FROM DISK = 'd:\\own.bak'",
    );
    gone("DROP DATABASE own", &FILES);
    place.succeed(&[
        "import",
        "app.db",
        "--into",
        "imported",
        "--data",
        "i.mdf",
        "--instance",
        "instance",
    ]);
    gone("DROP DATABASE imported", &["i.mdf", "i.mdf-log"]);
    succeed(
        &place,
        "BACKUP DATABASE app TO DISK = 'd:\\app.bak'
         BACKUP DATABASE app TO DISK = 'd:\\app.bak' WITH DIFFERENTIAL
         RESTORE DATABASE n FROM DISK = 'd:\\app.bak' WITH MOVE 'app' TO 'd:\\n.db', NORECOVERY
         RESTORE DATABASE n FROM DISK = 'd:\\app.bak' WITH FILE = 2, NORECOVERY
         RESTORE DATABASE n WITH RECOVERY",
    );
    gone("DROP DATABASE n", &["n.db"]);
}
