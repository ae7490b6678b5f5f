//! How many bytes of the spool commits take.

use super::*;

/// A row to a page, of bytes that cannot be compressed.
const ROWS: u32 = 12_000;
const ROWS_OF_A_COMMIT: u32 = 100;

#[test]
fn more_pages_than_are_kept_in_memory_become_several_moments_and_none_is_kept_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(&format!(
            "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = OFF;
             CREATE TABLE t(a INTEGER PRIMARY KEY, n INTEGER, b);
             WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i WHERE v < {ROWS})
               INSERT INTO t SELECT v, 1000, randomblob(3000) FROM i;"
        ))
        .unwrap();
    let options = FollowOptions::within(folder.path().join("spool"));
    let mut follower = Follower::begin(&path, &options).unwrap();
    // What the pages were before is known only in a generation that was read from its first frame on.
    assert_eq!(checkpoint(&connection, "PASSIVE"), 0);
    follower.step(true).unwrap();
    let update = "UPDATE t SET n = n + 1 WHERE a > ?1 AND a <= ?1 + ?2";
    for commit in 0..ROWS / ROWS_OF_A_COMMIT {
        let range = [commit * ROWS_OF_A_COMMIT, ROWS_OF_A_COMMIT];
        connection.execute(update, range).unwrap();
        follower.step(false).unwrap();
    }
    follower.step(true).unwrap();
    let status = follower.status();
    assert_eq!(status.commit_number, u64::from(ROWS / ROWS_OF_A_COMMIT));
    assert!(
        status.spool_bytes < 4 << 20,
        "{} bytes for {ROWS} pages of which a byte each was changed",
        status.spool_bytes
    );
}
