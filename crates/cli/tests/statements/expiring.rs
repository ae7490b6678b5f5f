//! What keeps backups from being deleted: others that cannot be read.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};

use crate::owners::run_as;
use crate::support::{Place, Run, flip_bit, sql};

/// Three backups of one database, in an instance or not.
fn place(further: &[&str]) -> Place {
    let place = Place::new();
    for name in ["temp/1.bak", "temp/2.bak", "temp/3.bak"] {
        let backup = ["backup", "app.db", "--to", name, "--compress", "none"];
        place.succeed(&[&backup[..], further].concat());
    }
    place
}

const INSTANCE: [&str; 2] = ["--instance", "instance"];

fn expire(place: &Place, further: &[&str]) -> Run {
    let expire = ["expire", "temp", "--last", "1", "--delete", "--json"];
    place.run(&[&expire[..], further].concat())
}

/// The ways in which the newest backup is damaged; the first so many of them in its header.
const IN_HEADER: usize = 7;
const DAMAGES: usize = IN_HEADER + 4;

/// Damages it in one of these ways.
fn damage(place: &Place, way: usize) {
    let path = place.path("temp/3.bak");
    match way {
        0 => fs::write(path, "").expect("it"),
        1 => fs::write(path, "no medium").expect("it"),
        2 => {
            let file = fs::File::options().write(true).open(path).expect("it");
            file.set_len(700).expect("a length");
        }
        _ => flip_bit(&path, [0, 3, 40, 100, 4096, 4100, 8200, 12_288][way - 3]),
    }
}

#[test]
fn nothing_goes_while_a_file_may_be_a_backup_that_cannot_be_read() {
    for way in 0..DAMAGES {
        let place = place(&[]);
        damage(&place, way);
        let run = expire(&place, &[]);
        assert_eq!(run.code, Some(1), "{way}: {}\n{}", run.out, run.err);
        let said = run.numbers();
        assert!(
            said.contains(&50048) || said.contains(&50047),
            "{way}: {}",
            run.err
        );
        assert!(run.err.contains("temp/3.bak"), "{way}: {}", run.err);
        let left = place.files("temp");
        assert!(
            left.len() >= 2 && left.contains(&"2.bak".to_owned()),
            "{way}: {left:?}"
        );
        if said.contains(&50048) {
            assert_eq!(left.len(), 3, "{way}: {left:?}");
        }
    }
}

#[test]
fn what_is_certainly_no_backup_keeps_none() {
    let place = place(&[]);
    fs::copy(place.path("other.db"), place.path("temp/copy.bak")).expect("a copy");
    fs::write(place.path("temp/notes.txt"), "mine").expect("a file");
    fs::write(place.path("temp/4.bak.windlass-new"), "TAPE").expect("a file");
    let run = expire(&place, &[]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    assert_eq!(
        place.files("temp"),
        ["3.bak", "4.bak.windlass-new", "copy.bak", "notes.txt"]
    );
}

#[test]
fn what_the_history_knows_of_an_unreadable_backup_is_counted_and_found_wanting() {
    for way in 0..DAMAGES {
        let place = place(&INSTANCE);
        damage(&place, way);
        for trust in [&[][..], &["--trust-headers"]] {
            if way >= IN_HEADER && !trust.is_empty() {
                continue;
            }
            let run = expire(&place, &[&INSTANCE[..], trust].concat());
            assert_eq!(run.code, Some(1), "{way}: {}\n{}", run.out, run.err);
            assert!(run.numbers().contains(&50047), "{way}: {}", run.err);
            assert!(run.err.contains("temp/3.bak"), "{way}: {}", run.err);
            // The newest of those that can be read takes its place.
            assert_eq!(place.files("temp"), ["2.bak", "3.bak"], "{way}");
        }
    }
    // Nothing relies on it.
    let place = place(&INSTANCE);
    flip_bit(&place.path("temp/1.bak"), 0);
    let run = expire(&place, &INSTANCE);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    assert_eq!(place.files("temp"), ["1.bak", "3.bak"]);
}

#[test]
fn a_stripe_that_cannot_be_read_takes_the_place_of_no_older_backup() {
    for further in [&[][..], &INSTANCE] {
        let place = Place::new();
        for number in ["1", "2"] {
            let names = ["a", "b"].map(|name| format!("temp/{name}{number}.bak"));
            let backup = ["backup", "app.db", "--to", &names[0], "--to", &names[1]];
            place.succeed(&[&backup[..], further].concat());
        }
        flip_bit(&place.path("temp/b2.bak"), 1);
        let run = expire(&place, further);
        assert_eq!(run.code, Some(1), "{}\n{}", run.out, run.err);
        assert!(run.err.contains("temp/b2.bak"), "{}", run.err);
        assert_eq!(place.files("temp").len(), 4);
    }
}

/// Of the page engine, and by ERASEFILES.
#[test]
fn a_backup_of_the_page_engine_that_cannot_be_read_keeps_the_older_ones() {
    let place = Place::new();
    let run = sql(
        &place,
        "CREATE DATABASE own
         BACKUP DATABASE own TO DISK = 'd:\\temp/1.bak'
         BACKUP DATABASE own TO DISK = 'd:\\temp/2.bak'
         BACKUP DATABASE own TO DISK = 'd:\\temp/3.bak'",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    flip_bit(&place.path("temp/3.bak"), 0);
    let run = expire(&place, &INSTANCE);
    assert_eq!(run.code, Some(1), "{}\n{}", run.out, run.err);
    assert_eq!(place.files("temp"), ["2.bak", "3.bak"]);
    fs::copy(place.path("temp/3.bak"), place.path("temp/unknown.bak")).expect("a copy");
    let command = format!(
        "BACKUP DATABASE own TO DISK = [{}] WITH ERASEFILES = 1b",
        place.text("temp/4.bak")
    );
    let run = place.run(&["sqlbackup", "-SQL", &command, "--instance", "instance"]);
    assert!(run.out.contains("unknown.bak"), "{}\n{}", run.out, run.err);
    assert!(run.out.contains("SQL error 50048"), "{}", run.out);
    assert_eq!(place.files("temp").len(), 4);
}

/// As root only, because nobody else can run a program as somebody else.
#[test]
fn a_backup_that_may_not_be_read_keeps_the_older_ones() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = place(&[]);
    for name in ["", "temp", "temp/1.bak", "temp/2.bak"] {
        chown(place.path(name), Some(54_321), Some(54_321)).expect("its owner");
    }
    let secret = fs::Permissions::from_mode(0o600);
    fs::set_permissions(place.path("temp/3.bak"), secret).expect("its mode");
    let arguments = ["expire", "temp", "--last", "1", "--delete"];
    run_as(&place, 54_321, &["sql", "-Q", "SELECT 1"]);
    let Some(run) = run_as(&place, 54_321, &arguments) else {
        return;
    };
    assert_eq!(run.code, Some(1), "{}\n{}", run.out, run.err);
    assert!(run.numbers().contains(&50048), "{}", run.err);
    assert_eq!(place.files("temp").len(), 3);
}

/// A copy shares its family with the original, and may share its name or its path.
#[test]
fn a_backup_of_a_test_copy_takes_the_place_of_none_of_the_original() {
    for (copy, further) in [
        ("temp/test.db", &[][..]),
        ("other/app.db", &[]),
        ("temp/test.db", &INSTANCE),
    ] {
        let place = Place::new();
        fs::create_dir(place.path("other")).expect("a folder");
        let backup = |database: &str, name: &str| {
            let backup = ["backup", database, "--to", name];
            place.succeed(&[&backup[..], further].concat());
        };
        backup("app.db", "temp/1.bak");
        place.succeed(&[&["restore", "temp/1.bak", "--to", copy], further].concat());
        backup("app.db", "temp/2.bak");
        backup(copy, "temp/copy.bak");
        let run = expire(&place, further);
        assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
        let left = place.files("temp");
        assert!(!left.contains(&"1.bak".to_owned()), "{copy}: {left:?}");
        for kept in ["2.bak", "copy.bak"] {
            assert!(left.contains(&kept.to_owned()), "{copy}: {left:?}");
        }
    }
}

#[test]
fn a_database_that_was_restored_over_itself_is_the_same_one() {
    let place = place(&[]);
    place.succeed(&["restore", "temp/3.bak", "--to", "app.db", "--replace"]);
    place.succeed(&["backup", "app.db", "--to", "temp/4.bak"]);
    let run = expire(&place, &[]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    assert_eq!(place.files("temp"), ["4.bak"]);
}

#[test]
fn a_complete_file_that_a_killed_backup_had_not_renamed_takes_the_place_of_no_backup() {
    for further in [&[][..], &INSTANCE] {
        let place = place(further);
        for old in ["1.bak", "2.bak"] {
            fs::remove_file(place.path("temp").join(old)).expect("it is removed");
        }
        place.succeed(&[&["backup", "app.db", "--to", "temp/new.bak"], further].concat());
        let left_by_kill = place.path("temp/3.bak.windlass-new");
        fs::rename(place.path("temp/new.bak"), left_by_kill).expect("it is renamed");
        let run = expire(&place, further);
        assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
        assert!(run.out.contains("unfinished, by its name"), "{}", run.out);
        assert_eq!(place.files("temp"), ["3.bak", "3.bak.windlass-new"]);
        let check = ["check", "--media", "temp", "--rpo", "24h"];
        let run = place.succeed(&check);
        assert!(run.out.contains("media=1;"), "{}", run.out);
        fs::remove_file(place.path("temp/3.bak")).expect("it is removed");
        let run = place.run(&check);
        assert_eq!(run.code, Some(2), "{}", run.out);
    }
}

#[test]
fn the_backup_of_an_empty_file_takes_the_place_of_none_that_holds_something() {
    for further in [
        &["--last", "1"][..],
        &["--erasefiles", "1b"],
        &["--daily", "1"],
    ] {
        let place = Place::new();
        place.succeed(&["backup", "app.db", "--to", "temp/1.bak"]);
        let content = fs::read(place.path("app.db")).expect("it");
        fs::write(place.path("app.db"), "").expect("it is empty");
        // Nothing that is named knows of the first.
        place.succeed(&["backup", "app.db", "--to", "temp/2.bak"]);
        let run = place.run(&["restore", "temp/1.bak", "temp/2.bak", "--to", "back.db"]);
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert!(fs::read(place.path("back.db")).expect("it") == content);
        place.succeed(&[&["expire", "temp", "--delete"], further].concat());
        assert!(
            place.files("temp").contains(&"1.bak".to_owned()),
            "{further:?}"
        );
        // It can be restored all the same.
        if place.path("temp/2.bak").exists() {
            place.succeed(&["restore", "temp/2.bak", "--to", "empty.db"]);
        }
    }
}

#[test]
fn ages_are_counted_from_the_time_zone_in_which_a_backup_was_made() {
    let place = place(&[]);
    let run = |zone: &str, arguments: &[&str]| {
        let mut command = place.command(arguments);
        let run = Run::of(&command.env("TZ", zone).output().expect("the program runs"));
        assert_eq!(run.code, Some(0), "{arguments:?}: {}{}", run.out, run.err);
        run
    };
    let east = "Pacific/Kiritimati";
    for name in ["temp/1.bak", "temp/2.bak", "temp/3.bak"] {
        fs::remove_file(place.path(name)).expect("it is there");
    }
    let backup = |zone, name| {
        run(
            zone,
            &["backup", "app.db", "--to", name, "--instance", "instance"],
        );
    };
    backup("UTC", "temp/1.bak");
    backup(east, "temp/2.bak");
    run(east, &["expire", "temp", "--erasefiles", "12h", "--delete"]);
    assert_eq!(place.files("temp"), ["1.bak", "2.bak"]);
    for zone in [east, "UTC", "Pacific/Pago_Pago"] {
        let gaps = ["history", "--rpo", "1h", "--json", "--instance", "instance"];
        let out = run(zone, &gaps).out;
        let rows: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        let row = &rows[0];
        assert_eq!(row["gaps_over_rpo"], 0, "{zone}: {row}");
        assert_eq!(row["longest_gap_minutes"], 0, "{zone}: {row}");
        assert_eq!(row["minutes_since"], 0, "{zone}: {row}");
    }
}

#[test]
fn a_backup_expires_at_one_moment_in_all_time_zones() {
    let place = Place::new();
    let run = |zone: &str, arguments: &[&str]| {
        let mut command = place.command(arguments);
        Run::of(&command.env("TZ", zone).output().expect("the program runs"))
    };
    let backup = ["backup", "app.db", "--to", "temp/a.bak"];
    let retained = [&backup[..], &["--retain-days", "1"]].concat();
    assert_eq!(run("Pacific/Pago_Pago", &retained).code, Some(0));
    // By its local time this is more than a day later.
    let east = "Pacific/Kiritimati";
    let again = run(east, &[&backup[..], &["--init"]].concat());
    assert_eq!(again.code, Some(1), "{}", again.out);
    assert!(again.err.contains("expires on"), "{}", again.err);
    assert_eq!(
        run("UTC", &["backup", "app.db", "--to", "temp/b.bak"]).code,
        Some(0)
    );
    let expire = ["expire", "temp", "--last", "1", "--delete"];
    assert!(run(east, &expire).out.contains("expires on"));
    assert_eq!(place.files("temp"), ["a.bak", "b.bak"]);
}

#[test]
fn a_folder_that_is_named_twice_has_its_files_once() {
    let place = place(&[]);
    std::os::unix::fs::symlink("temp", place.path("link")).expect("a link");
    let expire = ["expire", "temp", "temp", "link", "--last", "1", "--delete"];
    let run = place.succeed(&expire);
    assert_eq!(place.files("temp"), ["3.bak"], "{}", run.out);
}

#[test]
fn a_database_of_which_there_is_no_backup_is_named() {
    let place = place(&[]);
    let run = expire(&place, &["--database", "typo"]);
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(run.err.contains("no backup of 'typo'"), "{}", run.err);
    assert_eq!(place.files("temp").len(), 3);
}

#[test]
fn the_beginning_of_a_medium_and_a_link_to_another_place_may_be_newer_backups() {
    for way in 0..4 {
        let place = place(&[]);
        let newest = place.path("temp/3.bak");
        match [4096, 5000, 8192].get(way) {
            Some(bytes) => {
                let whole = fs::read(&newest).expect("a backup");
                fs::write(&newest, &whole[..*bytes]).expect("cut");
            }
            None => {
                fs::remove_file(&newest).expect("removed");
                std::os::unix::fs::symlink("/mnt/elsewhere/3.bak", &newest).expect("a link");
            }
        }
        let restored = place.run(&["restore", "temp", "--of", "app", "--to", "r.db"]);
        assert!(restored.err.contains("3.bak"), "{way}: {}", restored.err);
        let checked = place.run(&["check", "--media", "temp"]);
        assert_ne!(checked.code, Some(0), "{way}: {}", checked.out);
        let run = expire(&place, &[]);
        assert_eq!(run.code, Some(1), "{way}: {}", run.out);
        assert!(run.numbers().contains(&50048), "{way}: {}", run.err);
        assert_eq!(place.files("temp").len(), 3, "{way}");
    }
}

/// Two full backups in one folder, and in another a log backup, or a differential, that needs the first.
fn apart(kind: &str) -> Place {
    let place = Place::new();
    for folder in ["full", "away"] {
        fs::create_dir(place.path(folder)).expect("a folder");
    }
    let run = |words: &[&str]| place.succeed(&[words, &INSTANCE].concat());
    let database = match kind {
        "--log" => "e",
        _ => "app.db",
    };
    if database == "e" {
        run(&[
            "sql",
            "-Q",
            "CREATE DATABASE e; ALTER DATABASE e SET RECOVERY FULL",
        ]);
        run(&["sql", "-Q", "USE e; CREATE TABLE t(v int)"]);
    }
    run(&["backup", database, "--to", "full/1.bak"]);
    if database == "e" {
        run(&["sql", "-Q", "USE e; INSERT t VALUES(1)"]);
    }
    run(&["backup", database, kind, "--to", "away/1.bak"]);
    run(&["backup", database, "--to", "full/2.bak"]);
    place
}

/// Full backups in one folder, log backups in another: what the logs need stays.
#[test]
fn a_full_backup_stays_that_log_backups_in_another_folder_need() {
    let place = apart("--log");
    let run = |words: &[&str]| place.succeed(&[words, &INSTANCE].concat());
    let expire = ["expire", "full", "--last", "1", "--delete"];
    let kept = run(&expire);
    assert!(kept.out.contains("the base of"), "{}", kept.out);
    assert_eq!(place.files("full"), ["1.bak", "2.bak"]);
    // Without the log backup, nothing needs it: its folder shows that it is gone.
    run(&["backup", "other.db", "--to", "away/other.bak"]);
    fs::remove_file(place.path("away/1.bak")).expect("it goes");
    run(&expire);
    assert_eq!(place.files("full"), ["2.bak"]);
}

#[test]
fn a_full_backup_stays_while_nobody_can_tell_whether_what_needs_it_is_gone() {
    for kind in ["--log", "--differential"] {
        let place = apart(kind);
        let run = |further: &[&str]| {
            let expire = ["expire", "full", "--last", "1", "--json"];
            place.run(&[&expire[..], &INSTANCE, further].concat())
        };
        // As if a share were not mounted, with and without the folder for it.
        fs::rename(place.path("away"), place.path("share")).expect("it goes");
        for mount_point in [false, true] {
            if mount_point {
                fs::create_dir(place.path("away")).expect("a folder");
            }
            for delete in [&[][..], &["--delete"]] {
                let kept = run(delete);
                assert_eq!(kept.code, Some(0), "{kind}: {}\n{}", kept.out, kept.err);
                assert!(kept.numbers().contains(&50363), "{kind}: {}", kept.err);
                for said in ["full/1.bak' stays", "away/1.bak'", "--gone"] {
                    assert!(kept.err.contains(said), "{kind}: {}", kept.err);
                }
                assert!(kept.out.contains("not known to be gone"), "{}", kept.out);
                assert_eq!(place.files("full"), ["1.bak", "2.bak"], "{kind}");
            }
        }
        // It was there all the time.
        fs::remove_dir(place.path("away")).expect("a folder");
        fs::rename(place.path("share"), place.path("away")).expect("it comes back");
        let kept = run(&["--delete"]);
        assert!(!kept.numbers().contains(&50363), "{kind}: {}", kept.err);
        assert!(kept.out.contains("the base of"), "{kind}: {}", kept.out);
        // It is there no more, and the user says so.
        fs::remove_dir_all(place.path("away")).expect("it goes");
        let refused = run(&["--delete", "--gone", "full"]);
        assert_eq!(refused.code, Some(1), "{kind}: {}", refused.out);
        assert_eq!(refused.numbers(), [50364], "{kind}");
        assert_eq!(place.files("full"), ["1.bak", "2.bak"], "{kind}");
        for time in ["first", "again"] {
            let gone = run(&["--delete", "--gone", "away"]);
            assert_eq!(gone.code, Some(0), "{kind}, {time}: {}", gone.err);
            assert!(!gone.numbers().contains(&50363), "{kind}: {}", gone.err);
            assert_eq!(place.files("full"), ["2.bak"], "{kind}, {time}");
        }
    }
}

/// As root only, because nobody else can run a program as somebody else.
#[test]
fn a_folder_that_may_not_be_read_keeps_what_its_backups_need() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = apart("--differential");
    let mut all = ["", "full", "full/1.bak", "full/2.bak", "instance"]
        .map(str::to_owned)
        .to_vec();
    let within = place.files("instance").into_iter();
    all.extend(within.map(|name| format!("instance/{name}")));
    for name in all {
        chown(place.path(&name), Some(54_321), Some(54_321)).expect("its owner");
    }
    let secret = fs::Permissions::from_mode(0o700);
    fs::set_permissions(place.path("away"), secret).expect("its mode");
    let expire = ["expire", "full", "--last", "1", "--delete"];
    let Some(run) = run_as(&place, 54_321, &expire) else {
        return;
    };
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    assert!(run.numbers().contains(&50363), "{}", run.err);
    assert!(run.err.contains("ermission denied"), "{}", run.err);
    assert_eq!(place.files("full"), ["1.bak", "2.bak"]);
}
