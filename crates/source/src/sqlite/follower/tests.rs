//! What happens while nothing is held, step by step, against real SQLite.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::hold::{Held, Holder};
use super::proof::{Cover, Doubt};
use super::reading::{Proven, Reading};
use super::*;

mod cuts;
mod histories;
mod spooled;

/// A database in WAL mode with an application's connection, and a follower's reading with its spool.
struct Scene {
    _folder: tempfile::TempDir,
    path: PathBuf,
    application: Connection,
    reading: Reading,
    spool: SpoolWriter,
}

fn application(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::ZERO).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = OFF;
             CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY, b);",
        )
        .unwrap();
    connection
}

fn write(connection: &Connection, commits: u32) {
    for _ in 0..commits {
        let insert = "INSERT INTO t(b) VALUES (randomblob(3000))";
        connection.execute_batch(insert).unwrap();
    }
}

/// The busy flag of a checkpoint.
fn checkpoint(connection: &Connection, mode: &str) -> i64 {
    let pragma = format!("PRAGMA wal_checkpoint({mode})");
    connection.query_row(&pragma, [], |row| row.get(0)).unwrap()
}

impl Scene {
    /// The application has committed, and the follower has read everything.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let application = application(&path);
        write(&application, 5);
        let spool = folder.path().join("spool");
        let (mut spool, _) = SpoolWriter::open(&spool, &path, None).unwrap();
        let holder = Holder::open(&path).unwrap();
        let reading = Reading::begin(&path, holder, None).unwrap();
        let state = State {
            position: reading.position(),
            time_us: now_us(),
            commit_number: 0,
            inode: reading.inode(),
        };
        spool.start(state).unwrap();
        Self {
            _folder: folder,
            path,
            application,
            reading,
            spool,
        }
    }

    fn step(&mut self) -> Proven {
        let mut status = FollowStatus::default();
        self.reading
            .step(&mut self.spool, false, true, &mut status)
            .unwrap()
    }

    /// Takes a mark again after nothing was held.
    fn hold_again(&mut self) -> Proven {
        self.reading
            .renew(Cover::None, &mut self.spool, false)
            .unwrap()
    }

    fn let_go(&mut self) {
        self.step().unwrap();
        self.reading.holder.let_go().unwrap();
    }

    fn commits(&mut self) -> u64 {
        let mut status = FollowStatus::default();
        self.reading.flush(&mut self.spool, &mut status).unwrap();
        self.spool.state().commit_number
    }
}

#[test]
fn a_mark_keeps_the_log_and_lock_0_lets_it_restart_once() {
    let mut scene = Scene::new();
    assert_eq!(
        checkpoint(&scene.application, "TRUNCATE"),
        1,
        "the mark is in the way"
    );
    write(&scene.application, 3);
    scene.step().unwrap();
    assert_eq!(scene.commits(), 3);
    // The mark is older than the newest commit until it is renewed.
    std::thread::sleep(Duration::from_millis(20));
    scene.step().unwrap();
    assert_eq!(checkpoint(&scene.application, "PASSIVE"), 0);
    scene.step().unwrap();
    assert_eq!(scene.reading.holder.held(), Held::Zero);
    assert_eq!(
        checkpoint(&scene.application, "RESTART"),
        0,
        "nobody waits for lock 0"
    );
    for _ in 0..3 {
        write(&scene.application, 2);
        checkpoint(&scene.application, "PASSIVE");
    }
    let (tip, backfilled) = scene.reading.holder.look().unwrap();
    assert_eq!(backfilled, 0, "no new frame was copied");
    assert_ne!(
        tip.position.salt,
        scene.reading.position().salt,
        "restarted"
    );
    scene.step().unwrap();
    assert_eq!(scene.commits(), 9);
    assert!(matches!(scene.reading.holder.held(), Held::Mark(_)));
}

#[test]
fn an_emptied_log_is_emptied_again_and_nothing_is_missed() {
    let mut scene = Scene::new();
    checkpoint(&scene.application, "PASSIVE");
    scene.step().unwrap();
    assert_eq!(scene.reading.holder.held(), Held::Zero);
    for _ in 0..3 {
        assert_eq!(checkpoint(&scene.application, "TRUNCATE"), 0);
    }
    write(&scene.application, 1);
    scene.step().unwrap();
    assert_eq!(scene.commits(), 1);
    checkpoint(&scene.application, "PASSIVE");
    scene.step().unwrap();
    assert_eq!(checkpoint(&scene.application, "TRUNCATE"), 0);
    scene.step().unwrap();
    assert_eq!(scene.reading.position().frame, 0);
    scene.step().unwrap();
    write(&scene.application, 2);
    scene.step().unwrap();
    scene.step().unwrap();
    assert_eq!(scene.commits(), 3);
}

#[test]
fn a_restart_while_nothing_was_held_is_proven_by_what_is_left_of_the_old_log() {
    let mut scene = Scene::new();
    write(&scene.application, 20);
    scene.let_go();
    write(&scene.application, 2);
    checkpoint(&scene.application, "PASSIVE");
    write(&scene.application, 3);
    assert_eq!(scene.hold_again(), Ok(()));
    assert_eq!(scene.commits(), 25);
    // Nothing was committed in the old generation.
    scene.let_go();
    checkpoint(&scene.application, "PASSIVE");
    write(&scene.application, 1);
    assert_eq!(scene.hold_again(), Ok(()));
    assert_eq!(scene.commits(), 26);
    // Not restarted at all.
    scene.let_go();
    write(&scene.application, 1);
    assert_eq!(scene.hold_again(), Ok(()));
    assert_eq!(scene.commits(), 27);
}

#[test]
fn two_restarts_are_a_doubt() {
    let mut scene = Scene::new();
    write(&scene.application, 20);
    scene.let_go();
    for _ in 0..2 {
        write(&scene.application, 1);
        checkpoint(&scene.application, "PASSIVE");
    }
    write(&scene.application, 1);
    assert_eq!(scene.hold_again(), Err(Doubt::OtherLog));
    assert_eq!(scene.commits(), 20, "what was read before is certain");
    let after = scene.reading.forget().unwrap();
    assert_eq!(scene.reading.position(), after);
}

#[test]
fn an_end_of_the_old_log_that_is_gone_is_a_doubt() {
    // Truncated.
    let mut scene = Scene::new();
    write(&scene.application, 20);
    scene.let_go();
    write(&scene.application, 2);
    assert_eq!(checkpoint(&scene.application, "TRUNCATE"), 0);
    write(&scene.application, 1);
    assert_eq!(scene.hold_again(), Err(Doubt::TailLost));
    // Truncated without commits behind the position: nothing is missing.
    let mut scene = Scene::new();
    write(&scene.application, 20);
    scene.let_go();
    assert_eq!(checkpoint(&scene.application, "TRUNCATE"), 0);
    write(&scene.application, 1);
    assert_eq!(scene.hold_again(), Ok(()));
    assert_eq!(scene.commits(), 21);
    // Overwritten.
    let mut scene = Scene::new();
    scene.let_go();
    write(&scene.application, 1);
    checkpoint(&scene.application, "PASSIVE");
    write(&scene.application, 30);
    assert_eq!(scene.hold_again(), Err(Doubt::TailLost));
    // Cut off at a limit.
    let mut scene = Scene::new();
    write(&scene.application, 20);
    scene.let_go();
    write(&scene.application, 2);
    checkpoint(&scene.application, "PASSIVE");
    let limit = "PRAGMA journal_size_limit = 20000";
    scene.application.query_row(limit, [], |_| Ok(())).unwrap();
    write(&scene.application, 1);
    assert_eq!(scene.hold_again(), Err(Doubt::TailLost));
}

#[test]
fn a_commit_that_failed_is_not_taken_for_one() {
    let mut scene = Scene::new();
    write(&scene.application, 20);
    scene.let_go();
    write(&scene.application, 1);
    let (tip, _) = scene.reading.holder.look().unwrap();
    // A commit whose frames were written, and which then failed: SQLite leaves them behind the newest commit.
    let log = std::fs::read(scene.path.with_extension("db-wal")).unwrap();
    write(&scene.application, 1);
    let with_ghost = std::fs::read(scene.path.with_extension("db-wal")).unwrap();
    let frame_bytes = 24 + 4096;
    let end = 32 + tip.position.frame as usize * frame_bytes;
    assert!(with_ghost[..end] == log[..end] && with_ghost.len() > end);
    // The counter says two commits, so take one away by restarting from the same state: the tail has one too many.
    checkpoint(&scene.application, "PASSIVE");
    write(&scene.application, 1);
    let (mut new, _) = scene.reading.holder.look().unwrap();
    new.position.commits -= 1;
    let proven = scene
        .reading
        .advance(&new, Cover::None, &mut scene.spool, false)
        .unwrap();
    assert!(
        matches!(proven, Err(Doubt::Count { difference: -1 })),
        "{proven:?}"
    );
}

#[test]
fn commits_that_are_padded_with_copies_cannot_be_counted() {
    let mut scene = Scene::new();
    let flags = rusqlite::OpenFlags::default();
    let uri = format!("file:{}?psow=0", scene.path.display());
    let padding = Connection::open_with_flags(uri, flags).unwrap();
    padding
        .execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0")
        .unwrap();
    write(&padding, 3);
    scene.step().unwrap();
    assert!(
        scene.commits() > 3,
        "under a mark they may be as many as they want"
    );
    write(&scene.application, 20);
    scene.let_go();
    write(&padding, 1);
    checkpoint(&scene.application, "PASSIVE");
    write(&padding, 1);
    let proven = scene.hold_again();
    let is_doubt = matches!(proven, Err(Doubt::Repeats | Doubt::Count { .. }));
    assert!(is_doubt, "{proven:?}");
}

#[test]
fn a_log_that_lost_its_end_is_a_doubt() {
    let mut scene = Scene::new();
    write(&scene.application, 3);
    scene.let_go();
    let mut later = scene.reading.position();
    later.frame += 2;
    later.checksum[1] ^= 1;
    scene.reading.position = later;
    assert_eq!(scene.hold_again(), Err(Doubt::WentBack));
    write(&scene.application, 3);
    assert_eq!(
        scene.hold_again(),
        Err(Doubt::Broken { frame: later.frame })
    );
}

#[test]
fn without_a_lock_a_counter_that_may_have_restarted_proves_nothing() {
    // Nothing was committed behind the position, and its frame is overwritten.
    let overwritten = || {
        let mut scene = Scene::new();
        scene.let_go();
        checkpoint(&scene.application, "PASSIVE");
        write(&scene.application, 30);
        scene
    };
    assert_eq!(overwritten().hold_again(), Ok(()), "the counter went on");
    let mut scene = overwritten();
    let resumed = scene.reading.renew(Cover::Absent, &mut scene.spool, false);
    assert_eq!(resumed.unwrap(), Err(Doubt::TailLost));
    // The end of the old log is there, and the file shows that it is the end.
    let mut scene = Scene::new();
    write(&scene.application, 20);
    scene.let_go();
    write(&scene.application, 2);
    checkpoint(&scene.application, "PASSIVE");
    write(&scene.application, 3);
    let resumed = scene.reading.renew(Cover::Absent, &mut scene.spool, false);
    assert_eq!(resumed.unwrap(), Ok(()));
    assert_eq!(scene.commits(), 25);
    // It was cut off in the middle of a frame.
    let mut scene = Scene::new();
    write(&scene.application, 20);
    scene.let_go();
    write(&scene.application, 2);
    checkpoint(&scene.application, "PASSIVE");
    write(&scene.application, 1);
    let log = std::fs::OpenOptions::new()
        .write(true)
        .open(scene.path.with_extension("db-wal"))
        .unwrap();
    let length = log.metadata().unwrap().len();
    log.set_len(length - 100).unwrap();
    let resumed = scene.reading.renew(Cover::Absent, &mut scene.spool, false);
    assert_eq!(resumed.unwrap(), Err(Doubt::TailLost));
}

/// A follower with a spool, and an application in WAL mode.
fn followed() -> (tempfile::TempDir, PathBuf, Connection, Follower) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let application = application(&path);
    write(&application, 5);
    let options = FollowOptions::within(folder.path().join("spool"));
    let mut follower = Follower::begin(&path, &options).unwrap();
    follower.step(true).unwrap();
    (folder, path, application, follower)
}

fn ends(folder: &Path) -> (u64, Vec<String>) {
    let (listed, _) = spool::list(&folder.join("spool")).unwrap();
    let mut gaps = Vec::new();
    let mut to = 0;
    for one in listed {
        match one {
            spool::Listed::Range { to_us, .. } => to = to_us,
            spool::Listed::Gap { reason, .. } => gaps.push(reason),
        }
    }
    (to, gaps)
}

#[test]
fn files_that_have_lost_their_names_are_not_followed() {
    for suffix in ["-wal", "-shm"] {
        let (folder, path, application, mut follower) = followed();
        write(&application, 1);
        follower.step(true).unwrap();
        let (before, _) = ends(folder.path());
        std::fs::remove_file(super::super::beside(&path, suffix)).unwrap();
        write(&application, 1);
        follower.step(true).unwrap();
        assert_eq!(follower.status().following, Following::NotOpen, "{suffix}");
        assert_eq!(
            ends(folder.path()).0,
            before,
            "{suffix}: nothing is known of later times"
        );
        follower.finish().unwrap();
        assert_eq!(ends(folder.path()).0, before, "{suffix}");
    }
}

#[test]
fn a_file_that_was_overwritten_while_the_log_was_copied_makes_a_gap() {
    for mode in ["PASSIVE", "TRUNCATE"] {
        let (folder, path, application, mut follower) = followed();
        let old = std::fs::read(&path).unwrap();
        write(&application, 3);
        follower.step(true).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        follower.step(true).unwrap();
        checkpoint(&application, "PASSIVE");
        follower.step(true).unwrap();
        checkpoint(&application, mode);
        follower.step(true).unwrap();
        assert_eq!(ends(folder.path()).1, [""; 0], "{mode}");
        std::fs::write(&path, &old).unwrap();
        follower.step(true).unwrap();
        let reason = Doubt::FileChanged.to_string();
        assert_eq!(
            ends(folder.path()).1.as_slice(),
            std::slice::from_ref(&reason),
            "{mode}"
        );
        for _ in 0..5 {
            follower.step(true).unwrap();
        }
        assert_eq!(ends(folder.path()).1, [reason], "{mode}: one gap");
    }
}

#[test]
fn a_file_that_was_overwritten_before_it_was_held_makes_a_gap() {
    let (folder, path, application, mut follower) = followed();
    let old = std::fs::read(&path).unwrap();
    write(&application, 3);
    follower.step(true).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    follower.step(true).unwrap();
    checkpoint(&application, "PASSIVE");
    std::fs::write(&path, &old).unwrap();
    follower.step(true).unwrap();
    assert_eq!(ends(folder.path()).1.len(), 1);
}

#[test]
fn a_spool_that_is_gone_ends_the_follower_with_an_error() {
    for what in ["folder", "segment", "end"] {
        let (folder, _path, application, mut follower) = followed();
        let spool = folder.path().join("spool");
        let segment = spool.join("00000001.wspool");
        match what {
            "folder" => std::fs::rename(&spool, folder.path().join("other")).unwrap(),
            "segment" => std::fs::remove_file(&segment).unwrap(),
            _ => std::fs::OpenOptions::new()
                .write(true)
                .open(&segment)
                .unwrap()
                .set_len(100)
                .unwrap(),
        }
        write(&application, 1);
        let ended = follower.finish();
        assert!(
            matches!(ended, Err(Error::Spool(SpoolError::Gone { .. }))),
            "{what}: {ended:?}"
        );
    }
}

#[test]
fn more_to_catch_up_than_there_is_room_for_is_waited_out_from_the_beginning_on() {
    let (folder, path, application, follower) = followed();
    drop(follower);
    for _ in 0..1200 {
        write(&application, 1);
    }
    let options = FollowOptions {
        spool_bytes_max: Some(1 << 20),
        ..FollowOptions::within(folder.path().join("spool"))
    };
    for when_full in [WhenFull::Gap, WhenFull::Hold] {
        let options = FollowOptions {
            when_full,
            ..options.clone()
        };
        let mut follower = Follower::begin(&path, &options).unwrap();
        follower.step(true).unwrap();
        let status = follower.status();
        let expected = match when_full {
            WhenFull::Gap => Following::SpoolFull,
            WhenFull::Hold => Following::Held,
        };
        assert_eq!(status.following, expected, "{status:?}");
    }
}
