//! Each part of a database keeps its invariant when threads meet.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use windlass_base::{ExtentNumber, FileId, FilePage, Guid, PAGE_BYTES, PageNumber};

use super::Database;
use super::log_backup::now_ms;
use super::log_backup::tests::AHEAD_MS;
use crate::backup::{BackupDescription, BackupMode};
use crate::error::{EngineError, LogRefusal, Result};
use crate::log::header::{Header, SLOT_BYTES};
use crate::log::writer::NoRoom;
use crate::options::{
    CreateDatabase, FileSpec, Growth, InstanceOptions, OpenDatabase, RecoveryModel,
};
use crate::storage::RealFileSystem;
use crate::{Backup, Instance, LogCheck, Reached, RollForward, Scanned, StopAt};

/// Long enough for a thread that does not wait to end.
const MOMENT: Duration = Duration::from_millis(60);
const PATIENCE: Duration = Duration::from_secs(30);

fn create(folder: &Path) -> (Arc<Instance>, Arc<Database>) {
    let options = InstanceOptions {
        pool_pages: 256,
        background: false,
        ..InstanceOptions::default()
    };
    let instance = Instance::new(options, Arc::new(RealFileSystem)).unwrap();
    let mut request = CreateDatabase::new("a", folder.join("a.mdf"), folder.join("a.ldf"));
    request.log.growth = Growth::Bytes(1 << 16);
    let database = instance.create_database(&request).unwrap();
    write(&database).unwrap();
    (instance, database)
}

fn write(database: &Arc<Database>) -> Result<()> {
    let mut writer = database.begin_write(&database.begin_read())?;
    let page_count = writer.page_count();
    let added = PageNumber::from_index(page_count).unwrap();
    writer.write_page(added, &[page_count as u8; PAGE_BYTES])?;
    writer.commit().map(|_| ())
}

fn full_backup(database: &Arc<Database>) -> (Backup, Guid) {
    let mut backup = database.begin_backup(BackupMode::Full).unwrap();
    backup.finish_data().unwrap();
    (backup, Guid::random())
}

/// Whether `run` waits as long as `held` exists, and then ends well.
fn waits_for<H>(
    held: H,
    database: &Arc<Database>,
    run: impl FnOnce(&Arc<Database>) -> Result<()> + Send + 'static,
) -> bool {
    let (sender, ended) = mpsc::channel();
    let database = Arc::clone(database);
    let thread = std::thread::spawn(move || {
        let outcome = run(&database);
        sender.send(()).unwrap();
        outcome
    });
    let has_waited = ended.recv_timeout(MOMENT).is_err();
    drop(held);
    thread.join().unwrap().unwrap();
    has_waited
}

#[test]
fn commits_and_whatever_depends_on_the_last_one_wait_for_the_gate() {
    let folder = tempfile::tempdir().unwrap();
    let (_instance, database) = create(folder.path());
    let gate = || database.commits.gate();
    assert!(waits_for(gate(), &database, write));
    assert!(waits_for(gate(), &database, |database| {
        database.checkpoint().map(|_| ())
    }));
    let mut backup = database.begin_backup(BackupMode::CopyOnly).unwrap();
    assert!(waits_for(gate(), &database, move |_| {
        backup.finish_data().map(|_| ())
    }));
    let spec = FileSpec::data("b", folder.path().join("b.ndf"));
    assert!(waits_for(gate(), &database, move |database| {
        database.add_file(&spec)
    }));
    let room = NoRoom { needed: 1, free: 0 };
    assert!(waits_for(gate(), &database, move |database| {
        database.grow_log(room)
    }));
}

#[test]
fn a_backup_becomes_the_base_under_the_gate() {
    let folder = tempfile::tempdir().unwrap();
    let (_instance, database) = create(folder.path());
    let (backup, set) = full_backup(&database);
    let gate = database.commits.gate();
    let thread = std::thread::spawn(move || backup.complete(set));
    std::thread::sleep(MOMENT);
    assert!(database.differential_base().set.is_nil());
    drop(gate);
    thread.join().unwrap().unwrap();
    assert_eq!(database.differential_base().set, set);
}

#[test]
fn a_commit_that_waited_while_the_database_went_offline_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (_instance, database) = create(folder.path());
    let gate = database.commits.gate();
    let thread = {
        let database = Arc::clone(&database);
        std::thread::spawn(move || write(&database))
    };
    std::thread::sleep(MOMENT);
    database.log.fail(EngineError::Invalid("disk".to_owned()));
    drop(gate);
    let refused = thread.join().unwrap();
    assert!(
        matches!(refused, Err(EngineError::Offline { .. })),
        "{refused:?}"
    );
}

#[test]
fn one_checkpoint_runs_at_a_time_and_none_while_pages_are_restored_or_files_closed() {
    let folder = tempfile::tempdir().unwrap();
    let (_instance, database) = create(folder.path());
    let (backup, set) = full_backup(&database);
    let description = backup.description().unwrap().clone();
    let mut log = Vec::new();
    let read = backup.read_log(|bytes| {
        log.extend_from_slice(bytes);
        Ok(())
    });
    read.unwrap();
    let range = backup.ranges(1 << 20)[0];
    let mut bytes = vec![0; range.bytes];
    backup.read_range(&range, &mut bytes).unwrap();
    let alone = || database.checkpointer.lock();
    assert!(waits_for(alone(), &database, move |_| {
        backup.complete(set).map(|_| ())
    }));
    assert!(waits_for(alone(), &database, |database| {
        database.checkpoint().map(|_| ())
    }));
    let page = FilePage {
        file_id: FileId::PRIMARY,
        page: 0,
    };
    let mut restore = database
        .begin_page_restore(&description, set, &[page])
        .unwrap();
    restore.take(range.file, range.offset, &bytes);
    restore.apply_log(&log).unwrap();
    assert!(waits_for(alone(), &database, |_| {
        restore.finish(PATIENCE).map(|_| ())
    }));
    assert!(waits_for(alone(), &database, |database| database.close()));
}

#[test]
fn there_is_one_writer_until_its_token_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let (_instance, database) = create(folder.path());
    let writer = database.begin_write(&database.begin_read()).unwrap();
    assert!(database.writer.try_take().is_none());
    assert!(database.writer.take_within(MOMENT).is_none());
    assert!(matches!(write(&database), Err(EngineError::Busy { .. })));
    assert!(matches!(database.close(), Err(EngineError::Busy { .. })));
    assert!(waits_for(writer, &database, |database| {
        database
            .writer
            .take_within(PATIENCE)
            .map(|_| ())
            .ok_or_else(|| database.busy())
    }));
    write(&database).unwrap();
    let stale = database.begin_read();
    write(&database).unwrap();
    assert!(database.begin_write(&stale).is_err());
    assert!(
        database.writer.try_take().is_some(),
        "a refused begin keeps nothing"
    );
}

#[test]
fn an_offline_database_is_not_changed_and_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let (_instance, database) = create(folder.path());
    let snapshot = database.begin_read();
    let mut open = database.begin_write(&snapshot).unwrap();
    open.write_page(PageNumber::FIRST, &[9; PAGE_BYTES])
        .unwrap();
    database.log.fail(EngineError::Invalid("first".to_owned()));
    database.log.fail(EngineError::Invalid("second".to_owned()));
    assert_eq!(database.offline_reason(), Some("first"));
    let header = std::fs::read(folder.path().join("a.ldf")).unwrap();
    let spec = FileSpec::data("b", folder.path().join("b.ndf"));
    let mut content = [0; PAGE_BYTES];
    let mut refused = vec![
        open.commit().map(|_| ()),
        write(&database),
        database.checkpoint().map(|_| ()),
        database.advance_redo(&database.checkpointer.lock()),
        database.recovery_writer_step(),
        database.set_target_recovery_time(None),
        database.add_file(&spec),
        database.begin_backup(BackupMode::Full).map(|_| ()),
        snapshot.read_page(PageNumber::FIRST, &mut content),
        database.header.write(&database.log, &database.data, |_| {}),
        database.close(),
    ];
    refused.retain(|outcome| !matches!(outcome, Err(EngineError::Offline { .. })));
    assert!(refused.is_empty(), "{refused:?}");
    let after = std::fs::read(folder.path().join("a.ldf")).unwrap();
    assert!(header == after, "the log file was written");
}

#[test]
fn a_closed_database_writes_no_log() {
    let folder = tempfile::tempdir().unwrap();
    let (_instance, database) = create(folder.path());
    database.close().unwrap();
    assert_eq!(database.offline_reason(), Some("it was closed"));
    let mut group = crate::log::record::Group::default();
    group.commit(1, 0);
    assert!(database.log.append(&group, 99, 0).is_err());
}

#[test]
fn extents_written_under_a_copy_are_noted_and_the_file_is_not_cut() {
    let folder = tempfile::tempdir().unwrap();
    let (_instance, database) = create(folder.path());
    let copy = database.copies.begin();
    copy.watch();
    assert!(!copy.is_noted(ExtentNumber(0)));
    write(&database).unwrap();
    database.checkpoint().unwrap();
    assert!(copy.is_noted(ExtentNumber(0)));
    let mut writer = database.begin_write(&database.begin_read()).unwrap();
    writer.truncate(1).unwrap();
    writer.commit().unwrap();
    let path = folder.path().join("a.mdf");
    let bytes = |path| std::fs::metadata(path).unwrap().len();
    let before = bytes(&path);
    database.close().unwrap();
    assert_eq!(bytes(&path), before, "it is still read");
    drop(copy);
    assert!(!database.copies.any());
}

#[test]
fn pages_are_not_checked_while_some_carry_no_checksum() {
    let folder = tempfile::tempdir().unwrap();
    let (_instance, database) = create(folder.path());
    let checksums = &database.checksums;
    let writer = database.writer_token().unwrap();
    let during = |on| {
        let seen = checksums.turn(&writer, on, || Ok(checksums.are_on()));
        seen.unwrap()
    };
    assert!(!during(true) && checksums.are_on());
    assert!(during(true));
    let failed: Result<()> = checksums.turn(&writer, false, || {
        Err(EngineError::Invalid("full".to_owned()))
    });
    assert!(failed.is_err() && checksums.are_on());
    assert!(!during(false) && !checksums.are_on());
    assert_eq!(checksums.changes(), 3);
}

#[test]
fn each_header_leaves_the_one_before_in_the_other_slot() {
    let folder = tempfile::tempdir().unwrap();
    let (_instance, database) = create(folder.path());
    let counters = || {
        let file = std::fs::read(folder.path().join("a.ldf")).unwrap();
        let slot = |start: usize| Header::parse(&file[start..]).map_or(0, |header| header.counter);
        let mut counters = [slot(0), slot(SLOT_BYTES)];
        counters.sort_unstable();
        counters
    };
    for _ in 0..3 {
        let [_, last] = counters();
        database.set_target_recovery_time(None).unwrap();
        assert_eq!(counters(), [last, last + 1]);
    }
}

/// The database opened again, after a close or with the files as a kill leaves them.
fn reopened(folder: &Path, database: &Arc<Database>, is_killed: bool) -> Arc<Database> {
    let files = ["a.mdf", "a.ldf"].map(|name| folder.join(name));
    let left = files.each_ref().map(|file| std::fs::read(file).unwrap());
    database.close().unwrap();
    if is_killed {
        for (file, left) in files.iter().zip(left) {
            std::fs::write(file, left).unwrap();
        }
    }
    let options = InstanceOptions {
        background: false,
        ..InstanceOptions::default()
    };
    let instance = Instance::new(options, Arc::new(RealFileSystem)).unwrap();
    let request = OpenDatabase::new("a", folder.join("a.ldf"));
    instance.open_database(&request).unwrap()
}

#[test]
fn a_backup_ends_after_its_commits_and_its_clock_is_not_that_of_later_ones() {
    const HOUR_MS: u64 = 3_600_000;
    let folder = tempfile::tempdir().unwrap();
    let (_instance, mut database) = create(folder.path());
    database.set_recovery_model(RecoveryModel::Full).unwrap();
    let begin = |database: &Arc<Database>| {
        let (backup, set) = full_backup(database);
        backup.read_log(|_| Ok(())).unwrap();
        backup.complete(set).unwrap();
    };
    let end_of_log = |database: &Arc<Database>| {
        write(database).unwrap();
        let backup = database.begin_log_backup(true).unwrap();
        let ended_ms = backup.description().ended_ms();
        backup.complete().unwrap();
        ended_ms
    };
    begin(&database);
    // A commit was made while the clock was an hour ahead: no backup that has it ended before.
    let ahead = now_ms() + HOUR_MS;
    AHEAD_MS.set(HOUR_MS);
    write(&database).unwrap();
    AHEAD_MS.set(0);
    for is_killed in [true, false, true, false] {
        database = reopened(folder.path(), &database, is_killed);
        assert!(end_of_log(&database) >= ahead, "killed: {is_killed}");
    }
    // A commit has the time of its own clock.
    let gate = database.commits.gate();
    assert!(database.header.commit_time(&gate) < ahead);
    drop(gate);
    // A new chain begins without the times of the one before.
    database.set_recovery_model(RecoveryModel::Simple).unwrap();
    database.set_recovery_model(RecoveryModel::Full).unwrap();
    begin(&database);
    database = reopened(folder.path(), &database, false);
    assert!(end_of_log(&database) < ahead);
}

/// The set and the log of a log backup.
fn log_backup(database: &Arc<Database>) -> (BackupDescription, Vec<u8>) {
    let backup = database.begin_log_backup(true).unwrap();
    let description = backup.description().clone();
    let (mut copy, mut log) = (backup.copy(), Vec::new());
    let mut piece = vec![0; 1 << 20];
    loop {
        match copy.read(&mut piece).unwrap() {
            0 => break,
            bytes => log.extend_from_slice(&piece[..bytes]),
        }
    }
    backup.complete().unwrap();
    let mut check = LogCheck::new(description.clone());
    check.piece(0, &log).unwrap();
    (description, log)
}

/// Where a restore up to the end of `state` stops in a log.
fn scanned(
    state: &BackupDescription,
    log: &(BackupDescription, Vec<u8>),
    stop_ms: u64,
) -> Result<Scanned> {
    let reached = Reached {
        checksum: state.ending(),
        ..Reached::default()
    };
    let mut roll = RollForward::begin(state, reached, &log.0, StopAt::Time(stop_ms))?;
    roll.scan(&log.1)?;
    roll.scanned()
}

fn full_chain(folder: &Path) -> (Arc<Instance>, Arc<Database>, BackupDescription) {
    let (instance, database) = create(folder);
    database.set_recovery_model(RecoveryModel::Full).unwrap();
    let (backup, set) = full_backup(&database);
    backup.read_log(|_| Ok(())).unwrap();
    let full = backup.description().unwrap().clone();
    backup.complete(set).unwrap();
    (instance, database, full)
}

#[test]
fn a_time_is_not_reached_because_the_clock_of_a_log_backup_was_ahead() {
    const HOURS_MS: u64 = 7_200_000;
    let pause = || std::thread::sleep(Duration::from_millis(3));
    let folder = tempfile::tempdir().unwrap();
    let (_instance, database, full) = full_chain(folder.path());
    write(&database).unwrap();
    AHEAD_MS.set(HOURS_MS);
    let first = log_backup(&database);
    AHEAD_MS.set(0);
    assert!(first.0.ended_ms() > now_ms());
    // Two commits by the right clock, the moment, and one more.
    write(&database).unwrap();
    write(&database).unwrap();
    pause();
    let stop_ms = now_ms();
    pause();
    let second = log_backup(&database);
    assert!(second.0.ended_ms() < first.0.ended_ms());
    write(&database).unwrap();
    let third = log_backup(&database);
    let whole = scanned(&full, &first, stop_ms).unwrap();
    assert_eq!((whole.is_reached, whole.end), (false, first.0.end()));
    let whole = scanned(&first.0, &second, stop_ms).unwrap();
    assert_eq!((whole.is_reached, whole.end), (false, second.0.end()));
    let reached = scanned(&second.0, &third, stop_ms).unwrap();
    assert_eq!((reached.is_reached, reached.end), (true, second.0.end()));
}

#[test]
fn a_time_that_the_order_of_commits_contradicts_is_refused() {
    const HOURS_MS: u64 = 7_200_000;
    let folder = tempfile::tempdir().unwrap();
    let (_instance, database, full) = full_chain(folder.path());
    write(&database).unwrap();
    let between_ms = now_ms() + HOURS_MS / 2;
    AHEAD_MS.set(HOURS_MS);
    write(&database).unwrap();
    AHEAD_MS.set(0);
    write(&database).unwrap();
    let log = log_backup(&database);
    let refused = scanned(&full, &log, between_ms).unwrap_err();
    let EngineError::LogRefused { refusal, .. } = &refused else {
        panic!("{refused}");
    };
    let LogRefusal::TimesContradict { later, earlier } = refusal else {
        panic!("{refused}");
    };
    assert!(later < earlier);
    // Behind all of them there is no doubt.
    let after = scanned(&full, &log, now_ms() + 2 * HOURS_MS).unwrap();
    assert_eq!(after.end, log.0.end());
}
