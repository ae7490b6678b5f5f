//! Databases whose files are another database's by now, and instances that are copies of another.

use std::fs;
use std::path::Path;

use crate::support::{Place, Run, pages, rows, sql, succeed};

const CREATE: &str = "CREATE DATABASE e ON (NAME = a, FILENAME = 'd:\\a.mdf') \
                      LOG ON (NAME = l, FILENAME = 'd:\\l.ldf')\nGO\nUSE e\nGO\nCREATE TABLE t(x)\n\
                      INSERT INTO t VALUES (1)";

const FILES: [&str; 2] = ["a.mdf", "l.ldf"];

/// Runs a script in another instance.
fn elsewhere(place: &Place, script: &str) -> Run {
    let drive = format!("d={}", place.text(""));
    place.type_in(&["sql", "--instance", "second", "--drive", &drive], script)
}

#[track_caller]
fn succeed_elsewhere(place: &Place, script: &str) -> Run {
    let run = elsewhere(place, script);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    run
}

/// As a copy by a program that does not know of extended attributes.
fn strip_marks(path: &Path) {
    let copy = path.with_extension("copy");
    fs::write(&copy, fs::read(path).expect("a file")).expect("a copy");
    fs::rename(&copy, path).expect("its name");
}

/// A database of the first instance, and one of the second that has taken its files' names.
fn displaced(is_marked: bool) -> Place {
    let place = Place::new();
    succeed(&place, CREATE);
    succeed(&place, "BACKUP DATABASE e TO DISK = 'd:\\e.bak'");
    for name in FILES {
        fs::remove_file(place.path(name)).expect("it");
    }
    succeed_elsewhere(&place, &CREATE.replace("(1)", "(7), (8)"));
    if !is_marked {
        for name in FILES {
            strip_marks(&place.path(name));
        }
    }
    place
}

#[test]
fn no_statement_opens_another_databases_files_under_the_name_of_a_registered_one() {
    for is_marked in [true, false] {
        let place = displaced(is_marked);
        let before = FILES.map(|name| fs::read(place.path(name)).expect("a file"));
        for script in [
            "USE e\nGO\nDELETE FROM t",
            "BACKUP DATABASE e TO DISK = 'd:\\x.bak'",
            "DBCC CHECKDB (e)",
            "ALTER DATABASE e ADD FILE (NAME = b, FILENAME = 'd:\\b.ndf')",
            "ALTER DATABASE e SET TARGET_RECOVERY_TIME = 30 SECONDS",
        ] {
            let run = sql(&place, script);
            assert_eq!(run.code, Some(1), "{script}\n{}", run.err);
            let number = if is_marked { 50073 } else { 50071 };
            assert!(run.numbers().contains(&number), "{script}\n{}", run.err);
        }
        // A restore without MOVE does not go over them either.
        for how in ["", " WITH REPLACE"] {
            let script = format!("RESTORE DATABASE e FROM DISK = 'd:\\e.bak'{how}");
            let run = sql(&place, &script);
            assert_eq!(run.code, Some(1), "{script}\n{}", run.err);
        }
        let after = FILES.map(|name| fs::read(place.path(name)).expect("a file"));
        assert!(before == after, "nothing was written");
        assert!(!place.path("x.bak").exists() && !place.path("b.ndf").exists());
        let run = succeed_elsewhere(&place, "USE e\nGO\nSELECT count(*) FROM t");
        assert!(run.out.contains('2'), "{}", run.out);
    }
}

#[test]
fn the_ways_out_that_the_message_names_are_ways_out() {
    // On purpose: detached and attached.
    let place = displaced(false);
    succeed(
        &place,
        "EXEC sp_detach_db 'e'\n\
         CREATE DATABASE theirs ON (NAME = a, FILENAME = 'd:\\a.mdf') \
         LOG ON (NAME = l, FILENAME = 'd:\\l.ldf') FOR ATTACH\n\
         BACKUP DATABASE theirs TO DISK = 'd:\\theirs.bak'",
    );
    // Not on purpose: moved away and restored.
    let place = displaced(true);
    for name in FILES {
        fs::rename(place.path(name), place.path(&format!("{name}.away"))).expect("another name");
    }
    succeed(&place, "RESTORE DATABASE e FROM DISK = 'd:\\e.bak'");
    let run = succeed(&place, "USE e\nGO\nSELECT count(*) AS n FROM t");
    assert_eq!(run.results()[0][0]["n"], 1, "{}", run.out);
}

#[test]
fn a_database_that_a_restore_has_replaced_by_another_is_opened_as_that() {
    let place = Place::new();
    let other = CREATE
        .replace("DATABASE e", "DATABASE f")
        .replace("USE e", "USE f")
        .replace("d:\\", "d:\\temp\\")
        .replace("(1)", "(5)");
    succeed(&place, CREATE);
    succeed(&place, &other);
    succeed(&place, "BACKUP DATABASE f TO DISK = 'd:\\f.bak'");
    let run = sql(&place, "RESTORE DATABASE e FROM DISK = 'd:\\f.bak'");
    assert_eq!(run.code, Some(1), "it is another database: {}", run.err);
    let moved = "MOVE 'a' TO 'd:\\a.mdf', MOVE 'l' TO 'd:\\l.ldf'";
    let restore = format!("RESTORE DATABASE e FROM DISK = 'd:\\f.bak' WITH REPLACE, {moved}");
    succeed(&place, &restore);
    let run = succeed(
        &place,
        "USE e\nGO\nSELECT x FROM t\nBACKUP DATABASE e TO DISK = 'd:\\e.bak'",
    );
    assert_eq!(run.results()[0][0]["x"], 5, "{}", run.out);
    succeed(&place, "RESTORE DATABASE e FROM DISK = 'd:\\e.bak'");
    succeed(&place, "DROP DATABASE e");
    assert!(FILES.iter().all(|name| !place.path(name).exists()));
}

/// The family of the last set on a medium.
fn family(place: &Place, medium: &str) -> String {
    let run = succeed(
        place,
        &format!("RESTORE HEADERONLY FROM DISK = 'd:\\{medium}'"),
    );
    let results = run.results();
    let sets = results[0].as_array().expect("sets");
    let family = &sets.last().expect("a set")["FamilyGUID"];
    family.as_str().expect("a family").to_owned()
}

#[test]
fn the_backup_of_a_sqlite_file_that_replaced_another_is_not_said_to_be_of_the_other() {
    let place = Place::new();
    let restored = |from: &str, name: &str| {
        let medium = format!("{from}.bak");
        place.succeed(&["backup", &format!("{from}.db"), "--to", &medium]);
        let restore = format!(
            "RESTORE DATABASE {name} FROM DISK = 'd:\\{medium}' WITH MOVE '{from}' TO 'd:\\{name}.db'\n\
             BACKUP DATABASE {name} TO DISK = 'd:\\{name}.bak'"
        );
        succeed(&place, &restore);
    };
    restored("app", "sales");
    restored("other", "theirs");
    let [sales, theirs] = ["sales.bak", "theirs.bak"].map(|medium| family(&place, medium));
    assert_ne!(sales, theirs);
    succeed(&place, "EXEC sp_detach_db 'theirs'");
    fs::rename(place.path("theirs.db"), place.path("sales.db")).expect("its name");
    let told = |run: &Run| run.numbers().contains(&50072);
    let run = sql(
        &place,
        "BACKUP DATABASE sales TO DISK = 'd:\\d.bak' WITH DIFFERENTIAL",
    );
    assert!(told(&run) && run.numbers().contains(&3035), "{}", run.err);
    let run = succeed(
        &place,
        "BACKUP DATABASE sales TO DISK = 'd:\\n.bak' WITH COPY_ONLY",
    );
    assert!(told(&run), "{}", run.err);
    assert_eq!(family(&place, "n.bak"), theirs);
    // Now it is known. What is known of the base is of the other database still.
    let run = sql(
        &place,
        "BACKUP DATABASE sales TO DISK = 'd:\\d.bak' WITH DIFFERENTIAL",
    );
    if run.code == Some(0) {
        // The family's own full backup is a base.
        place.succeed(&[
            "restore",
            "theirs.bak",
            "d.bak",
            "--to",
            "r.db",
            "--of",
            "sales",
        ]);
    }
    let run = succeed(&place, "BACKUP DATABASE sales TO DISK = 'd:\\n.bak'");
    assert!(!told(&run), "{}", run.err);
    succeed(
        &place,
        "BACKUP DATABASE sales TO DISK = 'd:\\n.bak' WITH DIFFERENTIAL",
    );
    place.succeed(&["restore", "n.bak", "--to", "late.db"]);
    assert_eq!(rows(&place.path("late.db")), 10);
}

#[test]
fn a_restore_of_single_files_goes_over_no_file_that_is_not_the_databases_own() {
    let place = Place::new();
    succeed(&place, CREATE);
    succeed(&place, "BACKUP DATABASE e TO DISK = 'd:\\e.bak'");
    let restore = "RESTORE DATABASE e FILE = 'a' FROM DISK = 'd:\\e.bak'";
    succeed(&place, restore);
    for name in FILES {
        let is_there = || fs::read(place.path(name)).expect("a file");
        let before = is_there();
        fs::rename(place.path(name), place.path("own")).expect("another name");
        fs::copy(place.path("own"), place.path(name)).expect("a copy");
        strip_marks(&place.path(name));
        let run = sql(&place, restore);
        assert_eq!(run.code, Some(1), "{name}: {}", run.err);
        assert!(
            run.err.contains("is not the file that was made for"),
            "{}",
            run.err
        );
        assert!(before == is_there(), "{name}");
        fs::rename(place.path("own"), place.path(name)).expect("its name");
    }
    // A file that is lost is restored.
    fs::remove_file(place.path("a.mdf")).expect("it");
    succeed(&place, restore);
    succeed(&place, "USE e\nGO\nSELECT x FROM t");
}

/// The files of an instance and a database as a process that was killed left them.
fn keep(place: &Place, names: &[&str]) -> Vec<Vec<u8>> {
    let read = |name: &&str| fs::read(place.path(name)).expect(name);
    names.iter().map(read).collect()
}

/// Puts them back in place, so that their marks stay.
fn put_back(place: &Place, names: &[&str], kept: &[Vec<u8>]) {
    for (name, content) in names.iter().zip(kept) {
        fs::write(place.path(name), content).expect(name);
    }
}

const ADD: &str = "ALTER DATABASE e ADD FILE (NAME = b, FILENAME = 'd:\\b.ndf', SIZE = 1MB)";

#[test]
fn a_file_whose_addition_was_killed_before_the_database_knew_of_it_can_be_added_again() {
    let place = Place::new();
    succeed(&place, CREATE);
    let names = ["a.mdf", "l.ldf", "instance/windlass.catalog"];
    let kept = keep(&place, &names);
    succeed(&place, ADD);
    put_back(&place, &names, &kept);
    // Its stamp comes with the checkpoint after that.
    let empty = pages(&place.path("b.ndf"));
    assert!(empty.iter().all(|byte| *byte == 0), "nothing is in it yet");
    put_back(&place, &["b.ndf"], &[empty]);
    let run = succeed(&place, "USE e\nGO\nSELECT x FROM t");
    assert_eq!(run.results()[0][0]["x"], 1, "{}", run.out);
    succeed(&place, ADD);
    let run = sql(&place, ADD.replace("NAME = b", "NAME = c").as_str());
    assert_eq!(
        run.code,
        Some(1),
        "it is part of the database now: {}",
        run.err
    );
    // Another's file of zeros stays what it is.
    fs::write(place.path("z.ndf"), [0; 65536]).expect("a file");
    let run = sql(
        &place,
        &ADD.replace("= b,", "= z,").replace("b.ndf", "z.ndf"),
    );
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert_eq!(fs::read(place.path("z.ndf")).expect("it"), [0; 65536]);
    succeed(&place, "DROP DATABASE e");
    assert!(!place.path("b.ndf").exists());
}

#[test]
fn a_file_whose_addition_was_killed_before_the_catalog_knew_of_it_is_part_of_the_database() {
    for is_opened in [true, false] {
        let place = Place::new();
        succeed(&place, CREATE);
        let names = ["instance/windlass.catalog"];
        let kept = keep(&place, &names);
        succeed(&place, ADD);
        put_back(&place, &names, &kept);
        if is_opened {
            succeed(
                &place,
                "BACKUP DATABASE e TO DISK = 'd:\\e.bak'\nRESTORE DATABASE e FROM DISK = 'd:\\e.bak'",
            );
        }
        succeed(&place, "DROP DATABASE e");
        assert!(!place.path("b.ndf").exists(), "{is_opened}");
    }
}

/// Copies a folder as `cp -r` does.
fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        match entry.file_type().expect("its kind").is_dir() {
            true => copy_folder(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).expect("a copy")),
        }
    }
}

#[test]
fn a_copy_of_an_instance_deletes_and_replaces_no_database_of_the_original() {
    let place = Place::new();
    succeed(&place, CREATE);
    place.succeed(&["backup", "app.db", "--to", "app.bak"]);
    let restore = "RESTORE DATABASE r FROM DISK = 'd:\\app.bak'";
    succeed(&place, &format!("{restore} WITH MOVE 'app' TO 'd:\\r.db'"));
    succeed(&place, "BACKUP DATABASE e TO DISK = 'd:\\e.bak'");
    copy_folder(&place.path("instance"), &place.path("copy"));
    let in_copy = |script: &str| {
        let copy = place.text("copy");
        place.sql_with(&["--json", "--instance", &copy], script)
    };
    for script in [
        "DROP DATABASE e",
        "DROP DATABASE r",
        restore,
        "RESTORE DATABASE e FROM DISK = 'd:\\e.bak' WITH REPLACE",
        "RESTORE DATABASE e FILE = 'a' FROM DISK = 'd:\\e.bak'",
    ] {
        let run = in_copy(script);
        assert_eq!(run.code, Some(1), "{script}\n{}", run.err);
        assert!(run.numbers().contains(&50074), "{script}\n{}", run.err);
        assert!(run.err.contains(&place.text("instance")), "{}", run.err);
    }
    // What the message says: it may let go of them.
    let run = in_copy("EXEC sp_detach_db 'r'");
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(place.path("r.db").exists());
    // The original has lost nothing, and is not hindered.
    succeed(&place, "USE e\nGO\nSELECT x FROM t");
    succeed(&place, restore);
    succeed(&place, "DROP DATABASE r");
    // The copy takes its place.
    fs::rename(place.path("instance"), place.path("away")).expect("another name");
    let run = in_copy("DROP DATABASE e");
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(!place.path("a.mdf").exists());
}
