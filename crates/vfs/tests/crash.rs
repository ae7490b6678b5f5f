//! A writing process is killed without warning: every acknowledged commit must exist, and beyond
//! them at most one transaction, complete.
#![expect(clippy::unwrap_used, reason = "helpers of a test")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{Folder, assert_sound, engine, run, value};

const CHILD: &str = "WINDLASS_VFS_TEST_CHILD";

/// Not a test by itself: the process that is killed runs this.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    common::register();
    let connection = engine(Path::new(&path));
    run(&connection, "PRAGMA cache_size = 6");
    let first: i64 = value(&connection, "SELECT coalesce(max(n), 0) + 1 FROM done");
    for number in first.. {
        // An occasional large transaction, so that pages spill and the log gets long groups.
        let rows = if number % 7 == 0 { 600 } else { 3 };
        run(
            &connection,
            &format!(
                "BEGIN; INSERT INTO done VALUES ({number});
                 INSERT INTO part WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {rows})
                   SELECT {number}, i, hex(randomblob(60)) FROM c;
                 UPDATE part SET text = hex(randomblob(61)) WHERE n = {number} - 1;
                 DELETE FROM part WHERE n < {number} - 20; COMMIT"
            ),
        );
        if number % 50 == 0 {
            run(&connection, "VACUUM");
        }
        println!("committed {number}");
        std::io::stdout().flush().unwrap();
    }
}

fn spawn(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "child_that_writes_until_it_is_killed",
            "--nocapture",
        ])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn rounds(count: u64) {
    let folder = Folder::new();
    let path = folder.path("a.db");
    run(
        &folder.engine("a.db"),
        "CREATE TABLE done(n INTEGER PRIMARY KEY); CREATE TABLE part(n, i, text); CREATE INDEX p ON part(n, i)",
    );
    let mut known = 0;
    for round in 0..count {
        let mut child = spawn(&path);
        let output = child.stdout.take().unwrap();
        let listener = std::thread::spawn(move || {
            let mut last = 0;
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // The harness may have printed the beginning of the same line.
                if let Some((_, number)) = line.split_once("committed ") {
                    last = number.parse().unwrap_or(last);
                }
            }
            last
        });
        std::thread::sleep(Duration::from_millis(300 + round * 37 % 400));
        child.kill().unwrap();
        child.wait().unwrap();
        let acknowledged: i64 = listener.join().unwrap();
        let connection = folder.engine("a.db");
        let last: i64 = value(&connection, "SELECT coalesce(max(n), 0) FROM done");
        known = acknowledged.max(known);
        assert!(
            last == known || last == known + 1,
            "round {round}: {known} acknowledged, {last} found"
        );
        known = last;
        let count: i64 = value(&connection, "SELECT count(*) FROM done");
        assert_eq!(count, last, "round {round}: a transaction is missing");
        let rows: i64 = value(
            &connection,
            "SELECT count(*) FROM part WHERE n = (SELECT max(n) FROM done)",
        );
        let expected = match last {
            0 => 0,
            last if last % 7 == 0 => 600,
            _ => 3,
        };
        assert_eq!(rows, expected, "round {round}: half a transaction");
        assert_sound(&connection);
    }
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    rounds(6);
}

#[test]
#[ignore = "long: run with --ignored"]
fn slow_what_was_acknowledged_survives_three_hundred_kills() {
    rounds(300);
}
