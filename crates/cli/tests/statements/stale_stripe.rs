//! A set that is complete on one stripe and missing on another, which is an older copy: every command says that,
//! and the sets before it count.

use std::fs;

use serde_json::Value as Json;

use crate::sqlbackup;
use crate::support::{Place, Run, sql, succeed};

/// Two sets of `name` on two stripes in `temp`, of which one is from before the second.
fn stale(place: &Place, name: &str, stripe: &str) {
    let backup = [
        "backup",
        name,
        "--to",
        "temp/1.bak",
        "--to",
        "temp/2.bak",
        "--instance",
        "instance",
    ];
    place.succeed(&backup);
    let (path, old) = (place.path(stripe), place.path("old"));
    fs::copy(&path, &old).expect("a copy");
    place.succeed(&backup);
    fs::rename(old, path).expect("the older one");
}

fn places() -> Vec<(Place, &'static str, &'static str)> {
    let kinds = [
        ("app", "temp/1.bak"),
        ("app", "temp/2.bak"),
        ("own", "temp/2.bak"),
    ];
    let made = kinds.map(|(name, stripe)| {
        let place = Place::new();
        succeed(
            &place,
            "EXEC sp_attach_db 'app', 'd:\\app.db'\nCREATE DATABASE own",
        );
        stale(&place, name, stripe);
        (place, name, stripe)
    });
    made.into()
}

/// Every reader names both stripes, and none says that the backup was never finished.
fn told(run: &Run, text: &str, what: &str) {
    assert!(
        !text.contains("terminated while it was being created"),
        "{what}: {text}"
    );
    for said in ["its end is on '", "temp/1.bak' and not on '", "older copy"] {
        let said = said.replace("temp/1.bak' and not on '", "' and not on '");
        assert!(text.contains(&said), "{what}: {text}");
    }
    assert_ne!(run.code, Some(0), "{what}");
}

#[test]
fn whoever_reads_it_says_on_which_stripe_the_set_is_and_on_which_it_is_not() {
    for (place, name, _) in places() {
        let media = ["temp/1.bak", "temp/2.bak"];
        let verify = place.run(&[&["verify"][..], &media, &["--set", "2"]].concat());
        told(&verify, &verify.err, "verify");
        assert!(verify.err.contains("Msg 50078"), "{}", verify.err);
        let target = ["--to", "x.db", "--set", "2"];
        let restore = place.run(&[&["restore"][..], &media, &target].concat());
        told(&restore, &restore.err, "restore --set");
        let newest = place.run(&[&["restore"][..], &media, &["--to", "x.db"]].concat());
        told(&newest, &newest.err, "restore");
        assert!(newest.err.contains("Msg 50064"), "{}", newest.err);
        let from = "FROM DISK = 'd:\\temp\\1.bak', DISK = 'd:\\temp\\2.bak'";
        for statement in [
            format!("RESTORE VERIFYONLY {from} WITH FILE = 2"),
            format!("RESTORE DATABASE {name} {from} WITH FILE = 2, REPLACE"),
        ] {
            let run = sql(&place, &statement);
            told(&run, &run.err, &statement);
            assert_eq!(run.numbers()[0], 50078, "{}", run.err);
        }
        let header = place.run(&[&["header"][..], &media].concat());
        assert!(header.err.contains("and not on '"), "{}", header.err);
        // The set before it is what it was.
        place.succeed(&[&["verify"][..], &media, &["--set", "1"]].concat());
    }
}

#[test]
fn check_expire_and_latest_agree_with_restore_that_the_set_before_it_counts() {
    for (place, name, _) in places() {
        let run = place.run(&["check", "--media", "temp", "--json"]);
        assert_eq!(run.code, Some(1), "{}", run.out);
        let found: Json = serde_json::from_str(&run.out).expect("an object");
        let reasons = &found["checked"][0]["reasons"];
        assert_eq!(reasons.as_array().map(Vec::len), Some(1), "{}", run.out);
        assert_eq!(reasons[0]["reason"], "backups-lost", "{}", run.out);
        told(&run, &run.out, "check");
        for further in [&[][..], &["--instance", "instance"]] {
            let expire = [&["expire", "temp", "--last", "1", "--delete"][..], further].concat();
            let run = place.run(&expire);
            assert_eq!(run.code, Some(1), "{}\n{}", run.out, run.err);
            assert!(place.path("temp/1.bak").exists() && place.path("temp/2.bak").exists());
        }
        if name == "own" {
            continue;
        }
        let latest = "RESTORE DATABASE trial FROM DISK = 'd:\\temp\\*.bak' SOURCE = 'app' LATEST_ALL \
                      WITH MOVE 'app' TO 'd:\\trial.db'";
        let run = sqlbackup::run(&place, latest);
        let (lines, ..) = sqlbackup::report(&run);
        assert!(lines.contains("would give a newer state"), "{lines}");
        told(&run, &lines, "LATEST");
        assert!(!place.path("trial.db").exists());
    }
}
