//! The content of an image, for each page size, and the properties of a snapshot.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rusqlite::Connection;
use windlass_base::{EXTENT_BYTES, Guid, Lsn};
use windlass_io::AlignedBuffer;
use windlass_source::sqlite::{RestoreRequest, SnapshotOptions, SqliteSnapshot, SqliteTarget};
use windlass_source::{
    Content, Error, Recovery, RecoveryModel, RestoreTarget as _, Snapshot, WalDamage,
};

use crate::locks::notes;
use crate::restoring::{other_content, replacing};
use crate::support::{fill, image, names, open, request, restore};

/// A database in WAL mode whose newest pages are only in the log; the connection keeps them there.
fn with_log(path: &Path, page_bytes: u32) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(&format!(
            "PRAGMA page_size = {page_bytes}; PRAGMA journal_mode = WAL;
             PRAGMA wal_autocheckpoint = 0;
             CREATE TABLE t(a INTEGER PRIMARY KEY, b BLOB);
             WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 300)
               INSERT INTO t SELECT v, randomblob(1000) FROM n;
             PRAGMA wal_checkpoint(TRUNCATE);
             UPDATE t SET b = randomblob(1500) WHERE a % 3 = 0;
             DELETE FROM t WHERE a > 250;
             UPDATE t SET b = randomblob(1200) WHERE a % 30 = 0;"
        ))
        .unwrap();
    connection
}

#[test]
fn pages_of_the_log_lie_over_those_of_the_file_for_every_page_size() {
    for page_bytes in [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sizes.db");
        let connection = with_log(&path, page_bytes);
        let log = fs::read(folder.path().join("sizes.db-wal")).unwrap();
        let snapshot = open(&path);
        assert_eq!(snapshot.identity().page_bytes, page_bytes);
        let bytes = image(snapshot, 3);
        assert_eq!(
            fs::read(folder.path().join("sizes.db-wal")).unwrap(),
            log,
            "log as found"
        );
        let before = fs::read(&path).unwrap();
        connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .unwrap();
        let after = fs::read(&path).unwrap();
        assert!(before != after && bytes == after, "page size {page_bytes}");
    }
}

#[test]
fn pages_that_were_never_written_are_zero() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("holes.db");
    let connection = with_log(&path, 1024);
    connection
        .execute_batch(
            "PRAGMA wal_checkpoint(TRUNCATE); BEGIN; CREATE TABLE gone(b);
             INSERT INTO gone VALUES (zeroblob(900000)); DROP TABLE gone;
             INSERT INTO t VALUES (1000, 'kept'); COMMIT;",
        )
        .unwrap();
    let bytes = image(open(&path), 2);
    assert!(bytes.len() as u64 > fs::metadata(&path).unwrap().len() + 500_000);
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    assert!(bytes == fs::read(&path).unwrap());
}

#[test]
fn a_page_that_neither_the_file_nor_the_log_has_was_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.db");
    let _keeps_the_log = with_log(&path, 1024);
    let whole = fs::metadata(&path).unwrap().len();
    let (copy, log) = (
        folder.path().join("cut.db"),
        folder.path().join("cut.db-wal"),
    );
    for frozen in [false, true] {
        let options = SnapshotOptions {
            frozen,
            ..SnapshotOptions::default()
        };
        for bytes in [whole, 100_001, 100_000, 1024] {
            fs::copy(&path, &copy).unwrap();
            fs::copy(folder.path().join("whole.db-wal"), &log).unwrap();
            let file = File::options().write(true).open(&copy).unwrap();
            file.set_len(bytes).unwrap();
            let snapshot = SqliteSnapshot::open(&copy, &options).unwrap();
            let expected = match bytes == whole {
                true => Content::Database,
                false => Content::Cut {
                    expected_bytes: snapshot.files()[0].size_bytes,
                    found_bytes: bytes,
                },
            };
            assert_eq!(snapshot.content(), expected, "{bytes}, {frozen}");
        }
    }
}

#[test]
fn a_file_that_is_cut_while_it_is_read_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.db");
    let _keeps_the_log = with_log(&path, 1024);
    let snapshot = open(&path);
    let whole = snapshot.files()[0].size_bytes as usize;
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(4096).unwrap();
    let error = snapshot.read(1, 0, &mut vec![0; whole]).unwrap_err();
    assert!(
        matches!(error, Error::ChangedWhileReading { .. }),
        "{error}"
    );
}

#[test]
fn a_log_left_by_a_crash_is_read_and_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crashed.db");
    let connection = with_log(&path, 4096);
    let copy = folder.path().join("copy.db");
    fs::copy(&path, &copy).unwrap();
    let log = folder.path().join("copy.db-wal");
    fs::copy(folder.path().join("crashed.db-wal"), &log).unwrap();
    let (file_before, log_before) = (fs::read(&copy).unwrap(), fs::read(&log).unwrap());
    let bytes = image(open(&copy), 1);
    assert_eq!(fs::read(&copy).unwrap(), file_before);
    assert_eq!(fs::read(&log).unwrap(), log_before);
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    assert!(bytes == fs::read(&path).unwrap());
}

#[test]
fn what_is_no_database_is_carried_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let encrypted: Vec<u8> = (0..200_123_u32)
        .map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let mut cut_off = Vec::new();
    let source = folder.path().join("whole.db");
    drop(with_log(&source, 4096));
    cut_off.extend_from_slice(&fs::read(&source).unwrap()[..70_000]);
    for (name, content) in [
        ("empty", vec![]),
        ("one", vec![7]),
        ("encrypted", encrypted),
        ("cut", cut_off),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, &content).unwrap();
        let bytes = image(open(&path), 1);
        assert!(bytes == content, "{name}");
        let target = folder.path().join(format!("{name}.restored"));
        restore(
            &request(&target, bytes.len() as u64),
            &bytes,
            Recovery::Recovery,
        );
        assert!(fs::read(&target).unwrap() == content, "{name}");
        assert!(!folder.path().join(format!("{name}-wal")).exists());
    }
}

#[test]
fn content_that_needs_a_log_which_nobody_can_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    fs::write(&path, [0xA5; 8192]).unwrap();
    let side = folder.path().join("secret-wal");
    fs::write(&side, [1; 100]).unwrap();
    let error = SqliteSnapshot::open(&path, &SnapshotOptions::default()).unwrap_err();
    assert!(
        matches!(&error, Error::HotJournal { journal, .. } if *journal == side),
        "{error}"
    );
    fs::remove_file(&side).unwrap();
    image(open(&path), 1);
}

#[test]
fn what_is_not_a_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let options = SnapshotOptions::default();
    let error = SqliteSnapshot::open(folder.path(), &options).unwrap_err();
    assert!(matches!(error, Error::NotAFile { .. }), "{error}");
    let error = SqliteSnapshot::open(&folder.path().join("none"), &options).unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    assert!(!folder.path().join("none").exists());
}

#[test]
fn offsets_beyond_four_gigabytes_are_read_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.db");
    drop(with_log(&path, 4096));
    let file = File::options().write(true).open(&path).unwrap();
    let size_bytes = (5_u64 << 30) + 12_345;
    file.set_len(size_bytes).unwrap();
    let marks = [1 << 30, (1 << 32) - 1, 1 << 32, size_bytes - 1];
    for mark in marks {
        file.write_at(b"!", mark).unwrap();
    }
    drop(file);
    let snapshot = open(&path);
    // The target reserves its whole size; the file that is read takes next to no space.
    let free_bytes = windlass_io::directory::free_bytes(folder.path()).unwrap();
    let has_room = free_bytes.is_none_or(|free| free > size_bytes + (1 << 30));
    let target = folder.path().join("copy.db");
    let target = has_room.then(|| SqliteTarget::begin(&request(&target, size_bytes)).unwrap());
    let mut buffer = AlignedBuffer::new(EXTENT_BYTES);
    for mark in marks {
        let offset = mark / EXTENT_BYTES as u64 * EXTENT_BYTES as u64;
        let bytes = (size_bytes - offset).min(EXTENT_BYTES as u64) as usize;
        snapshot.read(1, offset, &mut buffer[..bytes]).unwrap();
        assert_eq!(buffer[(mark - offset) as usize], b'!');
        if let Some(target) = &target {
            target.write(1, offset, &buffer[..bytes]).unwrap();
        }
    }
    let error = snapshot.read(1, 5 << 30, &mut buffer).unwrap_err();
    assert!(matches!(error, Error::OutOfRange { .. }), "{error}");
    snapshot.close().unwrap();
    let Some(target) = target else {
        eprintln!("NOT TESTED: writing beyond 4 GB needs 6 GB of free space: {free_bytes:?}");
        return;
    };
    Box::new(target).finish(Recovery::Recovery).unwrap();
    let copy = File::open(folder.path().join("copy.db")).unwrap();
    for mark in marks {
        let mut byte = [0];
        copy.read_exact_at(&mut byte, mark).unwrap();
        assert_eq!(&byte, b"!");
    }
}

#[test]
fn a_snapshot_says_who_it_is_and_where_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("Sales.db");
    let connection = with_log(&path, 8192);
    connection
        .execute_batch("PRAGMA user_version = 77; PRAGMA application_id = 4711")
        .unwrap();
    let snapshot = open(&path);
    let identity = snapshot.identity().clone();
    assert_eq!(identity.name, "Sales");
    assert_eq!((identity.user_version, identity.application_id), (77, 4711));
    assert_eq!(
        identity.product_version,
        rusqlite::version_number().unsigned_abs()
    );
    assert_eq!(
        (identity.journal_mode.as_str(), identity.is_read_only),
        ("wal", false)
    );
    assert_eq!(identity.recovery_model, RecoveryModel::Simple);
    let position = snapshot.position();
    assert_eq!(position.first_lsn, position.checkpoint_lsn);
    assert!(position.last_lsn > position.checkpoint_lsn);
    drop(snapshot);

    let given = Guid::random();
    let options = SnapshotOptions {
        database_name: Some("Orders".to_owned()),
        family_guid: Some(given),
        after: Lsn {
            vlf: u32::MAX - 1,
            block: 5,
            slot: 2,
        },
        ..SnapshotOptions::default()
    };
    let snapshot = SqliteSnapshot::open(&path, &options).unwrap();
    assert_eq!(snapshot.identity().name, "Orders");
    assert_eq!(snapshot.identity().family_guid, given);
    assert_eq!(
        snapshot.identity().database_guid,
        identity.database_guid,
        "the same file"
    );
    assert!(snapshot.position().first_lsn > options.after);
}

#[test]
fn a_restored_database_is_of_the_family_and_yet_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("parent.db");
    drop(with_log(&path, 4096));
    let snapshot = open(&path);
    let parent = snapshot.identity().clone();
    let bytes = image(snapshot, 1);
    let target = folder.path().join("child.db");
    let mut request = request(&target, bytes.len() as u64);
    request.family_guid = parent.family_guid;
    restore(&request, &bytes, Recovery::Recovery);
    let child = open(&target).identity().clone();
    if child.family_guid != parent.family_guid {
        println!(
            "SKIPPED: no extended attributes in {}",
            folder.path().display()
        );
        return;
    }
    assert_ne!(child.database_guid, parent.database_guid);
}

#[test]
fn a_log_that_is_damaged_under_its_readers_is_refused() {
    for (damage, expected) in [
        ("salt", WalDamage::Salt),
        ("salt of the header", WalDamage::Salt),
        ("page size of the header", WalDamage::Salt),
        ("checksum", WalDamage::Checksum),
        ("length", WalDamage::TooShort { expected: 0 }),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("damaged.db");
        let _connection = with_log(&path, 1024);
        let log_path = folder.path().join("damaged.db-wal");
        let log = File::options().read(true).write(true).open(log_path);
        let log = log.unwrap();
        let frame_bytes = 24 + 1024;
        let length = log.metadata().unwrap().len();
        let flip = |at: u64| {
            let mut byte = [0];
            log.read_exact_at(&mut byte, at).unwrap();
            log.write_all_at(&[byte[0] ^ 0xEE], at).unwrap();
        };
        match damage {
            "salt" => flip(32 + 2 * frame_bytes + 9),
            "salt of the header" => flip(17),
            "page size of the header" => flip(10),
            "checksum" => flip(length - frame_bytes + 20),
            _ => log.set_len(length - frame_bytes).unwrap(),
        }
        let error = SqliteSnapshot::open(&path, &SnapshotOptions::default()).unwrap_err();
        let Error::WalDamaged { damage: found, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(
            std::mem::discriminant(&found),
            std::mem::discriminant(&expected),
            "{found}"
        );
    }
}

#[test]
fn a_file_that_was_overwritten_under_its_log_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let writer = with_log(&path, 4096);
    let old = fs::read(&path).unwrap();
    let checkpoint = |mode: &str| {
        let run = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
        writer
            .query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], run)
            .unwrap()
    };
    // Not all of the log is in the file: nothing can be said of it.
    fs::write(&path, &old).unwrap();
    drop(open(&path));
    // All is.
    let (log, copied) = checkpoint("PASSIVE");
    assert_eq!(log, copied);
    drop(open(&path));
    let current = fs::read(&path).unwrap();
    fs::write(&path, &old).unwrap();
    let error = SqliteSnapshot::open(&path, &SnapshotOptions::default()).unwrap_err();
    assert!(
        matches!(error, Error::OverwrittenUnderLog { .. }),
        "{error}"
    );
    fs::write(&path, &current).unwrap();
    drop(open(&path));
}

#[test]
fn a_log_that_was_copied_up_to_the_mark_of_a_reader_is_not_taken_for_another_file_s() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let writer = with_log(&path, 4096);
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let _count: i64 = (reader.query_row("SELECT count(*) FROM t", [], |row| row.get(0))).unwrap();
    // Newer frames of pages that the log has already: a checkpoint that ends at the mark copies neither.
    let update = "UPDATE t SET b = randomblob(1100) WHERE a % 30 = 0";
    writer.execute_batch(update).unwrap();
    let run = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
    let (log, copied) = (writer.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], run)).unwrap();
    assert!(copied < log, "{copied} of {log}");
    drop(open(&path));
}

#[test]
fn what_is_no_database_or_not_as_long_as_it_should_be_replaces_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = notes(folder.path());
    let old = fs::read(&path).unwrap();
    let finished = |content: &[u8], as_is: bool, staged_bytes: Option<u64>| {
        let wanted = RestoreRequest {
            as_is,
            ..replacing(&path, content)
        };
        let target = Box::new(SqliteTarget::begin(&wanted).unwrap());
        fill(&*target, content);
        if let Some(bytes) = staged_bytes {
            let staged = folder.path().join("notes.db.windlass-restoring");
            let staged = fs::File::options().write(true).open(staged).unwrap();
            staged.set_len(bytes).unwrap();
        }
        let finished = target.finish(Recovery::Recovery);
        assert_eq!(names(folder.path()), ["notes.db"]);
        finished
    };
    let other = other_content();
    let refused = finished(&other, false, None).unwrap_err();
    assert!(matches!(refused, Error::NotADatabase { .. }), "{refused}");
    assert!(fs::read(&path).unwrap() == old);
    let length = old.len() as u64;
    for bytes in [length - 4096, length + 1] {
        let refused = finished(&old, false, Some(bytes)).unwrap_err();
        let is_length = matches!(
            refused,
            Error::WrongLength { found, expected, .. } if (found, expected) == (bytes, length)
        );
        assert!(is_length, "{refused}");
        assert!(fs::read(&path).unwrap() == old);
    }
    finished(&old, false, None).unwrap();
    finished(&other, true, None).unwrap();
    assert!(fs::read(&path).unwrap() == other);
}
