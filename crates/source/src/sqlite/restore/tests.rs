//! Restores that are killed between two steps. The victim is another process of this test binary.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rusqlite::Connection;
use windlass_base::{Guid, Lsn};

use super::*;
use crate::engine::StopAt;
use crate::sqlite::log_description::LogDescription;
use crate::sqlite::log_snapshot::LOG_FILE_ID;
use crate::sqlite::spool;
use crate::sqlite::{FollowOptions, Follower, SnapshotOptions, SqliteSnapshot, Stop, WhenFull};
use crate::{Recovery, Snapshot};

const FOLDER: &str = "WINDLASS_TEST_FOLDER";
const PLAN: &str = "WINDLASS_TEST_PLAN";

/// Runs a restore in another process, which dies after `step`.
fn kill_after(step: &str, plan: &str, folder: &Path) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args([
            "sqlite::restore::tests::victim",
            "--exact",
            "--test-threads=1",
        ])
        .env(FOLDER, folder)
        .env(PLAN, plan)
        .env("WINDLASS_CRASH_AFTER", step)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), None, "{plan} was killed after '{step}'");
}

/// Not a test: what the other process runs.
#[test]
fn victim() {
    let (Some(folder), Ok(plan)) = (std::env::var_os(FOLDER), std::env::var(PLAN)) else {
        return;
    };
    run(&plan, Path::new(&folder)).unwrap();
}

const FULL_SET: u32 = 1;

fn set_guid(number: u32) -> Guid {
    Guid::named(Guid::NIL, &number.to_le_bytes())
}

fn run(plan: &str, folder: &Path) -> Result<(), Error> {
    if plan == "forward" {
        return forward(&to_moment(folder, Stop::Latest)).map(drop);
    }
    if plan == "log" {
        return roll(folder, StopAt::End);
    }
    let content = match plan {
        "next differential" => "next.db",
        _ => "new.db",
    };
    let new = fs::read(folder.join(content)).unwrap();
    let base = RequiredBase {
        set_guid: set_guid(FULL_SET),
        checkpoint_lsn: Lsn::ZERO,
    };
    let (recovery, base) = match plan {
        "full" => (Recovery::Recovery, None),
        "full without recovery" => (Recovery::NoRecovery, None),
        "differential" | "next differential" => (Recovery::Recovery, Some(base)),
        _ => {
            return recover(
                &folder.join("app.db"),
                Existing::Replace,
                &AtomicBool::new(false),
            );
        }
    };
    let target = SqliteTarget::begin(&RestoreRequest {
        target: folder.join("app.db"),
        existing: Existing::Replace,
        database_name: "app".to_owned(),
        family_guid: Guid::random(),
        set_guid: set_guid(FULL_SET + u32::from(base.is_some())),
        checkpoint_lsn: Lsn::ZERO,
        size_bytes: new.len() as u64,
        base,
        ..RestoreRequest::default()
    })?;
    let (first, second) = new.split_at(new.len() / 2);
    target.write(FILE_ID, 0, first)?;
    fault::point("half written");
    target.write(FILE_ID, first.len() as u64, second)?;
    Box::new(target).finish(recovery)
}

/// Applies the spool of `prepare_spool` as a log backup, with recovery.
fn roll(folder: &Path, stop: StopAt) -> Result<(), Error> {
    let slice = spool::slices(&folder.join("spool"), u32::MAX)?.remove(0);
    let mut bytes = vec![0; slice.bytes as usize];
    slice.reader().read(&mut bytes)?;
    let description = LogDescription::of(&slice);
    let target = SqliteLogTarget::begin(LogRestoreRequest {
        target: folder.join("app.db"),
        description: description.store(),
        family_guid: RestoreRequest::default().family_guid,
        set_guid: set_guid(FULL_SET + 7),
        checkpoint_lsn: description.last_lsn(),
        stop,
        existing: Existing::Replace,
        protection: RestoreRequest::default().protection,
        allow_less_protected: false,
        made_for: None,
        cancel: Arc::default(),
    })?;
    target.write(LOG_FILE_ID, 0, &bytes)?;
    Box::new(target).finish(Recovery::Recovery)
}

#[test]
fn a_log_that_was_interrupted_can_be_applied_again() {
    for (step, goes_on, recovers) in [
        ("log marked", true, false),
        ("log applied", true, false),
        ("log ready", true, true),
        ("folded", true, true),
        ("side files removed", true, true),
        ("renamed", false, false),
    ] {
        for first in ["log", "recovery"] {
            let folder = prepare_folder();
            prepare_spool(folder.path());
            kill_after(step, "log", folder.path());
            let expected = if step == "renamed" { "new" } else { "old" };
            assert_eq!(found(folder.path()), expected, "killed after '{step}'");
            let is_possible = if first == "log" { goes_on } else { recovers };
            let ended = run(first, folder.path());
            assert_eq!(ended.is_ok(), is_possible, "{step}: {first}: {ended:?}");
            if !is_possible && goes_on {
                // It is neither the one state nor the other, and says so.
                assert!(
                    matches!(ended, Err(Error::RollInterrupted { .. })),
                    "{ended:?}"
                );
                run("log", folder.path()).unwrap();
            }
            assert_eq!(found(folder.path()), "new", "{step}: {first}");
            // As the state file, it means nothing then, and the next restore removes it.
            let has_log = folder.path().join("app.db.windlass-restoring.log").exists();
            assert_eq!(has_log, !goes_on, "{step}: {first}");
        }
    }
}

#[test]
fn a_log_that_was_applied_further_is_not_taken_back() {
    let folder = prepare_folder();
    prepare_spool(folder.path());
    let spool = folder.path().join("spool");
    let slice = spool::slices(&spool, u32::MAX).unwrap().remove(0);
    let begin_ms = LogDescription::of(&slice).times_us().0.div_ceil(1000);
    kill_after("log applied", "log", folder.path());
    let back = roll(folder.path(), StopAt::Time(begin_ms)).unwrap_err();
    assert!(matches!(back, Error::RollInterrupted { .. }), "{back}");
    run("log", folder.path()).unwrap();
    assert_eq!(found(folder.path()), "new");
}

#[test]
fn a_log_with_a_flipped_bit_changes_nothing() {
    let folder = prepare_folder();
    prepare_spool(folder.path());
    let segment = folder.path().join("spool/00000001.wspool");
    let bytes = fs::read(&segment).unwrap();
    for at in (0..bytes.len()).step_by(bytes.len() / 40) {
        let slice = spool::slices(&folder.path().join("spool"), u32::MAX)
            .unwrap()
            .remove(0);
        let mut flipped = bytes[..slice.bytes as usize].to_vec();
        let Some(byte) = flipped.get_mut(at) else {
            continue;
        };
        *byte ^= 4;
        let description = LogDescription::of(&slice);
        let target = SqliteLogTarget::begin(LogRestoreRequest {
            target: folder.path().join("app.db"),
            description: description.store(),
            family_guid: RestoreRequest::default().family_guid,
            set_guid: set_guid(FULL_SET + 7),
            checkpoint_lsn: description.last_lsn(),
            stop: StopAt::End,
            existing: Existing::Replace,
            protection: RestoreRequest::default().protection,
            allow_less_protected: false,
            made_for: None,
            cancel: Arc::default(),
        });
        let target = target.unwrap();
        target.write(LOG_FILE_ID, 0, &flipped).unwrap();
        let refused = Box::new(target).finish(Recovery::Recovery).unwrap_err();
        assert!(matches!(refused, Error::Spool(_)), "byte {at}: {refused}");
        let state = restoring(&folder.path().join("app.db"))
            .unwrap()
            .expect("a state");
        assert_eq!(state.progress, RestoreProgress::Ready, "byte {at}");
    }
    assert_eq!(found(folder.path()), "old");
    run("log", folder.path()).unwrap();
    assert_eq!(found(folder.path()), "new");
}

fn to_moment(folder: &Path, stop: Stop) -> ForwardRequest {
    ForwardRequest {
        target: folder.join("app.db"),
        spool: folder.join("spool"),
        stop,
        existing: Existing::Replace,
        cancel: Arc::default(),
    }
}

/// Restores a backup of another database over `app.db`, without recovery; its spool then has `new`.
fn prepare_spool(folder: &Path) {
    let connection = make(folder, "live");
    let path = folder.join("live.db");
    let options = FollowOptions {
        folder: folder.join("spool"),
        every: std::time::Duration::from_secs(1),
        each_commit: false,
        spool_bytes_max: None,
        when_full: WhenFull::Gap,
    };
    let mut follower = Follower::begin(&path, &options).unwrap();
    let snapshot = SqliteSnapshot::open(&path, &SnapshotOptions::default()).unwrap();
    let mut image = vec![0; snapshot.files()[0].size_bytes as usize];
    snapshot.read(FILE_ID, 0, &mut image).unwrap();
    snapshot.close().unwrap();
    let request = RestoreRequest {
        target: folder.join("app.db"),
        existing: Existing::Replace,
        size_bytes: image.len() as u64,
        wal_position: snapshot.wal_position(),
        ..RestoreRequest::default()
    };
    let target = Box::new(SqliteTarget::begin(&request).unwrap());
    target.write(FILE_ID, 0, &image).unwrap();
    target.finish(Recovery::NoRecovery).unwrap();
    let change = "UPDATE t SET a = 'new', b = randomblob(300000)";
    connection.execute_batch(change).unwrap();
    follower.finish().unwrap();
}

#[test]
fn a_restore_from_a_spool_leaves_the_old_database_or_the_new_one() {
    for (step, expected, is_repeated) in [
        ("spool marked", "old", false),
        ("spool applied", "old", false),
        ("spool ready", "old", true),
        ("folded", "old", true),
        ("side files removed", "old", true),
        ("renamed", "new", false),
    ] {
        let folder = prepare_folder();
        prepare_spool(folder.path());
        kill_after(step, "forward", folder.path());
        assert_eq!(found(folder.path()), expected, "killed after '{step}'");
        let again = run("forward", folder.path());
        let recovered = run("recovery", folder.path());
        match is_repeated {
            true => assert!(again.is_ok() && recovered.is_err(), "{step}: {again:?}"),
            false => assert!(again.is_err() && recovered.is_err(), "{step}"),
        }
        let expected = if is_repeated { "new" } else { expected };
        assert_eq!(found(folder.path()), expected, "after '{step}'");
    }
}

#[test]
fn a_moment_that_was_not_captured_leaves_the_backup_restored() {
    let folder = prepare_folder();
    prepare_spool(folder.path());
    let path = folder.path().join("app.db");
    let before = fs::read(staging_file::staging_path(&path)).unwrap();
    for stop in [Stop::Time(5), Stop::Time(u64::MAX), Stop::Commit(77)] {
        let error = forward(&to_moment(folder.path(), stop)).unwrap_err();
        assert!(matches!(error, Error::Spool(_)), "{error}");
        let state = restoring(&path).unwrap().expect("a state");
        assert_eq!(state.progress, RestoreProgress::Ready);
        assert!(fs::read(staging_file::staging_path(&path)).unwrap() == before);
    }
    let reach = forward(&to_moment(folder.path(), Stop::Commit(1))).unwrap();
    assert_eq!((reach.commit_number, reach.moments), (1, 1));
    assert_eq!(found(folder.path()), "new");
}

#[test]
fn a_damaged_spool_costs_the_sequence_and_not_the_old_database() {
    let folder = prepare_folder();
    prepare_spool(folder.path());
    let segment = folder.path().join("spool/00000001.wspool");
    let mut bytes = fs::read(&segment).unwrap();
    // In the compressed pages, which are most of it.
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&segment, &bytes).unwrap();
    let error = run("forward", folder.path()).unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
    assert_eq!(restoring(&folder.path().join("app.db")).unwrap(), None);
    assert_eq!(found(folder.path()), "old");
}

/// Makes a database with one row, which is named like it.
fn make(folder: &Path, row: &str) -> Connection {
    let connection = Connection::open(folder.join(format!("{row}.db"))).unwrap();
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .unwrap();
    connection
        .execute_batch("CREATE TABLE t(a, b); PRAGMA wal_autocheckpoint = 0")
        .unwrap();
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    connection
        .execute("INSERT INTO t VALUES (?1, randomblob(200000))", [row])
        .unwrap();
    connection
}

/// `app.db` with a committed row only in its log, as a crash leaves it, and `new.db` to replace it.
fn prepare_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    drop(make(folder.path(), "new"));
    let connection = make(folder.path(), "old");
    for suffix in ["", "-wal"] {
        let from = folder.path().join(format!("old.db{suffix}"));
        fs::copy(from, folder.path().join(format!("app.db{suffix}"))).unwrap();
    }
    drop(connection);
    folder
}

/// Which of the two databases is at the target; checks that it is intact.
fn found(folder: &Path) -> String {
    let connection = Connection::open(folder.join("app.db")).unwrap();
    let answer: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(answer, "ok");
    connection
        .query_row("SELECT a FROM t", [], |row| row.get(0))
        .unwrap()
}

fn leftovers(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.contains("app.db")).collect();
    names.sort();
    names
}

#[test]
fn a_killed_restore_leaves_the_old_database_or_the_new_one() {
    let steps = [
        ("staged", "old"),
        ("half written", "old"),
        ("synced", "old"),
        ("dressed", "old"),
        ("folded", "old"),
        ("side files removed", "old"),
        ("renamed", "new"),
    ];
    for (step, expected) in steps {
        let folder = prepare_folder();
        kill_after(step, "full", folder.path());
        assert_eq!(found(folder.path()), expected, "killed after '{step}'");
        run("full", folder.path()).unwrap();
        assert_eq!(
            leftovers(folder.path()),
            ["app.db"],
            "the next restore after '{step}'"
        );
        assert_eq!(found(folder.path()), "new");
    }
}

#[test]
fn a_full_restore_killed_before_it_was_ready_begins_no_sequence() {
    let folder = prepare_folder();
    kill_after("synced", "full without recovery", folder.path());
    assert_eq!(restoring(&folder.path().join("app.db")).unwrap(), None);
    let error = run("differential", folder.path()).unwrap_err();
    assert!(matches!(error, Error::NotRestoring { .. }), "{error}");
    kill_after("ready", "full without recovery", folder.path());
    run("differential", folder.path()).unwrap();
    assert_eq!(found(folder.path()), "new");
    assert_eq!(leftovers(folder.path()), ["app.db"]);
}

#[test]
fn a_killed_differential_must_begin_again_with_the_full_backup() {
    for step in ["differential marked", "staged", "synced"] {
        let folder = prepare_folder();
        run("full without recovery", folder.path()).unwrap();
        kill_after(step, "differential", folder.path());
        assert_eq!(found(folder.path()), "old", "killed after '{step}'");
        for plan in ["differential", "recovery"] {
            let error = run(plan, folder.path()).unwrap_err();
            assert!(
                matches!(error, Error::RestoreInterrupted { .. }),
                "{step}, {plan}: {error}"
            );
        }
        run("full without recovery", folder.path()).unwrap();
        run("differential", folder.path()).unwrap();
        assert_eq!(found(folder.path()), "new");
    }
}

#[test]
fn a_differential_of_which_half_was_written_is_neither_restored_nor_usable() {
    for is_killed in [true, false] {
        let folder = prepare_folder();
        drop(make(folder.path(), "next"));
        run("full without recovery", folder.path()).unwrap();
        let path = folder.path().join("app.db");
        let staged = staging_file::staging_path(&path);
        let base = fs::read(&staged).unwrap();
        if is_killed {
            kill_after("half written", "next differential", folder.path());
            let torn = fs::read(&staged).unwrap();
            let next = fs::read(folder.path().join("next.db")).unwrap();
            assert!(torn != base && torn != next, "it is neither of the two");
            let state = restoring(&path).unwrap().expect("a state");
            assert_eq!(state.progress, RestoreProgress::Applying);
        } else {
            // A write fails, and the restore is given up.
            let bytes = base.len() as u64;
            let request = RestoreRequest {
                target: path.clone(),
                existing: Existing::Replace,
                size_bytes: bytes,
                base: Some(RequiredBase {
                    set_guid: set_guid(FULL_SET),
                    checkpoint_lsn: Lsn::ZERO,
                }),
                ..RestoreRequest::default()
            };
            let target = SqliteTarget::begin(&request).unwrap();
            target.write(FILE_ID, 0, &[7; 100_000]).unwrap();
            target.write(FILE_ID, bytes - 1, &[7; 2]).unwrap_err();
            drop(target);
            assert_eq!(restoring(&path).unwrap(), None);
        }
        for plan in ["next differential", "differential", "recovery"] {
            let error = run(plan, folder.path()).unwrap_err();
            let is_refused = match is_killed {
                true => matches!(error, Error::RestoreInterrupted { .. }),
                false => matches!(error, Error::NotRestoring { .. }),
            };
            assert!(is_refused, "{plan}: {error}");
        }
        assert_eq!(found(folder.path()), "old");
        // The full backup starts again.
        run("full without recovery", folder.path()).unwrap();
        run("next differential", folder.path()).unwrap();
        assert_eq!(found(folder.path()), "next");
        assert_eq!(leftovers(folder.path()), ["app.db"]);
    }
}

#[test]
fn once_a_differential_is_complete_recovery_can_be_repeated() {
    for (step, expected) in [("ready", "old"), ("folded", "old"), ("renamed", "new")] {
        let folder = prepare_folder();
        run("full without recovery", folder.path()).unwrap();
        kill_after(step, "differential", folder.path());
        assert_eq!(found(folder.path()), expected, "killed after '{step}'");
        let repeated = run("recovery", folder.path());
        assert_eq!(
            repeated.is_ok(),
            expected == "old",
            "after '{step}': {repeated:?}"
        );
        assert_eq!(found(folder.path()), "new");
    }
}

#[test]
fn a_target_that_somebody_keeps_open_can_be_replaced_later_without_another_restore() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    fs::write(&path, [0xEE; 4096]).unwrap();
    let request = RestoreRequest {
        target: path.clone(),
        existing: Existing::Replace,
        size_bytes: 8192,
        as_is: true,
        ..RestoreRequest::default()
    };
    let target = Box::new(SqliteTarget::begin(&request).unwrap());
    target.write(1, 0, &[7; 8192]).unwrap();
    let late = fs::File::open(&path).unwrap();
    let error = target.finish(Recovery::Recovery).unwrap_err();
    assert!(matches!(error, Error::StillInUse { .. }), "{error}");
    drop(late);
    assert!(fs::read(&path).unwrap() == [0xEE; 4096]);
    recover(&path, Existing::Replace, &AtomicBool::new(false)).unwrap();
    assert!(fs::read(&path).unwrap() == [7; 8192]);
}
