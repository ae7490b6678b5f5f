//! One instance, several users: who is refused.
//!
//! These tests run as root only, because nobody else can run a program as somebody else.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

use crate::support::{Place, Run};

const OWNER: u32 = 54_321;
const STRANGER: u32 = 54_322;
/// Nobody else runs as this user, whose threads are counted.
const LONELY: u32 = 54_323;

/// A place of the owner's; `None` without the right to make one.
fn place() -> Option<Place> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let place = Place::new();
    let folder = place.path("");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&folder, open).expect("its mode");
    for path in [folder, place.path("app.db"), place.path("other.db")] {
        chown(path, Some(OWNER), Some(OWNER)).expect("its owner");
    }
    Some(place)
}

/// Runs the program on the instance as a user. `None` if that user cannot reach the program.
pub(crate) fn run_as(place: &Place, user: u32, arguments: &[&str]) -> Option<Run> {
    let arguments = [arguments, &["--json", "--instance", "instance"]].concat();
    let mut command = place.command(&arguments);
    if user != 0 {
        command.uid(user).gid(user);
    }
    match command.output() {
        Ok(output) => Some(Run::of(&output)),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => None,
        Err(error) => panic!("{error}"),
    }
}

#[track_caller]
fn well_as(place: &Place, user: u32, arguments: &[&str]) -> Run {
    let run = run_as(place, user, arguments).expect("it starts");
    assert_eq!(run.code, Some(0), "{arguments:?}\n{}\n{}", run.out, run.err);
    assert!(!run.numbers().contains(&3009), "{}", run.err);
    run
}

fn all_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(all_files(&path));
        }
        files.push(path);
    }
    files
}

#[test]
fn root_is_refused_in_the_instance_of_somebody_else() {
    let Some(place) = place() else { return };
    let attach = "EXEC sp_attach_db 'app', 'app.db'";
    if run_as(&place, OWNER, &["sql", "-Q", attach]).is_none() {
        return;
    }
    // A link of the owner's would lead root to files of others.
    let before = all_files(&place.path("instance"));
    for arguments in [
        &["backup", "app", "--to", "root.bak"][..],
        &["sql", "-Q", "CREATE DATABASE Sales"],
        &["check"],
    ] {
        let run = run_as(&place, 0, arguments).expect("it starts");
        assert_ne!(run.code, Some(0), "{arguments:?}");
        let reason = format!("it belongs to user {OWNER}, but this program runs as user 0");
        let said = format!("{}{}", run.out, run.err);
        assert!(said.contains(&reason), "{said}");
    }
    assert_eq!(all_files(&place.path("instance")), before);
    well_as(&place, OWNER, &["backup", "app", "--to", "own.bak"]);
}

#[test]
fn another_user_is_refused_by_name_and_leaves_nothing_in_the_instance() {
    let Some(place) = place() else { return };
    let attach = "EXEC sp_attach_db 'app', 'app.db'";
    if run_as(&place, OWNER, &["sql", "-Q", attach]).is_none() {
        return;
    }
    let before = all_files(&place.path("instance"));
    for mode in [0o700, 0o777] {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(place.path("instance"), mode).expect("its mode");
        let run = run_as(&place, STRANGER, &["backup", "app", "--to", "/tmp/x.bak"]);
        let run = run.expect("it starts");
        assert_eq!(run.code, Some(1));
        let reason = format!(
            "it belongs to user {OWNER}, but this program runs as user {STRANGER}; \
             run it as its owner"
        );
        assert!(run.err.contains(&reason), "{}", run.err);
    }
    assert_eq!(all_files(&place.path("instance")), before);
    // Who may only look may look.
    let readable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path("instance"), readable).expect("its mode");
    let readable = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(place.path("instance/windlass.catalog"), readable).expect("it");
    let run = run_as(&place, STRANGER, &["check"]).expect("it starts");
    assert_eq!(run.code, Some(2), "{}", run.out);
    assert!(run.out.contains("never-backed-up"), "{}", run.out);
}

#[test]
fn a_folder_that_cannot_be_read_is_no_empty_one() {
    let Some(place) = place() else {
        return;
    };
    let locked = place.path("locked");
    std::fs::create_dir(&locked).expect("a folder");
    // It is root's.
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o700)).expect("a mode");
    let drive = format!("d={}", place.path("").display());
    for statement in [
        "EXEC xp_dirtree 'd:\\locked', 1, 1",
        "EXEC xp_delete_file 0, 'd:\\locked', 'bak', '2099-01-01'",
    ] {
        let arguments = ["sql", "--drive", &drive, "-Q", statement];
        let run = run_as(&place, OWNER, &arguments);
        let Some(run) = run else {
            return;
        };
        assert!(
            run.numbers().contains(&5120),
            "{statement}: {}{}",
            run.out,
            run.err
        );
    }
}

#[test]
fn a_system_without_threads_ends_a_backup_with_a_message() {
    let place = Place::new();
    for (name, mode) in [(".", 0o777), ("app.db", 0o666)] {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(place.path(name), permissions).expect("changed");
    }
    let program = env!("CARGO_BIN_EXE_windlass");
    let mut failed = 0;
    for threads in 1..12 {
        let script =
            format!("ulimit -u {threads} && exec {program} backup app.db --to t.bak --format");
        let mut command = std::process::Command::new("bash");
        command.args(["-c", &script]).current_dir(place.path("."));
        let output = match command.uid(LONELY).gid(LONELY).output() {
            Ok(output) => output,
            // Only root may become another user.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return,
            Err(error) => panic!("{error}"),
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("panicked"), "{threads}: {said}");
        if output.status.code() == Some(1) {
            assert!(said.contains("50314"), "{threads}: {said}");
            failed += 1;
        }
    }
    assert!(failed > 0);
}
