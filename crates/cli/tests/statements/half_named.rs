//! Striped media whose overwriting failed, or was killed, while the files got their names.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::support::{Place, Run, rows};

const STRIPES: [&str; 2] = ["x1.bak", "x2.bak"];

fn backup(place: &Place, how: &[&str]) -> Run {
    let [one, two] = STRIPES;
    place.run(
        &[
            &["backup", "app.db", "--to", one, "--to", two, "--skip"],
            how,
        ]
        .concat(),
    )
}

fn staged(place: &Place, name: &str) -> PathBuf {
    place.path(&format!("{name}.windlass-new"))
}

/// Media of two stripes that hold an earlier backup, and the bytes of a later one that replaced it.
fn two_backups(place: &Place, how: &str) -> [Vec<u8>; 4] {
    let read = || STRIPES.map(|name| fs::read(place.path(name)).expect("a stripe"));
    assert_eq!(backup(place, &["--format"]).code, Some(0));
    let [earlier_one, earlier_two] = read();
    assert_eq!(backup(place, &[how]).code, Some(0));
    let [later_one, later_two] = read();
    [earlier_one, earlier_two, later_one, later_two]
}

#[test]
fn a_set_of_which_only_a_part_got_its_names_is_named_by_readers_and_removed_by_no_writer() {
    for (how, is_exchanged) in [("--init", false), ("--format", false), ("--init", true)] {
        let place = Place::new();
        let [earlier_one, earlier_two, later_one, later_two] = two_backups(&place, how);
        fs::write(place.path("x1.bak"), &later_one).expect("a stripe");
        fs::write(place.path("x2.bak"), &earlier_two).expect("a stripe");
        fs::write(staged(&place, "x2.bak"), &later_two).expect("a stripe");
        if is_exchanged {
            fs::write(staged(&place, "x1.bak"), &earlier_one).expect("a stripe");
        }
        let complete = format!("'{}', '{}'", "x1.bak", "x2.bak.windlass-new");
        let names = |run: &Run| {
            assert_eq!(run.code, Some(1), "{how}: {}", run.err);
            let text = run.err.replace(&place.text(""), "").replace("'/", "'");
            assert!(text.contains("50039"), "{how}: {text}");
            assert!(text.contains(&complete), "{how}: {text}");
        };
        names(&place.run(&["verify", "x1.bak", "x2.bak"]));
        names(&place.run(&["restore", "x1.bak", "x2.bak", "--to", "r.db", "--set", "1"]));
        for how in [&["--init"][..], &["--format"], &[]] {
            names(&backup(&place, how));
        }
        // Without the name of the other stripe.
        let run = place.run(&["backup", "app.db", "--to", "x2.bak", "--format"]);
        assert_eq!(run.code, Some(1), "{how}: {}", run.err);
        assert!(run.err.contains("50039"), "{how}: {}", run.err);
        assert!(
            run.err.contains("x2.bak.windlass-new"),
            "{how}: {}",
            run.err
        );
        assert!(fs::read(staged(&place, "x2.bak")).expect("it") == later_two);
        // The message's advice is right.
        place.succeed(&["restore", "x1.bak", "x2.bak.windlass-new", "--to", "r.db"]);
        assert_eq!(rows(&place.path("r.db")), rows(&place.path("app.db")));
        fs::rename(staged(&place, "x2.bak"), place.path("x2.bak")).expect("its name");
        place.succeed(&["verify", "x1.bak", "x2.bak"]);
        assert_eq!(backup(&place, &["--init"]).code, Some(0));
        assert!(!staged(&place, "x1.bak").exists() && !staged(&place, "x2.bak").exists());
    }
}

#[test]
fn what_a_killed_overwrite_left_beside_complete_media_goes_with_the_next_one() {
    let place = Place::new();
    let [earlier_one, earlier_two, ..] = two_backups(&place, "--init");
    fs::write(staged(&place, "x1.bak"), earlier_one).expect("a stripe");
    fs::write(staged(&place, "x2.bak"), earlier_two).expect("a stripe");
    place.succeed(&["verify", "x1.bak", "x2.bak"]);
    assert_eq!(backup(&place, &["--init"]).code, Some(0));
    assert!(!staged(&place, "x1.bak").exists() && !staged(&place, "x2.bak").exists());
}

/// `docker -v /nas/x2.bak:/x2.bak`: the name of a mount point cannot be given to another file.
#[test]
fn a_stripe_that_is_a_mount_point_is_refused_before_an_overwrite_begins() {
    let place = Place::new();
    assert_eq!(backup(&place, &["--format"]).code, Some(0));
    let before = STRIPES.map(|name| fs::read(place.path(name)).expect("a stripe"));
    fs::copy(place.path("x2.bak"), place.path("temp/x2.bak")).expect("a copy");
    for how in ["--init", "--format"] {
        let arguments = [
            "backup", "app.db", "--to", "x1.bak", "--to", "x2.bak", "--skip", how,
        ];
        let wanted = place.command(&arguments);
        let mut command = Command::new("unshare");
        let script = "mount --bind \"$1\" \"$2\" || exit 77; shift 2; exec \"$@\"";
        command.args(["-m", "sh", "-c", script, "sh"]);
        command.args([place.path("temp/x2.bak"), place.path("x2.bak")]);
        command.arg(wanted.get_program()).args(wanted.get_args());
        for (name, value) in wanted.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.current_dir(wanted.get_current_dir().expect("a folder"));
        let run = Run::of(&command.output().expect("unshare"));
        if run.err.contains("unshare") || run.code == Some(77) {
            println!("SKIPPED: cannot mount in a namespace");
            return;
        }
        assert_eq!(run.code, Some(1), "{}", run.err);
        assert!(run.err.contains("mount point"), "{}", run.err);
        let after = STRIPES.map(|name| fs::read(place.path(name)).expect("a stripe"));
        assert!(before == after, "{how}");
        assert!(!staged(&place, "x1.bak").exists() && !staged(&place, "x2.bak").exists());
    }
}
