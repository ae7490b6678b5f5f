//! Stored procedures: created, called, changed, shown, dropped.

use crate::support::{Place, Run, sql, succeed};

const ADD: &str = "
CREATE PROCEDURE dbo.Add_Up @a int, @b int = 10, @sum int = NULL OUTPUT AS
SET NOCOUNT ON
SET @sum = @a + @b
IF @sum > 100 RETURN 1
RETURN -5
GO
";

fn prints(run: &Run) -> Vec<String> {
    let messages = run.messages().into_iter();
    let plain = messages.filter(|message| message["number"] == 0);
    plain
        .map(|message| message["text"].as_str().unwrap_or("").to_owned())
        .collect()
}

#[test]
fn a_procedure_takes_arguments_by_place_and_name_and_gives_results_and_a_code() {
    let place = Place::new();
    let run = succeed(
        &place,
        &format!(
            "{ADD}DECLARE @s int, @rc int
EXEC @rc = Add_Up 1, 2, @s OUTPUT PRINT CONCAT(@rc, ' ', @s)
EXEC @rc = dbo.add_up @sum = @s OUT, @a = 95 PRINT CONCAT(@rc, ' ', @s)
EXEC Add_Up '7', DEFAULT, @s OUTPUT PRINT @s
EXEC Add_Up 1, 2, @s PRINT @s"
        ),
    );
    assert_eq!(prints(&run), ["-5 3", "1 105", "17", "17"]);
    // It is in the catalog: another run finds it.
    let run = succeed(
        &place,
        "DECLARE @s int EXEC Add_Up 1, 1, @s OUTPUT PRINT @s",
    );
    assert_eq!(prints(&run), ["2"]);
}

#[test]
fn a_call_that_does_not_fit_the_parameters_is_refused() {
    let place = Place::new();
    succeed(&place, ADD);
    for (call, number) in [
        ("EXEC Add_Up", 201),
        ("EXEC Add_Up 1, 2, 3, 4", 8144),
        ("EXEC Add_Up @c = 1", 8145),
        ("EXEC Add_Up @a = 1, 2", 119),
        ("EXEC Add_Up 1, @a = 1", 8143),
        ("EXEC Add_Up 'x'", 8114),
        ("EXEC Add_Up 1, 2, 3 OUTPUT", 179),
        ("DECLARE @x int EXEC Add_Up @x OUTPUT", 8162),
        ("EXEC other.Add_Up 1", 2812),
        ("EXEC nosuch", 2812),
    ] {
        assert_eq!(sql(&place, call).numbers(), [number], "{call}");
    }
}

#[test]
fn a_procedure_is_created_changed_and_dropped_once() {
    let place = Place::new();
    for (text, numbers) in [
        ("CREATE PROC p AS PRINT 1", &[][..]),
        ("CREATE PROC P AS PRINT 2", &[2714]),
        ("ALTER PROC p AS PRINT 3", &[]),
        ("ALTER PROC q AS PRINT 4", &[208]),
        ("CREATE OR ALTER PROC q AS PRINT 5", &[]),
        ("CREATE OR ALTER PROC q AS PRINT 6", &[]),
        ("PRINT 1 CREATE PROC r AS PRINT 1", &[111]),
        ("IF 1 = 1 CREATE PROC r AS PRINT 1", &[156]),
        ("CREATE PROC r AS USE master", &[154]),
        ("CREATE PROC x.r AS PRINT 1", &[2760]),
        ("CREATE PROC master.dbo.r AS PRINT 1", &[166]),
        ("CREATE PROC r @a int, @A int AS PRINT 1", &[134]),
        ("CREATE PROC r WITH ENCRYPTION AS PRINT 1", &[50005]),
        ("CREATE PROC r AS SELECT FROM", &[156]),
        ("CREATE PROC stub AS", &[]),
        ("EXEC stub", &[]),
        (
            "CREATE PROC late WITH RECOMPILE AS SELECT * FROM nosuch",
            &[],
        ),
        ("EXEC late", &[208]),
        ("DROP PROC p, q, stub, late", &[]),
        ("DROP PROCEDURE p", &[3701]),
        ("DROP PROCEDURE IF EXISTS p", &[]),
        ("EXEC p", &[2812]),
    ] {
        assert_eq!(sql(&place, text).numbers(), numbers, "{text}");
    }
}

#[test]
fn an_error_within_a_procedure_names_it_and_the_line() {
    let place = Place::new();
    succeed(
        &place,
        "CREATE PROC inside AS\nPRINT 'before'\nSELECT 1 / 0 AS x\nPRINT 'after'\nGO
CREATE PROC outside AS\nEXEC inside\nGO",
    );
    let run = succeed(
        &place,
        "BEGIN TRY EXEC outside END TRY BEGIN CATCH
             SELECT ERROR_PROCEDURE() AS p, ERROR_LINE() AS l, ERROR_NUMBER() AS n END CATCH",
    );
    let row = &run.results()[1][0];
    assert_eq!(
        (&row["p"], &row["l"], &row["n"]),
        (&"inside".into(), &3.into(), &8134.into())
    );
    // Outside of TRY the procedure goes on, and its code tells of the error.
    let run = sql(&place, "DECLARE @rc int EXEC @rc = inside PRINT @rc");
    assert_eq!(prints(&run), ["before", "after", "-6"]);
    let error = run
        .messages()
        .into_iter()
        .find(|message| message["number"] == 8134);
    let error = error.expect("the error");
    assert_eq!(
        (&error["procedure"], &error["line"]),
        (&"inside".into(), &3.into())
    );
    let plain = place.run(&[
        "sql",
        "-Q",
        "EXEC inside",
        "--instance",
        &place.text("instance"),
    ]);
    assert!(
        plain.err.contains("State 1, Procedure inside, Line 3"),
        "{}",
        plain.err
    );
}

#[test]
fn what_a_procedure_makes_ends_with_it_and_recursion_is_bounded() {
    let place = Place::new();
    let run = succeed(
        &place,
        "CREATE PROC own AS
DECLARE @t TABLE (a int) CREATE TABLE #t (a int) INSERT #t VALUES (1)
DECLARE c CURSOR LOCAL FOR SELECT a FROM #t OPEN c
GO
EXEC own
EXEC own
IF OBJECT_ID('tempdb..#t') IS NULL PRINT 'gone'
GO
CREATE PROC deep AS EXEC deep
GO",
    );
    assert_eq!(prints(&run), ["gone"]);
    assert_eq!(sql(&place, "EXEC deep").numbers(), [217]);
    succeed(&place, "CREATE PROC open_ended AS BEGIN TRAN");
    assert_eq!(sql(&place, "EXEC open_ended ROLLBACK").numbers(), [266]);
}

#[test]
fn procedures_are_listed_with_their_text_and_belong_to_one_database() {
    let place = Place::new();
    let text = "-- Why it exists.\nCREATE PROC p AS\nPRINT 'p'";
    let run = succeed(
        &place,
        &format!(
            "{text}\nGO
SELECT name, type_desc FROM sys.procedures
SELECT definition FROM sys.sql_modules WHERE object_id = OBJECT_ID('dbo.p', 'P')
PRINT OBJECT_DEFINITION(OBJECT_ID('p'))
PRINT OBJECT_NAME(OBJECT_ID('p'))
EXEC sp_helptext 'p'
IF OBJECT_ID('p', 'U') IS NULL PRINT 'no table'
GO
CREATE PROC sp_everywhere AS PRINT DB_NAME()
GO
USE msdb
SELECT name FROM sys.procedures
EXEC sp_everywhere
EXEC master.dbo.p"
        ),
    );
    let results = run.results();
    assert_eq!(results[0][0]["name"], "p");
    assert_eq!(results[0][0]["type_desc"], "SQL_STORED_PROCEDURE");
    assert_eq!(results[1][0]["definition"], text);
    let lines: Vec<_> = (0..3).map(|row| results[2][row]["Text"].clone()).collect();
    assert_eq!(
        lines,
        ["-- Why it exists.", "CREATE PROC p AS", "PRINT 'p'"]
    );
    assert_eq!(results[3].as_array().map(Vec::len), Some(0));
    assert_eq!(prints(&run), [text, "p", "no table", "msdb", "p"]);
    assert_eq!(sql(&place, "EXEC sp_helptext 'nosuch'").numbers(), [15009]);
}
