//! A file that comes to the place of a database while its backups are being restored stays.

use std::fs;

use crate::support::Place;

/// A full backup and a differential of a SQLite file; or, of a page engine database, with a log backup.
fn place() -> Place {
    let place = Place::new();
    let run = |words: &[&str]| place.succeed(&[words, &["--instance", "i"]].concat());
    run(&["backup", "app.db", "--to", "app.bak"]);
    run(&["backup", "app.db", "--to", "app.bak", "--differential"]);
    let create = "CREATE DATABASE s ON (FILENAME = 'd:\\s.db') LOG ON (FILENAME = 'd:\\s.db-log');
        ALTER DATABASE s SET RECOVERY FULL;";
    let fill = "USE s; BACKUP DATABASE s TO DISK = 'd:\\s.bak'; CREATE TABLE t (x int);
        BACKUP DATABASE s TO DISK = 'd:\\s.bak' WITH DIFFERENTIAL; BACKUP LOG s TO DISK = 'd:\\s.bak'";
    run(&["sql", "--drive", "d=.", "-Q", create]);
    run(&["sql", "--drive", "d=.", "-Q", fill]);
    place
}

/// Restores a set to `r.db`, and leaves it open for more.
fn restore(place: &Place, medium: &str, set: &str, further: &[&str]) {
    let words = [
        "restore",
        medium,
        "--set",
        set,
        "--to",
        "r.db",
        "--no-recovery",
    ];
    place.succeed(&[&words[..], further].concat());
}

fn refused(place: &Place, words: &[&str]) {
    let run = place.run(&[words, &["--json"]].concat());
    assert_eq!(run.code, Some(1), "{words:?}: {}", run.err);
    assert!(run.numbers().contains(&3142), "{words:?}: {}", run.err);
    assert_eq!(
        fs::read(place.path("r.db")).expect("a file"),
        b"precious",
        "{words:?}"
    );
}

#[test]
fn no_step_of_a_sequence_replaces_a_file_that_was_not_there_when_it_began() {
    let place = place();
    for (medium, further) in [("app.bak", &["2"][..]), ("s.bak", &["2", "3"])] {
        restore(&place, medium, "1", &[]);
        fs::write(place.path("r.db"), "precious").expect("a file");
        refused(&place, &["restore", "--to", "r.db"]);
        for set in further {
            refused(&place, &["restore", medium, "--set", set, "--to", "r.db"]);
            fs::rename(place.path("r.db"), place.path("kept")).expect("a file");
            restore(&place, medium, set, &[]);
            fs::rename(place.path("kept"), place.path("r.db")).expect("a file");
        }
        refused(&place, &["restore", "--to", "r.db"]);
        place.succeed(&["restore", "--to", "r.db", "--replace"]);
        assert_ne!(fs::read(place.path("r.db")).expect("a file"), b"precious");
        fs::remove_file(place.path("r.db")).expect("a file");
        drop(fs::remove_file(place.path("r.db-log")));
    }
}

#[test]
fn nor_does_one_of_a_registered_database() {
    let place = place();
    let sql = |text: &str| {
        place.run(&[
            "sql",
            "--instance",
            "i",
            "--drive",
            "d=.",
            "--json",
            "-Q",
            text,
        ])
    };
    for (medium, logical) in [("app.bak", "app"), ("s.bak", "s")] {
        let of = format!("RESTORE DATABASE {logical}2 FROM DISK = 'd:\\{medium}' WITH");
        let log = match logical {
            "s" => r", MOVE 's_log' TO 'd:\r.db-log'",
            _ => "",
        };
        let begun = sql(&format!(
            r"{of} NORECOVERY, MOVE '{logical}' TO 'd:\r.db'{log}"
        ));
        assert_eq!(begun.code, Some(0), "{}", begun.err);
        fs::write(place.path("r.db"), "precious").expect("a file");
        for statement in [
            format!("{of} FILE = 2"),
            format!("{of} FILE = 1"),
            format!("RESTORE DATABASE {logical}2"),
        ] {
            let run = sql(&statement);
            assert!(run.numbers().contains(&3142), "{statement}: {}", run.err);
            assert_eq!(
                fs::read(place.path("r.db")).expect("a file"),
                b"precious",
                "{statement}"
            );
        }
        fs::remove_file(place.path("r.db")).expect("a file");
        let run = sql(&format!("{of} FILE = 2"));
        assert_eq!(run.code, Some(0), "{}", run.err);
        let run = sql(&format!("DROP DATABASE {logical}2"));
        assert_eq!(run.code, Some(0), "{}", run.err);
        drop(fs::remove_file(place.path("r.db")));
        drop(fs::remove_file(place.path("r.db-log")));
    }
}

#[test]
fn one_that_was_there_and_could_be_replaced_is_replaced_by_every_later_step() {
    let place = place();
    for (medium, further) in [("app.bak", &["2"][..]), ("s.bak", &["2", "3"])] {
        for count in 0..=further.len() {
            fs::write(place.path("r.db"), "old").expect("a file");
            restore(&place, medium, "1", &["--replace"]);
            for set in &further[..count] {
                restore(&place, medium, set, &[]);
                assert_eq!(fs::read(place.path("r.db")).expect("a file"), b"old");
            }
            place.succeed(&["restore", "--to", "r.db"]);
            assert_ne!(fs::read(place.path("r.db")).expect("a file"), b"old");
            drop(fs::remove_file(place.path("r.db-log")));
        }
        fs::remove_file(place.path("r.db")).expect("a file");
    }
}
