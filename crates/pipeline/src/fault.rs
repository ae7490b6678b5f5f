//! Points where tests make a thread of a run fail, to check that a failure is never taken for
//! success.
//!
//! Active only with debug assertions; otherwise [`Control::goes_on`] is the constant `true`.

use crate::control::Control;
use crate::error::Error;

/// What happens to a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Panic,
    /// It ends with an error.
    Error,
    /// It exits as if no work were left.
    End,
}

/// A point in a thread, reached once per unit of its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultPoint {
    /// A frame of the database was read.
    BackupRead,
    /// A piece of the log was read.
    BackupLog,
    /// A frame is about to become a chunk.
    BackupTransform,
    /// A chunk is about to be written.
    BackupWrite,
    /// Everything of a family before the end of the set is about to be written.
    BackupEndData,
    /// The end of the set is about to be written to a family.
    BackupEndSet,
    /// A chunk was read from the media.
    RestoreRead,
    /// A chunk is about to become a frame.
    RestoreTransform,
    /// A frame is about to be written to the target.
    RestoreWrite,
    /// A chunk with a selected page is about to be read.
    RestoreSelected,
}

impl Control<'_> {
    /// Whether the thread continues with the next unit of its work.
    #[cfg(debug_assertions)]
    pub(crate) fn goes_on(&self, at: FaultPoint) -> Result<bool, Error> {
        match self.observer().fault(at) {
            None => Ok(true),
            Some(Fault::End) => Ok(false),
            Some(Fault::Error) => Err(Error::FrameTooLarge { bytes: 0 }),
            Some(Fault::Panic) => panic!("a test asked for it"),
        }
    }

    /// No faults in release builds.
    #[cfg(not(debug_assertions))]
    #[inline(always)]
    pub(crate) const fn goes_on(&self, _at: FaultPoint) -> Result<bool, Error> {
        Ok(true)
    }
}
