//! Databases in rollback mode that are copied first, so that their writers can continue.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use windlass_source::sqlite::{CopyFolder, CopyPolicy, SnapshotOptions, SqliteSnapshot};
use windlass_source::{Error, Snapshot, TemporaryCopy};

use crate::locks::notes;
use crate::media::elsewhere;
use crate::process::{Process, command, say};
use crate::support::{image, names, open};

fn into(folder: &Path, is_given: bool) -> SnapshotOptions {
    SnapshotOptions {
        temporary_copy: CopyPolicy::Into(vec![CopyFolder {
            path: folder.to_owned(),
            is_given,
        }]),
        ..SnapshotOptions::default()
    }
}

fn one_write(path: &Path) -> String {
    Process::of(command("one write", path)).answer()
}

#[test]
fn writers_go_on_as_soon_as_the_database_is_copied_aside() {
    let (folder, aside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = notes(folder.path());
    // A hole must stay a hole, and the data after it must be copied.
    let file = fs::File::options().append(true).open(&path).unwrap();
    let database_bytes = file.metadata().unwrap().len();
    file.set_len(database_bytes + (64 << 20)).unwrap();
    drop(file);
    let before = fs::read(&path).unwrap();
    let snapshot = SqliteSnapshot::open(&path, &into(aside.path(), true)).unwrap();
    assert_eq!(names(aside.path()), [""; 0], "a temporary copy has no name");
    assert_eq!(names(folder.path()), ["notes.db"]);
    let held = snapshot.writers_held().unwrap();
    assert!(
        !matches!(held.copied, TemporaryCopy::None(_)),
        "{:?}",
        held.copied
    );
    assert_eq!(one_write(&path), "written");
    assert!(image(snapshot, 3) == before);
    let after = SqliteSnapshot::open(&path, &into(aside.path(), true)).unwrap();
    let later = after.writers_held().unwrap().time;
    assert_eq!(after.writers_held().unwrap().time, later, "it is over");
}

#[test]
fn what_sqlite_does_not_read_is_copied_aside_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    let before: Vec<u8> = (0..3_000_000_u32).map(|at| (at * 7 % 253) as u8).collect();
    fs::write(&path, &before).unwrap();
    let snapshot = SqliteSnapshot::open(&path, &into(folder.path(), true)).unwrap();
    fs::write(&path, "changed by who knows how to read it").unwrap();
    assert!(image(snapshot, 1) == before);
}

#[test]
fn without_a_stage_writers_are_held_to_the_end_and_the_reason_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = notes(folder.path());
    let nowhere = folder.path().join("nowhere");
    for options in [SnapshotOptions::default(), into(&nowhere, true)] {
        let snapshot = SqliteSnapshot::open(&path, &options).unwrap();
        assert_eq!(one_write(&path), "busy");
        let held = snapshot.writers_held().unwrap();
        assert!(matches!(&held.copied, TemporaryCopy::None(because) if !because.is_empty()));
        std::thread::sleep(Duration::from_millis(30));
        snapshot.close().unwrap();
        let time = snapshot.writers_held().unwrap().time;
        assert!(time >= Duration::from_millis(30));
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(snapshot.writers_held().unwrap().time, time, "it is over");
    }
}

#[test]
fn writers_in_wal_mode_are_never_held() {
    let folder = tempfile::tempdir().unwrap();
    let path = notes(folder.path());
    rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))
        .unwrap();
    let snapshot = SqliteSnapshot::open(&path, &into(folder.path(), true)).unwrap();
    assert_eq!(snapshot.writers_held(), None);
}

#[test]
fn a_stage_takes_neither_the_last_room_nor_memory_that_nobody_offered() {
    let folder = tempfile::tempdir().unwrap();
    let answer = elsewhere(
        "no room for a copy",
        folder.path(),
        "mkdir \"$1/memory\" && mount -t tmpfs -o size=80m none \"$1/memory\"",
    );
    assert!(
        matches!(answer.as_deref(), None | Some("done")),
        "{answer:?}"
    );
}

/// The role in the namespace.
pub(crate) fn no_room(folder: &Path) {
    say("ready");
    let path = notes(folder);
    let memory = folder.join("memory");
    let copied = |is_given| {
        let snapshot = SqliteSnapshot::open(&path, &into(&memory, is_given)).unwrap();
        snapshot.writers_held().unwrap().copied
    };
    let refused = copied(false);
    assert!(matches!(&refused, TemporaryCopy::None(because) if because.contains("memory")));
    assert!(matches!(copied(true), TemporaryCopy::Copy(_)));
    fs::write(memory.join("filler"), vec![1; 20 << 20]).unwrap();
    let refused = copied(true);
    assert!(matches!(&refused, TemporaryCopy::None(because) if because.contains("free")));
    say("done");
}

#[test]
fn waiting_for_a_lock_ends_when_it_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let path = notes(folder.path());
    let _locker = Process::start("exclusive", &path);
    let cancel = Arc::new(AtomicBool::new(false));
    let options = SnapshotOptions {
        cancel: Some(Arc::clone(&cancel)),
        ..SnapshotOptions::default()
    };
    let begun = Instant::now();
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            cancel.store(true, Ordering::Relaxed);
        });
        SqliteSnapshot::open(&path, &options).unwrap_err()
    });
    assert!(matches!(error, Error::Cancelled), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_lock_that_is_free_for_moments_is_got() {
    let folder = tempfile::tempdir().unwrap();
    let path = notes(folder.path());
    let _locker = Process::start("exclusive with gaps", &path);
    for _ in 0..5 {
        image(open(&path), 1);
    }
}

#[test]
fn a_file_that_is_written_around_the_locks_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = notes(folder.path());
    let snapshot = open(&path);
    let script = "sleep 0.1; printf x | dd of=\"$1\" bs=1 seek=5000 conv=notrunc 2>/dev/null";
    let status = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(&path)
        .status();
    assert!(status.unwrap().success());
    let error = snapshot.close().unwrap_err();
    assert!(
        matches!(error, Error::ChangedWhileReading { .. }),
        "{error}"
    );
}
