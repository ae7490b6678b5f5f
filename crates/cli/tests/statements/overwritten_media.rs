//! Media that INIT has overwritten: they keep the identity of their media set, and their positions begin again.

use std::fs;

use rusqlite::Connection;

use crate::support::{Place, on, registered, rows, well};

fn keep(place: &Place, count: u32) {
    let connection = Connection::open(place.path("app.db")).expect("a connection");
    connection
        .execute("DELETE FROM t WHERE id > ?", [count])
        .expect("a change");
}

/// Backs up to stripes, and copies them to the archive under names of their own.
fn archive(place: &Place, stripes: &[&str], night: &str, how: &[&str]) {
    let mut backup = vec!["backup", "app.db"];
    for stripe in stripes {
        backup.extend(["--to", *stripe]);
    }
    backup.extend(how);
    place.succeed(&backup);
    for stripe in stripes {
        let copy = place.path(&format!("temp/{night}{stripe}"));
        fs::copy(place.path(stripe), copy).expect("a copy");
    }
}

/// Restores the newest state of some media.
#[track_caller]
fn restored(place: &Place, media: &[&str]) -> i64 {
    let to = ["--of", "app", "--to", "back.db", "--replace"];
    place.succeed(&[&["restore"], media, &to[..]].concat());
    rows(&place.path("back.db"))
}

#[test]
fn what_init_has_overwritten_is_no_newer_backup_that_is_lost() {
    let place = registered();
    let backup = ["backup", "app", "--to", "temp/a.bak"];
    let init = [&backup[..], &["--init"]].concat();
    well(&place, &init);
    for _ in 0..3 {
        well(&place, &[&backup[..], &["--differential"]].concat());
    }
    well(&place, &init);
    let check = on(&place, &["check", "--database", "app"]);
    assert_eq!(check.code, Some(0), "{}", check.out);
    let doctor = on(&place, &["doctor"]).out;
    assert!(!doctor.contains("overwritten"), "{doctor}");
    let metrics = on(&place, &["metrics"]).out;
    let line = "windlass_database_backups_lost{database=\"app\"} 0";
    assert!(metrics.contains(line), "{metrics}");
    // What is gone with the medium is newer than what is left elsewhere.
    well(
        &place,
        &["backup", "app", "--to", "temp/b.bak", "--copy-only"],
    );
    well(&place, &init);
    fs::remove_file(place.path("temp/a.bak")).expect("the medium");
    let check = on(&place, &["check", "--database", "app"]);
    assert!(check.out.contains("1 newer backup lost"), "{}", check.out);
}

#[test]
fn copies_of_a_medium_from_before_it_was_overwritten_are_backups_of_their_own() {
    let place = Place::new();
    for (night, left) in [("1", 390), ("2", 380), ("3", 370)] {
        keep(&place, left);
        archive(&place, &["a.bak"], night, &["--init"]);
    }
    // Of the last one there is an older copy too.
    keep(&place, 360);
    archive(&place, &["a.bak"], "4", &[]);
    place.succeed(&["check", "--media", "temp"]);
    let all = ["1", "2", "3", "4"].map(|night| format!("temp/{night}a.bak"));
    let named = all.each_ref().map(String::as_str);
    assert_eq!(restored(&place, &["temp"]), 360);
    assert_eq!(restored(&place, &named), 360);
    for (media, left) in named.iter().zip([390, 380, 370, 360]) {
        assert_eq!(restored(&place, &[*media]), left, "{media}");
    }
    fs::create_dir(place.path("scratch")).expect("a folder");
    place.succeed(&["drill", "app", "--scratch", "scratch", "--from", "temp"]);
    let expire = |last: &str| {
        place.succeed(&["expire", "temp", "--last", last, "--delete"]);
        place.files("temp")
    };
    assert_eq!(expire("3"), ["2a.bak", "3a.bak", "4a.bak"]);
    assert_eq!(expire("2"), ["3a.bak", "4a.bak"]);
    assert_eq!(restored(&place, &["temp"]), 360);
}

#[test]
fn an_older_generation_takes_no_stripe_of_a_newer_one() {
    let place = Place::new();
    for (night, left) in [("1", 390), ("2", 380)] {
        keep(&place, left);
        archive(&place, &["a.bak", "b.bak"], night, &["--init"]);
    }
    assert_eq!(restored(&place, &["temp"]), 380);
    fs::remove_file(place.path("temp/2b.bak")).expect("a stripe");
    let check = place.run(&["check", "--media", "temp"]);
    assert_eq!(check.code, Some(1), "{}", check.out);
    assert!(check.out.contains("1 newer backup"), "{}", check.out);
    let target = ["--of", "app", "--to", "x.db"];
    let run = place.run(&[&["restore", "temp"][..], &target].concat());
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(run.err.contains("temp/2a.bak"), "{}", run.err);
    place.run(&["expire", "temp", "--last", "1", "--delete"]);
    assert_eq!(place.files("temp"), ["1a.bak", "1b.bak", "2a.bak"]);
    assert_eq!(restored(&place, &["temp/1a.bak", "temp/1b.bak"]), 390);
}
