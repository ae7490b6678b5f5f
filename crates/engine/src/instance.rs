//! An instance: one buffer pool and one I/O dispenser, many databases, and the recovery writer.
//!
//! Invariants:
//! - Database numbers are never reused in an instance, so buffers of a closed database cannot be
//!   mistaken for another's.
//! - The recovery writer does not keep a database open: it uses weak references.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use windlass_base::PageNumber;
use windlass_io::DirectFile;

use crate::database::content::NewContent;
use crate::database::{Database, NewDatabase, Origin};
use crate::dispenser::Dispenser;
use crate::error::{EngineError, Result};
use crate::options::{CreateDatabase, InstanceOptions, OpenDatabase};
use crate::pool::{DatabaseNumber, PageKey, Pool};
use crate::storage::{FileSystem, stored};

/// How often the recovery writer looks at each database.
const STEP: Duration = Duration::from_millis(100);

/// Dirty pages written to make room for one page.
const ROOM_PAGES: usize = 64;

/// What the databases of an instance share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: InstanceOptions,
    pub(crate) files: Arc<dyn FileSystem>,
    pub(crate) pool: Pool,
    pub(crate) dispenser: Dispenser,
    /// Nanoseconds; see [`Instance::set_recovery_interval`].
    recovery_interval_ns: AtomicU64,
    databases: Mutex<Databases>,
    wake: Mutex<Wake>,
    woken: Condvar,
}

#[derive(Debug, Default)]
struct Databases {
    open: BTreeMap<DatabaseNumber, Weak<Database>>,
    last: u32,
}

#[derive(Debug, Default)]
struct Wake {
    asked: bool,
    stop: bool,
}

impl Shared {
    fn open(&self) -> Vec<Arc<Database>> {
        let databases = self.databases.lock();
        databases.open.values().filter_map(Weak::upgrade).collect()
    }

    /// Recovery time limit for databases with automatic checkpoints.
    pub(crate) fn recovery_interval(&self) -> Duration {
        Duration::from_nanos(self.recovery_interval_ns.load(Relaxed))
    }

    pub(crate) fn wake(&self) {
        self.wake.lock().asked = true;
        self.woken.notify_all();
    }

    /// Writes dirty pages of any database, so that a buffer for `key` becomes free.
    pub(crate) fn make_room(&self, key: PageKey, own: &Database) -> Result<()> {
        let dirty = self.pool.dirty_neighbours(key, ROOM_PAGES);
        let mut by_database: BTreeMap<DatabaseNumber, Vec<PageNumber>> = BTreeMap::new();
        for key in dirty {
            by_database.entry(key.database).or_default().push(key.page);
        }
        let mut written = 0;
        for (number, mut pages) in by_database {
            pages.sort_unstable();
            if number == own.number() {
                written += own.write_pages(&pages)?;
                continue;
            }
            let other = self
                .databases
                .lock()
                .open
                .get(&number)
                .and_then(Weak::upgrade);
            match other {
                Some(other) => written += other.write_pages(&pages).unwrap_or(0),
                // The database was closed without a checkpoint: its log contains everything.
                None => self.pool.forget(number, pages.into_iter()),
            }
        }
        if written == 0 {
            // The remaining pages are being written by other threads.
            std::thread::yield_now();
        }
        Ok(())
    }

    fn run_recovery_writer(&self) {
        loop {
            {
                let mut wake = self.wake.lock();
                if !wake.asked && !wake.stop {
                    self.woken.wait_for(&mut wake, STEP);
                }
                wake.asked = false;
                if wake.stop {
                    return;
                }
            }
            for database in self.open() {
                // A failure took the database offline, or the next commit reports it.
                database.guarded_recovery_writer_step();
            }
        }
    }
}

/// Owner of the buffer pool that all its databases share.
#[derive(Debug)]
pub struct Instance {
    shared: Arc<Shared>,
    recovery_writer: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Instance {
    /// Reserves the pool and starts the background threads, if requested.
    pub fn new(options: InstanceOptions, files: Arc<dyn FileSystem>) -> Result<Arc<Self>> {
        let thread_error =
            |error: std::io::Error| EngineError::Invalid(format!("starting a thread: {error}"));
        let background = options.background;
        let shared = Arc::new(Shared {
            pool: Pool::new(options.pool_pages)?,
            dispenser: Dispenser::new(&options).map_err(thread_error)?,
            recovery_interval_ns: AtomicU64::new(nanoseconds(options.recovery_interval)),
            options,
            files,
            databases: Mutex::default(),
            wake: Mutex::default(),
            woken: Condvar::new(),
        });
        let mut recovery_writer = None;
        if background {
            let shared = Arc::clone(&shared);
            let builder = std::thread::Builder::new().name("recovery-writer".to_owned());
            let thread = builder.spawn(move || shared.run_recovery_writer());
            recovery_writer = Some(thread.map_err(thread_error)?);
        }
        Ok(Arc::new(Self {
            shared,
            recovery_writer: Mutex::new(recovery_writer),
        }))
    }

    fn number(&self) -> DatabaseNumber {
        let mut databases = self.shared.databases.lock();
        databases.last += 1;
        databases
            .open
            .retain(|_, database| database.strong_count() > 0);
        DatabaseNumber(databases.last)
    }

    fn register(&self, database: Database) -> Arc<Database> {
        let database = Arc::new(database);
        let mut databases = self.shared.databases.lock();
        databases
            .open
            .insert(database.number(), Arc::downgrade(&database));
        database
    }

    /// Creates the files of a new, empty database and opens it.
    ///
    /// # Errors
    /// A file exists or cannot be created; files created so far are removed.
    pub fn create_database(&self, request: &CreateDatabase) -> Result<Arc<Database>> {
        self.publish(self.prepare_database(request)?)
    }

    /// Creates the files of a new, empty database under temporary names.
    pub fn prepare_database(&self, request: &CreateDatabase) -> Result<NewDatabase> {
        self.prepare(request, &Origin::New)
    }

    /// As [`Instance::adopt_database`], for a file that was claimed at [`crate::storage::unnamed`]. It is removed
    /// if this fails.
    pub fn prepare_adopted(
        &self,
        request: &CreateDatabase,
        held: Arc<DirectFile>,
    ) -> Result<NewDatabase> {
        self.prepare(request, &Origin::Begun(stored(held)))
    }

    /// Creates the files of a new database with these pages under temporary names.
    pub fn prepare_filled(
        &self,
        request: &CreateDatabase,
        content: &dyn NewContent,
    ) -> Result<NewDatabase> {
        self.prepare(request, &Origin::Filled(content))
    }

    fn prepare(&self, request: &CreateDatabase, origin: &Origin<'_>) -> Result<NewDatabase> {
        Database::create(Arc::clone(&self.shared), self.number(), request, origin)
    }

    /// Renames the files of a new database to their final names. Removes them if one of the names is taken.
    pub fn publish(&self, new: NewDatabase) -> Result<Arc<Database>> {
        Ok(self.register(new.publish()?))
    }

    /// Creates a log file for an existing plain SQLite file with 8 KB pages, which becomes the only
    /// data file of the database. SQLite must not have left a write-ahead log or journal for it.
    pub fn adopt_database(&self, request: &CreateDatabase) -> Result<Arc<Database>> {
        self.publish(self.prepare(request, &Origin::Existing)?)
    }

    /// Opens a database and replays from the log the changes that a crash kept from the data files.
    pub fn open_database(&self, request: &OpenDatabase) -> Result<Arc<Database>> {
        let database = Database::open(Arc::clone(&self.shared), self.number(), request)?;
        Ok(self.register(database))
    }

    /// See [`Instance::set_recovery_interval`].
    pub fn recovery_interval(&self) -> Duration {
        self.shared.recovery_interval()
    }

    /// From now on, databases with automatic checkpoints (target recovery time 0) run one when
    /// recovery would take longer than this.
    pub fn set_recovery_interval(&self, interval: Duration) {
        let interval = nanoseconds(interval);
        self.shared.recovery_interval_ns.store(interval, Relaxed);
        self.shared.wake();
    }

    /// Buffers of the pool.
    pub fn pool_pages(&self) -> u64 {
        self.shared.pool.pages()
    }

    /// Bytes of memory that the descriptors of a pool take once all its buffers have been used.
    pub fn descriptor_bytes(pool_pages: u64) -> u64 {
        pool_pages.saturating_mul(Pool::DESCRIPTOR_BYTES)
    }

    /// Touches the whole descriptor array once, so that it is like that of a pool that has been
    /// full; for measurements.
    pub fn touch_descriptors(&self) {
        self.shared.pool.touch_descriptors();
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.shared.wake.lock().stop = true;
        self.shared.woken.notify_all();
        if let Some(thread) = self.recovery_writer.lock().take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic there took its database offline.
            let _ended = thread.join();
        }
    }
}
