//! What a verification or a restore has found damaged, and what is said of it afterwards.

use std::fs;

use crate::sales::MAKE;
use crate::support::{Place, flip_bit, on, registered, sql, succeed, well};

/// A byte of the data of a full backup of `app`.
const AT: u64 = 100_000;

fn back_up(place: &Place, file: &str, further: &[&str]) {
    let backup = ["backup", "app", "--to", file, "--compress", "none"];
    well(place, &[&backup[..], further].concat());
}

fn check(place: &Place) -> Option<i32> {
    on(place, &["check", "--database", "app"]).code
}

/// What is red although it was green.
#[track_caller]
fn assert_red(place: &Place) {
    let check = on(place, &["check", "--database", "app", "--json"]);
    assert_eq!(check.code, Some(2), "{}", check.out);
    assert!(check.out.contains("verification-failed"), "{}", check.out);
    let doctor = on(place, &["doctor"]);
    assert!(
        doctor.out.contains("has no restorable backup"),
        "{}",
        doctor.out
    );
    for command in [&["history", "--rpo", "24h", "app"][..], &["report", "app"]] {
        let run = on(place, command);
        assert_eq!(run.code, Some(1), "{command:?}: {}", run.out);
    }
    let metrics = on(place, &["metrics"]).out;
    let line = "windlass_database_restorable{database=\"app\"} 0";
    assert!(metrics.contains(line), "{metrics}");
}

#[test]
fn what_a_verification_has_found_damaged_is_not_restorable_for_any_command() {
    let place = registered();
    back_up(&place, "f.bak", &[]);
    assert_eq!(check(&place), Some(0));
    flip_bit(&place.path("f.bak"), AT);
    assert_eq!(on(&place, &["verify", "f.bak"]).code, Some(1));
    assert_red(&place);
    // The next full backup makes it good.
    back_up(&place, "g.bak", &[]);
    assert_eq!(check(&place), Some(0));
}

#[test]
fn damage_in_the_structure_of_a_medium_is_remembered_like_that_of_its_data() {
    let place = registered();
    let medium = place.path("f.bak");
    back_up(&place, "f.bak", &[]);
    let intact = fs::read(&medium).expect("the medium");
    let end = intact.len() as u64;
    let mut found = 0;
    for at in (600..9000)
        .step_by(800)
        .chain((end - 24_000..end).step_by(2300))
    {
        fs::write(&medium, &intact).expect("the medium");
        well(&place, &["verify", "f.bak"]);
        assert_eq!(check(&place), Some(0));
        flip_bit(&medium, at);
        if on(&place, &["verify", "f.bak"]).code == Some(1) {
            found += 1;
            let check = check(&place);
            let restore = on(&place, &["restore", "f.bak", "--to", "x.db", "--replace"]);
            let (red, lost) = (check == Some(2), restore.code == Some(1));
            assert_eq!(red, lost, "the byte at {at}: {}", restore.err);
        }
    }
    assert!(found > 8, "{found}");
}

#[test]
fn damage_that_keeps_a_restored_file_from_being_a_database_is_named_and_remembered() {
    let place = registered();
    let backup = ["backup", "other", "--to", "f.bak", "--compress", "none"];
    well(&place, &backup);
    let bytes = fs::read(place.path("f.bak")).expect("the medium");
    let name = b"SQLite format 3\0";
    let start = bytes.windows(name.len()).position(|part| part == name);
    // The only chunk: the whole database is lost.
    let restore = ["restore", "f.bak", "--to", "x.db", "--continue-after-error"];
    let page = start.expect("the first page") as u64;
    flip_bit(&place.path("f.bak"), page + 200);
    let run = on(&place, &restore);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("Msg 50028"), "{}", run.err);
    assert!(run.err.contains("Msg 3189"), "{}", run.err);
    let check = on(&place, &["check", "--database", "other"]);
    assert_eq!(check.code, Some(2), "{}", check.out);
}

#[test]
fn what_a_restore_has_found_damaged_is_not_restorable_for_any_command() {
    let place = registered();
    back_up(&place, "f.bak", &[]);
    flip_bit(&place.path("f.bak"), AT);
    assert_eq!(
        on(&place, &["restore", "f.bak", "--to", "x.db"]).code,
        Some(1)
    );
    assert_red(&place);
}

#[test]
fn no_differential_counts_from_a_base_that_was_found_damaged() {
    let place = registered();
    succeed(&place, MAKE);
    for name in ["app", "Sales"] {
        let full = format!("{name}.bak");
        let backup = ["backup", name, "--to", &full, "--compress", "none"];
        well(&place, &backup);
        flip_bit(&place.path(&full), AT);
        assert_eq!(on(&place, &["verify", &full]).code, Some(1), "{name}");
        let differential = ["--json", "backup", name, "--differential", "--to", "d.bak"];
        let run = on(&place, &differential);
        assert!(run.numbers().contains(&50012), "{name}: {}", run.err);
        let run = sql(
            &place,
            &format!("BACKUP DATABASE {name} TO DISK = 'D:\\e.bak' WITH DIFFERENTIAL, FORMAT"),
        );
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert!(run.numbers().contains(&50013), "{name}: {}", run.err);
        let target = place.text("full.bak");
        let command = format!(
            "BACKUP DATABASE {name} TO DISK = [{target}] WITH DIFFERENTIAL, FULLIFREQUIRED, INIT"
        );
        let run = on(&place, &["sqlbackup", "-SQL", &command]);
        assert!(
            run.out.contains("a full backup is made first"),
            "{}",
            run.out
        );
    }
}

#[test]
fn a_verification_speaks_of_the_file_that_it_read() {
    let place = registered();
    back_up(&place, "f.bak", &[]);
    fs::copy(place.path("f.bak"), place.path("copy.bak")).expect("a copy");
    // A damaged copy does not make the original suspect,
    fs::copy(place.path("f.bak"), place.path("bad.bak")).expect("a copy");
    flip_bit(&place.path("bad.bak"), AT);
    assert_eq!(on(&place, &["verify", "bad.bak"]).code, Some(1));
    assert_eq!(check(&place), Some(0));
    // and an intact one does not make it good.
    flip_bit(&place.path("f.bak"), AT);
    assert_eq!(on(&place, &["verify", "f.bak"]).code, Some(1));
    well(&place, &["verify", "copy.bak"]);
    assert_red(&place);
    let within = ["check", "--database", "app", "--verified-within", "7d"];
    let run = on(&place, &within);
    assert!(
        run.out.contains("no backup was ever verified"),
        "{}",
        run.out
    );
    // Only what is found in its place does.
    fs::copy(place.path("copy.bak"), place.path("f.bak")).expect("the copy");
    well(&place, &["verify", "f.bak"]);
    assert_eq!(on(&place, &within).code, Some(0));
}

#[test]
fn one_intact_mirror_will_do() {
    let place = registered();
    back_up(&place, "f.bak", &["--mirror", "m.bak", "--format"]);
    flip_bit(&place.path("f.bak"), AT);
    assert_eq!(on(&place, &["verify", "f.bak"]).code, Some(1));
    assert_eq!(check(&place), Some(0));
}

#[test]
fn a_missing_key_is_no_verdict_on_a_backup() {
    let place = registered();
    for (name, word) in [("right", "one"), ("wrong", "two")] {
        fs::write(place.path(name), word).expect("a passphrase");
    }
    let right = ["--passphrase-file", "right"];
    back_up(&place, "f.bak", &right);
    well(&place, &[&["verify", "f.bak"], &right[..]].concat());
    well(&place, &["signing-key", "key"]);
    for further in [
        &[][..],
        &["--passphrase-file", "wrong"],
        &["--passphrase-file", "right", "--signed-by", "key.pub"],
    ] {
        let run = on(&place, &[&["verify", "f.bak"], further].concat());
        assert_eq!(run.code, Some(1), "{further:?}");
        let restore = ["restore", "f.bak", "--to", "x.db"];
        let run = on(&place, &[&restore, further].concat());
        assert_eq!(run.code, Some(1), "{further:?}");
        assert_eq!(check(&place), Some(0), "{further:?}");
    }
    // What the key shows is not refuted by a verification without it.
    flip_bit(&place.path("f.bak"), AT);
    assert_eq!(
        on(&place, &[&["verify", "f.bak"], &right[..]].concat()).code,
        Some(1)
    );
    assert_eq!(check(&place), Some(2));
    let sound = well(&place, &["header", "f.bak", "--json"]);
    assert!(sound.out.contains("Position"));
}
