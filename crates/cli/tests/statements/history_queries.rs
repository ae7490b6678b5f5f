//! The queries on history, files and sizes that DBAs copy from each other, on both kinds of databases.

use serde_json::{Value as Json, json};

use crate::support::{Place, ask};

/// Two databases; `eng` has three files. Only the second set of `app` is uncompressed.
fn instance() -> (Place, String) {
    let place = Place::new();
    let instance = place.text("instance");
    let run = place.sql_with(
        &["--json", "--instance", &instance],
        "EXEC sp_attach_db 'app', 'd:\\app.db'\n\
         CREATE DATABASE eng ON (NAME = e1, FILENAME = 'd:\\e1.mdf', SIZE = 8MB), (NAME = e2, FILENAME = 'd:\\e2.ndf', SIZE = 4MB)\n\
             LOG ON (NAME = elog, FILENAME = 'd:\\e.ldf', SIZE = 4MB)\n\
         BACKUP DATABASE app TO DISK = 'd:\\app.bak' WITH COMPRESSION\n\
         BACKUP DATABASE app TO DISK = 'd:\\app.bak' WITH DIFFERENTIAL, NO_COMPRESSION\n\
         BACKUP DATABASE eng TO DISK = 'd:\\eng.bak'\n\
         RESTORE DATABASE copy FROM DISK = 'd:\\app.bak' WITH MOVE 'app' TO 'd:\\copy.db'",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    (place, instance)
}

/// The values of one column.
fn column<'a>(rows: &'a [Json], name: &str) -> Vec<&'a Json> {
    rows.iter().map(|row| &row[name]).collect()
}

#[test]
fn the_history_tells_families_files_and_dates() {
    let (place, instance) = instance();
    let rows = ask(
        &place,
        &instance,
        "SELECT bs.database_name + ' ' + bs.type AS what, bf.logical_name, bf.file_type,
    CAST(bf.file_size / 1048576 AS int) AS mb, bms.is_compressed,
    CASE WHEN bs.database_creation_date BETWEEN GETDATE() - 1 AND GETDATE() + 1 THEN 1 ELSE 0 END AS dated
FROM msdb.dbo.backupset bs
JOIN msdb.dbo.backupfile bf ON bf.backup_set_id = bs.backup_set_id
JOIN msdb.dbo.backupmediaset bms ON bms.media_set_id = bs.media_set_id
ORDER BY bs.backup_set_id, bf.file_number",
    );
    let row = |what: &str, name: &str, kind: &str, mb: i64, compressed: bool| json!({"what": what, "logical_name": name, "file_type": kind, "mb": mb, "is_compressed": compressed, "dated": 1});
    assert_eq!(
        rows,
        [
            row("app D", "app", "D", 0, true),
            row("app I", "app", "D", 0, true),
            row("eng D", "e1", "D", 8, false),
            row("eng D", "elog", "L", 4, false),
            row("eng D", "e2", "D", 4, false),
        ]
    );
    for medium in ["app", "eng"] {
        let kept = ask(
            &place,
            &instance,
            &format!(
                "SELECT media_family_id AS id FROM msdb.dbo.backupmediafamily WHERE physical_device_name LIKE '%{medium}.bak'"
            ),
        );
        let label = ask(
            &place,
            &instance,
            &format!("RESTORE LABELONLY FROM DISK = 'd:\\{medium}.bak'"),
        );
        assert_eq!(kept.len(), 1, "{medium}");
        assert_eq!(kept[0]["id"], label[0]["MediaFamilyId"], "{medium}");
    }
}

#[test]
fn the_most_recent_backup_of_each_database_in_detail() {
    let (place, instance) = instance();
    let rows = ask(
        &place,
        &instance,
        "SELECT A.[Server], A.last_db_backup_date, B.database_name, B.backup_size, B.physical_device_name
FROM (SELECT CONVERT(CHAR(100), SERVERPROPERTY('Servername')) AS Server, msdb.dbo.backupset.database_name,
        MAX(msdb.dbo.backupset.backup_finish_date) AS last_db_backup_date
      FROM msdb.dbo.backupmediafamily INNER JOIN msdb.dbo.backupset
        ON msdb.dbo.backupmediafamily.media_set_id = msdb.dbo.backupset.media_set_id
      WHERE msdb..backupset.type = 'D' GROUP BY msdb.dbo.backupset.database_name) AS A
LEFT JOIN (SELECT CONVERT(CHAR(100), SERVERPROPERTY('Servername')) AS Server, msdb.dbo.backupset.database_name,
        msdb.dbo.backupset.backup_finish_date, msdb.dbo.backupset.backup_size, msdb.dbo.backupmediafamily.physical_device_name
      FROM msdb.dbo.backupmediafamily INNER JOIN msdb.dbo.backupset
        ON msdb.dbo.backupmediafamily.media_set_id = msdb.dbo.backupset.media_set_id
      WHERE msdb..backupset.type = 'D') AS B
    ON A.[server] = B.[server] AND A.[database_name] = B.[database_name] AND A.[last_db_backup_date] = B.[backup_finish_date]
ORDER BY A.database_name",
    );
    assert_eq!(column(&rows, "database_name"), ["app", "eng"]);
    assert!(
        rows[1]["physical_device_name"]
            .as_str()
            .unwrap()
            .ends_with("eng.bak")
    );
    let rows = ask(
        &place,
        &instance,
        ";WITH LastBackUp AS (SELECT bs.database_name, bs.backup_size, bs.backup_start_date,
    Position = ROW_NUMBER() OVER (PARTITION BY bs.database_name ORDER BY bs.backup_start_date DESC)
    FROM msdb.dbo.backupmediafamily bmf JOIN msdb.dbo.backupset bs ON bmf.media_set_id = bs.media_set_id
    WHERE bs.[type] = 'D' AND bs.is_copy_only = 0)
SELECT sd.name AS [Database], CAST(backup_size / 1048576 AS DECIMAL(10, 2)) AS [BackupSizeMB]
FROM sys.databases AS sd LEFT JOIN LastBackUp AS lb ON sd.name = lb.database_name AND Position = 1
WHERE sd.database_id > 4 ORDER BY [Database]",
    );
    assert_eq!(column(&rows, "Database"), ["app", "copy", "eng"]);
    assert_eq!(rows[1]["BackupSizeMB"], Json::Null);
    let rows = ask(
        &place,
        &instance,
        "SELECT d.name, MAX(CASE WHEN bu.TYPE = 'D' THEN 1 END) AS 'Full DB Backup', MAX(CASE WHEN bu.TYPE = 'I' THEN 1 END) AS 'Diff',
    MAX(CASE WHEN bu.TYPE = 'L' THEN 1 END) AS 'Log'
FROM MASTER.sys.databases d LEFT OUTER JOIN (SELECT database_name, TYPE, MAX(backup_start_date) AS LastBackupDate
    FROM msdb.dbo.backupset GROUP BY database_name, TYPE) AS bu ON d.name = bu.database_name
WHERE d.database_id > 4 GROUP BY d.Name, d.state_desc ORDER BY d.name",
    );
    assert_eq!(column(&rows, "Diff"), [&json!(1), &Json::Null, &Json::Null]);
}

#[test]
fn databases_without_a_recent_backup() {
    let (place, instance) = instance();
    let rows = ask(
        &place,
        &instance,
        "SELECT msdb.dbo.backupset.database_name, MAX(msdb.dbo.backupset.backup_finish_date) AS last_db_backup_date,
    DATEDIFF(hh, MAX(msdb.dbo.backupset.backup_finish_date), GETDATE()) AS [Backup Age (Hours)]
FROM msdb.dbo.backupset WHERE msdb.dbo.backupset.type = 'D' GROUP BY msdb.dbo.backupset.database_name
HAVING (MAX(msdb.dbo.backupset.backup_finish_date) < DATEADD(hh, - 24, GETDATE()))
UNION
SELECT sys.sysdatabases.NAME AS database_name, NULL AS [Last Data Backup Date], 9999 AS [Backup Age (Hours)]
FROM sys.sysdatabases LEFT JOIN msdb.dbo.backupset ON sys.sysdatabases.name = msdb.dbo.backupset.database_name
WHERE msdb.dbo.backupset.database_name IS NULL AND sys.sysdatabases.name <> 'tempdb'
ORDER BY msdb.dbo.backupset.database_name",
    );
    assert_eq!(column(&rows, "database_name"), ["copy", "master", "msdb"]);
    let rows = ask(
        &place,
        &instance,
        "SELECT d.name FROM sys.databases d WHERE d.database_id > 4 AND NOT EXISTS (SELECT 1 FROM msdb.dbo.backupset b
    WHERE b.database_name = d.name AND b.type = 'D' AND b.backup_finish_date > DATEADD(HOUR, -24, GETDATE()))",
    );
    assert_eq!(column(&rows, "name"), ["copy"]);
}

#[test]
fn restores_with_their_files() {
    let (place, instance) = instance();
    let rows = ask(
        &place,
        &instance,
        "DECLARE @dbname sysname, @days int
SET @dbname = NULL
SET @days = -30
SELECT rsh.destination_database_name AS [Database],
 CASE WHEN rsh.restore_type = 'D' THEN 'Database' WHEN rsh.restore_type = 'F' THEN 'File' WHEN rsh.restore_type = 'I' THEN 'Differential'
      WHEN rsh.restore_type = 'L' THEN 'Log' ELSE rsh.restore_type END AS [Restore Type],
 bmf.physical_device_name AS [Restored From], rf.destination_phys_name AS [Restored To]
FROM msdb.dbo.restorehistory rsh
INNER JOIN msdb.dbo.backupset bs ON rsh.backup_set_id = bs.backup_set_id
INNER JOIN msdb.dbo.restorefile rf ON rsh.restore_history_id = rf.restore_history_id
INNER JOIN msdb.dbo.backupmediafamily bmf ON bmf.media_set_id = bs.media_set_id
WHERE rsh.restore_date >= DATEADD(dd, ISNULL(@days, -30), GETDATE()) AND destination_database_name = ISNULL(@dbname, destination_database_name)
ORDER BY rsh.restore_history_id DESC",
    );
    assert_eq!(column(&rows, "Restore Type"), ["Database"]);
    assert!(
        rows[0]["Restored To"]
            .as_str()
            .unwrap()
            .ends_with("copy.db")
    );
    assert!(
        rows[0]["Restored From"]
            .as_str()
            .unwrap()
            .ends_with("app.bak")
    );
}

#[test]
fn sizes_and_space_of_databases() {
    let (place, instance) = instance();
    let rows = ask(
        &place,
        &instance,
        "SELECT database_name = DB_NAME(database_id),
    log_size_mb = CAST(SUM(CASE WHEN type_desc = 'LOG' THEN size END) * 8. / 1024 AS DECIMAL(8,2)),
    row_size_mb = CAST(SUM(CASE WHEN type_desc = 'ROWS' THEN size END) * 8. / 1024 AS DECIMAL(8,2))
FROM sys.master_files WITH(NOWAIT) WHERE database_id = DB_ID('eng') GROUP BY database_id",
    );
    assert_eq!(
        rows,
        [json!({"database_name": "eng", "log_size_mb": 4.0, "row_size_mb": 12.0})]
    );
    let rows = ask(
        &place,
        &instance,
        "USE eng
SELECT [TYPE] = A.TYPE_DESC, [FILE_Name] = A.name, [FILEGROUP_NAME] = fg.name,
    [FILESIZE_MB] = CONVERT(DECIMAL(10,2), A.SIZE/128.0),
    [AutoGrow] = 'By ' + CASE is_percent_growth WHEN 0 THEN CAST(growth/128 AS VARCHAR(10)) + ' MB -'
        WHEN 1 THEN CAST(growth AS VARCHAR(10)) + '% -' ELSE '' END
      + CASE max_size WHEN 0 THEN 'DISABLED' WHEN -1 THEN ' Unrestricted'
        ELSE ' Restricted to ' + CAST(max_size/(128*1024) AS VARCHAR(10)) + ' GB' END
FROM sys.database_files A LEFT JOIN sys.filegroups fg ON A.data_space_id = fg.data_space_id
ORDER BY A.TYPE DESC, A.NAME",
    );
    let row = |kind: &str, name: &str, group: Json, mb: f64| json!({"TYPE": kind, "FILE_Name": name, "FILEGROUP_NAME": group, "FILESIZE_MB": mb, "AutoGrow": "By 64 MB - Unrestricted"});
    assert_eq!(
        rows,
        [
            row("LOG", "elog", Json::Null, 4.0),
            row("ROWS", "e1", json!("PRIMARY"), 8.0),
            row("ROWS", "e2", json!("PRIMARY"), 4.0),
        ]
    );
    let rows = ask(
        &place,
        &instance,
        "SELECT r.session_id AS SPID, command, a.text AS Query, percent_complete FROM sys.dm_exec_requests r
         CROSS APPLY sys.dm_exec_sql_text(r.sql_handle) a WHERE r.command IN ('BACKUP DATABASE', 'RESTORE DATABASE')",
    );
    assert!(rows.is_empty(), "nothing runs");
}
