//! Log backups of SQLite files, whose log a follower has spooled, and restores to any moment of it.

use rusqlite::Connection;
use serde_json::Value as Json;

use crate::support::{Place, Run, ask, on, registered, sql, succeed, well};

/// The application, in WAL mode. It makes no checkpoints by itself.
fn application(place: &Place) -> Connection {
    let application = Connection::open(place.path("app.db")).expect("the database");
    application
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
             CREATE TABLE step(n INTEGER); INSERT INTO step VALUES (0);",
        )
        .expect("WAL mode");
    application
}

pub(crate) fn step(application: &Connection, number: u32) {
    let insert = format!("INSERT INTO step VALUES ({number})");
    application.execute_batch(&insert).expect("a commit");
}

/// Whatever was not backed up yet is in no log that can be found again.
pub(crate) fn lose(application: &Connection) {
    for _ in 0..2 {
        step(application, 99);
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy: i64 = application
            .query_row(checkpoint, [], |row| row.get(0))
            .expect("a checkpoint");
        assert_eq!(busy, 0);
    }
}

/// `app` keeps its log, and has a full backup and log backups of one more step each.
pub(crate) fn chain(place: &Place, logs: u32) -> Connection {
    let application = application(place);
    succeed(
        place,
        "ALTER DATABASE app SET RECOVERY FULL
         BACKUP DATABASE app TO DISK = 'd:\\full.bak'",
    );
    for number in 1..=logs {
        step(&application, number);
        succeed(
            place,
            &format!("BACKUP LOG app TO DISK = 'd:\\{number}.trn'"),
        );
    }
    application
}

fn restore_full(place: &Place) {
    succeed(
        place,
        "RESTORE DATABASE copy FROM DISK = 'd:\\full.bak' WITH NORECOVERY, REPLACE, MOVE 'app' TO 'd:\\copy.db'",
    );
}

fn restore_log(file: u32, options: &str) -> String {
    format!("RESTORE LOG copy FROM DISK = 'd:\\{file}.trn' WITH {options}")
}

/// The highest step in a database that is whole.
#[track_caller]
pub(crate) fn last(place: &Place, file: &str) -> i64 {
    let database = Connection::open(place.path(file)).expect("a database");
    let text = |pragma| database.query_row::<String, _, _>(pragma, [], |row| row.get(0));
    assert_eq!(text("PRAGMA integrity_check").expect("a check"), "ok");
    database
        .query_row("SELECT max(n) FROM step", [], |row| row.get(0))
        .expect("steps")
}

#[track_caller]
fn refused(run: &Run, numbers: &[u64]) {
    assert_eq!(run.numbers(), numbers, "{}", run.err);
}

#[track_caller]
fn now(place: &Place) -> String {
    let at = ask(place, "instance", "SELECT sysdatetime() AS at");
    at[0]["at"].as_str().expect("a time")[..23].replace('T', " ")
}

#[test]
fn a_full_backup_and_its_log_backups_restore_to_the_end_of_each() {
    let place = registered();
    let application = chain(&place, 3);
    step(&application, 4);
    for end in 1..=3 {
        restore_full(&place);
        for log in 1..end {
            succeed(&place, &restore_log(log, "NORECOVERY"));
        }
        succeed(&place, &restore_log(end, "RECOVERY"));
        assert_eq!(last(&place, "copy.db"), i64::from(end));
        succeed(&place, "DROP DATABASE copy");
    }
    let sets = ask(
        &place,
        "instance",
        "SELECT type, first_lsn, last_lsn, recovery_model FROM msdb.dbo.backupset ORDER BY backup_set_id",
    );
    let kinds: Vec<&str> = sets.iter().filter_map(|row| row["type"].as_str()).collect();
    assert_eq!(kinds, ["D", "L", "L", "L"]);
    for pair in sets[1..].windows(2) {
        assert_eq!(pair[0]["last_lsn"], pair[1]["first_lsn"]);
    }
    assert!(sets.iter().all(|row| row["recovery_model"] == "FULL"));
    let header = ask(
        &place,
        "instance",
        "RESTORE HEADERONLY FROM DISK = 'd:\\2.trn'",
    );
    assert_eq!(header[0]["BackupType"], 2);
    assert_eq!(header[0]["FirstLSN"], sets[2]["first_lsn"]);
    succeed(&place, "RESTORE VERIFYONLY FROM DISK = 'd:\\2.trn'");
    let model = ask(
        &place,
        "instance",
        "SELECT recovery_model_desc AS model FROM sys.databases WHERE name = 'app'",
    );
    assert_eq!(model[0]["model"], "FULL");
}

#[test]
fn the_newest_state_of_full_differential_and_logs_is_found_by_the_plain_command() {
    let place = registered();
    let application = chain(&place, 2);
    succeed(
        &place,
        "BACKUP DATABASE app TO DISK = 'd:\\diff.bak' WITH DIFFERENTIAL",
    );
    step(&application, 3);
    succeed(&place, "BACKUP LOG app TO DISK = 'd:\\3.trn'");
    let to = place.text("plain.db");
    place.succeed(&[
        "restore", "3.trn", "diff.bak", "1.trn", "full.bak", "2.trn", "--to", &to,
    ]);
    assert_eq!(last(&place, "plain.db"), 3);
    // The differential took the place of the logs before it.
    std::fs::remove_file(place.path("1.trn")).expect("a log");
    let to = place.text("other-plain.db");
    place.succeed(&["restore", "3.trn", "diff.bak", "full.bak", "--to", &to]);
    assert_eq!(last(&place, "other-plain.db"), 3);
    let to = place.text("third.db");
    let run = place.run(&["restore", "3.trn", "full.bak", "--to", &to]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("the log before it"), "{}", run.err);
}

#[test]
fn a_time_stops_the_restore_between_two_commits_of_one_log_backup() {
    let place = registered();
    let application = chain(&place, 1);
    let pause = || std::thread::sleep(std::time::Duration::from_millis(30));
    step(&application, 2);
    // Each log backup is a moment; COPY_ONLY leaves the log as it is.
    succeed(
        &place,
        "BACKUP LOG app TO DISK = 'd:\\copy.trn' WITH COPY_ONLY",
    );
    pause();
    let at = now(&place);
    pause();
    step(&application, 3);
    succeed(&place, "BACKUP LOG app TO DISK = 'd:\\2.trn'");
    let stop = format!("STOPAT = '{at}'");
    restore_full(&place);
    let run = succeed(&place, &restore_log(1, &format!("RECOVERY, {stop}")));
    assert!(run.numbers().contains(&4322), "{}", run.err);
    refused(&sql(&place, "USE copy"), &[927]);
    succeed(&place, &restore_log(2, &format!("RECOVERY, {stop}")));
    assert_eq!(last(&place, "copy.db"), 2);
    let early = "RESTORE DATABASE copy FROM DISK = 'd:\\full.bak' \
                 WITH REPLACE, STOPAT = '2020-01-01', MOVE 'app' TO 'd:\\copy.db'";
    refused(&sql(&place, early), &[4338, 3013]);
    restore_full(&place);
    let marked = restore_log(1, "STOPATMARK = 'lsn:1:2:3'");
    refused(&sql(&place, &marked), &[50090, 3013]);
    // What was refused has changed nothing.
    succeed(&place, &restore_log(1, "NORECOVERY"));
    succeed(&place, &restore_log(2, "RECOVERY"));
    assert_eq!(last(&place, "copy.db"), 3);
}

#[test]
fn what_does_not_continue_the_sequence_is_refused_and_it_stays_open() {
    let place = registered();
    let application = chain(&place, 3);
    refused(&sql(&place, &restore_log(1, "RECOVERY")), &[3118, 3013]);
    restore_full(&place);
    refused(&sql(&place, &restore_log(2, "RECOVERY")), &[4305, 3013]);
    let wrong = "RESTORE LOG copy FROM DISK = 'd:\\full.bak'";
    refused(&sql(&place, wrong), &[3135, 3013]);
    let wrong = "RESTORE DATABASE copy FROM DISK = 'd:\\1.trn'";
    refused(&sql(&place, wrong), &[3135, 3013]);
    let run = sql(&place, &restore_log(1, "STOPAT = '2020-01-01'"));
    refused(&run, &[50091, 3013]);
    succeed(&place, &restore_log(1, "NORECOVERY"));
    succeed(&place, &restore_log(2, "NORECOVERY"));
    refused(&sql(&place, &restore_log(1, "NORECOVERY")), &[4326, 3013]);
    succeed(&place, "RESTORE DATABASE copy WITH RECOVERY");
    assert_eq!(last(&place, "copy.db"), 2);
    let tail = "BACKUP LOG app TO DISK = 'd:\\tail.trn' WITH NORECOVERY";
    refused(&sql(&place, tail), &[50005, 3013]);
    drop(application);
}

#[test]
fn a_gap_is_named_and_log_backups_go_on_behind_the_next_differential() {
    let place = registered();
    let application = chain(&place, 1);
    let before = now(&place);
    lose(&application);
    let log = |number: u32| format!("BACKUP LOG app TO DISK = 'd:\\{number}.trn'");
    let run = sql(&place, &log(2));
    refused(&run, &[4214, 50252, 3013]);
    step(&application, 3);
    succeed(
        &place,
        "BACKUP DATABASE app TO DISK = 'd:\\diff.bak' WITH DIFFERENTIAL",
    );
    step(&application, 100);
    succeed(&place, &log(2));
    succeed(&place, &log(3));
    let to = place.text("plain.db");
    place.succeed(&[
        "restore", "full.bak", "1.trn", "diff.bak", "2.trn", "3.trn", "--to", &to,
    ]);
    assert_eq!(last(&place, "plain.db"), 100);
    // The log behind the gap does not continue the one before it.
    restore_full(&place);
    succeed(&place, &restore_log(1, "NORECOVERY"));
    refused(&sql(&place, &restore_log(2, "RECOVERY")), &[4305, 3013]);
    succeed(&place, "RESTORE DATABASE copy WITH RECOVERY");
    assert_eq!(last(&place, "copy.db"), 1);
    // A time within the gap: the nearest moments are named.
    restore_full(&place);
    succeed(
        &place,
        "RESTORE DATABASE copy FROM DISK = 'd:\\diff.bak' WITH NORECOVERY",
    );
    let run = sql(&place, &restore_log(2, &format!("STOPAT = '{before}'")));
    refused(&run, &[50091, 3013]);
    assert!(run.err.contains("Nearest before"), "{}", run.err);
}

#[test]
fn a_log_backup_that_ends_at_a_gap_counts_and_is_an_error() {
    let place = registered();
    let application = chain(&place, 1);
    step(&application, 2);
    succeed(
        &place,
        "BACKUP LOG app TO DISK = 'd:\\copy.trn' WITH COPY_ONLY",
    );
    lose(&application);
    let run = sql(&place, "BACKUP LOG app TO DISK = 'd:\\2.trn'");
    refused(&run, &[4035, 4035, 3014, 50251]);
    assert_eq!(run.code, Some(1), "{}", run.out);
    let to = place.text("plain.db");
    place.succeed(&["restore", "full.bak", "1.trn", "2.trn", "--to", &to]);
    assert_eq!(last(&place, "plain.db"), 2);
    let rows = "SELECT type FROM msdb.dbo.backupset WHERE is_copy_only = 0";
    assert_eq!(ask(&place, "instance", rows).len(), 3);
    let run = on(&place, &["backup", "app", "--log", "--to", "3.trn"]);
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(run.err.contains("50252"), "{}", run.err);
}

#[test]
fn a_log_is_kept_only_of_a_database_in_wal_mode_and_until_that_is_ended() {
    let place = registered();
    let full = "ALTER DATABASE app SET RECOVERY FULL";
    let run = sql(&place, full);
    refused(&run, &[50090]);
    assert!(run.err.contains("differential"), "{}", run.err);
    refused(
        &sql(&place, "BACKUP LOG app TO DISK = 'd:\\1.trn'"),
        &[4208, 3013],
    );
    let folder = place.path("instance/follow");
    let kept = || std::fs::read_dir(&folder).map_or(0, Iterator::count);
    assert_eq!(kept(), 0);
    let application = application(&place);
    assert_eq!(succeed(&place, full).numbers(), [50250]);
    assert_eq!(
        succeed(&place, full).numbers(),
        [0_u64; 0],
        "it is so already"
    );
    refused(
        &sql(&place, "BACKUP LOG app TO DISK = 'd:\\1.trn'"),
        &[4214, 3013],
    );
    assert_eq!(kept(), 1);
    let simple = "ALTER DATABASE app SET RECOVERY SIMPLE";
    assert_eq!(succeed(&place, simple).numbers(), [50254]);
    assert_eq!(kept(), 0);
    succeed(&place, full);
    assert_eq!(kept(), 1);
    succeed(&place, "EXEC sp_detach_db 'app'");
    assert_eq!(kept(), 0);
    drop(application);
}

#[test]
fn a_spool_of_its_own_is_backed_up_without_an_instance() {
    let place = Place::new();
    let application = application(&place);
    let spool = place.text("spool");
    let follow = || {
        let mut follower = place
            .command(&["follow", "app.db", "--to", &spool, "--every", "50ms"])
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("a follower");
        while std::fs::read_dir(&spool).map_or(0, Iterator::count) < 2 {
            assert!(follower.try_wait().expect("a state").is_none());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        follower
    };
    let mut follower = follow();
    std::thread::sleep(std::time::Duration::from_millis(200));
    place.succeed(&["backup", "app.db", "--to", "full.bak", "--follow", &spool]);
    step(&application, 1);
    let log = |name: &str| {
        place.succeed(&[
            "backup", "app.db", "--log", "--follow", &spool, "--to", name,
        ]);
    };
    // The follower of another process is asked for a cut.
    log("1.trn");
    step(&application, 2);
    let pid = rustix::process::Pid::from_child(&follower);
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("a kill");
    follower.wait().expect("its end");
    // Without one, the log is proven to be whole.
    log("2.trn");
    let to = place.text("copy.db");
    place.succeed(&["restore", "full.bak", "1.trn", "2.trn", "--to", &to]);
    assert_eq!(last(&place, "copy.db"), 2);
    let nowhere = place.text("nowhere");
    let run = place.run(&[
        "backup", "app.db", "--log", "--follow", &nowhere, "--to", "3.trn",
    ]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(!place.path("nowhere").exists());
    let run = place.run(&["backup", "app.db", "--log", "--to", "3.trn"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    drop(application);
}

#[test]
fn retention_report_and_latest_know_the_chain_of_a_sqlite_file() {
    let place = registered();
    let media = place.text("media");
    std::fs::create_dir(&media).expect("a folder");
    let application = chain(&place, 2);
    let pause = std::time::Duration::from_millis(1200);
    std::thread::sleep(pause);
    succeed(&place, "BACKUP DATABASE app TO DISK = 'd:\\full2.bak'");
    for number in 3..=4 {
        step(&application, number);
        succeed(
            &place,
            &format!("BACKUP LOG app TO DISK = 'd:\\{number}.trn'"),
        );
    }
    let names = ["full.bak", "1.trn", "2.trn", "full2.bak", "3.trn", "4.trn"];
    for name in names {
        std::fs::rename(place.path(name), place.path(&format!("media/{name}"))).expect("moved");
    }
    let left = || {
        let names = std::fs::read_dir(&media).expect("the folder").flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    // Every moment of the last day is promised.
    let dry = on(&place, &["expire", &media, "--within", "1"]);
    assert_eq!(dry.out.matches("young enough").count(), 6, "{}", dry.out);
    // The day's state needs no log; the newest one needs those behind the second full backup.
    let dry = on(&place, &["expire", &media, "--daily", "1"]);
    assert!(dry.out.contains("the log before"), "{}", dry.out);
    assert_eq!(left().len(), 6);
    well(&place, &["expire", &media, "--daily", "1", "--delete"]);
    assert_eq!(left(), ["3.trn", "4.trn", "full2.bak"]);
    let latest = |words: &str, file: &str| {
        let restore = format!(
            "RESTORE DATABASE trial FROM DISK = [{media}/*] SOURCE = 'app' {words} WITH MOVE 'app' TO '{}', REPLACE",
            place.text(file)
        );
        well(&place, &["sqlbackup", "-SQL", &restore]);
        let found = last(&place, file);
        succeed(&place, "DROP DATABASE trial");
        found
    };
    assert_eq!(latest("LATEST_ALL", "all.db"), 4);
    assert_eq!(latest("LATEST_FULL", "full.db"), 2);
    // The files of the history are elsewhere, which the report says.
    let report = on(&place, &["report", "--rpo", "1h", "app"]);
    assert!(report.out.contains("Last log"), "{}", report.out);
    drop(application);
}

#[test]
fn a_moment_of_the_spool_goes_on_from_a_backup_before_it() {
    let place = Place::new();
    let application = application(&place);
    let spool = place.text("spool");
    let mut follower = place
        .command(&["follow", "app.db", "--to", &spool, "--every", "50ms"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("a follower");
    while std::fs::read_dir(&spool).map_or(0, Iterator::count) < 2 {
        assert!(follower.try_wait().expect("a state").is_none());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let pause = std::time::Duration::from_millis(1200);
    std::thread::sleep(pause);
    let full = || place.succeed(&["backup", "app.db", "--to", "full.bak", "--follow", &spool]);
    full();
    // An LSN of a SQLite file is a second.
    std::thread::sleep(pause);
    step(&application, 1);
    std::thread::sleep(pause);
    let at = place.text("at");
    std::fs::write(&at, "").expect("written");
    let at = std::fs::metadata(&at)
        .and_then(|at| at.modified())
        .expect("a time");
    let at = at
        .duration_since(std::time::UNIX_EPOCH)
        .expect("a time")
        .as_secs();
    let at = windlass_base::local_of_unix_ms(at * 1000);
    std::thread::sleep(pause);
    step(&application, 2);
    std::thread::sleep(pause);
    full();
    let to = place.text("copy.db");
    let restore = |at: &str| {
        place.run(&[
            "restore",
            "full.bak",
            "--follow",
            &spool,
            "--at",
            at,
            "--to",
            &to,
            "--replace",
        ])
    };
    let run = restore(&at);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(last(&place, "copy.db"), 1);
    // Before the first backup nothing is begun.
    std::fs::remove_file(&to).expect("removed");
    let run = restore("2020-01-01");
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("it ends after the moment"), "{}", run.err);
    assert!(!place.path("copy.db").exists());
    let pid = rustix::process::Pid::from_child(&follower);
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("a kill");
    follower.wait().expect("its end");
    drop(application);
}

#[test]
fn nothing_is_taken_from_the_spool_by_a_backup_that_keeps_nothing() {
    let place = registered();
    let application = chain(&place, 0);
    step(&application, 1);
    succeed(
        &place,
        "BACKUP LOG app TO DISK = 'NUL'
         BACKUP LOG app TO DISK = 'd:\\copy.trn' WITH COPY_ONLY
         BACKUP LOG app TO DISK = 'd:\\1.trn', DISK = 'd:\\1b.trn' WITH COMPRESSION",
    );
    restore_full(&place);
    succeed(
        &place,
        "RESTORE LOG copy FROM DISK = 'd:\\1.trn', DISK = 'd:\\1b.trn'",
    );
    assert_eq!(last(&place, "copy.db"), 1);
    let found: Vec<Json> = ask(
        &place,
        "instance",
        "SELECT type FROM msdb.dbo.backupset WHERE type = 'L'",
    );
    assert!(found.len() >= 2, "{found:?}");
    // Nobody follows it between two log backups.
    let run = on(&place, &["check", "--database", "app"]);
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(run.out.contains("nobody follows"), "{}", run.out);
    let metrics = well(&place, &["metrics"]);
    assert!(
        metrics
            .out
            .contains("windlass_log_followed{database=\"app\"} 0"),
        "{}",
        metrics.out
    );
}

#[test]
fn the_plain_command_finds_the_backups_that_lead_to_a_moment() {
    let place = registered();
    let application = chain(&place, 1);
    // Of the time of a full backup, its LSN has the whole seconds.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    step(&application, 2);
    succeed(&place, "BACKUP LOG app TO DISK = 'd:\\2.trn'");
    let pause = || std::thread::sleep(std::time::Duration::from_millis(30));
    pause();
    let at = now(&place);
    pause();
    step(&application, 3);
    succeed(&place, "BACKUP LOG app TO DISK = 'd:\\3.trn'");
    step(&application, 4);
    succeed(&place, "BACKUP LOG app TO DISK = 'd:\\4.trn'");
    let media = ["3.trn", "full.bak", "4.trn", "1.trn", "2.trn"];
    let restore = |media: &[&str], at: &str| {
        let rest = ["--to", "copy.db", "--replace", "--at", at];
        place.run(&[&["restore"], media, &rest].concat())
    };
    let run = restore(&media, &at);
    assert_eq!(run.code, Some(0), "{at}: {}", run.err);
    assert_eq!(last(&place, "copy.db"), 2);
    assert!(run.err.contains("the moment is before it"), "{}", run.err);
    // The wanted moment is between two states, of which the restore names both.
    let stopped = "; the next state that the log has: 2";
    assert!(run.err.contains(stopped), "{}", run.err);
    let run = restore(&media, &at);
    assert_eq!(run.code, Some(0), "over what is there: {}", run.err);
    for (media, at) in [
        (&media[..], "2020-01-01"),
        (&media[..], "2199-01-01"),
        (&media[..4], &at),
    ] {
        let run = restore(media, at);
        assert_eq!(run.code, Some(1), "{at}: {}", run.err);
        assert!(run.err.contains("50290"), "{at}: {}", run.err);
    }
    assert_eq!(last(&place, "copy.db"), 2, "nothing was restored over it");
}
