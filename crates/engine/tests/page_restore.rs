//! Restores single pages into a database in use, and tests what prevents it.
#![expect(clippy::unwrap_used, reason = "a test ends at the first failure")]

mod parts;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use windlass_base::{FileId, FilePage, PAGE_BYTES};
use windlass_engine::{BackupMode, Database, EngineError, OpenDatabase, PageRefusal};

use parts::{
    Set, at, back_up, content, create, instance, numbers, place, read, restore, truncate, write,
};

const NOW: Duration = Duration::ZERO;

fn bring_back(database: &Arc<Database>, set: &Set, pages: &[FilePage]) -> Result<u64, EngineError> {
    let mut restore = database.begin_page_restore(&set.describe(), set.guid, pages)?;
    for (range, bytes) in &set.ranges {
        let file = range.file;
        if restore.wants(file, range.offset, bytes.len() as u64) {
            restore.take(file, range.offset, bytes);
        }
    }
    for piece in set.log.chunks(1000) {
        restore.apply_log(piece)?;
    }
    restore.finish(NOW)
}

fn path_of(folder: &Path, page: u32) -> std::path::PathBuf {
    let name = if place(page).file_id == FileId(1) {
        "a.mdf"
    } else {
        "b.ndf"
    };
    folder.join(name)
}

/// Flips a bit of a page on disk, and opens the database again to empty the pool.
fn damage(database: &Arc<Database>, folder: &Path, page: u32) -> Arc<Database> {
    database.close().unwrap();
    let path = path_of(folder, page);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[place(page).page as usize * PAGE_BYTES + 100] ^= 4;
    std::fs::write(&path, bytes).unwrap();
    let open = OpenDatabase::new("a", folder.join("a.ldf"));
    instance().open_database(&open).unwrap()
}

fn is_damaged(found: &Result<Vec<u8>, EngineError>) -> bool {
    matches!(found, Err(EngineError::PageChecksum { .. }))
}

#[test]
fn damaged_pages_of_both_files_come_back_while_a_reader_looks_on() {
    let folder = tempfile::tempdir().unwrap();
    let database = create(&instance(), folder.path());
    write(&database, 1..=200, 1);
    let set = back_up(&database, BackupMode::Full, |_| ());
    write(&database, 100..=100, 2);
    let database = damage(&database, folder.path(), 20);
    let database = damage(&database, folder.path(), 33);
    let before = database.begin_read();
    assert!(is_damaged(&read(&database, 20)) && is_damaged(&read(&database, 33)));
    let pages = [place(20), place(33), place(20)];
    assert_eq!(bring_back(&database, &set, &pages).unwrap(), 2);
    assert_eq!(read(&database, 20).unwrap(), content(20, 1));
    let mut seen = vec![0; PAGE_BYTES];
    before.read_page(at(33), &mut seen).unwrap();
    assert_eq!(seen, content(33, 1), "a snapshot from before sees it, too");
    assert_eq!(read(&database, 100).unwrap(), content(100, 2));
    database.close().unwrap();
    for page in [20, 33] {
        let bytes = std::fs::read(path_of(folder.path(), page)).unwrap();
        let start = place(page).page as usize * PAGE_BYTES;
        assert!(
            bytes[start..start + PAGE_BYTES] == content(page, 1),
            "on disk"
        );
    }
}

#[test]
fn a_page_that_the_pool_has_damaged_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let database = create(&instance(), folder.path());
    // Without checksums, damage is read and kept in the pool unnoticed.
    let mut writer = database.begin_write(&database.begin_read()).unwrap();
    for page in 1..=40 {
        writer
            .write_page(at(page), &[page as u8; PAGE_BYTES])
            .unwrap();
    }
    writer.commit().unwrap();
    let set = back_up(&database, BackupMode::Full, |_| ());
    let database = damage(&database, folder.path(), 12);
    assert_ne!(read(&database, 12).unwrap(), [12; PAGE_BYTES]);
    bring_back(&database, &set, &[place(12)]).unwrap();
    assert_eq!(read(&database, 12).unwrap(), [12; PAGE_BYTES]);
}

#[test]
fn a_changed_extent_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let database = create(&instance(), folder.path());
    write(&database, 1..=200, 1);
    let set = back_up(&database, BackupMode::Full, |_| ());
    write(&database, 17..=17, 2);
    let database = damage(&database, folder.path(), 60);
    let files = || ["a.mdf", "b.ndf"].map(|name| std::fs::read(folder.path().join(name)).unwrap());
    let before = files();
    // 20 is a neighbour of 17 in its extent.
    match bring_back(&database, &set, &[place(60), place(20)]) {
        Err(EngineError::PagesChanged { pages, .. }) => assert_eq!(pages, [place(20)]),
        other => panic!("{other:?}"),
    }
    assert!(files() == before && is_damaged(&read(&database, 60)));
    // A change between the first check and the write also counts.
    let mut restore = database
        .begin_page_restore(&set.describe(), set.guid, &[place(60)])
        .unwrap();
    for (range, bytes) in &set.ranges {
        restore.take(range.file, range.offset, bytes);
    }
    restore.apply_log(&set.log).unwrap();
    write(&database, 61..=61, 3);
    let late = restore.finish(NOW);
    assert!(
        matches!(late, Err(EngineError::PagesChanged { .. })),
        "{late:?}"
    );
    assert!(is_damaged(&read(&database, 60)));
}

#[test]
fn only_the_differential_base_serves() {
    let folder = tempfile::tempdir().unwrap();
    let database = create(&instance(), folder.path());
    write(&database, 1..=80, 1);
    let older = back_up(&database, BackupMode::Full, |_| ());
    let base = back_up(&database, BackupMode::Full, |_| ());
    let copy_only = back_up(&database, BackupMode::CopyOnly, |_| ());
    let differential = back_up(&database, BackupMode::Differential, |_| ());
    for set in [&older, &copy_only, &differential] {
        match bring_back(&database, set, &[place(20)]) {
            Err(EngineError::NotTheBase { base: reported, .. }) => assert_eq!(reported, base.guid),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(bring_back(&database, &base, &[place(20)]).unwrap(), 1);
}

#[test]
fn pages_that_are_none_and_sets_that_lack_something_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let database = create(&instance(), folder.path());
    write(&database, 1..=80, 1);
    let mut set = back_up(&database, BackupMode::Full, |_| ());
    let refusal = |set: &Set, file, page| match bring_back(
        &database,
        set,
        &[FilePage {
            file_id: FileId(file),
            page,
        }],
    ) {
        Err(EngineError::PageRefused { refusal, .. }) => refusal,
        other => panic!("{other:?}"),
    };
    for (file, page) in [
        (0, 0),
        (4, 0),
        // Stamps.
        (1, 8),
        (3, 0),
        (1, 48),
        (3, 48),
        (3, u64::MAX),
        (3, 1 << 32),
        (u16::MAX, 1),
    ] {
        assert_eq!(
            refusal(&set, file, page),
            PageRefusal::BeyondEnd,
            "{file}:{page}"
        );
    }
    assert_eq!(refusal(&set, 2, 0), PageRefusal::InLog);
    let last = FilePage {
        file_id: FileId(3),
        page: 47,
    };
    assert_eq!(bring_back(&database, &set, &[last]).unwrap(), 1);
    let log = std::mem::take(&mut set.log);
    assert!(bring_back(&database, &set, &[last]).is_err(), "no log");
    set.log = log;
    for (_, bytes) in &mut set.ranges {
        bytes[PAGE_BYTES + 5] ^= 1;
    }
    assert!(matches!(refusal(&set, 1, 1), PageRefusal::Damaged { .. }));
    set.ranges.clear();
    assert_eq!(refusal(&set, 1, 1), PageRefusal::NotInSet);
}

#[test]
fn a_writer_and_a_backup_under_way_keep_it_out() {
    let folder = tempfile::tempdir().unwrap();
    let database = create(&instance(), folder.path());
    write(&database, 1..=80, 1);
    let set = back_up(&database, BackupMode::Full, |_| ());
    let writer = database.begin_write(&database.begin_read()).unwrap();
    let busy = bring_back(&database, &set, &[place(20)]);
    assert!(matches!(busy, Err(EngineError::Busy { .. })), "{busy:?}");
    drop(writer);
    let backup = database.begin_backup(BackupMode::CopyOnly).unwrap();
    let running = bring_back(&database, &set, &[place(20)]);
    assert!(
        matches!(running, Err(EngineError::BackupRunning { .. })),
        "{running:?}"
    );
    drop(backup);
    assert_eq!(bring_back(&database, &set, &[place(20)]).unwrap(), 1);
    write(&database, 20..=20, 3);
}

#[test]
fn a_database_that_was_restored_gets_what_the_log_of_its_set_says() {
    let folder = tempfile::tempdir().unwrap();
    let database = create(&instance(), folder.path());
    write(&database, 1..=200, 1);
    // The copy has old content of these pages, or half of it; the set's log has the new content.
    let set = back_up(&database, BackupMode::Full, |index| {
        write(&database, 20..=90, index as u8 + 10);
    });
    let wanted = |page| read(&database, page).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = restore(&set, elsewhere.path());
    let copy = damage(&copy, elsewhere.path(), 33);
    assert!(is_damaged(&read(&copy, 33)));
    let pages: Vec<_> = (1..=200).map(place).collect();
    assert_eq!(bring_back(&copy, &set, &pages).unwrap(), 200);
    for page in 1..=200 {
        assert_eq!(read(&copy, page).unwrap(), wanted(page), "{page}");
    }
    // The original marked those extents while they were copied.
    let refused = bring_back(&database, &set, &[place(33)]);
    assert!(
        matches!(refused, Err(EngineError::PagesChanged { .. })),
        "{refused:?}"
    );
}

/// Whatever was written, cut off and added before, a page that may be restored gets its previous
/// content back.
#[test]
fn a_restored_page_never_changes_what_a_reader_sees() {
    let folder = tempfile::tempdir().unwrap();
    let mut database = create(&instance(), folder.path());
    write(&database, 1..=300, 1);
    let mut set = back_up(&database, BackupMode::Full, |_| ());
    let mut random = numbers();
    let (mut restored, mut refused) = (0, 0);
    for step in 0..400_u32 {
        let page_count = database.begin_read().page_count();
        match random(40) {
            0 => {
                let fill = step as u8;
                set = back_up(&database, BackupMode::Full, |index| {
                    write(&database, 50..=60, fill ^ index as u8);
                });
            }
            1 => {
                truncate(&database, 100 + random(300));
            }
            2 => {
                database.close().unwrap();
                let open = OpenDatabase::new("a", folder.path().join("a.ldf"));
                database = instance().open_database(&open).unwrap();
            }
            3 => drop(database.checkpoint().unwrap()),
            4..12 => {
                let first = 1 + random(page_count);
                write(
                    &database,
                    first..=(first + random(3)).min(page_count),
                    step as u8,
                );
            }
            _ => {
                let page = 1 + random(page_count);
                let before = read(&database, page).unwrap();
                match bring_back(&database, &set, &[place(page)]) {
                    Ok(_) => restored += 1,
                    Err(EngineError::PagesChanged { .. }) => refused += 1,
                    Err(other) => panic!("{other}"),
                }
                assert!(
                    read(&database, page).unwrap() == before,
                    "step {step}, page {page}"
                );
            }
        }
    }
    assert!(restored > 50 && refused > 50, "{restored} {refused}");
}

#[test]
fn readers_never_see_a_page_in_between() {
    let folder = tempfile::tempdir().unwrap();
    let database = create(&instance(), folder.path());
    write(&database, 1..=80, 1);
    let set = back_up(&database, BackupMode::Full, |_| ());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // The readers end even if this fails; the scope would wait for them for ever.
        let _over = OnDrop(&over);
        for first in 1..=2 {
            let (database, over) = (&database, &over);
            scope.spawn(move || {
                let mut page = first;
                while !over.load(Ordering::Relaxed) {
                    assert_eq!(read(database, page).unwrap(), content(page, 1));
                    page = page % 80 + 1;
                }
            });
        }
        let pages: Vec<_> = (1..=80).map(place).collect();
        for _ in 0..30 {
            bring_back(&database, &set, &pages).unwrap();
        }
    });
}

struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
