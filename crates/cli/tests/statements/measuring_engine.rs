//! `bench` and `tune` on databases of the page engine.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value as Json;

use crate::support::{Place, Run, pages, succeed};

/// A database of two data files, with a full backup and changes since.
const MAKE: &str = "
CREATE DATABASE Sales
ON (NAME = Sales_1, FILENAME = 'D:\\sales\\1.mdf', SIZE = 2MB),
   (NAME = Sales_2, FILENAME = 'D:\\sales\\2.ndf', SIZE = 2MB)
LOG ON (NAME = Sales_log, FILENAME = 'D:\\sales\\log.ldf', SIZE = 8MB)
GO
USE Sales
GO
CREATE TABLE orders(id INTEGER PRIMARY KEY, body TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO orders SELECT i, hex(randomblob(50)) FROM n
GO
BACKUP DATABASE Sales TO DISK = 'D:\\full.bak' WITH COMPRESSION
GO
INSERT INTO orders(body) VALUES ('after the full')
";

/// A place with the database, the folder `sales` holding its files and nothing else.
fn place() -> Place {
    let place = Place::new();
    for folder in ["sales", "backup"] {
        fs::create_dir(place.path(folder)).expect("a folder");
    }
    succeed(&place, MAKE);
    place
}

/// Runs a command on the instance.
fn on_instance(place: &Place, arguments: &[&str]) -> Run {
    let instance = place.text("instance");
    place.run(&[arguments, &["--instance", &instance]].concat())
}

fn json(text: &str) -> Json {
    serde_json::from_str(text).expect(text)
}

/// All that a measurement must not change: files in the folders, content of the data files, history, the
/// differential base and what changed since.
#[derive(Debug, PartialEq)]
struct State {
    files: Vec<String>,
    data: [u64; 2],
    known: Json,
}

fn state(place: &Place) -> State {
    let known = succeed(
        place,
        "USE Sales
GO
SELECT (SELECT count(*) FROM msdb.dbo.backupset) AS backups,
       (SELECT count(*) FROM msdb.dbo.restorehistory) AS restores,
       (SELECT count(*) FROM sys.databases) AS databases,
       changed_extent_count AS changed FROM sys.dm_db_checkpoint_stats",
    );
    let names = |folder: &str| {
        let entries = fs::read_dir(place.path(folder)).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let names = names.map(|name| format!("{folder}/{}", name.display()));
        names.collect::<Vec<_>>()
    };
    let mut files = [names("sales"), names("backup")].concat();
    files.sort();
    let hash = |name| {
        let mut hasher = DefaultHasher::new();
        pages(&place.path(name)).hash(&mut hasher);
        hasher.finish()
    };
    State {
        files,
        data: ["sales/1.mdf", "sales/2.ndf"].map(hash),
        known: known.results().remove(0),
    }
}

/// The measurements leave a differential that counts from the full backup of the beginning.
fn assert_base_in_force(place: &Place) {
    let run = succeed(
        place,
        "BACKUP DATABASE Sales TO DISK = 'D:\\full.bak' WITH DIFFERENTIAL
RESTORE HEADERONLY FROM DISK = 'D:\\full.bak'",
    );
    let headers = run.results().remove(0);
    assert_eq!(
        headers[1]["DifferentialBaseGUID"],
        headers[0]["BackupSetGUID"]
    );
    assert_eq!(headers[0]["BackupType"], 1, "{headers}");
}

#[test]
fn every_experiment_leaves_an_engine_database_as_it_was() {
    let place = place();
    let before = state(&place);
    assert_eq!(before.known[0]["backups"], 1);
    assert!(before.known[0]["changed"].as_i64() > Some(0));
    for (experiment, table, further) in [
        ("compression", "disk", &["--compress", "zstd:low,none"][..]),
        (
            "devices",
            "devices",
            &["--files", "1,2", "--max-transfer-size", "1M"],
        ),
        (
            "stages",
            "full",
            &["--threads", "1", "--compress", "zstd:low"],
        ),
        ("restore", "restore", &["--compress", "zstd:low,none"]),
    ] {
        let common = ["bench", experiment, "Sales", "--rounds", "2", "--json"];
        let run = on_instance(&place, &[&common[..], further].concat());
        assert_eq!(run.code, Some(0), "{experiment}: {}", run.err);
        let results = json(&run.out);
        assert_eq!(results["facts"]["database"], "Sales");
        assert_eq!(results["facts"]["files"], "2 data files, log");
        for row in results["tables"][table].as_array().expect(table) {
            let rate = row["megabytes_per_second"].as_f64();
            assert!(rate > Some(0.0), "{row}");
        }
        assert_eq!(state(&place), before, "{experiment}");
    }
    assert_base_in_force(&place);
}

#[test]
fn what_tune_recommends_for_an_engine_database_runs() {
    let place = place();
    let before = state(&place);
    let run = on_instance(
        &place,
        &[
            "tune",
            "sales",
            "--to",
            "backup",
            "--time",
            "0.2",
            "--report",
            "tune.html",
            "--json",
        ],
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(state(&place), before);
    assert_base_in_force(&place);

    let advice = json(&run.out);
    let recommended = |key: &str| {
        let text = advice["recommendation"][key].as_str();
        text.expect(key).to_owned()
    };
    let statement = recommended("tsql");
    assert!(
        statement.starts_with("BACKUP DATABASE Sales "),
        "{statement}"
    );
    succeed(&place, &statement);
    let devices = &advice["recommendation"]["devices"];
    let kept = fs::read_dir(place.path("backup")).expect("the folder");
    assert_eq!(kept.count(), devices.as_array().expect("devices").len());

    let words = shell_words::split(&recommended("command")).expect("words");
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let backup = place.succeed(&[&words[..], &["--json"]].concat());
    let stored = json(&backup.out)["stored_bytes"].as_f64().expect("bytes");
    let predicted = advice["prediction"]["stored_bytes"].as_f64();
    let predicted = predicted.expect("bytes");
    assert!(
        predicted > stored * 0.9 && predicted < stored * 1.1,
        "{predicted} and {stored}"
    );
    let sampled = advice["prediction"]["sampled"].as_f64().expect("a share");
    assert!(sampled > 0.0 && sampled <= 1.0, "{sampled}");
    let page = fs::read_to_string(place.path("tune.html")).expect("the page");
    assert!(page.contains("BACKUP DATABASE"));
}

#[test]
fn a_file_of_an_engine_database_is_measured_without_an_instance() {
    let place = Place::new();
    let instance = place.text("instance");
    let data = place.text("moved.mdf");
    let import = ["import", "app.db", "--into", "app", "--data", &data];
    let import = on_instance(&place, &import);
    assert_eq!(import.code, Some(0), "{}", import.err);
    fs::remove_dir_all(instance).expect("the instance goes");
    let bench = ["bench", "restore", "moved.mdf", "--compress", "none"];
    let run = place.succeed(&[&bench[..], &["--rounds", "1", "--json"]].concat());
    assert_eq!(json(&run.out)["facts"]["files"], "1 data file, log");
    let tune = place.succeed(&["tune", "moved.mdf", "--time", "0.1", "--json"]);
    let command = json(&tune.out)["recommendation"]["command"].to_string();
    assert!(command.contains(&data), "{command}");
}

#[test]
fn an_engine_database_that_backup_cannot_read_is_refused_as_backup_refuses_it() {
    let place = place();
    let in_use = fs::File::open(place.path("sales/log.ldf")).expect("the log");
    in_use.lock().expect("nobody has it open");
    let run = on_instance(&place, &["tune", "Sales", "--json"]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.err
            .contains("or another instance has the database open"),
        "{}",
        run.err
    );
    let backup = on_instance(&place, &["backup", "Sales", "--to", "NUL", "--json"]);
    assert!(
        backup.numbers().starts_with(&run.numbers()),
        "{}",
        backup.err
    );
    drop(in_use);

    succeed(
        &place,
        "RESTORE DATABASE Sales FROM DISK = 'D:\\full.bak' WITH NORECOVERY, REPLACE",
    );
    let run = on_instance(&place, &["bench", "stages", "Sales", "--json"]);
    assert_eq!(
        (run.code, run.numbers()),
        (Some(1), vec![927]),
        "{}",
        run.err
    );
}
