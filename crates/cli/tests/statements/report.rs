//! `windlass report`: gaps and the page.

use rusqlite::Connection;
use serde_json::Value as Json;

use crate::support::Place;

/// An instance whose `app` has full backups 5 and 2 days ago and a differential an hour ago, whose
/// `other` has one of 20 hours ago, and whose `never<b>` has none.
fn place() -> (Place, String) {
    let place = Place::new();
    let instance = place.text("instance");
    std::fs::copy(place.path("other.db"), place.path("never.db")).expect("a copy");
    let run = place.sql_with(
        &["--instance", &instance],
        "EXEC sp_attach_db 'app', 'd:\\app.db'\n\
         EXEC sp_attach_db 'other', 'd:\\other.db'\n\
         EXEC sp_attach_db 'never<b>', 'd:\\never.db'\n\
         BACKUP DATABASE app TO DISK = 'd:\\1.bak'\n\
         BACKUP DATABASE app TO DISK = 'd:\\2.bak' WITH COMPRESSION\n\
         BACKUP DATABASE app TO DISK = 'd:\\3.bak' WITH DIFFERENTIAL\n\
         BACKUP DATABASE other TO DISK = 'd:\\4.bak'",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    let catalog = Connection::open(place.path("instance/windlass.catalog")).expect("the catalog");
    for (id, age) in [
        (1, "-120 hours"),
        (2, "-48 hours"),
        (3, "-1 hours"),
        (4, "-20 hours"),
    ] {
        catalog
            .execute(
                "UPDATE own_backupset SET
                     backup_start_date = datetime(backup_start_date, ?2, '-10 seconds'),
                     backup_finish_date = datetime(backup_finish_date, ?2)
                 WHERE backup_set_id = ?1",
                (id, age),
            )
            .expect("older dates");
    }
    (place, instance)
}

fn json(place: &Place, arguments: &[&str]) -> Json {
    let run = place.run(&[&["report", "--json"], arguments].concat());
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.err);
    serde_json::from_str(&run.out).expect("an object")
}

fn of<'a>(rows: &'a Json, database: &str) -> Vec<&'a Json> {
    let rows = rows.as_array().expect("rows").iter();
    rows.filter(|row| row["database"] == database).collect()
}

#[test]
fn gaps_are_told_for_each_database() {
    let (place, instance) = place();
    let report = json(&place, &["--instance", &instance, "--rpo", "24h"]);
    assert_eq!(report["rpo_minutes"], 1440);
    let verdict = |database: &str| of(&report["databases"], database)[0]["verdict"].clone();
    assert_eq!(verdict("app"), "missed");
    assert_eq!(verdict("other"), "kept");
    assert_eq!(verdict("never<b>"), "never backed up");
    let gaps = of(&report["gaps"], "app");
    assert_eq!(gaps.len(), 2, "{gaps:?}");
    let losses: Vec<f64> = gaps
        .iter()
        .filter_map(|gap| gap["loss_hours"].as_f64())
        .collect();
    assert!(
        (losses[0] - 72.0).abs() < 0.1 && (losses[1] - 47.0).abs() < 0.1,
        "{losses:?}"
    );
    assert!(gaps.iter().all(|gap| gap["state"] == "over"));
    assert_eq!(
        of(&report["gaps"], "never<b>")[0]["state"],
        "never backed up"
    );
    let app = of(&report["databases"], "app")[0].clone();
    assert_eq!(app["files"], "there");
    assert!(app["last_differential"].as_str() > app["last_full"].as_str());
    // Without its full backup the differential is of no use.
    std::fs::remove_file(place.path("3.bak")).expect("it goes");
    let catalog = Connection::open(place.path("instance/windlass.catalog")).expect("the catalog");
    catalog
        .execute(
            "UPDATE own_backupset SET is_damaged = 1 WHERE backup_set_id = 4",
            [],
        )
        .expect("damage");
    let report = json(&place, &["--instance", &instance, "--rpo", "30m"]);
    let app = of(&report["databases"], "app")[0].clone();
    assert_eq!(app["unusable"], 1, "the differential is gone");
    assert_eq!(app["last_differential"], Json::Null);
    assert_eq!(app["verdict"], "missed now", "the full backup counts");
    let other = of(&report["databases"], "other")[0].clone();
    assert_eq!(
        (&other["verdict"], &other["unusable"]),
        (&"nothing restorable".into(), &1.into())
    );
    let only = json(&place, &["other", "--instance", &instance]);
    assert_eq!(only["databases"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        place
            .run(&["report", "nosuch", "--instance", &instance])
            .code,
        Some(2)
    );
    assert_eq!(place.run(&["report"]).code, Some(2));
    // The history's short form agrees.
    let history = place.run(&["history", "--rpo", "24h", "--instance", &instance, "--json"]);
    assert_eq!(history.code, Some(1), "app misses it now");
    let rows = history.results()[0].clone();
    assert_eq!(of(&rows, "app")[0]["gaps_over_rpo"], 3);
    assert_eq!(of(&rows, "app")[0]["rpo"], "missed now");
    assert_eq!(of(&rows, "never<b>")[0]["rpo"], "never backed up");
}

#[test]
fn the_page_is_one_file_with_charts_of_each_database() {
    let (place, instance) = place();
    let run = place.run(&[
        "report",
        "--instance",
        &instance,
        "--rpo",
        "24h",
        "--to",
        "r.html",
    ]);
    assert_eq!(run.code, Some(1), "one was never backed up");
    assert!(run.out.contains("never backed up"), "{}", run.out);
    assert!(
        run.out
            .contains("Periods without a recent enough restorable backup"),
        "{}",
        run.out
    );
    let page = std::fs::read_to_string(place.path("r.html")).expect("a page");
    for text in [
        "Size of the backups of app",
        "Rate of the backups of app",
        "Ratio of the backups of app",
        "Size of the backups of other",
        "never&lt;b&gt;",
        "never backed up",
        "class=\"trouble\"",
        "s0 event",
        "s1 event",
        "differential stored",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("<script") && !page.contains("never<b>"));
    assert!(!page.contains("://"), "nothing from elsewhere");
    // Of the last day there is no gap of `app` but the end of one.
    let short = place.succeed(&["report", "app", "--instance", &instance, "--days", "1"]);
    assert_eq!(short.out.matches(" over ").count(), 1, "{}", short.out);
    place.succeed(&["sql", "--instance", "new", "-Q", "SELECT 1"]);
    // Nothing is known there, also not that all is well.
    let empty = place.run(&["report", "--instance", "new", "--to", "e.html"]);
    assert_eq!(empty.code, Some(1), "{}", empty.out);
    assert!(empty.err.contains("is it the right one?"), "{}", empty.err);
    assert!(place.path("e.html").exists());
    let failed = place.run(&["report", "--instance", &instance, "--to", "nosuch/r.html"]);
    assert_eq!(failed.code, Some(1));
}
