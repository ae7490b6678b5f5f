//! `windlass backup --all`: an instance, or a folder of SQLite files.

use serde_json::Value as Json;

use crate::support::{Place, make_database, on, registered, rows, succeed, well};

/// A folder `dbs` with four databases, their companions, and files that are none.
fn folder() -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path("dbs")).expect("a folder");
    std::fs::create_dir(place.path("bak")).expect("a folder");
    for name in ["shop.db", "shop_test.db", "wiki.sqlite", "blog.db"] {
        make_database(&place.path(&format!("dbs/{name}")), 30);
    }
    std::fs::write(place.path("dbs/notes.txt"), "no database").expect("a file");
    place
}

#[test]
fn every_database_of_a_folder_is_backed_up_and_no_other_file() {
    let place = folder();
    let run = place.succeed(&["backup", "--all", "dbs", "--to", "bak", "--parallel", "3"]);
    assert_eq!(
        place.files("bak"),
        ["blog.bak", "shop.bak", "shop_test.bak", "wiki.bak"]
    );
    assert!(
        run.err
            .contains("Databases backed up: 4; failed: 0; left out: 0."),
        "{}",
        run.err
    );
    for name in ["blog", "shop", "shop_test", "wiki"] {
        assert!(
            run.out.contains(&format!("{name}: backup set 1")),
            "{}",
            run.out
        );
        let (medium, copy) = (format!("bak/{name}.bak"), format!("{name}.copy"));
        place.succeed(&["restore", &medium, "--to", &copy]);
        assert_eq!(rows(&place.path(&copy)), 30);
    }
    // The second night is appended; a differential finds its base on the medium of its own database.
    place.succeed(&["backup", "--all", "dbs", "--to", "bak", "--differential"]);
    let header = place.succeed(&["header", "bak/wiki.bak", "--json"]).out;
    let sets: Json = serde_json::from_str(&header).expect("JSON");
    assert_eq!(sets.as_array().map(Vec::len), Some(2));
}

#[test]
fn patterns_say_which() {
    let place = folder();
    let run = place.succeed(&[
        "backup", "--all", "dbs", "--to", "bak", "--only", "shop*", "--only", "blog", "--except",
        "*_test",
    ]);
    assert_eq!(place.files("bak"), ["blog.bak", "shop.bak"]);
    for told in [
        "Left out: 'shop_test.db': --except '*_test' names it.\n",
        "Left out: 'wiki.sqlite': --only does not name it.\n",
        "Databases backed up: 2; failed: 0; left out: 2.",
    ] {
        assert!(run.err.contains(told), "{told}: {}", run.err);
    }
    let run = place.run(&["backup", "--all", "dbs", "--to", "bak", "--only", "nothing"]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("Msg 50337"), "{}", run.err);
    for wrong in [
        &["backup", "--all", "dbs", "--to", "nosuch"][..],
        &["backup", "--all", "--to", "bak"],
        &["backup", "--all", "dbs", "--to", "bak", "--to", "temp"],
        &["backup", "dbs/shop.db", "--to", "x.bak", "--only", "x"],
    ] {
        let run = place.run(wrong);
        assert_eq!(run.code, Some(2), "{wrong:?}: {}", run.err);
    }
}

#[test]
fn two_files_of_one_name_do_not_share_a_medium() {
    let place = folder();
    make_database(&place.path("dbs/shop.sqlite"), 5);
    place.succeed(&["backup", "--all", "dbs", "--to", "bak", "--only", "shop"]);
    assert_eq!(place.files("bak"), ["shop.db.bak", "shop.sqlite.bak"]);
}

#[test]
fn two_databases_never_share_a_medium() {
    let place = folder();
    make_database(&place.path("dbs/shop.sqlite"), 5);
    make_database(&place.path("dbs/shop.db.old"), 6);
    // shop.db has its ending because of shop.sqlite, and then the name of shop.db.old without one.
    let run = place.run(&["backup", "--all", "dbs", "--to", "bak", "--format"]);
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(
        run.err.contains("'dbs/shop.db' and 'dbs/shop.db.old'"),
        "{}",
        run.err
    );
    assert!(place.files("bak").is_empty());
    place.succeed(&["backup", "--all", "dbs", "--to", "bak", "--except", "*.old"]);
    assert_eq!(place.files("bak").len(), 5);
}

#[test]
fn a_medium_of_another_database_is_not_overwritten() {
    let place = Place::new();
    for folder in ["one", "two", "bak"] {
        std::fs::create_dir(place.path(folder)).expect("a folder");
    }
    make_database(&place.path("one/a.db"), 10);
    make_database(&place.path("two/a.db"), 20);
    let night =
        |folder: &str, how: &str| place.run(&["backup", "--all", folder, "--to", "bak", how]);
    assert_eq!(night("one", "--init").code, Some(0));
    for how in ["--init", "--format"] {
        let run = night("two", how);
        assert_eq!(run.code, Some(1), "{how}: {}", run.err);
        for named in [
            "Msg 50305",
            "/one/a.db' on ",
            "Databases backed up: 0; failed: 1",
        ] {
            assert!(run.err.contains(named), "{how}, {named}: {}", run.err);
        }
        let rehearsal = place.run(&["backup", "--all", "two", "--to", "bak", how, "--dry-run"]);
        assert_eq!(rehearsal.code, Some(1), "{how}: {}", rehearsal.err);
        let would = "No backup was made. Databases that would be backed up: 0; that would fail: 1";
        assert!(rehearsal.err.contains(would), "{}", rehearsal.err);
    }
    // The same database again, also from a file that an application has made again.
    assert_eq!(night("one", "--init").code, Some(0));
    std::fs::remove_file(place.path("one/a.db")).expect("removed");
    make_database(&place.path("one/a.db"), 30);
    let run = night("one", "--init");
    assert_eq!(run.code, Some(0), "{}", run.err);
    place.succeed(&["restore", "bak/a.bak", "--to", "copy.db"]);
    assert_eq!(rows(&place.path("copy.db")), 30);
}

#[test]
fn a_limit_is_that_of_all_together() {
    let place = folder();
    let arguments = ["backup", "--all", "dbs", "--to", "bak", "--dry-run"];
    let limits = [
        "--parallel",
        "4",
        "--max-rate",
        "20",
        "--max-write-rate",
        "8",
    ];
    let run = place.succeed(&[&arguments[..], &limits].concat());
    let rates = ["MAXRATE = 5", "MAXWRITERATE = 2"];
    for rate in rates {
        assert_eq!(run.out.matches(rate).count(), 4, "{rate}: {}", run.out);
    }
}

#[test]
fn a_file_that_is_called_a_database_is_not_left_out_silently() {
    let place = folder();
    std::fs::write(place.path("dbs/sealed.db"), vec![0x5a; 8192]).expect("a file");
    std::os::unix::fs::symlink("nowhere", place.path("dbs/gone.sqlite")).expect("a link");
    std::os::unix::fs::symlink(place.path("other.db"), place.path("dbs/linked.db"))
        .expect("a link");
    let run = place.run(&["backup", "--all", "dbs", "--to", "bak"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    for told in [
        "Msg 50050",
        "(dbs/sealed.db)",
        "(dbs/gone.sqlite)",
        "Databases backed up: 5; failed: 2; left out: 0.",
    ] {
        assert!(run.err.contains(told), "{told}: {}", run.err);
    }
    place.succeed(&["restore", "bak/linked.bak", "--to", "linked.copy"]);
    assert_eq!(rows(&place.path("linked.copy")), 10);
}

#[test]
fn what_is_called_a_database_and_is_no_file_is_left_out_by_name() {
    let place = folder();
    std::fs::create_dir(place.path("dbs/old.db")).expect("a folder");
    std::fs::create_dir(place.path("dbs/plain")).expect("a folder");
    let run = place.succeed(&["backup", "--all", "dbs", "--to", "bak"]);
    for told in [
        "Left out: 'old.db': it is a folder, and subfolders are not looked into.\n",
        "Databases backed up: 4; failed: 0; left out: 1.",
    ] {
        assert!(run.err.contains(told), "{told}: {}", run.err);
    }
    assert!(!run.err.contains("'plain'"), "{}", run.err);
}

#[test]
fn one_that_fails_does_not_stop_the_others_and_is_named() {
    let place = folder();
    // Its header is whole, its end is not there.
    let cut = std::fs::File::options()
        .write(true)
        .open(place.path("dbs/shop.db"));
    cut.expect("a file").set_len(4096).expect("a cut");
    let run = place.run(&["backup", "--all", "dbs", "--to", "bak"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert_eq!(
        place.files("bak"),
        ["blog.bak", "shop_test.bak", "wiki.bak"]
    );
    assert!(run.err.contains("dbs/shop.db"), "{}", run.err);
    assert!(
        run.err.contains("Databases backed up: 3; failed: 1"),
        "{}",
        run.err
    );
}

#[test]
fn an_instance_is_backed_up_with_its_engine_databases_into_its_history() {
    let place = registered();
    std::fs::create_dir(place.path("bak")).expect("a folder");
    succeed(
        &place,
        "CREATE DATABASE own\nGO\nUSE own\nGO\nCREATE TABLE t(x); INSERT INTO t VALUES (7)",
    );
    let run = well(
        &place,
        &[
            "backup",
            "--all",
            "--to",
            "bak",
            "--json",
            "--parallel",
            "2",
        ],
    );
    assert_eq!(place.files("bak"), ["app.bak", "other.bak", "own.bak"]);
    let reports: Result<Vec<Json>, _> = serde_json::Deserializer::from_str(&run.out)
        .into_iter()
        .collect();
    assert_eq!(reports.expect("JSON").len(), 3, "{}", run.out);
    let last = run.messages().pop().expect("a message");
    assert_eq!(last["number"], 50338);
    assert_eq!(on(&place, &["check"]).code, Some(0));
    well(
        &place,
        &[
            "backup",
            "--all",
            "--to",
            "bak",
            "--differential",
            "--except",
            "own",
        ],
    );
    // A dry run says what each would do, and does nothing.
    let run = well(&place, &["backup", "--all", "--to", "temp", "--dry-run"]);
    assert_eq!(run.out.matches("BACKUP DATABASE").count(), 3, "{}", run.out);
    assert!(place.files("temp").is_empty());
}

#[test]
fn a_database_that_waits_for_a_restore_is_named_and_is_a_failure() {
    let place = registered();
    std::fs::create_dir(place.path("bak")).expect("a folder");
    succeed(
        &place,
        "BACKUP DATABASE other TO DISK = 'd:\\o.bak'
         RESTORE DATABASE waits FROM DISK = 'd:\\o.bak' WITH NORECOVERY, MOVE 'other' TO 'd:\\waits.db'",
    );
    let all = ["backup", "--all", "--to", "bak"];
    let run = on(&place, &all);
    assert_eq!(run.code, Some(1), "{}\n{}", run.out, run.err);
    assert!(run.err.contains("Msg 927"), "{}", run.err);
    assert!(
        run.err.contains("Databases backed up: 2; failed: 1"),
        "{}",
        run.err
    );
    let run = well(
        &place,
        &[&all[..], &["--except", "waits", "--init"]].concat(),
    );
    let told = "Left out: 'waits': --except 'waits' names it.";
    assert!(run.err.contains(told), "{}", run.err);
}

/// The second comes while the first waits for its database.
#[test]
fn a_medium_that_another_night_writes_meanwhile_is_not_overwritten() {
    let place = Place::new();
    for folder in ["one", "two", "bak"] {
        std::fs::create_dir(place.path(folder)).expect("a folder");
    }
    make_database(&place.path("one/a.db"), 10);
    make_database(&place.path("two/a.db"), 20);
    let night = |folder, how| ["backup", "--all", folder, "--to", "bak", how];
    for how in ["--init", "--format"] {
        let _gone = std::fs::remove_file(place.path("bak/a.bak"));
        let writer = rusqlite::Connection::open(place.path("one/a.db")).expect("the database");
        writer.execute_batch("BEGIN EXCLUSIVE").expect("a lock");
        let mut waiting = place.command(&night("one", how));
        let waiting = waiting.stderr(std::process::Stdio::piped()).spawn();
        let waiting = waiting.expect("it starts");
        std::thread::sleep(std::time::Duration::from_millis(700));
        place.succeed(&night("two", how));
        writer.execute_batch("ROLLBACK").expect("its end");
        let ended = waiting.wait_with_output().expect("it ends");
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{how}: {told}");
        assert!(told.contains("Msg 50305"), "{how}: {told}");
        let copy = place.path("copy.db");
        let _gone = std::fs::remove_file(&copy);
        place.succeed(&["restore", "bak/a.bak", "--to", "copy.db"]);
        assert_eq!(rows(&copy), 20);
    }
}

#[test]
fn a_link_to_what_is_not_mounted_fails_unless_it_is_left_out() {
    let place = folder();
    std::os::unix::fs::symlink("../share/erp", place.path("dbs/erp")).expect("a link");
    let all = ["backup", "--all", "dbs", "--to", "bak"];
    let run = place.run(&all);
    assert_eq!(run.code, Some(1), "{}", run.err);
    for told in [
        "It is a link to '../share/erp', which is not there.",
        "It is not known whether it is a database.",
        "Databases backed up: 4; failed: 1; left out: 0.",
    ] {
        assert!(run.err.contains(told), "{told}: {}", run.err);
    }
    place.succeed(&[&all[..], &["--except", "erp"]].concat());
}

#[test]
fn a_name_like_a_tag_has_a_medium_of_its_own() {
    let place = folder();
    make_database(&place.path("dbs/<DATABASE>.db"), 3);
    let all = ["backup", "--all", "dbs", "--to", "bak"];
    place.succeed(&all);
    place.succeed(&["restore", "bak/_DATABASE_.bak", "--to", "copy.db"]);
    assert_eq!(rows(&place.path("copy.db")), 3);
    make_database(&place.path("dbs/_DATABASE_.db"), 4);
    let run = place.run(&all);
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(
        run.err.contains("would have the same backup"),
        "{}",
        run.err
    );
}

#[test]
fn a_name_that_is_no_text_fails_and_stops_no_other() {
    use std::os::unix::ffi::OsStrExt as _;
    let place = folder();
    for name in [&b"\xff\xfe.db"[..], b"\xfe\xff.db"] {
        make_database(
            &place.path("dbs").join(std::ffi::OsStr::from_bytes(name)),
            3,
        );
    }
    let run = place.run(&["backup", "--all", "dbs", "--to", "bak"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    for told in [
        "Its name is not UTF-8",
        "Databases backed up: 4; failed: 2; left out: 0.",
    ] {
        assert!(run.err.contains(told), "{told}: {}", run.err);
    }
}
