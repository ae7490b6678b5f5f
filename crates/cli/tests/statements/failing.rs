//! Failures count for the database at their path: neither hidden by others of its name, nor charged to them.

use std::fs;

use crate::support::{Place, Run, make_database, on, succeed, well};

/// Folders for databases and for their backups.
fn folders(names: &[&str]) -> Place {
    let place = Place::empty();
    for name in names {
        fs::create_dir(place.path(name)).expect("a folder");
    }
    place
}

/// A night's backups of a folder.
fn night(place: &Place, folder: &str, to: &str) -> Run {
    on(place, &["backup", "--all", folder, "--to", to])
}

/// Makes a file one that cannot be backed up: no database, as an encrypted one looks.
fn spoil(place: &Place, name: &str) {
    fs::write(place.path(name), [0xA5; 9000]).expect("a file");
}

fn renew(place: &Place, name: &str) {
    fs::remove_file(place.path(name)).expect("the file");
    make_database(&place.path(name), 20);
}

/// The databases whose last run failed, by the metrics.
fn failing(place: &Place) -> Vec<String> {
    let metrics = well(place, &["metrics"]).out;
    let lines = metrics.lines().filter(|line| line.ends_with(" 1"));
    let failing = lines.filter(|line| line.starts_with("windlass_backup_failing{"));
    failing.map(str::to_owned).collect()
}

#[test]
fn the_success_of_another_file_of_the_name_does_not_hide_a_failure() {
    let place = folders(&["dbs", "bak"]);
    spoil(&place, "dbs/a.db");
    make_database(&place.path("dbs/a.sqlite"), 10);
    assert_eq!(night(&place, "dbs", "bak").code, Some(1));
    let path = place.text("dbs/a.db");
    let check = on(&place, &["check"]);
    assert_eq!(check.code, Some(2), "{}", check.out);
    let told = format!("a ('{path}' on ");
    for told in [told.as_str(), "has never been backed up"] {
        assert!(check.out.contains(told), "{told}: {}", check.out);
    }
    let count = check.out.matches("the last run failed").count();
    assert_eq!(count, 1, "{}", check.out);
    let failed = failing(&place);
    assert!(failed.len() == 1 && failed[0].contains(&path), "{failed:?}");
    let doctor = on(&place, &["doctor"]);
    assert_eq!(doctor.code, Some(1), "{}", doctor.out);
    assert!(doctor.out.contains(&told), "{}", doctor.out);
    // Its own success ends it.
    renew(&place, "dbs/a.db");
    assert_eq!(night(&place, "dbs", "bak").code, Some(0));
    assert!(failing(&place).is_empty());
    well(&place, &["check"]);
    well(&place, &["doctor"]);
}

#[test]
fn a_failure_is_charged_to_the_file_that_failed() {
    let place = folders(&["one", "two", "bak_one", "bak_two"]);
    for folder in ["one", "two"] {
        make_database(&place.path(&format!("{folder}/shop.db")), 10);
        let run = night(&place, folder, &format!("bak_{folder}"));
        assert_eq!(run.code, Some(0), "{}", run.err);
    }
    // Of a name that was mistyped, nobody is warned.
    assert_eq!(
        on(&place, &["backup", "none/shop.db", "--to", "x"]).code,
        Some(1)
    );
    well(&place, &["check"]);
    spoil(&place, "one/shop.db");
    assert_eq!(night(&place, "one", "bak_one").code, Some(1));
    let path = place.text("one/shop.db");
    for is_hidden in [false, true] {
        if is_hidden {
            assert_eq!(night(&place, "two", "bak_two").code, Some(0));
        }
        let check = on(&place, &["check"]);
        assert_eq!(check.code, Some(1), "{}", check.out);
        let count = check.out.matches("the last run failed").count();
        assert_eq!(count, 1, "{}", check.out);
        let failed = failing(&place);
        assert!(failed.len() == 1 && failed[0].contains(&path), "{failed:?}");
        let doctor = on(&place, &["doctor"]);
        assert_eq!(doctor.code, Some(1), "{}", doctor.out);
        let told = format!("last run of shop ('{path}' on ");
        assert!(doctor.out.contains(&told), "{}", doctor.out);
    }
}

#[test]
fn every_command_counts_a_database_that_is_named_by_its_path() {
    let place = folders(&["dbs", "bak"]);
    for name in ["a", "b"] {
        make_database(&place.path(&format!("dbs/{name}.db")), 10);
    }
    assert_eq!(night(&place, "dbs", "bak").code, Some(0));
    let due = [&["history", "--rpo", "24h"][..], &["report"], &["doctor"]];
    for command in due {
        well(&place, command);
    }
    // One fails from now on, and one was never backed up.
    spoil(&place, "dbs/a.db");
    spoil(&place, "dbs/n.db");
    assert_eq!(night(&place, "dbs", "bak").code, Some(1));
    assert_eq!(on(&place, &["check"]).code, Some(2));
    for command in due {
        let run = on(&place, command);
        assert_eq!(run.code, Some(1), "{command:?}: {}", run.out);
        let told = match command[0] {
            "doctor" => "has never been backed up",
            _ => "never backed up",
        };
        assert!(run.out.contains(told), "{command:?}: {}", run.out);
    }
    let doctor = on(&place, &["doctor"]).out;
    for told in ["database n ", "last run of n ", "last run of a "] {
        assert!(doctor.contains(told), "{told}: {doctor}");
    }
    let metrics = well(&place, &["metrics"]).out;
    let told = "windlass_database_restorable{database=\"n\"} 0";
    assert!(metrics.contains(told), "{metrics}");
    // Until its history goes.
    let forget = "EXEC msdb.dbo.sp_delete_database_backuphistory 'n'";
    succeed(&place, forget);
    fs::remove_file(place.path("dbs/n.db")).expect("the file");
    renew(&place, "dbs/a.db");
    assert_eq!(night(&place, "dbs", "bak").code, Some(0));
    for command in due {
        well(&place, command);
    }
}

#[test]
fn a_medium_of_another_database_is_a_failure_in_the_history() {
    let place = folders(&["one", "two", "bak"]);
    for folder in ["one", "two"] {
        make_database(&place.path(&format!("{folder}/shop.db")), 10);
    }
    let night = |folder: &str, how: &str| {
        let backup = ["backup", "--all", folder, "--to", "bak", "--init", how];
        on(&place, &backup)
    };
    assert_eq!(night("one", "--checksum").code, Some(0));
    // A rehearsal is no failed backup.
    assert_eq!(night("two", "--dry-run").code, Some(1));
    well(&place, &["check"]);
    let run = night("two", "--checksum");
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("Msg 50305"), "{}", run.err);
    let check = on(&place, &["check"]);
    assert_eq!(check.code, Some(2), "{}", check.out);
    let told = format!("shop ('{}' on ", place.text("two/shop.db"));
    for told in [told.as_str(), "has never been backed up", "message 50305"] {
        assert!(check.out.contains(told), "{told}: {}", check.out);
    }
    assert_eq!(failing(&place).len(), 1);
}

#[test]
fn why_a_backup_was_aborted_is_in_the_history() {
    let place = Place::new();
    let backup = ["backup", "app.db", "--to", "app.bak"];
    well(&place, &[&backup[..], &["--retain-days", "5"]].concat());
    let run = on(&place, &[&backup[..], &["--init"]].concat());
    assert_eq!(run.code, Some(1), "{}", run.err);
    let check = on(&place, &["check"]);
    assert!(
        check.out.contains("cannot be overwritten. The backup"),
        "{}",
        check.out
    );
}
