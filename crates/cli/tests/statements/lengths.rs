//! What a column keeps: a text that is longer than declared is refused, not cut.

use crate::support::{Place, sql, succeed};

const MAKE: &str = "EXEC sp_attach_db 'app', 'd:\\app.db'
GO
USE app
GO
CREATE TABLE v (id INTEGER PRIMARY KEY, b varchar(5), n nvarchar(4), c char(3), x varbinary(2), i int)
INSERT INTO v VALUES (1, 'abcde', N'l\u{e4}nd', 'abc', 0x0102, 1)";

#[test]
fn a_text_longer_than_its_column_is_refused_and_no_row_changes() {
    let place = Place::new();
    succeed(&place, MAKE);
    for statement in [
        "UPDATE v SET b = REPLACE(b, 'a', 'aa')",
        "UPDATE v SET n = 'longer'",
        "UPDATE v SET c = b",
        "UPDATE v SET x = 0x010203",
        "UPDATE w SET b = b + 'f' FROM v AS w",
        "INSERT INTO v (b) VALUES ('short'), ('longer')",
        "INSERT v (n) SELECT b FROM v",
        "INSERT v (b) EXEC ('SELECT ''longer''')",
    ] {
        let run = sql(&place, &format!("USE app\nGO\n{statement}"));
        assert_eq!(run.numbers(), [2628], "{statement}");
    }
    for statement in [
        "CREATE TABLE #t (b varchar(3)) INSERT #t SELECT b FROM v",
        "DECLARE @t TABLE (b varchar(3)) INSERT @t SELECT b FROM v",
    ] {
        let run = sql(&place, &format!("USE app\nGO\n{statement}"));
        assert_eq!(run.numbers(), [2628], "{statement}");
    }
    let run = succeed(
        &place,
        "USE app\nGO\nSELECT COUNT(*) AS n, MAX(b) AS b, MAX(c) AS c FROM v",
    );
    let row = &run.results()[0][0];
    assert_eq!(
        (row["n"].as_i64(), row["b"].as_str()),
        (Some(1), Some("abcde"))
    );
    assert_eq!(row["c"].as_str(), Some("abc"));
}

#[test]
fn a_column_of_whole_numbers_keeps_whole_numbers_and_what_fits_is_kept() {
    let place = Place::new();
    succeed(&place, MAKE);
    let refused = sql(&place, "USE app\nGO\nUPDATE v SET i = 'abc'");
    assert_eq!(refused.numbers(), [245]);
    // Blanks at the end are cut, CAST cuts, and a value that is only handed on stays as it is.
    let run = succeed(
        &place,
        "USE app
GO
UPDATE v SET i = 2.9, b = 'abcde   ', n = CAST('longer' AS nvarchar(4))
SELECT i, DATALENGTH(b) AS length, n FROM v
SELECT typeof(i) AS kind FROM v
CREATE TABLE w (b varchar(5))
INSERT INTO w SELECT b FROM v",
    );
    let results = run.results();
    assert_eq!(results[0][0]["i"], 2);
    assert_eq!(results[0][0]["length"], 5);
    assert_eq!(results[0][0]["n"], "long");
    assert_eq!(results[1][0]["kind"], "integer");
}

#[test]
fn a_text_in_a_column_of_floats_is_refused_and_never_counts_as_0() {
    let place = Place::new();
    succeed(&place, MAKE);
    succeed(
        &place,
        "USE app\nGO\nCREATE TABLE r (a INTEGER PRIMARY KEY, f REAL)\nINSERT INTO r VALUES (1, 1.5), (2, '2.5')",
    );
    for statement in [
        "INSERT INTO r VALUES (3, 'abc')",
        "UPDATE r SET f = 'abc'",
        "INSERT INTO r (f) EXEC ('SELECT ''abc''')",
    ] {
        let run = sql(&place, &format!("USE app\nGO\n{statement}"));
        assert_eq!(run.numbers(), [8114], "{statement}");
    }
    // Another program can store it.
    succeed(
        &place,
        "USE app\nGO\nINSERT OR REPLACE INTO r VALUES (4, 'abc')",
    );
    for query in [
        "SELECT f + 1 FROM r WHERE a = 4",
        "SELECT SUM(f) FROM r",
        "SELECT AVG(f) FROM r",
        "SELECT a FROM r WHERE f > 1",
    ] {
        let run = sql(&place, &format!("USE app\nGO\n{query}"));
        assert_eq!(run.numbers(), [8114], "{query}");
    }
    let run = succeed(&place, "USE app\nGO\nSELECT SUM(f) AS s FROM r WHERE a < 3");
    assert_eq!(run.results()[0][0]["s"], 4.0);
}
