//! Backup of the log: its tail up to the last commit, from a database in use or from its log file alone.
//!
//! ```text
//!  begin_log_backup                         complete
//!  hold the tail --> end of the log  --> [blocks] --> header with the new start --> log is truncated
//!                    is on disk                       a failure or drop before: nothing has changed
//! ```
//!
//! Invariants:
//! - The blocks passed on are all from the start of the tail to the end in the description, each with the
//!   checksum of the one before; if one is missing, the copy fails.
//! - The start of the tail moves only by [`LogBackup::complete`], which is called when the set is durable. A crash
//!   before leaves the old start: the next log backup begins there again and overlaps this one.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use windlass_base::{Guid, Lsn};

use super::backup::LogCopy;
use super::{Database, FileDescription};
use crate::backup::BackupDescription;
use crate::backup::offline::read_log;
use crate::backup::staged::check_existing;
use crate::error::{EngineError, Result};
use crate::log::block::HEADER_BYTES;
use crate::log::header::Header;
use crate::log::reader::{LogReader, find_end, load_sequences};
use crate::log::record::{Record, Records};
use crate::log::replay::replay;
use crate::log::{Position, Tail};
use crate::options::{FileSpec, RecoveryModel};
use crate::storage::{FileSystem, OpenMode, StorageFile};

/// A backup of the log in progress. Dropping it before [`LogBackup::complete`] changes nothing.
#[derive(Debug)]
pub struct LogBackup {
    origin: Origin,
    start: Tail,
    next: Tail,
    description: BackupDescription,
}

/// Where the log is read.
#[derive(Debug)]
enum Origin {
    Database {
        database: Arc<Database>,
        /// Number of the hold.
        hold: u64,
        /// Whether the log will be truncated.
        truncates: bool,
    },
    /// The log of a database that is not open; locked.
    File {
        file: Arc<dyn StorageFile>,
        header: Box<Header>,
    },
}

impl Database {
    /// Starts a backup of the log up to the last commit. With `truncates`, its end frees the log.
    ///
    /// # Errors
    /// [`EngineError::NoLogChain`]; [`EngineError::BackupRunning`] if another one will truncate the log.
    pub fn begin_log_backup(self: &Arc<Self>, truncates: bool) -> Result<LogBackup> {
        self.check_writable()?;
        if truncates && !self.log_chain.take() {
            return Err(EngineError::BackupRunning {
                database: self.name.clone(),
            });
        }
        let begun = self.begin_held_log_backup(truncates);
        if begun.is_err() && truncates {
            self.log_chain.give_back();
        }
        begun
    }

    fn begin_held_log_backup(self: &Arc<Self>, truncates: bool) -> Result<LogBackup> {
        let (hold, start) = self
            .log
            .hold_tail()
            .ok_or_else(|| no_chain(&self.name, self.recovery_model()))?;
        let ended = self.end_of_log_backup(start);
        let (next, description) = ended.inspect_err(|_| self.log.release(hold))?;
        Ok(LogBackup {
            origin: Origin::Database {
                database: Arc::clone(self),
                hold,
                truncates,
            },
            start,
            next,
            description,
        })
    }

    fn end_of_log_backup(&self, start: Tail) -> Result<(Tail, BackupDescription)> {
        let (next, latest, header, ended_ms) = {
            let gate = self.commits.gate();
            let header = self.header.current(&self.log, &self.data);
            let ended_ms = self.header.end_time(&gate);
            (
                self.log.next_tail(),
                self.versions.latest(),
                header,
                ended_ms,
            )
        };
        self.log.flush_to(next.start)?;
        let header = Header {
            redo: start.start,
            page_count: latest.page_count,
            sequence: latest.sequence,
            ..header
        };
        let description = BackupDescription::of_log(header, start, next, ended_ms);
        Ok((next, description))
    }
}

impl LogBackup {
    /// Starts a backup of the log of a database that is not open, up to the last commit in it. Its data files are
    /// not needed. Nothing is changed; the log is not truncated.
    ///
    /// # Errors
    /// [`EngineError::NoLogChain`], [`EngineError::InUse`], a log that is damaged.
    pub fn of_file(files: &dyn FileSystem, path: &Path) -> Result<Self> {
        let file = files
            .open(path, OpenMode::Existing)
            .map_err(|error| EngineError::io("open", path, error))?;
        file.lock_exclusive()
            .map_err(|error| EngineError::lock(path, error))?;
        let mut header = Header::load(file.as_ref(), path)?;
        path.clone_into(&mut header.log.path);
        load_sequences(file.as_ref(), path, header.guid, &mut header.vlfs)?;
        let start = header
            .tail
            .ok_or_else(|| no_chain(&header.name, header.recovery_model))?;
        let reader = |at| {
            let file = Arc::clone(&file);
            LogReader::new(file, path, header.guid, &header.vlfs, at)
        };
        let end = find_end(reader(start.start).after(start.previous), start.start)?;
        let next = Tail {
            start: end.position,
            previous: match end.position == start.start {
                true => start.previous,
                false => end.previous,
            },
        };
        if next.start <= header.checkpoint && start.start <= header.checkpoint {
            return Err(breaks_off(path, next.start, header.checkpoint));
        }
        let replayed = replay(reader(header.redo), &header, path, next.start, |_, _, _| {
            Ok(())
        })?;
        let described = Header {
            redo: start.start,
            page_count: replayed.latest.page_count,
            sequence: replayed.latest.sequence,
            ..header.clone()
        };
        // The clock says nothing of when the log ended.
        let ended_ms = replayed.last_ms;
        let description = BackupDescription::of_log(described, start, next, ended_ms);
        Ok(Self {
            origin: Origin::File {
                file,
                header: Box::new(header),
            },
            start,
            next,
            description,
        })
    }

    /// The description to store with the backup.
    pub fn description(&self) -> &BackupDescription {
        &self.description
    }

    /// Identity of the history that the log continues.
    pub fn recovery_fork(&self) -> Guid {
        self.description.header.recovery_fork
    }

    /// The files at the end of the backup.
    pub fn files(&self) -> Vec<FileDescription> {
        let header = &self.description.header;
        FileDescription::list(header.files.clone(), header.log.clone())
    }

    pub fn first_lsn(&self) -> Lsn {
        self.start.start.lsn(1)
    }

    /// Locks the data files of a database that is not open, which have all of this log then.
    ///
    /// # Errors
    /// Opening the database would replay some of the log; a data file is missing, in use, or was changed by another
    /// program since.
    pub fn hold_data(&self, files: &dyn FileSystem) -> Result<Vec<Arc<dyn StorageFile>>> {
        let Origin::File { file, header } = &self.origin else {
            let name = self.description.name().to_owned();
            return Err(EngineError::Invalid(format!("database '{name}' is open")));
        };
        if !read_log(file, &header.log.path)?.is_replayed() {
            return Err(EngineError::Invalid(format!(
                "the data files of database '{}' do not have all of its log, which was full when it was closed: back up \
                 the log, and then its tail",
                header.name
            )));
        }
        let held = check_existing(files, header, 0..header.files.len())?;
        match header.files.iter().find(|file| !files.exists(&file.path)) {
            None => Ok(held),
            Some(FileSpec { path, .. }) => {
                let missing = std::io::ErrorKind::NotFound.into();
                Err(EngineError::io("open", path, missing))
            }
        }
    }

    /// The log, to be read in pieces.
    pub fn copy(&self) -> LogCopy {
        let reader = match &self.origin {
            Origin::Database { database, .. } => database.log.tail_reader(self.start),
            Origin::File { file, header } => {
                let (file, path) = (Arc::clone(file), &header.log.path);
                let at = self.start.start;
                LogReader::new(file, path, header.guid, &header.vlfs, at).after(self.start.previous)
            }
        };
        LogCopy::new(reader, self.start.start, self.next.start)
    }

    /// Call after the backup is safely on its media: the log before its end may be reused, if it was begun so.
    ///
    /// # Errors
    /// The log is not truncated; the backup is good.
    pub fn complete(self) -> Result<()> {
        match &self.origin {
            Origin::Database {
                database,
                truncates: true,
                ..
            } => database.move_tail(self.start, self.next),
            Origin::Database { .. } | Origin::File { .. } => Ok(()),
        }
    }
}

impl Drop for LogBackup {
    fn drop(&mut self) {
        match &self.origin {
            Origin::Database {
                database,
                hold,
                truncates,
            } => {
                database.log.release(*hold);
                if *truncates {
                    database.log_chain.give_back();
                }
            }
            Origin::File { file, .. } => {
                // Closing the file releases the lock as well.
                let _released = file.unlock();
            }
        }
    }
}

/// Whether a database in the recovery model FULL has commits that no log backup has, as far as its log says: without
/// a chain of log backups, that is everything since its last full backup or restore.
///
/// # Errors
/// Those of the operating system; a log that is damaged, or breaks off before its last checkpoint. Then nobody knows.
pub fn has_unsaved_tail(files: &dyn FileSystem, path: &Path) -> Result<bool> {
    let file = files
        .open(path, OpenMode::Existing)
        .map_err(|error| EngineError::io("open", path, error))?;
    let mut header = Header::load(file.as_ref(), path)?;
    if header.recovery_model != RecoveryModel::Full {
        return Ok(false);
    }
    let Some(Tail { start, previous }) = header.tail else {
        return Ok(!read_log(&file, path)?.is_unchanged());
    };
    load_sequences(file.as_ref(), path, header.guid, &mut header.vlfs)?;
    let mut reader = LogReader::new(file, path, header.guid, &header.vlfs, start).after(previous);
    let mut end = start;
    while let Some((block, bytes)) = reader.next()? {
        let records = &bytes[HEADER_BYTES..HEADER_BYTES + block.payload as usize];
        if Records::new(records).any(|record| matches!(record, Some(Record::Commit { .. }))) {
            return Ok(true);
        }
        end = block.end();
    }
    match end <= header.checkpoint && start <= header.checkpoint {
        true => Err(breaks_off(path, end, header.checkpoint)),
        false => Ok(false),
    }
}

fn breaks_off(path: &Path, end: Position, checkpoint: Position) -> EngineError {
    EngineError::Corrupt {
        path: path.to_owned(),
        what: format!(
            "the log breaks off at {end:?}, before its last checkpoint at {checkpoint:?}"
        ),
    }
}

fn no_chain(database: &str, model: RecoveryModel) -> EngineError {
    EngineError::NoLogChain {
        database: database.to_owned(),
        model,
    }
}

/// Milliseconds since 1970, UTC.
pub(super) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = now.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    });
    #[cfg(test)]
    let now_ms = now_ms + tests::AHEAD_MS.get();
    now_ms
}

#[cfg(test)]
pub(super) mod tests {
    thread_local! {
        /// How far the clock of this thread is ahead.
        pub(in crate::database) static AHEAD_MS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }
}
