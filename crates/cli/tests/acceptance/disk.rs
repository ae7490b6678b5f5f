//! Full disks, unwritable folders, vanished stripes: a clear message, nothing lost, nothing left.

use std::path::Path;
use std::process::Command;

use crate::support::{
    Store, backup_arguments, fail, make_database, restore_arguments, shown, succeed,
};

/// A file system of a few megabytes; unmounted when dropped. Needs the right to mount.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(megabytes: u32) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let size = format!("size={megabytes}m");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(folder.path())
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(folder));
        }
        eprintln!("SKIPPED: no right to mount a small file system for the full-disk test");
        None
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn make_read_only(&self) {
        let remounted = Command::new("mount")
            .args(["-o", "remount,ro"])
            .arg(self.path())
            .status();
        assert!(remounted.is_ok_and(|status| status.success()));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(self.0.path()).status());
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder").flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_full_disk_ends_a_backup_with_a_message_and_leaves_nothing() {
    let Some(small) = SmallDisk::mount(8) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let (tiny, large) = (
        folder.path().join("tiny.db"),
        folder.path().join("large.db"),
    );
    make_database(&tiny, 1, "delete");
    make_database(&large, 60, "delete");
    let fresh = vec![shown(&small.path().join("fresh.bak"))];
    let said = fail(&backup_arguments(
        &shown(&large),
        &fresh,
        &["--compress", "none"],
    ));
    assert!(said.contains("50022"), "reported before it begins: {said}");
    // The compressed size is not known in advance, so the disk itself reports the error.
    let said = fail(&backup_arguments(
        &shown(&large),
        &fresh,
        &["--compress", "ms_xpress"],
    ));
    assert!(
        said.contains("3202") && said.contains("No space left"),
        "{said}"
    );
    assert!(
        names(small.path()).is_empty(),
        "temporary files are gone: {:?}",
        names(small.path())
    );

    let kept = vec![shown(&small.path().join("kept.bak"))];
    succeed(&backup_arguments(
        &shown(&tiny),
        &kept,
        &["--compress", "none"],
    ));
    let before = std::fs::read(&kept[0]).expect("media");
    fail(&backup_arguments(
        &shown(&large),
        &kept,
        &["--compress", "ms_xpress"],
    ));
    assert!(
        std::fs::read(&kept[0]).expect("media") == before,
        "the append is cut off again"
    );
    fail(&backup_arguments(
        &shown(&large),
        &kept,
        &["--compress", "ms_xpress", "--init"],
    ));
    assert!(
        std::fs::read(&kept[0]).expect("media") == before,
        "the overwrite left the old backup"
    );
}

fn fill_the_disk_of_a_restore(store: Store) {
    let Some(small) = SmallDisk::mount(8) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let large = folder.path().join("large.db");
    make_database(&large, 30, "delete");
    let devices = store.media(folder.path(), 1);
    succeed(&backup_arguments(
        &shown(&large),
        &devices,
        &["--compress", "zstd"],
    ));
    let said = fail(&restore_arguments(
        &devices,
        &shown(&small.path().join("r.db")),
        &[],
    ));
    assert!(said.contains("3257"), "{said}");
    assert!(names(small.path()).is_empty(), "{:?}", names(small.path()));
}

#[test]
fn a_full_disk_ends_a_restore_before_it_begins() {
    fill_the_disk_of_a_restore(Store::Files);
    fill_the_disk_of_a_restore(Store::Objects);
}

fn lose_a_stripe(store: Store) {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("app.db");
    make_database(&database, 1, "delete");
    let devices = store.media(folder.path(), 3);
    succeed(&backup_arguments(
        &shown(&database),
        &devices,
        &["--compress", "zstd"],
    ));
    store.remove(&devices[1]);
    let target = shown(&folder.path().join("r.db"));
    let said = fail(&restore_arguments(&devices, &target, &[]));
    assert!(
        said.contains("3201") && said.contains(&devices[1]),
        "{said}"
    );
    let present = [devices[0].clone(), devices[2].clone()];
    let said = fail(&restore_arguments(&present, &target, &[]));
    assert!(said.contains("3132"), "{said}");
    assert!(!Path::new(&target).exists());
}

#[test]
fn a_vanished_stripe_is_named() {
    lose_a_stripe(Store::Files);
    lose_a_stripe(Store::Objects);
}

#[test]
fn a_missing_folder_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("app.db");
    make_database(&database, 1, "delete");
    let nowhere = vec![shown(&folder.path().join("missing/x.bak"))];
    let said = fail(&backup_arguments(&shown(&database), &nowhere, &[]));
    assert!(said.contains("3201"), "{said}");
}

fn restore_to_an_unwritable_folder(store: Store) {
    let Some(small) = SmallDisk::mount(8) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("app.db");
    make_database(&database, 1, "delete");
    let devices = store.media(folder.path(), 2);
    succeed(&backup_arguments(&shown(&database), &devices, &[]));
    small.make_read_only();
    let target = shown(&small.path().join("r.db"));
    let said = fail(&restore_arguments(&devices, &target, &[]));
    assert!(
        said.contains("Read-only file system") && said.contains(&shown(small.path())),
        "{said}"
    );
}

#[test]
fn an_unwritable_target_of_a_restore_is_named() {
    restore_to_an_unwritable_folder(Store::Files);
    restore_to_an_unwritable_folder(Store::Objects);
}

#[test]
fn an_unwritable_folder_is_named_and_nothing_changes() {
    let Some(small) = SmallDisk::mount(8) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("app.db");
    make_database(&database, 1, "delete");
    let old = vec![shown(&small.path().join("old.bak"))];
    let fresh = vec![shown(&small.path().join("fresh.bak"))];
    succeed(&backup_arguments(&shown(&database), &old, &[]));
    let bytes = std::fs::read(&old[0]).expect("the backup");
    small.make_read_only();
    for arguments in [
        backup_arguments(&shown(&database), &fresh, &[]),
        backup_arguments(&shown(&database), &old, &[]),
        backup_arguments(&shown(&database), &old, &["--init"]),
    ] {
        let said = fail(&arguments);
        assert!(
            said.contains("Read-only file system") && said.contains(&shown(small.path())),
            "{said}"
        );
    }
    assert_eq!(names(small.path()), ["old.bak"]);
    assert!(std::fs::read(&old[0]).expect("the backup") == bytes);
}
