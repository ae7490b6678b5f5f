use windlass_tsql::ast::Statement;
use windlass_tsql::parse_batch;

use super::*;

fn value(expression: &str) -> Result<Value, Failure> {
    let statements = parse_batch(&format!("PRINT {expression}")).expect(expression);
    let Statement::Print(parsed) = &statements[0].node else {
        panic!("{expression}")
    };
    let at = jiff::civil::DateTime::new(2026, 11, 20, 9, 5, 3, 123_000_000).unwrap();
    let mut session = crate::Session::new(crate::Instance::open(None).unwrap());
    let dates = [
        ("@d", DataType::DateTime, Value::DateTime(at)),
        ("@d2", DataType::DateTime2, Value::DateTime2(at)),
        ("@n", DataType::TEXT, Value::Null),
    ];
    for (name, ty, value) in dates {
        session
            .variables
            .declare(name, ty, Some((value, ty)))
            .unwrap();
    }
    crate::tsql::evaluate::evaluate(&mut session, parsed).map(|(value, _)| value)
}

#[track_caller]
fn gives(expression: &str, expected: &str) {
    match value(expression) {
        Ok(found) => assert_eq!(found.to_string(), expected, "{expression}"),
        Err(failure) => panic!("{expression}: {failure:?}"),
    }
}

#[track_caller]
fn fails(expression: &str, number: u32) {
    let failure = value(expression).expect_err(expression);
    assert_eq!(failure.messages[0].number, number, "{expression}");
}

#[test]
fn dates_of_backup_names_have_their_styles() {
    for (style, expected) in [
        (0, "Nov 20 2026  9:05AM"),
        (8, "09:05:03"),
        (12, "261120"),
        (20, "2026-11-20 09:05:03"),
        (101, "11/20/2026"),
        (103, "20/11/2026"),
        (108, "09:05:03"),
        (112, "20261120"),
        (113, "20 Nov 2026 09:05:03:123"),
        (114, "09:05:03:123"),
        (120, "2026-11-20 09:05:03"),
        (121, "2026-11-20 09:05:03.123"),
        (126, "2026-11-20T09:05:03.123"),
    ] {
        gives(&format!("CONVERT(varchar(30), @d, {style})"), expected);
    }
    gives(
        "CONVERT(char(8), @d, 112) + '_' + REPLACE(CONVERT(char(8), @d, 108), ':', '')",
        "20261120_090503",
    );
    gives("CONVERT(varchar(10), @d, 120)", "2026-11-20");
    gives("FORMAT(@d, 'yyyyMMdd_HHmmss')", "20261120_090503");
    gives("CAST(@d AS date)", "2026-11-20");
    gives("CAST(@d2 AS nvarchar(40))", "2026-11-20 09:05:03.1230000");
    fails("CONVERT(varchar, @d, 999)", 281);
}

#[test]
fn dates_can_be_taken_apart_and_counted_with() {
    gives("DATEPART('year', @d)", "2026");
    gives("DATENAME('weekday', @d)", "Friday");
    gives("DATEPART('dw', @d)", "6");
    gives("DATEPART('wk', @d)", "47");
    gives(
        "DATEADD('month', 3, '2026-11-30')",
        "2027-02-28 00:00:00.000",
    );
    gives("DATEDIFF('day', '2026-11-19 23:59', @d)", "1");
    gives("DATEDIFF('hour', '2026-11-20 08:59:59', @d)", "1");
    gives("DATEDIFF('week', '2026-11-14', '2026-11-15')", "1");
    gives("YEAR(@d) * 100 + MONTH(@d)", "202611");
    gives("@d + 1", "2026-11-21 09:05:03.123");
    gives("EOMONTH('2024-02-03')", "2024-02-29");
    gives(
        "CAST('2026-11-20T09:05:03' AS datetime)",
        "2026-11-20 09:05:03.000",
    );
    fails("CAST('tomorrow' AS datetime)", 241);
    fails("DATEADD('century', 1, @d)", 155);
    fails("DATEADD('year', 100000, @d)", 517);
}

#[test]
fn numbers_follow_sql_servers_rules() {
    gives("7 / 2", "3");
    gives("-7 / 2", "-3");
    gives("7 % 4", "3");
    gives("7 / 2.0", "3.500000");
    gives("1 + '2'", "3");
    gives("'1' + '2'", "12");
    gives("2 + 3 * 4 - -1", "15");
    gives("1e3 * 2", "2000");
    gives("CAST(3.99 AS int)", "3");
    gives("CAST(2.345 AS decimal(10, 2))", "2.35");
    gives("ROUND(2.5678, 2)", "2.5700");
    gives("CEILING(2.1) + FLOOR(2.9)", "5");
    gives("CAST('true' AS bit)", "1");
    fails("1 / 0", 8134);
    fails("1 + 'x'", 245);
    fails("CAST(300 AS tinyint)", 220);
    fails("CAST(9223372036854775807 AS bigint) + 1", 8115);
    gives("TRY_CAST('x' AS int)", "NULL");
    gives("0x0A + 0x0B", "0x0A0B");
}

#[test]
fn null_spreads_except_where_it_is_caught() {
    gives("@n + 'x'", "NULL");
    gives("1 + @n", "NULL");
    gives("ISNULL(@n, 'x')", "x");
    gives("COALESCE(@n, @n, 3)", "3");
    gives("CONCAT('a', @n, 'b')", "ab");
    gives("NULLIF(1, 1)", "NULL");
    gives("LEN(@n)", "NULL");
}

#[test]
fn texts_are_cut_and_joined() {
    gives("LEFT('windlass', 4) + RIGHT('windlass', 4)", "windlass");
    gives("SUBSTRING('windlass', 2, 3)", "ind");
    gives("SUBSTRING('windlass', -1, 4)", "wi");
    gives("LEN('ab  ')", "2");
    gives("UPPER('ä') + LOWER('Ä')", "Ää");
    gives("LTRIM(RTRIM('  x '))", "x");
    gives("REPLACE('aBcAb', 'ab', '-')", "-c-");
    gives("CHARINDEX('D', 'windlass')", "4");
    gives("STUFF('windlass', 1, 4, 'glass')", "glasslass");
    gives("QUOTENAME('a]b')", "[a]]b]");
    gives(
        "QUOTENAME('it''s', '''')",
        "'it''s'".replace("it's", "it''s").as_str(),
    );
    gives("REPLICATE('ab', 3) + SPACE(1) + CHAR(65)", "ababab A");
    gives("STR(3.14159, 6, 2)", "  3.14");
    gives("CAST('abcdef' AS varchar(3))", "abc");
    fails("LEFT('x', -1)", 537);
    fails("REPLICATE('x', 999999999)", 8115);
    fails("LEFT('x')", 174);
    fails("NOSUCH('x')", 195);
}

#[test]
fn the_session_is_asked() {
    gives("DB_NAME()", "master");
    gives("DB_ID('nosuch')", "NULL");
    gives(
        "SERVERPROPERTY('ProductVersion')",
        env!("CARGO_PKG_VERSION"),
    );
    gives("(SELECT 1)", "1");
    fails("@undeclared", 137);
}
