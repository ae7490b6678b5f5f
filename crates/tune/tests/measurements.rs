//! Measurements of small databases: their results, and that they leave nothing behind.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use serde_json::Value as Json;
use windlass_codec::Compression;
use windlass_source::SourceDatabase;
use windlass_source::sqlite::SnapshotOptions;
use windlass_tune::advice::{Advice, Goal, Request, Statements, advise};
use windlass_tune::experiment::{Conditions, Experiment, run};
use windlass_tune::{CachePolicy, Database, Error, Outcome};

struct Place {
    folder: tempfile::TempDir,
    database: Database,
}

impl Place {
    /// A database of about `megabytes`, alone in its folder.
    fn new(megabytes: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let rows = megabytes * 1000;
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch(&format!(
                "PRAGMA page_size = 8192; PRAGMA synchronous = OFF;
                 CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT);
                 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
                 INSERT INTO t SELECT i, hex(randomblob(250)) || hex(zeroblob(250)) FROM n"
            ))
            .unwrap();
        drop(connection);
        let database = Database::open(source("app", &path)).unwrap();
        Self { folder, database }
    }

    fn experiment(&self, experiment: &Experiment) -> Outcome {
        let conditions = Conditions {
            rounds: 2,
            cache: CachePolicy::Drop,
            folders: vec![self.folder.path().to_owned()],
        };
        let cancel = AtomicBool::new(false);
        let outcome = run(experiment, &self.database, &conditions, &cancel, &|_| {}).unwrap();
        self.assert_nothing_left();
        outcome
    }

    fn advice(&self, goal: Goal, time: Duration) -> Advice {
        let request = Request {
            goal,
            time,
            cache: CachePolicy::Keep,
            without: Vec::new(),
            targets: vec![self.folder.path().to_owned()],
        };
        let cancel = AtomicBool::new(false);
        let advice = advise(&self.database, &request, &cancel, &|_| {}).unwrap();
        self.assert_nothing_left();
        advice
    }

    #[track_caller]
    fn assert_nothing_left(&self) {
        assert_eq!(names(self.folder.path()), ["app.db"]);
    }
}

fn source(name: &str, path: &Path) -> SourceDatabase {
    SourceDatabase::Sqlite {
        path: path.to_owned(),
        options: SnapshotOptions {
            database_name: Some(name.to_owned()),
            ..SnapshotOptions::default()
        },
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// The rows of a table.
fn rows<'a>(json: &'a Json, table: &str) -> &'a Vec<Json> {
    json["tables"][table].as_array().unwrap()
}

#[track_caller]
fn assert_positive(rows: &[Json], keys: &[&str]) {
    for row in rows {
        for key in keys {
            assert!(row[*key].as_f64().unwrap() > 0.0, "{key} of {row}");
        }
    }
}

#[test]
fn compression_has_the_lines_of_the_article_and_its_ratios() {
    let place = Place::new(1);
    let outcome = place.experiment(&Experiment::Compression {
        compressions: Compression::ALL.to_vec(),
    });
    let json = outcome.to_json();
    let names: Vec<&str> = rows(&json, "disk")
        .iter()
        .map(|row| row["compression"].as_str().unwrap())
        .collect();
    let all = [
        "NONE",
        "MS_XPRESS",
        "ZSTD LOW",
        "ZSTD MEDIUM",
        "ZSTD HIGH",
        "QAT_DEFLATE",
    ];
    assert_eq!(names, all);
    for table in ["disk", "nul", "qat"] {
        assert_positive(
            rows(&json, table),
            &["seconds", "megabytes_per_second", "megabytes"],
        );
    }
    let disk = rows(&json, "disk");
    assert!((disk[1]["times_ms_xpress"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    assert!((disk[2]["article_times_ms_xpress"].as_f64().unwrap() - 2.02).abs() < 0.01);
    assert!(
        disk[5]["article_times_ms_xpress"].is_null(),
        "not in the article"
    );
    assert!(disk[0]["ratio"].as_f64().unwrap() < 1.1);
    assert!(disk[2]["ratio"].as_f64().unwrap() > 1.5);
    assert!(
        (rows(&json, "qat")[1]["article_times_ms_xpress"]
            .as_f64()
            .unwrap()
            - 1.97)
            .abs()
            < 0.01
    );
    // Six to a file, six to NUL, two to four files, two rounds each.
    assert_eq!(json["runs"].as_array().unwrap().len(), 28);
    assert_eq!(json["facts"]["page cache"], "dropped before each run");
    let text = outcome.to_text();
    assert!(
        text.contains("ZSTD MEDIUM") && text.contains("Pythian"),
        "{text}"
    );
}

#[test]
fn without_both_algorithms_there_is_no_comparison_of_them() {
    let place = Place::new(1);
    let outcome = place.experiment(&Experiment::Compression {
        compressions: vec![Compression::ZSTD_LOW],
    });
    let json = outcome.to_json();
    assert!(json["tables"].get("qat").is_none());
    assert!(rows(&json, "disk")[0]["times_ms_xpress"].is_null());
}

#[test]
fn devices_combine_files_and_sizes_beside_reading_alone() {
    let place = Place::new(1);
    let outcome = place.experiment(&Experiment::Devices {
        files: vec![1, 3],
        block_bytes: vec![4096, 65536],
        transfer_bytes: vec![65536, 1 << 20],
        compression: Compression::NONE,
    });
    let json = outcome.to_json();
    let devices = rows(&json, "devices");
    assert_eq!(devices.len(), 8);
    assert_positive(
        devices,
        &["megabytes_per_second", "times_read_only", "times_one_file"],
    );
    assert!((devices[0]["times_one_file"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    assert!((devices[0]["article_times_one_file"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    assert!(
        devices[4]["article_times_one_file"].is_null(),
        "three files are not in the article"
    );
    let labels: Vec<&str> = json["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["variant"].as_str().unwrap())
        .collect();
    assert!(
        labels.contains(&"3 files, BLOCKSIZE 64 KB, MAXTRANSFERSIZE 1 MB"),
        "{labels:?}"
    );
}

#[test]
fn stages_measure_three_steps_for_each_number_of_threads() {
    let place = Place::new(1);
    let outcome = place.experiment(&Experiment::Stages {
        compressions: vec![Compression::ZSTD_LOW, Compression::MS_XPRESS],
        threads: vec![1, 2],
    });
    let json = outcome.to_json();
    assert_eq!(rows(&json, "read").len(), 1);
    assert_eq!(rows(&json, "transform").len(), 4);
    assert_eq!(rows(&json, "full").len(), 4);
    for row in rows(&json, "limits") {
        let limit = row["limit"].as_str().unwrap();
        assert!(
            ["read", "compress", "write", "too short"].contains(&limit),
            "{row}"
        );
    }
    let threads = |run: &Json| run["stages"]["transform"]["threads"].as_u64().unwrap();
    let asked: Vec<u64> = json["runs"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|run| run["variant"].as_str().unwrap().contains("1 thread"))
        .map(threads)
        .collect();
    assert_eq!(asked, [1; 8], "the number of threads is what was asked for");
}

#[test]
fn restore_measures_all_three_ways() {
    let place = Place::new(1);
    let outcome = place.experiment(&Experiment::Restore {
        compressions: vec![Compression::NONE, Compression::ZSTD_LOW],
    });
    let json = outcome.to_json();
    let restore = rows(&json, "restore");
    assert_eq!(restore.len(), 6);
    assert_positive(
        restore,
        &["megabytes_per_second", "times_backup", "megabytes"],
    );
}

#[test]
fn what_is_measured_ends_when_somebody_asks_and_leaves_nothing() {
    let place = Place::new(4);
    let cancel = AtomicBool::new(false);
    let conditions = Conditions {
        rounds: 1000,
        cache: CachePolicy::Keep,
        folders: vec![place.folder.path().to_owned()],
    };
    let experiment = Experiment::Restore {
        compressions: vec![Compression::NONE],
    };
    let tell = |text: &str| {
        if text.starts_with("round 2") {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let ended = run(&experiment, &place.database, &conditions, &cancel, &tell);
    let is_cancelled = matches!(
        ended,
        Err(Error::Pipeline(windlass_pipeline::Error::Cancelled))
    );
    assert!(is_cancelled, "{:?}", ended.err());
    place.assert_nothing_left();
}

#[test]
fn an_empty_database_and_a_folder_that_is_none_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.db");
    std::fs::write(&path, b"").unwrap();
    let empty = Database::open(source("empty", &path));
    assert!(matches!(empty, Err(Error::EmptyDatabase { .. })));
    let place = Place::new(1);
    let conditions = Conditions {
        rounds: 1,
        cache: CachePolicy::Keep,
        folders: vec![folder.path().join("nowhere")],
    };
    let experiment = Experiment::Restore {
        compressions: vec![Compression::NONE],
    };
    let cancel = AtomicBool::new(false);
    let refused = run(&experiment, &place.database, &conditions, &cancel, &|_| {});
    assert!(matches!(refused, Err(Error::Folder { .. })));
}

#[test]
fn a_prediction_from_samples_is_near_the_whole() {
    let place = Place::new(40);
    let advice = place.advice(Goal::Small, Duration::from_millis(200));
    let prediction = advice.prediction;
    assert!(prediction.sampled < 0.9, "{}", prediction.sampled);
    // Half of every row is noise of sixteen letters, half is zeros: the ratio is about four.
    let expected = place.database.bytes() as f64 / 4.0;
    let stored = prediction.stored_bytes as f64;
    assert!(
        stored > expected * 0.7 && stored < expected * 1.3,
        "{stored} of {expected}"
    );
    let seconds = prediction.seconds;
    assert!(seconds.low > 0.0 && seconds.low <= seconds.median && seconds.median <= seconds.high);
    let compression = advice.recommendation.compression;
    assert_ne!(compression, Compression::NONE, "the smallest is compressed");
    let device = advice.recommendation.devices.first().unwrap();
    assert_eq!(device, &place.folder.path().join("app.bak"));
}

#[test]
fn every_goal_is_served_and_every_step_shown() {
    let place = Place::new(1);
    let statements = Statements {
        tsql: "BACKUP".to_owned(),
        command: "windlass".to_owned(),
    };
    let mut sizes = Vec::new();
    for goal in [Goal::Fast, Goal::Small] {
        let advice = place.advice(goal, Duration::from_millis(200));
        let json = advice.outcome(&statements).to_json();
        assert_eq!(rows(&json, "read").len(), 3);
        assert!(rows(&json, "transform").len() >= 5);
        assert!(rows(&json, "full").len() >= 8);
        assert_eq!(json["recommendation"]["tsql"], "BACKUP");
        assert!(json["prediction"]["seconds"].as_f64().unwrap() > 0.0);
        sizes.push(advice.prediction.stored_bytes);
    }
    assert!(
        sizes[1] <= sizes[0],
        "small is smaller than fast: {sizes:?}"
    );
}
