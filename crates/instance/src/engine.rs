//! The page engine's databases that an instance has open.
//!
//! They share one buffer pool, created on first use. SQLite reaches them by name through a VFS that
//! belongs to the instance. The first statement that needs a database opens it, which includes crash
//! recovery. All sessions of a process share them; they close with the last [`EngineDatabases`], and their
//! data files are then complete.

mod claims;
mod lent;
mod shown;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;

use windlass_base::PAGE_BYTES;
use windlass_base::message::table;
use windlass_catalog::{DatabaseRecord, DatabaseState, FileRecord, Origin};
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{
    CreateDatabase, Database, EngineError, InstanceOptions, LogIdentity, LogReuseWait, NewDatabase,
    OpenDatabase, RecoveryModel,
};
use windlass_source::ownership;
use windlass_vfs::{NamedDatabases, import_export};

use self::claims::Claims;
use self::lent::Lent;
use self::shown::{described_file, figures};
use crate::Failure;

/// A VFS stays registered for the life of the process, so each instance needs a name of its own.
static NEXT_VFS: AtomicU32 = AtomicU32::new(1);

#[derive(Debug, Clone)]
pub(crate) struct EngineDatabases {
    shared: Arc<Shared>,
    patience: Option<Patience>,
}

/// What the sessions of a process share.
#[derive(Debug)]
struct Shared {
    engine: Mutex<Engine>,
    open: OpenDatabases,
    /// They are closed by their owner.
    lent: Lent,
    claims: Claims,
}

#[derive(Debug)]
struct Engine {
    options: InstanceOptions,
    running: Option<Arc<Running>>,
}

/// How long to wait for a database that another program has open, and what cancels the wait.
#[derive(Debug, Clone)]
struct Patience {
    limit: Duration,
    cancel: Arc<AtomicBool>,
}

/// Pause between two attempts to open such a database.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(20);

/// The open databases, by name in lower case; shared with the views that show them.
#[derive(Debug, Default, Clone)]
pub(crate) struct OpenDatabases(Arc<Mutex<HashMap<String, Arc<Database>>>>);

impl OpenDatabases {
    fn map(&self) -> MutexGuard<'_, HashMap<String, Arc<Database>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open database of that name.
    pub(crate) fn database(&self, name: &str) -> Option<Arc<Database>> {
        self.map().get(&name.to_lowercase()).map(Arc::clone)
    }

    /// Takes the last damaged page that a reader of the database found.
    pub(crate) fn take_damage(&self, name: &str) -> Option<EngineError> {
        let open = self.map().get(&name.to_lowercase()).map(Arc::clone);
        open.and_then(|database| database.take_damage())
    }

    /// The figures of each open database as a JSON array, for `sys.dm_db_checkpoint_stats`.
    pub(crate) fn figures(&self) -> String {
        let databases: Vec<_> = self.map().values().map(Arc::clone).collect();
        let figures: Vec<_> = databases.iter().map(|database| figures(database)).collect();
        serde_json::Value::Array(figures).to_string()
    }

    /// The buffers of all open databases as a JSON array: database, file, page, whether it has changed.
    pub(crate) fn buffers(&self) -> String {
        let databases: Vec<_> = self.map().values().map(Arc::clone).collect();
        let buffers = databases.iter().flat_map(|database| {
            let buffers = database.buffers().into_iter();
            buffers.map(|(page, is_dirty)| {
                json!([
                    database.name(),
                    page.file_id.0,
                    page.page,
                    i32::from(is_dirty)
                ])
            })
        });
        serde_json::Value::Array(buffers.collect()).to_string()
    }

    /// The database with this log, if it is open.
    fn at(&self, log: &Path) -> Option<Arc<Database>> {
        let map = self.map();
        let open = map.values().find(|open| open.log_path() == log);
        open.map(Arc::clone)
    }

    /// The files of a database and its settings as JSON, from its log if it is not open; `None` if that
    /// cannot be read.
    pub(crate) fn described(&self, log: &Path) -> Option<String> {
        let open = self.at(log);
        let (files, target, model, wait) = match &open {
            Some(open) => (
                open.files(),
                open.target_recovery_time(),
                open.recovery_model(),
                open.log_reuse_wait(),
            ),
            None => {
                let closed = LogIdentity::of(&RealFileSystem, log).ok().flatten()?;
                let wait = match closed.has_log_chain {
                    true => LogReuseWait::LogBackup,
                    false => LogReuseWait::Nothing,
                };
                let target = closed.target_recovery_time;
                (closed.files, target, closed.recovery_model, wait)
            }
        };
        let files: Vec<_> = files
            .iter()
            .map(|file| described_file(file, open.as_deref()))
            .collect();
        let seconds = target.map_or(0, |target| target.as_secs().max(1));
        let described = json!({
            "target_recovery_time_in_seconds": seconds,
            "recovery_model": match model {
                RecoveryModel::Full => 1,
                RecoveryModel::Simple => 3,
            },
            "recovery_model_desc": model.to_string(),
            "log_reuse_wait": match wait {
                LogReuseWait::Nothing => 0,
                LogReuseWait::Checkpoint => 1,
                LogReuseWait::LogBackup => 2,
                LogReuseWait::ActiveBackup => 3,
            },
            "log_reuse_wait_desc": wait.to_string(),
            "files": files,
        });
        Some(described.to_string())
    }
}

#[derive(Debug)]
struct Running {
    instance: Arc<windlass_engine::Instance>,
    named: NamedDatabases,
    vfs: String,
}

/// The pages of a pool of that many megabytes.
fn pool_pages(megabytes: i64) -> u64 {
    const UNLIMITED: i64 = i32::MAX as i64;
    match u64::try_from(megabytes) {
        Ok(limit) if megabytes < UNLIMITED => (limit << 20) / PAGE_BYTES as u64,
        _ => InstanceOptions::default().pool_pages,
    }
}

impl EngineDatabases {
    /// The recovery model of a database, from its log if it is not open; `None` if that cannot be read.
    pub(crate) fn recovery_model(&self, log: &Path) -> Option<RecoveryModel> {
        match self.shared.open.at(log) {
            Some(open) => Some(open.recovery_model()),
            None => Some(
                LogIdentity::of(&RealFileSystem, log)
                    .ok()
                    .flatten()?
                    .recovery_model,
            ),
        }
    }

    /// With the values of the server options; a recovery interval of 0 and unlimited memory select the engine's
    /// defaults.
    pub(crate) fn new(recovery_interval_minutes: i64, memory_megabytes: i64) -> Self {
        let options = InstanceOptions {
            recovery_interval: recovery_interval(recovery_interval_minutes),
            pool_pages: pool_pages(memory_megabytes),
            ..InstanceOptions::default()
        };
        Self {
            shared: Arc::new(Shared {
                engine: Mutex::new(Engine {
                    options,
                    running: None,
                }),
                open: OpenDatabases::default(),
                lent: Lent::default(),
                claims: Claims::default(),
            }),
            patience: None,
        }
    }

    fn engine(&self) -> MutexGuard<'_, Engine> {
        let engine = self.shared.engine.lock();
        engine.unwrap_or_else(PoisonError::into_inner)
    }

    /// The figures of each open database, as a JSON array.
    pub(crate) fn figures(&self) -> String {
        self.shared.open.figures()
    }

    /// The buffers of the pool; `None` if no database has been opened.
    pub(crate) fn pool_pages(&self) -> Option<u64> {
        let engine = self.engine();
        engine
            .running
            .as_ref()
            .map(|running| running.instance.pool_pages())
    }

    /// Applies a changed server option, also to databases that are already open.
    pub(crate) fn set_recovery_interval(&self, minutes: i64) {
        let mut engine = self.engine();
        engine.options.recovery_interval = recovery_interval(minutes);
        if let Some(running) = &engine.running {
            let interval = engine.options.recovery_interval;
            running.instance.set_recovery_interval(interval);
        }
    }

    fn running(&self) -> Result<Arc<Running>, Failure> {
        let mut engine = self.engine();
        if engine.running.is_none() {
            let options = engine.options.clone();
            let instance = windlass_engine::Instance::new(options, Arc::new(RealFileSystem))?;
            let named = NamedDatabases::default();
            let vfs = format!("windlass-{}", NEXT_VFS.fetch_add(1, Ordering::Relaxed));
            windlass_vfs::linked::register(&vfs, Box::new(named.clone()))
                .map_err(|error| Failure::from(table::engine_refused(error)))?;
            engine.running = Some(Arc::new(Running {
                instance,
                named,
                vfs,
            }));
        }
        let running = engine.running.clone();
        running.ok_or_else(|| table::internal_consistency().into())
    }

    fn keep(&self, database: Arc<Database>) -> Result<Arc<Database>, Failure> {
        let offered = self.running()?.named.add(Arc::clone(&database));
        offered.map_err(|error| Failure::from(table::engine_refused(error)))?;
        let name = database.name().to_lowercase();
        let mut open = self.shared.open.map();
        open.insert(name, Arc::clone(&database));
        Ok(database)
    }

    /// Creates a database whose files [`EngineDatabases::publish`] renames to their final names.
    pub(crate) fn prepare(&self, request: &CreateDatabase) -> Result<NewDatabase, Failure> {
        Ok(self.running()?.instance.prepare_database(request)?)
    }

    /// Renames the files of a new database to their final names, and keeps it open.
    pub(crate) fn publish(&self, new: NewDatabase) -> Result<Arc<Database>, Failure> {
        let published = self.running()?.instance.publish(new)?;
        self.keep(published)
    }

    /// Creates a database from a SQLite file, which may be in use and does not change; see
    /// [`EngineDatabases::prepare`].
    pub(crate) fn import(
        &self,
        source: &Path,
        request: &CreateDatabase,
        checksums: import_export::PageChecksums,
    ) -> Result<import_export::Imported<NewDatabase>, Failure> {
        let running = self.running()?;
        import_export::prepare(&running.instance, source, request, checksums)
            .map_err(|error| table::engine_refused(error).into())
    }

    /// Returns the database of a catalog entry; opens it if necessary.
    pub(crate) fn database(&self, record: &DatabaseRecord) -> Result<Arc<Database>, Failure> {
        let name = record.name.to_lowercase();
        if let Some(lent) = self.lent(&name) {
            return Ok(lent);
        }
        let _claim = self.shared.claims.claim(&name);
        let open = self.shared.open.map().get(&name).map(Arc::clone);
        if let Some(open) = open {
            if open.offline_reason().is_none() {
                return Ok(open);
            }
            // It went offline after a failure. Opening it again recovers it, or returns the reason why
            // not.
            self.forget(&name);
        }
        let log_path = record
            .log_path
            .clone()
            .ok_or_else(|| Failure::from(table::internal_consistency()))?;
        if record.state == DatabaseState::Standby {
            return self.open_standby(record, &log_path);
        }
        check_marks(record, &log_path)?;
        let request = OpenDatabase {
            guid: record.family_guid,
            ..OpenDatabase::new(&record.name, log_path)
        };
        self.open_claimed(&request)
    }

    /// Opens the database of a sequence of restores that can be read, for readers.
    fn open_standby(&self, record: &DatabaseRecord, log: &Path) -> Result<Arc<Database>, Failure> {
        let standby = windlass_source::engine::standby_file(log)?;
        // A restore that goes on was killed: the files may be between two states.
        let standby = standby.ok_or_else(|| table::database_restoring(&record.name))?;
        if !windlass_io::own::is_there(&standby) {
            let why = "it is not there";
            let (name, id) = (&record.name, record.database_id);
            return Err(table::standby_lost(name, id, standby.display(), why).into());
        }
        let request = OpenDatabase {
            guid: record.family_guid,
            is_read_only: true,
            ..OpenDatabase::new(&record.name, standby)
        };
        self.open_claimed(&request)
    }

    /// Whether this process has the database of a catalog entry open.
    pub(crate) fn is_open(&self, record: &DatabaseRecord) -> bool {
        let open = self.shared.open.map();
        open.contains_key(&record.name.to_lowercase()) || self.lent(&record.name).is_some()
    }

    /// Opens a database that is not registered yet.
    pub(crate) fn open(&self, request: &OpenDatabase) -> Result<Arc<Database>, Failure> {
        let _claim = self.shared.claims.claim(&request.name);
        self.open_claimed(request)
    }

    fn open_claimed(&self, request: &OpenDatabase) -> Result<Arc<Database>, Failure> {
        if !request.log_path.exists() {
            // A restore was killed while it renamed its files.
            windlass_source::engine::complete(&request.log_path)?;
        }
        let begun = Instant::now();
        loop {
            match self.running()?.instance.open_database(request) {
                Ok(opened) => return self.keep(opened),
                Err(EngineError::InUse { .. }) if self.waits(begun)? => {
                    std::thread::sleep(BETWEEN_ATTEMPTS);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether to try again: the time limit has not passed. Fails if cancelled.
    fn waits(&self, begun: Instant) -> Result<bool, Failure> {
        match &self.patience {
            Some(patience) if patience.cancel.load(Ordering::Relaxed) => {
                Err(table::aborted().into())
            }
            Some(patience) => Ok(begun.elapsed() < patience.limit),
            None => Ok(false),
        }
    }

    /// The same databases; opening one waits while another program has it open.
    pub(crate) fn waiting(&self, limit: Duration, cancel: Arc<AtomicBool>) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            patience: Some(Patience { limit, cancel }),
        }
    }

    /// The open databases, for views.
    pub(crate) fn open_databases(&self) -> OpenDatabases {
        self.shared.open.clone()
    }

    /// The URI under which SQLite opens the database that [`EngineDatabases::database`] opened.
    pub(crate) fn uri(&self, name: &str) -> Result<String, Failure> {
        self.refuse_lent(name)?;
        let mut uri = String::from("file:");
        for byte in name.to_lowercase().bytes() {
            if byte.is_ascii_alphanumeric() {
                uri.push(char::from(byte));
            } else {
                // Writing to a String cannot fail.
                let _ = write!(uri, "%{byte:02X}");
            }
        }
        let _ = write!(uri, "?vfs={}", self.running()?.vfs);
        Ok(uri)
    }

    fn forget(&self, name: &str) -> Option<Arc<Database>> {
        if let Some(running) = &self.engine().running {
            running.named.remove(name);
        }
        self.shared.open.map().remove(&name.to_lowercase())
    }

    /// Closes a database, so that its files may be replaced or removed.
    pub(crate) fn close(&self, name: &str) -> Result<(), Failure> {
        self.refuse_lent(name)?;
        let _claim = self.shared.claims.claim(name);
        match self.forget(name) {
            Some(database) => Ok(database.close()?),
            None => Ok(()),
        }
    }

    /// Closes all databases; returns those that could not be closed, by name.
    pub(crate) fn close_all(&self) -> Vec<(String, Failure)> {
        let open: Vec<_> = self.shared.open.map().values().map(Arc::clone).collect();
        let names = open.iter().map(|database| database.name().to_owned());
        let outcomes = names.map(|name| (self.close(&name).err(), name));
        outcomes
            .filter_map(|(failure, name)| failure.map(|failure| (name, failure)))
            .collect()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for database in self.open.map().values() {
            // What could not be written is redone from the log at the next opening.
            let _closed = database.close();
        }
    }
}

/// The files of an open database, for the catalog.
pub(crate) fn file_records(database: &Database) -> Vec<FileRecord> {
    let record = |file: windlass_engine::FileDescription| FileRecord {
        file_id: file.file_id.0.into(),
        is_log: file.is_log,
        logical_name: file.spec.logical_name,
        path: file.spec.path,
    };
    database.files().into_iter().map(record).collect()
}

/// Refuses files that were made for another database: only the log has an identity of its own.
fn check_marks(record: &DatabaseRecord, log: &Path) -> Result<(), Failure> {
    if record.origin != Origin::Restored {
        return Ok(());
    }
    // Without a log that can be read, opening says why.
    let identity = LogIdentity::of(&RealFileSystem, log).ok().flatten();
    let data = identity.map(|found| found.data_paths).unwrap_or_default();
    for path in data.iter().map(PathBuf::as_path).chain([log]) {
        if ownership::made_for(path).is_some_and(|other| other != record.made_for) {
            return Err(table::file_made_for_another(&record.name, path.display()).into());
        }
    }
    Ok(())
}

fn recovery_interval(minutes: i64) -> Duration {
    match u64::try_from(minutes) {
        Ok(minutes) if minutes > 0 => Duration::from_secs(minutes * 60),
        _ => InstanceOptions::default().recovery_interval,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, Instance, Session, Sink};
    struct Nothing;

    impl Sink for Nothing {
        fn event(&mut self, event: Event<'_>) {
            if let Event::Message(message) = event {
                assert!(!message.is_error(), "{message:?}");
            }
        }
    }

    #[test]
    fn databases_that_are_closed_are_not_open() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = Session::new(Instance::open(Some(folder.path())).unwrap());
        let made = format!(
            "CREATE DATABASE shop ON (NAME = shop, FILENAME = '{0}/shop.mdf') LOG ON (NAME = shop_log, FILENAME = '{0}/shop.ldf')",
            folder.path().display()
        );
        session.execute_batch(&made, 1, &mut Nothing);
        let instance = session.instance();
        let record = instance.database("shop").unwrap().unwrap();
        assert!(instance.engines.is_open(&record));
        assert!(instance.close_engine_databases().is_empty());
        assert!(!instance.engines.is_open(&record));
    }

    fn interval_after(session: &mut Session, batch: &str) -> Duration {
        session.execute_batch(batch, 1, &mut Nothing);
        let engines = &mut session.instance_mut().engines;
        engines.running().unwrap().instance.recovery_interval()
    }

    #[test]
    fn the_recovery_interval_reaches_a_running_engine_and_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Session::new(Instance::open(Some(folder.path())).unwrap());
        let mut session = open();
        let shown = "EXEC sp_configure 'show advanced options', 1; RECONFIGURE;";
        let interval = interval_after(&mut session, shown);
        assert_eq!(interval, Duration::from_secs(60), "0 means a minute");
        let set = "EXEC sp_configure 'recovery interval', 5;";
        let interval = interval_after(&mut session, set);
        assert_eq!(interval, Duration::from_secs(60), "not installed yet");
        let interval = interval_after(&mut session, "RECONFIGURE");
        assert_eq!(interval, Duration::from_secs(300));
        session.close(&mut Nothing);
        let interval = interval_after(&mut open(), "PRINT 'again'");
        assert_eq!(interval, Duration::from_secs(300));
    }
}
