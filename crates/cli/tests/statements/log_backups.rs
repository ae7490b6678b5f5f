//! Log backups of a page engine database, and restores to any moment of it, in T-SQL and by commands.

use serde_json::Value as Json;

use crate::support::{Place, Run, ask, flip_bit, on, sql, succeed, well};

/// A database in the recovery model FULL with one row.
pub(crate) const MAKE: &str = "
CREATE DATABASE Shop ON (NAME = Shop, FILENAME = 'D:\\shop.mdf') LOG ON (NAME = Shop_log, FILENAME = 'D:\\shop.ldf')
ALTER DATABASE Shop SET RECOVERY FULL
GO
USE Shop
GO
CREATE TABLE t(n INTEGER)
INSERT INTO t VALUES (0)
GO
USE master
";

pub(crate) const MOVE: &str = "MOVE 'Shop' TO 'D:\\copy.mdf', MOVE 'Shop_log' TO 'D:\\copy.ldf'";

pub(crate) fn insert(place: &Place, number: u32) {
    succeed(
        place,
        &format!("USE Shop\nGO\nINSERT INTO t VALUES ({number})"),
    );
}

pub(crate) fn back_up_log(place: &Place, file: &str) {
    succeed(place, &format!("BACKUP LOG Shop TO DISK = 'D:\\{file}'"));
}

/// A full backup, and log backups of one more row each.
pub(crate) fn chain(place: &Place, logs: u32) {
    succeed(
        place,
        &format!("{MAKE}\nBACKUP DATABASE Shop TO DISK = 'D:\\full.bak'"),
    );
    for number in 1..=logs {
        insert(place, number);
        back_up_log(place, &format!("{number}.trn"));
    }
}

pub(crate) fn restore_log(file: u32, options: &str) -> String {
    format!("RESTORE LOG Copy FROM DISK = 'D:\\{file}.trn' WITH {options}")
}

pub(crate) fn restore_full(place: &Place) {
    succeed(
        place,
        &format!(
            "RESTORE DATABASE Copy FROM DISK = 'D:\\full.bak' WITH NORECOVERY, REPLACE, {MOVE}"
        ),
    );
}

pub(crate) fn last(place: &Place, database: &str) -> Json {
    let run = succeed(
        place,
        &format!("USE {database}\nGO\nSELECT max(n) AS n FROM t\nPRAGMA integrity_check"),
    );
    let results = run.results();
    assert_eq!(results[1][0]["integrity_check"], "ok");
    results[0][0]["n"].clone()
}

/// The same of a file that was restored without an entry in the instance, which it does not get either.
pub(crate) fn last_of_file(place: &Place, file: &str) -> Json {
    let path = place.text(file);
    succeed(
        place,
        &format!(
            "CREATE DATABASE Seen ON (FILENAME = '{path}') LOG ON (FILENAME = '{path}-log') FOR ATTACH"
        ),
    );
    let found = last(place, "Seen");
    succeed(place, "EXEC sp_detach_db 'Seen'");
    found
}

#[track_caller]
pub(crate) fn refused(run: &Run, numbers: &[u64]) {
    assert_eq!(run.numbers(), numbers, "{}", run.err);
}

#[test]
fn a_full_backup_and_its_log_backups_restore_to_the_end_of_each() {
    let place = Place::new();
    chain(&place, 3);
    insert(&place, 4);
    for end in 1..=3 {
        restore_full(&place);
        for log in 1..end {
            succeed(&place, &restore_log(log, "NORECOVERY"));
        }
        succeed(&place, &restore_log(end, "RECOVERY"));
        assert_eq!(last(&place, "Copy"), end);
    }
    let types = ask(
        &place,
        "instance",
        "SELECT type, first_lsn, last_lsn, recovery_model FROM msdb.dbo.backupset ORDER BY backup_set_id",
    );
    let kinds: Vec<&str> = types
        .iter()
        .filter_map(|row| row["type"].as_str())
        .collect();
    assert_eq!(kinds, ["D", "L", "L", "L"]);
    for pair in types[1..].windows(2) {
        assert_eq!(pair[0]["last_lsn"], pair[1]["first_lsn"]);
    }
    assert_eq!(types[3]["recovery_model"], "FULL");
    let restores = ask(
        &place,
        "instance",
        "SELECT restore_type AS type FROM msdb.dbo.restorehistory ORDER BY restore_history_id",
    );
    let kinds: String = restores
        .iter()
        .filter_map(|row| row["type"].as_str())
        .collect();
    assert_eq!(kinds, "DLDLLDLLL");
}

#[test]
fn a_time_and_an_lsn_stop_the_restore_between_two_commits_of_one_log_backup() {
    let place = Place::new();
    chain(&place, 1);
    insert(&place, 2);
    let pause = std::time::Duration::from_millis(30);
    std::thread::sleep(pause);
    let at = ask(&place, "instance", "SELECT sysdatetime() AS at");
    let at = at[0]["at"].as_str().expect("a time")[..23].replace('T', " ");
    std::thread::sleep(pause);
    insert(&place, 3);
    back_up_log(&place, "2.trn");
    let stop = format!("STOPAT = '{at}'");
    restore_full(&place);
    let run = succeed(&place, &restore_log(1, &format!("RECOVERY, {stop}")));
    assert!(
        run.numbers().contains(&4322),
        "its log ends before: {}",
        run.err
    );
    refused(&sql(&place, "USE Copy"), &[927]);
    succeed(&place, &restore_log(2, &format!("RECOVERY, {stop}")));
    assert_eq!(last(&place, "Copy"), 2);

    // The full backup is not as old as that.
    let early = format!(
        "RESTORE DATABASE Copy FROM DISK = 'D:\\full.bak' WITH REPLACE, STOPAT = '2020-01-01', {MOVE}"
    );
    refused(&sql(&place, &early), &[4338, 3013]);
    let lsns = ask(
        &place,
        "instance",
        "SELECT CAST(first_lsn AS varchar(30)) AS lsn FROM msdb.dbo.backupset WHERE type = 'L' ORDER BY backup_set_id",
    );
    let lsn = lsns[1]["lsn"].as_str().expect("an LSN");
    restore_full(&place);
    succeed(&place, &restore_log(1, "NORECOVERY"));
    succeed(
        &place,
        &restore_log(2, &format!("STOPBEFOREMARK = 'lsn:{lsn}'")),
    );
    assert_eq!(last(&place, "Copy"), 1);
    restore_full(&place);
    refused(
        &sql(&place, &restore_log(1, "STOPATMARK = 'lsn:x'")),
        &[4334, 3013],
    );
    refused(
        &sql(&place, &restore_log(1, "STOPAT = 'soon'")),
        &[3217, 3013],
    );
}

#[test]
fn what_does_not_continue_the_sequence_is_refused_and_it_stays_open() {
    let place = Place::new();
    chain(&place, 3);
    succeed(
        &place,
        "BACKUP DATABASE Shop TO DISK = 'D:\\diff.bak' WITH DIFFERENTIAL",
    );
    refused(&sql(&place, &restore_log(1, "RECOVERY")), &[3118, 3013]);
    restore_full(&place);
    refused(&sql(&place, &restore_log(2, "RECOVERY")), &[4305, 3013]);
    let wrong = "RESTORE LOG Copy FROM DISK = 'D:\\full.bak'";
    refused(&sql(&place, wrong), &[3135, 3013]);
    let wrong = "RESTORE DATABASE Copy FROM DISK = 'D:\\1.trn'";
    refused(&sql(&place, wrong), &[3135, 3013]);
    let files = "RESTORE LOG Copy FILE = 'Shop' FROM DISK = 'D:\\1.trn'";
    refused(&sql(&place, files), &[50005, 3013]);
    refused(
        &sql(&place, &restore_log(1, "STOPAT = '2020-01-01'")),
        &[4335, 3013],
    );
    succeed(&place, &restore_log(1, "NORECOVERY"));
    succeed(&place, &restore_log(2, "NORECOVERY"));
    refused(&sql(&place, &restore_log(1, "NORECOVERY")), &[4326, 3013]);
    // The differential is based on the full backup, not on what the logs made of it.
    let diff = "RESTORE DATABASE Copy FROM DISK = 'D:\\diff.bak' WITH NORECOVERY";
    assert!(sql(&place, diff).numbers().contains(&3136));
    succeed(&place, "RESTORE DATABASE Copy WITH RECOVERY");
    assert_eq!(last(&place, "Copy"), 2);
    refused(&sql(&place, &restore_log(3, "RECOVERY")), &[3117, 3013]);
    // What is restored begins a history of its own.
    let copy = sql(&place, "BACKUP LOG Copy TO DISK = 'D:\\copy.trn'");
    refused(&copy, &[4214, 50235, 3013]);
    succeed(&place, "BACKUP DATABASE Copy TO DISK = 'D:\\copy.bak'");
    succeed(&place, "BACKUP LOG Copy TO DISK = 'D:\\copy.trn'");
    restore_full(&place);
    let other = sql(&place, "RESTORE LOG Copy FROM DISK = 'D:\\copy.trn'");
    refused(&other, &[4330, 3013]);
}

#[test]
fn a_log_backup_needs_the_model_full_and_a_full_backup() {
    let place = Place::new();
    succeed(
        &place,
        "CREATE DATABASE Shop ON (NAME = Shop, FILENAME = 'D:\\shop.mdf') LOG ON (NAME = Shop_log, FILENAME = 'D:\\shop.ldf')",
    );
    let log = "BACKUP LOG Shop TO DISK = 'D:\\1.trn'";
    refused(&sql(&place, log), &[4208, 3013]);
    refused(
        &sql(&place, "ALTER DATABASE Shop SET RECOVERY BULK_LOGGED"),
        &[50005],
    );
    succeed(&place, "ALTER DATABASE Shop SET RECOVERY FULL");
    refused(&sql(&place, log), &[4214, 3013]);
    succeed(
        &place,
        "BACKUP DATABASE Shop TO DISK = 'D:\\copy.bak' WITH COPY_ONLY",
    );
    refused(&sql(&place, log), &[4214, 3013]);
    succeed(&place, "BACKUP DATABASE Shop TO DISK = 'D:\\full.bak'");
    succeed(&place, log);
    let shown = ask(
        &place,
        "instance",
        "SELECT recovery_model AS model, recovery_model_desc AS text FROM sys.databases WHERE name = 'Shop'",
    );
    assert_eq!(
        (&shown[0]["model"], &shown[0]["text"]),
        (&1.into(), &"FULL".into())
    );
    succeed(&place, "ALTER DATABASE Shop SET RECOVERY SIMPLE");
    refused(&sql(&place, log), &[4208, 3013]);
    succeed(&place, "ALTER DATABASE Shop SET RECOVERY FULL");
    refused(&sql(&place, log), &[4214, 50235, 3013]);
    refused(
        &place.sql_with(&["--json"], "ALTER DATABASE app SET RECOVERY FULL"),
        &[50253],
    );
    refused(
        &place.sql_with(&["--json"], "BACKUP LOG app TO DISK = 'D:\\1.trn'"),
        &[4208, 3013],
    );
}

#[test]
fn copy_only_and_nul_truncate_nothing_and_options_work_as_for_data() {
    let place = Place::new();
    chain(&place, 1);
    insert(&place, 2);
    succeed(
        &place,
        "BACKUP LOG Shop TO DISK = 'D:\\c1.trn', DISK = 'D:\\c2.trn' WITH COPY_ONLY, COMPRESSION (ALGORITHM = ZSTD), CHECKSUM
         BACKUP LOG Shop TO DISK = 'NUL'
         BACKUP LOG Shop TO DISK = 'D:\\n.trn' WITH NO_TRUNCATE
         BACKUP LOG Shop TO DISK = 'D:\\2.trn' WITH NAME = 'the second'
         RESTORE VERIFYONLY FROM DISK = 'D:\\2.trn'
         RESTORE VERIFYONLY FROM DISK = 'D:\\c1.trn', DISK = 'D:\\c2.trn'",
    );
    let headers = succeed(&place, "RESTORE HEADERONLY FROM DISK = 'D:\\c1.trn'").results();
    let second = succeed(&place, "RESTORE HEADERONLY FROM DISK = 'D:\\2.trn'").results();
    assert_eq!(headers[0][0]["BackupType"], 2);
    assert_eq!(headers[0][0]["IsCopyOnly"], true);
    assert_eq!(second[0][0]["BackupTypeDescription"], "Transaction Log");
    assert_eq!(headers[0][0]["FirstLSN"], second[0][0]["FirstLSN"]);
    for name in [
        "BACKUP LOG Shop TO DISK = 'D:\\x.trn' WITH DIFFERENTIAL",
        "BACKUP LOG Shop TO DISK = 'D:\\x.trn' WITH INTEGRITY = QUICK",
    ] {
        refused(&sql(&place, name), &[3032, 3013]);
    }
    restore_full(&place);
    succeed(&place, &restore_log(1, "NORECOVERY"));
    succeed(
        &place,
        "RESTORE LOG Copy FROM DISK = 'D:\\c1.trn', DISK = 'D:\\c2.trn' WITH NORECOVERY",
    );
    succeed(&place, &restore_log(2, "RECOVERY"));
    assert_eq!(last(&place, "Copy"), 2);
}

#[test]
fn the_tail_of_a_lost_database_is_saved_and_a_saved_tail_needs_no_replace() {
    let place = Place::new();
    chain(&place, 1);
    insert(&place, 2);
    let over = "RESTORE DATABASE Shop FROM DISK = 'D:\\full.bak' WITH NORECOVERY";
    refused(&sql(&place, over), &[3159, 3013]);
    assert_eq!(last(&place, "Shop"), 2);
    // The data file is lost.
    std::fs::remove_file(place.path("shop.mdf")).expect("removed");
    let plain = sql(&place, "BACKUP LOG Shop TO DISK = 'D:\\tail.trn'");
    assert!(plain.numbers().contains(&3013), "{}", plain.err);
    succeed(
        &place,
        "BACKUP LOG Shop TO DISK = 'D:\\tail.trn' WITH NO_TRUNCATE",
    );
    refused(&sql(&place, over), &[3159, 3013]);
    succeed(
        &place,
        &format!(
            "{over}, REPLACE
RESTORE LOG Shop FROM DISK = 'D:\\1.trn' WITH NORECOVERY
RESTORE LOG Shop FROM DISK = 'D:\\tail.trn'"
        ),
    );
    assert_eq!(last(&place, "Shop"), 2);
}

#[test]
fn a_tail_log_backup_leaves_the_database_restoring_until_it_is_recovered() {
    let place = Place::new();
    chain(&place, 1);
    insert(&place, 2);
    succeed(
        &place,
        "BACKUP LOG Shop TO DISK = 'D:\\2.trn' WITH NORECOVERY",
    );
    refused(&sql(&place, "USE Shop"), &[927]);
    let again = sql(&place, "BACKUP LOG Shop TO DISK = 'D:\\3.trn'");
    refused(&again, &[927, 3013]);
    restore_full(&place);
    succeed(&place, &restore_log(1, "NORECOVERY"));
    succeed(&place, &restore_log(2, "RECOVERY"));
    assert_eq!(last(&place, "Copy"), 2);
    // The database itself is as it was, and its log goes on.
    succeed(&place, "RESTORE DATABASE Shop WITH RECOVERY");
    insert(&place, 3);
    back_up_log(&place, "3.trn");
    restore_full(&place);
    succeed(&place, &restore_log(1, "NORECOVERY"));
    succeed(&place, &restore_log(3, "RECOVERY"));
    assert_eq!(last(&place, "Copy"), 3);
    succeed(
        &place,
        "BACKUP LOG Shop TO DISK = 'D:\\4.trn' WITH NORECOVERY",
    );
    succeed(&place, "RESTORE DATABASE Shop FROM DISK = 'D:\\full.bak'");
    assert_eq!(last(&place, "Shop"), 0);
}

#[test]
fn a_data_file_that_was_added_comes_back_with_its_log() {
    let place = Place::new();
    chain(&place, 1);
    succeed(
        &place,
        "ALTER DATABASE Shop ADD FILE (NAME = Shop_2, FILENAME = 'D:\\shop_2.ndf')
GO
USE Shop
GO
CREATE TABLE many(b)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
INSERT INTO many SELECT randomblob(500) FROM n
INSERT INTO t VALUES (2)",
    );
    back_up_log(&place, "2.trn");
    restore_full(&place);
    succeed(&place, &restore_log(1, "NORECOVERY"));
    let second = "MOVE 'Shop_2' TO 'D:\\copy_2.ndf'";
    std::fs::write(place.path("copy_2.ndf"), "somebody's").expect("written");
    let taken = sql(&place, &restore_log(2, second));
    assert!(taken.numbers().contains(&3142), "{}", taken.err);
    std::fs::remove_file(place.path("copy_2.ndf")).expect("removed");
    succeed(&place, &restore_log(2, second));
    assert_eq!(last(&place, "Copy"), 2);
    assert!(place.path("copy_2.ndf").exists());
    let files = ask(
        &place,
        "instance",
        "SELECT count(*) AS files FROM sys.master_files WHERE database_id = DB_ID('Copy')",
    );
    assert_eq!(files[0]["files"], 3);
    // The same by one command, where the full backup has no such file.
    let moves = [
        ("Shop", "c.mdf"),
        ("Shop_log", "c.ldf"),
        ("Shop_2", "c_2.ndf"),
    ];
    let moves = moves.map(|(file, name)| format!("{file}={}", place.text(name)));
    let command = |moves: &[String]| {
        let mut words = vec![
            "restore",
            "full.bak",
            "1.trn",
            "2.trn",
            "--database",
            "Moved",
        ];
        words.extend(moves.iter().flat_map(|moved| ["--move", moved.as_str()]));
        on(&place, &words)
    };
    let unknown = command(&[&moves[..], &["Shop_3=/nowhere".to_owned()]].concat());
    assert!(unknown.err.contains("3234"), "{}", unknown.err);
    let moved = command(&moves);
    assert_eq!(moved.code, Some(0), "{}", moved.err);
    assert_eq!(last(&place, "Moved"), 2);
    assert!(place.path("c_2.ndf").exists());
}

#[test]
fn verification_finds_a_changed_byte_of_a_log_backup() {
    let place = Place::new();
    chain(&place, 1);
    let path = place.path("1.trn");
    let bytes = std::fs::metadata(&path).expect("the file").len();
    flip_bit(&path, bytes / 2);
    let run = sql(&place, "RESTORE VERIFYONLY FROM DISK = 'D:\\1.trn'");
    assert!(run.numbers().contains(&3013), "{}", run.err);
    restore_full(&place);
    assert!(
        sql(&place, &restore_log(1, "RECOVERY"))
            .numbers()
            .contains(&3013)
    );
    // Nothing was applied.
    succeed(&place, "RESTORE DATABASE Copy WITH RECOVERY");
    assert_eq!(last(&place, "Copy"), 0);
}

#[test]
fn the_commands_find_the_chain_from_mixed_media() {
    let place = Place::new();
    chain(&place, 1);
    insert(&place, 2);
    well(&place, &["backup", "Shop", "--log", "--to", "2.trn"]);
    insert(&place, 3);
    well(&place, &["backup", "Shop", "--log", "--to", "3.trn"]);
    let restore = |media: &[&str], to: &str| {
        let rest = ["--to", to, "--database", "Copy", "--replace"];
        crate::support::on(&place, &[&["restore"], media, &rest].concat())
    };
    let run = restore(&["3.trn", "full.bak", "2.trn", "1.trn"], "copy.db");
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(last(&place, "Copy"), 3);
    // A log is missing: what it leads to was to be restored.
    let run = restore(&["3.trn", "full.bak", "1.trn"], "copy.db");
    assert_ne!(run.code, Some(0));
    assert!(run.err.contains("the log before it"), "{}", run.err);
    assert_eq!(last(&place, "Copy"), 3);
}
