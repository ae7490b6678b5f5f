//! What is dated in the future proves nothing: no differential counts from it, and nothing calls a database
//! backed up because of it.

use rusqlite::Connection;
use windlass_media::craft::{self, Medium, Set};

use crate::sqlbackup;
use crate::support::{Place, on, succeed};

const FUTURE: &str = "2185-05-02 21:56:17";

/// An instance with a database of each kind and a full backup of each, dated in the future.
fn place() -> Place {
    let place = Place::new();
    succeed(
        &place,
        "EXEC sp_attach_db 'app', 'd:\\app.db'
         CREATE DATABASE own ON (NAME = a, FILENAME = 'd:\\a.mdf') LOG ON (NAME = l, FILENAME = 'd:\\a.ldf')
         BACKUP DATABASE app TO DISK = 'd:\\temp\\app.bak'
         BACKUP DATABASE own TO DISK = 'd:\\temp\\own.bak'",
    );
    let catalog = Connection::open(place.path("instance/windlass.catalog")).expect("the catalog");
    let shift = "UPDATE own_backupset SET backup_start_date = ?1, backup_finish_date = ?1";
    catalog.execute(shift, [FUTURE]).expect("a shift");
    place
}

#[test]
fn a_differential_does_not_count_from_a_backup_that_is_dated_in_the_future() {
    let place = place();
    for name in ["app", "own"] {
        let to = format!("temp/{name}-d.bak");
        let differential = ["backup", name, "--to", &to, "--differential"];
        for dry in [&["--dry-run"][..], &[]] {
            let run = on(&place, &[&differential[..], dry].concat());
            assert_eq!(run.code, Some(1), "{}", run.err);
            assert!(run.err.contains("Msg 50076"), "{}", run.err);
            assert!(run.err.contains(FUTURE), "{}", run.err);
        }
        let run = on(
            &place,
            &[&differential[..], &["--base-missing-ok"]].concat(),
        );
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert!(run.err.contains("is dated in the future"), "{}", run.err);
        let script =
            format!("BACKUP DATABASE {name} TO DISK = 'd:\\temp\\t.bak' WITH DIFFERENTIAL");
        let run = succeed(&place, &script);
        assert!(run.numbers().contains(&50077), "{}", run.err);

        let full = format!(
            "BACKUP DATABASE {name} TO DISK = 'd:\\temp\\{name}-f.bak' WITH DIFFERENTIAL, FULLIFREQUIRED"
        );
        let run = sqlbackup::run(&place, &full);
        let (lines, ..) = sqlbackup::report(&run);
        assert!(
            lines.contains("dated in the future: a full backup is made first"),
            "{lines}"
        );
        // That one counts.
        let run = on(&place, &differential);
        assert_eq!(run.code, Some(0), "{}", run.err);
    }
}

#[test]
fn no_report_calls_a_database_backed_up_for_a_date_in_the_future() {
    let place = place();
    let run = on(&place, &["check"]);
    assert_eq!(run.code, Some(2), "{}", run.out);
    for said in ["except what is dated in the future", FUTURE] {
        assert!(run.out.contains(said), "{said}: {}", run.out);
    }
    for command in [
        &["history", "--rpo", "24h"][..],
        &["report", "--rpo", "24h"],
    ] {
        let run = on(&place, command);
        assert_eq!(run.code, Some(1), "{}", run.out);
        assert!(run.out.contains("dated in the future"), "{}", run.out);
    }
    let run = on(&place, &["doctor"]);
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(run.out.contains("is dated in the future"), "{}", run.out);
    let metric = |name: &str, database: &str| -> Option<f64> {
        let run = on(&place, &["metrics"]);
        let begins = format!("windlass_{name}{{database=\"{database}\"");
        let line = run
            .out
            .lines()
            .find(|line| line.starts_with(&begins))?
            .to_owned();
        line.rsplit(' ').next()?.parse().ok()
    };
    for name in ["app", "own"] {
        assert_eq!(metric("database_restorable", name), Some(0.0));
        assert_eq!(
            metric("database_restorable_timestamp_seconds", name),
            Some(0.0)
        );
        assert_eq!(metric("database_backups_dated_in_future", name), Some(1.0));
        assert_eq!(metric("backup_last_finished_timestamp_seconds", name), None);
        assert_eq!(metric("backups", name), Some(1.0));
    }
    // One of today counts, and no other.
    assert_eq!(
        on(&place, &["backup", "app", "--to", "now.bak"]).code,
        Some(0)
    );
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.expect("a time").as_secs_f64();
    for name in ["database_restorable", "backup_last_finished"] {
        let at = metric(&format!("{name}_timestamp_seconds"), "app").expect("a time");
        assert!((now - at).abs() < 600.0, "{name}: {at}");
    }
    let run = on(&place, &["check", "--database", "app"]);
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(!run.out.contains("CRITICAL"), "{}", run.out);
}

/// A medium like `name`, dated in the future.
fn shifted(place: &Place, name: &str, to: &str) {
    let medium = std::fs::read(place.path(name)).expect("the medium");
    let real = craft::sets(&medium).remove(0);
    let content = std::fs::read(place.path("app.db")).expect("the database");
    let mut set = Set::full("app", &content);
    set.configuration.family_guid = real.family_guid;
    set.configuration.database_guid = real.database_guid;
    set.configuration.machine = real.machine;
    set.configuration.files[0]
        .physical_name
        .clone_from(&real.files[0].physical_name);
    set.configuration.started = FUTURE.parse().ok();
    std::fs::write(place.path(to), Medium::new().with(&set).bytes()).expect("a medium");
}

#[test]
fn a_medium_that_is_dated_in_the_future_is_neither_a_base_nor_the_latest() {
    let place = Place::new();
    place.succeed(&["backup", "app.db", "--to", "temp/1.bak"]);
    shifted(&place, "temp/1.bak", "temp/2.bak");
    let differential = [
        "backup",
        "app.db",
        "--to",
        "d.bak",
        "--differential",
        "--base",
        "temp/2.bak",
    ];
    let run = place.run(&differential);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("Msg 50076"), "{}", run.err);
    let latest = "RESTORE DATABASE trial FROM DISK = 'd:\\temp\\*.bak' SOURCE = 'app' LATEST_FULL \
                  WITH MOVE 'app' TO 'd:\\trial.db'";
    let (lines, ..) = sqlbackup::report(&sqlbackup::run(&place, latest));
    assert!(lines.contains("set 1 of '"), "{lines}");
    assert!(lines.contains("is dated in the future"), "{lines}");
    assert!(!place.path("trial.db").exists());
    sqlbackup::succeeds(&place, &latest.replace('*', "1"));
}
