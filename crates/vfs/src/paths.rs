//! Databases under paths: `file:/path/x.db?vfs=...` opens, or creates, the engine database there.
//!
//! The data file has that path; the log is next to it as `x.db-log`. A database is open while at
//! least one connection has it open, and is cleanly closed with the last one: an only data file is
//! then a plain SQLite file.

use std::collections::HashMap;
use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use windlass_base::PAGE_BYTES;
use windlass_base::size::{Bytes, parse_bytes};
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{
    CreateDatabase, Database, EngineError, FileSpec, Instance, InstanceOptions, LogIdentity,
    OpenDatabase, complete_creation,
};
use windlass_io::process::Owner;

use crate::context::{Databases, IfMissing, Parameters};
use crate::error::{Result, VfsError};

/// Sizes of a pool: address space is reserved for it, and memory is used as pages are read.
const POOL_BYTES: RangeInclusive<u64> = 1 << 20..=1 << 40;

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
    /// Made by the first database, which may say how large its pool is.
    engine: OnceLock<Engine>,
    open: Mutex<HashMap<PathBuf, Entry>>,
    watch: OnceLock<Box<dyn Watch>>,
}

/// An engine, and the process whose it is: its threads and its locks are not in a child of `fork`.
#[derive(Debug)]
struct Engine {
    instance: Arc<Instance>,
    process: Owner,
}

impl Engine {
    fn of_this_process(instance: Arc<Instance>) -> Self {
        Self {
            instance,
            process: Owner::this(),
        }
    }

    fn forked(&self) -> VfsError {
        VfsError::Forked {
            parent: self.process.id(),
        }
    }
}

/// A database that stays open as long as the value lives.
#[derive(Debug)]
pub struct Held {
    databases: Arc<PathDatabases>,
    database: Arc<Database>,
    name: Option<String>,
}

impl Held {
    /// What its URI calls it.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

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
    name: Option<String>,
}

impl Entry {
    /// Refuses what another connection has opened otherwise.
    fn check(&self, path: &Path, parameters: &Parameters) -> Result<()> {
        if parameters.name.is_some() && parameters.name != self.name {
            let found = self.name.as_deref().unwrap_or("without a name");
            return Err(VfsError::Parameter {
                parameter: "name".to_owned(),
                reason: format!("another connection has the database open as '{found}'"),
            });
        }
        let named = data_paths(path, parameters)?;
        let files = self.database.files();
        let found = files.iter().filter(|file| !file.is_log);
        let found: Vec<_> = found.map(|file| file.spec.path.as_path()).collect();
        match named.len() > 1 && named != found {
            true => Err(not_those_files(named.len(), found.len())),
            false => Ok(()),
        }
    }
}

impl PathDatabases {
    /// All databases use the buffer pool of `instance`.
    pub fn new(instance: Arc<Instance>) -> Arc<Self> {
        Self::of(OnceLock::from(Engine::of_this_process(instance)))
    }

    /// All databases share a buffer pool that the first of them makes.
    pub fn on_demand() -> Arc<Self> {
        Self::of(OnceLock::new())
    }

    fn of(engine: OnceLock<Engine>) -> Arc<Self> {
        Arc::new(Self {
            engine,
            open: Mutex::default(),
            watch: OnceLock::new(),
        })
    }

    /// The instance; made with a pool of this size if there is none yet. Called under the lock of the open databases.
    fn instance(&self, pool: Option<&str>) -> Result<&Arc<Instance>> {
        let refuse = |reason: String| VfsError::Parameter {
            parameter: "pool".to_owned(),
            reason,
        };
        let pages = match pool {
            None => None,
            Some(text) => {
                let bytes = parse_bytes(text).filter(|bytes| (POOL_BYTES).contains(bytes));
                let bytes = bytes.ok_or_else(|| {
                    refuse(format!(
                        "'{text}' is no size between {} and {}, such as 512MB",
                        Bytes(*POOL_BYTES.start()),
                        Bytes(*POOL_BYTES.end())
                    ))
                })?;
                Some(bytes / PAGE_BYTES as u64)
            }
        };
        if let Some(Engine { instance, .. }) = self.engine.get() {
            return match pages {
                Some(pages) if pages != instance.pool_pages() => Err(refuse(format!(
                    "the databases of this process share a pool of {}, which the first one made",
                    Bytes(instance.pool_pages() * PAGE_BYTES as u64)
                ))),
                _ => Ok(instance),
            };
        }
        let defaults = InstanceOptions::default();
        let options = InstanceOptions {
            pool_pages: pages.unwrap_or(defaults.pool_pages),
            ..defaults
        };
        let made = Instance::new(options, Arc::new(RealFileSystem))?;
        let made = Engine::of_this_process(made);
        Ok(&self.engine.get_or_init(|| made).instance)
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
            name: entry.name.clone(),
        })
    }

    /// The files of the databases that are open.
    pub fn open_paths(&self) -> Vec<PathBuf> {
        self.map().keys().cloned().collect()
    }

    fn map(&self) -> MutexGuard<'_, HashMap<PathBuf, Entry>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_files(
        &self,
        path: &Path,
        missing: IfMissing,
        parameters: &Parameters,
    ) -> Result<Arc<Database>> {
        let instance = self.instance(parameters.pool.as_deref())?;
        let log = log_path(path);
        let shown = path.display().to_string();
        let name = parameters.name.as_ref().unwrap_or(&shown);
        let data = data_paths(path, parameters)?;
        if log.exists() || complete_creation(&log)? {
            let identity = LogIdentity::of(&RealFileSystem, &log)?;
            // A damaged log is refused by the opening.
            let listed = identity.map_or(1, |found| found.data_paths.len());
            let mut request = OpenDatabase::new(name, log);
            if data.len() == listed {
                request.data_paths = data;
            } else if data.len() > 1 {
                return Err(not_those_files(data.len(), listed));
            }
            return open_unlocked(instance, &request);
        }
        let path = path.to_owned();
        if path.is_dir() {
            return Err(VfsError::Io {
                action: "open",
                path,
                reason: "it is a folder; give the path of a file in it".to_owned(),
            });
        }
        if path.exists() {
            return Err(VfsError::NotAnEngineDatabase { path, log });
        }
        if missing == IfMissing::Fail {
            return Err(VfsError::NotFound { path });
        }
        let mut request = CreateDatabase::new(name, path, log);
        for (path, number) in data.into_iter().zip(1..).skip(1) {
            let logical = format!("{name}_{number}");
            request.data_files.push(FileSpec::data(&logical, path));
        }
        Ok(instance.create_database(&request)?)
    }
}

/// Opens a database whose files may still be locked briefly by another thread.
fn open_unlocked(instance: &Instance, request: &OpenDatabase) -> Result<Arc<Database>> {
    for _ in 0..LOCK_ATTEMPTS {
        match instance.open_database(request) {
            Err(error) if is_locked(&error) => std::thread::sleep(LOCK_PAUSE),
            outcome => return Ok(outcome?),
        }
    }
    Ok(instance.open_database(request)?)
}

/// All data files that a URI names, the first being the database's own name.
fn data_paths(path: &Path, parameters: &Parameters) -> Result<Vec<PathBuf>> {
    let mut paths = vec![path.to_owned()];
    for (name, number) in parameters.data.iter().zip(2..) {
        let found = full_path(Path::new(name)).map_err(|error| VfsError::Parameter {
            parameter: format!("data{number}"),
            reason: format!("'{name}': {error}"),
        })?;
        paths.push(found);
    }
    Ok(paths)
}

fn not_those_files(named: usize, found: usize) -> VfsError {
    VfsError::Parameter {
        parameter: "data2".to_owned(),
        reason: format!(
            "{named} data files are named, but the database has {found}; leave them out, unless they were moved"
        ),
    }
}

/// A file may be reachable by several paths; all of them lead to the same one.
fn full_path(path: &Path) -> std::io::Result<PathBuf> {
    if let Ok(full) = path.canonicalize() {
        return Ok(full);
    }
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder.canonicalize(),
        _ => std::env::current_dir(),
    };
    Ok(folder?.join(path.file_name().unwrap_or_default()))
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
    /// Two processes that write to one log would destroy the database.
    fn check_process(&self) -> Result<()> {
        match self.engine.get() {
            Some(engine) if !engine.process.is_this() => Err(engine.forked()),
            _ => Ok(()),
        }
    }

    fn check_process_of_read(&self) -> Result<()> {
        match self.engine.get() {
            Some(engine) if !engine.process.is_this_unless_cloned() => Err(engine.forked()),
            _ => Ok(()),
        }
    }

    fn full_name(&self, name: &str) -> Result<String> {
        let full = full_path(Path::new(name)).map_err(|error| VfsError::Io {
            action: "find the folder of",
            path: PathBuf::from(name),
            reason: error.to_string(),
        })?;
        Ok(full.to_string_lossy().into_owned())
    }

    fn exists(&self, full_name: &str) -> bool {
        log_path(Path::new(full_name)).exists()
    }

    fn open(
        &self,
        full_name: &str,
        missing: IfMissing,
        parameters: &Parameters,
    ) -> Result<Arc<Database>> {
        self.check_process()?;
        let path = Path::new(full_name);
        let mut map = self.map();
        if let Some(entry) = map.get_mut(path) {
            self.instance(parameters.pool.as_deref())?;
            entry.check(path, parameters)?;
            entry.connections += 1;
            return Ok(Arc::clone(&entry.database));
        }
        // Under the lock: a second connection waits until recovery is done, and shares its result.
        let database = self.open_files(path, missing, parameters)?;
        let entry = Entry {
            database: Arc::clone(&database),
            connections: 1,
            name: parameters.name.clone(),
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
