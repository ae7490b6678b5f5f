//! Databases in WAL mode whose log cannot be locked: proved unchanged, or refused.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use windlass_base::EXTENT_BYTES;
use windlass_io::AlignedBuffer;
use windlass_source::sqlite::{SnapshotOptions, SqliteSnapshot};
use windlass_source::{Error, Snapshot};

use crate::media::elsewhere;
use crate::process::{Process, command, say};
use crate::support::{image, names, open};

const NOBODY: u32 = 65534;

/// A database in WAL mode without a log, larger than one extent: generation 0 in every row.
fn generations(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; CREATE TABLE t(g, filler);
             WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 400)
               INSERT INTO t SELECT 0, zeroblob(1000) FROM n;",
        )
        .unwrap();
}

/// The role of a writer: one transaction over all rows, and optionally a checkpoint.
pub(crate) fn write_generation(path: &Path, mode: &str) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("UPDATE t SET g = g + 1").unwrap();
    let answer = match mode {
        "checkpoint" => {
            let counts = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
                Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
            });
            let (frames, copied) = counts.unwrap();
            if frames == copied {
                "copied"
            } else {
                "kept out"
            }
        }
        _ => "written",
    };
    drop(connection);
    say(answer);
}

fn one(role: &str, path: &Path) -> String {
    Process::of(command(role, path)).answer()
}

/// Reads one extent of a snapshot.
fn read(snapshot: &SqliteSnapshot, extent: usize) -> Result<Vec<u8>, Error> {
    let mut buffer = AlignedBuffer::new(EXTENT_BYTES);
    let offset = extent * EXTENT_BYTES;
    let bytes = (snapshot.files()[0].size_bytes as usize - offset).min(EXTENT_BYTES);
    snapshot.read(1, offset as u64, &mut buffer[..bytes])?;
    Ok(buffer[..bytes].to_vec())
}

const UNDER_A_READ_ONLY_MOUNT: &str =
    "mkdir \"$1/ro\" && mount --bind \"$1/data\" \"$1/ro\" && mount -o remount,ro,bind \"$1/ro\"";

fn under_a_read_only_mount(role: &str) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    generations(&data.join("x.db"));
    let answer = elsewhere(role, folder.path(), UNDER_A_READ_ONLY_MOUNT);
    assert!(
        matches!(answer.as_deref(), None | Some("done")),
        "{answer:?}"
    );
}

#[test]
fn a_copy_through_a_read_only_mount_that_mixes_two_states_is_refused() {
    under_a_read_only_mount("torn");
}

/// The role in the namespace: others checkpoint a transaction after one extent has been read.
pub(crate) fn torn_under_read_only_mount(folder: &Path) {
    say("ready");
    let (here, there) = (folder.join("ro/x.db"), folder.join("data/x.db"));
    let snapshot = open(&here);
    read(&snapshot, 0).unwrap();
    assert_eq!(one("generation checkpoint", &there), "copied");
    let error = read(&snapshot, 1).unwrap_err();
    assert!(matches!(error, Error::ChangedUnlocked { .. }), "{error}");
    let error = snapshot.close().unwrap_err();
    assert!(matches!(error, Error::ChangedUnlocked { .. }), "{error}");
    drop(snapshot);

    // The very last moment counts, too. A connection that opens and closes removes the leftover
    // log.
    let connection = Connection::open(&there).unwrap();
    let _count: i64 = connection
        .query_row("SELECT count(*) FROM t", [], |row| row.get(0))
        .unwrap();
    drop(connection);
    assert_eq!(names(&folder.join("data")), ["x.db"]);
    let snapshot = open(&here);
    let extents = (snapshot.files()[0].size_bytes as usize).div_ceil(EXTENT_BYTES);
    (0..extents).for_each(|extent| drop(read(&snapshot, extent).unwrap()));
    fs::write(&there, fs::read(&there).unwrap()).unwrap();
    let error = snapshot.close().unwrap_err();
    assert!(matches!(error, Error::ChangedUnlocked { .. }), "{error}");
    say("done");
}

#[test]
fn a_writer_that_comes_to_a_read_only_mount_writes_and_does_not_reach_the_copy() {
    under_a_read_only_mount("joined");
}

/// The role in the namespace: others write while the copy is made, and checkpoint later.
pub(crate) fn joined_under_read_only_mount(folder: &Path) {
    say("ready");
    let (here, there) = (folder.join("ro/x.db"), folder.join("data/x.db"));
    let before = fs::read(&there).unwrap();
    let snapshot = open(&here);
    let mut bytes = read(&snapshot, 0).unwrap();
    assert_eq!(one("generation", &there), "written");
    bytes.extend(read(&snapshot, 1).unwrap());
    assert_eq!(one("generation checkpoint", &there), "kept out");
    let extents = (snapshot.files()[0].size_bytes as usize).div_ceil(EXTENT_BYTES);
    for extent in 2..extents {
        bytes.extend(read(&snapshot, extent).unwrap());
    }
    snapshot.close().unwrap();
    drop(snapshot);
    assert!(bytes == before, "the state of the beginning");
    assert_eq!(one("generation checkpoint", &there), "copied");
    // The -wal that a crash leaves counts, even without a -shm.
    let bytes = image(open(&here), 1);
    assert!(bytes == fs::read(&there).unwrap());
    say("done");
}

#[test]
fn what_others_write_while_they_are_connected_is_pinned_through_a_read_only_mount() {
    under_a_read_only_mount("connected");
}

/// The role in the namespace: a writer is connected throughout.
pub(crate) fn connected_under_read_only_mount(folder: &Path) {
    say("ready");
    let (here, there) = (folder.join("ro/x.db"), folder.join("data/x.db"));
    let _idle = Process::start("idle", &there);
    assert_eq!(one("generation", &there), "written");
    let snapshot = open(&here);
    let mut bytes = read(&snapshot, 0).unwrap();
    assert_eq!(one("generation", &there), "written");
    assert_eq!(one("generation checkpoint", &there), "kept out");
    let extents = (snapshot.files()[0].size_bytes as usize).div_ceil(EXTENT_BYTES);
    for extent in 1..extents {
        bytes.extend(read(&snapshot, extent).unwrap());
    }
    snapshot.close().unwrap();
    let copy = folder.join("copy.db");
    fs::write(&copy, &bytes).unwrap();
    let generations: String = Connection::open(&copy)
        .unwrap()
        .query_row("SELECT group_concat(DISTINCT g) FROM t", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(generations, "1");
    say("done");
}

/// A world-writable folder with a database of another user that all may read.
fn of_another_user() -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    generations(&path);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    if chown(&path, Some(2), Some(2)).is_err() {
        println!("SKIPPED: only root can try what other users do");
        return None;
    }
    Some((folder, path))
}

fn as_user(user: u32, role: &str, path: &Path) -> Process {
    let mut command = command(role, path);
    command.uid(user).gid(user);
    Process::of(command)
}

#[test]
fn a_backup_by_who_may_only_read_leaves_nothing_that_locks_the_owner_out() {
    let Some((folder, path)) = of_another_user() else {
        return;
    };
    let mut reader = as_user(NOBODY, "read by another user", &path);
    assert_eq!(reader.answer(), "done");
    assert_eq!(names(folder.path()), ["x.db"]);
    assert_eq!(as_user(2, "generation", &path).answer(), "written");

    // Neither while it runs, nor afterwards if that user could write to the database.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let mut reader = as_user(NOBODY, "read by another user, slowly", &path);
    assert_eq!(reader.answer(), "reading");
    assert_eq!(names(folder.path()), ["x.db"]);
    assert_eq!(as_user(2, "generation", &path).answer(), "written");
    assert_eq!(reader.answer(), "done");
    assert_eq!(
        as_user(2, "generation checkpoint", &path).answer(),
        "copied"
    );
}

/// The role of that user.
pub(crate) fn read_by_another_user(path: &Path, slowly: bool) {
    let before = fs::read(path).unwrap();
    let snapshot = open(path);
    if slowly {
        say("reading");
        while !path.with_extension("db-shm").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
    assert!(image(snapshot, 2) == before);
    say("done");
}

#[test]
fn a_full_disk_does_not_keep_a_database_in_wal_mode_from_being_read() {
    let folder = tempfile::tempdir().unwrap();
    let answer = elsewhere(
        "full disk, WAL",
        folder.path(),
        "mount -t tmpfs -o size=2m none \"$1\"",
    );
    assert!(
        matches!(answer.as_deref(), None | Some("done")),
        "{answer:?}"
    );
}

/// The role in the namespace.
pub(crate) fn on_full_disk(folder: &Path) {
    say("ready");
    let path = folder.join("x.db");
    generations(&path);
    let before = fs::read(&path).unwrap();
    let mut filler = fs::File::create(folder.join("filler")).unwrap();
    while std::io::Write::write(&mut filler, &[1; 4096]).is_ok_and(|bytes| bytes > 0) {}
    assert!(image(open(&path), 1) == before);
    assert_eq!(names(folder), ["filler", "x.db"]);
    say("done");
}

#[test]
fn who_vouches_that_nobody_writes_is_believed_until_it_is_disproved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    generations(&path);
    let before = fs::read(&path).unwrap();
    let options = SnapshotOptions {
        frozen: true,
        ..SnapshotOptions::default()
    };
    let frozen = || SqliteSnapshot::open(&path, &options).unwrap();
    let locker = Process::start("exclusive", &path);
    assert!(image(frozen(), 1) == before, "no lock is waited for");
    drop(locker);
    let snapshot = frozen();
    fs::write(&path, &before).unwrap();
    let error = snapshot.close().unwrap_err();
    assert!(matches!(error, Error::ChangedUnlocked { .. }), "{error}");
}

#[test]
fn an_emptied_database_is_not_opened_over_what_is_left_of_it() {
    let sides = [("-wal", [7; 100]), ("-journal", [0xD9; 100])];
    let emptied = ["", "S"].map(|rest| sides.map(|(side, content)| (rest, side, content)));
    for (rest, side, content) in emptied.into_iter().flatten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let left = folder.path().join(format!("x.db{side}"));
        fs::write(&path, rest).unwrap();
        fs::write(&left, content).unwrap();
        for frozen in [false, true] {
            let options = SnapshotOptions {
                frozen,
                ..SnapshotOptions::default()
            };
            let error = SqliteSnapshot::open(&path, &options).unwrap_err();
            assert!(
                matches!(&error, Error::Emptied { journal, .. } if *journal == left),
                "{error}"
            );
        }
        assert_eq!(fs::read(&left).unwrap(), content);
    }
}

#[test]
fn a_log_that_is_replaced_under_the_copy_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    generations(&path);
    let _idle = Process::start("idle", &path);
    assert_eq!(one("generation", &path), "written");
    let log = folder.path().join("x.db-wal");
    let snapshot = open(&path);
    let copy = folder.path().join("copy");
    fs::copy(&log, &copy).unwrap();
    fs::rename(&copy, &log).unwrap();
    let error = snapshot.close().unwrap_err();
    assert!(
        matches!(error, Error::ChangedWhileReading { .. }),
        "{error}"
    );
}
