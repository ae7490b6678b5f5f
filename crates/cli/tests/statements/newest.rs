//! A restore that names no set gives the newest state of the media.

use rusqlite::Connection;

use crate::sales::MAKE;
use crate::support::{Place, make_database, on, pages, registered, rows, succeed, well};
use crate::{log_backups, sqlite_logs};

fn keep(place: &Place, count: u32) {
    let connection = Connection::open(place.path("app.db")).expect("a connection");
    connection
        .execute("DELETE FROM t WHERE id > ?", [count])
        .expect("a change");
}

/// Two nights in one file, and a differential based on the second.
fn nights(place: &Place) {
    place.succeed(&["backup", "app.db", "--to", "n.bak"]);
    keep(place, 300);
    place.succeed(&["backup", "app.db", "--to", "n.bak"]);
    keep(place, 200);
    place.succeed(&["backup", "app.db", "--to", "n.bak", "--differential"]);
}

#[test]
fn the_newest_night_is_restored_and_what_is_left_out_is_said() {
    let place = Place::new();
    nights(&place);
    let run = place.succeed(&["restore", "n.bak", "--to", "copy.db"]);
    assert_eq!(rows(&place.path("copy.db")), 200);
    assert!(run.err.contains("Restoring set 2 (full, "), "{}", run.err);
    assert!(
        run.err.contains(", then set 3 (differential, "),
        "{}",
        run.err
    );
    assert!(run.err.contains("Left out: set 1 (full, "), "{}", run.err);
    // A verification of every set reports no skipped ones.
    let verified = place.succeed(&["verify", "n.bak"]);
    assert!(
        verified.err.contains("on file 3 is valid"),
        "{}",
        verified.err
    );
    assert!(!verified.err.contains("No FILE"), "{}", verified.err);
    assert!(run.err.contains("its state is older"), "{}", run.err);
    let run = place.succeed(&["restore", "n.bak", "--set", "1", "--to", "first.db"]);
    assert_eq!(rows(&place.path("first.db")), 400);
    assert!(!run.err.contains("Left out"), "{}", run.err);
    let script = "RESTORE DATABASE c FROM DISK = 'd:\\n.bak' WITH MOVE 'app' TO 'd:\\c.db'\n\
                  RESTORE VERIFYONLY FROM DISK = 'd:\\n.bak' WITH FILE = 1";
    let run = place.sql(script);
    assert_eq!(rows(&place.path("c.db")), 400);
    assert_eq!(
        run.err.matches("the media contain 2 later ones").count(),
        1,
        "{}",
        run.err
    );
}

#[test]
fn a_sequence_goes_on_with_the_newest_differential() {
    let place = Place::new();
    nights(&place);
    let open = ["restore", "n.bak", "--to", "copy.db", "--no-recovery"];
    place.succeed(&open);
    assert!(!place.path("copy.db").exists());
    place.succeed(&["restore", "n.bak", "--to", "copy.db"]);
    assert_eq!(rows(&place.path("copy.db")), 200);
    // The differential is on other media than the full backup.
    keep(&place, 100);
    place.succeed(&[
        "backup",
        "app.db",
        "--to",
        "d.bak",
        "--differential",
        "--base",
        "n.bak",
    ]);
    place.succeed(&["restore", "n.bak", "d.bak", "--to", "both.db"]);
    assert_eq!(rows(&place.path("both.db")), 100);
    place.succeed(&["restore", "n.bak", "--to", "late.db", "--no-recovery"]);
    place.succeed(&["restore", "d.bak", "--to", "late.db"]);
    assert_eq!(rows(&place.path("late.db")), 100);
    let alone = place.run(&["restore", "d.bak", "--to", "alone.db"]);
    assert_eq!(alone.code, Some(1));
}

/// Of both kinds: log backups, and a differential with the log behind it.
#[test]
fn a_sequence_goes_on_with_the_log_behind_it() {
    let file = registered();
    let application = sqlite_logs::chain(&file, 2);
    let own = Place::new();
    log_backups::chain(&own, 2);
    for (place, name) in [(&file, "app"), (&own, "Shop")] {
        let back_up = |what: &str, name: &str, to: &str, with: &str| {
            succeed(
                place,
                &format!("BACKUP {what} {name} TO DISK = 'd:\\{to}'{with}"),
            );
        };
        back_up("DATABASE", name, "d.bak", " WITH DIFFERENTIAL");
        match name {
            "app" => sqlite_logs::step(&application, 3),
            _ => log_backups::insert(place, 3),
        }
        back_up("LOG", name, "3.trn", "");
        let onto = |target: &str, media: &[&str]| {
            let open = ["restore", "full.bak", "--to", target, "--no-recovery"];
            place.succeed(&open);
            place.run(&[&["restore"][..], media, &["--to", target]].concat())
        };
        let count = |target: &str| match name {
            "app" => sqlite_logs::last(place, target),
            _ => {
                let last = log_backups::last_of_file(place, target);
                last.as_i64().expect("a number")
            }
        };
        for (target, media) in [
            ("logs.db", &["3.trn", "1.trn", "2.trn"][..]),
            ("both.db", &["3.trn", "d.bak", "1.trn", "2.trn"]),
        ] {
            let run = onto(target, media);
            assert_eq!(run.code, Some(0), "{name}, {media:?}: {}", run.err);
            assert_eq!(count(target), 3, "{name}, {media:?}");
        }
        // The log between is missing, and what is there would be older than what is known of.
        for media in [&["3.trn", "2.trn"][..], &["1.trn", "3.trn"]] {
            let run = onto(&format!("gap{}.db", media[0]), media);
            assert_eq!(run.code, Some(1), "{name}, {media:?}: {}", run.out);
        }
    }
}

#[test]
fn media_of_several_databases_are_refused_until_one_is_named() {
    let place = Place::new();
    make_database(&place.path("third.db"), 3);
    for name in ["app", "third", "app"] {
        place.succeed(&["backup", &format!("{name}.db"), "--to", "all.bak"]);
    }
    let run = place.run(&["restore", "all.bak", "--to", "copy.db"]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.err.contains("'app' (set 1, 3), 'third' (set 2)"),
        "{}",
        run.err
    );
    assert!(!place.path("copy.db").exists());
    place.succeed(&["restore", "all.bak", "--to", "copy.db", "--of", "third"]);
    assert_eq!(rows(&place.path("copy.db")), 3);
    let run = place.run(&["restore", "all.bak", "--to", "x.db", "--of", "nosuch"]);
    assert!(
        run.err.contains("hold no backup of 'nosuch'"),
        "{}",
        run.err
    );
}

#[test]
fn a_database_of_the_page_engine_comes_back_in_its_newest_state_too() {
    let place = Place::new();
    succeed(
        &place,
        &format!(
            "{MAKE}
BACKUP DATABASE Sales TO DISK = 'D:\\s.bak'
GO
BACKUP DATABASE Sales TO DISK = 'D:\\s.bak'
INSERT INTO orders(body) VALUES ('the newest')
BACKUP DATABASE Sales TO DISK = 'D:\\s.bak' WITH DIFFERENTIAL"
        ),
    );
    let instance = place.text("instance");
    let run = place.succeed(&[
        "restore",
        "s.bak",
        "--to",
        "new.mdf",
        "--database",
        "New",
        "--instance",
        &instance,
    ]);
    assert!(run.err.contains("Restoring set 2 (full, "), "{}", run.err);
    let run = succeed(
        &place,
        "USE New\nGO\nSELECT count(*) AS n FROM orders WHERE body = 'the newest'",
    );
    assert_eq!(run.results()[0][0]["n"], 1, "{}", run.out);
}

#[test]
fn refusals_say_what_to_do_on_the_command_line() {
    let place = Place::new();
    place.succeed(&["backup", "app.db", "--to", "f.bak"]);
    let said = |arguments: &[&str]| {
        let run = place.run(arguments);
        assert_ne!(run.code, Some(0), "{arguments:?}");
        run.err
    };
    let over = said(&["restore", "f.bak", "--to", "other.db"]);
    assert!(over.contains("Use --replace to overwrite it"), "{over}");
    let set = said(&["restore", "f.bak", "--to", "x.db", "--set", "9"]);
    assert!(
        set.contains("there is 1 backup set; there is no set 9"),
        "{set}"
    );
    let folder = said(&["restore", "f.bak", "--to", "nosuch/x.db"]);
    assert!(folder.contains("Directory lookup for the file"), "{folder}");
    let verify = said(&["verify", "nosuch.bak"]);
    assert!(!verify.contains("HEADERONLY"), "{verify}");
    let drive = said(&["header", "f.bak", "--drive", "d=/nosuch"]);
    assert!(drive.contains("'/nosuch' is not a folder"), "{drive}");
    std::fs::copy(place.path("f.bak"), place.path("blank.bak ")).expect("a copy");
    place.succeed(&["header", "blank.bak "]);
}

#[test]
fn the_tsql_of_a_command_can_be_piped() {
    let place = Place::new();
    let run = place.succeed(&["backup", "app.db", "--to", "f.bak", "--tsql"]);
    assert_eq!(run.out.lines().count(), 1, "{}", run.out);
    assert!(
        run.out.starts_with("BACKUP DATABASE app TO DISK"),
        "{}",
        run.out
    );
    assert!(run.err.contains("backup set 1"), "{}", run.err);
    let json = place.succeed(&["verify", "f.bak", "--tsql", "--json"]);
    let objects: Vec<serde_json::Value> = serde_json::Deserializer::from_str(&json.out)
        .into_iter()
        .collect::<Result<_, _>>()
        .expect("JSON");
    assert!(objects[0]["tsql"].is_string(), "{}", json.out);
}

/// Changes a byte in the middle of a backup file.
fn damage(place: &Place, name: &str) {
    let mut bytes = std::fs::read(place.path(name)).expect("media");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(place.path(name), bytes).expect("they are damaged");
}

#[test]
fn a_sequence_whose_differential_fails_says_what_it_leaves_and_both_ways_on_work() {
    let place = Place::new();
    let [full, differential, bad] = ["f.bak", "d.bak", "bad.bak"];
    place.succeed(&["backup", "app.db", "--to", full]);
    keep(&place, 200);
    let base = ["--differential", "--base", full, "--compress", "none"];
    place.succeed(&[&["backup", "app.db", "--to", differential], &base[..]].concat());
    std::fs::copy(place.path(differential), place.path(bad)).expect("a copy");
    damage(&place, bad);
    for (target, way_on, count) in [
        ("on.db", vec!["restore", differential, "--to", "on.db"], 200),
        ("back.db", vec!["restore", "--to", "back.db"], 400),
    ] {
        let run = place.run(&["restore", full, bad, "--to", target]);
        assert_eq!(run.code, Some(1), "{}", run.err);
        assert!(run.err.contains("is left restoring"), "{}", run.err);
        let reported = way_on.join(" ").replace(differential, "BACKUP");
        let reported = format!("windlass {reported}.");
        assert!(run.err.contains(&reported), "{reported}: {}", run.err);
        assert!(!place.path(target).exists(), "nobody can open it");
        place.succeed(&way_on);
        assert_eq!(rows(&place.path(target)), count);
    }
    // A dry run leaves nothing behind, and a failed full backup starts no sequence.
    let dry = place.run(&["restore", full, "nosuch.bak", "--to", "x.db", "--dry-run"]);
    assert!(!dry.err.contains("left restoring"), "{}", dry.err);
    damage(&place, full);
    let run = place.run(&["restore", full, differential, "--to", "x.db"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(!run.err.contains("left restoring"), "{}", run.err);
}

#[test]
fn a_differential_that_was_applied_in_part_says_so_and_the_command_starts_from_the_beginning() {
    let place = Place::new();
    succeed(
        &place,
        &format!(
            "{MAKE}
BACKUP DATABASE Sales TO DISK = 'D:\\f.bak'
INSERT INTO orders(body) VALUES ('the newest')
BACKUP DATABASE Sales TO DISK = 'D:\\d.bak' WITH DIFFERENTIAL"
        ),
    );
    std::fs::copy(place.path("d.bak"), place.path("bad.bak")).expect("a copy");
    damage(&place, "bad.bak");
    let instance = ["--instance", "instance"];
    for (name, media, count) in [
        ("Both", &["f.bak", "d.bak"][..], 1),
        ("Again", &["f.bak"], 0),
    ] {
        let target = format!("{name}.mdf");
        let place_of = ["--database", name, "--to", target.as_str()];
        let restore = |media: &[&str]| {
            place.run(&[&["restore"], media, &place_of[..], &instance[..]].concat())
        };
        // Whether a chunk is written before the damaged one is found is a race of the threads.
        let is_torn = (0..100).any(|_| {
            let run = restore(&["f.bak", "bad.bak"]);
            assert_eq!(run.code, Some(1), "{}", run.err);
            let is_torn = run.err.contains("neither the full backup nor");
            assert!(
                is_torn || run.err.contains("is left restoring"),
                "{}",
                run.err
            );
            is_torn
        });
        assert!(is_torn, "no run wrote a part of the differential");
        assert_eq!(restore(&["d.bak"]).code, Some(1), "upon neither");
        let run = restore(media);
        assert_eq!(run.code, Some(0), "{}", run.err);
        let query = "SELECT count(*) AS n FROM orders WHERE body = 'the newest'";
        let run = succeed(&place, &format!("USE {name}\nGO\n{query}"));
        assert_eq!(run.results()[0][0]["n"], count, "{name}: {}", run.out);
    }
}

/// For both kinds of databases.
#[test]
fn a_differential_whose_full_backup_was_not_named_is_not_left_out_in_silence() {
    let place = Place::new();
    succeed(
        &place,
        "EXEC sp_attach_db 'app', 'd:\\app.db'
         CREATE DATABASE own ON (NAME = a, FILENAME = 'd:\\a.mdf') LOG ON (NAME = l, FILENAME = 'd:\\l.ldf')
         GO
         USE own
         GO
         CREATE TABLE t(x); INSERT INTO t VALUES (1)",
    );
    let instance = ["--instance", "instance"];
    for name in ["app", "own"] {
        for medium in ["f1", "f2"] {
            let to = format!("{name}-{medium}.bak");
            place.succeed(&[&["backup", name, "--to", &to], &instance[..]].concat());
            succeed(
                &place,
                &format!("USE {name}\nGO\nDELETE FROM t WHERE rowid > 300"),
            );
        }
        let to = format!("{name}-d.bak");
        place.succeed(
            &[
                &["backup", name, "--to", &to, "--differential"],
                &instance[..],
            ]
            .concat(),
        );
    }
    for name in ["app", "own"] {
        let [f1, f2, d] = ["f1", "f2", "d"].map(|medium| format!("{name}-{medium}.bak"));
        let (database, copy) = (format!("{name}2"), place.text(&format!("{name}2.db")));
        let target: Vec<&str> = match name {
            "app" => vec!["--to", &copy],
            _ => vec![
                "--database",
                &database,
                "--move",
                "a=a2.mdf",
                "--move",
                "l=l2.ldf",
            ],
        };
        let restore =
            |media: &[&str]| place.run(&[&["restore"], media, &target, &instance[..]].concat());
        let run = restore(&[&f1, &d]);
        assert_eq!(run.code, Some(1), "{}", run.err);
        assert!(run.err.contains("Nothing was restored"), "{}", run.err);
        assert!(run.err.contains("which is not among them"), "{}", run.err);
        let made = if name == "app" { "app2.db" } else { "a2.mdf" };
        assert!(!place.path(made).exists());
        // Alone with --no-recovery, the wrong full backup takes the differential to its limits.
        assert_eq!(restore(&[&f1, "--no-recovery"]).code, Some(0));
        let run = restore(&[&d, "--set", "1"]);
        assert!(run.err.contains("Msg 3136"), "{}", run.err);
        let reported = |medium: &str| format!("FILE = 1 on {}", place.text(medium));
        assert!(
            run.err.contains(&reported(&f2)) && run.err.contains(&reported(&f1)),
            "{}",
            run.err
        );
        let run = restore(&[&f1, &d, &f2, "--replace"]);
        assert_eq!(run.code, Some(0), "{}", run.err);
    }
    assert_eq!(rows(&place.path("app2.db")), 300);
}

#[test]
fn a_medium_with_an_unfinished_set_is_not_left_out_in_silence_either() {
    let place = Place::new();
    place.succeed(&["backup", "app.db", "--to", "1.bak"]);
    place.succeed(&["backup", "app.db", "--to", "2.bak"]);
    place.succeed(&["backup", "app.db", "--to", "2.bak"]);
    let whole = std::fs::metadata(place.path("2.bak")).expect("it").len();
    let file = std::fs::File::options()
        .write(true)
        .open(place.path("2.bak"))
        .expect("it");
    file.set_len(whole - 9000).expect("a cut");
    // What was used of it gives the newest state that there is.
    let run = place.succeed(&["restore", "1.bak", "2.bak", "--to", "x.db"]);
    assert!(
        run.err.contains("it was never finished, or was cut off"),
        "{}",
        run.err
    );
    file.set_len(12_000).expect("a cut");
    let run = place.run(&["restore", "1.bak", "2.bak", "--to", "y.db"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(!place.path("y.db").exists());
}

#[test]
fn the_newest_state_of_one_database_does_not_pass_for_that_of_another_of_its_name() {
    let place = Place::new();
    std::fs::create_dir(place.path("other")).expect("a folder");
    make_database(&place.path("other/app.db"), 7);
    place.succeed(&["backup", "app.db", "--to", "1.bak"]);
    place.succeed(&["backup", "other/app.db", "--to", "2.bak"]);
    let run = place.run(&["restore", "1.bak", "2.bak", "--to", "copy.db"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    for named in ["Msg 50065", "/other/app.db' on ", "--set N"] {
        assert!(run.err.contains(named), "{named}: {}", run.err);
    }
    assert!(!place.path("copy.db").exists());
    place.succeed(&["restore", "1.bak", "--to", "copy.db"]);
}

#[test]
fn a_stripe_that_is_an_older_copy_does_not_pass_for_a_backup_that_was_never_finished() {
    let place = Place::new();
    succeed(&place, MAKE);
    let instance = place.text("instance");
    for name in ["app.db", "Sales"] {
        let back_up = || {
            let to = ["--to", "1.bak", "--to", "2.bak", "--instance", &instance];
            place.succeed(&[&["backup", name], &to[..]].concat())
        };
        back_up();
        for stripe in ["1.bak", "2.bak"] {
            std::fs::copy(place.path(stripe), place.path(&format!("old-{stripe}")))
                .expect("a copy");
        }
        back_up();
        for stripes in [["1.bak", "old-2.bak"], ["old-1.bak", "2.bak"]] {
            for further in [&[][..], &["--no-recovery"], &["--dry-run"]] {
                let to = ["--to", "new.db", "--instance", &instance];
                let run = place.run(&[&["restore"], &stripes[..], &to, further].concat());
                assert_eq!(run.code, Some(1), "{stripes:?} {further:?}: {}", run.err);
                assert!(run.err.contains("Msg 50064"), "{}", run.err);
                assert!(run.err.contains("an older copy"), "{}", run.err);
                assert!(!run.err.contains("never finished"), "{}", run.err);
            }
            assert!(!place.path("new.db").exists());
        }
        let to = ["--to", "new.db", "--set", "1"];
        place.succeed(&[&["restore", "1.bak", "old-2.bak"], &to[..]].concat());
        for file in ["1.bak", "2.bak", "old-1.bak", "old-2.bak"] {
            std::fs::remove_file(place.path(file)).expect("it is removed");
        }
        remove_all(&place, "new.db");
    }
}

#[test]
fn a_medium_of_which_no_set_is_left_is_not_ignored() {
    let place = Place::new();
    succeed(&place, MAKE);
    let instance = place.text("instance");
    for name in ["app.db", "Sales"] {
        let back_up = |to: &str, how: &[&str]| {
            let arguments = [
                "backup",
                name,
                "--to",
                to,
                "--init",
                "--instance",
                &instance,
            ];
            place.succeed(&[&arguments[..], how].concat());
        };
        back_up("f.bak", &[]);
        back_up("d.bak", &["--differential"]);
        back_up("z.bak", &["--differential"]);
        let medium = std::fs::File::options();
        for bytes in [8192, 6000, 4096] {
            let file = medium.clone().write(true).open(place.path("z.bak"));
            file.and_then(|file| file.set_len(bytes)).expect("a cut");
            for (media, refusal) in [
                (&["f.bak", "d.bak", "z.bak"][..], "Msg 50068"),
                (&["f.bak", "z.bak"], "Msg 50068"),
                (&["."], "Msg 50315"),
            ] {
                let to = ["--to", "new.db", "--instance", &instance];
                let run = place.run(&[&["restore"], media, &to].concat());
                assert_eq!(run.code, Some(1), "{bytes}: {}", run.err);
                assert!(run.err.contains(refusal), "{}", run.err);
                assert!(run.err.contains("/z.bak'"), "{}", run.err);
                assert!(!place.path("new.db").exists());
            }
        }
        place.succeed(&["restore", "f.bak", "d.bak", "--to", "new.db"]);
        remove_all(&place, "new.db");
    }
}

/// Removes a database of either kind.
fn remove_all(place: &Place, name: &str) {
    for suffix in ["", "-log", "-wal", "-shm"] {
        let path = place.path(&format!("{name}{suffix}"));
        if path.exists() {
            std::fs::remove_file(path).expect("it is removed");
        }
    }
}

/// The last bytes of a medium are no set's.
#[test]
fn a_medium_that_has_lost_its_last_bytes_is_restored_and_verify_says_so() {
    let place = Place::new();
    std::fs::create_dir(place.path("media")).expect("a folder");
    place.succeed(&["backup", "app.db", "--to", "media/a.bak"]);
    let whole = std::fs::read(place.path("media/a.bak")).expect("the medium");
    for lost in [1, 100, 4096] {
        let rest = &whole[..whole.len() - lost];
        std::fs::write(place.path("media/a.bak"), rest).expect("the medium");
        for media in ["media", "media/a.bak"] {
            place.succeed(&["restore", media, "--to", "r.db", "--replace"]);
            assert_eq!(pages(&place.path("r.db")), pages(&place.path("app.db")));
        }
        place.succeed(&["check", "--media", "media"]);
        let verified = place.run(&["verify", "media/a.bak"]);
        assert_eq!(verified.code, Some(1), "{}", verified.out);
        assert!(verified.err.contains("Msg 50309"), "{}", verified.err);
        place.succeed(&["backup", "app.db", "--to", "media/a.bak"]);
        place.succeed(&["verify", "media/a.bak", "--set", "2"]);
        place.succeed(&[
            "restore",
            "media/a.bak",
            "--set",
            "1",
            "--to",
            "r.db",
            "--replace",
        ]);
    }
}

/// A cut-off end may be a killed append, a flipped bit is damage: what it hides may be newer.
#[test]
fn damage_behind_the_complete_sets_is_no_unfinished_backup() {
    let place = Place::new();
    nights(&place);
    let whole = std::fs::read(place.path("n.bak")).expect("a medium");
    let mut refused = 0;
    for back in (1..60_000).step_by(1901) {
        let mut flipped = whole.clone();
        let at = flipped.len() - back;
        flipped[at] ^= 1;
        std::fs::write(place.path("n.bak"), flipped).expect("a medium");
        let run = place.run(&["restore", "n.bak", "--to", "copy.db", "--replace"]);
        match run.code {
            Some(0) => assert_eq!(rows(&place.path("copy.db")), 200, "{at}: {}", run.err),
            _ => refused += 1,
        }
    }
    assert!(refused > 0);
    std::fs::write(place.path("n.bak"), &whole[..whole.len() - 5000]).expect("a medium");
    place.succeed(&["restore", "n.bak", "--to", "copy.db", "--replace"]);
    assert_eq!(rows(&place.path("copy.db")), 300);
}

#[test]
fn a_folder_with_a_file_that_may_be_a_newer_backup_is_not_said_to_be_well() {
    let place = Place::new();
    std::fs::create_dir(place.path("d")).expect("a folder");
    place.succeed(&["backup", "app.db", "--to", "d/1.bak"]);
    place.succeed(&["check", "--media", "d"]);
    std::fs::write(place.path("d/2.bak"), "").expect("a file");
    assert_eq!(place.run(&["check", "--media", "d"]).code, Some(3));
}

#[test]
fn a_look_at_an_instance_that_does_not_exist_fails_and_makes_none() {
    let place = Place::new();
    for command in [
        &["history", "--rpo", "24h"][..],
        &["report"],
        &["metrics"],
        &["expire", ".", "--last", "1", "--delete"],
    ] {
        let run = place.run(&[command, &["--instance", "typo"]].concat());
        assert_eq!(run.code, Some(1), "{command:?}: {}", run.err);
        assert!(run.err.contains("There is no instance"), "{}", run.err);
    }
    assert!(!place.path("typo").exists());
}

#[test]
fn a_set_that_was_finished_by_the_history_and_has_lost_its_end_is_not_passed_over() {
    let place = registered();
    for _ in 0..2 {
        well(&place, &["backup", "app", "--to", "a.bak"]);
    }
    let whole = std::fs::metadata(place.path("a.bak")).expect("it").len();
    let file = std::fs::File::options()
        .write(true)
        .open(place.path("a.bak"))
        .expect("it");
    file.set_len(whole - 9000).expect("a cut");
    let restore = ["restore", "a.bak", "--to", "x.db"];
    let run = on(&place, &restore);
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(run.err.contains("has been cut off since"), "{}", run.err);
    well(&place, &[&restore[..], &["--set", "1"]].concat());
}

/// A backup that lost a stripe: what is left shows that it is newer than all others.
#[test]
fn a_medium_in_a_folder_that_lacks_stripes_refuses_an_older_state() {
    let place = Place::new();
    std::fs::create_dir(place.path("night")).expect("a folder");
    let striped = |name: &str| {
        let to = ["a", "b"].map(|stripe| format!("night/{name}{stripe}.bak"));
        place.succeed(&["backup", "app.db", "--to", &to[0], "--to", &to[1]]);
    };
    striped("1");
    keep(&place, 300);
    striped("2");
    std::fs::rename(place.path("night/2b.bak"), place.path("2b.bak")).expect("a move");
    let run = place.run(&["restore", "night", "--to", "copy.db"]);
    assert_eq!(run.code, Some(1), "{}", run.out);
    for said in ["Msg 50064", "night/2a.bak'", "only 1 of the 2 families"] {
        assert!(run.err.contains(said), "{}", run.err);
    }
    assert!(!place.path("copy.db").exists());
    let drill = place.run(&["drill", "app", "--scratch", "scratch", "--from", "night"]);
    assert_eq!(drill.code, Some(1), "{}", drill.out);
    assert!(drill.err.contains("only 1 of the 2"), "{}", drill.err);
    // Without it, the older state is what is wanted.
    place.succeed(&["restore", "night/1a.bak", "night/1b.bak", "--to", "old.db"]);
    assert_ne!(rows(&place.path("old.db")), 300);
    // With the rest of it named, it is used.
    place.succeed(&["restore", "night", "2b.bak", "--to", "newest.db"]);
    assert_eq!(rows(&place.path("newest.db")), 300);
    // What lacks a stripe is of no interest where something newer is whole.
    keep(&place, 200);
    striped("3");
    let run = place.succeed(&["restore", "night", "--to", "third.db"]);
    assert_eq!(rows(&place.path("third.db")), 200);
    assert!(run.err.contains("only 1 of the 2"), "{}", run.err);
    // Where there is nothing else, it is an error.
    for name in ["1a", "1b", "3a", "3b"] {
        std::fs::remove_file(place.path(&format!("night/{name}.bak"))).expect("a file");
    }
    let run = place.run(&["restore", "night", "--to", "none.db"]);
    assert!(run.err.contains("Msg 3132"), "{}", run.err);
    assert!(!place.path("none.db").exists());
}

/// A backup that was killed while its files got their names, in a folder of others.
#[test]
fn a_medium_in_a_folder_whose_files_have_not_all_their_names_refuses_an_older_state_only() {
    let place = Place::new();
    std::fs::create_dir(place.path("night")).expect("a folder");
    let striped = |name: &str, how: &[&str]| {
        let to = ["a", "b"].map(|stripe| format!("night/{name}{stripe}.bak"));
        let backup = ["backup", "app.db", "--to", &to[0], "--to", &to[1], "--skip"];
        place.succeed(&[&backup, how].concat());
    };
    let exchange = |with: Option<&[u8]>| {
        let (named, staged) = (place.path("night/2b.bak"), "night/2b.bak.windlass-new");
        std::fs::rename(&named, place.path(staged)).expect("a move");
        if let Some(earlier) = with {
            std::fs::write(&named, earlier).expect("the one before");
        }
    };
    std::fs::create_dir(place.path("scratch")).expect("a folder");
    let mut left = 390;
    let mut change = || {
        left -= 10;
        keep(&place, left);
        i64::from(left)
    };
    for how in ["", "--init", "--format"] {
        let earlier = (!how.is_empty()).then(|| {
            striped("2", &["--format"]);
            std::fs::read(place.path("night/2b.bak")).expect("a stripe")
        });
        change();
        striped("1", &["--format"]);
        change();
        let how: Vec<&str> = [how].into_iter().filter(|how| !how.is_empty()).collect();
        striped("2", &how);
        exchange(earlier.as_deref());
        let run = place.run(&["restore", "night", "--to", "copy.db"]);
        assert_eq!(run.code, Some(1), "{how:?}: {}", run.out);
        for said in [
            "night/2b.bak.windlass-new'",
            "while its files got their names",
        ] {
            assert!(run.err.contains(said), "{how:?}: {}", run.err);
        }
        let drill = place.run(&["drill", "app", "--scratch", "scratch", "--from", "night"]);
        assert_eq!(drill.code, Some(1), "{how:?}: {}", drill.out);
        let newest = change();
        striped("3", &[]);
        place.succeed(&["restore", "night", "--to", "newest.db"]);
        assert_eq!(rows(&place.path("newest.db")), newest, "{how:?}");
        place.succeed(&["drill", "app", "--scratch", "scratch", "--from", "night"]);
        for name in ["newest.db", "night/3a.bak", "night/3b.bak"] {
            std::fs::remove_file(place.path(name)).expect("a file");
        }
        for name in place.files("night") {
            std::fs::remove_file(place.path("night").join(name)).expect("a file");
        }
    }
}
