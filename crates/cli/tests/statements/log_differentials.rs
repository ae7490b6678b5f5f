//! Differential backups of SQLite files whose log names what has changed.

use rusqlite::Connection;

use crate::serving::Served;
use crate::sqlite_logs::{last, lose, step};
use crate::support::{Place, on, registered, succeed};

/// A database of 4 MB with a full backup and its log.
fn chain(place: &Place) -> Connection {
    let application = Connection::open(place.path("app.db")).expect("the database");
    application
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
             CREATE TABLE step(n INTEGER); INSERT INTO step VALUES (0);
             CREATE TABLE pad(a INTEGER PRIMARY KEY, b BLOB);
             WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 1000)
               INSERT INTO pad SELECT v, randomblob(3900) FROM n;",
        )
        .expect("WAL mode");
    succeed(place, "ALTER DATABASE app SET RECOVERY FULL");
    well(place, &["backup", "app", "--to", "full.bak"]);
    application
}

#[track_caller]
fn well(place: &Place, arguments: &[&str]) -> String {
    let run = on(place, arguments);
    assert_eq!(run.code, Some(0), "{arguments:?}\n{}\n{}", run.out, run.err);
    run.err
}

/// Makes a differential backup; the kilobytes that its log names, if it does.
#[track_caller]
fn differential(place: &Place, to: &str) -> Option<u64> {
    let said = well(place, &["backup", "app", "--differential", "--to", to]);
    let (_, named) = said.split_once("since the full backup: ")?;
    let kilobytes = named.split_whitespace().next().expect("a number");
    Some(kilobytes.parse().expect("kilobytes"))
}

/// Restores to `FILE`, and compares that with what a restore of the logs gives.
#[track_caller]
fn restored(place: &Place, backups: &[&str], file: &str) -> Vec<u8> {
    let to = place.text(file);
    place.succeed(&[&["restore"], backups, &["--to", &to]].concat());
    std::fs::read(place.path(file)).expect("it")
}

#[test]
fn a_differential_reads_what_the_log_names_also_behind_log_backups() {
    let place = registered();
    let application = chain(&place);
    // The last extent, which is not whole, is always read.
    assert!(differential(&place, "0.bak").expect("a log that is whole") < 64);
    for number in 1..=3 {
        let touch = format!("UPDATE pad SET b = randomblob(3900) WHERE a = {number} * 300");
        application.execute_batch(&touch).expect("a commit");
        step(&application, number);
        well(
            &place,
            &["backup", "app", "--log", "--to", &format!("{number}.trn")],
        );
    }
    let named = differential(&place, "diff.bak").expect("a log that is whole");
    assert!((64..1500).contains(&named), "{named} KB");
    let by_logs = restored(&place, &["full.bak", "1.trn", "2.trn", "3.trn"], "logs.db");
    assert!(restored(&place, &["full.bak", "diff.bak"], "diff.db") == by_logs);
    assert_eq!(last(&place, "diff.db"), 3);
    // Shorter, longer, and a new base.
    application
        .execute_batch("DELETE FROM pad WHERE a > 200; VACUUM")
        .expect("VACUUM");
    step(&application, 4);
    assert!(differential(&place, "short.bak").is_some());
    restored(&place, &["full.bak", "short.bak"], "short.db");
    assert_eq!(last(&place, "short.db"), 4);
    well(&place, &["backup", "app", "--to", "full2.bak"]);
    step(&application, 5);
    let named = differential(&place, "diff2.bak").expect("a log that is whole");
    assert!(named <= 192, "{named} KB");
    restored(&place, &["full2.bak", "diff2.bak"], "diff2.db");
    assert_eq!(last(&place, "diff2.db"), 5);
}

#[test]
fn a_differential_behind_a_gap_reads_the_whole_database() {
    let place = registered();
    let application = chain(&place);
    step(&application, 1);
    well(&place, &["backup", "app", "--log", "--to", "1.trn"]);
    lose(&application);
    let touch = "UPDATE pad SET b = randomblob(3900) WHERE a = 500";
    application.execute_batch(touch).expect("a commit");
    step(&application, 2);
    assert_eq!(differential(&place, "diff.bak"), None);
    restored(&place, &["full.bak", "diff.bak"], "diff.db");
    assert_eq!(last(&place, "diff.db"), 99);
    // A copy-only backup is no base; a full one is the next.
    let copy = ["backup", "app", "--copy-only", "--to", "copy.bak"];
    well(&place, &copy);
    assert_eq!(differential(&place, "diff2.bak"), None);
    well(&place, &["backup", "app", "--to", "full2.bak"]);
    assert!(differential(&place, "diff3.bak").is_some());
}

#[test]
fn a_server_that_follows_the_database_spools_what_a_differential_needs() {
    let place = registered();
    let application = chain(&place);
    let server = Served::start(&place, &["--follow-every", "60s"]);
    for number in 1..=3 {
        step(&application, number);
        let to = format!("{number}.bak");
        let named = differential(&place, &to).expect("a log that is whole");
        assert!(named <= 192, "{named} KB");
        let file = format!("{number}.db");
        restored(&place, &["full.bak", &to], &file);
        assert_eq!(last(&place, &file), i64::from(number));
    }
    assert_eq!(server.stop(), Some(0));
}
