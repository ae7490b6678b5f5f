//! Restores: what is refused, what stays, and the results of full and differential sequences.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::Connection;
use windlass_source::sqlite::{
    Existing, RequiredBase, RestoreRequest, Seized, SqliteTarget, restoring,
};
use windlass_source::{Error, Recovery, RestoreTarget};

use crate::locks::notes;
use crate::process::Process;
use crate::support::{fill, image, names, open, request, restore};

pub(crate) fn replacing(target: &Path, bytes: &[u8]) -> RestoreRequest {
    RestoreRequest {
        existing: Existing::Replace,
        ..request(target, bytes.len() as u64)
    }
}

pub(crate) fn other_content() -> Vec<u8> {
    (0..300_000_u32).map(|index| (index % 253) as u8).collect()
}

#[test]
fn an_existing_target_is_replaced_only_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = notes(folder.path());
    let old = fs::read(&path).unwrap();
    let new = other_content();
    let error = SqliteTarget::begin(&request(&path, 10)).unwrap_err();
    assert!(matches!(error, Error::TargetExists { .. }), "{error}");
    assert!(fs::read(&path).unwrap() == old);
    fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    restore(&replacing(&path, &new), &new, Recovery::Recovery);
    assert!(fs::read(&path).unwrap() == new);
    assert_eq!(
        fs::metadata(&path).unwrap().mode() & 0o777,
        0o640,
        "as the replaced file"
    );
    assert_eq!(names(folder.path()), ["notes.db"]);
    // The existing file is not a database now; that does not matter.
    restore(&replacing(&path, &old), &old, Recovery::Recovery);
    assert!(fs::read(&path).unwrap() == old);
}

#[test]
fn a_target_that_appears_meanwhile_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.db");
    let target = Box::new(SqliteTarget::begin(&request(&path, 4)).unwrap());
    fs::write(&path, "mine").unwrap();
    let error = target.finish(Recovery::Recovery).unwrap_err();
    assert!(matches!(error, Error::TargetExists { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"mine");
    assert_eq!(names(folder.path()), ["new.db"]);
}

#[test]
fn a_target_in_use_is_not_pulled_away() {
    let folder = tempfile::tempdir().unwrap();
    let path = notes(folder.path());
    let old = fs::read(&path).unwrap();
    let refused = |what: &str| {
        let error = SqliteTarget::begin(&replacing(&path, &old)).unwrap_err();
        assert!(matches!(error, Error::InUse { .. }), "{what}: {error}");
    };
    {
        let _idle = Process::start("idle", &path);
        refused("an idle connection of another process");
    }
    {
        let _locker = Process::start("exclusive", &path);
        refused("a transaction of another process");
    }
    {
        let _same_process = Connection::open(&path).unwrap();
        refused("a connection of this process");
    }
    {
        let _snapshot = open(&path);
        refused("a backup");
    }
    let wanted = replacing(&path, &old);
    let cancel = Arc::clone(&wanted.cancel);
    let target = Box::new(SqliteTarget::begin(&wanted).unwrap());
    fill(&*target, &old);
    {
        let _late = Process::of(crate::process::command("one write", &path));
        assert_eq!(
            Process::of(crate::process::command("one write", &path)).answer(),
            "busy"
        );
    }
    let file = fs::File::open(&path).unwrap();
    cancel.store(true, Ordering::Relaxed);
    let error = target.finish(Recovery::Recovery).unwrap_err();
    assert!(
        matches!(error, Error::Cancelled),
        "somebody who came later, and nobody who waits for them: {error}"
    );
    drop(file);
    assert_eq!(
        names(folder.path()),
        ["notes.db"],
        "nothing is left of the restore"
    );
    assert!(fs::read(&path).unwrap() == old);
}

#[test]
fn whoever_waits_for_the_lock_of_a_restore_does_not_end_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = notes(folder.path());
    let new = fs::read(&path).unwrap();
    let target = Box::new(SqliteTarget::begin(&replacing(&path, &new)).unwrap());
    fill(&*target, &new);
    // It has the file open, waits in vain for the lock, and exits.
    let mut waiter = Process::of(crate::process::command("waits a second", &path));
    assert_eq!(waiter.answer(), "ready");
    target.finish(Recovery::Recovery).unwrap();
    assert_eq!(waiter.answer(), "busy");
    assert!(fs::read(&path).unwrap() == new);
    assert_eq!(names(folder.path()), ["notes.db"]);
}

#[test]
fn a_second_restore_of_a_target_is_refused_and_does_not_disturb_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = notes(folder.path());
    let new = fs::read(&path).unwrap();
    let target = Box::new(SqliteTarget::begin(&replacing(&path, &new)).unwrap());
    let error = SqliteTarget::begin(&replacing(&path, &new)).unwrap_err();
    assert!(matches!(error, Error::RestoreRunning { .. }), "{error}");
    fill(&*target, &new);
    target.finish(Recovery::Recovery).unwrap();
    assert_eq!(names(folder.path()), ["notes.db"]);
}

#[test]
fn a_full_restore_that_is_refused_leaves_the_sequence_that_waits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seq.db");
    let full = request(&path, 8192);
    restore(&full, &[1; 8192], Recovery::NoRecovery);
    fs::write(&path, b"somebody else's").unwrap();
    let error = SqliteTarget::begin(&request(&path, 8192)).unwrap_err();
    assert!(matches!(error, Error::TargetExists { .. }), "{error}");
    let too_large = RestoreRequest {
        size_bytes: 1 << 60,
        ..replacing(&path, b"")
    };
    let error = SqliteTarget::begin(&too_large).unwrap_err();
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    assert_eq!(restoring(&path).unwrap().unwrap().set_guid, full.set_guid);
}

#[test]
fn planted_links_are_neither_written_through_nor_continued_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let victim = folder.path().join("victim");
    let content = vec![9; 8192];
    fs::write(&victim, &content).unwrap();
    let staging = folder.path().join("x.db.windlass-restoring");
    let state = folder.path().join("x.db.windlass-restoring.json");
    let full = request(&path, 8192);
    for planted in [
        &staging,
        &folder.path().join("x.db.windlass-restoring.json.new"),
    ] {
        symlink(&victim, planted).unwrap();
        restore(&full, &[1; 8192], Recovery::NoRecovery);
        assert!(fs::read(&victim).unwrap() == content);
    }
    let next = RestoreRequest {
        base: Some(RequiredBase {
            set_guid: full.set_guid,
            checkpoint_lsn: full.checkpoint_lsn,
        }),
        ..request(&path, 8192)
    };
    for planted in [&staging, &state] {
        let ours = fs::read(planted).unwrap();
        for hard in [true, false] {
            fs::remove_file(planted).unwrap();
            match hard {
                true => fs::hard_link(&victim, planted).unwrap(),
                false => symlink(&victim, planted).unwrap(),
            }
            SqliteTarget::begin(&next).unwrap_err();
            assert!(fs::read(&victim).unwrap() == content);
        }
        fs::remove_file(planted).unwrap();
        fs::write(planted, ours).unwrap();
    }
}

#[test]
fn a_target_in_wal_mode_that_somebody_has_open_is_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = notes(folder.path());
    Connection::open(&path)
        .unwrap()
        .query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))
        .unwrap();
    let idle = Process::start("idle", &path);
    let error = SqliteTarget::begin(&replacing(&path, b"")).unwrap_err();
    assert!(
        matches!(
            error,
            Error::InUse {
                process_id: Some(_),
                ..
            }
        ),
        "{error}"
    );
    drop(idle);
    let new = other_content();
    restore(&replacing(&path, &new), &new, Recovery::Recovery);
    assert_eq!(names(folder.path()), ["notes.db"], "the old log is gone");
    assert!(fs::read(&path).unwrap() == new);
}

#[test]
fn giving_up_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = notes(folder.path());
    Connection::open(&path)
        .unwrap()
        .query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))
        .unwrap();
    let old = fs::read(&path).unwrap();
    let target = SqliteTarget::begin(&replacing(&path, &old)).unwrap();
    assert!(names(folder.path()).contains(&"notes.db.windlass-restoring".to_owned()));
    let error = SqliteTarget::begin(&replacing(&path, &old)).unwrap_err();
    assert!(
        matches!(error, Error::InUse { .. } | Error::RestoreRunning { .. }),
        "{error}"
    );
    Box::new(target).abandon().unwrap();
    assert_eq!(names(folder.path()), ["notes.db"]);
    drop(SqliteTarget::begin(&replacing(&path, &old)).unwrap());
    assert_eq!(names(folder.path()), ["notes.db"]);
    assert!(fs::read(&path).unwrap() == old);
}

#[test]
fn two_restores_of_a_new_target_do_not_mix() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.db");
    let first = SqliteTarget::begin(&request(&path, 100)).unwrap();
    let error = SqliteTarget::begin(&request(&path, 100)).unwrap_err();
    assert!(matches!(error, Error::RestoreRunning { .. }), "{error}");
    Box::new(first).finish(Recovery::Recovery).unwrap();
}

#[test]
fn impossible_targets_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let error = SqliteTarget::begin(&request(folder.path(), 1)).unwrap_err();
    assert!(matches!(error, Error::NotAFile { .. }), "{error}");
    let error = SqliteTarget::begin(&request(&folder.path().join("none/a.db"), 1)).unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    let huge = request(&folder.path().join("huge.db"), u64::MAX / 2);
    let error = SqliteTarget::begin(&huge).unwrap_err();
    assert!(matches!(error, Error::NoSpace { needed_bytes, .. } if needed_bytes == u64::MAX / 2));
    let target = SqliteTarget::begin(&request(&folder.path().join("a.db"), 100)).unwrap();
    for (file_id, offset, bytes) in [(1, 99, 2), (2, 0, 1), (1, u64::MAX, 1)] {
        let error = target.write(file_id, offset, &vec![0; bytes]).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { .. }), "{error}");
    }
    drop(target);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_link_stays_and_what_it_leads_to_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (elsewhere, link) = (
        folder.path().join("elsewhere"),
        folder.path().join("link.db"),
    );
    fs::create_dir(&elsewhere).unwrap();
    symlink("elsewhere/real.db", &link).unwrap();
    for content in [b"first".as_slice(), b"second"] {
        restore(&replacing(&link, content), content, Recovery::Recovery);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(elsewhere.join("real.db")).unwrap(), content);
    }
    symlink("loop", folder.path().join("loop")).unwrap();
    let error = SqliteTarget::begin(&request(&folder.path().join("loop"), 1)).unwrap_err();
    assert!(matches!(error, Error::NotAFile { .. }), "{error}");
}

#[test]
fn side_files_without_a_database_do_not_get_into_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let source = notes(folder.path());
    let bytes = image(open(&source), 1);
    let path = folder.path().join("target.db");
    for side in ["target.db-wal", "target.db-journal", "target.db-shm"] {
        fs::write(folder.path().join(side), [1; 5000]).unwrap();
    }
    restore(
        &request(&path, bytes.len() as u64),
        &bytes,
        Recovery::Recovery,
    );
    assert_eq!(names(folder.path()), ["notes.db", "target.db"]);
}

#[test]
fn a_file_is_seized_when_nobody_else_has_it_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = notes(folder.path());
    assert!(
        Seized::of(&folder.path().join("none.db"))
            .unwrap()
            .is_none()
    );
    let idle = Process::start("idle", &path);
    let error = Seized::of(&path).unwrap_err();
    assert!(matches!(error, Error::InUse { .. }), "{error}");
    drop(idle);
    let seized = Seized::of(&path).unwrap().unwrap();
    seized.confirm().unwrap();
    let late = fs::File::open(&path).unwrap();
    let error = seized.confirm().unwrap_err();
    assert!(matches!(error, Error::InUse { .. }), "{error}");
    drop(late);
    seized.confirm().unwrap();
}

#[test]
fn a_target_that_cannot_be_examined_is_not_taken_for_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x".repeat(300));
    let error = restoring(&path).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Io {
                action: "examine" | "find",
                ..
            }
        ),
        "{error}"
    );
}
