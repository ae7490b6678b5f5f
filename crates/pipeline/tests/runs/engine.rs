//! Databases of the page engine through the media, while they are written to.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windlass_base::{PAGE_BYTES, PageNumber};
use windlass_codec::Compression;
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{
    BackupMode, CreateDatabase, Database, FileSpec, Instance, InstanceOptions, OpenDatabase,
};
use windlass_pipeline::{
    BackupKind, BackupReport, DifferentialBase, MediaSet, Unobserved, backup, restore, verify,
};
use windlass_source::engine::{
    EngineBase, EngineRestoreRequest, EngineSnapshot, EngineTarget, PlacedFile, pending, recover,
};
use windlass_source::sqlite::Existing;
use windlass_source::{Error as SourceError, Recovery, RestoreTarget as _};

use crate::support::{devices, read_request, request};

const PAGES: u32 = 700;

fn instance() -> Arc<Instance> {
    Instance::new(InstanceOptions::default(), Arc::new(RealFileSystem)).unwrap()
}

/// Two data files; every page holds the number of the last commit.
pub(crate) fn create(folder: &Path) -> Arc<Database> {
    let mut wanted = CreateDatabase::new("a", folder.join("a.mdf"), folder.join("a.ldf"));
    wanted
        .data_files
        .push(FileSpec::data("b", folder.join("b.ndf")));
    let database = instance().create_database(&wanted).unwrap();
    commit(&database, 1..=PAGES, 1);
    database
}

fn commit(database: &Arc<Database>, pages: impl Iterator<Item = u32>, number: u8) {
    let mut writer = database.begin_write(&database.begin_read()).unwrap();
    for page in pages {
        writer.write_page(at(page), &[number; PAGE_BYTES]).unwrap();
    }
    writer.commit().unwrap();
}

fn at(number: u32) -> PageNumber {
    PageNumber::from_sqlite(number).unwrap()
}

fn page(database: &Arc<Database>, number: u32) -> Vec<u8> {
    let mut content = vec![0; PAGE_BYTES];
    database
        .begin_read()
        .read_page(at(number), &mut content)
        .unwrap();
    content
}

fn back_up(
    database: &Arc<Database>,
    folder: &Path,
    kind: BackupMode,
    compression: Compression,
) -> BackupReport {
    let snapshot = EngineSnapshot::open(database, kind).unwrap();
    let mut wanted = request(&devices(folder, &["1.bak", "2.bak"]), compression);
    wanted.checksum = true;
    if kind == BackupMode::Differential {
        let (set_guid, lsn) = snapshot.base();
        wanted.kind = BackupKind::Differential(DifferentialBase {
            set_guid,
            lsn,
            digests: None,
        });
    }
    backup(&wanted, Box::new(snapshot), &Unobserved).unwrap()
}

fn restore_to(
    folder: &Path,
    place: &Path,
    position: u16,
    recovery: Recovery,
) -> Result<(), SourceError> {
    let media = MediaSet::open(&devices(folder, &["1.bak", "2.bak"])).unwrap();
    let set = media.set(position).unwrap().configuration;
    let is_differential = !set.differential_base_guid.is_nil();
    let wanted = EngineRestoreRequest {
        description: set.source_description.clone(),
        files: (set.files.iter())
            .map(|file| PlacedFile {
                file_id: file.file_id,
                path: place.join(format!("{}.file", file.logical_name)),
                mode: None,
            })
            .collect(),
        database_name: "copy".to_owned(),
        log_bytes: 8 << 20,
        set_guid: set.set_guid,
        checkpoint_lsn: set.checkpoint_lsn,
        base: is_differential.then_some(EngineBase {
            set_guid: set.differential_base_guid,
            checkpoint_lsn: set.differential_base_lsn,
        }),
        as_is: true,
        existing: Existing::Replace,
        ..EngineRestoreRequest::default()
    };
    let target = EngineTarget::begin(&wanted)?;
    restore(&media, position, &read_request(), &target, &Unobserved).unwrap();
    Box::new(target).finish(recovery)
}

fn log_of(place: &Path) -> PathBuf {
    place.join("a_log.file")
}

fn open(place: &Path) -> Arc<Database> {
    let wanted = OpenDatabase::new("copy", log_of(place));
    instance().open_database(&wanted).unwrap()
}

fn names(place: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(place)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_full_and_a_differential_under_writes_restore_to_one_commit_each() {
    let folder = tempfile::tempdir().unwrap();
    let database = create(folder.path());
    let stop = AtomicBool::new(false);
    let full = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 1;
            while !stop.load(Ordering::Relaxed) {
                number = if number == 100 { 2 } else { number + 1 };
                commit(&database, 1..=PAGES, number);
            }
        });
        let full = back_up(
            &database,
            folder.path(),
            BackupMode::Full,
            Compression::ZSTD_LOW,
        );
        stop.store(true, Ordering::Relaxed);
        full
    });
    assert_eq!(full.set.files.len(), 3);
    assert!(full.set.last_lsn > full.set.first_lsn);

    commit(&database, 8..=8, 200);
    commit(&database, PAGES + 1..=PAGES + 40, 201);
    let differential = back_up(
        &database,
        folder.path(),
        BackupMode::Differential,
        Compression::NONE,
    );
    assert!(differential.processed_bytes > 0);

    let media = MediaSet::open(&devices(folder.path(), &["1.bak", "2.bak"])).unwrap();
    for position in [1, 2] {
        verify(&media, position, &read_request(), &Unobserved).unwrap();
    }
    drop(media);

    let place = tempfile::tempdir().unwrap();
    restore_to(folder.path(), place.path(), 1, Recovery::Recovery).unwrap();
    let copy = open(place.path());
    let shown = page(&copy, 1);
    for number in 1..=PAGES {
        assert_eq!(
            page(&copy, number),
            shown,
            "page {number} is of another commit"
        );
    }
    copy.close().unwrap();
    drop(copy);

    let place = tempfile::tempdir().unwrap();
    restore_to(folder.path(), place.path(), 1, Recovery::NoRecovery).unwrap();
    assert!(
        !log_of(place.path()).exists(),
        "NORECOVERY leaves nothing that opens"
    );
    restore_to(folder.path(), place.path(), 2, Recovery::Recovery).unwrap();
    assert_eq!(names(place.path()), ["a.file", "a_log.file", "b.file"]);
    let copy = open(place.path());
    assert_eq!(copy.begin_read().page_count(), PAGES + 40);
    for number in 1..=PAGES + 40 {
        assert_eq!(
            page(&copy, number),
            page(&database, number),
            "page {number}"
        );
    }
}

#[test]
fn a_differential_of_few_changes_reads_few_extents() {
    let folder = tempfile::tempdir().unwrap();
    let database = create(folder.path());
    let full = back_up(
        &database,
        folder.path(),
        BackupMode::Full,
        Compression::NONE,
    );
    commit(&database, 300..=300, 9);
    let one = back_up(
        &database,
        folder.path(),
        BackupMode::Differential,
        Compression::NONE,
    );
    assert!(
        one.processed_bytes * 20 < full.processed_bytes,
        "{} of {}",
        one.processed_bytes,
        full.processed_bytes
    );
    let copy_only = back_up(
        &database,
        folder.path(),
        BackupMode::CopyOnly,
        Compression::NONE,
    );
    assert!(copy_only.processed_bytes >= full.processed_bytes / 2);
    assert_eq!(database.differential_base().set, full.set.set_guid);
}

#[test]
fn a_restore_goes_only_onto_its_base_and_recovery_may_come_later() {
    let folder = tempfile::tempdir().unwrap();
    let database = create(folder.path());
    back_up(
        &database,
        folder.path(),
        BackupMode::Full,
        Compression::ZSTD_LOW,
    );
    commit(&database, 1..=10, 7);
    back_up(
        &database,
        folder.path(),
        BackupMode::Full,
        Compression::ZSTD_LOW,
    );
    commit(&database, 1..=10, 8);
    back_up(
        &database,
        folder.path(),
        BackupMode::Differential,
        Compression::ZSTD_LOW,
    );
    let place = tempfile::tempdir().unwrap();
    let alone = restore_to(folder.path(), place.path(), 3, Recovery::Recovery);
    assert!(
        matches!(alone, Err(SourceError::NotRestoring { .. })),
        "{alone:?}"
    );
    restore_to(folder.path(), place.path(), 1, Recovery::NoRecovery).unwrap();
    let wrong = restore_to(folder.path(), place.path(), 3, Recovery::Recovery);
    assert!(
        matches!(wrong, Err(SourceError::WrongBase { .. })),
        "{wrong:?}"
    );
    assert!(pending(&log_of(place.path())).unwrap().is_some());
    restore_to(folder.path(), place.path(), 2, Recovery::NoRecovery).unwrap();
    recover(&log_of(place.path()), "copy", Existing::Replace).unwrap();
    let copy = open(place.path());
    assert_eq!(page(&copy, 5), [7; PAGE_BYTES]);
}

/// A request for the first set of `folder`, to files in `place`.
fn request_for(folder: &Path, place: &Path) -> EngineRestoreRequest {
    let media = MediaSet::open(&devices(folder, &["1.bak", "2.bak"])).unwrap();
    let set = media.set(1).unwrap().configuration;
    EngineRestoreRequest {
        description: set.source_description.clone(),
        files: (set.files.iter())
            .map(|file| PlacedFile {
                file_id: file.file_id,
                path: place.join(format!("{}.file", file.logical_name)),
                mode: None,
            })
            .collect(),
        log_bytes: 8 << 20,
        set_guid: set.set_guid,
        checkpoint_lsn: set.checkpoint_lsn,
        ..EngineRestoreRequest::default()
    }
}

#[test]
fn a_restore_without_room_is_refused_before_the_first_file_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let database = create(folder.path());
    back_up(
        &database,
        folder.path(),
        BackupMode::Full,
        Compression::NONE,
    );
    let place = tempfile::tempdir().unwrap();
    let wanted = EngineRestoreRequest {
        redo_bytes: 1 << 60,
        ..request_for(folder.path(), place.path())
    };
    let error = EngineTarget::begin(&wanted).unwrap_err();
    assert!(matches!(error, SourceError::NoSpace { .. }), "{error}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn a_second_restore_of_a_target_is_refused_and_what_cannot_be_made_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let database = create(folder.path());
    back_up(
        &database,
        folder.path(),
        BackupMode::Full,
        Compression::NONE,
    );
    let place = tempfile::tempdir().unwrap();
    let wanted = request_for(folder.path(), place.path());
    let first = EngineTarget::begin(&wanted).unwrap();
    let error = EngineTarget::begin(&wanted).unwrap_err();
    assert!(
        matches!(error, SourceError::RestoreRunning { .. }),
        "{error}"
    );
    drop(first);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    // The name of one of the files is taken by a folder.
    let data = wanted.files.iter().find(|file| file.file_id == 1).unwrap();
    let mut taken = data.path.clone().into_os_string();
    taken.push(".windlass-restoring");
    std::fs::create_dir(&taken).unwrap();
    EngineTarget::begin(&wanted).unwrap_err();
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn a_plain_differential_upon_an_encrypted_full_is_refused_and_the_full_stays() {
    let folder = tempfile::tempdir().unwrap();
    let database = create(folder.path());
    for (kind, fill) in [(BackupMode::Full, 7), (BackupMode::Differential, 8)] {
        commit(&database, 1..=10, fill);
        back_up(&database, folder.path(), kind, Compression::NONE);
    }
    let place = tempfile::tempdir().unwrap();
    let media = MediaSet::open(&devices(folder.path(), &["1.bak", "2.bak"])).unwrap();
    let full = EngineRestoreRequest {
        protection: windlass_source::Sealing::Certificate.into(),
        as_is: true,
        ..request_for(folder.path(), place.path())
    };
    let target = EngineTarget::begin(&full).unwrap();
    restore(&media, 1, &read_request(), &target, &Unobserved).unwrap();
    Box::new(target).finish(Recovery::NoRecovery).unwrap();
    let plain = restore_to(folder.path(), place.path(), 2, Recovery::Recovery);
    assert!(
        matches!(plain, Err(SourceError::LessProtected { .. })),
        "{plain:?}"
    );
    // Begun and given up before the first byte: the base is as it was.
    let set = media.set(2).unwrap().configuration;
    let differential = EngineRestoreRequest {
        description: set.source_description.clone(),
        set_guid: set.set_guid,
        checkpoint_lsn: set.checkpoint_lsn,
        base: Some(EngineBase {
            set_guid: set.differential_base_guid,
            checkpoint_lsn: set.differential_base_lsn,
        }),
        allow_less_protected: true,
        ..full
    };
    drop(EngineTarget::begin(&differential).unwrap());
    recover(&log_of(place.path()), "copy", Existing::Replace).unwrap();
    assert_eq!(page(&open(place.path()), 5), [7; PAGE_BYTES]);
}

#[test]
fn a_database_that_somebody_has_open_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let database = create(folder.path());
    back_up(
        &database,
        folder.path(),
        BackupMode::Full,
        Compression::NONE,
    );
    let place = tempfile::tempdir().unwrap();
    restore_to(folder.path(), place.path(), 1, Recovery::Recovery).unwrap();
    let copy = open(place.path());
    let refused = restore_to(folder.path(), place.path(), 1, Recovery::Recovery);
    assert!(
        matches!(refused, Err(SourceError::InUse { .. })),
        "{refused:?}"
    );
    commit(&copy, 1..=3, 5);
    copy.close().unwrap();
    drop(copy);
    restore_to(folder.path(), place.path(), 1, Recovery::Recovery).unwrap();
    assert_eq!(page(&open(place.path()), 2), [1; PAGE_BYTES]);
    assert_eq!(names(place.path()), ["a.file", "a_log.file", "b.file"]);
}

/// The log that was written during the copy counts like the data.
#[test]
fn a_limit_holds_back_the_copy_of_the_log_too() {
    let folder = tempfile::tempdir().unwrap();
    let database = create(folder.path());
    let snapshot = EngineSnapshot::open(&database, BackupMode::CopyOnly).unwrap();
    for number in 2..5 {
        commit(&database, 1..=PAGES, number);
    }
    let mut wanted = request(&devices(folder.path(), &["1.bak"]), Compression::NONE);
    let data_bytes = u64::from(PAGES) * PAGE_BYTES as u64;
    let rate = 4 * data_bytes;
    wanted.tuning.limits.read = Some(rate);
    let report = backup(&wanted, Box::new(snapshot), &Unobserved).unwrap();
    let read_bytes = report.stages.read.bytes_in;
    assert!(read_bytes > 3 * data_bytes, "{read_bytes}");
    // All but the last frame, less what a limit lends; the data alone take a quarter of a second.
    let frame_bytes = report.plan.frame_bytes.value as u64;
    let least = (read_bytes - frame_bytes) as f64 / rate as f64 - 0.1;
    assert!(
        report.elapsed.as_secs_f64() > least,
        "{:?} for {read_bytes} bytes",
        report.elapsed
    );
}

/// Restores the first set of `folder` as `wanted`, up to the last step.
fn restored(folder: &Path, wanted: &EngineRestoreRequest) -> Result<EngineTarget, SourceError> {
    let media = MediaSet::open(&devices(folder, &["1.bak", "2.bak"])).unwrap();
    let target = EngineTarget::begin(wanted)?;
    restore(&media, 1, &read_request(), &target, &Unobserved).unwrap();
    Ok(target)
}

/// The path of the file of that number.
fn target_of(wanted: &EngineRestoreRequest, file_id: u16) -> PathBuf {
    let mut files = wanted.files.iter();
    let file = files.find(|file| file.file_id == file_id).unwrap();
    file.path.clone()
}

fn backed_up() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let database = create(folder.path());
    commit(&database, 1..=10, 7);
    back_up(
        &database,
        folder.path(),
        BackupMode::Full,
        Compression::NONE,
    );
    folder
}

#[test]
fn two_restores_that_share_a_data_file_but_not_the_log_do_not_write_into_one_another() {
    let folder = backed_up();
    let place = tempfile::tempdir().unwrap();
    let wanted = EngineRestoreRequest {
        as_is: true,
        ..request_for(folder.path(), place.path())
    };
    let mut other = wanted.clone();
    for file in &mut other.files {
        if file.file_id == 2 {
            file.path = place.path().join("other_log.file");
        }
    }
    let first = restored(folder.path(), &wanted).unwrap();
    let error = EngineTarget::begin(&other).unwrap_err().to_string();
    assert!(error.contains("this process is making it"), "{error}");
    Box::new(first).finish(Recovery::Recovery).unwrap();
    assert_eq!(page(&open(place.path()), 5), [7; PAGE_BYTES]);
    // What was refused has left nothing.
    let names = std::fs::read_dir(place.path()).unwrap();
    assert_eq!(names.count(), wanted.files.len());
}

#[test]
fn a_restore_goes_over_no_file_that_came_there_while_it_ran() {
    let folder = backed_up();
    for (file_id, was_there) in [(1, false), (1, true), (2, false), (2, true)] {
        let place = tempfile::tempdir().unwrap();
        let wanted = EngineRestoreRequest {
            as_is: true,
            existing: Existing::Replace,
            ..request_for(folder.path(), place.path())
        };
        if was_there {
            let earlier = restored(folder.path(), &wanted).unwrap();
            Box::new(earlier).finish(Recovery::Recovery).unwrap();
        }
        let running = restored(folder.path(), &wanted).unwrap();
        let target = target_of(&wanted, file_id);
        let theirs = place.path().join("theirs");
        std::fs::write(&theirs, "theirs").unwrap();
        std::fs::rename(&theirs, &target).unwrap();
        let error = Box::new(running).finish(Recovery::Recovery).unwrap_err();
        assert!(error.to_string().contains("move that file away"), "{error}");
        assert_eq!(std::fs::read(&target).unwrap(), b"theirs");
    }
}

#[test]
fn a_restore_that_may_replace_nothing_refuses_a_target_that_exists() {
    let folder = backed_up();
    let place = tempfile::tempdir().unwrap();
    let wanted = request_for(folder.path(), place.path());
    let target = target_of(&wanted, 1);
    std::fs::write(&target, "theirs").unwrap();
    let error = EngineTarget::begin(&wanted).unwrap_err();
    assert!(matches!(error, SourceError::TargetExists { .. }), "{error}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn a_sequence_does_not_continue_with_the_data_files_of_another_restore() {
    let folder = backed_up();
    let place = tempfile::tempdir().unwrap();
    let wanted = EngineRestoreRequest {
        as_is: true,
        ..request_for(folder.path(), place.path())
    };
    let waiting = restored(folder.path(), &wanted).unwrap();
    Box::new(waiting).finish(Recovery::NoRecovery).unwrap();
    let staged = format!("{}.windlass-restoring", target_of(&wanted, 1).display());
    let copy = format!("{staged}.copy");
    std::fs::copy(&staged, &copy).unwrap();
    std::fs::rename(&copy, &staged).unwrap();
    let error = recover(&log_of(place.path()), "copy", Existing::Replace).unwrap_err();
    assert!(
        matches!(error, SourceError::RestoreInterrupted { .. }),
        "{error}"
    );
}
