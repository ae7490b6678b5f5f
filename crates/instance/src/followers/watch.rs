//! Starts a follower for each database that needs one, and ends it when that is over.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use windlass_catalog::{Catalog, DatabaseRecord, DatabaseState};
use windlass_source::Error;
use windlass_source::sqlite::{self, FollowStatus, Follower, Listed};

use super::closing::{self, Closed};
use super::shown::Board;
use super::{Factory, FollowersOptions, Signal};
use crate::instance::place_of_log;

/// Between two looks at the catalog.
const POLL: Duration = Duration::from_millis(500);
/// Before a follower that failed is started again, and a gap that could not be closed is tried again.
const BEFORE_RESTART: Duration = Duration::from_secs(5);
/// While a backup follows.
const BETWEEN_TRIES: Duration = Duration::from_millis(20);
const BEFORE_CLOSING_AGAIN: Duration = Duration::from_secs(60);

pub(super) struct Watch {
    folder: PathBuf,
    factory: Factory,
    options: FollowersOptions,
    catalog: Option<Catalog>,
    /// By the identities of their registrations.
    running: BTreeMap<String, Running>,
    /// Those that failed, until they are started again.
    failed: BTreeMap<String, Instant>,
}

/// A follower in its thread.
struct Running {
    record: DatabaseRecord,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<(), Error>>,
    told: Arc<Mutex<Told>>,
    closing: Option<JoinHandle<Closed>>,
    /// The end of the last gap that is known to be closed, in microseconds since 1970.
    closed_us: u64,
    not_before: Option<Instant>,
}

/// What the thread of a follower tells.
#[derive(Debug, Default)]
struct Told {
    status: FollowStatus,
    /// The end of the last gap in the spool; 0 for none.
    gap_us: u64,
    /// Whether it is not closed by a backup.
    is_gap_open: bool,
}

fn locked(told: &Mutex<Told>) -> std::sync::MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    pub(super) fn new(folder: &Path, factory: Factory, options: FollowersOptions) -> Self {
        Self {
            folder: folder.to_owned(),
            factory,
            options,
            catalog: None,
            running: BTreeMap::new(),
            failed: BTreeMap::new(),
        }
    }

    /// Watches until it is told to end.
    pub(super) fn run(&mut self, signal: &Signal) {
        loop {
            if let Err(error) = self.look() {
                tracing::error!(%error, "the databases to follow cannot be read");
                self.catalog = None;
            }
            if signal.wait(POLL) {
                break;
            }
        }
        for running in self.running.values() {
            running.stop.store(true, Ordering::Relaxed);
        }
        for (_, running) in std::mem::take(&mut self.running) {
            running.end();
        }
    }

    fn look(&mut self) -> Result<(), windlass_catalog::Error> {
        let catalog = match self.catalog.take() {
            Some(catalog) => catalog,
            None => Catalog::open(&self.folder)?,
        };
        let records = catalog.databases()?;
        self.catalog = Some(catalog);
        let is_wanted = |record: &DatabaseRecord| {
            let place = place_of_log(&self.folder, record);
            record.state == DatabaseState::Online && place.is_some_and(|place| place.is_dir())
        };
        let wanted: BTreeMap<String, DatabaseRecord> = records
            .into_iter()
            .filter(is_wanted)
            .map(|record| (record.made_for.to_string(), record))
            .collect();
        self.end_unwanted(&wanted);
        for (key, record) in wanted {
            let waits = self
                .failed
                .get(&key)
                .is_some_and(|at| at.elapsed() < BEFORE_RESTART);
            if !waits && !self.running.contains_key(&key) {
                self.start(key, record);
            }
        }
        for running in self.running.values_mut() {
            running.close_gap(&self.factory);
        }
        Ok(())
    }

    fn end_unwanted(&mut self, wanted: &BTreeMap<String, DatabaseRecord>) {
        let keys: Vec<String> = self.running.keys().cloned().collect();
        for key in keys {
            let is_over = self.running.get(&key).is_some_and(|running| {
                let same = wanted
                    .get(&key)
                    .is_some_and(|record| record.path == running.record.path);
                if !same {
                    running.stop.store(true, Ordering::Relaxed);
                }
                running.thread.is_finished()
            });
            if !is_over {
                continue;
            }
            if let Some(running) = self.running.remove(&key)
                && !running.end()
            {
                self.failed.insert(key, Instant::now());
            }
        }
    }

    fn start(&mut self, key: String, record: DatabaseRecord) {
        let Some(place) = place_of_log(&self.folder, &record) else {
            return;
        };
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::new(Mutex::new(Told::default()));
        let options = self.options.within(&place);
        let (path, name) = (record.path.clone(), record.name.clone());
        let (stopped, telling) = (Arc::clone(&stop), Arc::clone(&told));
        let spawned = std::thread::Builder::new()
            .name("follower".to_owned())
            .spawn(move || {
                let board = Board::open(&place, &name);
                let known_us = last_gap(&place)?;
                let mut follower = begin(&path, &options, &stopped)?;
                let mut report = |status: &FollowStatus| {
                    let mut told = locked(&telling);
                    told.gap_us = known_us.max(status.last_gap_us);
                    told.status.clone_from(status);
                    board.show(status, &options, told.is_gap_open);
                };
                report(&follower.status());
                let ended = follower.run(&stopped, &mut report)?;
                report(&ended);
                Ok(())
            });
        match spawned {
            Ok(thread) => {
                tracing::info!(database = %record.name, "follows the log");
                let running = Running {
                    record,
                    stop,
                    thread,
                    told,
                    closing: None,
                    closed_us: 0,
                    not_before: None,
                };
                self.failed.remove(&key);
                self.running.insert(key, running);
            }
            Err(error) => {
                tracing::error!(database = %record.name, %error, "no thread for a follower");
                self.failed.insert(key, Instant::now());
            }
        }
    }
}

impl Running {
    /// Waits for its end; whether it ended well.
    fn end(self) -> bool {
        let database = self.record.name;
        if let Some(closing) = self.closing
            && closing.join().is_err()
        {
            tracing::error!(%database, "the backup that closes a gap has panicked");
        }
        match self.thread.join() {
            Ok(Ok(())) => true,
            // Its log is not kept any more, or the database was dropped.
            Ok(Err(error)) if self.stop.load(Ordering::Relaxed) => {
                tracing::info!(%database, %error, "follows no longer");
                true
            }
            Ok(Err(error)) => {
                tracing::error!(%database, %error, "the follower has ended");
                false
            }
            Err(_) => {
                tracing::error!(%database, "the follower has panicked");
                false
            }
        }
    }

    /// Makes the backup that closes the last gap, in a thread of its own, if there is one.
    fn close_gap(&mut self, factory: &Factory) {
        if self.closing.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(closing) = self.closing.take()
        {
            let gap_us = locked(&self.told).gap_us;
            match closing.join() {
                Ok(Closed::Yes(until_us)) => {
                    self.closed_us = until_us;
                    locked(&self.told).is_gap_open = gap_us > until_us;
                }
                Ok(Closed::NotYet) | Err(_) => {
                    self.not_before = Instant::now().checked_add(BEFORE_CLOSING_AGAIN);
                }
            }
        }
        let gap_us = locked(&self.told).gap_us;
        let waits = self.not_before.is_some_and(|at| Instant::now() < at);
        if gap_us <= self.closed_us || self.closing.is_some() || waits {
            return;
        }
        locked(&self.told).is_gap_open = true;
        let (factory, name) = (Arc::clone(factory), self.record.name.clone());
        let spawned = std::thread::Builder::new()
            .name("gap".to_owned())
            .spawn(move || closing::close(&factory, &name, gap_us));
        match spawned {
            Ok(closing) => self.closing = Some(closing),
            Err(error) => {
                tracing::error!(database = %self.record.name, %error, "no thread for a backup");
                self.not_before = Instant::now().checked_add(BEFORE_CLOSING_AGAIN);
            }
        }
    }
}

/// Begins to follow. Backups follow for a moment, too, while nobody else does: their end is waited for.
fn begin(
    path: &Path,
    options: &sqlite::FollowOptions,
    stopped: &AtomicBool,
) -> Result<Follower, Error> {
    let begun = Instant::now();
    loop {
        match Follower::begin(path, options) {
            Err(Error::Spool(sqlite::SpoolError::InUse { .. }))
                if begun.elapsed() < BEFORE_RESTART && !stopped.load(Ordering::Relaxed) =>
            {
                std::thread::sleep(BETWEEN_TRIES);
            }
            begun => return begun,
        }
    }
}

/// When the last gap in a spool ended; 0 if there is none.
fn last_gap(folder: &Path) -> Result<u64, Error> {
    let (listed, _) = sqlite::list(folder)?;
    let ends = listed.iter().filter_map(|listed| match listed {
        Listed::Gap { to_us, .. } => Some(*to_us),
        Listed::Range { .. } => None,
    });
    Ok(ends.max().unwrap_or(0))
}
