//! Disks that fail during reads: the cause is reported, and nothing is lost or left behind.

use std::path::Path;

use windlass_codec::Compression;
use windlass_pipeline::{Error, MediaSet, Unobserved, backup};

use crate::support::{self, devices, request, snapshot};
use crate::troubled::Troubled;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn an_unreadable_sector_of_the_database_ends_the_backup_and_leaves_earlier_sets() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("app.db");
    support::make_database(&database, 20_000);
    let size = std::fs::metadata(&database).unwrap().len();
    let devices = devices(folder.path(), &["1.bak", "2.bak"]);
    let first = request(&devices, Compression::ZSTD_LOW);
    backup(&first, snapshot(&database), &Unobserved).unwrap();
    let (before, bytes) = (
        names(folder.path()),
        std::fs::read(devices[0].file().unwrap()).unwrap(),
    );
    for (at, located) in [
        (0, true),
        (size / 2, true),
        (size - 1, true),
        (size / 2, false),
    ] {
        for compression in [Compression::NONE, Compression::ZSTD_LOW] {
            let broken = Troubled {
                unreadable_at: Some(at),
                is_unlocated: !located,
                ..Troubled::new(snapshot(&database))
            };
            let error = backup(
                &request(&devices, compression),
                Box::new(broken),
                &Unobserved,
            )
            .unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, Error::Source(_)), "{text}");
            assert!(text.contains("app.db") && text.contains("read"), "{text}");
        }
    }
    assert_eq!(names(folder.path()), before, "nothing is left behind");
    assert!(
        std::fs::read(devices[0].file().unwrap()).unwrap() == bytes,
        "cut back to the first set"
    );
    let media = MediaSet::open(&devices).unwrap();
    let target = folder.path().join("copy.db");
    support::restore_to(&media, 1, &target, windlass_source::Recovery::Recovery).unwrap();
    assert!(std::fs::read(&target).unwrap() == std::fs::read(&database).unwrap());
}
