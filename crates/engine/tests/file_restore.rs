//! Recreates whole data files, damaged or lost, without opening the database.
#![expect(clippy::unwrap_used, reason = "a test ends at the first failure")]

mod parts;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_base::FileId;
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{
    BackupMode, CreateDatabase, Database, EngineError, FileRestore, OpenDatabase, PageRefusal,
};

use parts::{
    Set, back_up, content, create, instance, numbers, place, read, restore, truncate, write,
};

fn beside(path: &Path) -> PathBuf {
    path.with_extension("beside")
}

fn bring_back(folder: &Path, set: &Set, files: &[u16]) -> Result<u64, EngineError> {
    let files: Vec<_> = files.iter().map(|&file| FileId(file)).collect();
    let mut restore = FileRestore::begin(
        Arc::new(RealFileSystem),
        &folder.join("a.ldf"),
        &set.describe(),
        set.guid,
        &files,
        &beside,
    )?;
    for (range, bytes) in &set.ranges {
        if restore.wants(range.file) {
            restore.write(range.file, range.offset, bytes)?;
        }
    }
    for piece in set.log.chunks(1000) {
        restore.apply_log(piece)?;
    }
    let restored = restore.settle()?;
    for file in &restored {
        std::fs::rename(&file.staged, &file.path).unwrap();
    }
    Ok(restored.iter().map(|file| file.pages).sum())
}

fn open(folder: &Path) -> Result<Arc<Database>, EngineError> {
    instance().open_database(&OpenDatabase::new("a", folder.join("a.ldf")))
}

fn nothing_is_left(folder: &Path) -> bool {
    !folder.join("a.beside").exists() && !folder.join("b.beside").exists()
}

#[test]
fn lost_files_come_back_and_the_others_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let database = create(&instance(), folder);
    write(&database, 1..=203, 1);
    let set = back_up(&database, BackupMode::Full, |_| ());
    database.close().unwrap();
    std::fs::remove_file(folder.join("b.ndf")).unwrap();
    assert!(open(folder).is_err());
    assert_eq!(bring_back(folder, &set, &[3]).unwrap(), 8 * 12 + 3);
    std::fs::remove_file(folder.join("b.ndf")).unwrap();
    std::fs::write(folder.join("a.mdf"), b"rubbish").unwrap();
    assert_eq!(bring_back(folder, &set, &[1, 3]).unwrap(), 203);
    let database = open(folder).unwrap();
    for page in 1..=203 {
        assert_eq!(read(&database, page).unwrap(), content(page, 1), "{page}");
    }
    write(&database, 203..=230, 2);
    assert!(nothing_is_left(folder));
    let used = bring_back(folder, &set, &[3]);
    assert!(matches!(used, Err(EngineError::InUse { .. })), "{used:?}");
}

#[test]
fn a_changed_extent_or_one_to_be_repeated_from_the_log_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let database = create(&instance(), folder);
    write(&database, 1..=203, 1);
    let older = back_up(&database, BackupMode::Full, |_| ());
    let set = back_up(&database, BackupMode::Full, |_| ());
    write(&database, 3..=3, 2);
    // As after a crash: only the log contains the commit.
    drop(database);
    match bring_back(folder, &set, &[1]) {
        Err(EngineError::PagesChanged { pages, .. }) => assert_eq!(pages, [place(1)]),
        other => panic!("{other:?}"),
    }
    let other = bring_back(folder, &older, &[3]);
    assert!(
        matches!(other, Err(EngineError::NotTheBase { .. })),
        "{other:?}"
    );
    std::fs::remove_file(folder.join("b.ndf")).unwrap();
    bring_back(folder, &set, &[3]).unwrap();
    let database = open(folder).unwrap();
    assert_eq!(read(&database, 3).unwrap(), content(3, 2));
    assert_eq!(read(&database, 12).unwrap(), content(12, 1));
    database.close().unwrap();
    let closed = bring_back(folder, &set, &[1]);
    assert!(
        matches!(closed, Err(EngineError::PagesChanged { .. })),
        "{closed:?}"
    );
    assert!(nothing_is_left(folder));
}

#[test]
fn sets_that_lack_something_leave_the_files_alone() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let database = create(&instance(), folder);
    write(&database, 1..=80, 1);
    let mut set = back_up(&database, BackupMode::Full, |_| ());
    database.close().unwrap();
    let before = std::fs::read(folder.join("b.ndf")).unwrap();
    assert!(bring_back(folder, &set, &[2]).is_err(), "the log");
    assert!(bring_back(folder, &set, &[4]).is_err(), "no such file");
    let log = std::mem::take(&mut set.log);
    assert!(bring_back(folder, &set, &[3]).is_err(), "no log");
    set.log = log;
    let refusal = |set: &Set| match bring_back(folder, set, &[3]) {
        Err(EngineError::PageRefused { refusal, .. }) => refusal,
        other => panic!("{other:?}"),
    };
    let last = set.ranges.pop().unwrap();
    assert_eq!(refusal(&set), PageRefusal::NotInSet);
    set.ranges.push(last);
    set.ranges.last_mut().unwrap().1[9000] ^= 1;
    assert!(matches!(refusal(&set), PageRefusal::Damaged { .. }));
    assert!(nothing_is_left(folder) && std::fs::read(folder.join("b.ndf")).unwrap() == before);
}

#[test]
fn a_file_of_a_restored_database_gets_what_the_log_of_the_set_says() {
    let folder = tempfile::tempdir().unwrap();
    let database = create(&instance(), folder.path());
    write(&database, 1..=200, 1);
    let set = back_up(&database, BackupMode::Full, |index| {
        write(&database, 20..=90, index as u8 + 10);
    });
    let elsewhere = tempfile::tempdir().unwrap();
    restore(&set, elsewhere.path()).close().unwrap();
    for name in ["a.mdf", "b.ndf"] {
        std::fs::remove_file(elsewhere.path().join(name)).unwrap();
    }
    assert_eq!(bring_back(elsewhere.path(), &set, &[3, 1]).unwrap(), 200);
    let copy = open(elsewhere.path()).unwrap();
    for page in 1..=200 {
        let expected = read(&database, page).unwrap();
        assert_eq!(read(&copy, page).unwrap(), expected, "{page}");
    }
}

#[test]
fn the_only_file_comes_back_with_its_length_unless_another_program_changed_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let request = CreateDatabase::new("a", folder.join("a.mdf"), folder.join("a.ldf"));
    let database = instance().create_database(&request).unwrap();
    write(&database, 1..=13, 1);
    let set = back_up(&database, BackupMode::Full, |_| ());
    database.close().unwrap();
    let before = std::fs::read(folder.join("a.mdf")).unwrap();
    let mut damaged = before.clone();
    damaged[50_000] ^= 1;
    std::fs::write(folder.join("a.mdf"), &damaged).unwrap();
    assert_eq!(bring_back(folder, &set, &[1]).unwrap(), 13);
    assert!(std::fs::read(folder.join("a.mdf")).unwrap() == before);
    damaged[30] ^= 1;
    std::fs::write(folder.join("a.mdf"), &damaged).unwrap();
    let changed = bring_back(folder, &set, &[1]);
    assert!(
        matches!(changed, Err(EngineError::Corrupt { .. })),
        "{changed:?}"
    );
    std::fs::remove_file(folder.join("a.mdf")).unwrap();
    bring_back(folder, &set, &[1]).unwrap();
    let database = open(folder).unwrap();
    // The file is not mistaken for one written by another program: the differential map is
    // unchanged.
    let pages = [place(1)];
    database
        .begin_page_restore(&set.describe(), set.guid, &pages)
        .unwrap();
}

/// Whatever was written, cut off and added before, a file that may be restored gets its previous
/// content back.
#[test]
fn a_restored_file_never_changes_what_a_reader_sees() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut database = create(&instance(), folder);
    write(&database, 1..=100, 1);
    let mut set = back_up(&database, BackupMode::Full, |_| ());
    let mut random = numbers();
    let (mut restored, mut refused) = (0, 0);
    for step in 0..160_u32 {
        let page_count = database.begin_read().page_count();
        match random(8) {
            0 | 1 => {
                set = back_up(&database, BackupMode::Full, |index| {
                    if step % 3 == 0 {
                        write(&database, 50..=60, step as u8 ^ index as u8);
                    }
                });
            }
            2 => {
                truncate(&database, 60 + random(60));
            }
            3 => drop(database.checkpoint().unwrap()),
            4 => {
                let first = 1 + random(page_count);
                write(&database, first..=first, step as u8);
            }
            _ => {
                let all = |database: &Arc<Database>| -> Vec<_> {
                    (1..=page_count)
                        .map(|page| read(database, page).unwrap())
                        .collect()
                };
                let before = all(&database);
                if step % 2 == 0 {
                    database.close().unwrap();
                }
                drop(database);
                let (name, number) = [("a.mdf", 1), ("b.ndf", 3)][random(2) as usize];
                std::fs::rename(folder.join(name), folder.join("away")).unwrap();
                match bring_back(folder, &set, &[number]) {
                    Ok(_) => restored += 1,
                    Err(EngineError::PagesChanged { .. }) => {
                        std::fs::rename(folder.join("away"), folder.join(name)).unwrap();
                        refused += 1;
                    }
                    Err(other) => panic!("{other}"),
                }
                database = open(folder).unwrap();
                assert!(all(&database) == before, "step {step}, file {number}");
            }
        }
    }
    assert!(restored > 8 && refused > 8, "{restored} {refused}");
}
