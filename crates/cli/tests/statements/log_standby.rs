//! STANDBY: databases that are read between the restores of a sequence.

use crate::log_backups::{MOVE, chain, insert, last, refused, restore_full, restore_log};
use crate::support::{Place, ask, sql, succeed};

const STANDBY: &str = "STANDBY = 'D:\\copy.standby'";

fn state(place: &Place) -> (String, bool, bool) {
    let found = ask(
        place,
        "instance",
        "SELECT state_desc AS state, is_in_standby AS waits, is_read_only AS reads FROM sys.databases WHERE name = 'Copy'",
    );
    let flag = |name: &str| found[0][name] == true || found[0][name] == 1;
    let state = found[0]["state"].as_str().expect("a state").to_owned();
    (state, flag("waits"), flag("reads"))
}

#[test]
fn a_database_in_standby_is_read_between_restores_and_not_written() {
    let place = Place::new();
    chain(&place, 3);
    let file = || place.path("copy.standby").exists();
    succeed(
        &place,
        &format!("RESTORE DATABASE Copy FROM DISK = 'D:\\full.bak' WITH {STANDBY}, {MOVE}"),
    );
    assert!(file());
    assert_eq!(state(&place), ("ONLINE".to_owned(), true, true));
    assert_eq!(last(&place, "Copy"), 0);
    // Readers only.
    for change in [
        "INSERT INTO t VALUES (99)",
        "CREATE TABLE x(a)",
        "BEGIN TRAN\nDELETE FROM t",
        "PRAGMA user_version = 3",
    ] {
        let run = sql(&place, &format!("USE Copy\nGO\n{change}"));
        assert_eq!(run.numbers(), [3906], "{change}: {}", run.err);
    }
    succeed(
        &place,
        "USE Copy\nGO\nSELECT n INTO #t FROM t\nINSERT INTO #t VALUES (1)\nDBCC CHECKDB (Copy)",
    );
    for change in [
        "ALTER DATABASE Copy SET RECOVERY SIMPLE",
        "ALTER DATABASE Copy ADD FILE (NAME = x, FILENAME = 'D:\\x.ndf')",
    ] {
        refused(&sql(&place, change), &[3906]);
    }
    for backup in [
        "DATABASE Copy TO DISK = 'D:\\x.bak'",
        "LOG Copy TO DISK = 'D:\\x.bak'",
    ] {
        refused(&sql(&place, &format!("BACKUP {backup}")), &[3036, 3013]);
    }
    // The sequence goes on, also after readers; and to a differential or a point in time.
    for log in 1..=2 {
        succeed(&place, &restore_log(log, STANDBY));
        assert_eq!(last(&place, "Copy"), log);
        assert!(file());
    }
    // Without standby nobody reads, and the file is gone.
    succeed(
        &place,
        "RESTORE DATABASE Copy WITH STANDBY = 'D:\\other.standby'",
    );
    assert!(!file() && place.path("other.standby").exists());
    assert_eq!(last(&place, "Copy"), 2);
    succeed(&place, &restore_log(3, "NORECOVERY"));
    assert!(!place.path("other.standby").exists());
    refused(&sql(&place, "USE Copy"), &[927]);
    succeed(&place, &format!("RESTORE DATABASE Copy WITH {STANDBY}"));
    assert_eq!(last(&place, "Copy"), 3);
    succeed(&place, "RESTORE DATABASE Copy WITH RECOVERY");
    assert!(!file());
    assert_eq!(state(&place), ("ONLINE".to_owned(), false, false));
    insert_into_copy(&place);
    assert_eq!(last(&place, "Copy"), 10);
}

fn insert_into_copy(place: &Place) {
    succeed(place, "USE Copy\nGO\nINSERT INTO t VALUES (10)");
}

#[test]
fn a_standby_file_that_is_lost_or_anothers_stops_the_sequence_and_changes_nothing() {
    let place = Place::new();
    chain(&place, 2);
    // A file of somebody is not overwritten, and nothing is restored.
    std::fs::write(place.path("copy.standby"), "theirs").expect("written");
    let full = format!("RESTORE DATABASE Copy FROM DISK = 'D:\\full.bak' WITH {STANDBY}, {MOVE}");
    refused(&sql(&place, &full), &[50232, 3013]);
    assert_eq!(
        std::fs::read(place.path("copy.standby")).expect("it"),
        b"theirs"
    );
    refused(&sql(&place, "USE Copy"), &[911]);
    std::fs::remove_file(place.path("copy.standby")).expect("removed");
    succeed(&place, &full);
    succeed(&place, &restore_log(1, STANDBY));
    assert_eq!(last(&place, "Copy"), 1);
    // Lost, and another file in its place.
    let path = place.path("copy.standby");
    let kept = std::fs::read(&path).expect("it");
    for wrong in [None, Some("another")] {
        std::fs::remove_file(&path).expect("removed");
        if let Some(text) = wrong {
            std::fs::write(&path, text).expect("written");
        }
        refused(&sql(&place, &restore_log(2, "RECOVERY")), &[3441, 3013]);
        refused(
            &sql(&place, "RESTORE DATABASE Copy WITH RECOVERY"),
            &[3441, 3013],
        );
        assert!(!sql(&place, "USE Copy").numbers().is_empty());
        std::fs::write(&path, &kept).expect("put back");
        assert_eq!(last(&place, "Copy"), 1);
    }
    // A new full backup begins without it.
    std::fs::remove_file(&path).expect("removed");
    restore_full(&place);
    succeed(&place, &restore_log(1, "NORECOVERY"));
    succeed(&place, &restore_log(2, STANDBY));
    assert_eq!(last(&place, "Copy"), 2);
    succeed(&place, "DROP DATABASE Copy");
    let mut left = place.files("");
    left.retain(|name| name.starts_with("copy"));
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn standby_serves_databases_of_several_files_differentials_and_points_in_time() {
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
    succeed(
        &place,
        "BACKUP DATABASE Shop TO DISK = 'D:\\diff.bak' WITH DIFFERENTIAL\nBACKUP LOG Shop TO DISK = 'D:\\2.trn'",
    );
    insert(&place, 3);
    crate::log_backups::back_up_log(&place, "3.trn");
    succeed(
        &place,
        &format!("RESTORE DATABASE Copy FROM DISK = 'D:\\full.bak' WITH {STANDBY}, {MOVE}"),
    );
    assert_eq!(last(&place, "Copy"), 0);
    let moved = "MOVE 'Shop_2' TO 'D:\\copy_2.ndf'";
    succeed(
        &place,
        &format!("RESTORE DATABASE Copy FROM DISK = 'D:\\diff.bak' WITH {STANDBY}, {moved}"),
    );
    assert_eq!(last(&place, "Copy"), 2);
    let many = succeed(&place, "USE Copy\nGO\nSELECT count(*) AS n FROM many").results();
    assert_eq!(many[0][0]["n"], 3000);
    // A point behind the end: it stands by there.
    succeed(
        &place,
        &restore_log(3, &format!("{STANDBY}, STOPAT = '2099-01-01'")),
    );
    assert_eq!(last(&place, "Copy"), 3);
    succeed(&place, "RESTORE DATABASE Copy WITH RECOVERY");
    assert_eq!(last(&place, "Copy"), 3);
    // A SQLite file has no log.
    let run = sql(
        &place,
        &format!(
            "EXEC sp_attach_db 'app', 'D:\\app.db'\nBACKUP DATABASE app TO DISK = 'D:\\app.bak'
RESTORE DATABASE app2 FROM DISK = 'D:\\app.bak' WITH {STANDBY}, MOVE 'app' TO 'D:\\app2.db'"
        ),
    );
    assert!(run.numbers().contains(&50233), "{}", run.err);
    assert!(!place.path("app2.db").exists());
}

const SECOND_FILE: &str =
    "ALTER DATABASE Shop ADD FILE (NAME = Shop_2, FILENAME = 'D:\\shop_2.ndf')
GO
USE Shop
GO
CREATE TABLE many(b)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
INSERT INTO many SELECT randomblob(500) FROM n";

fn state_of_shop(place: &Place) -> String {
    let found = ask(
        place,
        "instance",
        "SELECT state_desc AS state, is_in_standby AS waits FROM sys.databases WHERE name = 'Shop'",
    );
    format!("{} {}", found[0]["state"], found[0]["waits"])
}

#[test]
fn a_tail_log_backup_with_standby_leaves_a_database_that_is_read_and_no_more_changed() {
    for has_second in [false, true] {
        let place = Place::new();
        chain(&place, 1);
        if has_second {
            succeed(&place, SECOND_FILE);
        }
        insert(&place, 2);
        succeed(
            &place,
            "BACKUP LOG Shop TO DISK = 'D:\\2.trn' WITH STANDBY = 'D:\\shop.standby'",
        );
        assert_eq!(state_of_shop(&place), "\"ONLINE\" true");
        assert_eq!(last(&place, "Shop"), 2);
        succeed(&place, "DBCC CHECKDB (Shop)");
        let change = sql(&place, "USE Shop\nGO\nINSERT INTO t VALUES (9)");
        assert_eq!(change.numbers(), [3906], "{}", change.err);
        for kind in ["LOG", "DATABASE"] {
            let backup = format!("BACKUP {kind} Shop TO DISK = 'D:\\x.bak'");
            refused(&sql(&place, &backup), &[3036, 3013]);
        }
        // All of its log is in the backup.
        let second = match has_second {
            true => ", MOVE 'Shop_2' TO 'D:\\copy_2.ndf'",
            false => "",
        };
        restore_full(&place);
        succeed(&place, &restore_log(1, "NORECOVERY"));
        succeed(&place, &restore_log(2, &format!("RECOVERY{second}")));
        assert_eq!(last(&place, "Copy"), 2);
        // A restore continues it, and applies nothing that it has.
        succeed(
            &place,
            "RESTORE LOG Shop FROM DISK = 'D:\\2.trn' WITH NORECOVERY",
        );
        assert!(!place.path("shop.standby").exists());
        refused(&sql(&place, "USE Shop"), &[927]);
        succeed(
            &place,
            "RESTORE DATABASE Shop WITH STANDBY = 'D:\\shop.standby'",
        );
        assert_eq!(last(&place, "Shop"), 2);
        // It becomes a database again, with a new chain of log backups.
        succeed(&place, "RESTORE DATABASE Shop WITH RECOVERY");
        assert!(!place.path("shop.standby").exists());
        insert(&place, 3);
        refused(
            &sql(&place, "BACKUP LOG Shop TO DISK = 'D:\\3.trn'"),
            &[4214, 50235, 3013],
        );
        succeed(
            &place,
            "BACKUP DATABASE Shop TO DISK = 'D:\\full3.bak'
BACKUP LOG Shop TO DISK = 'D:\\3.trn' WITH STANDBY = 'D:\\shop.standby', NO_TRUNCATE
RESTORE DATABASE Shop FROM DISK = 'D:\\full.bak'",
        );
        assert_eq!(last(&place, "Shop"), 0);
        succeed(&place, "DROP DATABASE Shop");
        let mut left = place.files("");
        left.retain(|name| name.starts_with("shop"));
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_database_that_restores_after_its_tail_is_read_with_a_standby_file() {
    let place = Place::new();
    chain(&place, 1);
    succeed(&place, SECOND_FILE);
    insert(&place, 2);
    succeed(
        &place,
        "BACKUP LOG Shop TO DISK = 'D:\\2.trn' WITH NORECOVERY",
    );
    refused(&sql(&place, "USE Shop"), &[927]);
    let standby = "RESTORE DATABASE Shop WITH STANDBY = 'D:\\shop.standby'";
    std::fs::write(place.path("shop.standby"), "theirs").expect("written");
    refused(&sql(&place, standby), &[50232, 3013]);
    std::fs::remove_file(place.path("shop.standby")).expect("removed");
    succeed(&place, standby);
    assert_eq!(state_of_shop(&place), "\"ONLINE\" true");
    assert_eq!(last(&place, "Shop"), 2);
    refused(
        &sql(&place, "USE Shop\nGO\nINSERT INTO t VALUES (9)"),
        &[3906],
    );
    succeed(&place, "RESTORE DATABASE Shop WITH NORECOVERY");
    assert_eq!(state_of_shop(&place), "\"RESTORING\" false");
    assert!(!place.path("shop.standby").exists());
    succeed(&place, standby);
    // Not beside a SQLite file, whose program would delete it.
    let beside = "RESTORE DATABASE Shop WITH STANDBY = 'D:\\app.db-wal'";
    assert!(sql(&place, beside).numbers().contains(&3013));
    assert_eq!(last(&place, "Shop"), 2);
    // The log is in the files already; the sequence ends as any other.
    succeed(
        &place,
        "RESTORE LOG Shop FROM DISK = 'D:\\2.trn' WITH NORECOVERY",
    );
    assert!(!place.path("shop.standby").exists());
    succeed(&place, "RESTORE DATABASE Shop WITH RECOVERY");
    assert_eq!(state_of_shop(&place), "\"ONLINE\" false");
    insert(&place, 3);
    assert_eq!(last(&place, "Shop"), 3);
}

#[test]
fn a_tail_that_cannot_be_left_in_standby_leaves_the_database_as_it_was() {
    let place = Place::new();
    chain(&place, 1);
    insert(&place, 2);
    std::fs::write(place.path("shop.standby"), "theirs").expect("written");
    let tail = "BACKUP LOG Shop TO DISK = 'D:\\2.trn' WITH STANDBY = 'D:\\shop.standby'";
    refused(&sql(&place, tail), &[50232, 3013]);
    std::fs::remove_file(place.path("shop.standby")).expect("removed");
    refused(
        &sql(&place, &format!("USE Shop\nGO\n{tail}")),
        &[3102, 3013],
    );
    let nul = "BACKUP LOG Shop TO DISK = 'NUL' WITH STANDBY = 'D:\\shop.standby'";
    assert!(sql(&place, nul).numbers().contains(&3013));
    let both = format!("{tail}, NORECOVERY");
    refused(&sql(&place, &both), &[3031, 3013]);
    // A file that nobody may rename: it has a second name.
    std::fs::hard_link(place.path("shop.mdf"), place.path("second")).expect("linked");
    assert!(sql(&place, tail).numbers().contains(&3013));
    assert_eq!(state_of_shop(&place), "\"ONLINE\" false");
    std::fs::remove_file(place.path("second")).expect("removed");
    insert(&place, 3);
    succeed(&place, "BACKUP LOG Shop TO DISK = 'D:\\3.trn'");
    restore_full(&place);
    succeed(&place, &restore_log(1, "NORECOVERY"));
    succeed(&place, &restore_log(3, "RECOVERY"));
    assert_eq!(last(&place, "Copy"), 3);
}
