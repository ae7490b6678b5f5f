//! The files of an offline database as the source of a backup.
#![expect(clippy::unwrap_used, reason = "a test may")]

#[path = "../../bak/tests/common/mod.rs"]
mod common;

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use windlass_device::DeviceAddress;
use windlass_source::{Error as SourceError, Snapshot as _};
use windlass_sqlserver::{Destination, Error, OfflineFile, OfflineSnapshot, Step, restore};

/// The restored files of a sample with several data files.
fn files(to: &Path) -> Option<Vec<OfflineFile>> {
    let folder = common::folder()?;
    let step = Step {
        devices: vec![DeviceAddress::disk(
            folder.join("sql2014c_AWDataWarehouse_copyonly_3datafiles.bak"),
        )],
        position: 1,
    };
    let destination = Destination {
        folder: Some(to.to_owned()),
        ..Destination::default()
    };
    let restored = restore(&[step], &destination).unwrap();
    let file = |file: windlass_sqlserver::RestoredFile| OfflineFile {
        id: file.id,
        is_log: file.is_log,
        logical_name: file.logical_name,
        path: file.path,
        bytes: file.bytes,
    };
    Some(restored.files.into_iter().map(file).collect())
}

/// The pages that are reported as damaged.
fn damaged(snapshot: &OfflineSnapshot) -> Vec<(u16, u64)> {
    let mut found = Vec::new();
    for file in snapshot.files() {
        for range in snapshot.ranges(file.id) {
            let mut bytes = vec![0; (range.end - range.start) as usize];
            snapshot.read(file.id, range.start, &mut bytes).unwrap();
            snapshot.check_pages(file.id, range.start, &bytes, &mut |page| {
                found.push((page.file_id.0, page.page));
            });
        }
    }
    found
}

#[test]
fn every_page_of_several_data_files_is_sound_and_a_hole_is_read_only_where_pages_are_allocated() {
    let folder = tempfile::tempdir().unwrap();
    let Some(files) = files(folder.path()) else {
        return;
    };
    let snapshot = OfflineSnapshot::open("x", &files).unwrap();
    assert_eq!(damaged(&snapshot), []);
    let data = || {
        snapshot
            .files()
            .iter()
            .filter(|file| !file.path.ends_with("x.ldf"))
    };
    let stored: u64 = data()
        .flat_map(|file| snapshot.ranges(file.id))
        .map(|range| range.end - range.start)
        .sum();
    let all: u64 = data().map(|file| file.size_bytes).sum();
    assert!(stored < all / 2, "{stored} of {all}");
    snapshot.close().unwrap();
}

#[test]
fn a_file_that_changes_or_is_replaced_or_shrinks_meanwhile_fails_the_backup() {
    let folder = tempfile::tempdir().unwrap();
    let Some(files) = files(folder.path()) else {
        return;
    };
    let data = files.iter().find(|file| file.id == 3).unwrap();
    let changed = |result: Result<(), SourceError>| match result {
        Err(SourceError::ChangedWhileReading { path }) => assert_eq!(path, data.path),
        other => panic!("{other:?}"),
    };
    let whole = std::fs::read(&data.path).unwrap();
    let snapshot = OfflineSnapshot::open("x", &files).unwrap();
    let file = File::options().write(true).open(&data.path).unwrap();
    file.write_all_at(b"x", 5000).unwrap();
    changed(snapshot.close());
    let snapshot = OfflineSnapshot::open("x", &files).unwrap();
    let copy = data.path.with_extension("copy");
    std::fs::copy(&data.path, &copy).unwrap();
    std::fs::rename(&copy, &data.path).unwrap();
    changed(snapshot.close());
    let snapshot = OfflineSnapshot::open("x", &files).unwrap();
    let last = snapshot.ranges(3).pop().unwrap();
    let file = File::options().write(true).open(&data.path).unwrap();
    file.set_len(last.start).unwrap();
    let mut bytes = vec![0; (last.end - last.start) as usize];
    changed(snapshot.read(3, last.start, &mut bytes));
    std::fs::write(&data.path, whole).unwrap();
}

#[test]
fn files_in_each_others_places_and_a_second_log_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let Some(files) = files(folder.path()) else {
        return;
    };
    let refused = |files: &[OfflineFile]| match OfflineSnapshot::open("x", files) {
        Err(Error::Sequence { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    let mut swapped = files.clone();
    let (one, other) = (swapped[0].path.clone(), swapped[2].path.clone());
    (swapped[0].path, swapped[2].path) = (other, one);
    assert!(refused(&swapped).contains("is not data file"));
    let log = files.iter().find(|file| file.is_log).unwrap();
    let mut two = files.clone();
    two.push(OfflineFile {
        id: 9,
        ..log.clone()
    });
    assert!(refused(&two).contains("second log"));
    let without: Vec<OfflineFile> = files.iter().filter(|file| file.id != 1).cloned().collect();
    assert!(refused(&without).contains("no first data file"));
}
