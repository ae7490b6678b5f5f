//! Scripts that administer: the files of databases and backups, and nightly jobs.

use std::fs;

use crate::sales::MAKE;
use crate::support::{Place, rows, sql, succeed};

#[test]
fn the_files_of_a_database_are_shown_with_their_sizes_and_limits() {
    let place = Place::new();
    let run = succeed(
        &place,
        &format!(
            "{}\nEXEC sp_helpdb 'sales'\nEXEC sp_helpfile\nEXEC sp_helpfile 'SALES_LOG'",
            MAKE.replace(
                "SIZE = 8MB)",
                "SIZE = 8MB, MAXSIZE = 1GB, FILEGROWTH = 10%)"
            )
        ),
    );
    let results = run.results();
    assert_eq!(results[0][0]["db_size"], "12.00 MB");
    for files in [&results[1], &results[2]] {
        let names: Vec<_> = (0..3).map(|row| &files[row]["name"]).collect();
        assert_eq!(names, ["Sales_1", "Sales_log", "Sales_2"]);
        assert_eq!(files[0]["size"], "2048 KB");
        assert_eq!(files[0]["maxsize"], "Unlimited");
        assert_eq!(files[0]["growth"], "1024 KB");
        assert_eq!(files[0]["filegroup"], "PRIMARY");
        assert_eq!(files[1]["usage"], "log only");
        assert_eq!(files[1]["maxsize"], "1048576 KB");
        assert_eq!(files[1]["growth"], "10%");
    }
    assert_eq!(results[3].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_filegroup_that_could_not_be_kept_is_refused_and_nothing_is_made() {
    let place = Place::new();
    let run = sql(
        &place,
        "CREATE DATABASE x ON PRIMARY (NAME = x, FILENAME = 'D:\\x.mdf'),
             FILEGROUP old (NAME = x_old, FILENAME = 'D:\\x_old.ndf')",
    );
    assert_eq!(run.numbers(), [50005], "{}", run.err);
    assert!(!place.path("x.mdf").exists());
}

#[test]
fn a_restore_names_the_target_whose_file_is_unknown_and_lists_data_files_before_the_log() {
    let place = Place::new();
    succeed(
        &place,
        &format!("{MAKE}BACKUP DATABASE Sales TO DISK = 'D:\\a.bak'"),
    );
    let run = sql(
        &place,
        "RESTORE DATABASE Copy FROM DISK = 'D:\\a.bak' WITH MOVE 'nosuch' TO 'D:\\n.mdf'",
    );
    assert!(
        run.err
            .contains("Logical file 'nosuch' is not part of database 'Copy'."),
        "{}",
        run.err
    );
    let run = succeed(
        &place,
        "RESTORE DATABASE Copy FROM DISK = 'D:\\a.bak' WITH MOVE 'Sales_1' TO 'D:\\c1.mdf',
             MOVE 'Sales_2' TO 'D:\\c2.ndf', MOVE 'Sales_log' TO 'D:\\c.ldf'
         SELECT file_type FROM msdb.dbo.backupfile ORDER BY file_number",
    );
    let texts: Vec<String> = run
        .messages()
        .iter()
        .filter(|message| message["number"] == 4035)
        .map(|message| message["text"].to_string())
        .collect();
    let order: Vec<bool> = ["'Sales_1'", "'Sales_2'", "'Sales_log'"]
        .iter()
        .zip(&texts)
        .map(|(name, text)| text.contains(name))
        .collect();
    assert_eq!(order, [true, true, true], "{texts:?}");
    let types: Vec<_> = (0..3)
        .map(|row| run.results()[0][row]["file_type"].clone())
        .collect();
    assert_eq!(types, ["D", "L", "D"]);
}

#[test]
fn files_are_seen_made_and_deleted_in_the_folders_of_drives_alone() {
    let place = Place::new();
    fs::create_dir(place.path("out")).unwrap();
    std::os::unix::fs::symlink("/etc", place.path("away")).unwrap();
    let run = succeed(
        &place,
        "EXEC sp_attach_db 'app', 'd:\\app.db'
         EXEC xp_create_subdir 'd:\\made\\further'
         BACKUP DATABASE app TO DISK = 'd:\\made\\app.bak'
         EXEC xp_fileexist 'd:\\made\\app.bak'
         DECLARE @there int
         EXEC xp_fileexist 'd:\\made\\nosuch.bak', @there OUTPUT
         SELECT @there AS there
         CREATE TABLE #files (name nvarchar(512), depth int, is_file bit)
         INSERT #files EXEC xp_dirtree 'd:\\made', 1, 1
         SELECT * FROM #files ORDER BY name",
    );
    let results = run.results();
    assert_eq!(results[0][0]["File Exists"], true);
    assert_eq!(results[1][0]["there"], 0);
    assert_eq!(results[2][0]["name"], "app.bak");
    assert_eq!(results[2][0]["is_file"], true);
    assert_eq!(results[2][1]["name"], "further");
    for outside in [
        "EXEC xp_fileexist '/etc/passwd'",
        "EXEC xp_dirtree 'd:\\away'",
        "EXEC xp_create_subdir '/tmp/windlass-outside'",
        "EXEC xp_delete_file 0, '/tmp', 'bak', '2100-01-01'",
        "EXEC xp_delete_file 0, 'd:\\away', '*', '2100-01-01'",
    ] {
        assert_eq!(sql(&place, outside).numbers(), [50005], "{outside}");
    }
    fs::write(place.path("made/note.bak"), "no backup").unwrap();
    succeed(
        &place,
        "EXEC xp_delete_file 0, 'd:\\made', 'bak', '2001-01-01'",
    );
    assert!(place.path("made/app.bak").exists(), "it is not that old");
    succeed(
        &place,
        "EXEC xp_delete_file 0, 'd:\\made', 'bak', '2100-01-01T00:00:00'",
    );
    assert!(!place.path("made/app.bak").exists());
    assert!(place.path("made/note.bak").exists(), "it is no backup");
}

/// The script in `docs/tsql.md`.
const NIGHTLY: &str = include_str!("../../../../docs/nightly.sql");

#[test]
fn a_nightly_job_with_a_cursor_backs_up_every_database_and_goes_on_after_a_failure() {
    let place = Place::new();
    let old = place.path("backup");
    fs::create_dir(&old).unwrap();
    let script = format!(
        "EXEC sp_attach_db 'app', 'd:\\app.db'
EXEC sp_attach_db 'other', 'd:\\other.db'
BACKUP DATABASE app TO DISK = 'd:\\backup\\app_old.bak'
GO
{NIGHTLY}"
    );
    let first = sql(&place, &script);
    assert_eq!(first.code, Some(0), "{}", first.err);
    let log = first.results().pop().expect("the log");
    let names: Vec<_> = (0..2).map(|row| log[row]["name"].clone()).collect();
    assert_eq!(names, ["app", "other"]);
    assert_eq!(log[0]["error"], serde_json::Value::Null);
    // A database that cannot be read fails alone, and the job ends with an error.
    fs::remove_file(place.path("other.db")).unwrap();
    let second = sql(&place, NIGHTLY);
    assert_eq!(second.code, Some(1), "{}", second.err);
    let log = second.results().pop().expect("the log");
    assert_eq!(log[0]["error"], serde_json::Value::Null);
    assert_ne!(log[1]["error"], serde_json::Value::Null);
    assert!(
        second.err.contains("1 of 2 databases were not backed up"),
        "{}",
        second.err
    );
    let count = fs::read_dir(&old).unwrap().count();
    assert!(count >= 3, "{count} files");
    assert_eq!(rows(&place.path("app.db")), 400);
}

#[test]
fn the_nightly_job_deletes_nothing_when_there_are_no_databases_or_one_is_not_online() {
    let place = Place::new();
    let folder = place.path("backup");
    fs::create_dir(&folder).unwrap();
    succeed(
        &place,
        "EXEC sp_attach_db 'app', 'd:\\app.db'
EXEC sp_attach_db 'other', 'd:\\other.db'
BACKUP DATABASE app TO DISK = 'd:\\backup\\app_old.bak'
BACKUP DATABASE other TO DISK = 'd:\\backup\\other_old.bak'",
    );
    // Every backup is older than the oldest that stays.
    let nightly = NIGHTLY.replace("DATEADD(day, -14, GETDATE())", "'2100-01-01'");
    let typo = place.text("typo");
    let run = place.sql_with(&["--json", "--instance", &typo], &nightly);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("There are no databases"), "{}", run.err);
    assert!(run.err.contains("a new one is made"), "{}", run.err);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
    succeed(
        &place,
        "RESTORE DATABASE other FROM DISK = 'd:\\backup\\other_old.bak' WITH NORECOVERY, REPLACE",
    );
    let run = sql(&place, &nightly);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(
        run.err.contains("1 of 2 databases were not backed up"),
        "{}",
        run.err
    );
    assert!(!run.err.contains("a new one is made"), "{}", run.err);
    let log = run.results().pop().expect("the log");
    assert_eq!(log[1]["name"], "other");
    assert_eq!(log[1]["error"], "50000: The database is RESTORING.");
    assert!(folder.join("other_old.bak").exists());
    assert!(folder.join("app_old.bak").exists());
}
