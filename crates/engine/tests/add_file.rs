//! Kills a process at every step of the addition of a data file: the database opens afterwards, the file is a
//! part of it or is not, and it can be added again.
#![expect(clippy::unwrap_used, reason = "a test ends at the first failure")]

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use windlass_engine::storage::{FileSystem, OpenMode, RealFileSystem, StorageFile};
use windlass_engine::{
    CreateDatabase, Database, FileSpec, Instance, InstanceOptions, OpenDatabase,
};
use windlass_io::DirectFile;

const FOLDER: &str = "WINDLASS_ADD_FOLDER";
const STEP: &str = "WINDLASS_ADD_STEP";

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
    let database = open(Path::new(&folder));
    STEPS_LEFT.store(steps.parse().unwrap(), Ordering::SeqCst);
    let dress = |_: &Path| {
        step();
        Ok(())
    };
    let spec = added(Path::new(&folder));
    database.add_dressed_file(&spec, &dress).unwrap();
    STEPS_LEFT.store(u32::MAX, Ordering::SeqCst);
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
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["child_adder", "--exact", "--ignored"])
            .env(FOLDER, folder)
            .env(STEP, steps.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
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
