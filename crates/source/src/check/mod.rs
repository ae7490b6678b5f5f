//! SQLite's own check of a database, run on exactly what a backup reads.
//!
//! SQLite opens the [`Snapshot`] itself, through a read-only VFS. So it sees the pinned state, with
//! the pages of the log over those of the file, whatever other programs do meanwhile. Nothing is
//! copied.
//!
//! Only a frozen snapshot can be checked this way; a snapshot of the page engine is consistent only
//! at the end of its copy.

mod vfs;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::source::Depth;
use crate::{Error, Snapshot};

/// Maximum number of listed findings.
pub const FINDINGS_MAX: usize = 100;

/// Steps of SQLite's virtual machine between two checks of the cancel flag.
const STEPS_BETWEEN_LOOKS: i32 = 10_000;

/// Checks a frozen snapshot; returns it with SQLite's findings, at most [`FINDINGS_MAX`] lines,
/// empty if there are none.
///
/// # Errors
/// [`Error::Unchecked`] if SQLite cannot check it, because it is not a database or the check was
/// cancelled; errors of the snapshot.
pub fn check(
    snapshot: Box<dyn Snapshot>,
    depth: Depth,
    cancel: &Arc<AtomicBool>,
) -> Result<(Box<dyn Snapshot>, Vec<String>), Error> {
    let path = snapshot.files().first().map(|file| file.path.clone());
    let unchecked = |reason: String| Error::Unchecked {
        path: path.clone().unwrap_or_default(),
        reason,
    };
    let offered = vfs::offer(snapshot).map_err(|code| unchecked(format!("SQLite error {code}")))?;
    let found = Connection::open_with_flags(
        offered.uri(),
        OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .and_then(|mut connection| findings(&mut connection, depth, cancel));
    let failure = offered.failure();
    let snapshot = offered.take_back();
    let Some(snapshot) = snapshot else {
        return Err(unchecked("SQLite did not release it".to_owned()));
    };
    if let Some(failure) = failure {
        return Err(failure);
    }
    match found {
        Ok(findings) => Ok((snapshot, findings)),
        Err(error) => Err(unchecked(error.to_string())),
    }
}

/// The findings of SQLite's check on a connection: at most [`FINDINGS_MAX`] lines, empty if there
/// are none.
///
/// # Errors
/// SQLite's errors, except damage that stops the check, which is a finding.
pub fn findings(
    connection: &mut Connection,
    depth: Depth,
    cancel: &Arc<AtomicBool>,
) -> rusqlite::Result<Vec<String>> {
    let cancel = Arc::clone(cancel);
    connection.progress_handler(
        STEPS_BETWEEN_LOOKS,
        Some(move || cancel.load(Ordering::Relaxed)),
    )?;
    let pragma = match depth {
        Depth::Quick => "quick_check",
        Depth::Full => "integrity_check",
    };
    let lines = || {
        // Sort in memory and cache pages, because the check reads pages more than once.
        connection.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384")?;
        let mut statement = connection.prepare(&format!("PRAGMA {pragma}({FINDINGS_MAX})"))?;
        let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
        rows.collect::<rusqlite::Result<Vec<_>>>()
    };
    match lines() {
        Ok(lines) if lines == ["ok"] => Ok(Vec::new()),
        Ok(lines) => Ok(lines),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
            Ok(vec![format!(
                "the check could not go on behind a damaged page: {error}"
            )])
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{SnapshotOptions, SqliteSnapshot};
    use std::os::unix::fs::FileExt as _;
    use std::path::Path;

    fn make(path: &Path, setting: &str) -> Connection {
        let connection = Connection::open(path).unwrap();
        connection
            .execute_batch(&format!(
                "PRAGMA page_size = 4096; {setting};
                 CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT UNIQUE);
                 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
                 INSERT INTO t SELECT i, hex(randomblob(40)) FROM n;"
            ))
            .unwrap();
        connection
    }

    fn checked(path: &Path, depth: Depth) -> Result<Vec<String>, Error> {
        let snapshot = SqliteSnapshot::open(path, &SnapshotOptions::default())?;
        let cancel = Arc::default();
        check(Box::new(snapshot), depth, &cancel).map(|(snapshot, found)| {
            snapshot.close().unwrap();
            found
        })
    }

    #[test]
    fn a_sound_database_has_no_findings_whatever_its_journal_and_encoding() {
        let folder = tempfile::tempdir().unwrap();
        for (number, setting) in [
            "PRAGMA journal_mode = DELETE",
            "PRAGMA journal_mode = WAL",
            "PRAGMA encoding = 'UTF-16le'",
            "PRAGMA auto_vacuum = FULL",
        ]
        .into_iter()
        .enumerate()
        {
            let path = folder.path().join(number.to_string());
            // In WAL mode most of it is still in the log.
            let connection = make(&path, setting);
            for depth in [Depth::Quick, Depth::Full] {
                assert_eq!(checked(&path, depth).unwrap(), [""; 0], "{setting}");
            }
            drop(connection);
        }
    }

    #[test]
    fn the_pinned_state_is_checked_while_others_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.db");
        let writer = make(&path, "PRAGMA journal_mode = WAL");
        let snapshot = SqliteSnapshot::open(&path, &SnapshotOptions::default()).unwrap();
        writer
            .execute_batch("DELETE FROM t WHERE id % 2; DROP TABLE t; CREATE TABLE u (x)")
            .unwrap();
        let cancel = Arc::default();
        let (snapshot, found) = check(Box::new(snapshot), Depth::Full, &cancel).unwrap();
        assert_eq!(found, [""; 0]);
        snapshot.close().unwrap();
    }

    #[test]
    fn damage_is_found_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ill.db");
        drop(make(&path, ""));
        let good = std::fs::read(&path).unwrap();
        // The key in the index differs from the table: only the full check compares them.
        let page = good.len() / 4096 - 1;
        let at = (page * 4096 + 4090) as u64;
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.write_all_at(b"?", at).unwrap();
        let found = checked(&path, Depth::Full).unwrap();
        assert!(!found.is_empty());
        // A garbage page in the middle.
        std::fs::write(&path, &good).unwrap();
        file.write_all_at(&[0xA5; 4096], 40 * 4096).unwrap();
        for depth in [Depth::Quick, Depth::Full] {
            assert!(!checked(&path, depth).unwrap().is_empty(), "{depth:?}");
        }
        // Truncated in the middle.
        std::fs::write(&path, &good[..good.len() / 2 / 4096 * 4096]).unwrap();
        assert!(!checked(&path, Depth::Quick).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_database_cannot_be_checked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "not a database. ".repeat(999)).unwrap();
        let error = checked(&path, Depth::Quick).unwrap_err();
        assert!(matches!(error, Error::Unchecked { .. }), "{error}");
    }

    #[test]
    fn a_cancelled_check_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long.db");
        drop(make(&path, ""));
        let snapshot = SqliteSnapshot::open(&path, &SnapshotOptions::default()).unwrap();
        let cancel = Arc::new(AtomicBool::new(true));
        let error = check(Box::new(snapshot), Depth::Full, &cancel).unwrap_err();
        assert!(error.to_string().contains("interrupted"), "{error}");
    }
}
