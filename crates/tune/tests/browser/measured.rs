//! The pages of real measurements of a small database.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rusqlite::Connection;
use windlass_codec::Compression;
use windlass_source::SourceDatabase;
use windlass_source::sqlite::SnapshotOptions;
use windlass_tune::advice::{Goal, Request, Statements, advise};
use windlass_tune::experiment::{Conditions, Experiment, run};
use windlass_tune::{CachePolicy, Database};

fn make_database(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(
            "PRAGMA page_size = 8192; CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
             INSERT INTO t SELECT i, hex(randomblob(150)) || ' words again and again ' || i FROM n",
        )
        .unwrap();
}

/// A page of every experiment, and of `tune`.
pub(crate) fn pages() -> Vec<(&'static str, String)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    make_database(&path);
    let source = SourceDatabase::Sqlite {
        path,
        options: SnapshotOptions {
            database_name: Some("a database with a rather long name".to_owned()),
            ..SnapshotOptions::default()
        },
    };
    let database = Database::open(source).unwrap();
    let cancel = AtomicBool::new(false);
    let conditions = Conditions {
        rounds: 2,
        cache: CachePolicy::Drop,
        folders: vec![folder.path().to_owned()],
    };
    let compressions = Compression::ALL.to_vec();
    let experiments = [
        Experiment::Compression {
            compressions: compressions.clone(),
        },
        Experiment::Devices {
            files: vec![1, 2, 4, 8],
            block_bytes: vec![4096, 65536],
            transfer_bytes: vec![256 << 10, 1 << 20, 4 << 20],
            compression: Compression::NONE,
        },
        Experiment::Stages {
            compressions: compressions.clone(),
            threads: vec![1, 2, 3],
        },
        Experiment::Restore { compressions },
    ];
    let mut pages = Vec::new();
    for experiment in experiments {
        let outcome = run(&experiment, &database, &conditions, &cancel, &|_| {}).unwrap();
        pages.push((outcome.kind, outcome.report.to_html()));
    }
    let request = Request {
        goal: Goal::Balanced,
        time: Duration::from_millis(500),
        cache: CachePolicy::Keep,
        without: Vec::new(),
        targets: Vec::new(),
    };
    let advice = advise(&database, &request, &cancel, &|_| {}).unwrap();
    let statements = Statements {
        tsql: "BACKUP DATABASE app TO DISK = N'/srv/app.bak';".to_owned(),
        command: "windlass backup app.db --to /srv/app.bak".to_owned(),
    };
    pages.push(("tune", advice.outcome(&statements).report.to_html()));
    pages
}
