//! Every real database survives, whatever the algorithm and however many stripes.

use std::path::{Path, PathBuf};

use crate::support::{
    ALGORITHMS, Store, backup_arguments, restore_arguments, shared, shown, succeed,
};

/// The databases of the shared data: everything that is not a side file or a page about them.
fn databases(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in [folder.to_owned(), folder.join("forensic")] {
        for entry in std::fs::read_dir(folder).expect("the folder").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_side_file = ["-wal", "-shm", ".md"]
                .iter()
                .any(|end| name.ends_with(end));
            if entry.path().is_file() && !is_side_file {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// Copies a database with its -wal, without its -shm, which only a live SQLite may hold.
fn copy(database: &Path, folder: &Path) -> PathBuf {
    let to = folder.join(database.file_name().expect("a name"));
    std::fs::copy(database, &to).expect("a copy");
    let wal = PathBuf::from(format!("{}-wal", shown(database)));
    if wal.exists() {
        std::fs::copy(&wal, format!("{}-wal", shown(&to))).expect("a copy");
    }
    to
}

/// What a restore must give: the file itself, or with a WAL what SQLite makes of both.
fn expected(database: &Path, folder: &Path) -> Vec<u8> {
    let copied = copy(database, folder);
    if PathBuf::from(format!("{}-wal", shown(&copied))).exists() {
        let connection = rusqlite::Connection::open(&copied).expect("a database");
        let folded: i64 = connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
            .expect("an answer");
        assert_eq!(folded, 0, "nobody else has it open");
    }
    std::fs::read(&copied).expect("the file")
}

fn round_trip(database: &Path, algorithm: &str, families: usize, store: Store) {
    let folder = tempfile::tempdir().expect("a folder");
    let reference = tempfile::tempdir().expect("a folder");
    let expected = expected(database, reference.path());
    let copied = copy(database, folder.path());
    let devices = store.media(folder.path(), families);
    let target = folder.path().join("restored");
    succeed(&backup_arguments(
        &shown(&copied),
        &devices,
        &["--compress", algorithm],
    ));
    let mut verify = vec!["verify"];
    verify.extend(devices.iter().map(String::as_str));
    succeed(&verify);
    succeed(&restore_arguments(&devices, &shown(&target), &[]));
    let restored = std::fs::read(&target).expect("the restored file");
    assert!(
        restored == expected,
        "{}: {algorithm}, {families} stripes, {store:?}",
        database.display()
    );
    for device in &devices {
        store.remove(device);
    }
}

/// Takes all databases through what `is_taken` says of a database's length in bytes, its number, the algorithm's number
/// and the number of stripes.
fn round_trips(store: Store, is_taken: fn(u64, usize, usize, usize) -> bool) {
    let Some(folder) = shared("sqlite") else {
        return;
    };
    let databases = databases(&folder);
    assert!(databases.len() >= 20, "the shared data is complete");
    std::thread::scope(|scope| {
        for half in databases.chunks(databases.len().div_ceil(2)) {
            scope.spawn(move || {
                for (index, database) in half.iter().enumerate() {
                    let bytes = std::fs::metadata(database).expect("a database").len();
                    for (turn, algorithm) in ALGORITHMS.iter().enumerate() {
                        for families in [1, 4] {
                            if is_taken(bytes, index, turn, families) {
                                round_trip(database, algorithm, families, store);
                            }
                        }
                    }
                }
            });
        }
    });
}

#[test]
fn every_real_database_survives_each_algorithm_and_striping() {
    // Small databases meet every combination; larger ones take turns.
    round_trips(Store::Files, |bytes, index, turn, families| {
        let is_its_turn = (turn + families / 4 + index) % 3 == 0;
        bytes < 300_000 || is_its_turn || cfg!(not(debug_assertions))
    });
}

#[test]
fn every_real_database_survives_in_object_storage() {
    round_trips(Store::Objects, |_, index, turn, families| {
        let is_its_turn = (turn + families / 4 + index) % 6 == 0;
        is_its_turn || cfg!(not(debug_assertions))
    });
}
