//! RESTORE DATABASE ... PAGE: damaged pages of databases of the page engine come back while they are used.

use std::os::unix::fs::FileExt as _;

use crate::sales::MAKE;
use crate::support::{Place, Run, flip_bit, pages, sql, succeed};

const MEDIA: &str = "DISK = 'D:\\a.bak', DISK = 'D:\\b.bak'";

const SUM: &str = "SELECT sum(length(body)) AS bytes FROM orders";

/// Flips a bit in the middle of a page of a file.
fn damage(place: &Place, file: &str, page: u64) {
    flip_bit(&place.path(file), page * 8192 + 4000);
}

fn texts(run: &Run) -> Vec<String> {
    let messages = run.messages().into_iter();
    messages
        .filter_map(|message| message["text"].as_str().map(str::to_owned))
        .collect()
}

#[test]
fn pages_of_two_files_come_back_from_striped_compressed_media() {
    let place = Place::new();
    succeed(
        &place,
        &format!(
            "{MAKE}
BACKUP DATABASE Sales TO DISK = 'D:\\a.bak'
BACKUP DATABASE Sales TO {MEDIA} WITH FORMAT, COMPRESSION (ALGORITHM = ZSTD), CHECKSUM"
        ),
    );
    damage(&place, "sales_2.ndf", 12);
    damage(&place, "sales_2.ndf", 60);
    damage(&place, "sales_1.mdf", 70);
    let run = sql(
        &place,
        "BACKUP DATABASE Sales TO DISK = 'D:\\c.bak' WITH COPY_ONLY, CHECKSUM, CONTINUE_AFTER_ERROR",
    );
    assert!(run.numbers().contains(&3042), "{}", run.err);
    // In the session that uses the database, which has met the damage.
    let run = sql(
        &place,
        &format!(
            "USE Sales
GO
CREATE TEMP TABLE seen AS {SUM}
GO
DECLARE @list varchar(100) = '3:12, 1:70,3:60 , 3:12'
RESTORE DATABASE Sales PAGE = @list FROM {MEDIA} WITH CHECKSUM, RECOVERY, STATS = 50
{SUM}
PRAGMA integrity_check
SELECT file_id, page_id, event_type FROM msdb.dbo.suspect_pages ORDER BY 1, 2
SELECT restore_type, destination_phys_name AS name FROM msdb.dbo.restorehistory h
JOIN msdb.dbo.restorefile f ON f.restore_history_id = h.restore_history_id ORDER BY 2"
        ),
    );
    assert_eq!(run.numbers().first(), Some(&824), "{}", run.err);
    let results = run.results();
    assert_eq!(results[0][0]["bytes"], 2_000_000, "{}", run.err);
    assert_eq!(results[1][0]["integrity_check"], "ok");
    let suspect = results[2].as_array().expect("rows");
    assert_eq!(suspect.len(), 3);
    assert!(
        suspect.iter().all(|row| row["event_type"] == 4),
        "{suspect:?}"
    );
    let history = results[3].as_array().expect("rows");
    assert_eq!(history.len(), 2);
    assert!(
        history.iter().all(|row| row["restore_type"] == "F"),
        "{history:?}"
    );
    let texts = texts(&run);
    for text in [
        "Processed 1 pages for database 'Sales', file 'Sales_1' on file 1.",
        "Processed 2 pages for database 'Sales', file 'Sales_2' on file 1.",
        "100 percent processed.",
        "RESTORE DATABASE ... FILE=<Sales_1>, FILE=<Sales_2> successfully processed 3 pages in ",
    ] {
        assert!(
            texts.iter().any(|reported| reported.starts_with(text)),
            "{text}: {texts:?}"
        );
    }
    // The base is unchanged: a differential on top of it restores the current state.
    succeed(
        &place,
        &format!("BACKUP DATABASE Sales TO {MEDIA} WITH DIFFERENTIAL, CHECKSUM"),
    );
}

#[test]
fn changed_extents_other_sets_and_wrong_lists_are_refused() {
    let place = Place::new();
    succeed(
        &place,
        &format!(
            "{MAKE}
BACKUP DATABASE Sales TO DISK = 'D:\\a.bak'
GO
BACKUP DATABASE Sales TO DISK = 'D:\\a.bak'
UPDATE orders SET body = 'changed' WHERE id = 20000
BACKUP DATABASE Sales TO DISK = 'D:\\a.bak' WITH COPY_ONLY
BACKUP DATABASE Sales TO DISK = 'D:\\a.bak' WITH DIFFERENTIAL"
        ),
    );
    let content = || ["sales_1.mdf", "sales_2.ndf"].map(|name| pages(&place.path(name)));
    let before = content();
    let restore = |pages: &str, rest: &str| {
        format!("RESTORE DATABASE Sales PAGE = '{pages}' FROM DISK = 'D:\\a.bak' {rest}")
    };
    let many: Vec<_> = (0..1001).map(|page| format!("1:{page}")).collect();
    let cases = [
        // Every commit of SQLite changes page 1, and with it the first extent.
        (restore("3:12, 1:0, 1:3", "WITH FILE = 2"), vec![3115, 3013]),
        (restore("3:12", ""), vec![3116, 3013]),
        (restore("3:12", "WITH FILE = 3"), vec![3116, 3013]),
        (restore("3:12", "WITH FILE = 4"), vec![3195, 3013]),
        (restore("3:12", "WITH FILE = 2, CHECKSUM"), vec![3187, 3013]),
        (
            restore("3:12", "WITH FILE = 2, NORECOVERY"),
            vec![4346, 3013],
        ),
        (restore("3:12", "WITH FILE = 2, REPLACE"), vec![50005, 3013]),
        (
            restore("3:12", "WITH FILE = 2, CONTINUE_AFTER_ERROR"),
            vec![50005, 3013],
        ),
        (
            restore("3:12", "WITH FILE = 2, BUFFERCOUNT = 5"),
            vec![50005, 3013],
        ),
        (
            restore("3:12", "WITH FILE = 2, MOVE 'Sales_1' TO 'D:\\x'"),
            vec![50005, 3013],
        ),
        (restore("3:12", "WITH FILE = 2, PARTIAL"), vec![50005, 3013]),
        (restore("3:5000", "WITH FILE = 2"), vec![3194, 3013]),
        (restore("9:1", "WITH FILE = 2"), vec![3194, 3013]),
        (restore("2:1", "WITH FILE = 2"), vec![3111, 3013]),
        (restore(&many.join(","), "WITH FILE = 2"), vec![3105, 3013]),
        (restore("3:12; 3:13", "WITH FILE = 2"), vec![4350, 3013]),
        (restore("", "WITH FILE = 2"), vec![4350, 3013]),
        (
            "RESTORE DATABASE app PAGE = '1:5' FROM DISK = 'D:\\a.bak'".to_owned(),
            vec![50005, 3013],
        ),
        (
            "RESTORE DATABASE Nothing PAGE = '1:5' FROM DISK = 'D:\\a.bak'".to_owned(),
            vec![911, 3013],
        ),
        (
            format!(
                "USE Sales\nGO\nBEGIN TRANSACTION\n{}",
                restore("3:12", "WITH FILE = 2")
            ),
            vec![3021, 3013],
        ),
        (
            "RESTORE DATABASE Sales PAGE = '1:9', PAGE = '3:12' FROM DISK = 'D:\\a.bak'".to_owned(),
            vec![50005, 3013],
        ),
        (
            "RESTORE DATABASE Sales PAGE = '3:12'".to_owned(),
            vec![3207, 3013],
        ),
    ];
    let attach = format!("EXEC sp_attach_db 'app', '{}'", place.text("app.db"));
    succeed(&place, &attach);
    for (script, expected) in cases {
        let run = sql(&place, &script);
        assert_eq!(run.numbers(), expected, "{script}\n{}", run.err);
    }
    assert!(before == content(), "nothing was written");
    let reported = texts(&sql(&place, &restore("3:12", "WITH FILE = 3"))).join("\n");
    assert!(
        reported.contains("COPY_ONLY") && reported.contains("FILE = 2 on "),
        "{reported}"
    );
    let reported = texts(&sql(&place, &restore("3:12, 1:3", "WITH FILE = 2"))).join("\n");
    assert!(reported.contains(": (1:3). "), "{reported}");
    succeed(&place, &restore("3:12", "WITH FILE = 2"));
}

#[test]
fn a_page_comes_back_from_an_encrypted_set_and_into_a_restored_database() {
    let place = Place::new();
    succeed(
        &place,
        &format!(
            "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'Correct-Horse-Battery'
CREATE CERTIFICATE BackupCert WITH SUBJECT = 'Backups', EXPIRY_DATE = '20990101'
GO
{MAKE}
BACKUP DATABASE Sales TO DISK = 'D:\\e.bak' WITH COMPRESSION, CHECKSUM,
ENCRYPTION (ALGORITHM = AES_256, SERVER CERTIFICATE = BackupCert)
GO
RESTORE DATABASE Copy FROM DISK = 'D:\\e.bak' WITH MOVE 'Sales_1' TO 'D:\\copy_1.mdf',
MOVE 'Sales_2' TO 'D:\\copy_2.ndf', MOVE 'Sales_log' TO 'D:\\copy_log.ldf'"
        ),
    );
    damage(&place, "sales_2.ndf", 12);
    damage(&place, "copy_1.mdf", 40);
    let script = format!(
        "RESTORE DATABASE Sales PAGE = '3:12' FROM DISK = 'D:\\e.bak'
RESTORE DATABASE Copy PAGE = '1:40' FROM DISK = 'D:\\e.bak'
USE Sales
GO
{SUM}
USE Copy
GO
{SUM}"
    );
    let run = succeed(&place, &script);
    let results = run.results();
    assert_eq!(results[0][0]["bytes"], 2_000_000, "{}", run.err);
    assert_eq!(results[1][0]["bytes"], 2_000_000);
    // Damage on the media is met before anything is written.
    damage(&place, "sales_2.ndf", 12);
    let damaged = pages(&place.path("sales_2.ndf"));
    let length = std::fs::metadata(place.path("e.bak")).expect("media").len();
    let media = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(place.path("e.bak"))
        .expect("media");
    // Damage of a chunk's header is another error.
    let content = std::fs::read(place.path("e.bak")).expect("media");
    let chunks = content.windows(4).zip(0_u64..);
    let chunks = chunks.filter(|(bytes, _)| *bytes == b"WLDT");
    let chunks: Vec<u64> = chunks.map(|(_, at)| at).collect();
    let (mut byte, at) = ([0], length / 2);
    for at in (at - 200_000..at + 200_000).step_by(4096) {
        if chunks.iter().any(|chunk| chunk.abs_diff(at) < 8192) {
            continue;
        }
        media.read_exact_at(&mut byte, at).expect("media");
        media.write_all_at(&[byte[0] ^ 1], at).expect("media");
    }
    let restore = "RESTORE DATABASE Sales PAGE = '3:12' FROM DISK = 'D:\\e.bak'";
    let run = sql(&place, restore);
    assert_eq!(run.numbers(), [3189, 3013], "{}", run.err);
    assert!(pages(&place.path("sales_2.ndf")) == damaged);
}

#[test]
fn a_lost_file_comes_back_and_a_changed_one_is_refused() {
    let place = Place::new();
    succeed(
        &place,
        &format!(
            "{MAKE}
BACKUP DATABASE Sales TO DISK = 'D:\\a.bak', DISK = 'D:\\b.bak' WITH COMPRESSION, CHECKSUM"
        ),
    );
    damage(&place, "sales_2.ndf", 12);
    sql(
        &place,
        "BACKUP DATABASE Sales TO DISK = 'D:\\c.bak' WITH COPY_ONLY, CHECKSUM, CONTINUE_AFTER_ERROR",
    );
    std::fs::remove_file(place.path("sales_2.ndf")).expect("the file");
    let lost = sql(&place, "USE Sales\nGO\nCREATE TABLE x(y)");
    assert!(lost.numbers().contains(&5120), "{}", lost.err);
    let media = "FROM DISK = 'D:\\a.bak', DISK = 'D:\\b.bak'";
    let run = succeed(
        &place,
        &format!(
            "RESTORE DATABASE Sales FILE = 'sales_2' {media} WITH CHECKSUM, STATS = 50
USE Sales
GO
{SUM}
PRAGMA integrity_check
SELECT page_id, event_type FROM msdb.dbo.suspect_pages
SELECT restore_type, destination_phys_name AS name FROM msdb.dbo.restorehistory h
JOIN msdb.dbo.restorefile f ON f.restore_history_id = h.restore_history_id"
        ),
    );
    let results = run.results();
    assert_eq!(results[0][0]["bytes"], 2_000_000, "{}", run.err);
    assert_eq!(results[1][0]["integrity_check"], "ok");
    assert_eq!(
        results[2],
        serde_json::json!([{"page_id": 12, "event_type": 4}])
    );
    assert_eq!(results[3][0]["restore_type"], "F");
    let texts = texts(&run);
    for text in [
        "Processed 134 pages for database 'Sales', file 'Sales_2' on file 1.",
        "RESTORE DATABASE ... FILE=<Sales_2> successfully processed 134 pages in ",
    ] {
        assert!(
            texts.iter().any(|reported| reported.starts_with(text)),
            "{text}: {texts:?}"
        );
    }
    let sales = |files: &str, rest: &str| format!("RESTORE DATABASE Sales {files} {media} {rest}");
    let app = "RESTORE DATABASE app FILE = 'app' FROM DISK = 'D:\\c.bak'";
    for (script, expected) in [
        (sales("FILE = 'Sales_9'", ""), vec![3234, 3013]),
        (sales("FILE = 'Sales_log'", ""), vec![50005, 3013]),
        (sales("FILEGROUP = 'PRIMARY'", ""), vec![50005, 3013]),
        (
            sales("FILE = 'Sales_2'", "WITH NORECOVERY"),
            vec![4346, 3013],
        ),
        (
            format!("USE Sales\nGO\n{}", sales("FILE = 'Sales_2'", "")),
            vec![3102, 3013],
        ),
        (
            "RESTORE DATABASE Sales FILE = 'Sales_2' FROM DISK = 'D:\\c.bak'".to_owned(),
            vec![3116, 3013],
        ),
        (
            format!(
                "EXEC sp_attach_db 'app', '{}'\nGO\n{app}",
                place.text("app.db")
            ),
            vec![50005, 3013],
        ),
    ] {
        let run = sql(&place, &script);
        assert_eq!(run.numbers(), expected, "{script}\n{}", run.err);
    }
    // Every commit changes the first page, which is in the first file.
    succeed(
        &place,
        "USE Sales\nGO\nUPDATE orders SET body = 'new' WHERE id = 1",
    );
    for both in [
        "FILE = ('Sales_1', 'Sales_2')",
        "FILE = 'Sales_1', FILE = 'Sales_2'",
    ] {
        assert_eq!(sql(&place, &sales(both, "")).numbers(), [3115, 3013]);
    }
    succeed(&place, &sales("FILE = 'Sales_2', FILE = 'SALES_2'", ""));
    let left = std::fs::read_dir(place.path("")).expect("the folder");
    let left = left.flatten().map(|entry| entry.file_name());
    let left: Vec<_> = left
        .filter(|name| name.to_string_lossy().contains("windlass-restoring"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
