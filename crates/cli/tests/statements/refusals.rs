//! What is refused or reported in other words than success, and in which.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;

use crate::support::{Place, Run};

#[test]
fn a_passphrase_that_nobody_can_have_meant_is_refused() {
    let place = Place::new();
    for (content, reason) in [
        (&b"\0\0\0\0\n"[..], "control character"),
        (b"secret\0\n", "control character"),
        (b"\nsecret\n", "its first line is empty"),
        (b"", "its first line is empty"),
        (b"\xff\xfe\n", "it is UTF-16"),
        (b"\xe4\xf6\n", "not UTF-8"),
    ] {
        std::fs::write(place.path("pass"), content).expect("a file");
        let arguments = [
            "backup",
            "app.db",
            "--to",
            "x.bak",
            "--passphrase-file",
            "pass",
        ];
        let run = place.run(&arguments);
        assert_eq!(run.code, Some(1), "{content:?}");
        assert!(run.err.contains(reason), "{content:?}: {}", run.err);
        assert!(!place.path("x.bak").exists());
        let command = "BACKUP DATABASE app TO DISK = [x.bak] WITH PASSWORDFILE = [pass]";
        let run = place.run(&["sqlbackup", "--attach", "app=app.db", "-SQL", command]);
        assert!(run.out.contains(reason), "{content:?}: {}", run.out);
        assert!(!place.path("x.bak").exists());
    }
}

#[test]
fn no_set_that_was_named_is_called_unnamed() {
    let place = Place::new();
    for _ in 0..2 {
        place.succeed(&["backup", "app.db", "--to", "x.bak"]);
    }
    let whole = std::fs::metadata(place.path("x.bak")).expect("it").len();
    for cut in [0, 9000] {
        let file = std::fs::File::options()
            .write(true)
            .open(place.path("x.bak"));
        file.expect("it").set_len(whole - cut).expect("a cut");
        for arguments in [&["verify", "x.bak", "--set", "1"][..], &["verify", "x.bak"]] {
            let run = place.run(arguments);
            assert!(!run.err.contains("No FILE"), "{arguments:?}: {}", run.err);
        }
    }
}

/// What cannot be read is unknown; what is there and cannot be restored is critical.
#[test]
fn a_check_of_folders_tells_what_it_cannot_see_from_what_is_lost() {
    let place = Place::new();
    let check = |user: Option<u32>| -> Run {
        let mut command = place.command(&["check", "--media", "temp"]);
        if let Some(user) = user {
            command.uid(user);
        }
        Run::of(&command.output().expect("it starts"))
    };
    let away = place.run(&["check", "--media", "nowhere"]);
    assert_eq!(away.code, Some(3));
    assert!(away.out.contains("'nowhere'"), "{}", away.out);
    assert_eq!(check(None).code, Some(2), "nothing is there");
    place.succeed(&["backup", "app.db", "--to", "temp/a.bak"]);
    assert_eq!(check(None).code, Some(0));
    let whole = std::fs::read(place.path("temp/a.bak")).expect("it");
    std::fs::write(place.path("temp/a.bak"), &whole[..20_000]).expect("a cut");
    assert_eq!(check(None).code, Some(2), "damage");
    std::fs::write(place.path("temp/a.bak"), whole).expect("it");
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for (path, mode) in [("", 0o755), ("temp", 0o755), ("temp/a.bak", 0)] {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(place.path(path), mode).expect("its mode");
    }
    let unseen = check(Some(54_321));
    assert_eq!(unseen.code, Some(3), "{}", unseen.out);
    assert!(
        unseen.out.contains("a.bak' cannot be read"),
        "{}",
        unseen.out
    );
    let closed = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(place.path("temp"), closed).expect("its mode");
    assert_eq!(check(Some(54_321)).code, Some(3));
}
