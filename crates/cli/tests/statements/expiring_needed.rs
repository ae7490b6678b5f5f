//! What `expire` keeps because it is needed elsewhere, or because what it needs cannot be seen now.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

use rustix::fs::{FlockOperation, flock};

use crate::owners::run_as;
use crate::support::{Place, Run, flip_bit};

const INSTANCE: [&str; 2] = ["--instance", "instance"];

fn run(place: &Place, words: &[&str]) -> Run {
    place.run(&[words, &INSTANCE].concat())
}

fn succeed(place: &Place, words: &[&str]) -> Run {
    place.succeed(&[words, &INSTANCE].concat())
}

/// However its folder is named.
#[test]
fn a_backup_that_waits_to_be_copied_stays() {
    let place = Place::new();
    succeed(&place, &["sql", "-Q", "EXEC sp_attach_db 'app', 'app.db'"]);
    let command = format!(
        "BACKUP DATABASE app TO DISK = [{}] WITH COPYTO = [{}]",
        place.text("temp/1.bak"),
        place.text("later")
    );
    // The folder for the copy does not exist: it waits.
    let _failed_copy = run(&place, &["sqlbackup", "-SQL", &command]);
    succeed(&place, &["backup", "app", "--to", "temp/2.bak"]);
    symlink("temp", place.path("link")).expect("a link");
    fs::create_dir(place.path("deep")).expect("a folder");
    let whole = [place.text("temp"), place.text("deep/../temp")];
    for folder in ["temp", "./temp", "link", "deep/../temp"]
        .into_iter()
        .chain(whole.iter().map(String::as_str))
    {
        let kept = succeed(&place, &["expire", folder, "--last", "1", "--delete"]);
        assert!(
            kept.out.contains("waits to be copied"),
            "{folder}: {}",
            kept.out
        );
        assert_eq!(place.files("temp"), ["1.bak", "2.bak"], "{folder}");
    }
    fs::create_dir(place.path("later")).expect("a folder");
    succeed(&place, &["copies", "--run", "--now"]);
    assert_eq!(place.files("later"), ["1.bak"]);
    succeed(&place, &["expire", "temp", "--last", "1", "--delete"]);
    assert_eq!(place.files("temp"), ["2.bak"]);
}

/// An older full backup with two differentials, and a newer one.
fn upon_an_older_base() -> Place {
    let place = Place::new();
    let back_up = |name: &str, kind: &[&str]| {
        succeed(
            &place,
            &[&["backup", "app.db", "--to", name][..], kind].concat(),
        );
    };
    back_up("temp/full1.bak", &[]);
    for name in ["temp/diff1.bak", "temp/diff2.bak"] {
        back_up(name, &["--differential"]);
    }
    back_up("temp/full2.bak", &[]);
    place
}

const ALL: [&str; 4] = ["diff1.bak", "diff2.bak", "full1.bak", "full2.bak"];

/// Keeps others from reading a file, as a backup does that appends to it.
fn lock(place: &Place, name: &str) -> fs::File {
    let file = fs::File::options().append(true).open(place.path(name));
    let file = file.expect("a medium");
    flock(&file, FlockOperation::NonBlockingLockExclusive).expect("nobody has it");
    file
}

#[test]
fn what_needs_a_base_that_is_locked_or_unreadable_now_stays_as_if_it_could_be_read() {
    let place = upon_an_older_base();
    let rules: [&[&str]; 3] = [
        &["--last", "10"],
        &["--last", "3"],
        &["--erasefiles", "10b"],
    ];
    let expire = |rule: &[&str]| {
        let expire = ["expire", "temp", "--delete", "--json"];
        run(&place, &[&expire[..], rule].concat())
    };
    for rule in rules {
        for trust in [&[][..], &["--trust-headers"]] {
            let lock = lock(&place, "temp/full1.bak");
            let kept = expire(&[rule, trust].concat());
            assert_eq!(kept.code, Some(1), "{rule:?}: {}\n{}", kept.out, kept.err);
            assert!(kept.numbers().contains(&50366), "{rule:?}: {}", kept.err);
            assert!(!kept.numbers().contains(&50047), "{rule:?}: {}", kept.err);
            for said in ["full1.bak' cannot be read now", "another backup"] {
                assert!(kept.err.contains(said), "{rule:?}: {}", kept.err);
            }
            assert_eq!(place.files("temp"), ALL, "{rule:?}");
            drop(lock);
        }
        // There was nothing to delete.
        let kept = expire(rule);
        assert_eq!(kept.code, Some(0), "{rule:?}: {}", kept.err);
        assert!(!kept.numbers().contains(&50366), "{rule:?}: {}", kept.err);
        assert_eq!(place.files("temp"), ALL, "{rule:?}");
    }
    // What no rule keeps goes also while nobody can read its base.
    let lock = lock(&place, "temp/full1.bak");
    let gone = expire(&["--last", "1"]);
    assert_eq!(gone.code, Some(0), "{}\n{}", gone.out, gone.err);
    assert_eq!(place.files("temp"), ["full1.bak", "full2.bak"]);
    drop(lock);
}

#[test]
fn what_needs_a_base_whose_header_is_damaged_stays_and_the_base_is_named() {
    let place = upon_an_older_base();
    flip_bit(&place.path("temp/full1.bak"), 0);
    let expire = ["expire", "temp", "--last", "10", "--delete", "--json"];
    let kept = run(&place, &expire);
    assert_eq!(kept.code, Some(1), "{}\n{}", kept.out, kept.err);
    assert!(kept.numbers().contains(&50047), "{}", kept.err);
    assert!(kept.err.contains("temp/full1.bak"), "{}", kept.err);
    assert_eq!(place.files("temp"), ALL);
}

#[test]
fn a_locked_backup_stands_for_no_other() {
    let place = Place::new();
    for name in ["temp/1.bak", "temp/2.bak", "temp/3.bak"] {
        succeed(&place, &["backup", "app.db", "--to", name]);
    }
    let lock = lock(&place, "temp/3.bak");
    let expire = ["expire", "temp", "--last", "1", "--delete", "--json"];
    let kept = run(&place, &expire);
    assert_eq!(kept.code, Some(1), "{}\n{}", kept.out, kept.err);
    assert!(kept.numbers().contains(&50366), "{}", kept.err);
    assert_eq!(place.files("temp"), ["2.bak", "3.bak"]);
    drop(lock);
    let gone = run(&place, &expire);
    assert_eq!(gone.code, Some(0), "{}\n{}", gone.out, gone.err);
    assert_eq!(place.files("temp"), ["3.bak"]);
}

#[test]
fn erasefiles_keeps_what_needs_a_locked_base() {
    let place = upon_an_older_base();
    let command = format!(
        "BACKUP DATABASE [app] TO DISK = [{}] WITH ERASEFILES = 10b",
        place.text("temp/full3.bak")
    );
    let attach = ["sql", "-Q", "EXEC sp_attach_db 'app', 'app.db'"];
    succeed(&place, &attach);
    let lock = lock(&place, "temp/full1.bak");
    let erased = run(&place, &["sqlbackup", "-SQL", &command]);
    assert!(
        erased.out.contains("50366"),
        "{}\n{}",
        erased.out,
        erased.err
    );
    assert_eq!(place.files("temp").len(), 5, "{}", erased.out);
    drop(lock);
}

/// As root only, because nobody else can run a program as somebody else.
#[test]
fn what_needs_a_base_that_may_not_be_read_stays() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = upon_an_older_base();
    let mut all = ["", "temp", "instance"].map(str::to_owned).to_vec();
    for folder in ["temp", "instance"] {
        let within = place.files(folder).into_iter();
        all.extend(within.map(|name| format!("{folder}/{name}")));
    }
    for name in all.iter().filter(|name| *name != "temp/full1.bak") {
        chown(place.path(name), Some(54_321), Some(54_321)).expect("its owner");
    }
    let secret = fs::Permissions::from_mode(0o600);
    fs::set_permissions(place.path("temp/full1.bak"), secret).expect("its mode");
    let expire = ["expire", "temp", "--last", "10", "--delete"];
    let Some(run) = run_as(&place, 54_321, &expire) else {
        return;
    };
    assert_eq!(run.code, Some(1), "{}\n{}", run.out, run.err);
    assert!(run.numbers().contains(&50366), "{}", run.err);
    assert_eq!(place.files("temp"), ALL);
}

#[test]
fn differentials_stay_while_nobody_can_tell_whether_their_base_elsewhere_is_gone() {
    let place = Place::new();
    for folder in ["a", "b"] {
        fs::create_dir(place.path(folder)).expect("a folder");
    }
    let back_up = |database: &str, name: &str, kind: &[&str]| {
        succeed(
            &place,
            &[&["backup", database, "--to", name][..], kind].concat(),
        );
    };
    back_up("app.db", "a/1.bak", &[]);
    for name in ["b/diff1.bak", "b/diff2.bak"] {
        back_up("app.db", name, &["--differential"]);
    }
    back_up("app.db", "b/2.bak", &[]);
    let all = ["2.bak", "diff1.bak", "diff2.bak"];
    let expire = |folders: &[&str], further: &[&str]| {
        let rule = ["--last", "10", "--delete", "--json"];
        let expired = run(&place, &[&["expire"][..], folders, &rule, further].concat());
        let said = format!("{}\n{}", expired.out, expired.err);
        assert_eq!(expired.code, Some(0), "{folders:?} {further:?}: {said}");
        expired
    };
    let keeps = |folders: &[&str], why: &str| {
        let kept = expire(folders, &[]);
        assert!(kept.numbers().contains(&50365), "{why}: {}", kept.err);
        for said in ["diff1.bak' and another one stay", "a/1.bak'", why] {
            assert!(kept.err.contains(said), "{why}: {}", kept.err);
        }
        assert_eq!(place.files("b"), all, "{why}");
    };
    assert!(!expire(&["a", "b"], &[]).numbers().contains(&50365));
    keeps(&["b"], "its folder was not named");
    // As if a share were not mounted, with and without the folder for it.
    fs::rename(place.path("a"), place.path("share")).expect("it goes");
    keeps(&["b"], "does not exist");
    fs::create_dir(place.path("a")).expect("a folder");
    keeps(&["a", "b"], "none of the files");
    fs::remove_dir(place.path("a")).expect("it is empty");
    fs::rename(place.path("share"), place.path("a")).expect("it comes back");
    // Its folder shows that it is gone.
    back_up("other.db", "a/other.bak", &[]);
    fs::rename(place.path("a/1.bak"), place.path("1.bak")).expect("it goes");
    let saved: Vec<Vec<u8>> = all
        .iter()
        .map(|name| fs::read(place.path("b").join(name)).expect("a backup"))
        .collect();
    let gone = expire(&["a", "b"], &[]);
    assert!(!gone.numbers().contains(&50365), "{}", gone.err);
    assert_eq!(place.files("b"), ["2.bak"]);
    // The user says so.
    for (name, bytes) in all.iter().zip(saved) {
        fs::write(place.path("b").join(name), bytes).expect("a backup");
    }
    fs::remove_dir_all(place.path("a")).expect("it goes");
    keeps(&["b"], "does not exist");
    expire(&["b"], &["--gone", "a"]);
    assert_eq!(place.files("b"), ["2.bak"]);
}

#[test]
fn the_base_of_a_differential_that_waits_to_be_copied_stays() {
    let place = Place::new();
    succeed(&place, &["sql", "-Q", "EXEC sp_attach_db 'app', 'app.db'"]);
    succeed(&place, &["backup", "app", "--to", "temp/1.bak"]);
    let command = format!(
        "BACKUP DATABASE app TO DISK = [{}] WITH DIFFERENTIAL, COPYTO = [{}]",
        place.text("temp/diff.bak"),
        place.text("later")
    );
    // The folder for the copy does not exist: it waits.
    let _failed_copy = run(&place, &["sqlbackup", "-SQL", &command]);
    succeed(&place, &["backup", "app", "--to", "temp/2.bak"]);
    let expire = ["expire", "temp", "--last", "1", "--delete"];
    let kept = succeed(&place, &expire);
    for said in ["waits to be copied", "the base of"] {
        assert!(kept.out.contains(said), "{}", kept.out);
    }
    assert_eq!(place.files("temp"), ["1.bak", "2.bak", "diff.bak"]);
}
