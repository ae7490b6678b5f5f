//! `windlass drill`: proof by a restore.

use crate::log_backups::{back_up_log, chain, insert};
use crate::support::{Place, ask, flip_bit, make_database, on, succeed, well};

/// Drills on the instance.
fn drill(place: &Place, arguments: &[&str]) -> crate::support::Run {
    std::fs::create_dir_all(place.path("scratch")).expect("a folder");
    on(
        place,
        &[&["drill", "--scratch", "scratch"], arguments].concat(),
    )
}

fn is_empty(place: &Place) -> bool {
    let left = std::fs::read_dir(place.path("scratch")).expect("a folder");
    left.count() == 0
}

/// A SQLite file and a page engine database with log backups, all backed up.
fn backed_up() -> Place {
    let place = Place::new();
    chain(&place, 2);
    make_database(&place.path("site.db"), 50);
    succeed(&place, "EXEC sp_attach_db 'site', 'D:\\site.db'");
    succeed(&place, "BACKUP DATABASE site TO DISK = 'D:\\site.bak'");
    place
}

#[test]
fn every_database_is_proven_and_the_ledger_says_so() {
    let place = backed_up();
    let run = drill(&place, &["--query", "SELECT count(*) FROM t"]);
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    assert!(is_empty(&place));
    let ledger = ask(
        &place,
        "instance",
        "SELECT database_name AS d, answer AS a, error_number AS e, check_depth AS c, restore_ms AS r \
         FROM msdb.dbo.windlass_drill ORDER BY database_name",
    );
    let names: Vec<_> = ledger
        .iter()
        .map(|row| row["d"].as_str().unwrap_or(""))
        .collect();
    assert_eq!(names, ["Shop", "site"], "{ledger:?}");
    for (row, answer) in ledger.iter().zip(["3", "50"]) {
        assert_eq!((&row["a"], &row["e"]), (&answer.into(), &0.into()), "{row}");
        assert_eq!(row["c"], "FULL");
        assert!(row["r"].is_number());
    }
    let sets = ask(
        &place,
        "instance",
        "SELECT count(*) AS n FROM msdb.dbo.windlass_verification WHERE depth = 'restored'",
    );
    assert_eq!(sets[0]["n"], 4, "full, two logs, and the file");
    // Nothing was registered, and nothing of the databases was touched.
    let databases = ask(
        &place,
        "instance",
        "SELECT count(*) AS n FROM sys.databases WHERE database_id > 4",
    );
    assert_eq!(databases[0]["n"], 2);
}

#[test]
fn any_moment_of_the_backups_can_be_proven() {
    let place = backed_up();
    insert(&place, 9);
    back_up_log(&place, "3.trn");
    for _ in 0..8 {
        let run = drill(
            &place,
            &["--at", "random", "--query", "SELECT count(*) FROM t"],
        );
        assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    }
    let files = ["full.bak", "1.trn", "2.trn", "3.trn"];
    let from = [&["Shop", "--at", "random", "--from"], &files[..]].concat();
    let run = place.run(&[&["drill", "--scratch", "scratch"], &from[..]].concat());
    assert_eq!(
        run.code,
        Some(0),
        "without an instance: {}{}",
        run.out,
        run.err
    );
    assert!(is_empty(&place));
}

#[test]
fn the_backups_of_a_drill_are_objects_for_programs() {
    let place = backed_up();
    let run = drill(&place, &["Shop", "--json"]);
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    let found: serde_json::Value = serde_json::from_str(&run.out).expect("an array");
    let backups = found[0]["backups"].as_array().expect("an array");
    let types: Vec<_> = backups.iter().map(|backup| &backup["type"]).collect();
    assert_eq!(types, ["full", "log", "log"]);
    for backup in backups {
        let finished = backup["finished"].as_str().expect("a time");
        assert_eq!(finished.find('T'), Some(10), "{finished}");
        assert!(backup["started"].is_string(), "{backup}");
    }
}

#[test]
fn what_is_not_proven_is_an_error_in_the_ledger() {
    let place = backed_up();
    let failed = |arguments: &[&str], number: &str| {
        let run = drill(&place, arguments);
        assert_eq!(run.code, Some(1), "{arguments:?}: {}{}", run.out, run.err);
        assert!(run.err.contains(number), "{arguments:?}: {}", run.err);
        assert!(run.out.contains("not proven"), "{}", run.out);
        assert!(is_empty(&place));
    };
    failed(
        &["site", "--query", "SELECT count(*) FROM t WHERE id < 0"],
        "50294",
    );
    failed(
        &["site", "--query", "SELECT 1 FROM t WHERE id < 0"],
        "50294",
    );
    failed(&["site", "--query", "SELECT * FROM nowhere"], "208");
    failed(&["site", "--space", "1K"], "50292");
    failed(&["nobody"], "50293");
    let path = place.path("site.bak");
    let bytes = std::fs::metadata(&path).expect("it is there").len();
    flip_bit(&path, bytes / 2);
    failed(&["site"], "3189");
    std::fs::rename(place.path("2.trn"), place.path("elsewhere")).expect("moved");
    failed(&["Shop"], "50324");
    std::fs::rename(place.path("elsewhere"), place.path("2.trn")).expect("moved");
    std::fs::remove_file(place.path("full.bak")).expect("removed");
    failed(&["Shop"], "50062");
    let wrong = ask(
        &place,
        "instance",
        "SELECT count(*) AS n FROM msdb.dbo.windlass_drill WHERE error_number <> 0 AND message IS NOT NULL",
    );
    assert_eq!(wrong[0]["n"], 8);
}

#[test]
fn a_dry_run_restores_nothing_and_proves_nothing() {
    let place = backed_up();
    let run = drill(&place, &["--dry-run"]);
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    assert!(run.out.contains("not tried"), "{}", run.out);
    let ledger = ask(
        &place,
        "instance",
        "SELECT count(*) AS n FROM msdb.dbo.windlass_drill",
    );
    assert_eq!(ledger[0]["n"], 0);
}

#[test]
fn a_part_of_the_databases_is_proven_in_turn() {
    let place = backed_up();
    // One that fails takes no other one's turn.
    for (query, code) in [("SELECT 0", 1), ("SELECT 1", 0)] {
        for _ in 0..2 {
            let run = drill(&place, &["--subset", "1/2", "--query", query]);
            assert_eq!(run.code, Some(code), "{}{}", run.out, run.err);
        }
        let drilled = format!(
            "SELECT count(DISTINCT database_name) AS n FROM msdb.dbo.windlass_drill WHERE query = '{query}'"
        );
        assert_eq!(ask(&place, "instance", &drilled)[0]["n"], 2, "{query}");
    }
}

#[test]
fn a_question_without_an_end_ends_with_the_command() {
    let place = backed_up();
    let endless =
        "WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n) SELECT max(a) FROM n";
    std::fs::create_dir_all(place.path("scratch")).expect("a folder");
    let drill = [
        "drill",
        "site",
        "--scratch",
        "scratch",
        "--instance",
        "instance",
        "--query",
    ];
    let mut command = place.command(&[&drill[..], &[endless]].concat());
    let mut child = command.spawn().expect("a drill");
    while is_empty(&place) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::TERM,
    )
    .expect("a signal");
    let status = child.wait().expect("its end");
    assert_eq!(status.code(), Some(1), "{status}");
    assert!(is_empty(&place));
}

#[test]
fn kept_files_stay_and_can_be_opened() {
    let place = backed_up();
    let run = drill(&place, &["site", "--keep"]);
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    assert!(!is_empty(&place));
    let again = drill(&place, &["site"]);
    assert_eq!(again.code, Some(0), "{}{}", again.out, again.err);
    assert!(!is_empty(&place), "what was kept stays");
    well(&place, &["check"]);
}

#[test]
fn a_question_reaches_no_file_but_those_of_the_restored_database() {
    let place = backed_up();
    let site = place.text("site.db");
    let before = std::fs::read(&site).expect("the database");
    for query in [
        format!("ATTACH '{site}' AS x; DELETE FROM x.t; SELECT 1"),
        format!("VACUUM INTO '{}'", place.text("copy.db")),
        format!(
            "BACKUP DATABASE site TO DISK = '{}'; SELECT 1",
            place.text("x.bak")
        ),
        format!("EXEC sp_attach_db 'mine', '{site}'; SELECT 1"),
    ] {
        let run = drill(&place, &["site", "--query", &query]);
        assert_eq!(run.code, Some(1), "{query}: {}", run.out);
        assert!(is_empty(&place));
    }
    assert!(std::fs::read(&site).expect("the database") == before);
    assert!(!place.path("copy.db").exists() && !place.path("x.bak").exists());
}

#[test]
fn two_databases_of_one_name_are_proven_each_for_itself() {
    let place = Place::new();
    for (folder, count) in [("one", 10), ("two", 20)] {
        std::fs::create_dir(place.path(folder)).expect("a folder");
        let database = place.text(&format!("{folder}/shop.db"));
        make_database(&place.path(&format!("{folder}/shop.db")), count);
        let to = place.text(&format!("{folder}.bak"));
        well(&place, &["backup", &database, "--to", &to]);
    }
    std::fs::create_dir(place.path("scratch")).expect("a folder");
    let run = well(&place, &["drill", "--scratch", "scratch"]);
    for folder in ["one", "two"] {
        let name = format!("shop ('{}' on ", place.text(&format!("{folder}/shop.db")));
        assert!(run.out.contains(&name), "{}", run.out);
    }
}
