//! Statements and their answers.

use proptest::prelude::*;

use crate::{Collected, Instance, Session};

/// A session on a database with a table `t` of four rows.
struct Place {
    session: Session,
    _folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let app = rusqlite::Connection::open(&path).unwrap();
        app.execute_batch(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, city TEXT, price REAL, made datetime);
             INSERT INTO t VALUES (1, 'Ann', 'Oslo', 1.5, '2026-01-01 00:00:00'),
                 (2, 'Bob', 'Bonn', 2, '2026-01-02 00:00:00'), (3, 'Cid', 'Rome', 3, '2026-01-03 00:00:00'),
                 (4, 'ANN', NULL, NULL, '2026-01-04 00:00:00')",
        )
        .unwrap();
        drop(app);
        let mut instance = Instance::open(None).unwrap();
        instance.pass_as("app", &path).unwrap();
        instance.pass_as("hr", &path).ok();
        let mut session = Session::new(instance);
        session.execute_batch("USE app", 1, &mut Collected::default());
        Self {
            session,
            _folder: folder,
        }
    }

    /// The rows that a batch returns, or `!` and the number of its first error.
    fn answer(&mut self, text: &str) -> String {
        let mut sink = Collected::default();
        self.session.execute_batch(text, 1, &mut sink);
        let error = sink.messages.iter().find(|message| message.is_error());
        if let Some(error) = error {
            return format!("!{}", error.number);
        }
        let results = sink.results.iter().map(|result| {
            let rows = result.rows.iter().map(|row| {
                let cells: Vec<String> = row.iter().map(ToString::to_string).collect();
                cells.join(" | ")
            });
            rows.collect::<Vec<_>>().join(" / ")
        });
        results.collect::<Vec<_>>().join(" // ")
    }
}

/// Whether a line of the table is a statement, not an expression.
fn is_statement(line: &str) -> bool {
    const VERBS: &[&str] = &[
        "BEGIN",
        "BREAK",
        "CONTINUE",
        "CREATE",
        "DECLARE",
        "DELETE",
        "DROP",
        "EXEC",
        "EXEC(",
        "FETCH",
        "GOTO",
        "IF",
        "INSERT",
        "KILL",
        "RAISERROR(",
        "RETURN",
        "SELECT",
        "SET",
        "THROW",
        "UPDATE",
        "WITH",
        "RAISERROR",
    ];
    let first = line.split([' ', '(']).next().unwrap_or("");
    VERBS.contains(&first)
}

#[test]
fn every_statement_of_the_table_is_answered_as_sql_server_does() {
    let mut place = Place::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    for (number, line) in include_str!("statements.txt").lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((text, expected)) = line.split_once(" =>") else {
            panic!("line {}: {line}", number + 1);
        };
        let expected = expected.strip_prefix(' ').unwrap_or(expected);
        count += 1;
        let mut forms = vec![text.to_owned()];
        if !is_statement(text) {
            forms = vec![
                format!("SELECT {text}"),
                format!("DECLARE @v sql_variant = {text} SELECT @v"),
                format!("SELECT {text} FROM t WHERE id = 1"),
            ];
        }
        for form in forms {
            let found = place.answer(&form);
            if found != expected {
                wrong.push(format!(
                    "{}: {form}\n    {found}\n    {expected} expected",
                    number + 1
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(count >= 300, "{count} statements");
}

#[test]
fn an_expression_of_more_columns_than_a_function_has_arguments_is_computed() {
    let mut place = Place::new();
    let columns: Vec<String> = (0..350).map(|column| format!("c{column}")).collect();
    let create = format!("CREATE TABLE wide ({} int)", columns.join(" int, "));
    assert_eq!(place.answer(&create), "");
    let values: Vec<String> = (0..350).map(|value| value.to_string()).collect();
    let insert = format!("INSERT INTO wide VALUES ({})", values.join(", "));
    assert_eq!(place.answer(&insert), "");
    let sum = columns.join(" + ");
    let total = (0..350).sum::<i32>().to_string();
    assert_eq!(place.answer(&format!("SELECT {sum} FROM wide")), total);
    assert_eq!(
        place.answer(&format!("SELECT 1 FROM wide WHERE {sum} = {total}")),
        "1"
    );
    let text = columns.join(" = 1 THEN '' WHEN ");
    let chosen = format!("SELECT CASE WHEN {text} = 349 THEN 'last' END FROM wide");
    assert_eq!(place.answer(&chosen), "");
    assert_eq!(
        place.answer(&format!("UPDATE wide SET c0 = {sum}; SELECT c0 FROM wide")),
        total
    );
}

fn literal() -> impl Strategy<Value = String> {
    prop_oneof![
        (-50..50_i64).prop_map(|number| format!("({number})")),
        (0..5000_i64).prop_map(|number| format!("{}.{:02}", number / 100, number % 100)),
        "[a-cA-C0-9 ]{0,3}".prop_map(|text| format!("'{text}'")),
        Just("NULL".to_owned()),
        Just("CAST('20261122' AS datetime)".to_owned()),
        Just("1.5e0".to_owned()),
        Just("CAST(7 AS money)".to_owned()),
    ]
}

fn expression() -> impl Strategy<Value = String> {
    literal().prop_recursive(3, 12, 3, |inner| {
        let operator = prop_oneof![Just("+"), Just("-"), Just("*"), Just("/"), Just("%")];
        let comparison = prop_oneof![Just("="), Just("<"), Just(">="), Just("<>")];
        prop_oneof![
            (inner.clone(), operator, inner.clone()).prop_map(|(a, o, b)| format!("({a} {o} {b})")),
            (inner.clone(), comparison, inner.clone(), inner.clone()).prop_map(|(a, o, b, c)| {
                format!("CASE WHEN {a} {o} {b} THEN {c} ELSE {a} END")
            }),
            inner
                .clone()
                .prop_map(|a| format!("CAST({a} AS varchar(20))")),
            inner.clone().prop_map(|a| format!("TRY_CAST({a} AS int)")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("ISNULL({a}, {b})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("CONCAT({a}, {b})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// PRINT, SET, SELECT and WHERE compute the same.
    #[test]
    fn an_expression_has_one_value_wherever_it_stands(text in expression()) {
        let mut place = Place::new();
        let selected = place.answer(&format!("SELECT CAST({text} AS nvarchar(200))"));
        let set = place.answer(&format!("DECLARE @v nvarchar(200) SET @v = {text} SELECT @v"));
        prop_assert_eq!(&selected, &set, "SET {}", text);
        let over_rows = place.answer(&format!("SELECT CAST({text} AS nvarchar(200)) FROM t WHERE id = 1"));
        prop_assert_eq!(&selected, &over_rows, "FROM {}", text);
        let mut sink = Collected::default();
        place.session.execute_batch(&format!("PRINT CAST({text} AS nvarchar(200))"), 1, &mut sink);
        let printed = sink.messages.first().map(|message| match message.is_error() {
            true => format!("!{}", message.number),
            false => message.text.clone(),
        });
        let shown = if selected == "NULL" { String::new() } else { selected.clone() };
        prop_assert_eq!(printed.unwrap_or_default(), shown, "PRINT {}", text);
        if !selected.starts_with('!') && selected != "NULL" {
            let quoted = selected.replace('\'', "''");
            let found = place.answer(&format!(
                "SELECT id FROM t WHERE id = 1 AND CAST({text} AS nvarchar(200)) = N'{quoted}'"
            ));
            prop_assert_eq!(found, "1", "WHERE {}", text);
        }
    }
}
