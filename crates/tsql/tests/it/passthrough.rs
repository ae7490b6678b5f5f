//! Pass-through SQL: complete, verbatim, and ended at the right place.

use windlass_tsql::ast::Statement;

use crate::{parsed, refused};

/// The first words of each statement, with `sql:` before pass-through ones.
fn outline(text: &str) -> Vec<String> {
    parsed(text)
        .iter()
        .map(|statement| match &statement.node {
            Statement::Sql(sql) => format!("sql:{}", sql.text.replace('\n', "|")),
            other => other.to_string(),
        })
        .collect()
}

#[test]
fn semicolons_end_statements_but_not_inside_parentheses_strings_or_triggers() {
    assert_eq!(
        outline("SELECT ';' AS [;]; SELECT 2;"),
        ["sql:SELECT ';' AS [;]", "sql:SELECT 2"]
    );
    let trigger = "CREATE TEMP TRIGGER t AFTER\nUPDATE OF a ON x\nWHEN new.a > 0\nBEGIN\n\
                   UPDATE x SET b = CASE WHEN a THEN 1 ELSE 2 END;\nDELETE FROM y;\nEND";
    let statements = outline(&format!("{trigger};\nSELECT 1"));
    assert_eq!(
        statements,
        [
            format!("sql:{}", trigger.replace('\n', "|")),
            "sql:SELECT 1".to_owned()
        ]
    );
    assert_eq!(outline(&format!("{trigger}\nPRINT 1")).len(), 2);
}

#[test]
fn a_line_that_begins_with_a_statement_of_ours_ends_the_one_before() {
    let text = "SELECT *\nFROM t\nWHERE a = 1\nBACKUP DATABASE x TO d\nSELECT 1\nUSE y\nSELECT 2\n\
                PRINT 'p' SELECT 3\nSET @a = 1\nSELECT 4\nset nocount on\nSELECT 5\nEXEC sp_x";
    assert_eq!(
        outline(text),
        [
            "sql:SELECT *|FROM t|WHERE a = 1",
            "BACKUP DATABASE x TO d",
            "sql:SELECT 1",
            "USE y",
            "sql:SELECT 2",
            "PRINT 'p'",
            "sql:SELECT 3",
            "SET @a = 1",
            "sql:SELECT 4",
            "SET NOCOUNT ON",
            "sql:SELECT 5",
            "EXECUTE sp_x",
        ]
    );
}

#[test]
fn statements_of_several_parts_stay_whole() {
    for whole in [
        "INSERT INTO t (a, b)\nSELECT 1, 2",
        "INSERT INTO t\nDEFAULT VALUES",
        "INSERT INTO t\nVALUES (1),\n(2)",
        "INSERT OR\nREPLACE INTO t\nSELECT 1",
        "INSERT INTO t\nSELECT 1\nWHERE 1 = 1\nON CONFLICT (a) DO\nUPDATE SET a = 1",
        "INSERT INTO t\nWITH c AS (SELECT 1)\nSELECT * FROM c",
        "WITH c AS (\nSELECT 1\n), d AS (SELECT 2)\nSELECT *\nFROM c",
        "WITH c AS (SELECT 1)\nINSERT INTO t\nSELECT * FROM c",
        "WITH c AS (SELECT 1)\nDELETE FROM t",
        "SELECT 1\nUNION ALL\nSELECT 2\nEXCEPT\nSELECT 3",
        "SELECT TOP (5) PERCENT a.*, b = [c d], x y FROM dbo.t a (NOLOCK) LEFT JOIN u ON a.x = u.x",
        "SELECT a FROM t ORDER BY a OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY",
        "INSERT INTO #t\nEXEC sp_helpdb",
        "UPDATE t\nSET a = 1,\nb = 2\nWHERE c = 3",
        "CREATE VIEW v AS\nSELECT 1",
        "CREATE TABLE t AS\nWITH c AS (SELECT 1)\nSELECT * FROM c",
        "CREATE TABLE t (\na int,\nupdate_at text,\nFOREIGN KEY (a) REFERENCES u ON\nDELETE CASCADE\n)",
        "CREATE TABLE\nIF NOT EXISTS t (a)",
        "DROP TABLE\nIF EXISTS t",
        "ALTER TABLE t\nDROP COLUMN a",
        "SELECT CASE a\nWHEN 1 THEN 2\nELSE 3\nEND\nFROM t",
        "EXPLAIN QUERY PLAN\nSELECT 1",
        "SELECT a,\nreplace(b, 'x', 'y')\nFROM t",
        "PRAGMA user_version = 5",
        "VACUUM INTO 'x'",
    ] {
        assert_eq!(
            outline(whole),
            [format!("sql:{}", whole.replace('\n', "|"))]
        );
    }
}

#[test]
fn statements_on_their_own_lines_need_no_semicolon() {
    for (text, count) in [
        ("SELECT 1\nSELECT 2\nSELECT 3", 3),
        (
            "CREATE TABLE t (a int)\nINSERT INTO t VALUES (1)\nINSERT INTO t SELECT 2\nSELECT * FROM t",
            4,
        ),
        ("INSERT INTO t DEFAULT VALUES\nSELECT 1", 2),
        (
            "UPDATE t SET a = 1\nDELETE FROM t\nDROP TABLE t\nCREATE TABLE u (a)\nREPLACE INTO u VALUES (1)",
            5,
        ),
        ("WITH c AS (SELECT 1)\nSELECT * FROM c\nSELECT 2", 2),
        ("PRAGMA a\nPRAGMA b", 2),
    ] {
        assert_eq!(outline(text).len(), count, "{text}");
    }
}

#[test]
fn comments_inside_are_kept_and_around_are_not() {
    assert_eq!(
        outline("-- before\nSELECT 1 -- one\n, 2 /* two */ -- after\n;"),
        ["sql:SELECT 1 -- one|, 2"]
    );
}

#[test]
fn what_does_not_close_is_refused() {
    assert_eq!(refused("SELECT (1\nPRINT 1").number, 156);
    assert_eq!(
        refused("SELECT (1; SELECT 2)").text,
        "Incorrect syntax near ';'."
    );
    assert_eq!(refused("SELECT CASE WHEN 1 = 1 THEN 2").number, 102);
    assert_eq!(refused("SELECT CASE WHEN 1 THEN 2 END").number, 4145);
    assert_eq!(
        refused("CREATE TRIGGER t AFTER INSERT ON x BEGIN SELECT 1;").number,
        102
    );
}
