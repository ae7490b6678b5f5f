//! What a kill or a full disk leaves half made: nobody has to clean up by hand.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use crate::support::{Place, sql, succeed};

/// Kills the program at different times.
fn kill_again_and_again(place: &Place, arguments: &[&str], after_each: &mut dyn FnMut()) {
    const ROUNDS: u32 = 14;
    let begun = Instant::now();
    place.succeed(arguments);
    let whole = begun.elapsed();
    after_each();
    for round in 0..ROUNDS {
        let mut command = place.command(arguments);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        // The first part of a run only starts the program.
        std::thread::sleep(whole.mul_f32(0.2) + whole * round / ROUNDS);
        child.kill().expect("it ends");
        child.wait().expect("it ends");
        after_each();
    }
}

fn exists(place: &Place) -> bool {
    let run = succeed(
        place,
        "SELECT count(*) AS n FROM sys.databases WHERE name = 'e'",
    );
    run.results()[0][0]["n"] == 1
}

fn left(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.path("f")).expect("the folder");
    let names = entries.flatten().map(|entry| entry.file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

/// After a kill there is a whole database or none, and the next attempt succeeds.
fn check(place: &Place, create: &dyn Fn()) {
    if !exists(place) {
        let left = left(place);
        assert!(
            left.iter().all(|name| name.contains(".windlass-new")),
            "{left:?}"
        );
        create();
    }
    succeed(
        place,
        "USE e\nGO\nCREATE TABLE more (x)\nGO\nUSE master\nGO\nDROP DATABASE e",
    );
    assert!(left(place).is_empty(), "{:?}", left(place));
}

#[test]
fn a_database_whose_creation_was_killed_is_there_or_can_be_created() {
    let place = Place::new();
    std::fs::create_dir(place.path("f")).expect("the folder");
    let statement = format!(
        "CREATE DATABASE e ON (NAME = a, FILENAME = '{}'), (NAME = b, FILENAME = '{}') LOG ON (NAME = l, FILENAME = '{}')",
        place.text("f/a.mdf"),
        place.text("f/b.ndf"),
        place.text("f/l.ldf")
    );
    let instance = place.text("instance");
    let arguments = ["sql", "--instance", &instance, "-Q", &statement];
    let create = || {
        succeed(&place, &statement);
    };
    kill_again_and_again(&place, &arguments, &mut || check(&place, &create));
    // What somebody else has put there in between is theirs.
    std::fs::write(place.path("f/b.ndf"), "").expect("a file");
    let run = sql(&place, &statement);
    assert!(run.numbers().contains(&1802), "{}", run.err);
    assert_eq!(left(&place), ["b.ndf"]);
}

#[test]
fn an_import_that_was_killed_is_there_or_can_be_repeated() {
    let place = Place::new();
    std::fs::create_dir(place.path("f")).expect("the folder");
    let (instance, data) = (place.text("instance"), place.text("f/x.mdf"));
    let arguments = [
        "import",
        "app.db",
        "--into",
        "e",
        "--data",
        &data,
        "--instance",
        &instance,
    ];
    let create = || {
        place.succeed(&arguments);
    };
    kill_again_and_again(&place, &arguments, &mut || check(&place, &create));
}

#[test]
fn a_service_key_that_a_full_disk_left_empty_says_what_to_do_and_then_all_works() {
    let place = Place::new();
    succeed(&place, "SELECT 1 AS one");
    let key = place.path("instance/service.key");
    write_key(&key, b"");
    let create = "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'Correct-Horse-Battery'\n\
         CREATE CERTIFICATE c WITH SUBJECT = 'c'";
    let run = sql(&place, create);
    assert!(run.err.contains("0 bytes instead of 32"), "{}", run.err);
    assert!(
        run.err.contains("remove it, and a new one is made"),
        "{}",
        run.err
    );
    std::fs::remove_file(&key).expect("as it says");
    succeed(&place, create);
    // With a master key it is another matter.
    let kept = std::fs::read(&key).expect("the key");
    std::fs::remove_file(&key).expect("lost");
    let run = sql(&place, "CREATE CERTIFICATE d WITH SUBJECT = 'd'");
    assert!(run.err.contains("copy it back"), "{}", run.err);
    assert!(!key.exists());
    write_key(&key, &kept);
    succeed(&place, "CREATE CERTIFICATE d WITH SUBJECT = 'd'");
}

fn write_key(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("the key");
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(path, private).expect("its mode");
}
