use super::translate;

fn becomes(sql: &str, expected: &str) {
    assert_eq!(translate(sql).unwrap(), expected);
}

#[test]
fn what_both_understand_stays_byte_for_byte() {
    for sql in [
        "SELECT a, b -- c\n FROM t WHERE x = 1 + 2 AND y - 3 > -4",
        "WITH c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT * FROM c",
        "SELECT CAST(a AS INTEGER), top, format('%d', x) FROM t",
        "CREATE TABLE t (a TEXT DEFAULT ('x' + 'y'))",
        "UPDATE t SET a = a + 1 WHERE b = 'x'",
        "SELECT ((1)",
        "INSERT INTO t VALUES (1, -2, 'a')",
    ] {
        becomes(sql, sql);
    }
}

#[test]
fn top_becomes_a_limit() {
    becomes(
        "SELECT TOP 5 a FROM t ORDER BY a",
        "SELECT a FROM t ORDER BY a LIMIT 5",
    );
    becomes("SELECT TOP (@n) a FROM t;", "SELECT a FROM t LIMIT (@n);");
    becomes(
        "SELECT DISTINCT TOP(3) a FROM t",
        "SELECT DISTINCT a FROM t LIMIT (3)",
    );
    becomes(
        "SELECT * FROM (SELECT TOP 1 a FROM t ORDER BY a DESC) x",
        "SELECT * FROM (SELECT a FROM t ORDER BY a DESC LIMIT 1) x",
    );
    for sql in [
        "SELECT TOP 5 PERCENT a FROM t",
        "SELECT TOP 5 WITH TIES a FROM t",
        "SELECT TOP 5 a FROM t UNION SELECT b FROM u",
    ] {
        assert!(translate(sql).is_err(), "{sql}");
    }
}

#[test]
fn conversions_and_parts_of_dates() {
    becomes(
        "SELECT CAST(x AS decimal(18, 2)), CONVERT(varchar(10), d, 120), TRY_CONVERT(int, y)",
        "SELECT TSQL_CONVERT('decimal(18, 2)', (x )), TSQL_CONVERT('varchar(10)', d, 120), TSQL_TRY_CONVERT('int', y)",
    );
    becomes(
        "SELECT DATEDIFF(hh, MAX(a), GETDATE()), DATEPART([x], d)",
        "SELECT DATEDIFF('hh', MAX(a), GETDATE()), DATEPART([x], d)",
    );
    becomes(
        "SELECT ISNULL(DB_NAME(database_id), 'x'), CURRENT_TIMESTAMP",
        "SELECT IFNULL((SELECT name FROM sys.databases WHERE database_id = (database_id)), 'x'), GETDATE()",
    );
    assert!(translate("SELECT CONVERT('x''; DROP', y)").is_err());
}

#[test]
fn plus_joins_texts_and_moves_dates() {
    becomes(
        "SELECT a + '-' + b + c FROM t",
        "SELECT a || '-' || b || c FROM t",
    );
    becomes(
        "SELECT 'n' + CAST(x AS varchar(5)), UPPER(a) + b",
        "SELECT 'n' || TSQL_CONVERT('varchar(5)', (x )), UPPER(a) || b",
    );
    becomes(
        "WHERE"
            .replace("WHERE", "SELECT 1 WHERE d >= GETDATE() - 7 AND x = 1")
            .as_str(),
        "SELECT 1 WHERE d >= DATEADD('day', -7, GETDATE())  AND x = 1",
    );
    becomes(
        "SELECT s.backup_finish_date + 1 FROM s",
        "SELECT DATEADD('day', 1, s.backup_finish_date)  FROM s",
    );
    assert!(translate("SELECT backup_finish_date - backup_start_date FROM s").is_err());
    assert!(translate("SELECT GETDATE() - x FROM s").is_err());
}

#[test]
fn aliases_and_hints() {
    becomes(
        "SELECT Name = d.name, n = COUNT(*) , x FROM d",
        "SELECT d.name AS Name, COUNT(*) AS n , x FROM d",
    );
    becomes(
        "SELECT a FROM t WITH (NOLOCK) JOIN u (nolock) ON 1 = 1 OPTION (RECOMPILE)",
        "SELECT a FROM t  JOIN u  ON 1 = 1 ",
    );
}

#[test]
fn brackets_without_end_do_not_exhaust_the_stack() {
    let deep = format!("SELECT {}1", "(".repeat(100_000));
    assert!(translate(&deep).is_err());
}
