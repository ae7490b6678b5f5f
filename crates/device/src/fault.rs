//! A device that fails on purpose, for tests of everything above.
//!
//! Wraps a real writer or reader and fails from the n-th octet on, the way a full or dying disk
//! does: everything before works, everything after fails.

use std::io;

use crate::error::{Error, Operation};
use crate::{DeviceReader, DeviceWriter, WriteCounters};

/// A writer that runs out of space.
#[derive(Debug)]
pub struct FullDisk {
    inner: Box<dyn DeviceWriter>,
    bytes_left: u64,
    name: String,
}

impl FullDisk {
    /// Lets `bytes_left` more octets through.
    pub fn new(inner: Box<dyn DeviceWriter>, name: &str, bytes_left: u64) -> Self {
        Self {
            inner,
            bytes_left,
            name: name.to_owned(),
        }
    }

    fn spend(&mut self, octets: &[u8]) -> Result<(), Error> {
        match self.bytes_left.checked_sub(octets.len() as u64) {
            Some(left) => {
                self.bytes_left = left;
                Ok(())
            }
            None => {
                let full = io::Error::from(rustix::io::Errno::NOSPC);
                Err(Error::new(Operation::Write, &self.name, full))
            }
        }
    }
}

impl DeviceWriter for FullDisk {
    fn position(&self) -> u64 {
        self.inner.position()
    }

    fn append(&mut self, octets: &[u8]) -> Result<(), Error> {
        self.spend(octets)?;
        self.inner.append(octets)
    }

    fn append_in_place(&mut self, octets: &[u8]) -> Result<(), Error> {
        self.spend(octets)?;
        self.inner.append_in_place(octets)
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.inner.sync()
    }

    fn commit(self: Box<Self>) -> Result<(), Error> {
        self.inner.commit()
    }

    fn counters(&self) -> WriteCounters {
        self.inner.counters()
    }
}

/// A reader with an unreadable place.
#[derive(Debug)]
pub struct BadSector {
    inner: Box<dyn DeviceReader>,
    offset: u64,
    name: String,
}

impl BadSector {
    /// Fails every read that touches the octet at `offset`.
    pub fn new(inner: Box<dyn DeviceReader>, name: &str, offset: u64) -> Self {
        Self {
            inner,
            offset,
            name: name.to_owned(),
        }
    }
}

impl DeviceReader for BadSector {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Error> {
        if (offset..offset + buffer.len() as u64).contains(&self.offset) {
            let bad = io::Error::from(rustix::io::Errno::IO);
            return Err(Error::new(Operation::Read, &self.name, bad));
        }
        self.inner.read_at(buffer, offset)
    }
}
