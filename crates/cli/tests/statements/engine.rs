//! Databases of the page engine: made, used, backed up and restored in T-SQL.

use crate::sales::MAKE;
use crate::support::{Place, sql, succeed};

const MOVES: &str = "MOVE 'Sales_1' TO 'D:\\copy_1.mdf', MOVE 'Sales_2' TO 'D:\\copy_2.ndf', \
                     MOVE 'Sales_log' TO 'D:\\copy_log.ldf'";

#[test]
fn full_and_differential_go_through_the_media_and_another_process_sees_the_copy() {
    let place = Place::new();
    let run = succeed(
        &place,
        &format!(
            "{MAKE}
BACKUP DATABASE Sales TO DISK = 'D:\\a.bak', DISK = 'D:\\b.bak' WITH COMPRESSION (ALGORITHM = ZSTD)
GO
INSERT INTO orders(body) VALUES ('after the full')
BACKUP DATABASE Sales TO DISK = 'D:\\a.bak', DISK = 'D:\\b.bak' WITH DIFFERENTIAL, CHECKSUM
GO
RESTORE VERIFYONLY FROM DISK = 'D:\\a.bak', DISK = 'D:\\b.bak' WITH FILE = 2
RESTORE FILELISTONLY FROM DISK = 'D:\\a.bak', DISK = 'D:\\b.bak'
RESTORE HEADERONLY FROM DISK = 'D:\\a.bak', DISK = 'D:\\b.bak'"
        ),
    );
    let results = run.results();
    let types: Vec<_> = results[0]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| row["Type"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(types, ["D", "L", "D"]);
    let headers = results[1].as_array().expect("rows");
    assert_eq!(
        headers[1]["DifferentialBaseGUID"],
        headers[0]["BackupSetGUID"]
    );
    let last = |row: &serde_json::Value| {
        let lsn = row["LastLSN"].to_string();
        lsn.trim_matches('"').parse::<u128>().expect("an LSN")
    };
    assert!(last(&headers[1]) > last(&headers[0]));

    // Another process: the database was closed, and its differential base is on disk.
    succeed(
        &place,
        &format!(
            "RESTORE DATABASE Copy FROM DISK = 'D:\\a.bak', DISK = 'D:\\b.bak' WITH NORECOVERY, {MOVES}"
        ),
    );
    let refused = sql(&place, "USE Copy");
    assert!(refused.numbers().contains(&927), "{}", refused.err);
    let run = succeed(
        &place,
        "RESTORE DATABASE Copy FROM DISK = 'D:\\a.bak', DISK = 'D:\\b.bak' WITH FILE = 2
GO
USE Copy
GO
SELECT count(*) AS orders FROM orders
PRAGMA integrity_check
SELECT count(*) AS files FROM sys.master_files WHERE name LIKE 'Sales%'",
    );
    let results = run.results();
    assert_eq!(results[0][0]["orders"], 20001);
    assert_eq!(results[1][0]["integrity_check"], "ok");
    assert_eq!(results[2][0]["files"], 6);
    succeed(&place, "DROP DATABASE Copy");
    assert!(!place.path("copy_1.mdf").exists() && !place.path("copy_log.ldf").exists());
}

#[test]
fn a_restore_over_a_database_needs_its_family_or_replace() {
    let place = Place::new();
    succeed(
        &place,
        &format!(
            "{MAKE}
BACKUP DATABASE Sales TO DISK = 'D:\\a.bak'
GO
DELETE FROM orders
GO
USE master
RESTORE DATABASE Sales FROM DISK = 'D:\\a.bak' WITH REPLACE
USE Sales
GO
CREATE TABLE again(x)
GO
USE master
CREATE DATABASE Other ON (NAME = Other, FILENAME = 'D:\\other.mdf') LOG ON (NAME = Other_log, FILENAME = 'D:\\other.ldf')"
        ),
    );
    let other = sql(
        &place,
        &format!("RESTORE DATABASE Other FROM DISK = 'D:\\a.bak' WITH {MOVES}"),
    );
    assert_eq!(other.numbers(), [3154, 3013]);
    let files = sql(&place, "RESTORE DATABASE New FROM DISK = 'D:\\a.bak'");
    assert_eq!(
        files.numbers(),
        [1834, 3156, 1834, 3156, 1834, 3156, 3119, 3013],
        "they are those of Sales"
    );
    let run = succeed(
        &place,
        "USE Sales\nGO\nSELECT count(*) AS orders FROM orders",
    );
    assert_eq!(run.results()[0][0]["orders"], 20000);
}

#[test]
fn max_server_memory_is_the_size_of_the_buffer_pool() {
    let place = Place::new();
    let on_instance = |script: &str| place.sql_with(&["--json", "--instance", "server"], script);
    let visited = "CHECKPOINT 10\n\
        SELECT last_checkpoint_buffers_visited AS visited FROM sys.dm_db_checkpoint_stats";
    let run = on_instance(&format!(
        "{MAKE}\nALTER DATABASE Sales SET TARGET_RECOVERY_TIME = 0 SECONDS\n{visited}\n\
         EXEC sp_configure 'show advanced options', 1\nRECONFIGURE\n\
         EXEC sp_configure 'max server memory (MB)', 127\n\
         EXEC sp_configure 'max server memory (MB)', 512\nRECONFIGURE"
    ));
    assert_eq!(
        run.results()[0][0]["visited"],
        32768,
        "256 MB without a setting"
    );
    assert!(
        run.numbers().contains(&15129),
        "less than the minimum: {:?}",
        run.numbers()
    );
    let run = on_instance(&format!("USE Sales\nGO\n{visited}"));
    assert_eq!(run.results()[0][0]["visited"], 65536, "512 MB");
}

#[test]
fn settings_files_and_checkpoints_act() {
    let place = Place::new();
    let run = sql(
        &place,
        &format!(
            "{MAKE}
ALTER DATABASE Sales SET TARGET_RECOVERY_TIME = 0 SECONDS
ALTER DATABASE CURRENT ADD FILE (NAME = Sales_3, FILENAME = 'D:\\sales_3.ndf', SIZE = 1MB)
CHECKPOINT 10
SELECT dirty_page_count AS dirty, CASE WHEN checkpoint_count > 0 THEN 1 ELSE 0 END AS ran, last_checkpoint_buffers_visited AS visited,
       target_recovery_time_in_seconds AS target FROM sys.dm_db_checkpoint_stats
DBCC TRACEON (3004, 3604)
BACKUP DATABASE Sales TO DISK = 'NUL' WITH COPY_ONLY
GO
ALTER DATABASE Sales SET RECOVERY BULK_LOGGED
GO
ALTER DATABASE Sales ADD LOG FILE (NAME = l, FILENAME = 'D:\\l.ldf')"
        ),
    );
    assert!(place.path("sales_3.ndf").exists());
    let figures = &run.results()[0][0];
    assert_eq!(
        (&figures["dirty"], &figures["target"]),
        (&0.into(), &0.into())
    );
    assert_eq!(figures["ran"], 1);
    assert_eq!(
        figures["visited"], 32768,
        "the automatic kind visits the pool"
    );
    let texts: Vec<_> = (run.messages().iter())
        .filter_map(|message| message["text"].as_str().map(str::to_owned))
        .collect();
    for phase in [
        "Checkpoint:",
        "Synchronize",
        "Copy data files",
        "Copy transaction log",
    ] {
        assert!(texts.iter().any(|text| text.contains(phase)), "{phase}");
    }
    let swept = texts
        .iter()
        .find(|text| text.contains("Checkpoint:"))
        .expect("the phases are reported");
    let visited: u64 = swept
        .split(", ")
        .nth(1)
        .and_then(|text| text.split(' ').next())
        .and_then(|number| number.parse().ok())
        .expect("a number of buffers");
    assert!(
        visited >= 32768,
        "the automatic kind sweeps the pool: {swept}"
    );
    let errors: Vec<_> = run
        .numbers()
        .into_iter()
        .filter(|number| [50001, 50005].contains(number))
        .collect();
    assert_eq!(errors, [50005, 50005]);
}

#[test]
fn plain_commands_take_the_files_of_other_programs_and_give_them_back() {
    let place = Place::new();
    succeed(
        &place,
        "CREATE DATABASE own ON (NAME = own, FILENAME = 'D:\\own.db') LOG ON (NAME = own_log, FILENAME = 'D:\\own.db-log')
GO
USE own
GO
CREATE TABLE t(x); INSERT INTO t VALUES (7)",
    );
    place.succeed(&["backup", "own.db", "--to", "own.bak"]);
    place.succeed(&["restore", "own.bak", "--to", "copy.db"]);
    assert!(
        place.path("copy.db-log").exists(),
        "the log lies where the engine's VFS looks"
    );
    let run = place.sql_with(
        &["--json"],
        &format!(
            "CREATE DATABASE c ON (FILENAME = '{}') LOG ON (FILENAME = '{}') FOR ATTACH\nGO\nUSE c\nGO\nSELECT x FROM t",
            place.text("copy.db"),
            place.text("copy.db-log")
        ),
    );
    assert_eq!(run.results()[0][0]["x"], 7, "{}", run.err);
}

#[test]
fn a_sqlite_file_becomes_an_engine_database_and_a_file_again() {
    let place = Place::new();
    let instance = place.text("instance");
    place.succeed(&["import", "app.db", "--into", "x", "--instance", &instance]);
    let run = succeed(
        &place,
        "USE x
GO
SELECT count(*) AS found FROM t
PRAGMA page_size
BACKUP DATABASE x TO DISK = 'D:\\x.bak'",
    );
    assert_eq!(run.results()[0][0]["found"], 400);
    assert_eq!(run.results()[1][0]["page_size"], 8192);
    place.succeed(&["export", "x", "--to", "plain.db", "--instance", &instance]);
    assert_eq!(crate::support::rows(&place.path("plain.db")), 400);
    let again = place.run(&["import", "app.db", "--into", "x", "--instance", &instance]);
    assert_eq!(again.code, Some(1));
    let over = place.run(&["export", "x", "--to", "plain.db", "--instance", &instance]);
    assert_eq!(over.code, Some(1), "an export overwrites nothing");
    // SQLite would apply what is left beside the name to the new file.
    for left in ["-wal", "-journal"] {
        let left = place.path(&format!("new.db{left}"));
        std::fs::write(&left, "of another database").expect("a file");
        let beside = place.run(&["export", "x", "--to", "new.db", "--instance", &instance]);
        assert_eq!(beside.code, Some(1));
        assert!(
            beside.err.contains("SQLite would apply it"),
            "{}",
            beside.err
        );
        assert!(!place.path("new.db").exists());
        std::fs::remove_file(left).expect("it");
    }
    place.succeed(&["export", "x", "--to", "new.db", "--instance", &instance]);
}

#[test]
fn files_of_before_one_was_added_are_refused() {
    let place = Place::new();
    let add = "ALTER DATABASE own ADD FILE (NAME = b, FILENAME = 'd:\\b.ndf')";
    succeed(
        &place,
        "CREATE DATABASE own ON (NAME = a, FILENAME = 'd:\\a.mdf') LOG ON (NAME = l, FILENAME = 'd:\\l.ldf')",
    );
    let kept = ["a.mdf", "l.ldf"].map(|name| (name, std::fs::read(place.path(name)).expect(name)));
    succeed(&place, add);
    let present =
        ["a.mdf", "l.ldf"].map(|name| (name, std::fs::read(place.path(name)).expect(name)));
    let put = |files: &[(&str, Vec<u8>)]| {
        for (name, content) in files {
            std::fs::write(place.path(name), content).expect(name);
        }
    };
    put(&kept);
    let backup = "BACKUP DATABASE own TO DISK = 'd:\\temp\\own.bak'";
    for script in [backup, "USE own"] {
        let run = sql(&place, script);
        assert_eq!(run.code, Some(1), "{script}: {}", run.err);
        assert!(run.numbers().contains(&5173), "{script}: {}", run.err);
        assert!(run.err.contains("b.ndf"), "{}", run.err);
    }
    put(&present);
    succeed(&place, backup);
}

/// The first commit of an opening is one of the engine's own; it stays when that of the user fails.
#[test]
fn a_database_takes_commits_after_the_first_one_of_an_opening_has_failed() {
    let place = Place::new();
    succeed(
        &place,
        "CREATE DATABASE own ON (NAME = a, FILENAME = 'd:\\a.mdf', SIZE = 4MB, FILEGROWTH = 1MB, MAXSIZE = 6MB)
LOG ON (NAME = l, FILENAME = 'd:\\l.ldf', SIZE = 4MB)
GO
USE own
GO
CREATE TABLE k (n int); INSERT k VALUES (0); CREATE TABLE t (p nvarchar(max))",
    );
    let run = sql(
        &place,
        "USE own
GO
INSERT t VALUES (replicate(cast(N'x' AS nvarchar(max)), 9000000))
GO
UPDATE k SET n = n + 1
GO
UPDATE k SET n = n + 1",
    );
    assert_eq!(run.code, Some(1), "the first is too large: {}", run.err);
    assert!(!run.numbers().contains(&1222), "{}", run.err);
    let rows = crate::support::ask(&place, "instance", "USE own\nGO\nSELECT n FROM k");
    assert_eq!(rows[0]["n"], 2);
}

#[test]
fn pragmas_of_the_engine_answer_in_text_without_a_value_too() {
    let place = Place::new();
    let script = "CREATE DATABASE own
GO
USE own
GO
CREATE TABLE k (n int)
GO
PRAGMA windlass_last_error
GO
PRAGMA windlass_mark
GO
PRAGMA windlass_mark = ''
GO
PRAGMA page_size = 4096
GO
ANALYZE";
    let run = sql(&place, script);
    assert_eq!(run.code, Some(0), "{}", run.err);
}

#[test]
fn a_full_log_and_a_full_file_are_told_as_the_engine_knows_them() {
    let place = Place::new();
    succeed(
        &place,
        "CREATE DATABASE own ON (NAME = a, FILENAME = 'd:\\a.mdf', SIZE = 4MB, FILEGROWTH = 1MB, MAXSIZE = 30MB)
LOG ON (NAME = l, FILENAME = 'd:\\l.ldf', SIZE = 4MB, MAXSIZE = 8MB)
GO
ALTER DATABASE own SET RECOVERY FULL
BACKUP DATABASE own TO DISK = 'd:\\own.bak'
GO
USE own
GO
CREATE TABLE t (p nvarchar(max))",
    );
    let fill = "USE own\nGO\nINSERT t VALUES (replicate(cast(N'x' AS nvarchar(max)), 1500000))\n";
    let mut told = String::new();
    for _ in 0..8 {
        told = sql(&place, fill).err;
        if told.contains("\"number\":9002") {
            break;
        }
    }
    assert!(told.contains("\"number\":9002,\"severity\":17"), "{told}");
    assert!(told.contains("due to 'LOG_BACKUP'"), "{told}");
    succeed(
        &place,
        "BACKUP LOG own TO DISK = 'd:\\own.trn'\nGO\nALTER DATABASE own SET RECOVERY SIMPLE",
    );
    for _ in 0..20 {
        told = sql(&place, fill).err;
        if told.contains("is full") {
            break;
        }
    }
    assert!(
        told.contains("file 'a' of database 'own' is full"),
        "{told}"
    );
}
