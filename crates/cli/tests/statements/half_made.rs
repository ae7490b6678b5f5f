//! What a kill or a full disk leaves half made: nobody has to clean up by hand.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::support::{Place, Run, on, registered, sql, succeed, well};

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

#[test]
fn what_a_killed_creation_left_is_named_by_doctor_and_goes_with_the_next_creation() {
    let place = Place::new();
    std::fs::create_dir(place.path("f")).expect("the folder");
    let create = |name: &str| {
        let [data, log] = ["mdf", "ldf"].map(|end| place.text(&format!("f/{name}.{end}")));
        format!(
            "CREATE DATABASE {name} ON (NAME = d, FILENAME = '{data}') LOG ON (NAME = l, FILENAME = '{log}')"
        )
    };
    succeed(&place, &create("other"));
    for name in ["k.mdf", "k.ldf"] {
        std::fs::write(
            place.path(&format!("f/{name}.windlass-new")),
            vec![0; 70_000],
        )
        .expect("left");
    }
    // A backup that was interrupted while its stripes were given their names is needed.
    std::fs::write(place.path("f/x.bak.windlass-new"), "TAPE").expect("a medium");
    let arguments = ["doctor", "--instance", &place.text("instance"), "--json"];
    // Somebody may be making it.
    let made = std::fs::File::open(place.path("f/k.mdf.windlass-new")).expect("it");
    made.lock().expect("a lock");
    let found = place.run(&arguments).out;
    assert!(!found.contains("k.mdf"), "{found}");
    drop(made);
    let found = place.run(&arguments).out;
    assert!(
        found.contains("k.mdf.windlass-new") && found.contains("k.ldf.windlass-new"),
        "{found}"
    );
    assert!(found.contains("70000 bytes that a killed"), "{found}");
    assert!(!found.contains("x.bak"), "{found}");
    succeed(&place, &create("k"));
    let found = place.run(&arguments).out;
    assert!(!found.contains("windlass-new"), "{found}");
}

/// Runs a script on one of several instances.
fn sql_at(place: &Place, instance: &str, script: &str) -> Run {
    place.sql_with(&["--json", "--instance", &place.text(instance)], script)
}

#[test]
fn a_restore_that_waits_for_another_instance_is_neither_replaced_unasked_nor_dropped() {
    for is_engine in [false, true] {
        let place = Place::new();
        std::fs::copy(place.path("app.db"), place.path("s.db")).expect("a copy");
        let [data, log] = ["s.mdf", "s.ldf"].map(|name| place.text(name));
        let make = match is_engine {
            true => format!(
                "CREATE DATABASE s ON (NAME = s, FILENAME = '{data}') LOG ON (NAME = l, FILENAME = '{log}')"
            ),
            false => format!(
                "CREATE DATABASE s ON (FILENAME = '{}') FOR ATTACH",
                place.text("s.db")
            ),
        };
        let backup = format!("BACKUP DATABASE s TO DISK = '{}'", place.text("s.bak"));
        succeed(&place, &format!("{make}\nGO\n{backup}"));
        let restore = |name: &str, with: &str| {
            let moved = match is_engine {
                true => format!(", MOVE 'l' TO '{}'", place.text("t.ldf")),
                false => String::new(),
            };
            format!(
                "RESTORE DATABASE {name} FROM DISK = '{}' WITH {with}, MOVE 's' TO '{}'{moved}",
                place.text("s.bak"),
                place.text("t.db")
            )
        };
        let well = |instance: &str, script: &str| {
            let run = sql_at(&place, instance, script);
            assert_eq!(run.code, Some(0), "{script}: {}", run.err);
            run
        };
        well("one", &restore("t", "NORECOVERY"));
        let refused = sql_at(&place, "two", &restore("u", "NORECOVERY"));
        assert!(
            refused.err.contains("waits there for its end"),
            "{}",
            refused.err
        );
        // The same database may begin again.
        well("one", &restore("t", "NORECOVERY"));
        well("two", &restore("u", "NORECOVERY, REPLACE"));
        let dropped = well("one", "DROP DATABASE t");
        assert!(dropped.err.contains("was not deleted"), "{}", dropped.err);
        well("two", "RESTORE DATABASE u WITH RECOVERY");
        well("two", "DROP DATABASE u");
        assert!(!place.path("t.db").exists());
    }
}

#[test]
fn a_database_under_the_name_of_a_temporary_file_is_not_removed() {
    let place = Place::new();
    let named = ["z.windlass-new", "z.keys.new", "copies/z.windlass-copy"];
    std::fs::create_dir(place.path("copies")).expect("a folder");
    for name in named {
        std::fs::copy(place.path("app.db"), place.path(name)).expect("a database");
    }
    let backup = place.run(&["backup", "z.windlass-new", "--to", "z"]);
    assert_eq!(backup.code, Some(1));
    assert!(backup.err.contains("rename it"), "{}", backup.err);
    std::fs::rename(place.path(named[0]), place.path("kept")).expect("a database");
    let attach = format!("EXEC sp_attach_db 'kept', '{}'", place.text("kept"));
    succeed(&place, &attach);
    let command = format!(
        "BACKUP DATABASE kept TO DISK = '{}' WITH COPYTO = '{}'",
        place.text("z"),
        place.text("copies")
    );
    let copy = place.run(&[
        "sqlbackup",
        "-SQL",
        &command,
        "--instance",
        &place.text("instance"),
    ]);
    assert!(copy.out.contains("rename it"), "{}", copy.out);
    for name in [named[1], named[2], "kept"] {
        assert!(place.path(name).exists(), "{name}");
    }
}

/// A trigger that takes hours keeps the program at the entry of its verification, where it is killed.
#[test]
fn a_backup_that_is_killed_while_it_is_verified_waits_for_its_copy() {
    let place = registered();
    std::fs::create_dir(place.path("off")).expect("a folder");
    let catalog = Connection::open(place.path("instance/windlass.catalog")).expect("the catalog");
    let tables = ["a", "b", "c", "d", "e", "f"].map(|name| format!("sqlite_master {name}"));
    let endless = format!(
        "CREATE TRIGGER endless BEFORE INSERT ON own_verification
         BEGIN SELECT count(*) FROM {}; END",
        tables.join(", ")
    );
    catalog.execute_batch(&endless).expect("a trigger");
    let command = format!(
        "BACKUP DATABASE app TO DISK = '{}' WITH VERIFY, COPYTO = '{}'",
        place.text("n.bak"),
        place.text("off")
    );
    let arguments = ["sqlbackup", "-SQL", &command, "--instance", "instance"];
    let mut command = place.command(&arguments);
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    catalog.busy_timeout(Duration::ZERO).expect("no patience");
    let mut refusals = 0;
    // Its other entries take no time.
    while refusals < 50 {
        let is_over = child.try_wait().expect("the program").is_some();
        assert!(!is_over, "it verifies for hours");
        let free = catalog.execute_batch("BEGIN IMMEDIATE; ROLLBACK");
        refusals = if free.is_err() { refusals + 1 } else { 0 };
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("it ends");
    child.wait().expect("it ends");
    catalog
        .busy_timeout(Duration::from_secs(10))
        .expect("patience");
    catalog.execute_batch("DROP TRIGGER endless").expect("it");
    assert!(!place.path("off/n.bak").exists());
    let queued = well(&place, &["copies", "--json"]).results();
    assert_eq!(queued[0].as_array().map(Vec::len), Some(1), "{queued:?}");
    assert_eq!(on(&place, &["check", "--database", "app"]).code, Some(1));
    well(&place, &["copies", "--run", "--now"]);
    place.succeed(&["verify", "off/n.bak"]);
}

#[test]
fn a_queued_copy_is_not_made_of_what_has_taken_the_place_of_its_source() {
    let place = registered();
    let (medium, folder) = (place.text("n.bak"), place.text("off"));
    let command = format!("BACKUP DATABASE app TO DISK = '{medium}' WITH COPYTO = '{folder}'");
    on(&place, &["sqlbackup", "-SQL", &command]);
    std::fs::remove_file(&medium).expect("it is there");
    place.succeed(&["backup", "other.db", "--to", "n.bak"]);
    std::fs::create_dir(&folder).expect("a folder");
    let run = on(&place, &["copies", "--run", "--now"]);
    assert_eq!(run.code, Some(1), "{}{}", run.out, run.err);
    assert!(run.err.contains("has replaced it"), "{}", run.err);
    assert!(!place.path("off/n.bak").exists());
}

#[test]
fn a_queued_copy_goes_to_the_folder_that_was_meant_wherever_the_queue_is_run() {
    let place = registered();
    let command = format!(
        "BACKUP DATABASE app TO DISK = '{}' WITH COPYTO = 'off'",
        place.text("n.bak")
    );
    on(&place, &["sqlbackup", "-SQL", &command]);
    for folder in ["elsewhere/off", "off"] {
        std::fs::create_dir_all(place.path(folder)).expect("a folder");
    }
    let instance = place.text("instance");
    let run = place
        .command(&["copies", "--run", "--now", "--instance", &instance])
        .current_dir(place.path("elsewhere"))
        .status();
    assert!(run.expect("the program runs").success());
    assert!(place.path("off/n.bak").exists());
    assert!(!place.path("elsewhere/off/n.bak").exists());
}
