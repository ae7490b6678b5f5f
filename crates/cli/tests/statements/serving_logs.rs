//! `windlass serve` follows the SQLite files whose recovery model is FULL.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::serving::Served;
use crate::support::{Place, ask, on, registered, well};

fn application(place: &Place) -> Connection {
    let application = Connection::open(place.path("app.db")).expect("the database");
    application
        .busy_timeout(Duration::from_secs(20))
        .expect("a timeout");
    application
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;
             CREATE TABLE IF NOT EXISTS step(n INTEGER); INSERT INTO step VALUES (0);",
        )
        .expect("WAL mode");
    application
}

fn step(application: &Connection, number: u32) {
    let insert = format!("INSERT INTO step VALUES ({number})");
    application.execute_batch(&insert).expect("a commit");
}

/// Runs statements in the server, in which no drive is mapped.
#[track_caller]
fn succeed(place: &Place, script: &str) {
    let folder = place.text("").trim_end_matches('/').to_owned();
    crate::support::succeed(place, &script.replace("d:\\", &format!("{folder}/")));
}

#[track_caller]
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn follower(place: &Place) -> serde_json::Value {
    let rows = ask(place, "instance", "SELECT * FROM sys.dm_db_log_followers");
    rows.into_iter().next().unwrap_or_default()
}

fn is_followed(place: &Place) -> bool {
    let row = follower(place);
    row["is_followed"] == true && row["held"].is_string()
}

#[track_caller]
fn last(place: &Place, file: &str) -> i64 {
    let database = Connection::open(place.path(file)).expect("a database");
    database
        .query_row("SELECT max(n) FROM step", [], |row| row.get(0))
        .expect("steps")
}

/// The differential backups that have closed gaps.
fn closing(place: &Place) -> Vec<String> {
    let mut names = place.files("");
    // One that is being written has another ending.
    names.retain(|name| name.starts_with("app_gap_") && !name.contains(".windlass-"));
    names
}

/// A served database in recovery model FULL, with a full backup, and a program that writes to it.
fn backed_up() -> (Place, Connection, Served) {
    let place = registered();
    let application = application(&place);
    let server = Served::start(&place, &["--follow-every", "100ms"]);
    succeed(
        &place,
        "ALTER DATABASE app SET RECOVERY FULL
         BACKUP DATABASE app TO DISK = 'd:\\full.bak'",
    );
    (place, application, server)
}

#[test]
fn every_step_is_restored_from_the_log_backups_of_a_followed_database() {
    let (place, application, server) = backed_up();
    wait_for("a follower", || is_followed(&place));
    let mut files = vec!["full.bak".to_owned()];
    for number in 1..=4 {
        for _ in 0..200 {
            step(&application, number);
        }
        succeed(
            &place,
            &format!("BACKUP LOG app TO DISK = 'd:\\{number}.trn'"),
        );
        files.push(format!("{number}.trn"));
        let to = place.text(&format!("copy{number}.db"));
        let mut arguments = vec!["restore"];
        arguments.extend(files.iter().map(String::as_str));
        arguments.extend(["--to", &to]);
        place.succeed(&arguments);
        assert_eq!(last(&place, &format!("copy{number}.db")), i64::from(number));
    }
    let row = follower(&place);
    assert_eq!(row["gaps"], 0, "{row}");
    let run = on(&place, &["check", "--database", "app"]);
    assert_eq!(run.code, Some(0), "{}", run.out);
    let run = on(&place, &["top", "--once"]);
    assert!(run.out.contains("spool_mb"), "{}", run.out);
    assert_eq!(server.stop(), Some(0));
    assert_eq!(follower(&place)["is_followed"], false);
}

#[test]
fn a_gap_is_closed_by_a_differential_backup_that_the_server_makes() {
    let (place, application, server) = backed_up();
    wait_for("a follower", || is_followed(&place));
    step(&application, 1);
    succeed(&place, "BACKUP LOG app TO DISK = 'd:\\1.trn'");
    assert_eq!(server.stop(), Some(0));
    for number in 2..=3 {
        step(&application, number);
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        application
            .query_row(checkpoint, [], |_| Ok(()))
            .expect("a checkpoint");
    }
    assert_eq!(closing(&place), [""; 0]);
    let server = Served::start(&place, &["--follow-every", "100ms"]);
    wait_for("a differential backup", || !closing(&place).is_empty());
    wait_for("that the gap is closed", || {
        follower(&place)["is_gap_open"] == false
    });
    let row = follower(&place);
    assert_eq!(row["gaps"], 1, "{row}");
    step(&application, 4);
    succeed(&place, "BACKUP LOG app TO DISK = 'd:\\2.trn'");
    let differential = closing(&place).remove(0);
    let to = place.text("copy.db");
    place.succeed(&[
        "restore",
        "full.bak",
        "1.trn",
        &differential,
        "2.trn",
        "--to",
        &to,
    ]);
    assert_eq!(last(&place, "copy.db"), 4);
    assert_eq!(server.stop(), Some(0));
    assert_eq!(closing(&place).len(), 1);
}

/// A gap behind a full backup and a log backup that `back_up` makes, and a server that has found it.
fn behind_a_gap(place: &Place, back_up: impl Fn(&Place)) -> Served {
    let application = application(place);
    let server = Served::start(place, &["--follow-every", "100ms"]);
    succeed(place, "ALTER DATABASE app SET RECOVERY FULL");
    back_up(place);
    wait_for("a follower", || is_followed(place));
    assert_eq!(server.stop(), Some(0));
    for number in 1..=2 {
        step(&application, number);
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        application
            .query_row(checkpoint, [], |_| Ok(()))
            .expect("a checkpoint");
    }
    let server = Served::start(place, &["--follow-every", "100ms"]);
    wait_for("a gap", || follower(place)["gaps"] == 1);
    server
}

#[test]
fn a_gap_behind_an_encrypted_backup_is_closed_for_the_same_certificate() {
    let place = registered();
    let server = behind_a_gap(&place, |place| {
        succeed(
            place,
            "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'correct horse battery'
             CREATE CERTIFICATE other WITH SUBJECT = 'Others', EXPIRY_DATE = '20990101'
             CREATE CERTIFICATE own WITH SUBJECT = 'Backups', EXPIRY_DATE = '20990101'
             BACKUP DATABASE app TO DISK = 'd:\\full.bak'
                 WITH ENCRYPTION (ALGORITHM = AES_256, SERVER CERTIFICATE = own)",
        );
    });
    wait_for("a differential backup", || !closing(&place).is_empty());
    wait_for("that the gap is closed", || {
        follower(&place)["is_gap_open"] == false
    });
    let differential = closing(&place).remove(0);
    let label = |file: &str| {
        let run = place.succeed(&["header", file, "--json"]);
        let rows: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
        rows[0]["EncryptorThumbprint"].clone()
    };
    assert!(label("full.bak").is_string());
    assert_eq!(label(&differential), label("full.bak"));
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_gap_behind_a_backup_that_the_server_cannot_protect_alike_stays_open() {
    let own = ["--encrypt-to", "own.cer", "--passphrase-file", "secret"];
    // The last one has another reader, who could not read what is made for the certificate alone.
    for how in [&own[2..], &["--sign-with", "secret"], &own] {
        let place = registered();
        match how {
            ["--sign-with", key] => drop(place.succeed(&["signing-key", key])),
            _ => std::fs::write(place.path("secret"), "correct horse").expect("a passphrase"),
        }
        let server = behind_a_gap(&place, |place| {
            succeed(
                place,
                "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'correct horse battery'
                 CREATE CERTIFICATE own WITH SUBJECT = 'Backups', EXPIRY_DATE = '20990101'
                 BACKUP CERTIFICATE own TO FILE = 'd:\\own.cer'",
            );
            let full = ["backup", "app", "--to", "full.bak"];
            well(place, &[&full[..], how].concat());
        });
        wait_for("a refusal", || {
            let run = on(&place, &["check", "--database", "app"]);
            run.out.contains("log-gap-open") || run.out.contains("no backup was made since")
        });
        assert_eq!(server.stop(), Some(0));
        assert_eq!(closing(&place), [""; 0], "{how:?}");
    }
}

#[test]
fn a_restore_over_a_followed_database_and_its_deletion_send_the_follower_away() {
    let place = registered();
    let application = application(&place);
    succeed(
        &place,
        "ALTER DATABASE app SET RECOVERY FULL
         BACKUP DATABASE app TO DISK = 'd:\\full.bak'",
    );
    let server = Served::start(&place, &["--follow-every", "100ms"]);
    wait_for("a follower", || is_followed(&place));
    step(&application, 1);
    drop(application);
    succeed(
        &place,
        "RESTORE DATABASE app FROM DISK = 'd:\\full.bak' WITH REPLACE",
    );
    assert_eq!(last(&place, "app.db"), 0);
    // It comes back, and what it finds is another file.
    wait_for("a gap", || follower(&place)["gaps"] == 1);
    succeed(&place, "DROP DATABASE app");
    wait_for("no follower", || follower(&place).is_null());
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_spool_without_room_holds_the_log_or_leaves_a_gap() {
    for (when_full, gaps) in [("hold", 0), ("gap", 1)] {
        let place = registered();
        let application = application(&place);
        succeed(
            &place,
            "ALTER DATABASE app SET RECOVERY FULL
             BACKUP DATABASE app TO DISK = 'd:\\full.bak'",
        );
        let options = [
            "--follow-every",
            "50ms",
            "--spool-max",
            "1M",
            "--when-full",
            when_full,
        ];
        let server = Served::start(&place, &options);
        wait_for("a follower", || is_followed(&place));
        application
            .execute_batch("CREATE TABLE big(b BLOB)")
            .expect("a table");
        for number in 1..=40 {
            let insert = "INSERT INTO big VALUES (randomblob(100000))";
            application.execute_batch(insert).expect("a commit");
            step(&application, number);
        }
        wait_for("that there is no room", || {
            let held = follower(&place)["held"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            held.contains("spool full")
        });
        let run = on(&place, &["check", "--database", "app"]);
        assert_eq!(run.code, Some(2), "{}", run.out);
        assert!(run.out.contains("has no room"), "{}", run.out);
        if when_full == "gap" {
            // Nothing holds the log now: it begins again, over what was not captured.
            application
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
                .expect("a checkpoint");
            step(&application, 41);
        }
        // Each log backup makes room for a part of what is held.
        let mut files = vec!["full.bak".to_owned()];
        let is_over = || {
            let row = follower(&place);
            row["error"].is_null() && row["lag_bytes"] == 0
        };
        while !is_over() {
            let name = format!("{}.trn", files.len());
            let made = on(&place, &["backup", "app", "--log", "--to", &name]);
            // What is not all that was committed is an error, and counts.
            if made.code == Some(0) || made.err.contains("50380") {
                files.push(name);
            }
            assert!(files.len() < 30, "{}", follower(&place));
            std::thread::sleep(Duration::from_millis(1500));
        }
        let row = follower(&place);
        assert_eq!(row["gaps"], gaps, "{when_full}: {row}");
        if when_full == "hold" {
            succeed(&place, "BACKUP LOG app TO DISK = 'd:\\last.trn'");
            files.push("last.trn".to_owned());
            let to = place.text("copy.db");
            let mut arguments = vec!["restore"];
            arguments.extend(files.iter().map(String::as_str));
            arguments.extend(["--to", &to]);
            place.succeed(&arguments);
            assert_eq!(last(&place, "copy.db"), 40);
        }
        assert_eq!(server.stop(), Some(0));
    }
}

#[test]
fn a_backup_beside_the_beginning_of_a_follower_breaks_no_chain() {
    let (place, application, server) = backed_up();
    for number in 1..=3 {
        step(&application, number);
        succeed(
            &place,
            &format!("BACKUP LOG app TO DISK = 'd:\\{number}.trn'"),
        );
        // The full backup knows its end by the second.
        std::thread::sleep(Duration::from_millis(1100));
    }
    // Each moment at the end of a log backup is in one of them.
    let made = std::fs::metadata(place.path("2.trn")).expect("a log backup");
    let made = made.modified().expect("a time");
    let made = made.duration_since(std::time::UNIX_EPOCH).expect("later");
    let made = u64::try_from(made.as_millis()).expect("milliseconds");
    for at in (made - 60..made - 5).step_by(1) {
        let (seconds, ms) = (at / 1000, at % 1000);
        let utc = format!("{}.{ms:03}+00:00", moment_of(seconds));
        let to = place.text("at.db");
        let _gone = std::fs::remove_file(&to);
        let run = place.run(&[
            "restore", "full.bak", "1.trn", "2.trn", "3.trn", "--at", &utc, "--to", &to,
        ]);
        assert_eq!(run.code, Some(0), "{utc}: {}", run.err);
    }
    assert_eq!(server.stop(), Some(0));
}

/// `2026-11-30 03:04:05`, UTC.
fn moment_of(seconds: u64) -> String {
    let database = Connection::open_in_memory().expect("a database");
    let text = "SELECT datetime(?1, 'unixepoch')";
    database
        .query_row(text, [seconds.cast_signed()], |row| row.get(0))
        .expect("a moment")
}
