//! The history in msdb: what is in it, and the queries that DBAs run on it.

use rusqlite::Connection;
use serde_json::Value as Json;

use crate::support::{Place, ask};

/// An instance with a full and a differential backup of `app`, an old backup of `other`, a restore,
/// and a database `never` without any backup.
fn history() -> (Place, String) {
    let place = Place::new();
    let instance = place.text("instance");
    std::fs::copy(place.path("other.db"), place.path("never.db")).expect("a copy");
    let run = place.sql_with(
        &["--json", "--instance", &instance],
        "EXEC sp_attach_db 'app', 'd:\\app.db'\n\
         EXEC sp_attach_db 'other', 'd:\\other.db'\n\
         EXEC sp_attach_db 'never', 'd:\\never.db'\n\
         BACKUP DATABASE app TO DISK = 'd:\\a1.bak', DISK = 'd:\\a2.bak' WITH COMPRESSION\n\
         BACKUP DATABASE app TO DISK = 'd:\\d.bak' WITH DIFFERENTIAL\n\
         BACKUP DATABASE other TO DISK = 'd:\\o.bak'\n\
         RESTORE DATABASE copy FROM DISK = 'd:\\o.bak' WITH MOVE 'other' TO 'd:\\copy.db'",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    let catalog = Connection::open(place.path("instance/windlass.catalog")).expect("the catalog");
    catalog
        .execute_batch(
            "UPDATE own_backupset SET backup_start_date = datetime(backup_start_date, '-3 days'),
                 backup_finish_date = datetime(backup_finish_date, '-3 days')
             WHERE database_name = 'other';
             UPDATE own_backupset SET backup_start_date = datetime(backup_finish_date, '-5 seconds')
             WHERE database_name = 'app'",
        )
        .expect("older dates");
    (place, instance)
}

#[test]
fn the_last_backups_of_every_database() {
    let (place, instance) = history();
    let rows = ask(
        &place,
        &instance,
        "SELECT d.name AS [Database],
    d.recovery_model_desc AS [Recovery model],
    MAX(CASE WHEN b.type = 'D' THEN b.backup_finish_date END) AS [Last full],
    MAX(CASE WHEN b.type = 'I' THEN b.backup_finish_date END) AS [Last differential],
    ISNULL(CONVERT(varchar(20), MAX(CASE WHEN b.type = 'L' THEN b.backup_finish_date END), 120), 'never') AS [Last log]
FROM master.sys.databases d WITH (NOLOCK)
LEFT OUTER JOIN msdb.dbo.backupset b ON b.database_name = d.name
WHERE d.name NOT IN ('tempdb', 'master', 'msdb')
GROUP BY d.name, d.recovery_model_desc
ORDER BY d.name;",
    );
    let names: Vec<&str> = rows
        .iter()
        .map(|row| row["Database"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["app", "copy", "never", "other"]);
    assert_ne!(rows[0]["Last full"], Json::Null);
    assert_ne!(rows[0]["Last differential"], Json::Null);
    assert_eq!(rows[2]["Last full"], Json::Null);
    assert_eq!(rows[3]["Last differential"], Json::Null);
    assert_eq!(rows[0]["Last log"], "never");
}

#[test]
fn databases_without_a_backup_in_a_day() {
    let (place, instance) = history();
    let rows = ask(
        &place,
        &instance,
        "-- databases with data backup over 24 hours old
SELECT CONVERT(CHAR(100), SERVERPROPERTY('Servername')) AS Server,
   msdb.dbo.backupset.database_name,
   MAX(msdb.dbo.backupset.backup_finish_date) AS last_db_backup_date,
   DATEDIFF(hh, MAX(msdb.dbo.backupset.backup_finish_date), GETDATE()) AS [Backup Age (Hours)]
FROM msdb.dbo.backupset
WHERE msdb.dbo.backupset.type = 'D'
GROUP BY msdb.dbo.backupset.database_name
HAVING (MAX(msdb.dbo.backupset.backup_finish_date) < DATEADD(hh, - 24, GETDATE()))
UNION
-- databases without any backup history
SELECT CONVERT(CHAR(100), SERVERPROPERTY('Servername')) AS Server,
   master.sys.sysdatabases.NAME AS database_name,
   NULL AS [Last Data Backup Date],
   9999 AS [Backup Age (Hours)]
FROM master.sys.sysdatabases
LEFT JOIN msdb.dbo.backupset ON master.sys.sysdatabases.name = msdb.dbo.backupset.database_name
WHERE msdb.dbo.backupset.database_name IS NULL
   AND master.sys.sysdatabases.name <> 'tempdb'
   AND master.sys.sysdatabases.dbid > 4
ORDER BY database_name",
    );
    let found: Vec<(&str, i64)> = rows
        .iter()
        .map(|row| {
            (
                row["database_name"].as_str().expect("a name"),
                row["Backup Age (Hours)"].as_i64().expect("hours"),
            )
        })
        .collect();
    assert_eq!(found, [("copy", 9999), ("never", 9999), ("other", 72)]);
}

#[test]
fn the_growth_of_backups() {
    let (place, instance) = history();
    let rows = ask(
        &place,
        &instance,
        "SELECT [database_name] AS [Database], DATEPART(month, [backup_start_date]) AS [Month],
    YEAR(backup_start_date) AS [Year],
    CAST(AVG([backup_size] / 1024 / 1024) AS decimal(10, 4)) AS [Backup Size MB],
    CAST(AVG([compressed_backup_size] / 1024 / 1024) AS decimal(10, 4)) AS [Compressed MB],
    CAST(AVG([backup_size] / [compressed_backup_size]) AS numeric(9, 2)) AS [Compression Ratio]
FROM msdb.dbo.backupset
WHERE [database_name] = N'app' AND [type] = 'D'
    AND backup_start_date >= DATEADD(year, -1, GETDATE())
GROUP BY [database_name], DATEPART(mm, [backup_start_date]), YEAR(backup_start_date);",
    );
    assert_eq!(rows.len(), 1);
    let size = rows[0]["Backup Size MB"].as_f64().expect("a number");
    assert!(size > 0.3 && size < 0.9, "{size} has its fraction");
    let ratio = rows[0]["Compression Ratio"].as_f64().expect("a number");
    assert!(ratio > 2.0, "{ratio}");
}

#[test]
fn what_was_restored_from_where() {
    let (place, instance) = history();
    let rows = ask(
        &place,
        &instance,
        "SELECT TOP (10) [rs].[destination_database_name], [rs].[restore_date],
    [bs].[backup_start_date], [bs].[backup_finish_date],
    [bs].[database_name] AS [source_database_name],
    [bmf].[physical_device_name] AS [backup_file_used_for_restore],
    CASE rs.restore_type WHEN 'D' THEN 'Database' WHEN 'I' THEN 'Differential' ELSE rs.restore_type END AS kind
FROM msdb..restorehistory rs
INNER JOIN msdb..backupset bs ON [rs].[backup_set_id] = [bs].[backup_set_id]
INNER JOIN msdb..backupmediafamily bmf ON [bs].[media_set_id] = [bmf].[media_set_id]
ORDER BY [rs].[restore_date] DESC",
    );
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["destination_database_name"], "copy");
    assert_eq!(rows[0]["source_database_name"], "other");
    assert_eq!(rows[0]["kind"], "Database");
    let file = rows[0]["backup_file_used_for_restore"].as_str();
    assert!(file.is_some_and(|file| file.ends_with("o.bak")));
}

#[test]
fn the_throughput_of_backups() {
    let (place, instance) = history();
    let rows = ask(
        &place,
        &instance,
        "SELECT TOP 100 s.database_name + ' (' + s.type + ')' AS what,
    CAST(CAST(s.backup_size / 1000000 AS int) AS varchar(14)) + ' ' + 'MB' AS bkSize,
    CAST(DATEDIFF(second, s.backup_start_date, s.backup_finish_date) AS varchar(4)) + ' ' + 'Seconds' AS TimeTaken,
    seconds = DATEDIFF(ss, s.backup_start_date, s.backup_finish_date),
    CAST(s.backup_size / 1048576 / NULLIF(DATEDIFF(second, s.backup_start_date, s.backup_finish_date), 0) AS decimal(10, 3)) AS mb_s,
    CONVERT(varchar(19), s.backup_start_date, 126) AS iso,
    m.physical_device_name,
    s.recovery_model
FROM msdb.dbo.backupset s
INNER JOIN msdb.dbo.backupmediafamily m ON s.media_set_id = m.media_set_id
WHERE s.database_name = 'app' AND s.type = 'D' AND s.backup_start_date > GETDATE() - 7
ORDER BY backup_start_date DESC, backup_finish_date",
    );
    assert_eq!(rows.len(), 2, "a row for each stripe");
    assert_eq!(rows[0]["what"], "app (D)");
    assert_eq!(rows[0]["bkSize"], "0 MB");
    assert_eq!(rows[0]["TimeTaken"], "5 Seconds");
    assert_eq!(rows[0]["seconds"], 5);
    assert!(rows[0]["mb_s"].as_f64().expect("a rate") > 0.05);
    assert_eq!(&rows[0]["iso"].as_str().expect("a date")[10..11], "T");
}

#[test]
fn what_sqlite_would_take_for_something_else_is_refused() {
    let place = Place::new();
    for query in [
        "SELECT * FROM sys.databases d CROSS APPLY (SELECT TOP 1 name FROM msdb.dbo.backupset) b",
        "SELECT name FROM sys.databases FOR XML PATH('')",
        "SELECT TOP 5 WITH TIES name FROM sys.databases ORDER BY name",
    ] {
        assert_eq!(place.numbers(query), [50005], "{query}");
    }
    assert_eq!(
        place.numbers("SELECT CONVERT(nosuchtype, 1)"),
        [243],
        "an unknown type"
    );
}

#[test]
fn history_is_forgotten_by_date_and_by_database() {
    let (place, instance) = history();
    let rows = ask(
        &place,
        &instance,
        "DECLARE @d datetime = GETDATE() - 2\n\
         EXEC msdb.dbo.sp_delete_backuphistory @oldest_date = @d\n\
         SELECT database_name, type FROM msdb.dbo.backupset ORDER BY backup_set_id",
    );
    assert_eq!(rows.len(), 2);
    let rows = ask(
        &place,
        &instance,
        "EXEC msdb.dbo.sp_delete_database_backuphistory 'app'\n\
         SELECT COUNT(*) AS n FROM msdb.dbo.backupmediaset",
    );
    assert_eq!(rows[0]["n"], 0);
}

#[test]
fn a_history_that_cannot_be_written_does_not_fail_the_backup() {
    let (place, instance) = history();
    let catalog = Connection::open(place.path("instance/windlass.catalog")).expect("the catalog");
    catalog
        .execute_batch(
            "CREATE TRIGGER refuse BEFORE INSERT ON own_backupset
             BEGIN SELECT RAISE(ABORT, 'no'); END",
        )
        .expect("a trigger");
    let run = place.sql_with(
        &["--json", "--instance", &instance],
        "BACKUP DATABASE app TO DISK = 'd:\\again.bak'\nRESTORE VERIFYONLY FROM DISK = 'd:\\again.bak'",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(run.numbers(), [4035, 3009, 3014, 3262]);
}
