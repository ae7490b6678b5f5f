//! Where backup bytes go and come from.
//!
//! A device holds one media family, or one mirror of it. Writing is strictly forward, so that the
//! same bytes can go to a disk file, to a tape or to an object store; reading is by position.
//! Devices know nothing of tape format: `media` says what the bytes are, `pipeline` moves them.
//!
//! A writer that is dropped before [`DeviceWriter::commit`] takes back what it did: a new or
//! overwritten file never appears under its name, an append is cut off again. The bytes of earlier
//! backup sets are never touched.
//!
//! Any number of readers may have a device open, or one writer.
#![forbid(unsafe_code)]

mod address;
mod disk_read;
mod disk_write;
mod error;
mod nul;
mod transfer;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::FlockOperation;
use windlass_io::queue::{IoMethod, IoMethodChoice};
use windlass_io::{DirectFile, PooledBuffer};

pub use address::{DeviceAddress, DeviceKind};
pub use error::{Error, Operation, system_text};

/// Where a writer starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// A new family: the file is made beside its name and takes the name on commit.
    Replace,
    /// After the bytes that are already there; what lies behind `at` (an interrupted append) goes.
    Append {
        /// Where the good part of the family ends, in bytes from its start.
        at: u64,
    },
}

/// How a device is written.
#[derive(Debug, Clone, Copy)]
pub struct WriteTuning {
    /// Bytes in one write.
    pub transfer_bytes: usize,
    /// Writes in flight.
    pub depth: usize,
    /// What carries them.
    pub io_method: IoMethodChoice,
}

/// What a writer did so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteCounters {
    /// Bytes handed to the operating system.
    pub bytes: u64,
    /// Write calls.
    pub calls: u64,
    /// Time spent waiting for them.
    pub busy: Duration,
    /// Writes in flight, summed over that time.
    pub in_flight: Duration,
}

/// The writing end of a device, strictly forward.
pub trait DeviceWriter: Send + fmt::Debug {
    /// Where the next byte goes, counted from the start of the family.
    fn position(&self) -> u64;

    /// Adds bytes, copying them into the transfer buffer.
    fn append(&mut self, bytes: &[u8]) -> Result<(), Error>;

    /// Adds the first `bytes` bytes of a buffer, which may be written straight from where they lie,
    /// after this call has returned.
    ///
    /// No copy is made when [`DeviceWriter::position`] and the memory are aligned to
    /// [`windlass_io::DIRECT_ALIGNMENT`]; otherwise the same as [`DeviceWriter::append`].
    fn append_in_place(&mut self, buffer: &Arc<PooledBuffer>, bytes: usize) -> Result<(), Error>;

    /// Hands everything to the medium and waits until it would survive a power failure.
    fn sync(&mut self) -> Result<(), Error>;

    /// Waits for one write that holds a buffer given to [`DeviceWriter::append_in_place`]; `false` when
    /// there is none. For a caller that has nothing to append: whoever fills its buffers may be waiting
    /// for just these.
    fn release(&mut self) -> Result<bool, Error> {
        Ok(false)
    }

    /// Waits until what comes next cannot survive a power failure that what was written so far does not.
    fn barrier(&mut self) -> Result<(), Error> {
        self.sync()
    }

    /// Makes what was synced visible under the device's name, for good.
    fn commit(self: Box<Self>) -> Result<(), Error>;

    /// What it did so far.
    fn counters(&self) -> WriteCounters;

    /// What carries its writes, and why; `None` for a device that carries nothing.
    fn io_method(&self) -> Option<(IoMethod, &str)> {
        None
    }
}

/// The reading end of a device.
pub trait DeviceReader: Send + Sync + fmt::Debug {
    /// Length of the family in bytes.
    fn len(&self) -> u64;

    /// Whether there is nothing on the device.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The file that holds the family, for callers that keep many reads in flight; `None` where
    /// only [`DeviceReader::read_at`] will do.
    fn file(&self) -> Option<&Arc<DirectFile>> {
        None
    }

    /// Reads up to `buffer.len()` bytes at `offset`; fewer only at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Error>;
}

/// Keeps other processes away from a device while it is open; never waits.
fn lock(file: &DirectFile, operation: FlockOperation) -> io::Result<()> {
    rustix::fs::flock(file.as_file(), operation).map_err(|error| match error {
        rustix::io::Errno::WOULDBLOCK => busy(operation),
        other => other.into(),
    })
}

/// Why somebody is kept away.
fn busy(operation: FlockOperation) -> io::Error {
    let reason = match operation {
        FlockOperation::NonBlockingLockShared => {
            "another backup is writing to it; try again when it has ended"
        }
        _ => "another backup, restore or verification is using it; try again when it has ended",
    };
    io::Error::new(io::ErrorKind::WouldBlock, reason)
}
