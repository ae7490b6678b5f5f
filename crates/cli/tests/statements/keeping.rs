//! What is said to be kept is there: bases, media that went away, runs to NUL, `windlass check`.

use std::os::unix::fs::PermissionsExt as _;

use rusqlite::Connection;
use serde_json::Value as Json;

use crate::support::{Place, Run, on, registered as place, rows, succeed, well};

fn change(place: &Place) {
    let connection = Connection::open(place.path("app.db")).expect("the database");
    let change = "INSERT INTO t(body) VALUES ('changed')";
    connection.execute(change, []).expect("a change");
}

/// The base of the newest differential, by its position in the history.
fn base_of(place: &Place, differential: &str) -> (String, String) {
    let guid = |run: &Run, name: &str| {
        run.results()[0][0][name]
            .as_str()
            .expect("an identity")
            .to_owned()
    };
    let header = |name: &str| place.succeed(&["header", name, "--json"]);
    let base = guid(&header(differential), "DifferentialBaseGUID");
    let media = ["1.bak", "2.bak"];
    let base = media
        .iter()
        .find(|name| place.path(name).exists() && guid(&header(name), "BackupSetGUID") == base);
    (base.expect("the base").to_string(), differential.to_owned())
}

#[track_caller]
fn restores(place: &Place, (full, differential): &(String, String)) {
    place.succeed(&[
        "restore",
        full,
        "--to",
        "copy.db",
        "--no-recovery",
        "--replace",
    ]);
    place.succeed(&["restore", differential, "--to", "copy.db"]);
    assert_eq!(rows(&place.path("copy.db")), rows(&place.path("app.db")));
}

#[test]
fn full_backups_at_once_all_succeed_and_the_newest_is_the_base() {
    for is_registered in [false, true] {
        let place = Place::new();
        if is_registered {
            succeed(&place, "EXEC sp_attach_db 'app', 'd:\\app.db'");
        }
        let slow = [
            "backup",
            "app.db",
            "--to",
            "1.bak",
            "--max-rate",
            "1",
            "--instance",
            "instance",
        ];
        let mut slow = place.command(&slow).spawn().expect("the program starts");
        // It is under way when its medium is there under its staging name.
        while !place.path("1.bak.windlass-new").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let quick: Vec<_> = (2..8)
            .map(|number| {
                let to = format!("{number}.bak");
                let arguments = ["backup", "app.db", "--to", &to, "--instance", "instance"];
                place
                    .command(&arguments)
                    .spawn()
                    .expect("the program starts")
            })
            .collect();
        for mut child in quick {
            assert!(child.wait().expect("it ends").success());
        }
        assert!(slow.wait().expect("it ends").success(), "the slow one");
        let history = well(&place, &["history", "--json"]).results()[0].clone();
        assert_eq!(history.as_array().map(Vec::len), Some(7));
        change(&place);
        well(
            &place,
            &["backup", "app.db", "--to", "d.bak", "--differential"],
        );
        let header = place.succeed(&["header", "d.bak", "--json"]).results()[0][0].clone();
        let base = (1..8).find(|number| {
            let own = place.succeed(&["header", &format!("{number}.bak"), "--json"]);
            own.results()[0][0]["BackupSetGUID"] == header["DifferentialBaseGUID"]
        });
        let base = base.expect("a base in the history");
        assert_ne!(base, 1, "the slow one, which began first, is older");
        restores(&place, &(format!("{base}.bak"), "d.bak".to_owned()));
        let kept = std::fs::read_dir(place.path("instance/bases")).expect("the folder");
        assert_eq!(
            kept.count(),
            1,
            "one file of digests, and nothing unfinished"
        );
    }
}

#[test]
fn a_cache_of_digests_that_cannot_be_kept_does_not_fail_the_backup() {
    let place = place();
    std::fs::write(place.path("instance/bases"), "no folder").expect("a file in the way");
    let run = on(&place, &["backup", "app", "--to", "1.bak", "--json"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(run.numbers(), [4035, 3009, 50015, 3014]);
    change(&place);
    // The digests come from the base's media.
    well(
        &place,
        &["backup", "app", "--to", "d.bak", "--differential"],
    );
    restores(&place, &base_of(&place, "d.bak"));
}

#[test]
fn a_lost_cache_of_digests_is_made_again_from_the_media_of_the_base() {
    let place = place();
    well(&place, &["backup", "app", "--to", "1.bak"]);
    std::fs::remove_dir_all(place.path("instance/bases")).expect("it goes");
    change(&place);
    well(
        &place,
        &["backup", "app", "--to", "d.bak", "--differential"],
    );
    restores(&place, &base_of(&place, "d.bak"));
    let kept = std::fs::read_dir(place.path("instance/bases")).expect("the folder");
    assert_eq!(kept.count(), 1);
}

#[test]
fn a_full_backup_that_the_history_does_not_have_is_no_base() {
    let place = place();
    well(&place, &["backup", "app", "--to", "1.bak"]);
    let catalog = Connection::open(place.path("instance/windlass.catalog")).expect("the catalog");
    let refuse = "CREATE TRIGGER no BEFORE INSERT ON own_backupset \
                  BEGIN SELECT RAISE(ABORT, 'no'); END";
    catalog.execute_batch(refuse).expect("a trigger");
    let run = on(&place, &["backup", "app", "--to", "2.bak", "--json"]);
    assert_eq!(run.numbers(), [4035, 3009, 3014]);
    catalog.execute_batch("DROP TRIGGER no").expect("it goes");
    change(&place);
    well(
        &place,
        &["backup", "app", "--to", "d.bak", "--differential"],
    );
    let (base, differential) = base_of(&place, "d.bak");
    assert_eq!(base, "1.bak");
    restores(&place, &(base, differential));
}

/// For both kinds of databases.
#[test]
fn a_run_to_nul_is_no_base_and_no_backup() {
    let place = place();
    succeed(
        &place,
        "CREATE DATABASE Sales ON (NAME = s, FILENAME = 'd:\\s.mdf', SIZE = 4MB) \
         LOG ON (NAME = l, FILENAME = 'd:\\s.ldf', SIZE = 4MB)",
    );
    for name in ["app", "Sales"] {
        let reported = on(&place, &["backup", name, "--to", "NUL", "--json"]);
        assert_eq!(reported.code, Some(0), "{}", reported.err);
        let numbers = reported.numbers();
        let times = numbers.iter().filter(|number| **number == 50011).count();
        assert_eq!(times, 1, "{numbers:?}");
        let refused = on(
            &place,
            &["backup", name, "--to", "d.bak", "--differential", "--json"],
        );
        assert_eq!(refused.numbers(), [3035, 3013], "{name}");
        let full = format!("{name}.bak");
        well(&place, &["backup", name, "--to", &full]);
        well(&place, &["backup", name, "--to", "NUL"]);
        well(
            &place,
            &[
                "sql",
                "-Q",
                &format!("BACKUP DATABASE {name} TO DISK = 'NUL'"),
            ],
        );
        let differential = format!("{name}-d.bak");
        well(
            &place,
            &["backup", name, "--to", &differential, "--differential"],
        );
        let header =
            |name: &str| place.succeed(&["header", name, "--json"]).results()[0][0].clone();
        assert_eq!(
            header(&differential)["DifferentialBaseGUID"],
            header(&full)["BackupSetGUID"]
        );
        let history = well(&place, &["history", name, "--json"]).results()[0].clone();
        assert_eq!(history.as_array().map(Vec::len), Some(2), "{name}");
    }
    let metrics = well(&place, &["metrics"]).out;
    assert!(metrics.contains("windlass_backups{database=\"app\",type=\"full\"} 1"));
    well(&place, &["backup", "other", "--to", "NUL"]);
    let check = on(&place, &["check", "--database", "other", "--json"]);
    let found: Json = serde_json::from_str(&check.out).expect("an object");
    assert_eq!(
        found["checked"][0]["reasons"][0]["reason"],
        "never-backed-up"
    );
    for devices in [
        "TO DISK = 'NUL', DISK = 'd:\\x.bak'",
        "TO DISK = 'd:\\x.bak' MIRROR TO DISK = 'NUL' WITH FORMAT",
    ] {
        let mixed = on(
            &place,
            &[
                "sql",
                "--json",
                "--drive",
                &format!("d={}", place.text("")),
                "-Q",
                &format!("BACKUP DATABASE app {devices}"),
            ],
        );
        assert_eq!(mixed.numbers(), [3011, 3013], "{devices}");
    }
}

#[test]
fn a_differential_on_vanished_media_is_refused_or_warned_of() {
    let place = place();
    std::fs::create_dir(place.path("b")).expect("a folder");
    well(
        &place,
        &[
            "backup", "app", "--to", "b/1.bak", "--to", "b/2.bak", "--mirror", "b/m1.bak",
            "--mirror", "b/m2.bak", "--format",
        ],
    );
    let differential = [
        "backup",
        "app",
        "--to",
        "d.bak",
        "--format",
        "--differential",
        "--json",
    ];
    // Stripes of both copies together are the whole.
    std::fs::remove_file(place.path("b/1.bak")).expect("it goes");
    std::fs::remove_file(place.path("b/m2.bak")).expect("it goes");
    well(&place, &differential);
    let file = std::fs::File::options()
        .write(true)
        .open(place.path("b/m1.bak"));
    let file = file.expect("a stripe");
    let bytes = file.metadata().expect("its length").len();
    file.set_len(bytes - 1).expect("it is cut");
    let refused = on(&place, &differential);
    assert_eq!(refused.numbers(), [50012, 3013], "{}", refused.err);
    let forced = on(
        &place,
        &[&differential[..], &["--base-missing-ok"]].concat(),
    );
    assert_eq!(
        (forced.code, forced.numbers()[0]),
        (Some(0), 50013),
        "{}",
        forced.err
    );
    let warned = "BACKUP DATABASE app TO DISK = 'd:\\d.bak' WITH FORMAT, DIFFERENTIAL";
    assert_eq!(succeed(&place, warned).numbers()[0], 50013);
    let sqlbackup = format!(
        "BACKUP DATABASE app TO DISK = [{}] WITH DIFFERENTIAL, FULLIFREQUIRED, INIT",
        place.text("f.bak")
    );
    let full = well(&place, &["sqlbackup", "-S", &sqlbackup]);
    assert!(
        full.out
            .contains("cannot be restored from its last full backup"),
        "{}",
        full.out
    );
    let header = place.succeed(&["header", "f.bak", "--json"]).results()[0][0].clone();
    assert_eq!(header["BackupType"], 1);
    well(&place, &differential);
}

#[test]
fn media_that_cannot_be_looked_at_are_not_called_gone() {
    let place = place();
    std::fs::create_dir(place.path("b")).expect("a folder");
    well(&place, &["backup", "app", "--to", "b/1.bak"]);
    well(&place, &["backup", "other", "--to", "o.bak"]);
    let media = |place: &Place| {
        let rows = well(place, &["history", "app", "--json"]).results()[0].clone();
        rows[0]["media"].as_str().expect("a text").to_owned()
    };
    let folder = place.path("b");
    let catalog = Connection::open(place.path("instance/windlass.catalog")).expect("the catalog");
    // As if a file system had been mounted there that is not now.
    let mounted = "UPDATE own_set_medium SET mount_point = ?1";
    catalog
        .execute(mounted, [place.text("b")])
        .expect("a mount point");
    std::fs::remove_file(place.path("b/1.bak")).expect("it goes");
    assert!(media(&place).starts_with("not seen: "), "{}", media(&place));
    let check = on(&place, &["check"]);
    assert_eq!(check.code, Some(3), "{}", check.out);
    assert!(
        check.out.starts_with("WINDLASS UNKNOWN - app: "),
        "{}",
        check.out
    );
    // Nobody else calls it kept.
    let run = on(&place, &["history", "app", "--rpo", "24h", "--json"]);
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert_eq!(run.results()[0][0]["rpo"], "unknown");
    let run = on(&place, &["report", "app", "--json", "--to", "r.html"]);
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(run.out.contains("\"verdict\":\"unknown\""), "{}", run.out);
    let page = std::fs::read_to_string(place.path("r.html")).expect("a page");
    assert!(page.contains("None is known"), "the page calls it kept");
    let metrics = well(&place, &["metrics"]).out;
    for line in [
        "windlass_database_restorable{database=\"app\"} 0",
        "windlass_database_restorable_timestamp_seconds{database=\"app\"} 0",
        "windlass_database_media_unseen{database=\"app\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    let run = on(&place, &["doctor", "--json"]);
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(
        run.out
            .contains("\"state\":\"ERROR\",\"what\":\"database app\""),
        "{}",
        run.out
    );
    catalog
        .execute("UPDATE own_set_medium SET mount_point = '/'", [])
        .expect("none");
    assert!(
        media(&place).starts_with("missing, noticed on "),
        "{}",
        media(&place)
    );
    assert_eq!(on(&place, &["check"]).code, Some(2));
    if !rustix_is_root(&folder) {
        let closed = std::fs::Permissions::from_mode(0o0);
        std::fs::set_permissions(&folder, closed).expect("closed");
        assert!(media(&place).starts_with("not seen: "));
        let open = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&folder, open).expect("open");
    }
}

/// Whether the user who runs the tests ignores permissions.
fn rustix_is_root(folder: &std::path::Path) -> bool {
    let closed = folder.join("closed");
    std::fs::write(&closed, "x").expect("a file");
    let mode = std::fs::Permissions::from_mode(0o0);
    std::fs::set_permissions(&closed, mode).expect("closed");
    std::fs::read(&closed).is_ok()
}

#[test]
fn since_when_media_are_gone_is_remembered_until_they_are_back() {
    let place = place();
    well(&place, &["backup", "app", "--to", "1.bak"]);
    std::fs::rename(place.path("1.bak"), place.path("away.bak")).expect("it goes");
    let media = |place: &Place| {
        let rows = well(place, &["history", "app", "--json"]).results()[0].clone();
        rows[0]["media"].as_str().expect("a text").to_owned()
    };
    media(&place);
    let catalog = Connection::open(place.path("instance/windlass.catalog")).expect("the catalog");
    let earlier = "UPDATE own_backupset SET missing_since = '2001-02-03 04:05:06' \
                   WHERE missing_since IS NOT NULL";
    assert_eq!(catalog.execute(earlier, []).expect("an update"), 1);
    assert!(media(&place).starts_with("missing, noticed on 2001-02-03 04:05:06: "));
    let report = on(&place, &["report", "app"]);
    assert_eq!(report.code, Some(1), "{}", report.out);
    assert!(report.out.contains("nothing restorable"), "{}", report.out);
    assert_eq!(on(&place, &["doctor"]).code, Some(1));
    // Another medium of the same length under the name is not the medium.
    well(&place, &["backup", "other", "--to", "1.bak"]);
    let bytes = std::fs::metadata(place.path("away.bak"))
        .expect("a length")
        .len();
    let other = std::fs::File::options()
        .write(true)
        .open(place.path("1.bak"));
    other.expect("a file").set_len(bytes).expect("as long");
    assert!(
        media(&place).contains("belongs to another media set"),
        "{}",
        media(&place)
    );
    std::fs::rename(place.path("away.bak"), place.path("1.bak")).expect("it is back");
    assert_eq!(media(&place), "there");
    let noted: i64 = catalog
        .query_row(
            "SELECT count(missing_since) FROM own_backupset WHERE database_name = 'app'",
            [],
            |row| row.get(0),
        )
        .expect("a count");
    assert_eq!(noted, 0);
}

fn check(place: &Place, arguments: &[&str]) -> (i32, Json) {
    let run = on(place, &[&["check", "--json"], arguments].concat());
    let json = serde_json::from_str(&run.out).expect("an object");
    (run.code.expect("a code"), json)
}

/// The reasons reported for a database, or for none.
fn reasons(found: &Json, database: Option<&str>) -> Vec<(String, Json)> {
    let checked = found["checked"].as_array().expect("a list").iter();
    let subjects = checked.filter(|one| one["database"].as_str() == database);
    let reasons = subjects.flat_map(|one| one["reasons"].as_array().expect("a list"));
    reasons
        .map(|reason| {
            let kind = reason["reason"].as_str().expect("a word").to_owned();
            (kind, reason["number"].clone())
        })
        .collect()
}

fn age(place: &Place, hours: u32) {
    let catalog = Connection::open(place.path("instance/windlass.catalog")).expect("the catalog");
    let older = "UPDATE own_backupset SET \
                 backup_start_date = datetime(backup_start_date, ?1), \
                 backup_finish_date = datetime(backup_finish_date, ?1)";
    let by = format!("-{hours} hours");
    catalog.execute(older, [by]).expect("older dates");
}

#[test]
fn check_tells_every_reason_with_its_number_and_its_exit_code() {
    let place = place();
    let never = |found: &Json| reasons(found, Some("other"))[0].0.clone();
    let (code, found) = check(&place, &[]);
    assert_eq!((code, never(&found).as_str()), (2, "never-backed-up"));
    well(&place, &["backup", "app", "--to", "1.bak"]);
    well(&place, &["backup", "other", "--to", "o.bak"]);
    let line = well(&place, &["check"]);
    assert!(
        line.out.starts_with("WINDLASS OK - 2 databases"),
        "{}",
        line.out
    );
    assert!(line.out.contains(" | 'app age'="), "{}", line.out);
    assert_eq!(line.out.lines().count(), 1);

    let (code, found) = check(&place, &["--verified-within", "1h", "--database", "app"]);
    assert_eq!(
        (code, reasons(&found, Some("app"))[0].0.as_str()),
        (1, "never-verified")
    );
    well(&place, &["verify", "1.bak"]);
    assert_eq!(
        check(&place, &["--verified-within", "1h", "--database", "app"]).0,
        0
    );

    let failed = on(&place, &["backup", "app", "--to", "nosuch/x.bak"]);
    assert_eq!(failed.code, Some(1));
    let (code, found) = check(&place, &[]);
    assert_eq!(code, 1);
    assert_eq!(
        reasons(&found, Some("app")),
        [("last-run-failed".to_owned(), 3201.into())]
    );
    let metrics = well(&place, &["metrics"]).out;
    for line in [
        "windlass_backup_last_failure_number{database=\"app\"} 3201",
        "windlass_backup_failures{database=\"app\"} 1",
        "windlass_backup_failing{database=\"other\"} 0",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    well(&place, &["backup", "app", "--to", "2.bak"]);
    assert_eq!(
        check(&place, &[]).0,
        0,
        "a run that went well came after it"
    );

    std::fs::remove_file(place.path("2.bak")).expect("it goes");
    let (code, found) = check(&place, &[]);
    assert_eq!(
        (code, reasons(&found, Some("app"))),
        (1, vec![("backups-lost".to_owned(), 1.into())])
    );
    age(&place, 30);
    let (code, found) = check(&place, &["--database", "app"]);
    let reported = reasons(&found, Some("app"));
    assert_eq!((code, reported[0].0.as_str()), (2, "rpo-missed"));
    assert!(
        reported[0]
            .1
            .as_i64()
            .is_some_and(|age| (108_000..108_600).contains(&age)),
        "{reported:?}"
    );
    assert_eq!(check(&place, &["--database", "app", "--rpo", "31h"]).0, 1);
    std::fs::remove_file(place.path("1.bak")).expect("it goes");
    let (code, found) = check(&place, &["--database", "app"]);
    assert_eq!(
        (code, reasons(&found, Some("app"))[0].0.as_str()),
        (2, "nothing-restorable")
    );
    let metrics = well(&place, &["metrics"]).out;
    assert!(
        metrics.contains("windlass_database_restorable{database=\"app\"} 0"),
        "{metrics}"
    );
}

#[test]
fn check_finds_the_damage_that_a_verification_found() {
    let place = place();
    well(&place, &["backup", "app", "--to", "1.bak"]);
    let middle = std::fs::metadata(place.path("1.bak"))
        .expect("a length")
        .len()
        / 2;
    crate::support::flip_bit(&place.path("1.bak"), middle);
    assert_eq!(on(&place, &["verify", "1.bak"]).code, Some(1));
    let (code, found) = check(&place, &["--database", "app"]);
    assert_eq!(
        (code, reasons(&found, Some("app"))[0].0.as_str()),
        (2, "verification-failed")
    );
}

#[test]
fn what_cannot_be_checked_is_unknown() {
    let place = place();
    for (arguments, expected) in [
        (&["check"][..], "name an instance"),
        (&["check", "--instance", "nosuch"], "there is no instance"),
        (&["check", "--media", "nosuch"], "cannot be listed"),
        (
            &["check", "--instance", "instance", "--database", "nosuch"],
            "knows no database",
        ),
    ] {
        let run = place.run(arguments);
        assert_eq!(run.code, Some(3), "{arguments:?}: {}", run.out);
        assert!(run.out.starts_with("WINDLASS UNKNOWN - "), "{}", run.out);
        assert!(run.out.contains(expected), "{}", run.out);
    }
    assert!(!place.path("nosuch").exists(), "a check makes no instance");
    // A command line, or a file of settings, that cannot be followed is told there as well.
    std::fs::write(place.path("wrong.toml"), "surely_no_key = 1").expect("a file");
    for (arguments, expected) in [
        (&["check", "--rpo", "soon"][..], "invalid value 'soon'"),
        (&["check", "--zzz"], "unexpected argument '--zzz' found"),
        (&["check", "--config", "wrong.toml"], "surely_no_key"),
        (&["check", "--log-file", "nosuch/log"], "nosuch/log"),
    ] {
        let run = place.run(arguments);
        assert_eq!(run.code, Some(3), "{arguments:?}: {}", run.out);
        assert!(run.out.starts_with("WINDLASS UNKNOWN - "), "{}", run.out);
        assert!(run.out.contains(expected), "{}", run.out);
        assert_eq!(run.out.lines().count(), 1, "{}", run.out);
        assert!(run.err.contains(expected), "{}", run.err);
        let run = place.run(&[arguments, &["--json"]].concat());
        let found: Json = serde_json::from_str(&run.out).expect("an object");
        assert_eq!(
            (&found["state"], &found["code"]),
            (&"UNKNOWN".into(), &3.into())
        );
    }
    let catalog = place.path("instance/windlass.catalog");
    std::fs::write(catalog, "nonsense ".repeat(1000)).expect("a damaged catalog");
    let run = on(&place, &["check"]);
    assert_eq!(run.code, Some(3), "{}", run.out);
}

#[test]
fn copies_that_wait_are_a_warning_with_their_number() {
    let place = place();
    well(&place, &["backup", "app", "--to", "1.bak"]);
    let catalog = Connection::open(place.path("instance/windlass.catalog")).expect("the catalog");
    let copy = "INSERT INTO own_copy (source, target, overwrite, queued, next_attempt) \
                VALUES ('/a', '/b', 0, '2026-11-20 10:00:00', '2026-11-20 10:00:00')";
    catalog.execute(copy, []).expect("a copy");
    let (code, found) = check(&place, &["--database", "app"]);
    assert_eq!(
        (code, reasons(&found, None)),
        (1, vec![("copies-waiting".to_owned(), 1.into())])
    );
}

#[test]
fn a_folder_of_media_is_checked_without_an_instance() {
    let place = Place::new();
    place.succeed(&[
        "backup",
        "app.db",
        "--to",
        "temp/1.bak",
        "--to",
        "temp/2.bak",
    ]);
    place.succeed(&["backup", "other.db", "--to", "temp/o.bak"]);
    let run = place.succeed(&["check", "--media", "temp"]);
    assert!(
        run.out.starts_with("WINDLASS OK - 2 databases"),
        "{}",
        run.out
    );
    std::fs::remove_file(place.path("temp/2.bak")).expect("a stripe goes");
    let run = place.run(&["check", "--media", "temp", "--json"]);
    let found: Json = serde_json::from_str(&run.out).expect("an object");
    let reported = reasons(&found, Some("app"));
    assert_eq!(
        (run.code, reported[0].0.as_str()),
        (Some(2), "nothing-restorable")
    );
    assert_eq!(reported[1], ("backups-lost".to_owned(), 1.into()));
    assert_eq!(
        place
            .run(&["check", "--media", "temp", "--database", "other"])
            .code,
        Some(0)
    );
}
