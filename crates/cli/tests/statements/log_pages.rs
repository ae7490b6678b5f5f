//! Single pages that come back from any full backup, with log backups.

use std::os::unix::fs::FileExt as _;

use crate::log_backups::{MAKE, back_up_log, last, refused};
use crate::support::{Place, ask, sql, succeed};

pub(crate) const FILL: &str = "USE Shop
GO
CREATE TABLE many(id INTEGER PRIMARY KEY, b)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
INSERT INTO many SELECT i, randomblob(2000) FROM n";

pub(crate) fn change(place: &Place, number: u32) {
    succeed(
        place,
        &format!(
            "USE Shop\nGO\nUPDATE many SET b = randomblob(2000) WHERE id % 3 = {}\nINSERT INTO t VALUES ({number})",
            number % 3
        ),
    );
}

pub(crate) fn content(place: &Place) -> String {
    let run = succeed(
        place,
        "USE Shop\nGO\nSELECT group_concat(id || hex(b)) AS everything FROM many\nPRAGMA integrity_check",
    );
    let results = run.results();
    assert_eq!(results[1][0]["integrity_check"], "ok");
    results[0][0]["everything"].to_string()
}

/// Pages of the table: all of them behind the first few of the file.
const PAGES: [u64; 3] = [20, 30, 41];

fn damage(place: &Place) {
    let file = std::fs::File::options()
        .write(true)
        .open(place.path("shop.mdf"))
        .expect("the file");
    for page in PAGES {
        file.write_all_at(&[0x5A; 300], page * 8192 + 500)
            .expect("written");
    }
    let run = sql(
        place,
        "USE Shop\nGO\nSELECT sum(length(hex(b))) AS n FROM many",
    );
    assert!(run.numbers().contains(&824), "{}", run.err);
}

#[test]
fn damaged_pages_are_rolled_forward_from_an_old_full_backup_to_the_last_commit() {
    let place = Place::new();
    succeed(&place, &format!("{MAKE}\nGO\n{FILL}"));
    succeed(
        &place,
        "BACKUP DATABASE Shop TO DISK = 'D:\\full.bak'\nBACKUP DATABASE Shop TO DISK = 'D:\\copy.bak' WITH COPY_ONLY",
    );
    for number in 1..=3 {
        change(&place, number);
        back_up_log(&place, &format!("{number}.trn"));
    }
    // A later full backup is the differential base.
    succeed(&place, "BACKUP DATABASE Shop TO DISK = 'D:\\full2.bak'");
    change(&place, 4);
    let whole = content(&place);
    damage(&place);
    let list = "PAGE = '1:20, 1:30, 1:41'";
    let log = |file: u32, how: &str| {
        sql(
            &place,
            &format!("RESTORE LOG Shop FROM DISK = 'D:\\{file}.trn' WITH {how}"),
        )
    };
    // The log of the database does not go back that far: it says so, and the pages wait.
    for full in ["full.bak", "copy.bak"] {
        let run = succeed(
            &place,
            &format!("RESTORE DATABASE Shop {list} FROM DISK = 'D:\\{full}'"),
        );
        assert!(run.numbers().contains(&4303), "{}", run.err);
        refused(&log(2, "RECOVERY"), &[4305, 3013]);
        assert_eq!(log(1, "NORECOVERY").code, Some(0));
        let run = succeed(&place, "RESTORE DATABASE Shop WITH RECOVERY");
        assert!(run.numbers().contains(&4303), "{}", run.err);
    }
    assert_eq!(log(2, "NORECOVERY").code, Some(0));
    refused(&log(1, "NORECOVERY"), &[4326, 3013]);
    let run = log(3, "RECOVERY");
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(!run.numbers().contains(&4303), "{}", run.err);
    assert_eq!(content(&place), whole);
    assert!(!place.path("shop.ldf.windlass-pages").exists());
    assert_eq!(last(&place, "Shop"), 4);
    let suspect = ask(
        &place,
        "instance",
        "SELECT count(*) AS n FROM msdb.dbo.suspect_pages WHERE event_type IN (1, 2, 3)",
    );
    assert_eq!(suspect[0]["n"], 0);
    // Afterwards RESTORE LOG is one of the whole database again.
    refused(&log(3, "RECOVERY"), &[3117, 3013]);
    // From the newest full backup the log of the database alone is enough.
    damage(&place);
    let run = succeed(
        &place,
        &format!("RESTORE DATABASE Shop {list} FROM DISK = 'D:\\full2.bak'"),
    );
    assert!(!run.numbers().contains(&4303), "{}", run.err);
    assert_eq!(content(&place), whole);
    // Without all of it, step by step, with the tail backed up as on SQL Server.
    damage(&place);
    succeed(
        &place,
        &format!(
            "RESTORE DATABASE Shop {list} FROM DISK = 'D:\\full2.bak' WITH NORECOVERY
BACKUP LOG Shop TO DISK = 'D:\\4.trn'
RESTORE LOG Shop FROM DISK = 'D:\\4.trn' WITH RECOVERY"
        ),
    );
    assert_eq!(content(&place), whole);
    // Not of this database, or not of its history.
    succeed(
        &place,
        "RESTORE DATABASE Fork FROM DISK = 'D:\\full.bak' WITH MOVE 'Shop' TO 'D:\\fork.mdf', MOVE 'Shop_log' TO 'D:\\fork.ldf'
BACKUP DATABASE Fork TO DISK = 'D:\\fork.bak'",
    );
    refused(
        &sql(
            &place,
            &format!("RESTORE DATABASE Shop {list} FROM DISK = 'D:\\fork.bak' WITH NORECOVERY"),
        ),
        &[3116, 3013],
    );
    let stop = format!(
        "RESTORE DATABASE Shop {list} FROM DISK = 'D:\\full2.bak' WITH NORECOVERY, STOPAT = '2026-01-01'"
    );
    assert_eq!(sql(&place, &stop).numbers(), [50005, 3013]);
}
