//! `windlass verify --subset`: a part of a backup set is read, and nothing is said of the rest.

use crate::support::{Place, Run, flip_bit, make_database};

const PARTS: u32 = 4;

fn place() -> Place {
    let place = Place::new();
    std::fs::remove_file(place.path("app.db")).expect("a file");
    make_database(&place.path("app.db"), 14_000);
    let backup = [
        "backup",
        "app.db",
        "--to",
        "x.bak",
        "--instance",
        "instance",
    ];
    place.succeed(&[&backup[..], &["--max-transfer-size", "65536"]].concat());
    place
}

fn part(place: &Place, number: u32) -> Run {
    let part = format!("{number}/{PARTS}");
    place.run(&[
        "verify",
        "x.bak",
        "--subset",
        &part,
        "--instance",
        "instance",
    ])
}

#[test]
fn the_parts_together_find_damage_once_and_none_of_them_is_a_proof() {
    let place = place();
    let proven = |within| {
        let check = [
            "check",
            "--verified-within",
            within,
            "--instance",
            "instance",
        ];
        let run = place.run(&check);
        (run.code, run.out + &run.err)
    };
    let before = proven("7d");
    for number in 1..=PARTS {
        let run = part(&place, number);
        assert_eq!(run.code, Some(0), "{}", run.err);
        let said = format!("Part {number} of {PARTS} of the backup set on file 1 was read");
        assert!(run.err.contains(&said), "{}", run.err);
        assert!(run.err.contains("The rest was not read"), "{}", run.err);
        assert!(!(run.out + &run.err).contains("is valid"));
    }
    assert_eq!(proven("7d").0, before.0, "a part counts as a verification");
    let length = place.path("x.bak").metadata().expect("a file").len();
    flip_bit(&place.path("x.bak"), length / 2);
    let failed: Vec<Run> = (1..=PARTS)
        .map(|number| part(&place, number))
        .filter(|run| run.code != Some(0))
        .collect();
    assert_eq!(failed.len(), 1, "one part has the damage");
    assert!(
        failed[0].err.contains("3241")
            || failed[0].err.contains("3189")
            || failed[0].err.contains("damage"),
        "{}",
        failed[0].err
    );
}

#[test]
fn a_part_without_data_is_not_said_to_be_read() {
    let place = Place::new();
    place.succeed(&["backup", "app.db", "--to", "x.bak"]);
    let said = |number: u32| {
        let run = place.succeed(&["verify", "x.bak", "--subset", &format!("{number}/3")]);
        let (is_read, is_empty) = (
            run.err.contains("on file 1 was read"),
            run.err.contains("nothing was read"),
        );
        assert!(is_read != is_empty, "{}", run.err);
        is_read
    };
    // All of it is one chunk.
    assert_eq!((1..=3).filter(|number| said(*number)).count(), 1);
}

#[test]
fn what_has_no_meaning_for_a_part_is_refused() {
    let place = place();
    for wrong in ["0/4", "5/4", "1/0", "1/1001", "4", "a/b", "-1/4"] {
        let run = place.run(&["verify", "x.bak", &format!("--subset={wrong}")]);
        assert_eq!(run.code, Some(2), "{wrong}: {}", run.err);
    }
    for further in [
        &["--without-key"][..],
        &["--stop-on-error"],
        &["--tsql"],
        &["--dry-run"],
        &["--plan"],
        &["--threads", "2"],
        &["--io", "threads"],
    ] {
        let run = place.run(&[&["verify", "x.bak", "--subset", "1/4"], further].concat());
        assert_eq!(run.code, Some(2), "{further:?}: {}", run.err);
    }
}
