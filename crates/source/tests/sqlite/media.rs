//! Media that refuse writes: mounted read-only, or full. Runs in a separate mount namespace, where
//! allowed.

use std::fs;
use std::path::Path;
use std::process::Command;

use rusqlite::Connection;
use windlass_io::AlignedBuffer;
use windlass_source::sqlite::{SnapshotOptions, SqliteSnapshot, SqliteTarget};
use windlass_source::{Error, RestoreTarget, Snapshot};

use crate::locks::notes;
use crate::process::{Process, command, say};
use crate::support::{image, open, request};

/// Runs `role` after the shell script `mounts`, in which the folder is `$1`.
pub(crate) fn elsewhere(role: &str, folder: &Path, mounts: &str) -> Option<String> {
    let play = command(role, folder);
    let mut command = Command::new("unshare");
    command.args([
        "-m",
        "sh",
        "-c",
        &format!("{mounts} && shift && exec \"$@\""),
        "sh",
    ]);
    command
        .arg(folder)
        .arg(play.get_program())
        .args(play.get_args());
    for (name, value) in play.get_envs() {
        command.env(name, value.unwrap());
    }
    let mut process = Process::of(command);
    if process.answer() != "ready" {
        println!("SKIPPED: {role}: cannot mount in a namespace");
        return None;
    }
    Some(process.answer())
}

#[test]
fn a_read_only_medium_is_read_without_writing_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let plain = notes(folder.path());
    let wal = folder.path().join("wal.db");
    let pending = folder.path().join("pending.db");
    for path in [&wal, &pending] {
        fs::copy(&plain, path).unwrap();
        Connection::open(path)
            .unwrap()
            .query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))
            .unwrap();
    }
    let connection = Connection::open(&pending).unwrap();
    connection
        .execute_batch("PRAGMA wal_autocheckpoint = 0; UPDATE note SET body = randomblob(2000)")
        .unwrap();
    fs::copy(&pending, folder.path().join("left.db")).unwrap();
    fs::copy(
        folder.path().join("pending.db-wal"),
        folder.path().join("left.db-wal"),
    )
    .unwrap();
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(connection);
    let hot = folder.path().join("hot.db");
    fs::copy(&plain, &hot).unwrap();
    assert_eq!(Process::start("crash", &hot).answer(), "");
    let answer = elsewhere(
        "read-only medium",
        folder.path(),
        "mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\"",
    );
    assert!(
        matches!(answer.as_deref(), None | Some("done")),
        "{answer:?}"
    );
}

/// The role in the namespace.
pub(crate) fn on_read_only_medium(folder: &Path) {
    assert!(
        fs::write(folder.join("x"), "").is_err(),
        "mounted read-only"
    );
    say("ready");
    let plain = fs::read(folder.join("notes.db")).unwrap();
    assert!(image(open(&folder.join("notes.db")), 1) == plain);
    let wal = open(&folder.join("wal.db"));
    assert!(wal.identity().is_read_only);
    assert!(image(wal, 1) == fs::read(folder.join("wal.db")).unwrap());
    let folded = fs::read(folder.join("pending.db")).unwrap();
    assert!(
        image(open(&folder.join("left.db")), 1) == folded,
        "the log that was left is honoured"
    );
    let error =
        SqliteSnapshot::open(&folder.join("hot.db"), &SnapshotOptions::default()).unwrap_err();
    assert!(matches!(error, Error::HotJournal { .. }), "{error}");
    let error = SqliteTarget::begin(&request(&folder.join("new.db"), 1)).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    say("done");
}

#[test]
fn a_full_disk_is_told_before_and_while_it_fills() {
    let folder = tempfile::tempdir().unwrap();
    let answer = elsewhere(
        "full disk",
        folder.path(),
        "mount -t tmpfs -o size=1m none \"$1\"",
    );
    assert!(
        matches!(answer.as_deref(), None | Some("done")),
        "{answer:?}"
    );
}

/// The role in the namespace.
pub(crate) fn on_full_disk(folder: &Path) {
    say("ready");
    let path = folder.join("new.db");
    let error = SqliteTarget::begin(&request(&path, 2 << 20)).unwrap_err();
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    fs::write(folder.join("filler"), vec![1; 600 << 10]).unwrap();
    let target = SqliteTarget::begin(&request(&path, 300 << 10)).unwrap();
    let buffer = AlignedBuffer::new(300 << 10);
    target.write(1, 0, &buffer[..300 << 10]).unwrap();
    let error = SqliteTarget::begin(&request(&folder.join("second.db"), 300 << 10)).unwrap_err();
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    drop(target);
    let left: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["filler"]);
    say("done");
}
