//! Files of different moments: a database opens only if each data file and the log belong together,
//! and no file is shorter than it was.
#![expect(clippy::unwrap_used, reason = "a test ends at the first failure")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_base::{PAGE_BYTES, PageNumber};
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{
    CreateDatabase, Database, EngineError, FileSpec, Instance, InstanceOptions, OpenDatabase,
};

const PAGES: u32 = 60;

fn instance() -> Arc<Instance> {
    let options = InstanceOptions {
        pool_pages: 128,
        background: false,
        ..InstanceOptions::default()
    };
    Instance::new(options, Arc::new(RealFileSystem)).unwrap()
}

/// The files of a database of one or two data files.
fn names(data_files: usize) -> Vec<&'static str> {
    let mut names = vec!["a.mdf", "b.ndf"];
    names.truncate(data_files);
    names.push("l.ldf");
    names
}

fn create(folder: &Path, data_files: usize) -> (Arc<Instance>, Arc<Database>) {
    let mut request = CreateDatabase::new("a", folder.join("a.mdf"), folder.join("l.ldf"));
    request.log.size = 1 << 20;
    request.data_files = names(data_files)[..data_files]
        .iter()
        .map(|name| FileSpec {
            size: 1 << 20,
            ..FileSpec::data(name, folder.join(name))
        })
        .collect();
    let instance = instance();
    let database = instance.create_database(&request).unwrap();
    (instance, database)
}

/// Page 1 counts changes, as SQLite's does; the others have `value`.
fn write(database: &Arc<Database>, count: u32, value: u8) {
    let mut writer = database.begin_write(&database.begin_read()).unwrap();
    let mut first = vec![0; PAGE_BYTES];
    first[..16].copy_from_slice(b"SQLite format 3\0");
    for at in [24, 92] {
        first[at..at + 4].copy_from_slice(&u32::from(value).to_be_bytes());
    }
    first[28..32].copy_from_slice(&count.to_be_bytes());
    writer.write_page(PageNumber::FIRST, &first).unwrap();
    for number in 2..=count {
        let page = PageNumber::from_sqlite(number).unwrap();
        writer.write_page(page, &[value; PAGE_BYTES]).unwrap();
    }
    writer.commit().unwrap();
}

fn keep(folder: &Path, names: &[&str], under: &str) -> PathBuf {
    let kept = folder.join(under);
    std::fs::create_dir(&kept).unwrap();
    for name in names {
        std::fs::copy(folder.join(name), kept.join(name)).unwrap();
    }
    kept
}

fn put(from: &Path, names: &[&str], folder: &Path) {
    for name in names {
        std::fs::copy(from.join(name), folder.join(name)).unwrap();
    }
}

fn open(folder: &Path) -> Result<(Arc<Instance>, Arc<Database>), EngineError> {
    let instance = instance();
    let database = instance.open_database(&OpenDatabase::new("a", folder.join("l.ldf")))?;
    Ok((instance, database))
}

/// Two moments of a database, closed or as a kill left them: `old` and `new` in the folder.
fn moments(data_files: usize, is_closed: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let all = names(data_files);
    let (made, database) = create(path, data_files);
    write(&database, PAGES / 2, 1);
    match is_closed {
        true => database.close().unwrap(),
        false => drop(database.checkpoint().unwrap()),
    }
    keep(path, &all, "old");
    drop((database, made));
    let (opened, database) = open(path).unwrap();
    write(&database, PAGES, 2);
    match is_closed {
        true => database.close().unwrap(),
        false => {
            database.checkpoint().unwrap();
            // In the log alone.
            write(&database, 3, 3);
        }
    }
    keep(path, &all, "new");
    drop((database, opened));
    folder
}

fn refuses_every_mixture(data_files: usize, is_closed: bool) {
    let folder = moments(data_files, is_closed);
    let (path, all) = (folder.path(), names(data_files));
    for mixture in 0..1_u32 << all.len() {
        let stale: Vec<&str> = all
            .iter()
            .enumerate()
            .filter(|(index, _)| mixture & (1 << index) != 0)
            .map(|(_, name)| *name)
            .collect();
        put(&path.join("new"), &all, path);
        put(&path.join("old"), &stale, path);
        let is_whole = stale.is_empty() || stale.len() == all.len();
        match open(path) {
            Ok((_instance, database)) => {
                assert!(is_whole, "{stale:?} opened");
                database.close().unwrap();
            }
            Err(EngineError::FilesDiffer { .. } | EngineError::FileTooShort { .. }) => {
                assert!(!is_whole, "{stale:?} refused");
            }
            Err(other) => panic!("{stale:?}: {other}"),
        }
        // The refusal has changed nothing: with its own files it opens.
        put(&path.join("new"), &all[..data_files], path);
        put(&path.join("new"), &["l.ldf"], path);
        open(path).unwrap().1.close().unwrap();
    }
}

#[test]
fn a_closed_database_with_files_of_two_moments_is_refused() {
    refuses_every_mixture(2, true);
    refuses_every_mixture(1, true);
}

#[test]
fn a_killed_database_with_files_of_two_moments_is_refused() {
    refuses_every_mixture(2, false);
    refuses_every_mixture(1, false);
}

/// Pages other than the first.
fn write_others(database: &Arc<Database>, value: u8) {
    let mut writer = database.begin_write(&database.begin_read()).unwrap();
    for number in 2..=PAGES / 2 {
        let page = PageNumber::from_sqlite(number).unwrap();
        writer.write_page(page, &[value; PAGE_BYTES]).unwrap();
    }
    writer.commit().unwrap();
}

#[test]
fn a_log_that_was_closed_before_the_last_opening_is_refused() {
    for ends in ["closed", "killed", "with a second file"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let (made, database) = create(path, 1);
        write(&database, PAGES / 2, 1);
        database.close().unwrap();
        keep(path, &["l.ldf"], "old");
        drop((database, made));
        let (opened, database) = open(path).unwrap();
        write_others(&database, 2);
        database.checkpoint().unwrap();
        match ends {
            "closed" => database.close().unwrap(),
            "with a second file" => {
                let added = FileSpec {
                    size: 1 << 20,
                    ..FileSpec::data("b", path.join("b.ndf"))
                };
                database.add_file(&added).unwrap();
                database.close().unwrap();
            }
            _ => {}
        }
        drop((database, opened));
        keep(path, &["l.ldf"], "new");
        put(&path.join("old"), &["l.ldf"], path);
        let refused = open(path).map(|_| ());
        assert!(
            matches!(refused, Err(EngineError::FilesDiffer { why, .. }) if why.contains("opening")),
            "{ends}: {refused:?}"
        );
        put(&path.join("new"), &["l.ldf"], path);
        open(path).unwrap().1.close().unwrap();
    }
}

#[test]
fn a_closed_file_that_others_wrote_to_opens_with_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let (made, database) = create(path, 1);
    write(&database, PAGES / 2, 1);
    database.close().unwrap();
    drop((database, made));
    let file = path.join("a.mdf");
    let mut content = std::fs::read(&file).unwrap();
    for at in [27, 95] {
        content[at] = 9;
    }
    content[PAGE_BYTES * 3] = 77;
    std::fs::write(&file, &content).unwrap();
    let (opened, database) = open(path).unwrap();
    let mut page = vec![0; PAGE_BYTES];
    let third = PageNumber::from_sqlite(4).unwrap();
    database.begin_read().read_page(third, &mut page).unwrap();
    assert_eq!(page[0], 77);
    database.close().unwrap();
    drop((database, opened));
    // VACUUM rewrites the whole file, without a mark.
    let mut content = std::fs::read(&file).unwrap();
    assert_ne!(content[72..92], [0; 20]);
    content[72..92].fill(0);
    content[27] = 10;
    std::fs::write(&file, &content).unwrap();
    open(path).unwrap().1.close().unwrap();
}

#[test]
fn a_data_file_that_was_cut_is_refused() {
    for data_files in [1, 2] {
        for is_closed in [true, false] {
            let folder = moments(data_files, is_closed);
            let (path, all) = (folder.path(), names(data_files));
            for name in &all[..data_files] {
                for bytes in [0, 8192, 65536, 131_072] {
                    put(&path.join("new"), &all, path);
                    let cut = std::fs::File::options().write(true).open(path.join(name));
                    cut.unwrap().set_len(bytes).unwrap();
                    let outcome = open(path).map(|_| ());
                    assert!(
                        matches!(outcome, Err(EngineError::FileTooShort { .. })),
                        "{name} of {bytes} bytes: {outcome:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn files_added_later_have_stamps_and_the_first_one_gets_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let (made, database) = create(path, 1);
    write(&database, PAGES / 2, 1);
    let added = FileSpec {
        size: 1 << 20,
        ..FileSpec::data("b", path.join("b.ndf"))
    };
    database.add_file(&added).unwrap();
    // Killed before the next checkpoint.
    drop((database, made));
    let all = names(2);
    let (opened, database) = open(path).unwrap();
    write(&database, PAGES, 2);
    database.close().unwrap();
    keep(path, &all, "old");
    drop((database, opened));
    let (opened, database) = open(path).unwrap();
    write(&database, PAGES, 3);
    database.close().unwrap();
    drop((database, opened));
    keep(path, &all, "new");
    for stale in all {
        put(&path.join("new"), &names(2), path);
        put(&path.join("old"), &[stale], path);
        assert!(
            matches!(open(path), Err(EngineError::FilesDiffer { .. })),
            "{stale}"
        );
    }
}

#[test]
fn a_file_of_another_database_is_refused() {
    let folder = moments(2, true);
    let other = moments(2, true);
    put(other.path(), &["b.ndf"], folder.path());
    let refused = open(folder.path()).map(|_| ());
    assert!(
        matches!(refused, Err(EngineError::FilesDiffer { why, .. }) if why.contains("another database")),
        "{refused:?}"
    );
    put(&folder.path().join("new"), &["b.ndf"], folder.path());
    std::fs::rename(folder.path().join("a.mdf"), folder.path().join("x")).unwrap();
    std::fs::rename(folder.path().join("b.ndf"), folder.path().join("a.mdf")).unwrap();
    std::fs::rename(folder.path().join("x"), folder.path().join("b.ndf")).unwrap();
    let swapped = open(folder.path()).map(|_| ());
    assert!(
        matches!(
            swapped,
            Err(EngineError::FilesDiffer { .. } | EngineError::FileTooShort { .. })
        ),
        "{swapped:?}"
    );
}
