//! The scripting layer: variables, PRINT, USE, GO, other SQL.

use crate::support::{Place, rows};

#[test]
fn variables_live_in_their_batch() {
    let place = Place::new();
    let run = place.sql("DECLARE @a int = 2, @b nvarchar(3) = N'abcdef'\nSET @a += 3\nPRINT @a\nPRINT @b\nGO\nPRINT @a");
    assert_eq!(run.code, Some(1));
    assert!(
        run.err
            .starts_with("5\nabc\nMsg 137, Level 15, State 1, Line 6\n"),
        "{}",
        run.err
    );
    let run = place.sql("DECLARE @a int\nDECLARE @A int");
    assert!(run.err.contains("Msg 134"), "{}", run.err);
}

#[test]
fn go_repeats_and_the_script_goes_on_after_an_error() {
    let place = Place::new();
    let run = place.sql("PRINT 'x'\nGO 3\nPRINT 1/0\nPRINT 'after'\nGO\nPRINT 'last'");
    assert_eq!(run.code, Some(1));
    assert_eq!(
        run.err,
        "x\nx\nx\nMsg 8134, Level 16, State 1, Line 3\nDivide by zero error encountered.\nafter\nlast\n"
    );
    let run = place.sql_with(&["-b"], "PRINT 1/0\nGO\nPRINT 'never'");
    assert!(!run.err.contains("never"), "-b stops at the first error");
}

#[test]
fn a_batch_with_a_syntax_error_runs_nothing() {
    let place = Place::new();
    let run = place.sql("PRINT 'not this'\nBACKUP DATABASE\nGO\nPRINT 'but this'");
    assert!(!run.err.contains("not this"), "{}", run.err);
    assert!(run.err.contains("but this"), "{}", run.err);
}

#[test]
fn a_failed_use_ends_its_batch_before_harm_is_done() {
    let place = Place::new();
    place.sql("USE app\nGO\nUSE nosuch\nDELETE FROM t\nGO");
    assert_eq!(rows(&place.path("app.db")), 400);
}

#[test]
fn other_sql_runs_on_the_current_database() {
    let place = Place::new();
    let run = place.sql_with(
        &["--json"],
        "USE app
         DECLARE @id int = 7
         SELECT id, length(body) AS [len], N'x' AS x FROM t WHERE id = @id
         DELETE FROM t WHERE id > 100
         PRINT @@ROWCOUNT
         SELECT count(*) AS n FROM t
         SELECT LEN('abc ') AS l, LEFT('abc', 2) AS f, ISNULL(NULL, 4) AS i, DB_NAME() AS d, @@ROWCOUNT AS r",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    let results = run.results();
    assert_eq!(results[0][0]["id"], 7);
    assert_eq!(results[0][0]["x"], "x");
    assert_eq!(results[1][0]["n"], 100);
    assert_eq!(results[2][0]["l"], 3);
    assert_eq!(results[2][0]["f"], "ab");
    assert_eq!(results[2][0]["i"], 4);
    assert_eq!(results[2][0]["d"], "app");
    assert_eq!(results[2][0]["r"], 1);
    assert!(
        run.messages()
            .iter()
            .any(|message| message["text"] == "300"),
        "{}",
        run.err
    );
    assert_eq!(rows(&place.path("app.db")), 100, "committed");
}

#[test]
fn a_variable_is_set_by_a_query() {
    let place = Place::new();
    let run = place.sql(
        "USE app\nDECLARE @n int, @path nvarchar(260)\nSET @n = (SELECT count(*) FROM t WHERE id < 11)\nPRINT @n\n\
         SET @path = (SELECT physical_name FROM sys.master_files WHERE name = 'other')\nPRINT @path",
    );
    assert!(
        run.err
            .ends_with(&format!("10\n{}\n", place.text("other.db"))),
        "{}",
        run.err
    );
    let run = place.sql("DECLARE @n int\nSELECT @n = 1\nPRINT @n");
    assert_eq!(run.err, "1\n");
}

#[test]
fn a_transaction_ends_as_it_is_told_to() {
    let place = Place::new();
    let run = place.sql(
        "USE app\nBEGIN TRAN\nDELETE FROM t WHERE id > 10\nROLLBACK\n\
         BEGIN TRANSACTION\nBEGIN TRAN\nDELETE FROM t WHERE id > 300\nCOMMIT\nPRINT @@TRANCOUNT\nCOMMIT\nCOMMIT",
    );
    assert!(run.err.contains("\n1\n"), "{}", run.err);
    assert!(run.err.contains("Msg 3902"), "{}", run.err);
    assert_eq!(rows(&place.path("app.db")), 300);
    let run = place.sql("USE app\nBEGIN TRAN\nDELETE FROM t");
    assert!(run.err.contains("rolled back"), "{}", run.err);
    assert_eq!(rows(&place.path("app.db")), 300);
}

#[test]
fn nothing_is_stored_where_it_would_be_lost() {
    let place = Place::new();
    let run = place.sql("CREATE TABLE x (a)");
    assert!(
        run.err.contains("there is no current database"),
        "{}",
        run.err
    );
    let run = place.sql("DELETE FROM msdb.dbo.backupset");
    assert_eq!(run.code, Some(1), "the history is read-only: {}", run.err);
}

#[test]
fn the_catalog_can_be_asked() {
    let place = Place::new();
    let run = place.sql_with(
        &["--json"],
        "BACKUP DATABASE app TO DISK = 'd:\\h.bak' WITH NAME = 'h', COMPRESSION (ALGORITHM = ZSTD, LEVEL = HIGH)
         SELECT name, state_desc FROM sys.databases WHERE database_id > 4 ORDER BY name
         SELECT s.database_name, s.type, s.name, s.compression_algorithm, s.compression_level,
                m.physical_device_name
         FROM msdb.dbo.backupset AS s JOIN msdb.dbo.backupmediafamily AS m ON m.media_set_id = s.media_set_id
         SELECT logical_name FROM [msdb].[dbo].[backupfile]
         EXEC sp_helpdb 'app'",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    let results = run.results();
    assert_eq!(results[0][1]["name"], "other");
    assert_eq!(results[1][0]["type"], "D");
    assert_eq!(results[1][0]["compression_level"], "HIGH");
    assert_eq!(results[1][0]["physical_device_name"], place.text("h.bak"));
    assert_eq!(results[2][0]["logical_name"], "app");
    assert_eq!(results[3][0]["dbid"], 5);
    assert_eq!(results[4][0]["usage"], "data only");
}

#[test]
fn dynamic_sql_has_variables_of_its_own() {
    let place = Place::new();
    let run = place.sql(
        "DECLARE @sql nvarchar(max) = N'DECLARE @x int = 1; PRINT @x; PRINT @sql'\n\
         EXEC sp_executesql @sql\nPRINT 'after'",
    );
    assert!(run.err.contains("1\nMsg 137"), "{}", run.err);
    assert!(run.err.ends_with("after\n"), "{}", run.err);
    let run = place.sql("EXEC sp_executesql N'EXEC sp_executesql @stmt = N''PRINT 5'''");
    assert_eq!(run.err, "5\n");
}

#[test]
fn scripts_saved_by_windows_are_read() {
    let place = Place::new();
    let text: Vec<u8> = "\u{feff}PRINT 'ä'\r\nGO\r\nPRINT 2\r\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    std::fs::write(place.path("wide.sql"), text).expect("the script");
    let run = place.succeed(&["sql", "-i", "wide.sql"]);
    assert_eq!(run.err, "ä\n2\n");
}

#[test]
fn tables_are_aligned_and_rows_counted() {
    let place = Place::new();
    let run = place.sql("SELECT 1 AS a, 'x' AS bb UNION ALL SELECT 100, 'yyy'");
    assert_eq!(run.out, "  a bb\n--- ---\n  1 x\n100 yyy\n");
    assert_eq!(run.err, "(2 rows affected)\n");
    let run = place.sql_with(&["--vertical"], "SELECT 1 AS a, 'x' AS bb");
    assert_eq!(run.out, "a   1\nbb  x\n");
}

#[test]
fn a_part_of_a_date_is_a_bare_word() {
    let place = Place::new();
    let run = place.sql(
        "DECLARE @d datetime = DATEADD(day, -2, '2026-03-01T10:00:00')\n\
         PRINT CONVERT(varchar(10), @d, 120)\n\
         PRINT DATEPART(month, @d)\n\
         PRINT DATEDIFF(hour, @d, '2026-03-01T10:00:00')",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    let said: Vec<&str> = run.err.lines().map(str::trim).collect();
    assert_eq!(said, ["2026-02-27", "2", "48"]);
}

/// The rows before the error are printed, and the array is closed.
#[test]
fn a_query_that_fails_after_some_rows_leaves_whole_json() {
    let place = Place::new();
    let script = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5)
SELECT CASE i WHEN 3 THEN 1 / (i - 3) ELSE i END AS i FROM n
GO
SELECT 7 AS i";
    let run = place.sql_with(&["--json"], script);
    assert_eq!(run.code, Some(1), "{}", run.err);
    let results = run.results();
    assert_eq!(results.len(), 2, "{}", run.out);
    assert_eq!(results[0].as_array().map(Vec::len), Some(2), "{}", run.out);
    assert_eq!(results[1][0]["i"], 7);
}

/// What a job does: a cursor, a table of results, errors that do not end it.
#[test]
fn a_nightly_job_backs_up_every_database_and_goes_on_after_an_error() {
    let place = Place::new();
    let run = place.sql(
        "DECLARE @log TABLE (db sysname, outcome nvarchar(200))
DECLARE @name sysname, @path nvarchar(260), @message nvarchar(200)
DECLARE dbs CURSOR LOCAL FAST_FORWARD FOR
    SELECT name FROM sys.databases WHERE database_id > 4 ORDER BY name
OPEN dbs
FETCH NEXT FROM dbs INTO @name
WHILE @@FETCH_STATUS = 0
BEGIN
    SET @path = N'd:\\' + @name + N'_' + CONVERT(char(8), GETDATE(), 112) + N'.bak'
    IF @name = 'OTHER' SET @path = N'q:\\nowhere.bak'
    BEGIN TRY
        BACKUP DATABASE @name TO DISK = @path WITH INIT, CHECKSUM
        INSERT INTO @log VALUES (@name, 'kept')
    END TRY
    BEGIN CATCH
        SET @message = CAST(ERROR_NUMBER() AS varchar(10))
        RAISERROR('%s: %s', 10, 1, @name, @message) WITH NOWAIT
        INSERT INTO @log VALUES (@name, 'failed')
    END CATCH
    FETCH NEXT FROM dbs INTO @name
END
CLOSE dbs
DEALLOCATE dbs
SELECT db, outcome FROM @log ORDER BY db
IF EXISTS (SELECT * FROM @log WHERE outcome = 'failed') RAISERROR('not all were kept', 16, 1)",
    );
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(
        run.out.ends_with("app   kept\nother failed\n"),
        "{}",
        run.out
    );
    assert!(run.err.contains("other: 3013"), "{}", run.err);
    assert!(
        run.err.contains("Msg 50000, Level 16, State 1"),
        "{}",
        run.err
    );
}

#[test]
fn a_loop_ends_when_it_is_cancelled_by_its_own_error() {
    let place = Place::new();
    let run = place.sql("SET XACT_ABORT ON\nWHILE 1 = 1 PRINT 1 / 0\nGO\nPRINT 'next'");
    assert!(
        run.err.starts_with("Msg 8134, Level 16, State 1, Line 2"),
        "{}",
        run.err
    );
    assert!(run.err.ends_with("next\n"), "{}", run.err);
}
