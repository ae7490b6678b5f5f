//! The driver: random transactions, checkpoints, closes, backups and crashes on one small database,
//! and a model of the expected state.
//!
//! Invariants that each run checks:
//! - A snapshot reads exactly the commit at which it began, until it ends.
//! - An error that leaves the database online does not change it.
//! - After a crash the database equals the last acknowledged commit, or the one in flight.
//! - After a clean close the data file is exactly the pages.
//! - Once a sync has failed, the database accepts no changes, and its files are not touched until
//!   it is opened again.
//! - One of several data files, or their log, put back from an earlier life is refused.
//! - The log backups since a full backup have no gap. Restored upon it, or upon a differential of it, they equal the
//!   database at the commit, or before the commit, or at the time that they stop at, or else at their ends.
//! - A restored backup equals a commit between its start and its end; extents not marked in the
//!   differential map equal the base.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use windlass_base::{Guid, PAGE_BYTES, PageNumber};
use windlass_engine::{
    BackupMode, CreateDatabase, Database, EngineError, FileSpec, Growth, Instance, InstanceOptions,
    OpenDatabase, ReadSnapshot, RecoveryModel,
};

use crate::copy::Copy;
use crate::disk::{Disk, Fault};
use crate::log::{LogCopy, Moment, now_ms};
use crate::outcome::{Outcome, compare, stamped, take_mark_out};
use crate::rng::Rng;
use crate::stale::{self, Kept};

/// Maximum number of pages of a simulated database.
const PAGES_MAX: u32 = 60;

/// How many times a database is reopened after faults.
const LAST_OPENING: u32 = 5;

/// The pages of a database at one commit.
pub(crate) type State = Arc<Vec<Arc<[u8]>>>;

pub(crate) struct World {
    pub(crate) rng: Rng,
    pub(crate) disk: Disk,
    pub(crate) instance: Arc<Instance>,
    pub(crate) database: Option<Arc<Database>>,
    pub(crate) acknowledged: State,
    in_flight: Option<State>,
    /// All commits, in order.
    pub(crate) moments: Vec<Moment>,
    snapshots: Vec<(ReadSnapshot, State)>,
    /// Full backups by their sets.
    pub(crate) copies: BTreeMap<Guid, Copy>,
    /// Differential backups, each with the set that is its base.
    pub(crate) differentials: Vec<(Guid, Copy)>,
    /// All log backups, in order.
    pub(crate) logs: Vec<LogCopy>,
    pub(crate) files: usize,
    /// The files after the last crash.
    pub(crate) kept: Kept,
    pub(crate) outcome: Outcome,
    steps: Steps,
    pub(crate) checksums: bool,
}

/// Whether a run prints what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steps {
    Printed,
    Silent,
}

/// Runs one seed.
///
/// # Errors
/// A description of the violated invariant.
pub fn run(seed: u64, steps: Steps) -> Result<Outcome, String> {
    let mut world = World::new(seed, steps)?;
    let lives = 1 + world.rng.below(4);
    for _ in 0..lives {
        world.live()?;
        world.crash()?;
    }
    world.outcome.operations = world.disk.operations();
    world.outcome.failed_syncs = world.disk.failed_syncs();
    Ok(world.outcome)
}

fn text(error: &EngineError) -> String {
    format!("unexpected: {error}")
}

pub(crate) fn log_path() -> PathBuf {
    PathBuf::from("/d/a.ldf")
}

impl World {
    fn new(seed: u64, steps: Steps) -> Result<Self, String> {
        let mut rng = Rng::new(seed);
        let disk = Disk::new(rng.draw());
        let instance = Self::instance(&mut rng, &disk)?;
        let growth = |rng: &mut Rng| match rng.below(3) {
            0 => Growth::Fixed,
            1 => Growth::Bytes(65536),
            _ => Growth::Percent(20),
        };
        let files = 1 + (rng.below(10) as usize).saturating_sub(7);
        let mut request = CreateDatabase::new("a", "/d/a.mdf", log_path());
        request.guid = Some(Guid::from_stored([7; 16]));
        request.data_files = (0..files)
            .map(|index| FileSpec {
                // Of several files, the first has two extents at least.
                size: 65536 * (1 + rng.below(8)).max(files.min(2) as u64),
                growth: growth(&mut rng),
                ..FileSpec::data(&format!("f{index}"), format!("/d/a{index}.mdf"))
            })
            .collect();
        request.log.size = 384 * 1024;
        request.log.growth = growth(&mut rng);
        request.target_recovery_time = rng.chance(70).then_some(Duration::from_millis(1));
        let database = instance.create_database(&request).map_err(|e| text(&e))?;
        Ok(Self {
            checksums: rng.chance(50),
            rng,
            disk,
            instance,
            database: Some(database),
            acknowledged: State::default(),
            in_flight: None,
            moments: Vec::new(),
            snapshots: Vec::new(),
            copies: BTreeMap::new(),
            differentials: Vec::new(),
            logs: Vec::new(),
            files,
            kept: Kept::new(),
            outcome: Outcome::default(),
            steps,
        })
    }

    pub(crate) fn instance(rng: &mut Rng, disk: &Disk) -> Result<Arc<Instance>, String> {
        let options = InstanceOptions {
            pool_pages: 8 + rng.below(64),
            schedulers: 1 + rng.below(4) as usize,
            requests_in_flight: 4,
            background: false,
            version_bytes_max: if rng.chance(10) { 65536 } else { 1 << 20 },
            recovery_interval: Duration::from_micros(1 + rng.below(3000)),
        };
        Instance::new(options, Arc::new(disk.clone())).map_err(|e| text(&e))
    }

    fn say(&self, what: impl FnOnce() -> String) {
        if self.steps == Steps::Printed {
            crate::say(&what());
        }
    }

    pub(crate) fn database(&self) -> Result<Arc<Database>, String> {
        self.database
            .clone()
            .ok_or_else(|| "no database".to_owned())
    }

    /// One life: operations until a fault or chance ends it.
    fn live(&mut self) -> Result<(), String> {
        match self.rng.below(10) {
            0..=5 => self.disk.plan(self.rng.below(400), Fault::Crash),
            6 | 7 => self.disk.plan(self.rng.below(300), Fault::Error),
            8 => {
                let room = self.rng.below(10) * 65536;
                self.disk.set_capacity(Some(self.disk.allocated() + room));
            }
            _ => {}
        }
        for _ in 0..self.rng.below(60) {
            self.operation()?;
            let database = self.database()?;
            if self.disk.is_crashed() || database.offline_reason().is_some() {
                return self.after_failure();
            }
        }
        Ok(())
    }

    /// A database that a failure took offline accepts no changes, even if the disk works again.
    fn after_failure(&mut self) -> Result<(), String> {
        let database = self.database()?;
        if database.offline_reason().is_none() {
            return Ok(());
        }
        self.disk.calm();
        let snapshot = database.begin_read();
        let refusals = [
            database.begin_write(&snapshot).map(|_| ()),
            database.checkpoint().map(|_| ()),
            database.recovery_writer_step(),
            database.set_target_recovery_time(None),
            database.close(),
            database.begin_backup(BackupMode::Full).map(|_| ()),
        ];
        for refusal in refusals {
            match refusal {
                Err(EngineError::Offline { .. }) => {}
                other => return Err(format!("offline, and yet: {other:?}")),
            }
        }
        Ok(())
    }

    fn operation(&mut self) -> Result<(), String> {
        match self.rng.below(100) {
            0..=54 => self.transaction(),
            55..=64 => self.read(),
            65..=72 => self.open_snapshot(),
            73..=79 => {
                if !self.snapshots.is_empty() {
                    let index = self.rng.below(self.snapshots.len() as u64) as usize;
                    self.snapshots.swap_remove(index);
                }
                Ok(())
            }
            80..=84 => {
                self.say(|| "checkpoint".to_owned());
                let outcome = self.database()?.checkpoint();
                self.may_fail(outcome.map(|_| ()))
            }
            85..=90 => {
                let outcome = self.database()?.recovery_writer_step();
                self.may_fail(outcome)
            }
            91 | 92 => self.change_kind(),
            93 => self.add_file(),
            94 => self.close(),
            95..=97 => crate::copy::backup(self),
            _ => crate::log::backup(self),
        }
    }

    /// An operation that may run during a backup.
    pub(crate) fn operation_during_backup(&mut self) -> Result<(), String> {
        if self.disk.is_crashed() || self.database()?.offline_reason().is_some() {
            return Ok(());
        }
        match self.rng.below(10) {
            0 => {
                let outcome = self.database()?.checkpoint();
                self.may_fail(outcome.map(|_| ()))
            }
            1 => {
                let outcome = self.database()?.recovery_writer_step();
                self.may_fail(outcome)
            }
            _ => self.transaction(),
        }
    }

    /// An error is correct if the disk had a fault or is full; the state is checked later.
    pub(crate) fn may_fail(&mut self, outcome: Result<(), EngineError>) -> Result<(), String> {
        let Err(error) = outcome else {
            return Ok(());
        };
        self.say(|| format!("refused: {error}"));
        self.outcome.refused += 1;
        self.outcome.disk_full += u64::from(error.is_disk_full());
        self.outcome.log_full += u64::from(matches!(error, EngineError::LogFull { .. }));
        match error.cause() {
            EngineError::Io { .. }
            | EngineError::LogFull { .. }
            | EngineError::FileFull { .. }
            | EngineError::VersionsFull { .. }
            | EngineError::Offline { .. } => Ok(()),
            other => Err(text(other)),
        }
    }

    fn change_kind(&mut self) -> Result<(), String> {
        if self.rng.chance(10) {
            let outcome = self.database()?.set_recovery_model(RecoveryModel::Simple);
            return self.may_fail(outcome);
        }
        let milliseconds = Duration::from_millis(1 + self.rng.below(10));
        let target = self.rng.chance(50).then_some(milliseconds);
        let outcome = self.database()?.set_target_recovery_time(target);
        self.may_fail(outcome)
    }

    fn add_file(&mut self) -> Result<(), String> {
        if self.files >= 4 {
            return Ok(());
        }
        let path = format!("/d/x{}.ndf", self.disk.operations());
        let spec = FileSpec {
            size: 65536,
            ..FileSpec::data(&path, &path)
        };
        let outcome = self.database()?.add_file(&spec);
        self.files = self.database()?.files().len() - 1;
        self.may_fail(outcome)
    }

    fn transaction(&mut self) -> Result<(), String> {
        let database = self.database()?;
        let mut pages: Vec<Arc<[u8]>> = self.acknowledged.as_ref().clone();
        let snapshot = database.begin_read();
        let mut writer = match database.begin_write(&snapshot) {
            Ok(writer) => writer,
            Err(error) => return self.may_fail(Err(error)),
        };
        if self.rng.chance(70) {
            drop(snapshot);
        }
        if self.rng.chance(8) && !pages.is_empty() {
            let count = self.rng.below(pages.len() as u64 + 1) as usize;
            pages.truncate(count);
            writer.truncate(count as u32).map_err(|e| text(&e))?;
        }
        // The largest do not fit into a log that may not grow.
        let most = match self.rng.below(100) {
            0..=2 => 90,
            3..=11 => 30,
            _ => 5,
        };
        for _ in 0..=self.rng.below(most) {
            let limit = (pages.len() as u64 + 3).min(u64::from(PAGES_MAX));
            let index = self.rng.below(limit) as usize;
            let page = PageNumber::from_index(index as u32).ok_or("no such page")?;
            let content = self.content(page, pages.get(index));
            writer.write_page(page, &content).map_err(|e| text(&e))?;
            while pages.len() <= index {
                pages.push(vec![0; PAGE_BYTES].into());
            }
            pages[index] = content.into();
        }
        if self.rng.chance(10) {
            return Ok(());
        }
        if pages
            .first()
            .is_some_and(|first| first.starts_with(b"SQLite") && first[20] == 8)
        {
            for page in &mut pages {
                *page = stamped(page);
            }
        }
        let state = Arc::new(pages);
        self.in_flight = Some(Arc::clone(&state));
        let begun_ms = now_ms();
        match writer.commit() {
            Ok(lsn) => {
                self.say(|| format!("commit {lsn:#} of {} pages", state.len()));
                self.acknowledged = state;
                self.in_flight = None;
                self.moments
                    .push(Moment::new(Some(lsn), begun_ms, &self.acknowledged));
                self.outcome.commits += 1;
                Ok(())
            }
            Err(error) => {
                if !self.disk.is_crashed() && database.offline_reason().is_none() {
                    self.in_flight = None;
                }
                self.may_fail(Err(error))
            }
        }
    }

    fn open_snapshot(&mut self) -> Result<(), String> {
        if self.snapshots.len() < 4 {
            let snapshot = self.database()?.begin_read();
            self.snapshots
                .push((snapshot, Arc::clone(&self.acknowledged)));
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), String> {
        let latest = (
            self.database()?.begin_read(),
            Arc::clone(&self.acknowledged),
        );
        compare(&latest.0, &latest.1, &self.disk)?;
        for (snapshot, state) in &self.snapshots {
            compare(snapshot, state, &self.disk)?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        self.say(|| "close".to_owned());
        let database = self.database()?;
        self.snapshots.clear();
        // A log that waits for its backup may be too full for the last checkpoint: then the file is not cut.
        let may_be_longer = database.tail_start().is_some();
        if let Err(error) = database.close() {
            return self.may_fail(Err(error));
        }
        drop(database);
        self.database = None;
        if self.files == 1 {
            let bytes = self.disk.content(std::path::Path::new("/d/a0.mdf"));
            let expected: Vec<u8> = self.acknowledged.concat();
            let is_same = |mut bytes: Vec<u8>| {
                if may_be_longer {
                    bytes.truncate(expected.len());
                }
                if let (Some(first), Some(written)) =
                    (bytes.get_mut(..PAGE_BYTES), expected.get(..PAGE_BYTES))
                {
                    take_mark_out(first, written);
                }
                bytes == expected
            };
            if !bytes.is_none_or(is_same) {
                return Err("the closed file is not exactly the pages".to_owned());
            }
        }
        self.reopen()
    }

    fn reopen(&mut self) -> Result<(), String> {
        // A fault may hit the opening, too; power may be lost several times. The last attempt has
        // no faults.
        for attempt in 0.. {
            let request = OpenDatabase::new("a", log_path());
            match self.instance.open_database(&request) {
                Ok(database) => {
                    self.files = database.files().len() - 1;
                    self.database = Some(database);
                    return Ok(());
                }
                Err(error) if attempt < LAST_OPENING => {
                    self.say(|| format!("open: {error}"));
                    self.may_fail(Err(error))?;
                    self.outcome.recoveries_cut += 1;
                    self.power_off();
                    if attempt + 1 < LAST_OPENING && self.rng.chance(30) {
                        self.disk.plan(self.rng.below(100), Fault::Crash);
                    }
                }
                Err(error) => return Err(format!("cannot be opened: {error}")),
            }
        }
        Ok(())
    }

    fn power_off(&mut self) {
        self.disk.restart();
        self.disk.set_capacity(None);
        self.outcome.crashes += 1;
    }

    /// Ends the life without a close, recovers and compares.
    fn crash(&mut self) -> Result<(), String> {
        self.say(|| format!("crash at operation {}", self.disk.operations()));
        if let Some(database) = &self.database {
            self.outcome.offline += u64::from(database.offline_reason().is_some());
        }
        self.outcome.several_files += u64::from(self.files > 1);
        if self.disk.asked_again() {
            return Err("a file was used again after its sync had failed".to_owned());
        }
        self.snapshots.clear();
        self.database = None;
        if self.disk.is_crashed() || self.rng.chance(80) {
            self.power_off();
        } else {
            // Only the process ended: the operating system keeps what was written.
            self.disk.calm();
            self.disk.set_capacity(None);
            self.outcome.crashes += 1;
        }
        self.instance = Self::instance(&mut self.rng, &self.disk)?;
        if self.rng.chance(20) {
            self.disk.plan(self.rng.below(60), Fault::Crash);
        }
        self.reopen()?;
        self.disk.calm();
        let database = self.database()?;
        let snapshot = database.begin_read();
        let first = compare(&snapshot, &self.acknowledged, &self.disk);
        if let Err(reason) = first {
            let Some(in_flight) = self.in_flight.take() else {
                return Err(format!("after a crash: {reason}"));
            };
            compare(&snapshot, &in_flight, &self.disk)
                .map_err(|other| format!("after a crash: {reason}; in flight: {other}"))?;
            self.outcome.in_flight_kept += 1;
            self.acknowledged = in_flight;
            self.moments.push(Moment::new(None, 0, &self.acknowledged));
        }
        self.in_flight = None;
        stale::check(self)?;
        crate::copy::check_map(self)?;
        crate::log::check(self)
    }
}
