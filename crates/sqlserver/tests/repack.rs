//! What is copied from SQL Server's files is what was verified.
#![expect(clippy::unwrap_used, reason = "a test may")]

#[path = "../../bak/tests/common/mod.rs"]
mod common;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use windlass_device::DeviceAddress;
use windlass_source::Snapshot as _;
use windlass_sqlserver::BackupFiles;

/// Changes a byte, and nothing else that shows.
fn rot(path: &Path, at: u64) {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    File::set_modified(&file, modified).unwrap();
}

fn copied(name: &str, folder: &Path) -> Option<PathBuf> {
    let path = folder.join(name);
    std::fs::copy(common::folder()?.join(name), &path).unwrap();
    Some(path)
}

#[test]
fn a_byte_that_rots_between_verification_and_copy_is_noticed_in_either_container() {
    for name in ["sql2012_pubs_a.bak", "sql2016c_TSQL2012.bak"] {
        let folder = tempfile::tempdir().unwrap();
        let Some(path) = copied(name, folder.path()) else {
            return;
        };
        let files = BackupFiles::open(&[DeviceAddress::disk(&path)]).unwrap();
        let (_, snapshot) = files.verified(0, false).unwrap();
        let snapshot = snapshot.unwrap();
        let bytes = snapshot.files()[0].size_bytes;
        let mut content = vec![0; bytes as usize];
        snapshot.read(1, 0, &mut content).unwrap();
        let tail = (bytes - 1) / 65536 * 65536;
        snapshot
            .read(1, tail, &mut content[tail as usize..])
            .unwrap();
        rot(&path, std::fs::metadata(&path).unwrap().len() / 2);
        let refused = snapshot.read(1, 0, &mut content).unwrap_err();
        let why = refused.to_string();
        assert!(why.contains("verified"), "{why}");
    }
}

#[test]
fn a_file_that_is_replaced_or_written_to_while_it_is_copied_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = copied("sql2016c_TutorialDB_a.bak", folder.path()) else {
        return;
    };
    let files = BackupFiles::open(&[DeviceAddress::disk(&path)]).unwrap();
    let (_, snapshot) = files.verified(0, false).unwrap();
    snapshot.as_ref().unwrap().close().unwrap();
    std::fs::copy(&path, folder.path().join("other")).unwrap();
    std::fs::rename(folder.path().join("other"), &path).unwrap();
    let refused = snapshot.unwrap().close().unwrap_err();
    assert!(
        refused.to_string().contains("replaced or changed"),
        "{refused}"
    );
}

#[test]
fn only_families_of_the_same_sets_are_copied_together() {
    let Some(folder) = common::folder() else {
        return;
    };
    let lab = |name: &str| {
        DeviceAddress::disk(folder.join(format!("sql2008r2_lab_RestoreTimeStripe__{name}")))
    };
    let (first, second) = (
        "Stripe1__RestoreTimeStripe.bak",
        "Stripe2__RestoreTimeStripe1.bak",
    );
    let log = "Stripe2__RestoreTimeStripe_1a.trn";
    for (files, is_whole) in [
        (vec![lab(second), lab(first)], true),
        (vec![lab(first), lab(log)], false),
        (vec![lab(first), lab(first)], false),
    ] {
        let opened = BackupFiles::open(&files);
        assert_eq!(opened.is_ok(), is_whole, "{files:?}");
        if let Ok(opened) = opened {
            assert_eq!(opened.devices(), [lab(first), lab(second)]);
            assert!(opened.verified(0, false).unwrap().1.is_some());
        }
    }
}

#[test]
fn a_damaged_set_is_opened_only_if_its_damage_is_accepted() {
    let Some(folder) = common::folder() else {
        return;
    };
    let files =
        BackupFiles::open(&[DeviceAddress::disk(folder.join("sql2008r2_CorruptDB.bak"))]).unwrap();
    let (verified, snapshot) = files.verified(0, false).unwrap();
    assert!(!verified.is_valid() && snapshot.is_none());
    let (_, snapshot) = files.verified(0, true).unwrap();
    assert!(snapshot.unwrap().copied_set().unwrap().is_damaged);
}
