//! `bench` and `tune` as a user runs them.

use serde_json::Value as Json;

use crate::support::Place;

fn json(text: &str) -> Json {
    serde_json::from_str(text).expect(text)
}

#[test]
fn every_experiment_prints_a_table_and_writes_json_and_a_page() {
    let place = Place::new();
    for (experiment, table) in [
        ("compression", "disk"),
        ("devices", "devices"),
        ("stages", "full"),
        ("restore", "restore"),
    ] {
        let common = [
            "bench", experiment, "app.db", "--rounds", "1", "--cache", "keep",
        ];
        let files = ["--report", "page.html", "--json-to", "results.json"];
        let small: &[&str] = match experiment {
            "devices" => &["--files", "1,2", "--max-transfer-size", "1M"],
            "stages" => &["--threads", "1,2", "--compress", "zstd:low"],
            _ => &["--compress", "zstd:low,none"],
        };
        let run = place.succeed(&[&common[..], &files[..], small].concat());
        assert!(run.out.contains("MB/s"), "{}", run.out);
        assert!(run.err.contains("round 1 of 1"), "{}", run.err);
        let page = std::fs::read_to_string(place.path("page.html")).expect("the page");
        assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<svg"));
        let results = json(&std::fs::read_to_string(place.path("results.json")).expect("results"));
        assert_eq!(results["experiment"], experiment);
        assert!(!results["tables"][table].as_array().expect(table).is_empty());
        assert_eq!(results["facts"]["page cache"], "kept as it is");
        let left = std::fs::read_dir(place.path("")).expect("the folder");
        let left = left.filter(|entry| {
            let name = entry.as_ref().expect("an entry").file_name();
            name.to_string_lossy().starts_with("windlass-bench")
        });
        assert_eq!(left.count(), 0);
    }
}

#[test]
fn json_is_all_there_is_on_standard_output() {
    let place = Place::new();
    let run = place.succeed(&[
        "bench",
        "restore",
        "app.db",
        "--rounds",
        "1",
        "--compress",
        "none",
        "--json",
    ]);
    assert_eq!(json(&run.out)["experiment"], "restore");
    assert_eq!(run.err, "");
}

#[test]
fn what_cannot_be_measured_or_written_is_refused() {
    let place = Place::new();
    let nowhere = [
        "bench",
        "restore",
        "app.db",
        "--report",
        "nowhere/page.html",
    ];
    assert_eq!(place.run(&nowhere).code, Some(2));
    let absent = place.run(&["bench", "restore", "absent.db"]);
    assert_eq!(absent.code, Some(1));
    assert!(absent.err.contains("absent.db"), "{}", absent.err);
    let transfer = ["bench", "devices", "app.db", "--max-transfer-size", "100K"];
    assert_eq!(place.run(&transfer).code, Some(2));
    let goal = ["tune", "app.db", "--goal", "cheap"];
    assert_eq!(place.run(&goal).code, Some(2));
}

#[test]
fn a_file_that_a_backup_refuses_is_measured_only_as_it_is() {
    let place = Place::new();
    std::fs::write(place.path("noise"), vec![7; 200_000]).expect("a file");
    for command in [&["tune", "noise"][..], &["bench", "stages", "noise"]] {
        let run = place.run(command);
        assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{command:?}");
        assert!(run.err.contains("Msg 50050"), "{}", run.err);
    }
    let run = place.succeed(&["tune", "noise", "--as-is", "--time", "0.2", "--json"]);
    let advice = json(&run.out);
    let command = advice["recommendation"]["command"].as_str();
    let command = command.expect("a command");
    assert!(command.ends_with("--as-is"), "{command}");
}

#[test]
fn what_tune_recommends_runs_as_a_statement_and_as_a_command() {
    let place = Place::new();
    std::fs::create_dir(place.path("it's a folder")).expect("a folder");
    let run = place.succeed(&[
        "tune",
        "app.db",
        "--to",
        "it's a folder",
        "--time",
        "0.2",
        "--json",
        "--report",
        "tune.html",
    ]);
    let advice = json(&run.out);
    let text = |key: &str| {
        advice["recommendation"][key]
            .as_str()
            .expect(key)
            .to_owned()
    };
    let devices = advice["recommendation"]["devices"]
        .as_array()
        .expect("devices")
        .len();
    let kept = || {
        std::fs::read_dir(place.path("it's a folder"))
            .expect("the folder")
            .count()
    };
    assert_eq!(kept(), 0, "measurements leave nothing");

    let statement = text("tsql");
    place.succeed(&["sql", "-b", "-Q", &statement, "--attach", "app=app.db"]);
    assert_eq!(kept(), devices, "{statement}");

    let words = shell_words::split(&text("command")).expect("words");
    assert_eq!(words.first().map(String::as_str), Some("windlass"));
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let backup = place.succeed(&[&words[..], &["--json"]].concat());
    let stored = json(&backup.out)["stored_bytes"].as_f64().expect("bytes");
    let predicted = advice["prediction"]["stored_bytes"]
        .as_f64()
        .expect("bytes");
    assert!(
        predicted > stored * 0.9 && predicted < stored * 1.1,
        "{predicted} and {stored}"
    );

    let page = std::fs::read_to_string(place.path("tune.html")).expect("the page");
    assert!(page.contains("BACKUP DATABASE"));
}
