//! Databases under paths: `file:/path/x.db?vfs=...` opens, or creates, the engine database there.
//!
//! The data file has that path; the log is next to it as `x.db-log`. A database is open while at
//! least one connection has it open, and is cleanly closed with the last one: the data file is then
//! a plain SQLite file.

use std::collections::HashMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use windlass_engine::{
    CreateDatabase, Database, EngineError, Instance, OpenDatabase, complete_creation,
};

use crate::context::{Databases, IfMissing};
use crate::error::{Result, VfsError};

/// How many times, and how long each time, to wait for files that are locked.
const LOCK_ATTEMPTS: usize = 25;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Learns which databases are open. It is called under a lock: it must not open, hold or release one.
pub trait Watch: Debug + Send + Sync {
    /// The first connection has opened the database in this file.
    fn opened(&self, path: &Path);

    /// Its last connection is gone; it closes now.
    fn closed(&self, path: &Path);
}

/// Engine databases by path, in one instance.
#[derive(Debug)]
pub struct PathDatabases {
    instance: Arc<Instance>,
    open: Mutex<HashMap<PathBuf, Entry>>,
    watch: OnceLock<Box<dyn Watch>>,
}

/// A database that stays open as long as the value lives.
#[derive(Debug)]
pub struct Held {
    databases: Arc<PathDatabases>,
    database: Arc<Database>,
}

impl Held {
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // If it was the last, and the files lack something, the log redoes it at the next opening.
        let _closed = self.databases.release(Arc::clone(&self.database));
    }
}

#[derive(Debug)]
struct Entry {
    database: Arc<Database>,
    connections: usize,
}

impl PathDatabases {
    /// All databases use the buffer pool of `instance`.
    pub fn new(instance: Arc<Instance>) -> Arc<Self> {
        Arc::new(Self {
            instance,
            open: Mutex::default(),
            watch: OnceLock::new(),
        })
    }

    /// Tells `watch` of the databases that open and close from now on. There can be one.
    pub fn watch(&self, watch: Box<dyn Watch>) {
        // A second one would be a mistake of the only caller.
        let _set = self.watch.set(watch);
    }

    /// Keeps the database in the file `path` open; `None` if no connection has it open.
    pub fn hold(self: &Arc<Self>, path: &Path) -> Option<Held> {
        let mut map = self.map();
        let entry = map.get_mut(path)?;
        entry.connections += 1;
        Some(Held {
            databases: Arc::clone(self),
            database: Arc::clone(&entry.database),
        })
    }

    /// The files of the databases that are open.
    pub fn open_paths(&self) -> Vec<PathBuf> {
        self.map().keys().cloned().collect()
    }

    fn map(&self) -> MutexGuard<'_, HashMap<PathBuf, Entry>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a database whose files may still be locked briefly by another thread.
    fn open_unlocked(&self, request: &OpenDatabase) -> Result<Arc<Database>> {
        for _ in 0..LOCK_ATTEMPTS {
            match self.instance.open_database(request) {
                Err(error) if is_locked(&error) => std::thread::sleep(LOCK_PAUSE),
                outcome => return Ok(outcome?),
            }
        }
        Ok(self.instance.open_database(request)?)
    }

    fn open_files(&self, path: &Path, missing: IfMissing) -> Result<Arc<Database>> {
        let log = log_path(path);
        let name = path.display().to_string();
        if log.exists() || complete_creation(&log)? {
            let mut request = OpenDatabase::new(&name, log);
            request.data_paths = vec![path.to_owned()];
            return self.open_unlocked(&request);
        }
        let path = path.to_owned();
        if path.exists() {
            return Err(VfsError::NotAnEngineDatabase { path, log });
        }
        if missing == IfMissing::Fail {
            return Err(VfsError::NotFound { path });
        }
        let request = CreateDatabase::new(&name, path, log);
        Ok(self.instance.create_database(&request)?)
    }
}

fn is_locked(error: &EngineError) -> bool {
    matches!(error, EngineError::InUse { .. })
}

/// The path of the log of the database at `path`.
pub fn log_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-log");
    PathBuf::from(name)
}

impl Databases for Arc<PathDatabases> {
    fn full_name(&self, name: &str) -> Result<String> {
        let path = Path::new(name);
        let fail = |error: std::io::Error| VfsError::Io {
            action: "find the folder of",
            path: path.to_owned(),
            reason: error.to_string(),
        };
        // A file may be reachable by several paths; all of them must lead to the same entry.
        let full = match path.canonicalize() {
            Ok(full) => full,
            Err(_) => {
                let folder = match path.parent() {
                    Some(folder) if folder != Path::new("") => folder.canonicalize(),
                    _ => std::env::current_dir(),
                };
                let file = path.file_name().unwrap_or_default();
                folder.map_err(fail)?.join(file)
            }
        };
        Ok(full.to_string_lossy().into_owned())
    }

    fn exists(&self, full_name: &str) -> bool {
        log_path(Path::new(full_name)).exists()
    }

    fn open(&self, full_name: &str, missing: IfMissing) -> Result<Arc<Database>> {
        let path = Path::new(full_name);
        let mut map = self.map();
        if let Some(entry) = map.get_mut(path) {
            entry.connections += 1;
            return Ok(Arc::clone(&entry.database));
        }
        // Under the lock: a second connection waits until recovery is done, and shares its result.
        let database = self.open_files(path, missing)?;
        let entry = Entry {
            database: Arc::clone(&database),
            connections: 1,
        };
        map.insert(path.to_owned(), entry);
        if let Some(watch) = self.watch.get() {
            watch.opened(path);
        }
        Ok(database)
    }

    fn release(&self, database: Arc<Database>) -> Result<()> {
        let mut map = self.map();
        let Some((path, entry)) = map
            .iter_mut()
            .find(|(_, entry)| Arc::ptr_eq(&entry.database, &database))
        else {
            return Ok(());
        };
        entry.connections -= 1;
        if entry.connections > 0 {
            return Ok(());
        }
        let path = path.clone();
        map.remove(&path);
        if let Some(watch) = self.watch.get() {
            watch.closed(&path);
        }
        // Under the lock: reopening waits until the files are complete and unlocked.
        let outcome = database.close();
        drop(database);
        Ok(outcome?)
    }
}
