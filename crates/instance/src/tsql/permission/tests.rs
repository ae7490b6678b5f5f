//! Every kind of statement, and what it needs.

use windlass_tsql::parser::parse_batch;

use super::*;
use crate::login::Right::{self, Backup, Databases, History, Machine, Server};

const SCENE: Scene<'_> = Scene {
    database: "app",
    login: "ada",
};

const IN_MASTER: Scene<'_> = Scene {
    database: "master",
    ..SCENE
};

fn rights(text: &str, scene: &Scene<'_>) -> Vec<Right> {
    let statements = parse_batch(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut rights: Vec<Right> = needs(&statements[0].node, scene)
        .iter()
        .map(|need| need.right)
        .collect();
    rights.sort();
    rights.dedup();
    rights
}

#[track_caller]
fn check(rows: &[(&str, &[Right])], scene: &Scene<'_>) {
    for (text, expected) in rows {
        assert_eq!(rights(text, scene), *expected, "{text}");
    }
}

#[test]
fn statements_about_databases_and_the_server() {
    check(
        &[
            ("BACKUP DATABASE app TO DISK = 'D:\\a.bak'", &[Backup]),
            ("BACKUP LOG app TO DISK = 'D:\\a.bak'", &[Backup]),
            ("BACKUP SERVER TO DISK = 'D:\\a.bak'", &[Backup]),
            ("RESTORE DATABASE app FROM DISK = 'D:\\a.bak'", &[Databases]),
            ("RESTORE LOG app FROM DISK = 'D:\\a.bak'", &[Databases]),
            ("RESTORE DATABASE app", &[Databases]),
            ("RESTORE VERIFYONLY FROM DISK = 'D:\\a.bak'", &[Backup]),
            ("RESTORE HEADERONLY FROM DISK = 'D:\\a.bak'", &[Backup]),
            ("RESTORE FILELISTONLY FROM DISK = 'D:\\a.bak'", &[Backup]),
            ("RESTORE LABELONLY FROM DISK = 'D:\\a.bak'", &[Backup]),
            ("RESTORE REWINDONLY FROM DISK = 'D:\\a.bak'", &[Backup]),
            ("CREATE DATABASE x", &[Databases]),
            ("DROP DATABASE x, y", &[Databases]),
            ("ALTER DATABASE x SET RECOVERY SIMPLE", &[Databases]),
            ("USE x", &[Databases]),
            ("USE msdb", &[]),
            ("CHECKPOINT", &[Databases]),
            ("DBCC CHECKDB (x)", &[Databases]),
            ("DBCC SQLPERF (LOGSPACE)", &[History]),
            ("DBCC TRACEON (3004)", &[Server]),
            ("DBCC FREEPROCCACHE", &[Server]),
            ("CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'x'", &[Server]),
            ("DROP MASTER KEY", &[Server]),
            ("CREATE CERTIFICATE c WITH SUBJECT = 'x'", &[Server]),
            ("CREATE CREDENTIAL c WITH IDENTITY = 'x'", &[Server]),
            ("ALTER CREDENTIAL c WITH IDENTITY = 'x'", &[Server]),
            ("DROP CREDENTIAL c", &[Server]),
            ("BACKUP CERTIFICATE c TO FILE = 'D:\\c'", &[Server]),
            ("DROP CERTIFICATE c", &[Server]),
            (
                "ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD = OFF",
                &[Server],
            ),
            ("RECONFIGURE", &[Server]),
            ("KILL 51", &[Server]),
            ("CREATE LOGIN bob WITH PASSWORD = 'x'", &[Server]),
            ("DROP LOGIN ada", &[Server]),
            ("ALTER SERVER ROLE sysadmin ADD MEMBER ada", &[Server]),
        ],
        &SCENE,
    );
}

#[test]
fn only_the_own_password_is_changed_without_a_right_and_only_by_who_knows_it() {
    check(
        &[
            (
                "ALTER LOGIN ADA WITH PASSWORD = 'x' OLD_PASSWORD = 'y'",
                &[],
            ),
            ("ALTER LOGIN ada WITH DEFAULT_DATABASE = app", &[]),
            ("ALTER LOGIN ada WITH PASSWORD = 'x'", &[Server]),
            ("ALTER LOGIN ada WITH NAME = root", &[Server]),
            ("ALTER LOGIN ada ENABLE", &[Server]),
            (
                "ALTER LOGIN bob WITH PASSWORD = 'x' OLD_PASSWORD = 'y'",
                &[Server],
            ),
            ("ALTER LOGIN bob DISABLE", &[Server]),
        ],
        &SCENE,
    );
}

#[test]
fn statements_of_a_script_need_nothing_but_what_their_queries_read() {
    check(
        &[
            ("DECLARE @a int = 1", &[]),
            ("DECLARE @a int = (SELECT count(*) FROM t)", &[Databases]),
            ("DECLARE @t TABLE (a int)", &[]),
            ("SET NOCOUNT ON", &[]),
            ("SET @a = @@SPID", &[]),
            (
                "SET @a = (SELECT max(a) FROM msdb.dbo.backupset)",
                &[History],
            ),
            ("PRINT SUSER_SNAME() + 'x'", &[]),
            ("PRINT OBJECT_DEFINITION(1)", &[Databases]),
            ("WAITFOR DELAY '00:00:01'", &[]),
            ("BEGIN TRAN", &[]),
            ("COMMIT", &[]),
            ("BEGIN DROP DATABASE x END", &[]),
            ("IF 1 = 1 DROP DATABASE x", &[]),
            ("IF EXISTS (SELECT * FROM t) DROP DATABASE x", &[Databases]),
            ("WHILE 1 IN (SELECT a FROM t) BREAK", &[Databases]),
            ("BREAK", &[]),
            ("CONTINUE", &[]),
            ("RETURN", &[]),
            ("RETURN (SELECT 1 FROM t)", &[Databases]),
            ("here:", &[]),
            ("GOTO here", &[]),
            (
                "BEGIN TRY DROP DATABASE x END TRY BEGIN CATCH END CATCH",
                &[],
            ),
            ("THROW", &[]),
            ("RAISERROR ('x', 16, 1)", &[]),
            ("EXEC ('DROP DATABASE x')", &[]),
            ("DECLARE c CURSOR FOR SELECT * FROM t", &[Databases]),
            ("DECLARE c CURSOR FOR SELECT 1", &[]),
            ("OPEN c", &[]),
            ("FETCH NEXT FROM c", &[]),
            ("CLOSE c", &[]),
            ("DEALLOCATE c", &[]),
            ("CREATE PROCEDURE p AS SELECT 1", &[Databases]),
            ("DROP PROCEDURE p", &[Databases]),
            ("DROP PROCEDURE master..p", &[Server]),
        ],
        &SCENE,
    );
    check(&[("CREATE PROCEDURE p AS SELECT 1", &[Server])], &IN_MASTER);
}

#[test]
fn queries_and_changes_need_what_their_tables_do() {
    check(
        &[
            ("SELECT 1, @@VERSION, SERVERPROPERTY('x')", &[]),
            ("SELECT * FROM t", &[Databases]),
            (
                "SELECT * FROM dbo.t AS x JOIN #own AS y ON 1 = 1",
                &[Databases],
            ),
            ("SELECT * FROM #own", &[]),
            ("SELECT * FROM tempdb..own", &[]),
            ("SELECT * FROM @own", &[]),
            ("SELECT * FROM sys.databases", &[History]),
            ("SELECT * FROM tempdb.sys.objects", &[History]),
            ("SELECT * FROM msdb..backupset", &[History]),
            ("SELECT * FROM other.dbo.t", &[Databases]),
            ("SELECT * FROM STRING_SPLIT('a', ',')", &[]),
            ("SELECT * FROM json_each('[]')", &[Databases]),
            ("SELECT 1 ORDER BY (SELECT max(a) FROM t)", &[Databases]),
            ("SELECT TOP ((SELECT 1 FROM t)) 1", &[Databases]),
            (
                "SELECT CASE WHEN EXISTS (SELECT 1 FROM t) THEN 1 END",
                &[Databases],
            ),
            (
                "SELECT (SELECT x.a FROM (SELECT a FROM t) AS x)",
                &[Databases],
            ),
            ("SELECT 1 UNION ALL SELECT a FROM t", &[Databases]),
            (
                "SELECT count(*) OVER (PARTITION BY (SELECT 1 FROM t))",
                &[Databases],
            ),
            ("SELECT 1 INTO #own", &[]),
            ("SELECT 1 AS a INTO t", &[Databases]),
            (
                "INSERT INTO #own VALUES ((SELECT max(a) FROM sys.objects))",
                &[History],
            ),
            ("INSERT INTO t VALUES (1)", &[Databases]),
            ("INSERT INTO #own EXEC sp_configure", &[History]),
            ("INSERT INTO #own EXEC xp_delete_file 0, 'D:\\'", &[Server]),
            ("UPDATE t SET a = 1", &[Databases]),
            ("UPDATE o SET a = 1 FROM #own AS o", &[]),
            ("UPDATE #own SET a = (SELECT 1 FROM t)", &[Databases]),
            ("DELETE FROM t", &[Databases]),
            (
                "DELETE FROM #own WHERE a IN (SELECT a FROM msdb.dbo.backupset)",
                &[History],
            ),
            ("CREATE TABLE #own (a int)", &[]),
            ("CREATE TABLE t (a int)", &[Databases]),
            ("DROP TABLE #own", &[]),
            ("DROP TABLE #own, t", &[Databases]),
            ("TRUNCATE TABLE t", &[Databases]),
            ("PRAGMA user_version", &[Databases]),
            ("CREATE VIEW v AS SELECT 1", &[Databases]),
        ],
        &SCENE,
    );
    check(
        &[
            ("SELECT * FROM sysdatabases", &[History]),
            ("SELECT * FROM own_login", &[History]),
            ("INSERT INTO t VALUES (1)", &[Server]),
            ("SELECT * FROM app.dbo.t", &[Databases]),
            ("DELETE FROM msdb.dbo.backupset", &[Server]),
            ("ATTACH '/x' AS x", &[Databases]),
        ],
        &IN_MASTER,
    );
}

#[test]
fn a_common_table_hides_a_table_only_where_it_is_in_scope() {
    check(
        &[
            ("WITH t AS (SELECT 1 AS a) SELECT * FROM t", &[]),
            (
                "WITH n AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM n WHERE a < 9) SELECT * FROM n",
                &[],
            ),
            ("WITH t AS (SELECT * FROM t) SELECT * FROM t", &[Databases]),
            (
                "WITH t AS (SELECT a FROM t UNION ALL SELECT 1) SELECT * FROM t",
                &[Databases],
            ),
            (
                "SELECT * FROM t, (SELECT 1 AS b WHERE 1 IN (SELECT 1)) AS x",
                &[Databases],
            ),
            (
                "WITH t AS (SELECT 1 AS a) SELECT * FROM dbo.t",
                &[Databases],
            ),
            (
                "WITH t AS (SELECT 1 AS a) INSERT INTO t SELECT * FROM t",
                &[Databases],
            ),
        ],
        &SCENE,
    );
}

#[test]
fn procedures_of_the_server_need_what_they_do() {
    check(
        &[
            ("EXEC sp_executesql N'DROP DATABASE x'", &[]),
            ("EXEC own_procedure", &[]),
            ("EXEC other.dbo.own_procedure", &[Databases]),
            (
                "EXEC msdb.dbo.sp_delete_backuphistory '2020-01-01'",
                &[Server],
            ),
            ("EXEC sp_configure", &[History]),
            ("EXEC sp_configure 'recovery interval'", &[History]),
            ("EXEC sp_configure 'recovery interval', 1", &[Server]),
            ("EXEC sp_windlass_drive", &[History]),
            ("EXEC sp_windlass_drive 'd', '/x'", &[Machine]),
            ("EXEC sp_windlass_export 'app', '/x'", &[Machine]),
            ("EXEC sp_windlass_remote_folder '/x'", &[Machine]),
            ("EXEC sp_windlass_restore_folder '/x'", &[Machine]),
            ("EXEC xp_dirtree 'D:\\'", &[Databases]),
            (
                "EXEC sqlbackup '-SQL \"BACKUP DATABASE x TO DISK = ''x''\"'",
                &[Server],
            ),
            ("EXEC xp_cmdshell 'rm'", &[Server]),
        ],
        &SCENE,
    );
}

#[test]
fn a_refusal_says_what_sql_server_says() {
    let first = |text: &str, scene: &Scene<'_>| {
        let statements = parse_batch(text).unwrap();
        let need = needs(&statements[0].node, scene)
            .into_iter()
            .next()
            .unwrap();
        let failure = need.refusal();
        let numbers: Vec<u32> = failure.messages.iter().map(|one| one.number).collect();
        (numbers, failure.messages[0].text.clone(), failure.batch)
    };
    let (numbers, text, batch) = first("BACKUP DATABASE app TO DISK = 'a'", &SCENE);
    assert_eq!(numbers, [262, 3013]);
    assert_eq!(text, "BACKUP DATABASE permission denied in database 'app'.");
    assert_eq!(batch, AfterFailure::Continues);
    let (numbers, text, batch) = first("USE other", &SCENE);
    assert_eq!(
        (numbers.as_slice(), batch),
        (&[916][..], AfterFailure::Ends)
    );
    assert!(
        text.contains("\"ada\"") && text.contains("\"other\""),
        "{text}"
    );
    let (numbers, text, _) = first("SELECT * FROM msdb.dbo.backupset", &SCENE);
    assert_eq!(numbers, [229]);
    assert_eq!(
        text,
        "The SELECT permission was denied on the object 'backupset', database 'msdb', schema 'dbo'."
    );
    let (numbers, ..) = first("SELECT * FROM sys.dm_exec_requests", &SCENE);
    assert_eq!(numbers, [300]);
    let (numbers, ..) = first("RESTORE DATABASE app FROM DISK = 'a'", &SCENE);
    assert_eq!(numbers, [3110, 3013]);
    let (numbers, ..) = first("CREATE LOGIN x WITH PASSWORD = 'y'", &SCENE);
    assert_eq!(numbers, [15247]);
    let (numbers, ..) = first("ALTER LOGIN x DISABLE", &SCENE);
    assert_eq!(numbers, [15151]);
    let (numbers, ..) = first("EXEC sp_windlass_drive 'd', '/'", &SCENE);
    assert_eq!(numbers, [50211]);
}
