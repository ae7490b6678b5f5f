//! Differentials that are protected otherwise than their base.

use std::fs;

use crate::sales::MAKE;
use crate::support::{Place, on, registered, rows, sql, succeed, well};

fn place() -> Place {
    let place = registered();
    for (name, word) in [("pw", "one"), ("other", "two")] {
        fs::write(place.path(name), word).expect("a passphrase");
    }
    well(&place, &["signing-key", "key"]);
    place
}

const SEALED: [&str; 2] = ["--passphrase-file", "pw"];
const SIGNED: [&str; 2] = ["--sign-with", "key"];

fn full(place: &Place, database: &str, further: &[&str]) {
    let full = ["backup", database, "--to", "f.bak", "--format"];
    well(place, &[&full[..], further].concat());
}

#[test]
fn a_differential_that_is_less_protected_than_its_base_is_refused() {
    let place = place();
    succeed(&place, MAKE);
    for database in ["app", "Sales"] {
        for (base, wrong, right) in [
            (&SEALED[..], &[][..], &SEALED[..]),
            (&SEALED, &["--passphrase-file", "other"], &SEALED),
            (&SIGNED, &[], &SIGNED),
        ] {
            full(&place, database, base);
            let what = format!("{database}: {wrong:?} upon {base:?}");
            let differential = ["--json", "backup", database, "--differential", "--format"];
            let differential = [&differential[..], &["--to", "g.bak"]].concat();
            let try_it = |further: &[&str]| on(&place, &[&differential, further].concat());
            let run = try_it(wrong);
            assert_eq!(run.code, Some(1), "{what}");
            assert!(run.numbers().contains(&50182), "{what}: {}", run.err);
            assert!(!place.path("g.bak").exists(), "{what}");
            let run = try_it(&[wrong, &["--dry-run"]].concat());
            assert!(run.numbers().contains(&50182), "{what}: {}", run.err);
            let run = try_it(&[wrong, &["--base-missing-ok"]].concat());
            assert_eq!(run.code, Some(0), "{what}: {}", run.err);
            assert!(run.numbers().contains(&50183), "{what}: {}", run.err);
            let run = try_it(right);
            assert_eq!(run.code, Some(0), "{what}: {}", run.err);
            assert!(!run.numbers().contains(&50183), "{what}: {}", run.err);
            fs::remove_file(place.path("g.bak")).expect("it is there");
        }
    }
    // What is better protected than its base, or as well, is told of nothing.
    full(&place, "app", &[]);
    let differential = ["backup", "app", "--differential", "--to", "h.bak"];
    well(&place, &[&differential[..], &SEALED, &SIGNED].concat());
}

#[test]
fn t_sql_warns_of_a_less_protected_differential_and_full_if_required_makes_a_full_one() {
    let place = place();
    full(&place, "app", &SEALED);
    let run = sql(
        &place,
        "BACKUP DATABASE app TO DISK = 'd:\\g.bak' WITH DIFFERENTIAL",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.numbers().contains(&50183), "{}", run.err);
    // The history says it too, where the media cannot be read.
    fs::rename(place.path("f.bak"), place.path("away.bak")).expect("it is moved");
    let differential = ["--json", "backup", "app", "--differential", "--to", "h.bak"];
    let run = on(
        &place,
        &[&differential[..], &["--base-missing-ok"]].concat(),
    );
    assert!(run.numbers().contains(&50183), "{}", run.err);
    fs::rename(place.path("away.bak"), place.path("f.bak")).expect("it is moved");
    let command = format!(
        "BACKUP DATABASE app TO DISK = [{}] WITH DIFFERENTIAL, FULLIFREQUIRED",
        place.text("new.bak")
    );
    let run = on(&place, &["sqlbackup", "-SQL", &command]);
    assert!(
        run.out.contains("a full backup is made first"),
        "{}",
        run.out
    );
}

#[test]
fn a_chain_with_a_less_protected_end_is_restored_at_once_if_that_is_allowed() {
    let place = place();
    full(&place, "app", &SEALED);
    let differential = ["backup", "app", "--differential", "--to", "g.bak"];
    well(
        &place,
        &[&differential[..], &["--base-missing-ok"]].concat(),
    );
    let restore = ["restore", "f.bak", "g.bak", "--to", "back.db"];
    let restore = [&restore[..], &SEALED].concat();
    assert_eq!(place.run(&restore).code, Some(1));
    place.succeed(&[&restore[..], &["--allow-unencrypted"]].concat());
    assert_eq!(rows(&place.path("back.db")), 400);
    // It allows no unencrypted beginning.
    place.succeed(&["backup", "app.db", "--to", "plain.bak"]);
    let plain = [
        "restore",
        "plain.bak",
        "--to",
        "new.db",
        "--allow-unencrypted",
    ];
    assert_eq!(place.run(&[&plain[..], &SEALED].concat()).code, Some(1));
}
