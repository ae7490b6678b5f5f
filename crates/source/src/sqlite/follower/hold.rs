//! What keeps the log from losing frames that were not read: two read transactions and one lock, of which one is
//! always held, except when the follower lets go on purpose.
//!
//! | held | what others cannot do meanwhile |
//! |---|---|
//! | a *mark*: a read transaction of one of two connections | restart the log, or copy frames behind the mark into the database |
//! | *zero*: read lock 0, taken when every frame is in the database | copy any frame into the database, and so restart the log twice |
//! | nothing | nothing: see `proof.rs` |
//!
//! A new hold is taken before the old one is released. Nothing is written except, by `SQLite` itself, a read mark in
//! the -shm, as by every reader.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ffi as code};
use windlass_media::WalPosition;

use super::super::made::{SideFiles, remove_log_with};
use super::super::open::{
    connect, depends_on_log, failure, makes_files_for_owner, refuse_emptied, touch,
};
use super::super::watched::position_of_file;
use super::super::{ffi, file_error, sqlite_error};
use super::log::Shape;
use super::still::{Frozen, Names};
use crate::Error;
use crate::sqlite::spool::SpoolError;

/// How long to try for a read mark before giving up.
const PATIENCE: Duration = Duration::from_secs(10);
const BETWEEN_TRIES: Duration = Duration::from_millis(1);

/// The newest commit of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tip {
    pub(super) position: WalPosition,
    pub(super) page_bytes: u32,
    /// Pages of the database.
    pub(super) page_count: u32,
    is_big_endian: bool,
}

impl Tip {
    fn of(header: &ffi::WalIndexHeader) -> Self {
        Self {
            position: header.position(),
            page_bytes: header.page_bytes(),
            page_count: header.page_count,
            is_big_endian: header.is_big_endian(),
        }
    }

    pub(super) fn shape(&self) -> Shape {
        Shape {
            salt: self.position.salt,
            page_bytes: self.page_bytes,
            is_big_endian: self.is_big_endian,
        }
    }
}

/// What is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    Nothing,
    /// A mark; the frame up to which checkpoints may copy.
    Mark(u32),
    Zero,
}

/// The connections to a followed database.
#[derive(Debug)]
pub(super) struct Holder {
    path: PathBuf,
    names: Names,
    /// The database file, as long as nothing may be copied into it.
    frozen: Option<Frozen>,
    /// Whether it was changed while that was so.
    is_changed: bool,
    /// Has the mark, if there is one.
    marked: Connection,
    /// Takes the next one.
    spare: Connection,
    /// Takes lock 0, and runs no statements.
    freezer: Connection,
    is_frozen: bool,
    held: Held,
    /// The newest commit when lock 0 was taken: up to there, everything is in the database file.
    zero_at: WalPosition,
    made_wal: bool,
}

impl Holder {
    /// Opens the database, which must be in WAL mode; holds nothing.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        // One that is missing has no owner.
        std::fs::metadata(path).map_err(|error| file_error("open", path, error))?;
        if !makes_files_for_owner(path) {
            let path = path.to_owned();
            return Err(SpoolError::NotOwner { path }.told());
        }
        refuse_emptied(path)?;
        if !depends_on_log(path)? {
            // Without opening it, which might roll back a journal.
            let path = path.to_owned();
            return Err(SpoolError::NotWal { path }.told());
        }
        let side_files = SideFiles::beside(path);
        let open = || {
            let connection = connect(path)?;
            let begun = Instant::now();
            while let Err(error) = touch(&connection) {
                let is_busy = matches!(
                    error.sqlite_error_code(),
                    Some(rusqlite::ErrorCode::DatabaseBusy)
                );
                if !is_busy || begun.elapsed() > PATIENCE {
                    return Err(sqlite_error("read", path, error));
                }
                std::thread::sleep(BETWEEN_TRIES);
            }
            match ffi::is_wal(&connection) {
                true => Ok(connection),
                false => Err(SpoolError::NotWal {
                    path: path.to_owned(),
                }
                .told()),
            }
        };
        let (marked, spare) = (open()?, open()?);
        Ok(Self {
            path: path.to_owned(),
            names: Names::of(path)?,
            frozen: None,
            is_changed: false,
            marked,
            spare,
            freezer: connect(path)?,
            is_frozen: false,
            held: Held::Nothing,
            zero_at: WalPosition::default(),
            made_wal: !side_files.has_wal,
        })
    }

    pub(super) fn held(&self) -> Held {
        self.held
    }

    /// The last frame of a generation that may be in the database file, because of what is held; `None` if it may be
    /// any.
    pub(super) fn copied_max(&self, salt: [u8; 8]) -> Option<u32> {
        match self.held {
            Held::Nothing => None,
            Held::Mark(mark) => Some(mark),
            Held::Zero if self.zero_at.salt == salt => Some(self.zero_at.frame),
            // A generation that was begun under the lock.
            Held::Zero => Some(0),
        }
    }

    /// Identity of the database file.
    pub(super) fn inode(&self) -> u64 {
        self.names.inode()
    }

    /// Whether the name of the database, its log or the log's index leads to another file by now.
    pub(super) fn has_moved(&self) -> bool {
        self.names.have_moved()
    }

    /// Whether the database file has changed while nothing could be copied into it: by a program that does not use
    /// `SQLite`.
    pub(super) fn is_changed(&mut self) -> bool {
        let is_unchanged = self.frozen.as_ref().is_none_or(Frozen::is_unchanged);
        self.is_changed |= !is_unchanged;
        self.is_changed
    }

    /// The database file, if nothing may be copied into it.
    pub(super) fn frozen(&mut self) -> Option<&mut Frozen> {
        self.frozen.as_mut()
    }

    /// What was changed is known, and no longer counts.
    pub(super) fn accept_change(&mut self) {
        self.is_changed = false;
        self.frozen = None;
    }

    /// The newest commit, and the count of frames that are in the database file; read without a lock. `None`
    /// while the index of the log is being recovered.
    pub(super) fn look(&self) -> Option<(Tip, u32)> {
        let index = ffi::wal_index(&self.marked)?;
        Some((Tip::of(&index.header), index.backfilled))
    }

    /// Takes a mark at the newest commit; only then releases what was held before.
    pub(super) fn mark(&mut self) -> Result<Tip, Error> {
        let begun = Instant::now();
        let tip = loop {
            match self.try_mark()? {
                Some(tip) => break tip,
                None if begun.elapsed() > PATIENCE => {
                    let waited = begun.elapsed();
                    let path = self.path.clone();
                    return Err(Error::Busy { path, waited });
                }
                None => std::thread::sleep(BETWEEN_TRIES),
            }
        };
        // Before anything is released that has kept the file as it was.
        self.is_changed();
        if tip.position.frame == 0 {
            self.freeze_file()?;
        } else {
            self.frozen = None;
        }
        std::mem::swap(&mut self.marked, &mut self.spare);
        let is_marked = matches!(self.held, Held::Mark(_));
        self.held = Held::Mark(tip.position.frame);
        if is_marked {
            self.end(&self.spare)?;
        }
        self.thaw();
        Ok(tip)
    }

    /// `None` if it must be tried again.
    fn try_mark(&self) -> Result<Option<Tip>, Error> {
        let fail = |error| sqlite_error("read", &self.path, error);
        self.spare.execute_batch("BEGIN").map_err(fail)?;
        let refusal = match ffi::pin_snapshot(&self.spare) {
            Ok(Some(header)) => return Ok(Some(Tip::of(&header))),
            Ok(None) => match touch(&self.spare) {
                // Nothing was ever written to the log: then the transaction has lock 0.
                Ok(()) => match self.look() {
                    Some((mut tip, _)) => {
                        if tip.position.is_before_all() {
                            let file = position_of_file(&self.path)?;
                            tip.position = file.unwrap_or(tip.position);
                        }
                        return Ok(Some(tip));
                    }
                    None => failure(code::SQLITE_BUSY),
                },
                Err(error) => error,
            },
            Err(code) => failure(code),
        };
        self.end(&self.spare)?;
        let is_busy = matches!(
            refusal
                .sqlite_error()
                .map(|error| error.extended_code & 0xFF),
            Some(code::SQLITE_BUSY | code::SQLITE_PROTOCOL | code::SQLITE_LOCKED)
        );
        if is_busy {
            Ok(None)
        } else {
            Err(fail(refusal))
        }
    }

    /// Takes lock 0 in place of the mark, if every frame of the log is in the database file and `position` is still
    /// the newest commit. Otherwise everything stays.
    pub(super) fn zero(&mut self, position: &WalPosition) -> Result<bool, Error> {
        if !self.freeze() {
            return Ok(false);
        }
        // The lock was taken before this look, so that what it sees stays until the lock is released.
        let is_all_copied = self.look().is_some_and(|(tip, backfilled)| {
            tip.position.is_same_state(position) && backfilled == tip.position.frame
        });
        if !is_all_copied {
            self.thaw();
            return Ok(false);
        }
        self.freeze_file()?;
        if matches!(self.held, Held::Mark(_)) {
            self.end(&self.marked)?;
        }
        self.held = Held::Zero;
        self.zero_at = *position;
        Ok(true)
    }

    fn freeze_file(&mut self) -> Result<(), Error> {
        if self.frozen.is_none() {
            self.frozen = Some(Frozen::of(&self.path)?);
        }
        Ok(())
    }

    /// Releases everything.
    pub(super) fn let_go(&mut self) -> Result<(), Error> {
        self.is_changed();
        self.frozen = None;
        if matches!(self.held, Held::Mark(_)) {
            self.end(&self.marked)?;
        }
        self.held = Held::Nothing;
        self.thaw();
        Ok(())
    }

    fn freeze(&mut self) -> bool {
        if !self.is_frozen {
            self.is_frozen = ffi::hold_checkpoints(&self.freezer);
        }
        self.is_frozen
    }

    fn thaw(&mut self) {
        if std::mem::take(&mut self.is_frozen) {
            ffi::release_checkpoints(&self.freezer);
        }
    }

    fn end(&self, connection: &Connection) -> Result<(), Error> {
        let ended = match connection.is_autocommit() {
            true => Ok(()),
            false => connection.execute_batch("ROLLBACK"),
        };
        ended.map_err(|error| sqlite_error("read", &self.path, error))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // Errors cannot be returned from a drop; closing the connections releases all locks.
        let _released = self.let_go();
        // It is closed as the last one that has the log open.
        remove_log_with(&self.spare, &self.path, self.made_wal);
    }
}
