//! `kill -9` at any moment: earlier sets stay, targets are old or new, never half.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{
    Store, backup_arguments, command, fail, integrity, make_database, media, restore_arguments,
    shown, succeed,
};

/// Duration of a command that is not killed.
fn duration_of(arguments: &[&str]) -> Duration {
    let begun = Instant::now();
    succeed(arguments);
    begun.elapsed()
}

/// Starts a command and kills it after `part` of `whole`.
fn kill_after(arguments: &[&str], whole: Duration, part: f64) {
    let mut child = command(arguments)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the program starts");
    std::thread::sleep(whole.mul_f64(part));
    drop(child.kill());
    child.wait().expect("the program ends");
}

fn parts(rounds: u32) -> impl Iterator<Item = f64> {
    (0..rounds).map(move |round| f64::from(round) / f64::from(rounds) * 1.1)
}

fn kill_appends(rounds: u32) {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("app.db");
    make_database(&database, 8, "wal");
    let devices = media(folder.path(), 3);
    let name = shown(&database);
    let append = backup_arguments(&name, &devices, &["--compress", "zstd"]);
    succeed(&append);
    let original = std::fs::read(&database).expect("the database");
    let whole = duration_of(&append);
    let target = folder.path().join("restored.db");
    let shown_target = shown(&target);
    for (round, part) in parts(rounds).enumerate() {
        kill_after(&append, whole, part);
        let set = ["--set", if round % 2 == 0 { "1" } else { "2" }, "--replace"];
        succeed(&restore_arguments(&devices, &shown_target, &set));
        assert!(
            std::fs::read(&target).unwrap() == original,
            "round {round}: an earlier set is whole"
        );
        if round % 10 == 9 {
            succeed(&append);
        }
    }
    succeed(&append);
}

/// An object is never half, and stripes of which one is missing are never a set.
fn kill_backups_to_objects(rounds: u32) {
    let store = Store::Objects;
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("app.db");
    make_database(&database, 8, "wal");
    let original = std::fs::read(&database).expect("the database");
    let name = shown(&database);
    let backup = |devices: &[String], how: &[&'static str]| -> Vec<String> {
        let how = [&["--compress", "zstd"], how].concat();
        let arguments = backup_arguments(&name, devices, &how);
        arguments.into_iter().map(str::to_owned).collect()
    };
    let target = shown(&folder.path().join("restored.db"));
    let is_whole = |devices: &[String]| {
        succeed(&restore_arguments(devices, &target, &["--replace"]));
        assert!(std::fs::read(&target).unwrap() == original);
    };
    let whole = {
        let probe = backup(&store.media(&folder.path().join("probe"), 3), &[]);
        duration_of(&borrowed(&probe))
    };
    let kept = [store.medium(folder.path(), "kept.bak")];
    succeed(&borrowed(&backup(&kept, &[])));
    let mut halves = 0;
    for (round, part) in parts(rounds).enumerate() {
        let devices = store.media(&folder.path().join(round.to_string()), 3);
        kill_after(&borrowed(&backup(&devices, &[])), whole, part);
        let made = devices
            .iter()
            .filter(|device| store.content(device).is_some());
        if made.count() == devices.len() {
            is_whole(&devices);
        } else {
            halves += 1;
            fail(&restore_arguments(&devices, &target, &["--replace"]));
        }
        // One object is old or new, whatever the moment.
        kill_after(&borrowed(&backup(&kept, &["--format"])), whole, part);
        is_whole(&kept);
    }
    assert!(halves > 0, "no backup was killed in time");
}

fn borrowed(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

fn kill_restores(rounds: u32, store: Store) {
    let folder = tempfile::tempdir().expect("a folder");
    let (old, new) = (folder.path().join("old.db"), folder.path().join("new.db"));
    make_database(&old, 4, "wal");
    make_database(&new, 9, "wal");
    let devices = store.media(folder.path(), 2);
    succeed(&backup_arguments(
        &shown(&new),
        &devices,
        &["--compress", "zstd"],
    ));
    let target = folder.path().join("target.db");
    let shown_target = shown(&target);
    let restore = restore_arguments(&devices, &shown_target, &["--replace"]);
    let whole = duration_of(&restore);
    let (old_bytes, new_bytes) = (std::fs::read(&old).unwrap(), std::fs::read(&new).unwrap());
    for (round, part) in parts(rounds).enumerate() {
        std::fs::write(&target, &old_bytes).expect("the old database");
        kill_after(&restore, whole, part);
        let found = std::fs::read(&target).expect("a target");
        assert!(
            found == old_bytes || found == new_bytes,
            "round {round}: old or new, never half"
        );
        assert_eq!(integrity(&target), "ok");
        remove_side_files(&target);
    }
    succeed(&restore);
    assert!(std::fs::read(&target).unwrap() == new_bytes);
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    let is_temporary = |name: &std::ffi::OsString| name.to_string_lossy().contains("windlass");
    assert!(
        !left.iter().any(is_temporary),
        "what crashes left is cleaned up: {left:?}"
    );
}

fn remove_side_files(target: &Path) {
    for end in ["-wal", "-shm"] {
        drop(std::fs::remove_file(format!("{}{end}", shown(target))));
    }
}

#[test]
fn killed_appends_leave_earlier_sets() {
    kill_appends(8);
}

#[test]
fn killed_backups_to_objects_leave_no_half_set() {
    kill_backups_to_objects(8);
}

#[test]
fn killed_restores_leave_old_or_new() {
    kill_restores(8, Store::Files);
}

#[test]
fn killed_restores_of_objects_leave_old_or_new() {
    kill_restores(8, Store::Objects);
}

#[test]
#[ignore = "a hundred killed backups"]
fn slow_a_hundred_killed_appends_leave_earlier_sets() {
    kill_appends(100);
}

#[test]
#[ignore = "two hundred killed backups"]
fn slow_a_hundred_killed_backups_to_objects_leave_no_half_set() {
    kill_backups_to_objects(100);
}

#[test]
#[ignore = "two hundred killed restores"]
fn slow_two_hundred_killed_restores_leave_old_or_new() {
    kill_restores(100, Store::Files);
    kill_restores(100, Store::Objects);
}
