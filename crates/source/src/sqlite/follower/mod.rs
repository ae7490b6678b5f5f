//! Follows a `SQLite` database in WAL mode: reads every commit from its log and spools it, without taking anything from
//! the programs that use it.
//!
//! `docs/sources/sqlite.md` has the argument why nothing is missed, step by step against `wal.c`; what is held when is in
//! `hold.rs`, and what happens when nothing is held in `proof.rs`.
//!
//! | file | what |
//! |---|---|
//! | `hold` | the locks, and the newest commit |
//! | `log` | frames and their chain of checksums |
//! | `proof` | that nothing was missed while no mark was held (pure, apart from reading frames) |
//! | `pace` | when to let go (pure) |
//! | `changes` | pages since the last moment |
//! | `touched` | which bytes of a page were touched since (pure) |
//! | `versions` | what a page was before a frame |
//! | `reading` | the position in the log, and how it advances |
//! | `still` | what must not change meanwhile: the names of the files, and a file into which nothing is copied |
//! | `clock` | changes of the system's clock |
//! | `cutting` | ends what a log backup holds |
//! | `away` | leaves the database to a restore for a while |
//!
//! Invariants:
//! 1. The position in the spool advances only over commits that were read with an unbroken chain of checksums, and
//!    either under a lock or with the proof. Everything else is a gap.
//! 2. Pages are durable before the moment that needs them.
//! 3. No checkpoint is ever run here, and nothing is written into the database, its log, or (but read marks) its
//!    -shm.

mod away;
mod changes;
mod clock;
mod cutting;
mod hold;
mod log;
mod pace;
mod proof;
mod reading;
mod status;
mod still;
#[cfg(test)]
mod tests;
mod touched;
mod versions;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use status::{FollowStatus, Following};

pub use self::away::SentAway;
use self::clock::Clock;
pub(super) use self::cutting::{Lack, catch_up, cut};
use self::proof::Doubt;
use self::reading::Reading;
use super::file_error;
use super::options::SnapshotOptions;
use super::spool::{self, Gap, SpoolError, SpoolWriter, State, now_us};
use crate::Error;

/// How often the log is looked at while the database is in use; a look costs no system call.
const TICK: Duration = Duration::from_millis(5);
/// The same while nothing is held.
const LOOSE_TICK: Duration = Duration::from_millis(1);
/// The same when nothing was committed for a while.
const IDLE_TICK: Duration = Duration::from_millis(20);
const IDLE_AFTER: Duration = Duration::from_secs(2);
/// How often the names and the room are looked at again.
const LOOK_AROUND: Duration = Duration::from_secs(1);
/// How often to look whether a log backup or a restore wants something.
const LOOK_FOR_REQUESTS: Duration = Duration::from_millis(20);
/// How often the spool says that nothing was committed.
const SEEN_EVERY: Duration = Duration::from_secs(10);

/// How to follow a database.
#[derive(Debug, Clone)]
pub struct FollowOptions {
    /// The folder of the spool.
    pub folder: PathBuf,
    /// How often changes become a moment that can be restored, and durable.
    pub every: Duration,
    /// Whether each commit becomes such a moment; else only the last one of each interval.
    pub each_commit: bool,
    /// Bytes of the spool at which the follower stops to spool.
    pub spool_bytes_max: Option<u64>,
    pub when_full: WhenFull,
}

/// What a follower does when its spool has no room, because of its limit or the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// Lets go of the log, and captures nothing until there is room: a gap.
    #[default]
    Gap,
    /// Keeps the log from being restarted, so that it grows, until there is room: the disk of the database may fill.
    Hold,
}

impl FollowOptions {
    /// Without a limit, and a moment every second.
    pub fn within(folder: PathBuf) -> Self {
        Self {
            folder,
            every: Duration::from_secs(1),
            each_commit: false,
            spool_bytes_max: None,
            when_full: WhenFull::Gap,
        }
    }
}

/// A follower of one database.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    options: FollowOptions,
    spool: SpoolWriter,
    /// `None` while the spool has no room, or the database cannot be opened.
    reading: Option<Reading>,
    /// Why it is `None`, and what a gap is called then.
    lost: Option<(Following, Doubt)>,
    /// Whether the log is held until the spool has room; then nothing is read.
    is_holding: bool,
    /// Whether the database is left to a restore.
    is_away: bool,
    clock: Clock,
    status: FollowStatus,
    flushed: Instant,
    looked_around: Instant,
    looked_for_requests: Instant,
    seen: Instant,
}

impl Follower {
    /// Begins to follow the database at `path`, or continues where an earlier follower with the same spool stopped.
    pub fn begin(path: &Path, options: &FollowOptions) -> Result<Self, Error> {
        let path = std::fs::canonicalize(path).map_err(|error| file_error("open", path, error))?;
        super::check_name(&path, &SnapshotOptions::default())?;
        // First, so that a database that cannot be followed leaves no spool.
        let holder = hold::Holder::open(&path)?;
        let (spool, continued) =
            SpoolWriter::open(&options.folder, &path, options.spool_bytes_max)?;
        let now = Instant::now();
        let mut follower = Self {
            path,
            options: options.clone(),
            spool,
            reading: None,
            lost: None,
            is_holding: false,
            is_away: false,
            clock: Clock::read(),
            status: FollowStatus::default(),
            flushed: now,
            looked_around: now,
            looked_for_requests: now,
            seen: now,
        };
        let state = continued.map(|continued| continued.state);
        let change = state.and_then(|state| follower.clock.change_since(state.time_us));
        if let Some(change) = change {
            follower.spool.clock(change)?;
        }
        let state = state.filter(|state| state.inode != 0);
        match follower.resume(holder, state, Doubt::OtherLog) {
            Ok(()) => Ok(follower),
            // As for one that runs: there may be more to catch up than there is room.
            Err(error) if state.is_some() => {
                follower.survive(error)?;
                Ok(follower)
            }
            Err(error) => Err(error),
        }
    }

    /// Follows until `stop` is set; calls `report` after every interval.
    pub fn run(
        &mut self,
        stop: &AtomicBool,
        report: &mut dyn FnMut(&FollowStatus),
    ) -> Result<FollowStatus, Error> {
        while !stop.load(Ordering::Relaxed) {
            let is_due = self.flushed.elapsed() >= self.options.every;
            self.step(is_due)?;
            if is_due {
                report(&self.status());
            }
            if self.looked_for_requests.elapsed() >= LOOK_FOR_REQUESTS {
                self.looked_for_requests = Instant::now();
                self.cut_if_asked()?;
                self.leave_if_asked()?;
            }
            let pause = self.reading.as_ref().map_or(IDLE_TICK, |reading| {
                match (reading.following(), reading.idle() > IDLE_AFTER) {
                    (Following::LetGo, _) => LOOSE_TICK,
                    (_, true) => IDLE_TICK,
                    (_, false) => TICK,
                }
            });
            std::thread::sleep(pause.min(self.options.every));
        }
        self.finish()
    }

    fn leave_if_asked(&mut self) -> Result<(), Error> {
        if self.is_away || !away::is_wanted(&self.options.folder) {
            return Ok(());
        }
        self.step(true)?;
        if self.lost.is_none() {
            self.lose((Following::Away, Doubt::OtherLog))?;
        }
        self.is_away = true;
        away::answer(&self.options.folder)
    }

    /// One look at the log; `is_due` makes what was read durable.
    pub fn step(&mut self, is_due: bool) -> Result<(), Error> {
        if self.looked_around.elapsed() >= LOOK_AROUND {
            self.looked_around = Instant::now();
            self.look_around()?;
        }
        let stepped = self.attempt(is_due);
        if is_due {
            self.flushed = Instant::now();
        }
        match stepped {
            Ok(()) => Ok(()),
            Err(error) => self.survive(error),
        }
    }

    fn attempt(&mut self, is_due: bool) -> Result<(), Error> {
        if self.is_holding {
            return Ok(());
        }
        let Some(reading) = &mut self.reading else {
            return Ok(());
        };
        let each_commit = self.options.each_commit;
        let stepped = reading.step(&mut self.spool, each_commit, is_due, &mut self.status)?;
        if let Err(doubt) = stepped {
            self.gap(doubt)?;
        }
        if is_due {
            self.check_spool()?;
        }
        let Some(reading) = &mut self.reading else {
            return Ok(());
        };
        if is_due || reading.is_long() {
            // What was read before this look is what the names led to.
            if reading.has_moved() {
                return self.lose((Following::NotOpen, Doubt::OtherFile));
            }
            if !reading.is_unchanged()? {
                return self.gap(Doubt::FileChanged);
            }
            if let Some(change) = self.clock.change(Clock::read()) {
                self.spool.clock(change)?;
            }
            reading.flush(&mut self.spool, &mut self.status)?;
        }
        if self.seen.elapsed() >= SEEN_EVERY {
            self.seen = Instant::now();
            reading.seen(&mut self.spool)?;
        }
        Ok(())
    }

    /// What a failure costs: nothing that is durable. A full spool and a database that cannot be opened any more are
    /// waited out; other errors of the spool end the follower.
    fn survive(&mut self, error: Error) -> Result<(), Error> {
        let lost = match &error {
            _ if spool::is_full(&error) => (Following::SpoolFull, Doubt::SpoolFull),
            Error::Spool(spool::SpoolError::NotWal { .. })
            | Error::Sqlite { .. }
            | Error::Busy { .. }
            | Error::NotFound { .. } => (Following::NotOpen, Doubt::OtherLog),
            Error::Io { path, .. } if !path.starts_with(&self.options.folder) => {
                (Following::NotOpen, Doubt::OtherLog)
            }
            _ => return Err(error),
        };
        self.status.last_error = Some(error.to_string());
        if lost.0 == Following::SpoolFull
            && self.options.when_full == WhenFull::Hold
            && self.hold()?
        {
            return Ok(());
        }
        self.lose(lost)
    }

    /// Keeps the log from being restarted, and goes back to what is durable; whether that is possible.
    fn hold(&mut self) -> Result<bool, Error> {
        self.spool.rollback()?;
        let durable = self.spool.state().position;
        let Some(reading) = &mut self.reading else {
            return Ok(false);
        };
        self.is_holding = reading.rewind(durable)?;
        Ok(self.is_holding)
    }

    fn lose(&mut self, lost: (Following, Doubt)) -> Result<(), Error> {
        // Releases all locks: the application is not held up by a follower that does not follow.
        self.reading = None;
        self.lost = Some(lost);
        self.is_holding = false;
        self.spool.rollback()
    }

    /// Nothing is written behind an end that somebody has cut off, or into a file that has no name.
    fn check_spool(&self) -> Result<(), Error> {
        if self.spool.is_gone() {
            let folder = self.options.folder.clone();
            return Err(SpoolError::Gone { folder }.told());
        }
        Ok(())
    }

    /// Once a second: whether the name still leads to the database, and whether what was lost has come back.
    fn look_around(&mut self) -> Result<(), Error> {
        self.check_spool()?;
        if self.is_away {
            self.is_away = away::is_wanted(&self.options.folder);
            if self.is_away {
                return Ok(());
            }
        }
        if self.is_holding && self.spool.has_room()? {
            // If there is still none, it is held again.
            self.is_holding = false;
            self.status.last_error = None;
        }
        let has_moved = self.reading.as_ref().is_some_and(Reading::has_moved);
        if has_moved {
            // What was read since the last moment may be of files that nobody else has any more.
            self.lose((Following::NotOpen, Doubt::OtherFile))?;
        }
        let Some((_, doubt)) = self.lost else {
            return Ok(());
        };
        if !self.spool.has_room()? {
            return Ok(());
        }
        let state = Some(self.spool.state());
        let resumed =
            hold::Holder::open(&self.path).and_then(|holder| self.resume(holder, state, doubt));
        match resumed {
            Ok(()) => {
                self.lost = None;
                self.status.last_error = None;
                Ok(())
            }
            Err(error) => {
                let lost = self.lost;
                self.survive(error)?;
                // The first reason is the one that a gap is named by.
                self.lost = lost;
                Ok(())
            }
        }
    }

    /// Takes a mark, and proves that nothing was committed since `state`, or records a gap.
    fn resume(
        &mut self,
        holder: hold::Holder,
        state: Option<State>,
        otherwise: Doubt,
    ) -> Result<(), Error> {
        let inode = holder.inode();
        let Some(state) = state else {
            let reading = Reading::begin(&self.path, holder, None)?;
            self.spool.start(State {
                position: reading.position(),
                time_us: now_us(),
                commit_number: 0,
                inode,
            })?;
            self.spool.sync()?;
            self.reading = Some(reading);
            return Ok(());
        };
        let mut reading = Reading::begin(&self.path, holder, Some(state.position))?;
        let each_commit = self.options.each_commit;
        let resumed = match state.inode == inode {
            true => reading.resume(&mut self.spool, each_commit),
            false => Ok(Err(Doubt::OtherFile)),
        };
        // Also after an error: then its log may be held.
        self.reading = Some(reading);
        match resumed? {
            Ok(()) => {
                self.status.proofs += 1;
                Ok(())
            }
            Err(Doubt::OtherLog) => self.gap(otherwise),
            Err(doubt) => self.gap(doubt),
        }
    }

    /// Records that commits may be missing before the state that is held now.
    fn gap(&mut self, doubt: Doubt) -> Result<(), Error> {
        let Some(reading) = &mut self.reading else {
            return Ok(());
        };
        // What was read for certain still counts.
        match reading.is_open() || doubt == Doubt::FileChanged {
            true => self.spool.rollback()?,
            false => reading.flush(&mut self.spool, &mut self.status)?,
        }
        let state = self.spool.state();
        let to = reading.forget()?;
        let gap = Gap {
            from_us: state.time_us,
            // Later than what is before it, whatever the clock says: LSNs are made of these times.
            to_us: now_us().max(state.time_us.saturating_add(1)),
            from: state.position,
            to,
            inode: reading.inode(),
            reason: doubt.to_string(),
        };
        self.spool.gap(&gap)?;
        self.spool.sync()?;
        self.status.gaps += 1;
        self.status.last_gap_us = gap.to_us;
        self.status.last_gap = Some(gap.reason);
        Ok(())
    }

    /// Makes everything durable that was committed until now, and lets go.
    pub fn finish(&mut self) -> Result<FollowStatus, Error> {
        self.step(true)?;
        self.check_spool()?;
        let status = self.status();
        if let Some(reading) = &mut self.reading {
            reading.seen(&mut self.spool)?;
            self.spool.sync()?;
        }
        self.reading = None;
        Ok(status)
    }

    /// Counters, and how far the spool is behind.
    pub fn status(&self) -> FollowStatus {
        let mut status = self.status.clone();
        let state = self.spool.state();
        status.spool_bytes = self.spool.bytes();
        status.commit_number = state.commit_number;
        status.time_us = state.time_us;
        status.cpu_us = windlass_io::processor::thread_time().as_micros() as u64;
        status.following = match (&self.reading, &self.lost) {
            (Some(_), _) if self.is_holding => Following::Held,
            (Some(reading), _) => reading.following(),
            (None, Some((following, _))) => *following,
            (None, None) => Following::NotOpen,
        };
        if let Some(reading) = &self.reading {
            reading.lag(&state, &mut status);
        }
        status
    }
}
