//! An instance remembers, also for several programs at once.

use crate::support::Place;

#[test]
fn databases_drives_and_history_are_there_in_the_next_run() {
    let place = Place::new();
    let folder = place.text("");
    let with = |script: &str| place.sql_with(&["--instance", "inst", "--json"], script);
    let run = with(&format!(
        "EXEC sp_windlass_drive 'q:', '{folder}'
         GO
         CREATE DATABASE app ON (NAME = app_data, FILENAME = 'Q:\\APP.DB') FOR ATTACH
         EXEC sp_attach_db @dbname = N'other', @filename1 = N'q:\\other.db'
         EXEC sp_attach_db other, 'q:\\app.db'
         BACKUP DATABASE app TO DISK = 'q:\\f.bak' WITH FORMAT"
    ));
    assert_eq!(run.numbers(), [1801, 4035, 3014], "{}", run.err);
    let run = with(
        "SELECT name, physical_name, differential_base_guid FROM sys.databases WHERE database_id > 4
         SELECT count(*) AS n FROM msdb.dbo.backupset
         EXEC sp_windlass_drive
         BACKUP DATABASE app TO DISK = 'q:\\diff.bak' WITH FORMAT, DIFFERENTIAL
         RESTORE FILELISTONLY FROM DISK = 'q:\\diff.bak'
         EXEC sp_detach_db 'other'
         EXEC sp_detach_db 'other'",
    );
    assert_eq!(
        run.numbers(),
        [4035, 3014, 15010],
        "a differential on new media: {}",
        run.err
    );
    let results = run.results();
    assert_eq!(
        results[0][0]["physical_name"],
        place.text("app.db"),
        "found in its own case"
    );
    assert!(!results[0][0]["differential_base_guid"].is_null());
    assert_eq!(results[1][0]["n"], 1);
    assert_eq!(
        results[2][1]["letter"], "Q",
        "behind the one of the command line"
    );
    assert_eq!(results[3][0]["LogicalName"], "app_data");
    assert!(place.path("other.db").exists(), "detaching leaves the file");
}

#[test]
fn several_programs_share_an_instance() {
    let place = Place::new();
    place.sql_with(
        &["--instance", "inst"],
        "EXEC sp_attach_db app, 'd:\\app.db'",
    );
    let children: Vec<_> = (0..6)
        .map(|number| {
            let script = format!("BACKUP DATABASE app TO DISK = 'p{number}.bak' WITH COPY_ONLY");
            let mut command = place.command(&["sql", "-Q", &script, "--instance", "inst"]);
            command
                .stderr(std::process::Stdio::null())
                .spawn()
                .expect("the program starts")
        })
        .collect();
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    let run = place.sql_with(
        &["--instance", "inst", "--json"],
        "SELECT count(*) AS n FROM msdb.dbo.backupset",
    );
    assert_eq!(run.results()[0][0]["n"], 6);
}

#[test]
fn a_history_that_cannot_be_written_does_not_fail_the_backup() {
    let place = Place::new();
    place.sql_with(
        &["--instance", "inst"],
        "EXEC sp_attach_db app, 'd:\\app.db'",
    );
    let catalog = rusqlite::Connection::open(place.path("inst/windlass.catalog")).expect("it");
    catalog
        .execute_batch(
            "CREATE TRIGGER no BEFORE INSERT ON own_backupset BEGIN SELECT RAISE(ABORT, 'no'); END",
        )
        .expect("a trigger");
    drop(catalog);
    let run = place.sql_with(
        &["--instance", "inst", "--json"],
        "BACKUP DATABASE app TO DISK = 'd:\\f.bak' WITH FORMAT",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(run.numbers(), [4035, 3009, 3014]);
}

#[test]
fn a_damaged_catalog_is_named() {
    let place = Place::new();
    std::fs::create_dir(place.path("inst")).expect("a folder");
    std::fs::write(place.path("inst/windlass.catalog"), "nonsense ".repeat(100)).expect("it");
    let run = place.run(&["sql", "-Q", "PRINT 1", "--instance", "inst"]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("windlass.catalog"), "{}", run.err);
}
