//! The destinations and sources of backup bytes.
//!
//! A device holds one media family, or one mirror of it. Writing is strictly sequential, so that
//! the same bytes can go to a disk file, a tape or an object store; reading is by position. Devices
//! know nothing of tape format: `media` defines the bytes, `pipeline` moves them.
//!
//! A writer that is dropped before [`commit()`] undoes its work: a new or overwritten
//! file never appears under its name, and an append is truncated. The bytes of earlier backup sets
//! are never touched.
//!
//! A device can be open for any number of readers or for one writer.
#![forbid(unsafe_code)]

mod address;
mod commit;
mod disk_read;
mod disk_write;
mod error;
mod folder;
mod naming;
mod nul;
mod object;
mod removal;
#[cfg(test)]
mod testing;
mod transfer;

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::FlockOperation;
use windlass_io::queue::{IoMethod, IoMethodChoice};
use windlass_io::{DirectFile, PooledBuffer};

pub use address::DeviceAddress;
pub use commit::commit;
pub use error::{Error, Operation, system_text};
pub use folder::DeviceFolder;
pub use naming::{STAGING_SUFFIX, staging_path};
pub use object::{
    AZURE_SIGNATURE, Access, ENDS_BYTES, GOOGLE_ACCOUNT, KeyError, ListedObject, LockMode, Locked,
    MANAGED_IDENTITY, ObjectLock, ObjectSettings, ObjectUrl, PARTS_MAX, PIECE_BYTES, PartChecksum,
    Probed, Removed, S3_KEY, SideAddress, SideObject, StoreKind, UnfinishedUpload, UrlError,
    give_up_when, post_json,
};
pub use removal::Held;

/// Where a writer starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// A new family where there is none: the file is staged and renamed on commit. Refused if another
    /// backup has put something there in the meantime.
    Create,
    /// A new family in place of what is there now: the file is staged and renamed on commit. Refused if something else
    /// has the name by then.
    Replace,
    /// After the existing bytes; anything after `at` (an interrupted append) is truncated.
    Append {
        /// End of the intact part of the family, in bytes from its start.
        at: u64,
        /// Length of the file when that was found out. Refused if another backup has been there in the
        /// meantime: its set would be cut off.
        length: u64,
    },
}

/// How a device is written.
#[derive(Debug, Clone, Copy)]
pub struct WriteTuning {
    /// Bytes per write.
    pub transfer_bytes: usize,
    /// Bytes of a part of an object.
    pub part_bytes: usize,
    /// Writes in flight.
    pub depth: usize,
    pub io_method: IoMethodChoice,
}

/// Statistics of a writer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteCounters {
    /// Bytes passed to the operating system.
    pub bytes: u64,
    /// Writes of data, with the blocks packed between them.
    pub calls: u64,
    /// Writes that contain nothing but blocks of the tape format.
    pub block_calls: u64,
    /// The part of `bytes` in such writes.
    pub block_bytes: u64,
    /// Time spent waiting for them.
    pub busy: Duration,
    /// Writes in flight, integrated over that time.
    pub in_flight: Duration,
}

impl WriteCounters {
    /// Counts a write of `bytes`.
    fn count(&mut self, bytes: u64, holds_data: bool) {
        self.bytes += bytes;
        if holds_data {
            self.calls += 1;
        } else {
            self.block_calls += 1;
            self.block_bytes += bytes;
        }
    }
}

/// Writes a device, strictly sequentially.
pub trait DeviceWriter: Send + fmt::Debug {
    /// Offset of the next byte in the family.
    fn position(&self) -> u64;

    /// Appends blocks of the tape format, copying them into the transfer buffer.
    fn append_blocks(&mut self, bytes: &[u8]) -> Result<(), Error>;

    /// Appends data, copying it into the transfer buffer.
    fn append(&mut self, bytes: &[u8]) -> Result<(), Error>;

    /// Appends the first `bytes` bytes of a buffer, which may be written directly from the buffer
    /// after this call has returned.
    ///
    /// Makes no copy if [`DeviceWriter::position`] and the memory are aligned to
    /// [`windlass_io::DIRECT_ALIGNMENT`]; otherwise the same as [`DeviceWriter::append`].
    fn append_in_place(&mut self, buffer: &Arc<PooledBuffer>, bytes: usize) -> Result<(), Error>;

    /// Writes everything out and waits until it would survive a power failure.
    fn sync(&mut self) -> Result<(), Error>;

    /// Waits for one write of a buffer given to [`DeviceWriter::append_in_place`]; `false` if none is in
    /// flight. Call it before blocking: the producer may be waiting for these buffers.
    fn release(&mut self) -> Result<bool, Error> {
        Ok(false)
    }

    /// Write barrier: nothing written later becomes durable before everything written so far.
    fn barrier(&mut self) -> Result<(), Error> {
        self.sync()
    }

    /// Does everything that can fail before what was synced gets the device's name.
    fn prepare(&mut self) -> Result<(), Error>;

    /// Makes what was prepared visible under the device's name, permanently. If `keeps_earlier`, what had the
    /// name before is kept until [`DeviceWriter::settle`], where that is possible.
    fn take_name(&mut self, keeps_earlier: bool) -> Result<(), Error>;

    /// Whether it waits for another machine, and may be named while others are: it takes nothing from an earlier backup.
    fn is_named_at_once(&self) -> bool {
        false
    }

    /// Undoes [`DeviceWriter::take_name`], also after it failed. `false` if what had the name is gone.
    fn give_back_name(&mut self) -> bool;

    /// Keeps what was written wherever it is; returns its place. `None` if it is nowhere without its name.
    fn keep(self: Box<Self>) -> Option<String>;

    /// Removes what had the name before.
    fn settle(self: Box<Self>);

    fn counters(&self) -> WriteCounters;

    /// The I/O method of its writes, and the reason; `None` for a device that does no I/O.
    fn io_method(&self) -> Option<(IoMethod, &str)> {
        None
    }
}

pub trait DeviceReader: Send + Sync + fmt::Debug {
    /// Length of the family in bytes.
    fn len(&self) -> u64;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The file of the family, for callers with many reads in flight; `None` if only
    /// [`DeviceReader::read_at`] works.
    fn file(&self) -> Option<&Arc<DirectFile>> {
        None
    }

    /// The parts of the family for which its file stores nothing, so that they read as zeros: something else
    /// truncated the file, unless zeros were written there and the file system does not store those. Empty
    /// if the file system does not tell.
    fn holes(&self) -> Result<Vec<Range<u64>>, Error> {
        Ok(Vec::new())
    }

    /// Reads up to `buffer.len()` bytes at `offset`; fewer only at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Error>;
}

/// Locks out other processes while a device is open; never waits.
fn lock(file: &DirectFile, operation: FlockOperation) -> io::Result<()> {
    rustix::fs::flock(file.as_file(), operation).map_err(|error| match error {
        rustix::io::Errno::WOULDBLOCK => busy(operation),
        other => other.into(),
    })
}

/// The reason for a refused lock.
fn busy(operation: FlockOperation) -> io::Error {
    let reason = match operation {
        FlockOperation::NonBlockingLockShared => {
            "another backup is writing to it; try again when it has ended"
        }
        _ => "another backup, restore or verification is using it; try again when it has ended",
    };
    io::Error::new(io::ErrorKind::WouldBlock, reason)
}
