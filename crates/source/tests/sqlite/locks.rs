//! Locks: those we wait for, those we must not lose, those left by others.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use windlass_source::Error;
use windlass_source::sqlite::{SnapshotOptions, SqliteSnapshot};

use crate::process::Process;
use crate::support::{image, open};

/// A database in rollback mode with a table for notes.
pub(crate) fn notes(folder: &Path) -> PathBuf {
    let path = folder.join("notes.db");
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE note(body);
             WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 200)
               INSERT INTO note SELECT zeroblob(3000) FROM n;",
        )
        .unwrap();
    path
}

fn one_write(path: &Path) -> String {
    Process::of(crate::process::command("one write", path)).answer()
}

#[test]
fn a_backup_does_not_drop_the_locks_of_other_connections_in_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = notes(folder.path());
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for _ in 0..2 {
        image(open(&path), 2);
        assert_eq!(
            one_write(&path),
            "busy",
            "the write lock of this process is still there"
        );
    }
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(one_write(&path), "written");
}

#[test]
fn a_writer_in_rollback_mode_waits_for_the_copy_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = notes(folder.path());
    let before = fs::read(&path).unwrap();
    let snapshot = open(&path);
    let mut writer = Process::start("patient write", &path);
    std::thread::sleep(Duration::from_millis(200));
    assert!(!writer.has_ended(), "it waits");
    assert!(image(snapshot, 1) == before);
    assert_eq!(writer.answer(), "written");
    assert!(fs::read(&path).unwrap() != before);
}

#[test]
fn a_locked_database_is_waited_for_but_not_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let path = notes(folder.path());
    let _locker = Process::start("exclusive for 300 ms", &path);
    image(open(&path), 1);

    let _locker = Process::start("exclusive", &path);
    let busy_timeout = Duration::from_millis(200);
    let begun = Instant::now();
    let options = SnapshotOptions {
        busy_timeout,
        ..SnapshotOptions::default()
    };
    let error = SqliteSnapshot::open(&path, &options).unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error}");
    assert!((busy_timeout..busy_timeout * 10).contains(&begun.elapsed()));
}

#[test]
fn content_that_sqlite_refuses_is_locked_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = notes(folder.path());
    // Torn after it was opened by the writer, whose lock we must respect.
    let _locker = Process::start("exclusive", &path);
    let mut bytes = fs::read(&path).unwrap();
    bytes[..16].fill(0xEE);
    let copy = folder.path().join("unreadable.db");
    fs::write(&copy, &bytes).unwrap();
    image(open(&copy), 1);
    fs::rename(&path, folder.path().join("moved.db")).unwrap();
    let options = SnapshotOptions {
        busy_timeout: Duration::from_millis(100),
        ..SnapshotOptions::default()
    };
    let error = SqliteSnapshot::open(&folder.path().join("moved.db"), &options).unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error}");
}

#[test]
fn a_hot_journal_is_rolled_back_before_anything_is_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = notes(folder.path());
    let before = fs::read(&path).unwrap();
    let mut writer = Process::start("crash", &path);
    assert_eq!(writer.answer(), "", "it died");
    assert!(
        fs::read(&path).unwrap() != before,
        "half a transaction is in the file"
    );
    assert!(folder.path().join("notes.db-journal").exists());
    assert!(image(open(&path), 1) == before);
    assert!(!folder.path().join("notes.db-journal").exists());
}

#[test]
fn a_file_that_is_replaced_under_the_copy_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = notes(folder.path());
    let snapshot = open(&path);
    fs::rename(&path, folder.path().join("moved.db")).unwrap();
    fs::write(&path, b"another").unwrap();
    let error = windlass_source::Snapshot::close(&snapshot).unwrap_err();
    assert!(
        matches!(error, Error::ChangedWhileReading { .. }),
        "{error}"
    );
}
