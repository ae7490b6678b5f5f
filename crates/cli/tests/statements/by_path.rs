//! Databases that are backed up by their path, without being registered: they count as long as the history has them.

use std::fs;

use crate::support::{Place, make_database, on, registered, sql, succeed, well};

/// Makes all backups in the history so many days older.
fn age(place: &Place, days: u32) {
    let catalog = rusqlite::Connection::open(place.path("instance/windlass.catalog"));
    let text = format!(
        "UPDATE own_backupset SET backup_start_date = datetime(backup_start_date, '-{days} days'),
         backup_finish_date = datetime(backup_finish_date, '-{days} days')"
    );
    catalog.expect("it").execute_batch(&text).expect("older");
}

#[test]
fn they_are_checked_beside_registered_ones() {
    let place = registered();
    make_database(&place.path("own.db"), 10);
    for name in ["app", "other", "own.db"] {
        well(&place, &["backup", name, "--to", &format!("{name}.bak")]);
    }
    let check = on(&place, &["check"]);
    assert_eq!(check.code, Some(0), "{}", check.out);
    assert!(check.out.contains("own age"), "{}", check.out);
    well(&place, &["doctor"]);
    age(&place, 2);
    for name in ["app", "other"] {
        well(&place, &["backup", name, "--to", &format!("{name}.bak")]);
    }
    let check = on(&place, &["check"]);
    assert_eq!(check.code, Some(2), "{}", check.out);
    assert!(check.out.contains("own: "), "{}", check.out);
    for command in [&["report"][..], &["history", "--rpo", "24h"]] {
        assert_eq!(on(&place, command).code, Some(1), "{command:?}");
    }
    let doctor = on(&place, &["doctor"]);
    assert!(doctor.out.contains("hours old"), "{}", doctor.out);
    // The file is missed.
    fs::remove_file(place.path("own.db")).expect("the file");
    let doctor = on(&place, &["doctor"]);
    assert_eq!(doctor.code, Some(1), "{}", doctor.out);
    assert!(
        doctor.out.contains("own.db: No such file"),
        "{}",
        doctor.out
    );
    // Until its history goes.
    succeed(
        &place,
        "EXEC msdb.dbo.sp_delete_database_backuphistory 'own'",
    );
    assert_eq!(on(&place, &["check"]).code, Some(0));
    well(&place, &["doctor"]);
}

#[test]
fn one_whose_backups_all_failed_is_missed() {
    let place = registered();
    for name in ["app", "other"] {
        well(&place, &["backup", name, "--to", &format!("{name}.bak")]);
    }
    make_database(&place.path("own.db"), 10);
    let run = on(&place, &["backup", "own.db", "--to", "/nosuch/own.bak"]);
    assert_eq!(run.code, Some(1));
    let check = on(&place, &["check"]);
    assert_eq!(check.code, Some(2), "{}", check.out);
    assert!(check.out.contains("own: "), "{}", check.out);
}

#[test]
fn a_dropped_one_and_one_that_was_registered_since_are_not_missed() {
    let place = registered();
    make_database(&place.path("own.db"), 10);
    for name in ["app", "other", "own.db"] {
        well(&place, &["backup", name, "--to", &format!("{name}.bak")]);
    }
    succeed(
        &place,
        "EXEC sp_detach_db 'other'\nEXEC sp_attach_db 'New', 'd:\\own.db'",
    );
    age(&place, 2);
    for name in ["app", "New"] {
        well(&place, &["backup", name, "--to", &format!("{name}.bak")]);
    }
    let check = on(&place, &["check"]);
    assert_eq!(check.code, Some(0), "{}", check.out);
}

/// The history goes up to now, by date.
fn forget(place: &Place) {
    succeed(place, "EXEC msdb.dbo.sp_delete_backuphistory '2099-01-01'");
    let rows = sql(place, "SELECT count(*) AS n FROM msdb.dbo.backupset");
    assert_eq!(rows.results()[0][0]["n"], 0);
    let files = sql(place, "SELECT count(*) AS n FROM msdb.dbo.backupfile");
    assert_eq!(files.results()[0][0]["n"], 0);
    let history = on(place, &["history", "--json"]);
    assert!(!history.out.contains("full"), "{}", history.out);
}

#[test]
fn a_differential_still_counts_from_a_full_backup_whose_history_was_deleted() {
    let place = registered();
    succeed(&place, crate::sales::MAKE);
    make_database(&place.path("own.db"), 10);
    for (database, name) in [("app", "app"), ("own.db", "own"), ("Sales", "Sales")] {
        let (full, differential) = (format!("{name}.bak"), format!("{name}_d.bak"));
        well(&place, &["backup", database, "--to", &full]);
        forget(&place);
        let check = on(&place, &["check", "--database", name]);
        assert_eq!(check.code, Some(0), "{}", check.out);
        well(
            &place,
            &["backup", database, "--differential", "--to", &differential],
        );
        let check = on(&place, &["check", "--database", name]);
        assert_eq!(check.code, Some(0), "{}", check.out);
        // Deleted once more, it is hidden still.
        forget(&place);
        // What is found on its media is known again.
        let load = format!("RESTORE VERIFYONLY FROM DISK = 'D:\\{full}' WITH LOADHISTORY");
        succeed(&place, &load);
        let history = on(&place, &["history", "--json"]);
        assert!(history.out.contains("full"), "{}", history.out);
        forget(&place);
        // That its media are gone is not forgotten, either.
        fs::remove_file(place.path(&full)).expect("the medium");
        let run = on(
            &place,
            &[
                "--json",
                "backup",
                database,
                "--differential",
                "--to",
                "x.bak",
            ],
        );
        assert!(run.numbers().contains(&50012), "{}", run.err);
    }
}

#[test]
fn a_registered_database_keeps_its_base_when_its_history_is_deleted_by_name() {
    let place = registered();
    well(&place, &["backup", "app", "--to", "f.bak"]);
    succeed(
        &place,
        "EXEC msdb.dbo.sp_delete_database_backuphistory 'app'",
    );
    well(
        &place,
        &["backup", "app", "--differential", "--to", "d.bak"],
    );
    let check = on(&place, &["check", "--database", "app"]);
    assert_eq!(check.code, Some(0), "{}", check.out);
}
