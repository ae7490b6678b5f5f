//! What is said of a file that is in the way: what it is, and what can be done, by CREATE, RESTORE and the plain
//! command.

use std::fs;

use crate::support::{Place, Run, rows, sql, succeed};

/// Copies a file over itself as `cp` does, without extended attributes.
fn lose_attributes(place: &Place, name: &str) {
    let aside = place.path("aside");
    fs::write(&aside, fs::read(place.path(name)).expect("the file")).expect("a copy");
    fs::rename(aside, place.path(name)).expect("its name");
}

fn place() -> Place {
    let place = Place::new();
    succeed(
        &place,
        "EXEC sp_attach_db 'app', 'd:\\app.db'
         BACKUP DATABASE app TO DISK = 'd:\\app.bak'
         RESTORE DATABASE copy FROM DISK = 'd:\\app.bak' WITH MOVE 'app' TO 'd:\\copy.db'
         CREATE DATABASE own ON (NAME = a, FILENAME = 'd:\\a.mdf') LOG ON (NAME = l, FILENAME = 'd:\\a.ldf')
         BACKUP DATABASE own TO DISK = 'd:\\own.bak'",
    );
    place
}

#[test]
fn creating_a_database_over_a_file_speaks_of_no_restore() {
    let place = place();
    fs::write(place.path("mine"), "mine").expect("a file");
    for (data, log) in [("mine", "new.ldf"), ("new.mdf", "mine")] {
        let run = sql(
            &place,
            &format!(
                "CREATE DATABASE e ON (NAME = a, FILENAME = 'd:\\{data}') LOG ON (NAME = l, FILENAME = 'd:\\{log}')"
            ),
        );
        assert_eq!(run.numbers(), [5170, 1802], "{}", run.err);
        assert!(run.err.contains("because it already exists"), "{}", run.err);
        assert!(!run.err.contains("RESTORE"), "{}", run.err);
    }
    assert_eq!(fs::read(place.path("mine")).expect("it"), b"mine");
}

#[test]
fn a_database_whose_file_lost_its_mark_is_not_called_another_and_the_advice_helps() {
    let place = place();
    lose_attributes(&place, "copy.db");
    // A data file of the page engine shows by its content whose it is.
    fs::write(place.path("theirs"), "somebody's").expect("a file");
    fs::rename(place.path("theirs"), place.path("a.mdf")).expect("its name");
    for (name, medium, file, target) in [
        ("copy", "app.bak", "copy.db", &["--to", "copy.db"][..]),
        ("own", "own.bak", "a.mdf", &["--move", "a=a.mdf"]),
    ] {
        let restore = format!("RESTORE DATABASE {name} FROM DISK = 'd:\\{medium}'");
        for statement in [restore.clone(), format!("{restore} WITH REPLACE")] {
            let run = sql(&place, &statement);
            assert_eq!(run.numbers(), [3142, 3156, 3119, 3013], "{}", run.err);
            for said in [
                "name it WITH MOVE, and use WITH REPLACE",
                "is not the file that was made",
            ] {
                assert!(run.err.contains(said), "{said}: {}", run.err);
            }
            assert!(!run.err.contains("Reissue"), "{}", run.err);
        }
        let instance = ["--database", name, "--instance", "instance"];
        let plain = |further: &[&str]| -> Run {
            place.run(&[&["restore", medium][..], &instance, further].concat())
        };
        for further in [&[][..], &["--replace"]] {
            let run = plain(further);
            assert_eq!(run.code, Some(1), "{}", run.err);
            let advice = "name it with --to FILE or --move LOGICAL=FILE, and give --replace";
            assert!(run.err.contains(advice), "{}", run.err);
            assert!(!run.err.contains("Use --replace"), "{}", run.err);
        }
        // What it says works.
        let run = plain(&[target, &["--replace"]].concat());
        assert_eq!(run.code, Some(0), "{file}: {}", run.err);
        succeed(&place, &format!("{restore} WITH REPLACE"));
    }
    assert_eq!(rows(&place.path("copy.db")), 400);
}

#[test]
fn another_database_in_the_place_of_an_attached_one_is_called_that() {
    let place = place();
    place.succeed(&["backup", "other.db", "--to", "other.bak"]);
    place.succeed(&["restore", "other.bak", "--to", "new.db"]);
    fs::rename(place.path("new.db"), place.path("app.db")).expect("its name");
    let run = sql(&place, "RESTORE DATABASE app FROM DISK = 'd:\\app.bak'");
    assert_eq!(run.numbers(), [3154, 3013], "{}", run.err);
    let run = place.run(&[
        "restore",
        "app.bak",
        "--database",
        "app",
        "--instance",
        "instance",
    ]);
    assert!(
        run.err.contains("Use --replace to overwrite it"),
        "{}",
        run.err
    );
    assert_eq!(rows(&place.path("app.db")), 10);
}
