//! Verifies the log in a log backup: takes its chunks as a restore would, and writes nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use windlass_base::Lsn;
use windlass_engine::LogCheck;

use super::{LOG_FILE_ID, describe, engine_error};
use crate::{Error, Recovery, RestoreTarget};

/// A restore that only checks.
#[derive(Debug)]
pub struct LogVerification(Mutex<LogCheck>);

impl LogVerification {
    /// For a set with this description; `None` if it is none of a log backup. It also finds what is before `lsns`.
    ///
    /// # Errors
    /// The description is damaged.
    pub fn of(
        description: &[u8],
        lsns: impl IntoIterator<Item = Lsn>,
    ) -> Result<Option<Self>, Error> {
        let description = describe(description)?;
        let is_log = description.is_log();
        Ok(is_log.then(|| Self(Mutex::new(LogCheck::new(description).asking(lsns)))))
    }

    /// [`LogCheck::before`].
    pub fn before(&self) -> BTreeMap<Lsn, Option<u64>> {
        self.check().before()
    }

    /// [`LogCheck::knows_before`].
    pub fn knows_before(&self) -> bool {
        self.check().knows_before()
    }

    fn check(&self) -> MutexGuard<'_, LogCheck> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RestoreTarget for LogVerification {
    fn write(&self, file_id: u16, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        if file_id != LOG_FILE_ID {
            return Err(Error::OutOfRange {
                file_id,
                offset,
                bytes: bytes.len() as u64,
                size_bytes: 0,
            });
        }
        self.check().piece(offset, bytes).map_err(engine_error)
    }

    /// Whether the blocks continue one another, from the first LSN of the set to the last.
    fn finish(self: Box<Self>, _recovery: Recovery) -> Result<(), Error> {
        let check = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        check.finish().map_err(engine_error)
    }

    fn abandon(self: Box<Self>) -> Result<(), Error> {
        Ok(())
    }
}
