//! Every real database of the shared test data: backed up and restored.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use windlass_source::Recovery;

use crate::support::{image, names, open, request, restore, shared};

fn databases(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in [folder.to_owned(), folder.join("forensic")] {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let extension = path
                .extension()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_file() && !["md", "ide-wal", "ide-shm"].contains(&&*extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Copies a database and the files next to it, and returns the copy's path.
fn copy_of(original: &Path, folder: &Path) -> PathBuf {
    let name = original.file_name().unwrap().to_str().unwrap();
    for suffix in ["", "-wal", "-shm"] {
        let from = original.with_file_name(format!("{name}{suffix}"));
        if from.exists() {
            fs::write(
                folder.join(format!("{name}{suffix}")),
                fs::read(from).unwrap(),
            )
            .unwrap();
        }
    }
    folder.join(name)
}

#[test]
fn every_database_comes_back_byte_for_byte() {
    let Some(shared) = shared() else { return };
    let mut count = 0;
    for original in databases(&shared) {
        let folder = tempfile::tempdir().unwrap();
        let path = copy_of(&original, folder.path());
        let before = names(folder.path());
        let log_before = fs::read(path.with_extension("ide-wal")).ok();

        let bytes = image(open(&path), 1 + count % 3);

        assert_eq!(
            names(folder.path()),
            before,
            "nothing new beside {}",
            path.display()
        );
        assert_eq!(
            fs::read(path.with_extension("ide-wal")).ok(),
            log_before,
            "log as found"
        );
        assert_eq!(
            fs::read(&path).unwrap(),
            fs::read(&original).unwrap(),
            "database as found"
        );
        let target = folder.path().join("restored");
        restore(
            &request(&target, bytes.len() as u64),
            &bytes,
            Recovery::Recovery,
        );
        let restored = fs::read(&target).unwrap();
        if log_before.is_none() {
            assert!(
                restored == fs::read(&original).unwrap(),
                "{}",
                original.display()
            );
        } else {
            assert_eq!(restored.len(), 527 * 4096);
            assert_ne!(
                restored,
                fs::read(&original).unwrap(),
                "pages of the log are in it"
            );
            assert!(
                restored == as_sqlite_sees_it(&path),
                "page for page what SQLite sees"
            );
        }
        count += 1;
    }
    assert_eq!(count, 25, "databases in the test data");
}

/// The pages of a database as `SQLite` reads them, through the `sqlite_dbpage` table or, if that is
/// not built in, by letting `SQLite` checkpoint the log of a copy.
fn as_sqlite_sees_it(path: &Path) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let copy = copy_of(path, folder.path());
    let connection = Connection::open(&copy).unwrap();
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(connection);
    fs::read(copy).unwrap()
}
