//! Several files of one media family: copies, older copies, mirrors; and media that are damaged between their sets.

use std::fs;

use crate::support::{Place, Run, flip_bit, make_database, on, registered, rows, well};

fn fill(place: &Place, rows: u32) {
    fs::remove_file(place.path("app.db")).expect("it is there");
    make_database(&place.path("app.db"), rows);
}

fn copy(place: &Place, from: &str, to: &str) {
    fs::copy(place.path(from), place.path(to)).expect("a copy");
}

/// Restores the newest state of some media.
fn restored(place: &Place, media: &[&str]) -> (i64, Run) {
    if place.path("back.db").exists() {
        fs::remove_file(place.path("back.db")).expect("it is there");
    }
    let run = place.run(&[&["restore"], media, &["--to", "back.db"]].concat());
    assert_eq!(run.code, Some(0), "{media:?}: {}", run.err);
    (rows(&place.path("back.db")), run)
}

#[test]
fn an_older_copy_beside_its_medium_is_no_alarm_and_in_nobody_s_way() {
    let place = registered();
    let backup = ["backup", "app", "--to", "temp/b.bak"];
    well(&place, &backup);
    copy(&place, "temp/b.bak", "temp/a.bak");
    fill(&place, 50);
    well(&place, &backup);
    copy(&place, "temp/b.bak", "temp/c.bak");
    for media in [["temp/a.bak", "temp/b.bak"], ["temp/b.bak", "temp/a.bak"]] {
        let (found, run) = restored(&place, &media);
        assert_eq!(found, 50, "{media:?}");
        assert!(run.err.contains("an older copy of"), "{}", run.err);
    }
    assert_eq!(restored(&place, &["temp/b.bak", "temp/c.bak"]).0, 50);
    assert_eq!(restored(&place, &["temp/a.bak"]).0, 400);
    let check = place.run(&["check", "--media", "temp"]);
    assert_eq!(check.code, Some(0), "{}", check.out);
    well(&place, &["expire", "temp", "--last", "1", "--delete"]);
    let all = place.text("temp/*.bak");
    let target = place.text("latest.db");
    let command = format!(
        "RESTORE DATABASE latest FROM DISK = [{all}] SOURCE = 'app' LATEST_ALL WITH MOVE 'app' TO '{target}'"
    );
    well(&place, &["sqlbackup", "-SQL", &command]);
    assert_eq!(rows(&place.path("latest.db")), 50);
    // What cannot be read may be the newest.
    flip_bit(&place.path("temp/b.bak"), 40);
    fs::remove_file(place.path("temp/c.bak")).expect("it is there");
    assert_ne!(place.run(&["check", "--media", "temp"]).code, Some(0));
}

#[test]
fn mirrors_can_be_named_together() {
    let place = Place::new();
    let backup = ["backup", "app.db", "--to", "a.bak", "--mirror", "m.bak"];
    place.succeed(&[&backup[..], &["--format"]].concat());
    let (found, run) = restored(&place, &["a.bak", "m.bak"]);
    assert_eq!(found, 400);
    assert!(run.err.contains("a copy of"), "{}", run.err);
}

#[test]
fn copies_that_went_different_ways_are_refused() {
    let place = Place::new();
    place.succeed(&["backup", "app.db", "--to", "a.bak"]);
    copy(&place, "a.bak", "b.bak");
    for medium in ["a.bak", "b.bak"] {
        place.succeed(&["backup", "app.db", "--to", medium]);
    }
    let run = place.run(&["restore", "a.bak", "b.bak", "--to", "back.db", "--json"]);
    assert!(run.numbers().contains(&3227), "{}", run.err);
}

/// The middle of each long run of zeros: padding, most of it.
fn gaps(bytes: &[u8]) -> Vec<u64> {
    let mut gaps = Vec::new();
    let mut from = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if *byte != 0 {
            if at - from > 300 {
                gaps.push(from.midpoint(at) as u64);
            }
            from = at + 1;
        }
    }
    gaps
}

#[test]
fn what_is_appended_to_a_medium_with_damage_between_its_sets_can_be_restored() {
    let place = registered();
    let backup = ["backup", "app", "--to", "temp/a.bak"];
    well(&place, &backup);
    well(&place, &backup);
    let whole = fs::read(place.path("temp/a.bak")).expect("the medium");
    let mut is_told = false;
    for at in gaps(&whole) {
        fs::write(place.path("temp/a.bak"), &whole).expect("the medium");
        fill(&place, 400);
        flip_bit(&place.path("temp/a.bak"), at);
        // What is called restorable is not refused. Damage of the content shows when it is read.
        let check = |place: &Place| place.run(&["check", "--media", "temp"]);
        if check(&place).code == Some(0) {
            let restore = ["restore", "temp/a.bak", "--to", "back.db", "--replace"];
            let run = place.run(&restore);
            assert!(
                !run.err.contains("Nothing was restored"),
                "{at}: {}",
                run.err
            );
        }
        fill(&place, 50);
        let run = on(&place, &[&backup[..], &["--json"]].concat());
        if run.code != Some(0) {
            continue;
        }
        is_told |= run.numbers().contains(&50184);
        assert_eq!(restored(&place, &["temp/a.bak"]).0, 50, "{at}: {}", run.err);
        assert_eq!(check(&place).code, Some(0), "{at}");
    }
    assert!(is_told);
}

#[test]
fn what_a_restore_refuses_for_the_start_of_a_set_is_not_called_restorable() {
    let place = Place::new();
    let damage = |name: &str| {
        let mut bytes = fs::read(place.path(name)).expect("the medium");
        bytes[8192..12_288].fill(0xff);
        fs::write(place.path(name), bytes).expect("the medium");
    };
    let restore = || place.run(&["restore", "temp", "--of", "app", "--to", "back.db"]);
    place.succeed(&["backup", "app.db", "--to", "temp/1.bak"]);
    damage("temp/1.bak");
    let check = place.run(&["check", "--media", "temp"]);
    assert_eq!(check.code, Some(2), "{}", check.out);
    for said in ["no backup that can be restored", "at offset 8192"] {
        assert!(check.out.contains(said), "{}", check.out);
    }
    assert_eq!(restore().code, Some(1));
    // What is newer needs none of it.
    place.succeed(&["backup", "app.db", "--to", "temp/2.bak"]);
    place.succeed(&["check", "--media", "temp"]);
    assert_eq!(restore().code, Some(0));
    // An older state is not what was asked for.
    place.succeed(&["backup", "app.db", "--to", "temp/3.bak"]);
    damage("temp/3.bak");
    let check = place.run(&["check", "--media", "temp"]);
    assert_eq!(check.code, Some(1), "{}", check.out);
    assert!(
        check.out.contains("1 newer backup not restorable"),
        "{}",
        check.out
    );
    assert!(check.out.contains("temp/3.bak'"), "{}", check.out);
}

#[test]
fn a_copy_that_is_cut_off_is_named_and_the_intact_one_counts() {
    for (cut, lost) in [
        ("b/f.bak", 20),
        ("b/f.bak", 9000),
        ("cp/f.bak", 20),
        ("cp/f.bak", 9000),
    ] {
        let place = Place::new();
        for folder in ["b", "cp"] {
            std::fs::create_dir(place.path(folder)).expect("a folder");
        }
        let upon = [
            "backup",
            "app.db",
            "--base",
            "b/f.bak",
            "--differential",
            "--to",
            "b/d.bak",
        ];
        for name in ["b/e.bak", "b/f.bak"] {
            place.succeed(&["backup", "app.db", "--to", name]);
        }
        copy(&place, "b/f.bak", "cp/f.bak");
        place.succeed(&upon);
        place.succeed(&["backup", "app.db", "--to", "b/g.bak"]);
        let file = std::fs::File::options()
            .write(true)
            .open(place.path(cut))
            .expect("the copy");
        let bytes = file.metadata().expect("its length").len();
        file.set_len(bytes - lost).expect("a shorter file");
        let run = place.run(&["expire", "b", "cp", "--last", "2", "--delete"]);
        assert_eq!(run.code, Some(1), "{}\n{}", run.out, run.err);
        assert!(run.err.contains("50049"), "{}", run.err);
        assert!(run.err.contains(cut), "{}", run.err);
        assert!(!place.path("b/e.bak").exists(), "{}", run.out);
        for name in ["b/f.bak", "cp/f.bak", "b/d.bak", "b/g.bak"] {
            assert!(place.path(name).exists(), "{name}: {}", run.out);
        }
    }
}

#[test]
fn older_copies_of_an_expired_medium_are_deleted_with_it() {
    let place = Place::new();
    std::fs::create_dir(place.path("arch")).expect("a folder");
    let backup = |how: &[&str]| {
        let base = ["backup", "app.db", "--to", "n.bak"];
        place.succeed(&[&base[..], how].concat());
    };
    for night in 1..=2 {
        backup(&["--init"]);
        copy(&place, "n.bak", &format!("arch/full-{night}.bak"));
        backup(&["--differential"]);
        copy(&place, "n.bak", &format!("arch/nd-{night}.bak"));
    }
    place.succeed(&["expire", "arch", "--last", "1", "--delete"]);
    let left = place.files("arch");
    assert!(left.contains(&"nd-2.bak".to_owned()), "{left:?}");
    for gone in ["full-1.bak", "nd-1.bak"] {
        assert!(!left.contains(&gone.to_owned()), "{left:?}");
    }
}
