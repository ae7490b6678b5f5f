//! Databases whose file has another name: the log or journal may lie beside that one, unseen.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use windlass_io::other_name::OtherName;
use windlass_source::sqlite::{Existing, SnapshotOptions, SqliteSnapshot, SqliteTarget};
use windlass_source::{Alias, Error};

use crate::locks::notes;
use crate::media::elsewhere;
use crate::process::{Process, say};
use crate::support::{image, open, request};

/// A database of one table, in WAL mode, whose last commit is only in the log.
fn with_log(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    let script = "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t(a);";
    connection.execute_batch(script).unwrap();
    connection
}

fn impatient(frozen: bool) -> SnapshotOptions {
    SnapshotOptions {
        busy_timeout: Duration::from_millis(100),
        frozen,
        ..SnapshotOptions::default()
    }
}

fn refusal(path: &Path) -> Alias {
    match SqliteSnapshot::open(path, &impatient(false)) {
        Err(Error::Aliased { alias, .. }) => alias,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_database_with_a_second_hard_link_is_refused_in_both_journal_modes_and_read_if_frozen() {
    let folder = tempfile::tempdir().unwrap();
    let (name, other) = (folder.path().join("a.db"), folder.path().join("b.db"));
    let writer = with_log(&name);
    fs::hard_link(&name, &other).unwrap();
    assert_eq!(refusal(&other), Alias::Name(OtherName::Links(2)));
    drop(writer);
    for path in [&name, &other] {
        assert_eq!(refusal(path), Alias::Name(OtherName::Links(2)));
    }
    let frozen = SqliteSnapshot::open(&other, &impatient(true)).unwrap();
    assert!(image(frozen, 1) == fs::read(&name).unwrap());
    fs::remove_file(&other).unwrap();
    assert!(image(open(&name), 1) == fs::read(&name).unwrap());

    // The journal of a crashed writer lies beside the other name.
    let hot = notes(folder.path());
    assert_eq!(Process::start("crash", &hot).answer(), "");
    fs::hard_link(&hot, &other).unwrap();
    assert_eq!(refusal(&other), Alias::Name(OtherName::Links(2)));
}

#[test]
fn a_database_that_was_renamed_while_in_use_is_refused_under_its_new_name() {
    let folder = tempfile::tempdir().unwrap();
    let (name, new) = (folder.path().join("a.db"), folder.path().join("b.db"));
    drop(with_log(&name));
    let user = Process::start("idle", &name);
    fs::rename(&name, &new).unwrap();
    assert_eq!(refusal(&new), Alias::Open);
    fs::rename(&new, &name).unwrap();
    drop(open(&name));
    fs::rename(&name, &new).unwrap();
    drop(user);
    drop(open(&new));
}

/// Its log is beside the old name, whoever uses it and whether anybody still does.
#[test]
fn a_renamed_database_is_refused_even_if_its_program_ends_during_the_wait() {
    let folder = tempfile::tempdir().unwrap();
    let (name, new) = (folder.path().join("a.db"), folder.path().join("b.db"));
    drop(with_log(&name));
    let user = Process::start("idle", &name);
    fs::rename(&name, &new).unwrap();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_secs(2));
        drop(user);
    });
    let patient = SnapshotOptions {
        busy_timeout: std::time::Duration::from_secs(20),
        ..impatient(false)
    };
    let opened = SqliteSnapshot::open(&new, &patient);
    assert!(matches!(opened, Err(Error::Aliased { .. })), "{opened:?}");
    killer.join().unwrap();
}

#[test]
fn a_database_that_is_a_mount_point_is_refused_unless_it_is_mounted_onto_itself() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("data")).unwrap();
    let _writer = with_log(&folder.path().join("data/x.db"));
    drop(notes(folder.path()));
    let mounts = "for name in a b notes; do : > \"$1/$name-here.db\"; done; \
                  mount --bind \"$1/data/x.db\" \"$1/a-here.db\" && \
                  mount --bind \"$1/data/x.db\" \"$1/b-here.db\" && \
                  mount -o remount,ro,bind \"$1/b-here.db\" && \
                  mount --bind \"$1/notes.db\" \"$1/notes-here.db\" && \
                  mount --bind \"$1/data/x.db\" \"$1/data/x.db\"";
    let answer = elsewhere("mounted files", folder.path(), mounts);
    assert!(
        matches!(answer.as_deref(), None | Some("done")),
        "{answer:?}"
    );
}

/// The role in the namespace.
pub(crate) fn mounted_files(folder: &Path) {
    say("ready");
    for name in ["a-here.db", "b-here.db", "notes-here.db"] {
        let path = folder.join(name);
        assert_eq!(refusal(&path), Alias::Name(OtherName::Mount), "{name}");
        drop(SqliteSnapshot::open(&path, &impatient(true)).unwrap());
        let replace = windlass_source::sqlite::RestoreRequest {
            existing: Existing::Replace,
            ..request(&path, 8192)
        };
        let error = SqliteTarget::begin(&replace).unwrap_err();
        let found = OtherName::Mount;
        let is_foreseen = matches!(error, Error::NotReplaceable { found: it, .. } if it == found);
        assert!(is_foreseen, "{error}");
    }
    drop(open(&folder.join("data/x.db")));
    say("done");
}

#[test]
fn a_restore_over_a_file_with_a_second_hard_link_is_refused_before_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    let (name, other) = (notes(folder.path()), folder.path().join("b.db"));
    fs::hard_link(&name, &other).unwrap();
    let before = fs::read(&name).unwrap();
    let replace = windlass_source::sqlite::RestoreRequest {
        existing: Existing::Replace,
        ..request(&name, 8192)
    };
    let error = SqliteTarget::begin(&replace).unwrap_err();
    assert!(matches!(error, Error::NotReplaceable { .. }), "{error}");
    assert!(fs::read(&name).unwrap() == before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    fs::remove_file(&other).unwrap();
    SqliteTarget::begin(&replace).unwrap();
}
