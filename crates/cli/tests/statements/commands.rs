//! The plain commands: options, JSON, exit codes.

use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::support::{Place, rows};

#[test]
fn a_backup_is_one_object() {
    let place = Place::new();
    let run = place.succeed(&[
        "backup",
        "app.db",
        "--to",
        "1.bak",
        "--to",
        "2.bak",
        "--mirror",
        "m1.bak",
        "--mirror",
        "m2.bak",
        "--format",
        "--compress",
        "zstd:medium",
        "--name",
        "n",
        "--checksum",
        "--json",
        "--block-size",
        "64K",
        "--max-transfer-size",
        "256K",
        "--threads",
        "1",
        "--buffer-count",
        "4",
    ]);
    let object: Json = serde_json::from_str(&run.out).expect("one object");
    assert_eq!(object["operation"], "backup");
    assert_eq!(object["database"], "app");
    assert_eq!(object["set"]["type"], "full");
    assert_eq!(object["set"]["name"], "n");
    assert_eq!(object["media"]["families"], 2);
    assert_eq!(object["media"]["copies"], 2);
    assert_eq!(
        (&object["algorithm"], &object["level"]),
        (&"ZSTD".into(), &"MEDIUM".into())
    );
    assert!(object["stored_bytes"].as_u64() < object["backup_bytes"].as_u64());
    assert_eq!(object["plan"]["threads"]["value"], 1);
    assert_eq!(object["plan"]["transfer_bytes"]["value"], 256 << 10);
    assert_eq!(
        object["stages"]["read"]["bytes_out"],
        object["processed_bytes"]
    );
    assert!(
        run.err
            .lines()
            .all(|line| serde_json::from_str::<Json>(line).is_ok())
    );
    place.succeed(&["restore", "m2.bak", "m1.bak", "--to", "copy.db"]);
    assert_eq!(rows(&place.path("copy.db")), 400);
}

#[test]
fn the_result_sets_have_sql_servers_columns() {
    let place = Place::new();
    place.succeed(&["backup", "app.db", "--to", "f.bak"]);
    let json = |arguments: &[&str]| -> Json {
        serde_json::from_str(&place.succeed(arguments).out).expect("an array")
    };
    let header = json(&["header", "f.bak", "--json"]);
    let columns: Vec<&String> = header[0].as_object().expect("a row").keys().collect();
    assert_eq!(columns[0], "BackupName");
    assert_eq!(columns[58], "CompressionAlgorithm");
    assert_eq!(columns[59], "CompressionLevel");
    assert_eq!(header[0]["CompressionLevel"], "LOW");
    assert_eq!(header[0]["BackupSetComplete"], true);
    let files = json(&["files", "f.bak", "--json"]);
    assert_eq!(files[0].as_object().expect("a row").len(), 22);
    let label = json(&["label", "f.bak", "--json"]);
    assert_eq!(label[0]["FamilySequenceNumber"], 1);
    let verified = json(&["verify", "f.bak", "--json"]);
    assert_eq!(verified["valid"], true);
}

#[test]
fn a_differential_does_not_overwrite_its_own_base() {
    let place = Place::new();
    let instance = place.text("instance");
    for further in [&["--base", "f.bak"][..], &["--instance", &instance]] {
        let full = ["backup", "app.db", "--to", "f.bak", "--format"];
        let full_further = further.iter().filter(|_| further[0] == "--instance");
        let full: Vec<&str> = full.iter().chain(full_further).copied().collect();
        place.succeed(&full);
        let before = std::fs::read(place.path("f.bak")).expect("a medium");
        for over in [&["--init"][..], &["--format"], &["--format", "--dry-run"]] {
            let differential = ["backup", "app.db", "--to", "f.bak", "--differential"];
            let run = place.run(&[&differential[..], over, further].concat());
            assert_eq!(run.code, Some(1), "{over:?} {further:?}");
            assert!(run.err.contains("Msg 50102"), "{}", run.err);
            assert!(std::fs::read(place.path("f.bak")).expect("it") == before);
        }
    }
    place.succeed(&[
        "backup",
        "app.db",
        "--to",
        "f.bak",
        "--differential",
        "--instance",
        &instance,
    ]);
}

#[test]
fn a_differential_whose_base_is_deleted_meanwhile_does_not_succeed() {
    let place = Place::new();
    let change = rusqlite::Connection::open(place.path("app.db")).expect("a connection");
    let script = "CREATE TABLE more AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000) \
                  SELECT randomblob(1000) AS b FROM n";
    place.succeed(&["backup", "app.db", "--to", "f.bak"]);
    change.execute_batch(script).expect("changes");
    drop(change);
    let arguments = [
        "backup",
        "app.db",
        "--to",
        "d.bak",
        "--differential",
        "--base",
        "f.bak",
    ];
    let slow = ["--max-write-rate", "2"];
    let mut command = place.command(&[&arguments[..], &slow].concat());
    let running = command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("a backup");
    while !place.path("d.bak.windlass-new").exists() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    std::fs::remove_file(place.path("f.bak")).expect("the base");
    let ended = running.wait_with_output().expect("its end");
    let err = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{err}");
    assert!(err.contains("Msg 50103"), "{err}");
}

#[test]
fn a_differential_finds_its_base_without_an_instance() {
    let place = Place::new();
    place.succeed(&["backup", "app.db", "--to", "f.bak"]);
    place.succeed(&["backup", "app.db", "--to", "f.bak", "--copy-only"]);
    let change = rusqlite::Connection::open(place.path("app.db")).expect("a connection");
    change
        .execute("DELETE FROM t WHERE id > 390", [])
        .expect("a change");
    drop(change);
    place.succeed(&["backup", "app.db", "--to", "f.bak", "--differential"]);
    place.succeed(&[
        "backup",
        "app.db",
        "--to",
        "d.bak",
        "--differential",
        "--base",
        "f.bak",
    ]);
    let run = place.run(&["backup", "other.db", "--to", "f.bak", "--differential"]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("Msg 3035"), "{}", run.err);
    for (media, set) in [("f.bak", "3"), ("d.bak", "1")] {
        place.succeed(&[
            "restore",
            "f.bak",
            "--to",
            "copy.db",
            "--no-recovery",
            "--replace",
        ]);
        place.succeed(&[
            "restore",
            media,
            "--set",
            set,
            "--to",
            "copy.db",
            "--replace",
        ]);
        assert_eq!(rows(&place.path("copy.db")), 390);
    }
    place.succeed(&["restore", "f.bak", "--to", "late.db", "--no-recovery"]);
    place.succeed(&["restore", "--to", "late.db"]);
    assert_eq!(rows(&place.path("late.db")), 400);
}

#[test]
fn restoring_over_something_needs_replace() {
    let place = Place::new();
    place.succeed(&["backup", "app.db", "--to", "f.bak"]);
    let run = place.run(&["restore", "f.bak", "--to", "other.db"]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("Msg 3142"), "{}", run.err);
    assert_eq!(rows(&place.path("other.db")), 10);
    place.succeed(&[
        "restore",
        "f.bak",
        "--to",
        "other.db",
        "--replace",
        "--read-only",
    ]);
    assert!(
        std::fs::metadata(place.path("other.db"))
            .expect("it")
            .permissions()
            .readonly()
    );
}

#[test]
fn the_statement_behind_a_command_can_be_seen() {
    let place = Place::new();
    let run = place.succeed(&[
        "backup",
        "app.db",
        "--to",
        "NUL",
        "--tsql",
        "--plan",
        "--retain-days",
        "2",
    ]);
    assert!(
        run.out.starts_with(
            "BACKUP DATABASE app TO DISK = N'NUL' WITH COMPRESSION (ALGORITHM = ZSTD, LEVEL = LOW), RETAINDAYS = 2;\n"
        ),
        "{}",
        run.out
    );
    assert!(
        run.err.contains("one per core"),
        "the plan says why: {}",
        run.err
    );
}

#[test]
fn a_command_line_that_makes_no_sense_is_two() {
    let place = Place::new();
    for arguments in [
        ["backup", "app.db"].as_slice(),
        &["backup", "app.db", "--to", "x", "--compress", "lz4"],
        &[
            "backup",
            "app.db",
            "--to",
            "x",
            "--compress",
            "ms_xpress:high",
        ],
        &[
            "backup", "app.db", "--to", "x", "--to", "y", "--mirror", "z",
        ],
        &["restore", "x.bak"],
        &["sql", "--drive", "dd=/x"],
        &["nonsense"],
    ] {
        assert_eq!(place.run(arguments).code, Some(2), "{arguments:?}");
    }
    assert_eq!(
        place.run(&["backup", "nosuch.db", "--to", "x.bak"]).code,
        Some(1)
    );
    assert_eq!(place.run(&["header", "nosuch.bak"]).code, Some(1));
    assert_eq!(place.run(&["--help"]).code, Some(0));
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let place = Place::new();
    // Text that takes its time to compress.
    let big = rusqlite::Connection::open(place.path("big.db")).expect("a database");
    big.execute_batch(
        "CREATE TABLE t (body); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
         INSERT INTO t SELECT hex(randomblob(500)) FROM n;",
    )
    .expect("its rows");
    drop(big);
    let count = || {
        std::fs::read_dir(place.path(""))
            .expect("the folder")
            .count()
    };
    let before = count();
    let child = place
        .command(&[
            "backup",
            "big.db",
            "--to",
            "big.bak",
            "--compress",
            "zstd:high",
            "--threads",
            "1",
        ])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    let begun = Instant::now();
    // The run has started when its first file is in the folder.
    while count() == before && begun.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(2));
    }
    let id = child.id().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-INT", &id])
        .status();
    assert!(killed.expect("kill runs").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "it ended by itself");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("Msg 3204"), "{said}");
    let names: Vec<_> = std::fs::read_dir(place.path(""))
        .expect("the folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a name")
        })
        .filter(|name| name.contains("bak"))
        .collect();
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn the_demonstration_proves_itself_and_cleans_up() {
    let place = Place::new();
    std::fs::create_dir(place.path("work")).expect("a folder");
    let run = place.succeed(&["demo", "--size", "3M", "--folder", "work", "--json"]);
    let rows: Json = serde_json::from_str(run.out.trim()).expect("an array");
    assert_eq!(
        rows.as_array().map(Vec::len),
        Some(6),
        "each algorithm and level"
    );
    assert_eq!(
        run.err.matches("bytes are identical").count(),
        7,
        "{}",
        run.err
    );
    let run = place.succeed(&["demo", "app.db", "--folder", "work"]);
    assert!(run.out.contains("ZSTD:HIGH"), "{}", run.out);
    assert_eq!(
        std::fs::read_dir(place.path("work"))
            .expect("the folder")
            .count(),
        0
    );
}

#[test]
fn a_measuring_run_makes_no_backup() {
    let place = Place::new();
    for (options, probe) in [
        (&["--no-write", "--compress", "zstd"][..], "no_write"),
        (&["--no-compress-write"], "no_compress_write"),
    ] {
        let run = place.succeed(&[&["backup", "app.db", "--json"], options].concat());
        let object: Json = serde_json::from_str(&run.out).expect("one object");
        assert_eq!(object["operation"], "probe");
        assert_eq!(object["probe"], probe);
        let (read, stored) = (
            object["processed_bytes"].as_u64(),
            object["stored_bytes"].as_u64(),
        );
        assert_eq!(read > stored, probe == "no_write", "{object}");
        assert_eq!(object["stages"]["write"]["bytes_out"], 0);
    }
    let script = "PRINT 'probes'
        BACKUP DATABASE app TO DISK = 'd:\\o.bak' WITH NOWRITE, COMPRESSION
        BACKUP DATABASE app TO DISK = 'd:\\o.bak' WITH NOCOMPRESSWRITE, THREADCOUNT = 2
        SELECT COUNT(*) AS sets FROM msdb.dbo.backupset
        BACKUP DATABASE app TO DISK = 'd:\\o.bak' WITH DIFFERENTIAL";
    let run = place.sql(script);
    assert!(
        run.err.contains("NOWRITE: read and compressed")
            && run.err.contains("NOCOMPRESSWRITE: read ")
            && run.err.contains("no backup was made"),
        "{}",
        run.err
    );
    assert!(
        run.out.lines().any(|line| line.trim() == "0"),
        "no history: {}",
        run.out
    );
    assert!(
        run.err.contains("3035"),
        "no differential base: {}",
        run.err
    );
    assert!(!place.path("o.bak").exists());
    let conflict = "BACKUP DATABASE x TO DISK = 'd:\\o.bak' WITH NOWRITE, DIFFERENTIAL";
    assert_eq!(place.numbers(conflict), [3031, 3013]);
}

#[test]
fn a_trace_flag_tells_the_buffer_configuration() {
    let place = Place::new();
    let script = "BACKUP DATABASE app TO DISK = 'NUL'
        DBCC TRACEON (3213, 3605, -1)
        BACKUP DATABASE app TO DISK = 'NUL' WITH COMPRESSION, BUFFERCOUNT = 8, MAXTRANSFERSIZE = 262144
        DBCC TRACEOFF (3213) WITH NO_INFOMSGS
        BACKUP DATABASE app TO DISK = 'NUL'";
    let run = place.sql(script);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(
        run.err
            .matches("Backup/Restore buffer configuration")
            .count(),
        1
    );
    assert!(
        run.err.contains("MaxTransferSize: 256 KB") && run.err.contains("Sets Of Buffers: 2"),
        "{}",
        run.err
    );
    assert_eq!(run.err.matches("DBCC execution completed").count(), 1);
    assert_eq!(place.numbers("DBCC TRACEON (1204)"), [50005]);
}

#[test]
fn another_session_sees_what_runs() {
    let place = Place::new();
    let instance = place.text("instance");
    place.sql_with(
        &["--instance", &instance],
        "EXEC sp_attach_db 'app', 'd:\\app.db'",
    );
    let top = ["top", "--once", "--instance", &instance, "--json"];
    let shown: Json = serde_json::from_str(&place.succeed(&top).out).expect("an object");
    assert_eq!(shown["requests"], serde_json::json!([]));
    let query = "SELECT command, database_name, percent_complete FROM sys.dm_exec_requests";
    let run = place.sql_with(&["--instance", &instance], query);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.out.contains("percent_complete"), "{}", run.out);
}

#[test]
fn an_empty_name_is_no_database() {
    let place = Place::new();
    let run = place.run(&["backup", "", "--to", "x.bak", "--json"]);
    assert_eq!((run.code, run.numbers()), (Some(1), vec![911]));
}
