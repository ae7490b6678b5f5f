//! What is not supported is refused before the first statement of its batch runs.

use crate::support::{Place, rows, sql, succeed};

const ATTACH: &str = "EXEC sp_attach_db 'app', 'd:\\app.db'";

/// Settings that change what a DELETE after them does.
const LIMITS: &[&str] = &[
    "SET ROWCOUNT 1",
    "DECLARE @n int = 1 SET ROWCOUNT @n",
    "SET PARSEONLY ON",
    "SET FMTONLY ON",
    "SET SHOWPLAN_ALL ON",
    "SET SHOWPLAN_TEXT ON",
    "SET DATEFORMAT dmy",
    "SET LANGUAGE British",
    "SET LANGUAGE 'British'",
    "SET DATEFIRST 1",
    "SET CONCAT_NULL_YIELDS_NULL OFF",
    "SET ANSI_NULLS OFF",
    "SET QUOTED_IDENTIFIER, ANSI_WARNINGS OFF",
    "SET ANSI_NULL_DFLT_OFF ON",
    "BEGIN TRY SET ROWCOUNT 1; DELETE FROM t END TRY BEGIN CATCH PRINT 'caught' END CATCH",
    "IF 1 = 1 BEGIN SET ROWCOUNT 1 END",
];

const OTHERS: &[&str] = &[
    "SELECT * INTO made FROM t; EXEC sp_rename 'made', 't'",
    "ALTER DATABASE app SET READ_ONLY",
    "ALTER DATABASE app SET OFFLINE",
    "DBCC SHRINKDATABASE(app)",
    "DBCC TRACEON (1204)",
    "CREATE DATABASE s ON (NAME = app, FILENAME = 'd:\\s.ss') AS SNAPSHOT OF app",
    "EXEC ('SET ROWCOUNT 1')",
    "EXEC ('GRANT SELECT ON t TO x')",
    "EXEC sp_executesql N'EXEC sp_rename ''t'', ''u'''",
];

#[test]
fn a_batch_with_a_setting_that_is_not_followed_runs_nothing_and_its_script_ends() {
    let place = Place::new();
    succeed(&place, ATTACH);
    let instance = place.text("instance");
    for limit in LIMITS {
        let script = format!(
            "USE app\nGO\nDELETE FROM t WHERE id = 1\n{limit}\nDELETE FROM t\nGO\nDELETE FROM t"
        );
        let run = sql(&place, &script);
        assert_eq!(run.numbers(), [50005], "{limit}");
        assert_eq!(run.code, Some(1), "{limit}");
        let message = run.messages().pop().expect("a message");
        assert_eq!(message["severity"], 15, "{limit}");
        assert_eq!(rows(&place.path("app.db")), 400, "{limit}");
        let piped = place.type_in(&["sql", "--instance", &instance], &script);
        assert_eq!(piped.code, Some(1), "{limit}");
        assert_eq!(rows(&place.path("app.db")), 400, "{limit}");
    }
}

#[test]
fn a_batch_with_a_statement_that_is_not_supported_runs_nothing_else_of_it() {
    let place = Place::new();
    succeed(&place, ATTACH);
    for other in OTHERS {
        let run = sql(&place, &format!("USE app\nGO\n{other}\nDELETE FROM t"));
        let numbers = run.numbers();
        let is_refused = [vec![50005], vec![50001]].contains(&numbers);
        assert!(is_refused, "{other}: {numbers:?}");
        assert_eq!(rows(&place.path("app.db")), 400, "{other}");
    }
    for refused in ["SET ROWCOUNT 1", "EXEC sp_rename 't', 'u'"] {
        let run = sql(
            &place,
            &format!("CREATE PROCEDURE p AS {refused} DELETE FROM t"),
        );
        assert_eq!(run.numbers(), [50005]);
    }
    assert_eq!(sql(&place, "EXEC p").numbers(), [2812]);
}

#[test]
fn settings_that_hold_anyway_have_no_effect() {
    let place = Place::new();
    succeed(
        &place,
        "SET ANSI_NULLS, QUOTED_IDENTIFIER, ANSI_PADDING, ANSI_WARNINGS, ARITHABORT, CONCAT_NULL_YIELDS_NULL ON
SET NUMERIC_ROUNDABORT, IMPLICIT_TRANSACTIONS, PARSEONLY, FMTONLY, FORCEPLAN, ANSI_NULL_DFLT_OFF OFF
SET ROWCOUNT 0 SET DATEFIRST 7 SET DATEFORMAT mdy SET LANGUAGE us_english SET LANGUAGE N'us_english'
SET DEADLOCK_PRIORITY NORMAL SET TEXTSIZE 2147483647 SET STATISTICS IO OFF
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    );
}

#[test]
fn noexec_executes_nothing_until_it_is_off() {
    let place = Place::new();
    succeed(&place, ATTACH);
    let run = succeed(
        &place,
        "USE app
GO
IF 1 = 1 SET NOEXEC ON
DELETE FROM t
GO
SELECT 1
DELETE FROM t
IF 1 = 1 SET NOEXEC OFF
DELETE FROM t
SET NOEXEC OFF
DELETE FROM t WHERE id = 1
GO",
    );
    assert!(run.results().is_empty(), "{}", run.out);
    assert_eq!(rows(&place.path("app.db")), 399);
}

#[test]
fn implicit_transactions_begin_with_the_first_change_and_close_cursors() {
    let place = Place::new();
    let run = place.sql(
        "USE app
SET IMPLICIT_TRANSACTIONS, CURSOR_CLOSE_ON_COMMIT ON
SELECT 1
PRINT @@TRANCOUNT
DECLARE c CURSOR FOR SELECT name FROM sys.databases
OPEN c
CREATE TABLE made (a int)
PRINT @@TRANCOUNT
ROLLBACK
BEGIN TRY FETCH NEXT FROM c END TRY BEGIN CATCH PRINT ERROR_NUMBER() END CATCH
PRINT ISNULL(OBJECT_ID('made'), 0)
SET IMPLICIT_TRANSACTIONS OFF
CREATE TABLE made (a int)
PRINT @@TRANCOUNT",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    let printed: Vec<&str> = run
        .err
        .lines()
        .filter(|line| line.parse::<i32>().is_ok())
        .collect();
    assert_eq!(printed, ["0", "1", "16917", "0", "0"], "{}", run.err);
}

#[test]
fn a_misspelt_first_word_is_named_and_not_what_follows_it() {
    let place = Place::new();
    for (batch, meant) in [
        ("BAKUP DATABASE app TO DISK = 'd:\\x.bak'", "BACKUP"),
        ("SELEC * FROM t", "SELECT"),
        ("DELET FROM t", "DELETE"),
        ("UPDAT t SET x = 1", "UPDATE"),
    ] {
        let run = sql(&place, batch);
        assert_eq!(run.code, Some(1), "{batch}");
        let word = batch.split(' ').next().expect("a word");
        let said = format!("Incorrect syntax near '{word}'. Did you mean {meant}?");
        assert!(run.err.contains(&said), "{batch}: {}", run.err);
    }
}

/// Nobody is to be warned of a name that was mistyped once.
#[test]
fn a_file_that_was_never_there_is_not_in_the_history() {
    let place = Place::new();
    succeed(&place, ATTACH);
    let instance = place.text("instance");
    let backup = ["backup", "appp", "--to", "x.bak", "--instance", &instance];
    let run = place.run(&backup);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("Did you mean 'app'"), "{}", run.err);
    let check = place.run(&["check", "--instance", &instance]);
    assert!(!check.out.contains("appp"), "{}", check.out);
}
