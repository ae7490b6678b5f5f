//! Data files that come back from any full backup, with log backups.

use crate::log_backups::{MAKE, back_up_log, last, refused};
use crate::log_pages::{FILL, change, content};
use crate::support::{Place, Run, sql, succeed};

const SECOND: &str = "ALTER DATABASE Shop ADD FILE (NAME = Shop_2, FILENAME = 'D:\\shop_2.ndf')";

fn restore(place: &Place, files: &str, full: &str, options: &str) -> Run {
    sql(
        place,
        &format!("RESTORE DATABASE Shop {files} FROM DISK = 'D:\\{full}' {options}"),
    )
}

fn log(place: &Place, file: u32, how: &str) -> Run {
    let text = format!("RESTORE LOG Shop FROM DISK = 'D:\\{file}.trn' WITH {how}");
    sql(place, &text)
}

fn left(place: &Place) -> Vec<String> {
    let mut left = place.files("");
    left.retain(|name| name.contains(".windlass-"));
    left
}

/// Full backups, log backups after them, and what no backup has.
fn history(place: &Place) {
    succeed(place, &format!("{MAKE}\nGO\n{SECOND}\nGO\n{FILL}"));
    succeed(
        place,
        "BACKUP DATABASE Shop TO DISK = 'D:\\full.bak'
BACKUP DATABASE Shop TO DISK = 'D:\\copy.bak' WITH COPY_ONLY",
    );
    for number in 1..=3 {
        change(place, number);
        back_up_log(place, &format!("{number}.trn"));
    }
    // A later full backup is the differential base.
    succeed(place, "BACKUP DATABASE Shop TO DISK = 'D:\\full2.bak'");
    change(place, 4);
}

#[test]
fn a_lost_file_is_rolled_forward_from_an_old_full_backup_to_the_last_commit() {
    let place = Place::new();
    history(&place);
    let whole = content(&place);
    let lose = || std::fs::remove_file(place.path("shop_2.ndf")).expect("removed");
    lose();
    assert_ne!(sql(&place, "USE Shop\nGO\nSELECT 1").code, Some(0));
    // The log of the database does not go back that far: it says so, and the file waits.
    for full in ["full.bak", "copy.bak"] {
        let run = restore(&place, "FILE = 'Shop_2'", full, "");
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert!(run.numbers().contains(&4303), "{}", run.err);
        refused(&log(&place, 2, "RECOVERY"), &[4305, 3013]);
        let run = log(&place, 1, "NORECOVERY");
        assert_eq!(run.code, Some(0), "{}", run.err);
        let run = succeed(&place, "RESTORE DATABASE Shop WITH RECOVERY");
        assert!(run.numbers().contains(&4303), "{}", run.err);
        assert!(!place.path("shop_2.ndf").exists());
    }
    assert_eq!(log(&place, 2, "NORECOVERY").code, Some(0));
    refused(&log(&place, 1, "NORECOVERY"), &[4326, 3013]);
    let run = log(&place, 3, "RECOVERY");
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(!run.numbers().contains(&4303), "{}", run.err);
    assert_eq!(content(&place), whole);
    assert_eq!(last(&place, "Shop"), 4);
    succeed(&place, "DBCC CHECKDB (Shop)");
    assert!(left(&place).is_empty());
    // Afterwards RESTORE LOG is one of the whole database again.
    refused(&log(&place, 3, "RECOVERY"), &[3117, 3013]);
    // From the newest full backup the log of the database alone is enough; both files at once, too.
    for files in ["FILE = 'Shop_2'", "FILE = 'Shop', FILE = 'Shop_2'"] {
        lose();
        let run = restore(&place, files, "full2.bak", "");
        assert_eq!(run.code, Some(0), "{files}: {}", run.err);
        assert!(!run.numbers().contains(&4303), "{files}: {}", run.err);
        assert_eq!(content(&place), whole);
    }
    // The database goes on, and so does its log.
    change(&place, 5);
    back_up_log(&place, "5.trn");
    let run = restore(&place, "FILE = 'Shop'", "full2.bak", "WITH NORECOVERY");
    assert_eq!(run.code, Some(0), "{}", run.err);
    // It is used while the file waits.
    assert_eq!(last(&place, "Shop"), 5);
    change(&place, 6);
    let whole = content(&place);
    assert_eq!(log(&place, 5, "RECOVERY").code, Some(0));
    assert_eq!(content(&place), whole);
    assert!(left(&place).is_empty());
}

#[test]
fn one_restore_of_parts_waits_at_a_time_and_only_on_its_own_history() {
    let place = Place::new();
    history(&place);
    let waits = |files: &str| restore(&place, files, "full.bak", "WITH NORECOVERY");
    assert_eq!(waits("FILE = 'Shop_2'").code, Some(0));
    refused(&waits("FILE = 'Shop'"), &[50303, 3013]);
    refused(&waits("PAGE = '1:20'"), &[50302, 3013]);
    assert_eq!(waits("FILE = 'Shop', FILE = 'Shop_2'").code, Some(0));
    for options in [
        "STOPAT = '2099-01-01'",
        "STANDBY = 'D:\\s.standby'",
        "MOVE 'Shop' TO 'D:\\x'",
    ] {
        assert_ne!(log(&place, 1, options).code, Some(0), "{options}");
        let options = format!("WITH {options}");
        let run = restore(&place, "FILE = 'Shop'", "full.bak", &options);
        assert_ne!(run.code, Some(0), "{options}");
    }
    // A restore of the whole database ends it.
    succeed(
        &place,
        "RESTORE DATABASE Shop FROM DISK = 'D:\\full.bak' WITH REPLACE",
    );
    assert!(left(&place).is_empty());
    refused(&log(&place, 1, "RECOVERY"), &[3117, 3013]);
    // The backups are of the history before.
    refused(&waits("FILE = 'Shop_2'"), &[4346, 3013]);
    succeed(&place, "BACKUP DATABASE Shop TO DISK = 'D:\\new.bak'");
    refused(&waits("FILE = 'Shop_2'"), &[3116, 3013]);
    let waits = |files: &str| restore(&place, files, "new.bak", "WITH NORECOVERY");
    assert_eq!(waits("PAGE = '1:20'").code, Some(0));
    refused(&waits("FILE = 'Shop_2'"), &[50302, 3013]);
    succeed(&place, "DROP DATABASE Shop");
    assert!(left(&place).is_empty(), "{:?}", left(&place));
}
