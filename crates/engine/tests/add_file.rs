//! Kills a process at every step of the addition of a data file: the database opens afterwards, the file is a
//! part of it or is not, and it can be added again. Also if the log must grow for it: then no header names the file
//! before the log does.
#![expect(clippy::unwrap_used, reason = "a test ends at the first failure")]

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use windlass_base::{Guid, PAGE_BYTES, PageNumber};
use windlass_engine::storage::{FileSystem, OpenMode, RealFileSystem, StorageFile};
use windlass_engine::{
    BackupMode, CreateDatabase, Database, EngineError, FileSpec, Growth, Instance, InstanceOptions,
    OpenDatabase, RecoveryModel,
};
use windlass_io::DirectFile;

const FOLDER: &str = "WINDLASS_ADD_FOLDER";
const STEP: &str = "WINDLASS_ADD_STEP";
/// The commits that fill the log before, if it is to be full.
const FILL: &str = "WINDLASS_ADD_FILL";

/// Steps left until the process is killed.
static STEPS_LEFT: AtomicU32 = AtomicU32::new(u32::MAX);

fn step() {
    if STEPS_LEFT.fetch_sub(1, Ordering::SeqCst) == 0 {
        // No destructor runs, as with a kill.
        std::process::abort();
    }
}

/// The real files, with a step before each change.
#[derive(Debug)]
struct Steps;

impl FileSystem for Steps {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn StorageFile>> {
        step();
        let file = RealFileSystem.open(path, mode)?;
        Ok(Arc::new(Stepped(file)))
    }

    fn exists(&self, path: &Path) -> bool {
        RealFileSystem.exists(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        step();
        RealFileSystem.remove(path)
    }

    fn publish(&self, path: &Path, file: &dyn StorageFile) -> io::Result<()> {
        step();
        RealFileSystem.publish(path, file)?;
        step();
        Ok(())
    }

    fn discard(&self, path: &Path, file: &dyn StorageFile) -> io::Result<()> {
        step();
        RealFileSystem.discard(path, file)
    }

    fn sync_folder_of(&self, path: &Path) -> io::Result<()> {
        step();
        RealFileSystem.sync_folder_of(path)
    }
}

#[derive(Debug)]
struct Stepped(Arc<dyn StorageFile>);

impl StorageFile for Stepped {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        step();
        self.0.write_at(buffer, offset)
    }

    fn sync(&self) -> io::Result<()> {
        step();
        self.0.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        step();
        self.0.set_len(bytes)
    }

    fn reserve(&self, offset: u64, bytes: u64) -> io::Result<()> {
        step();
        self.0.reserve(offset, bytes)
    }

    fn lock_exclusive(&self) -> io::Result<()> {
        self.0.lock_exclusive()
    }

    fn lock_database(&self) -> io::Result<()> {
        self.0.lock_database()
    }

    fn unlock(&self) -> io::Result<()> {
        self.0.unlock()
    }

    fn direct(&self) -> Option<Arc<DirectFile>> {
        self.0.direct()
    }
}

fn instance() -> Arc<Instance> {
    let options = InstanceOptions {
        pool_pages: 64,
        background: false,
        ..InstanceOptions::default()
    };
    Instance::new(options, Arc::new(Steps)).unwrap()
}

fn open(folder: &Path) -> Arc<Database> {
    let log = folder.join("a.ldf");
    instance()
        .open_database(&OpenDatabase::new("a", log))
        .unwrap()
}

fn added(folder: &Path) -> FileSpec {
    FileSpec {
        size: 1 << 20,
        ..FileSpec::data("b", folder.join("b.ndf"))
    }
}

fn files(database: &Database) -> Vec<PathBuf> {
    let files = database.files().into_iter().filter(|file| !file.is_log);
    files.map(|file| file.spec.path).collect()
}

/// Not a test: what the other process runs.
#[test]
#[ignore = "the child process of the other test"]
fn child_adder() {
    let (Some(folder), Ok(steps)) = (std::env::var_os(FOLDER), std::env::var(STEP)) else {
        return;
    };
    let database = match std::env::var(FILL) {
        Ok(fill) => filled(Path::new(&folder), &fill),
        Err(_) => open(Path::new(&folder)),
    };
    STEPS_LEFT.store(steps.parse().unwrap(), Ordering::SeqCst);
    let dress = |_: &Path| {
        step();
        Ok(())
    };
    let spec = added(Path::new(&folder));
    database.add_dressed_file(&spec, &dress).unwrap();
    STEPS_LEFT.store(u32::MAX, Ordering::SeqCst);
}

/// The other process, killed after so many steps.
fn adder(folder: &Path, steps: u32) -> Command {
    let mut adder = Command::new(std::env::current_exe().unwrap());
    adder
        .args(["child_adder", "--exact", "--ignored"])
        .env(FOLDER, folder)
        .env(STEP, steps.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    adder
}

/// A small database in the recovery model FULL, with a chain of log backups.
fn chained(folder: &Path, growth: Growth) -> Arc<Database> {
    let mut request = CreateDatabase::new("a", folder.join("a.mdf"), folder.join("a.ldf"));
    request.log.size = 640 << 10;
    request.log.growth = growth;
    let database = instance().create_database(&request).unwrap();
    database.set_recovery_model(RecoveryModel::Full).unwrap();
    commit(&database, 0).unwrap();
    let mut backup = database.begin_backup(BackupMode::Full).unwrap();
    backup.finish_data().unwrap();
    backup.complete(Guid::random()).unwrap();
    // From here on this page is dirty, and its changes are small.
    commit(&database, 0).unwrap();
    database
}

/// Writes a page: a new one whole into the log, a known one with what has changed.
fn commit(database: &Arc<Database>, page: u32) -> Result<(), EngineError> {
    let snapshot = database.begin_read();
    let mut content = vec![7; PAGE_BYTES];
    let number = PageNumber::from_index(page).unwrap();
    if page < snapshot.page_count() {
        snapshot.read_page(number, &mut content)?;
        content[200] = content[200].wrapping_add(1);
    }
    let mut writer = database.begin_write(&snapshot)?;
    writer.write_page(number, &content)?;
    writer.commit().map(|_| ())
}

/// How many commits of new pages, and then small ones, fill a log that does not grow.
fn fill() -> String {
    let folder = tempfile::tempdir().unwrap();
    let database = chained(folder.path(), Growth::Fixed);
    let pages = (1..10_000)
        .take_while(|page| commit(&database, *page).is_ok())
        .count();
    let small = std::iter::repeat_with(|| commit(&database, 0))
        .take_while(Result::is_ok)
        .count();
    format!("{pages} {small}")
}

/// A database whose log has no room for the addition of a file, and can grow.
fn filled(folder: &Path, fill: &str) -> Arc<Database> {
    let (pages, small) = fill.split_once(' ').unwrap();
    let database = chained(folder, Growth::Bytes(256 << 10));
    for page in 1..=pages.parse().unwrap() {
        commit(&database, page).unwrap();
    }
    for _ in 0..small.parse().unwrap() {
        commit(&database, 0).unwrap();
    }
    assert_eq!(log_bytes(&database), 640 << 10);
    database
}

fn log_bytes(database: &Database) -> u64 {
    let files = database.files();
    let log = files.iter().find(|file| file.is_log).unwrap();
    log.spec.size
}

/// The log since its last backup.
fn tail(database: &Arc<Database>) -> Vec<u8> {
    let backup = database.begin_log_backup(false).unwrap();
    let (mut copy, mut log, mut piece) = (backup.copy(), Vec::new(), vec![0; 64 << 10]);
    loop {
        match copy.read(&mut piece).unwrap() {
            0 => return log,
            bytes => log.extend_from_slice(&piece[..bytes]),
        }
    }
}

#[test]
fn no_header_names_a_file_before_the_log_for_which_the_log_grows() {
    let fill = fill();
    let mut outcomes = [0, 0, 0];
    for steps in 0.. {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let status = adder(folder, steps).env(FILL, &fill).status().unwrap();
        let database = open(folder);
        let path = added(folder).path;
        let has_grown = log_bytes(&database) > 640 << 10;
        if files(&database).contains(&path) {
            outcomes[2] += 1;
            let name = path.as_os_str().as_encoded_bytes();
            let log = tail(&database);
            let is_named = log.windows(name.len()).any(|part| part == name);
            assert!(has_grown && is_named, "killed at step {steps}");
        } else {
            outcomes[usize::from(has_grown)] += 1;
            if path.exists() {
                std::fs::remove_file(&path).unwrap();
            }
            database.add_file(&added(folder)).unwrap();
        }
        commit(&database, 0).unwrap();
        database.close().unwrap();
        assert_eq!(files(&open(folder)).len(), 2);
        if status.success() {
            break;
        }
        assert_eq!(status.code(), None, "killed at step {steps}");
    }
    // Before the growth, after it, and when the header knows of the file.
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}

#[test]
fn a_database_opens_after_the_addition_of_a_file_is_killed_at_any_step() {
    let mut outcomes = [0, 0, 0];
    for steps in 0.. {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut request = CreateDatabase::new("a", folder.join("a.mdf"), folder.join("a.ldf"));
        request.log.size = 1 << 20;
        let database = instance().create_database(&request).unwrap();
        database.close().unwrap();
        let status = adder(folder, steps).status().unwrap();
        let database = open(folder);
        let known = files(&database);
        let path = added(folder).path;
        if known.contains(&path) {
            outcomes[2] += 1;
        } else {
            // Nothing was ever written to it.
            if path.exists() {
                outcomes[1] += 1;
                let left = std::fs::read(&path).unwrap();
                assert!(left.iter().all(|byte| *byte == 0));
                std::fs::remove_file(&path).unwrap();
            } else {
                outcomes[0] += 1;
            }
            database.add_file(&added(folder)).unwrap();
            assert!(files(&database).contains(&path));
        }
        database.close().unwrap();
        assert_eq!(files(&open(folder)).len(), 2);
        if status.success() {
            break;
        }
        assert_eq!(status.code(), None, "killed at step {steps}");
    }
    // Before it has its name, before the header knows of it, and afterwards.
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}
