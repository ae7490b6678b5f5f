//! What scripts read of the server: catalog views, procedures and functions, with SQL Server's columns.

use serde_json::{Value as Json, json};

use crate::support::{Place, ask};

/// An instance with the SQLite file `app` and the database `eng` of the page engine with three files.
fn instance() -> (Place, String) {
    let place = Place::new();
    let instance = place.text("instance");
    let run = place.sql_with(
        &["--json", "--instance", &instance],
        "EXEC sp_attach_db 'app', 'd:\\app.db'\n\
         CREATE DATABASE eng ON (NAME = e1, FILENAME = 'd:\\e1.mdf', SIZE = 8MB, MAXSIZE = 100MB, FILEGROWTH = 10%),\n\
             (NAME = e2, FILENAME = 'd:\\e2.ndf', SIZE = 4MB, FILEGROWTH = 1MB)\n\
             LOG ON (NAME = elog, FILENAME = 'd:\\e.ldf', SIZE = 4MB, FILEGROWTH = 0)\n\
         EXEC sp_addumpdevice 'disk', 'dev', 'd:\\dev.bak'",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    (place, instance)
}

#[test]
fn the_views_have_the_columns_of_sql_server() {
    let (place, instance) = instance();
    for (view, columns, first, last) in [
        ("sys.databases", 94, "name", "differential_base_time"),
        ("sys.master_files", 32, "database_id", "credential_id"),
        ("sys.messages", 5, "message_id", "text"),
        ("sys.configurations", 9, "configuration_id", "is_advanced"),
        (
            "sys.dm_os_wait_stats",
            5,
            "wait_type",
            "signal_wait_time_ms",
        ),
        (
            "sys.dm_io_virtual_file_stats(NULL, NULL)",
            14,
            "database_id",
            "file_handle",
        ),
        ("sys.objects", 12, "name", "is_schema_published"),
    ] {
        let run = place.sql_with(
            &["--instance", &instance, "-s", "|", "-W"],
            &format!("SELECT TOP 0 * FROM {view}"),
        );
        assert_eq!(run.code, Some(0), "{view}: {}", run.err);
        let names: Vec<&str> = run
            .out
            .lines()
            .find(|line| line.contains('|'))
            .expect("names")
            .split('|')
            .collect();
        assert_eq!(names.len(), columns, "{view}: {names:?}");
        assert_eq!((names[0], *names.last().unwrap()), (first, last), "{view}");
    }
}

#[test]
fn databases_and_their_files_are_shown_as_they_are() {
    let (place, instance) = instance();
    let rows = ask(
        &place,
        &instance,
        "SELECT name, target_recovery_time_in_seconds AS target, log_reuse_wait_desc AS wait, is_read_only, user_access_desc,
                is_encrypted, page_verify_option_desc AS verify
         FROM sys.databases WHERE database_id > 4 ORDER BY name",
    );
    assert_eq!(
        rows,
        [
            json!({"name": "app", "target": null, "wait": "NOTHING", "is_read_only": false, "user_access_desc": "MULTI_USER",
                   "is_encrypted": false, "verify": "NONE"}),
            json!({"name": "eng", "target": 60, "wait": "NOTHING", "is_read_only": false, "user_access_desc": "MULTI_USER",
                   "is_encrypted": false, "verify": "CHECKSUM"}),
        ]
    );
    // Also of a database that this program has not opened.
    let rows = ask(
        &place,
        &instance,
        "SELECT DB_NAME(database_id) AS d, name, type_desc AS type, size * 8 / 1024 AS mb, max_size, growth, is_percent_growth AS percent_growth
         FROM sys.master_files WHERE database_id = DB_ID('ENG') ORDER BY file_id",
    );
    assert_eq!(
        rows,
        [
            json!({"d": "eng", "name": "e1", "type": "ROWS", "mb": 8, "max_size": 12800, "growth": 10, "percent_growth": true}),
            json!({"d": "eng", "name": "elog", "type": "LOG", "mb": 4, "max_size": -1, "growth": 0, "percent_growth": false}),
            json!({"d": "eng", "name": "e2", "type": "ROWS", "mb": 4, "max_size": -1, "growth": 128, "percent_growth": false}),
        ]
    );
    let rows = ask(
        &place,
        &instance,
        "USE eng
         SELECT name, size / 128 AS mb, FILEPROPERTY(name, 'SpaceUsed') AS used FROM sys.database_files WHERE type = 0",
    );
    assert_eq!(
        rows,
        [
            json!({"name": "e1", "mb": 8, "used": 16}),
            json!({"name": "e2", "mb": 4, "used": 8}),
        ]
    );
}

#[test]
fn activity_is_that_of_the_databases_that_are_open() {
    let (place, instance) = instance();
    let rows = ask(
        &place,
        &instance,
        "USE eng
         CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)
         INSERT INTO t VALUES (1, 'x')
         SELECT DB_NAME(b.database_id) AS d, SUM(CASE WHEN b.is_modified = 1 THEN 1 ELSE 0 END) AS dirty,
                (SELECT used_log_space_in_bytes FROM sys.dm_db_log_space_usage) AS used
         FROM sys.dm_os_buffer_descriptors AS b GROUP BY b.database_id",
    );
    assert_eq!(rows[0]["d"], "eng");
    assert!(rows[0]["dirty"].as_i64() > Some(0), "{rows:?}");
    assert!(rows[0]["used"].as_i64() > Some(0), "{rows:?}");
    let rows = ask(
        &place,
        &instance,
        "SELECT f.name, v.size_on_disk_bytes / 1048576 AS mb FROM sys.master_files AS f
         CROSS APPLY sys.dm_io_virtual_file_stats(f.database_id, f.file_id) AS v
         WHERE f.database_id = DB_ID('eng') ORDER BY f.file_id",
    );
    let names: Vec<&Json> = rows.iter().map(|row| &row["name"]).collect();
    assert_eq!(names, ["e1", "elog", "e2"], "each file with its own row");
    let rows = ask(
        &place,
        &instance,
        "SELECT file_id FROM sys.dm_io_virtual_file_stats(DB_ID('eng'), 2)",
    );
    assert_eq!(rows, [json!({"file_id": 2})]);
}

#[test]
fn the_procedures_of_the_server_answer_in_its_columns() {
    let (place, instance) = instance();
    for (text, expected) in [
        (
            "EXEC sp_helpdevice",
            json!({"device_name": "dev", "physical_name": "d:\\dev.bak", "description": "disk, backup device",
                   "status": 16, "cntrltype": 2, "size": 0}),
        ),
        (
            "EXEC sp_server_info 16",
            json!({"attribute_id": 16, "attribute_name": "IDENTIFIER_CASE", "attribute_value": "MIXED"}),
        ),
        (
            "EXEC sys.sp_databases",
            json!({"DATABASE_NAME": "app", "DATABASE_SIZE": std::fs::metadata(place.path("app.db")).unwrap().len().div_ceil(8192) * 8,
                   "REMARKS": null}),
        ),
    ] {
        assert_eq!(ask(&place, &instance, text)[0], expected, "{text}");
    }
    let who = ask(&place, &instance, "EXEC sp_who2 'active'");
    assert_eq!(who[0]["BlkBy"], "  .  ");
    let logs = ask(
        &place,
        &instance,
        "DBCC SQLPERF (LOGSPACE) WITH NO_INFOMSGS",
    );
    assert_eq!(logs[1]["Database Name"], "eng");
    assert!(
        logs[1]["Log Space Used (%)"].as_f64() > Some(0.0),
        "{logs:?}"
    );
    let space = ask(
        &place,
        &instance,
        "USE eng\nCREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)\nCREATE INDEX i ON t (b)\n\
         INSERT INTO t VALUES (1, 'x'), (2, 'y')\nEXEC sp_spaceused 'dbo.t'",
    );
    assert_eq!(space[0]["rows"].as_str().map(str::trim), Some("2"));
    assert_eq!(space[0]["reserved"], "16 KB");
    assert_eq!(space[0]["index_size"], "8 KB");
    let run = place.sql_with(
        &["--instance", &instance],
        "EXEC sp_helpdevice 'none'\nEXEC sp_spaceused 'none'",
    );
    assert!(
        run.err
            .contains("Msg 15012, Level 16, State 1, Procedure sp_helpdevice"),
        "{}",
        run.err
    );
    assert!(
        run.err
            .contains("Msg 15009, Level 16, State 1, Procedure sp_spaceused"),
        "{}",
        run.err
    );
}

#[test]
fn objects_have_one_number_everywhere() {
    let (place, instance) = instance();
    let setup = "USE eng\nGO\nCREATE TABLE t (a INTEGER PRIMARY KEY)\nGO\n\
                 CREATE PROCEDURE p @a int, @b nvarchar(20) = 'x', @c decimal(10, 2) OUTPUT AS SELECT 1\nGO\n";
    let rows = ask(
        &place,
        &instance,
        &format!(
            "{setup}SELECT name, type, OBJECT_NAME(object_id) AS named, IIF(object_id = OBJECT_ID(N't') OR object_id = OBJECT_ID('p'), 1, 0) AS same
             FROM sys.objects ORDER BY name"
        ),
    );
    assert_eq!(
        rows,
        [
            json!({"name": "p", "type": "P ", "named": "p", "same": 1}),
            json!({"name": "t", "type": "U ", "named": "t", "same": 1}),
        ]
    );
    let rows = ask(
        &place,
        &instance,
        "USE eng\nSELECT name, parameter_id AS id, system_type_id AS type, max_length AS bytes, precision, scale, is_output FROM sys.parameters",
    );
    assert_eq!(
        rows,
        [
            json!({"name": "@a", "id": 1, "type": 56, "bytes": 4, "precision": 10, "scale": 0, "is_output": false}),
            json!({"name": "@b", "id": 2, "type": 231, "bytes": 40, "precision": 0, "scale": 0, "is_output": false}),
            json!({"name": "@c", "id": 3, "type": 108, "bytes": 9, "precision": 10, "scale": 2, "is_output": true}),
        ]
    );
}
