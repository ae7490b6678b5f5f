//! What the program writes, and never writes, whatever stands under a name.

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::Place;

fn make_fifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo runs").success());
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("a file").mode() & 0o777
}

#[test]
fn a_fifo_a_folder_and_a_device_as_media_are_refused_at_once() {
    let place = Place::new();
    make_fifo(&place.path("fifo"));
    std::fs::create_dir(place.path("folder")).expect("a folder");
    let begun = Instant::now();
    for (name, kind) in [
        ("fifo", "FIFO"),
        ("folder", "folder"),
        ("/dev/zero", "device"),
    ] {
        for arguments in [
            vec!["header", name],
            vec!["verify", name],
            vec!["label", name],
            vec!["backup", "app.db", "--to", name],
            vec!["backup", "app.db", "--to", name, "--format"],
            vec!["restore", name, "--to", "x.db"],
        ] {
            let run = place.run(&arguments);
            assert_eq!(run.code, Some(1), "{arguments:?}: {}", run.err);
            assert!(run.err.contains("Msg 3201"), "{}", run.err);
            let reason = format!("'. It is a {kind}, not a regular file.");
            assert!(run.err.contains(&reason), "{}", run.err);
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(60), "nothing waits");
    let fifo = std::fs::metadata(place.path("fifo")).expect("the FIFO");
    assert!(fifo.file_type().is_fifo());
}

#[test]
fn a_fifo_as_key_file_is_passed_over() {
    let place = Place::new();
    place.succeed(&["backup", "app.db", "--to", "a.bak"]);
    make_fifo(&place.path("a.bak.keys"));
    place.succeed(&["verify", "a.bak"]);
    make_fifo(&place.path("passphrase"));
    let run = place.run(&["verify", "a.bak", "--passphrase-file", "passphrase"]);
    assert_ne!(run.code, Some(0), "{}", run.err);
}

#[test]
fn a_report_goes_through_a_link_into_a_device_and_keeps_the_mode_of_a_file() {
    let place = Place::new();
    let instance = place.text("instance");
    place.succeed(&["--instance", &instance, "backup", "app.db", "--to", "a.bak"]);
    std::fs::write(place.path("page.html"), "old").expect("a file");
    let shared = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(place.path("page.html"), shared).expect("its mode");
    symlink("page.html", place.path("link")).expect("a link");
    symlink("/dev/null", place.path("null")).expect("a link");
    for command in [["report", "--to"], ["metrics", "--output"]] {
        let run = |to: &str| place.succeed(&["--instance", &instance, command[0], command[1], to]);
        run("link");
        assert!(place.path("link").is_symlink(), "{command:?}");
        assert_eq!(mode(&place.path("page.html")), 0o640, "{command:?}");
        let text = std::fs::read_to_string(place.path("page.html")).expect("the page");
        assert!(text.len() > 100 && !text.starts_with("old"), "{command:?}");
        run("null");
        run("/dev/stdout");
        let null = std::fs::metadata("/dev/null").expect("/dev/null");
        assert!(null.file_type().is_char_device(), "{command:?}");
        assert!(place.path("null").is_symlink(), "{command:?}");
    }
}

#[test]
fn overwritten_media_keep_their_mode_and_links_stay() {
    let place = Place::new();
    symlink("far.bak", place.path("link.bak")).expect("a link");
    place.succeed(&["backup", "app.db", "--to", "link.bak"]);
    assert!(place.path("link.bak").is_symlink());
    let shared = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(place.path("far.bak"), shared).expect("its mode");
    place.succeed(&["backup", "app.db", "--to", "link.bak", "--format"]);
    assert_eq!(mode(&place.path("far.bak")), 0o640);
    place.succeed(&["verify", "far.bak"]);
}
