//! Transactions with marks, and restores that stop at them.

use crate::log_backups::{back_up_log, chain, last, refused, restore_full, restore_log};
use crate::support::{Place, ask, sql, succeed};

/// A marked transaction that inserts a row, or changes nothing.
fn marked(place: &Place, mark: &str, number: Option<u32>) {
    let change = match number {
        Some(number) => format!("INSERT INTO t VALUES ({number})"),
        None => "SELECT count(*) AS n FROM t".to_owned(),
    };
    succeed(
        place,
        &format!("USE Shop\nGO\nBEGIN TRANSACTION {mark}\n{change}\nCOMMIT"),
    );
}

#[test]
fn a_restore_stops_at_a_mark_or_before_it() {
    let place = Place::new();
    chain(&place, 1);
    marked(&place, "month WITH MARK 'the end of the month'", Some(2));
    marked(&place, "Month WITH MARK", Some(3));
    // No change, no mark; and a transaction that is rolled back has none.
    marked(&place, "empty WITH MARK", None);
    succeed(
        &place,
        "USE Shop\nGO\nBEGIN TRAN gone WITH MARK\nINSERT INTO t VALUES (90)\nROLLBACK\nINSERT INTO t VALUES (4)",
    );
    back_up_log(&place, "2.trn");
    let later = ask(&place, "instance", "SELECT sysdatetime() AS at")[0]["at"]
        .as_str()
        .expect("a time")[..23]
        .replace('T', " ");
    std::thread::sleep(std::time::Duration::from_millis(20));
    marked(&place, "month WITH MARK", Some(5));
    succeed(&place, "USE Shop\nGO\nINSERT INTO t VALUES (6)");
    back_up_log(&place, "3.trn");
    let history = ask(
        &place,
        "instance",
        "SELECT database_name, mark_name, description, user_name, CAST(lsn AS varchar(30)) AS lsn, mark_time
         FROM msdb.dbo.logmarkhistory ORDER BY lsn",
    );
    let names: Vec<&str> = history
        .iter()
        .filter_map(|row| row["mark_name"].as_str())
        .collect();
    assert_eq!(names, ["month", "Month", "month"]);
    assert_eq!(history[0]["description"], "the end of the month");
    assert!(history[1]["description"].is_null());
    assert_eq!(history[0]["database_name"], "Shop");
    assert!(
        history[0]["mark_time"]
            .as_str()
            .is_some_and(|at| at < later.as_str() || at.starts_with("20"))
    );
    let lsn = history[1]["lsn"].as_str().expect("an LSN");
    for (stop, expected) in [
        ("STOPATMARK = 'month'".to_owned(), 2),
        ("STOPBEFOREMARK = 'month'".to_owned(), 1),
        ("STOPATMARK = 'Month'".to_owned(), 3),
        (format!("STOPATMARK = 'month' AFTER '{later}'"), 5),
        (format!("STOPBEFOREMARK = 'month' AFTER '{later}'"), 4),
        (format!("STOPATMARK = 'lsn:{lsn}'"), 3),
    ] {
        restore_full(&place);
        for log in 1..=3 {
            let run = succeed(&place, &restore_log(log, &format!("RECOVERY, {stop}")));
            if !run.numbers().contains(&4329) && !run.numbers().contains(&4322) {
                break;
            }
            refused(&sql(&place, "USE Copy"), &[927]);
        }
        assert_eq!(last(&place, "Copy"), expected, "{stop}");
    }
    let stops = ask(
        &place,
        "instance",
        "SELECT stop_at_mark_name AS mark, stop_before AS before FROM msdb.dbo.restorehistory
         WHERE stop_before = 1 AND restore_type = 'L'",
    );
    assert_eq!(stops[0]["mark"], "month");
    // A mark that is in none of them leaves the database restoring, and the log can be applied on.
    for mark in ["empty", "gone", "MONTH", "x"] {
        restore_full(&place);
        for log in 1..=3 {
            let run = succeed(&place, &restore_log(log, &format!("STOPATMARK = '{mark}'")));
            assert!(run.numbers().contains(&4329), "{mark}: {}", run.err);
        }
        refused(&sql(&place, "USE Copy"), &[927]);
        succeed(&place, "RESTORE DATABASE Copy WITH RECOVERY");
        assert_eq!(last(&place, "Copy"), 6);
    }
    for wrong in [
        "STOPATMARK = ''",
        "STOPATMARK = 'month' AFTER 'soon'",
        &format!("STOPATMARK = 'lsn:{lsn}' AFTER '2026-01-01'"),
    ] {
        refused(&sql(&place, &restore_log(1, wrong)), &[3217, 3013]);
    }
}

#[test]
fn the_first_mark_of_a_transaction_counts_and_a_mark_needs_a_log_that_is_kept() {
    let place = Place::new();
    chain(&place, 1);
    let run = succeed(
        &place,
        "USE Shop
GO
BEGIN TRAN
INSERT INTO t VALUES (2)
BEGIN TRAN inner_ WITH MARK 'first'
INSERT INTO t VALUES (3)
BEGIN TRAN other WITH MARK 'second'
COMMIT TRAN other
COMMIT TRAN inner_
INSERT INTO t VALUES (4)
COMMIT
DECLARE @name varchar(32) = 'in a variable'
BEGIN TRAN @name WITH MARK
INSERT INTO t VALUES (5)
COMMIT",
    );
    assert_eq!(run.numbers(), [3920], "{}", run.err);
    let marks = ask(
        &place,
        "instance",
        "SELECT mark_name AS mark FROM msdb.dbo.logmarkhistory ORDER BY lsn",
    );
    assert_eq!(marks[0]["mark"], "inner_");
    assert_eq!(marks[1]["mark"], "in a variable");
    back_up_log(&place, "2.trn");
    restore_full(&place);
    succeed(&place, &restore_log(1, "NORECOVERY"));
    succeed(&place, &restore_log(2, "STOPATMARK = 'inner_'"));
    assert_eq!(last(&place, "Copy"), 4);
    // A copy is in the recovery model FULL as well.
    succeed(
        &place,
        "USE Copy\nGO\nBEGIN TRAN x WITH MARK\nINSERT INTO t VALUES (7)\nCOMMIT",
    );
    succeed(&place, "ALTER DATABASE Copy SET RECOVERY SIMPLE");
    for database in ["Copy", "master"] {
        let run = sql(
            &place,
            &format!("USE {database}\nGO\nBEGIN TRAN x WITH MARK\nSELECT @@TRANCOUNT AS n"),
        );
        assert!(run.numbers().starts_with(&[50230]), "{}", run.err);
    }
    succeed(
        &place,
        "EXEC msdb.dbo.sp_delete_database_backuphistory 'Shop'",
    );
    let left = ask(
        &place,
        "instance",
        "SELECT database_name AS name FROM msdb.dbo.logmarkhistory",
    );
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["name"], "Copy");
}
