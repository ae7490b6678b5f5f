//! Other users of a database: a backup waits for their locks, and they wait for the backup.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::Value as Json;

use crate::sales::MAKE;
use crate::support::{Place, Run, make_database, rows, succeed};

/// Starts the program; its output comes through pipes.
fn start(place: &Place, arguments: &[&str]) -> Child {
    place
        .command(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// What it said at its end.
fn end(child: Child) -> Run {
    let output = child.wait_with_output().expect("it ends");
    Run {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn locked(path: &Path) -> Connection {
    let connection = Connection::open(path).expect("a database");
    connection.execute_batch("BEGIN EXCLUSIVE").expect("a lock");
    connection
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process catches a signal.
fn catches(process: u32, signal: u32) -> bool {
    has_in_mask(&process.to_string(), "SigCgt:", signal)
}

/// Whether a signal is in a mask of a process, from proc(5).
fn has_in_mask(process: &str, mask: &str, signal: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix(mask)?.trim(), 16).ok());
    mask.unwrap_or_default() & (1 << (signal - 1)) != 0
}

/// Whether a process has a file open.
fn has_open(process: u32, path: &Path) -> bool {
    let descriptors = std::fs::read_dir(format!("/proc/{process}/fd"));
    let mut links = descriptors.into_iter().flatten().flatten();
    links.any(|link| std::fs::read_link(link.path()).is_ok_and(|target| target == path))
}

#[test]
fn a_signal_ends_the_waiting_for_a_lock_at_once() {
    let place = Place::new();
    let _locked = locked(&place.path("app.db"));
    for (name, signal) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        // What these tests were started with, as nohup does, the program inherits and keeps.
        if has_in_mask("self", "SigIgn:", signal) {
            continue;
        }
        let arguments = [
            "backup",
            "app.db",
            "--to",
            "app.bak",
            "--json",
            "--lock-timeout",
            "600",
        ];
        let child = start(&place, &arguments);
        wait_until("signals are caught", || catches(child.id(), signal));
        let database = place.path("app.db").canonicalize().expect("the database");
        wait_until("the database is open", || has_open(child.id(), &database));
        let begun = Instant::now();
        let sent = Command::new("kill")
            .args([format!("-{name}"), child.id().to_string()])
            .status();
        assert!(sent.expect("kill").success());
        let run = end(child);
        assert_eq!(
            (run.code, run.numbers()),
            (Some(1), vec![3204, 3013]),
            "{name}"
        );
        assert!(begun.elapsed() < Duration::from_secs(120), "{name}");
        assert!(!place.path("app.bak").exists());
    }
}

#[test]
fn nohup_keeps_the_hang_up_ignored() {
    let place = Place::new();
    let _locked = locked(&place.path("app.db"));
    let program = place.command(&[]);
    let mut child = Command::new("nohup")
        .arg(program.get_program())
        .args([
            "backup",
            "app.db",
            "--to",
            "app.bak",
            "--lock-timeout",
            "60",
        ])
        .current_dir(place.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("nohup");
    wait_until("signals are caught", || catches(child.id(), 15));
    assert!(!catches(child.id(), 1));
    child.kill().expect("it ends");
    child.wait().expect("it ends");
}

#[test]
fn how_long_a_lock_is_waited_for_can_be_said() {
    let place = Place::new();
    let path = place.path("app.db");
    let lock = locked(&path);
    let run = place.run(&[
        "backup",
        "app.db",
        "--to",
        "app.bak",
        "--lock-timeout",
        "0.2",
    ]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.err.contains("50003") && run.err.contains("for 0.2 seconds"),
        "{}",
        run.err
    );
    let script = "SET LOCK_TIMEOUT 300; BACKUP DATABASE app TO DISK = 'd:\\app.bak'";
    let run = place.sql(script);
    assert!(run.err.contains("for 0.3 seconds"), "{}", run.err);

    let child = start(
        &place,
        &[
            "backup",
            "app.db",
            "--to",
            "app.bak",
            "--lock-timeout",
            "60",
        ],
    );
    std::thread::sleep(Duration::from_millis(300));
    lock.execute_batch("ROLLBACK")
        .expect("the lock is given up");
    let run = end(child);
    assert_eq!(run.code, Some(0), "{}", run.err);
}

#[test]
fn an_engine_database_in_use_is_waited_for_where_that_is_said() {
    let place = Place::new();
    succeed(&place, MAKE);
    let instance = place.text("instance");
    let query = "USE Sales; SELECT count(*) FROM orders; WAITFOR DELAY '00:00:02'";
    let mut user = start(
        &place,
        &["sql", "--instance", &instance, "--json", "-Q", query],
    );
    let mut said = BufReader::new(user.stdout.take().expect("its output"));
    let mut line = String::new();
    said.read_line(&mut line).expect("the count");
    let backup = ["backup", "Sales", "--to", "s.bak", "--instance", &instance];
    let run = place.run(&backup);
    assert!(run.err.contains("in use"), "{}", run.err);
    place.succeed(&[&backup[..], &["--lock-timeout", "60"]].concat());
    said.read_to_string(&mut line).expect("the rest");
    assert_eq!(end(user).code, Some(0));
}

fn report(place: &Place, further: &[&str]) -> Json {
    let arguments = ["backup", "app.db", "--to", "app.bak", "--format", "--json"];
    let run = place.succeed(&[&arguments[..], further].concat());
    serde_json::from_str(&run.out).expect(&run.out)
}

#[test]
fn a_compressed_backup_of_a_rollback_database_is_copied_first_and_a_plain_one_is_not() {
    let place = Place::new();
    let copied = |report: &Json| {
        report["plan"]["temporary_copy"]["value"]
            .as_str()
            .map(str::to_owned)
    };
    let staged = report(&place, &[]);
    assert!(matches!(copied(&staged).as_deref(), Some("copy" | "clone")));
    for further in [&["--compress", "none"][..], &["--no-temp-copy"]] {
        let plain = report(&place, further);
        assert_eq!(copied(&plain).as_deref(), Some("none"), "{further:?}");
        assert!(plain["plan"]["temporary_copy"]["because"].is_string());
        assert!(plain["writers_locked_out_seconds"].as_f64() > Some(0.0));
    }
    let run = place.succeed(&["backup", "app.db", "--to", "app.bak", "--plan"]);
    assert!(format!("{}{}", run.out, run.err).contains("writers locked out for"));
    assert!(
        format!("{}{}", run.out, run.err).contains("\ntemporary copy "),
        "{}",
        run.err
    );

    Connection::open(place.path("app.db"))
        .and_then(|app| app.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())))
        .expect("another mode");
    let wal = report(&place, &[]);
    assert_eq!(copied(&wal), None);
    assert!(wal["writers_locked_out_seconds"].is_null());
}

#[test]
fn writers_go_on_while_a_staged_backup_runs_and_wait_for_one_that_is_not() {
    let place = Place::new();
    let path = place.path("app.db");
    std::fs::remove_file(&path).expect("it goes");
    make_database(&path, 2500);
    let write = || {
        let connection = Connection::open(&path).expect("a database");
        connection.busy_timeout(Duration::ZERO).expect("no waiting");
        connection.execute_batch("INSERT INTO t(body) VALUES ('later')")
    };
    let backup = [
        "backup",
        "app.db",
        "--max-rate",
        "2",
        "--compress",
        "none",
        "--to",
    ];
    let child = start(&place, &[&backup[..], &["staged.bak"]].concat());
    wait_until("the medium is begun", || {
        place.path("staged.bak.windlass-new").exists()
    });
    write().expect("nobody is in the way");
    let run = end(child);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(
        !run.err.contains("wait until the backup has read it"),
        "{}",
        run.err
    );
    place.succeed(&["restore", "staged.bak", "--to", "staged.db"]);
    assert_eq!(rows(&place.path("staged.db")), 2500);

    let child = start(
        &place,
        &[&backup[..], &["held.bak", "--no-temp-copy"]].concat(),
    );
    wait_until("the medium is begun", || {
        place.path("held.bak.windlass-new").exists()
    });
    write().expect_err("the backup holds the lock");
    let run = end(child);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let reported = "wait until the backup has read it, for about 1 seconds: no temporary copy is made (--no-temp-copy as given)";
    assert!(run.err.contains(reported), "{}", run.err);
}

#[test]
fn frozen_takes_no_lock_and_is_refused_for_the_page_engine() {
    let place = Place::new();
    let lock = locked(&place.path("app.db"));
    place.succeed(&["backup", "app.db", "--to", "app.bak", "--frozen"]);
    drop(lock);
    place.succeed(&["restore", "app.bak", "--to", "copy.db"]);
    assert_eq!(rows(&place.path("copy.db")), 400);
    succeed(&place, MAKE);
    let instance = place.text("instance");
    let run = place.run(&[
        "backup",
        "Sales",
        "--to",
        "s.bak",
        "--instance",
        &instance,
        "--frozen",
    ]);
    assert!(run.err.contains("50005"), "{}", run.err);
}
