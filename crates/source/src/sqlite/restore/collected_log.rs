//! The log of a log backup, collected in a file until all of it has been seen.

use std::path::Path;
use std::sync::OnceLock;

use windlass_io::{DirectFile, own};
use windlass_media::WalPosition;

use super::log_verify;
use crate::sqlite::file_error;
use crate::sqlite::log_description::LogDescription;
use crate::sqlite::log_snapshot::LOG_FILE_ID;
use crate::sqlite::spool::{self, Records, SpoolError, Stop};
use crate::{Error, Recovery, RestoreTarget};

/// The file is removed when this is dropped.
#[derive(Debug)]
pub(super) struct CollectedLog {
    pub(super) description: LogDescription,
    file: DirectFile,
}

impl CollectedLog {
    /// The log that `description` is of, in a new file.
    pub(super) fn create(description: LogDescription, path: &Path) -> Result<Self, Error> {
        let file = own::claim(path).map_err(|error| file_error("create", path, error))?;
        Ok(Self { description, file })
    }

    fn path(&self) -> &Path {
        self.file.path()
    }

    /// Writes a part of it.
    pub(super) fn write(&self, file_id: u16, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let (count, size_bytes) = (bytes.len() as u64, self.description.log_bytes);
        let fits = offset
            .checked_add(count)
            .is_some_and(|end| end <= size_bytes);
        if file_id != LOG_FILE_ID || !fits {
            return Err(Error::OutOfRange {
                file_id,
                offset,
                bytes: count,
                size_bytes,
            });
        }
        let written = self.file.write_at(bytes, offset);
        written.map_err(|error| file_error("write", self.path(), error))
    }

    pub(super) fn records(&self) -> Records {
        Records::joined(self.path().to_owned())
    }

    /// Checks that it is all of what the set describes.
    pub(super) fn check(&self) -> Result<(), Error> {
        let synced = self.file.sync();
        synced.map_err(|error| file_error("sync", self.path(), error))?;
        log_verify::check(&mut self.records(), &self.description, self.path())
    }

    pub(super) fn remove(&self) -> Result<(), Error> {
        own::remove(self.path()).map_err(|error| file_error("remove", self.path(), error))
    }
}

impl Drop for CollectedLog {
    fn drop(&mut self) {
        // The error cannot be returned from a drop; the next restore removes the remains.
        let _left = own::remove(self.path());
    }
}

/// A restore that only collects the log, to see which states it goes on from.
#[derive(Debug)]
pub struct LogReading {
    log: CollectedLog,
    lack: OnceLock<String>,
}

impl LogReading {
    /// For a set with this description, in a new file; `None` if it is none of a log backup.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn of(description: &[u8], file: &Path) -> Result<Option<Self>, Error> {
        let Some(description) = LogDescription::parse(description) else {
            return Ok(None);
        };
        Ok(Some(Self {
            log: CollectedLog::create(description, file)?,
            lack: OnceLock::new(),
        }))
    }

    /// Why the log could not be collected, if it is not the backup that is at fault but this machine: it has no room, say.
    pub fn lack(&self) -> Option<&str> {
        self.lack.get().map(String::as_str)
    }

    /// Which of some states the collected log goes on from, as a restore of the log finds it.
    ///
    /// # Errors
    /// The log is not all of what the set describes, or cannot be read.
    pub fn goes_on_from(&self, states: &[WalPosition]) -> Result<Vec<bool>, Error> {
        self.log.check()?;
        let goes_on = |state| {
            let found = spool::find_in(
                &mut self.log.records(),
                self.log.path(),
                state,
                Stop::Latest,
            );
            match found {
                Ok(_) => Ok(true),
                Err(Error::Spool(SpoolError::NotTied { .. })) => Ok(false),
                Err(error) => Err(error),
            }
        };
        states.iter().map(goes_on).collect()
    }
}

impl RestoreTarget for LogReading {
    fn write(&self, file_id: u16, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let written = self.log.write(file_id, offset, bytes);
        if let Err(error) = &written
            && !matches!(error, Error::OutOfRange { .. })
        {
            self.lack.get_or_init(|| error.to_string());
        }
        written
    }

    fn finish(self: Box<Self>, _recovery: Recovery) -> Result<(), Error> {
        self.log.check()
    }

    fn abandon(self: Box<Self>) -> Result<(), Error> {
        self.log.remove()
    }
}
