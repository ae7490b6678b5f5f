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
