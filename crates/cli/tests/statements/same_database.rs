//! A copy of a database is another database, wherever the newest backup of one is looked for.

use rusqlite::Connection;
use serde_json::Value as Json;

use crate::sqlbackup;
use crate::support::{Place, Run, rows, succeed};

const INSTANCE: [&str; 2] = ["--instance", "instance"];

fn change(place: &Place, name: &str) {
    let connection = Connection::open(place.path(name)).expect("the database");
    let change = "INSERT INTO t(body) VALUES ('changed')";
    connection.execute(change, []).expect("a change");
}

/// A copy of `app` of the same name and family in another folder, restored from `1.bak`.
fn place(further: &[&str]) -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path("other")).expect("a folder");
    place.succeed(&[&["backup", "app.db", "--to", "1.bak"], further].concat());
    place.succeed(&[&["restore", "1.bak", "--to", "other/app.db"], further].concat());
    change(&place, "other/app.db");
    place
}

fn header(place: &Place, name: &str, set: usize, column: &str) -> String {
    let run = place.succeed(&["header", name, "--json"]);
    let value = &run.results()[0][set][column];
    value.as_str().expect("an identity").to_owned()
}

fn well(place: &Place, arguments: &[&str], further: &[&str]) -> Run {
    place.succeed(&[arguments, further].concat())
}

#[test]
fn a_differential_counts_from_a_backup_of_its_own_database_not_of_a_copy() {
    // The base is sought on media that are named, and in the history.
    for (further, named) in [(&[][..], &["--base", "1.bak"][..]), (&INSTANCE, &[])] {
        let place = place(further);
        well(
            &place,
            &["backup", "other/app.db", "--to", "1.bak"],
            further,
        );
        change(&place, "app.db");
        let differential = ["backup", "app.db", "--to", "d.bak", "--differential"];
        for dry in [&["--dry-run"][..], &[]] {
            well(&place, &[&differential[..], named, dry].concat(), further);
        }
        let base = header(&place, "d.bak", 0, "DifferentialBaseGUID");
        assert_eq!(base, header(&place, "1.bak", 0, "BackupSetGUID"));
        // It can be restored from these media, and gives what the database is now.
        place.succeed(&[
            "restore",
            "1.bak",
            "--set",
            "1",
            "--to",
            "x.db",
            "--no-recovery",
        ]);
        place.succeed(&["restore", "d.bak", "--to", "x.db"]);
        assert_eq!(rows(&place.path("x.db")), 401);
    }
}

#[test]
fn backups_of_the_original_are_no_base_of_a_copy() {
    let place = place(&[]);
    let differential = ["backup", "other/app.db", "--to", "d.bak", "--differential"];
    for dry in [&["--dry-run"][..], &[]] {
        let run = place.run(&[&differential[..], &["--base", "1.bak"], dry].concat());
        assert_eq!(run.code, Some(1), "{}", run.err);
        for named in ["Msg 50004", "They hold backups of 'app' (", "/app.db' on "] {
            assert!(run.err.contains(named), "{named}: {}", run.err);
        }
    }
    let place = self::place(&INSTANCE);
    let run = place.run(&[&differential[..], &INSTANCE].concat());
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("Msg 3035"), "{}", run.err);
    // What was restored over itself is the same database.
    let restore = ["restore", "1.bak", "--to", "app.db", "--replace"];
    well(&place, &restore, &INSTANCE);
    let differential = ["backup", "app.db", "--to", "d.bak", "--differential"];
    well(&place, &differential, &INSTANCE);
    assert_eq!(
        header(&place, "d.bak", 0, "DifferentialBaseGUID"),
        header(&place, "1.bak", 0, "BackupSetGUID")
    );
}

#[test]
fn the_newest_state_of_a_copy_does_not_pass_for_that_of_the_original() {
    let place = place(&[]);
    place.succeed(&["backup", "other/app.db", "--to", "2.bak"]);
    let run = place.run(&["restore", "1.bak", "2.bak", "--to", "x.db"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    for named in ["Msg 50065", "/other/app.db' on ", "--set N"] {
        assert!(run.err.contains(named), "{named}: {}", run.err);
    }
    assert!(!place.path("x.db").exists());
    place.succeed(&["restore", "1.bak", "--to", "x.db"]);
    // The dialect's LATEST as well.
    let place = self::place(&[]);
    place.succeed(&["backup", "app.db", "--to", "temp/1.bak"]);
    place.succeed(&["backup", "other/app.db", "--to", "temp/2.bak"]);
    let latest = "RESTORE DATABASE trial FROM DISK = 'd:\\temp\\*.bak' SOURCE = 'app' LATEST_ALL \
                  WITH MOVE 'app' TO 'd:\\trial.db'";
    let (lines, ..) = sqlbackup::report(&sqlbackup::run(&place, latest));
    assert!(lines.contains("backups of several databases"), "{lines}");
    assert!(lines.contains("/other/app.db' on "), "{lines}");
    assert!(!place.path("trial.db").exists());
    sqlbackup::succeeds(&place, &latest.replace('*', "1"));
}

/// Of the page engine; and a differential at another place than its full backup.
#[test]
fn a_page_engine_copy_is_told_apart_and_a_moved_database_s_differential_is_not() {
    let place = Place::new();
    succeed(
        &place,
        "CREATE DATABASE own ON (NAME = a, FILENAME = 'd:\\a.mdf') LOG ON (NAME = l, FILENAME = 'd:\\a.ldf')
         BACKUP DATABASE own TO DISK = 'd:\\1.bak'",
    );
    let copy = [
        "--move",
        "a=b.mdf",
        "--move",
        "l=b.ldf",
        "--instance",
        "second",
    ];
    place.succeed(&[&["restore", "1.bak", "--database", "own"][..], &copy].concat());
    let second = ["--instance", "second"];
    well(
        &place,
        &["backup", "own", "--to", "d.bak", "--differential"],
        &second,
    );
    let moves = [
        "--move",
        "a=c.mdf",
        "--move",
        "l=c.ldf",
        "--instance",
        "third",
    ];
    let target = [&["--database", "own"][..], &moves].concat();
    place.succeed(&[&["restore", "1.bak", "d.bak"][..], &target].concat());
    well(&place, &["backup", "own", "--to", "2.bak"], &second);
    let run = place.run(&[&["restore", "1.bak", "2.bak", "--replace"][..], &target].concat());
    assert_eq!(run.code, Some(1), "{}", run.err);
    for named in ["Msg 50065", "/a.mdf' on ", "/b.mdf' on "] {
        assert!(run.err.contains(named), "{named}: {}", run.err);
    }
    let run = place.succeed(&["check", "--media", ".", "--json"]);
    let found: Json = serde_json::from_str(&run.out).expect("an object");
    assert_eq!(databases(&found).len(), 2, "{}", run.out);
}

fn databases(found: &Json) -> Vec<String> {
    let checked = found["checked"].as_array().expect("a list").iter();
    let names = checked.filter_map(|one| one["database"].as_str());
    names.map(str::to_owned).collect()
}

#[test]
fn a_recent_backup_of_a_copy_does_not_stand_for_the_original() {
    let place = place(&INSTANCE);
    let catalog = Connection::open(place.path("instance/windlass.catalog")).expect("the catalog");
    let older = "UPDATE own_backupset SET \
                 backup_start_date = datetime(backup_start_date, '-50 hours'), \
                 backup_finish_date = datetime(backup_finish_date, '-50 hours')";
    catalog.execute(older, []).expect("older dates");
    well(
        &place,
        &["backup", "other/app.db", "--to", "2.bak"],
        &INSTANCE,
    );
    let on = |arguments: &[&str]| place.run(&[arguments, &INSTANCE].concat());
    let check = on(&["check", "--database", "app"]);
    assert_eq!(check.code, Some(2), "{}", check.out);
    assert!(check.out.contains("started 2.1 days ago"), "{}", check.out);
    let report = on(&["report", "--rpo", "24h", "--json"]);
    assert_eq!(report.code, Some(1), "{}", report.out);
    assert_eq!(on(&["history", "--rpo", "24h"]).code, Some(1));
    let metrics = on(&["metrics"]).out;
    for path in ["app.db", "other/app.db"] {
        let name = format!("database=\"app ('{}' on ", place.text(path));
        assert!(metrics.contains(&name), "{metrics}");
    }
    // A registered one keeps its name.
    succeed(&place, "EXEC sp_attach_db 'app', 'd:\\app.db'");
    let metrics = on(&["metrics"]).out;
    assert!(metrics.contains("database=\"app\""), "{metrics}");
    let check = on(&["check"]);
    assert_eq!(check.code, Some(2), "{}", check.out);
    assert!(!check.out.contains("/other/app.db"), "{}", check.out);
    let media = place.path("media");
    std::fs::create_dir(&media).expect("a folder");
    for name in ["1.bak", "2.bak"] {
        std::fs::rename(place.path(name), media.join(name)).expect("a file");
    }
    let run = place.succeed(&["check", "--media", "media", "--json"]);
    let found: Json = serde_json::from_str(&run.out).expect("an object");
    let names = databases(&found);
    assert!(
        names.len() == 2 && names[1].contains("/other/app.db' on "),
        "{names:?}"
    );
}

#[test]
fn a_machine_whose_name_changes_is_one_if_it_is_given_a_name() {
    let place = Place::new();
    let on = |machine: &str, arguments: &[&str]| {
        let mut command = place.command(arguments);
        let output = command.env("WINDLASS_MACHINE_NAME", machine).output();
        Run::of(&output.expect("the program runs"))
    };
    let run = on(
        "shop",
        &["backup", "app.db", "--to", "1.bak", "--instance", "night"],
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(header(&place, "1.bak", 0, "MachineName"), "shop");
    assert_eq!(header(&place, "1.bak", 0, "ServerName"), "shop\\night");
    // By hand, without the instance, and in an instance by another name.
    for further in [&[][..], &["--instance", "other"]] {
        let arguments = [
            &["backup", "app.db", "--to", "2.bak", "--init"][..],
            further,
        ]
        .concat();
        let run = on("shop", &arguments);
        assert_eq!(run.code, Some(0), "{}", run.err);
        let target = ["restore", "1.bak", "2.bak", "--to", "copy.db", "--replace"];
        let restored = place.succeed(&target);
        let said = restored.out + &restored.err;
        assert!(said.contains("2.bak"), "{said}");
    }
    let run = on("a\\b", &["backup", "app.db", "--to", "3.bak"]);
    assert!(run.code != Some(0), "{}", run.out);
    assert!(run.err.contains("without a backslash"), "{}", run.err);
    std::fs::write(place.path("empty.toml"), "machine_name = ' '").expect("a file");
    let run = place.run(&[
        "--config",
        "empty.toml",
        "backup",
        "app.db",
        "--to",
        "3.bak",
    ]);
    assert!(run.code != Some(0), "{}", run.out);
    assert!(!place.path("3.bak").exists());
    let run = on(
        "elsewhere",
        &["backup", "app.db", "--to", "2.bak", "--init"],
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    let run = place.run(&["restore", "1.bak", "2.bak", "--to", "copy.db", "--replace"]);
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(run.err.contains("Msg 50065"), "{}", run.err);
}

#[test]
fn two_files_whose_backups_alternate_under_one_path_are_two_databases() {
    let place = Place::new();
    let path = place.path("app.db");
    std::fs::copy(&path, place.path("away.db")).expect("a second file");
    change(&place, "away.db");
    let swap = || {
        std::fs::rename(&path, place.path("temp/swap")).expect("a rename");
        std::fs::rename(place.path("away.db"), &path).expect("a rename");
        std::fs::rename(place.path("temp/swap"), place.path("away.db")).expect("a rename");
    };
    let two = ["restore", "b/1.bak", "b/2.bak", "--to", "x.db"];
    let all = [&["restore", "b/3.bak", "b/4.bak"], &two[1..]].concat();
    std::fs::create_dir(place.path("b")).expect("a folder");
    for night in 1..=4 {
        let medium = format!("b/{night}.bak");
        place.succeed(&["backup", "app.db", "--to", &medium]);
        // A file that replaced another is the same database.
        if night == 2 {
            place.succeed(&two);
            std::fs::remove_file(place.path("x.db")).expect("what was restored");
        }
        swap();
    }
    let run = place.run(&all);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("Msg 50065"), "{}", run.err);
    assert_eq!(run.err.matches("the file created at").count(), 2);
    let run = place.succeed(&["expire", "b", "--last", "1", "--delete"]);
    for (night, stays) in [(1, false), (2, false), (3, true), (4, true)] {
        let medium = place.path(&format!("b/{night}.bak"));
        assert_eq!(medium.exists(), stays, "{night}: {}", run.out);
    }
}
