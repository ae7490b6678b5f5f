//! The device that discards what is written and counts it.

use std::sync::Arc;

use windlass_io::PooledBuffer;

use crate::{DeviceWriter, Error, WriteCounters};

/// Writes to `DISK = 'NUL'`.
#[derive(Debug, Default)]
pub(crate) struct NulWriter {
    counters: WriteCounters,
}

impl DeviceWriter for NulWriter {
    fn position(&self) -> u64 {
        self.counters.bytes
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.counters.bytes += bytes.len() as u64;
        self.counters.calls += 1;
        Ok(())
    }

    fn append_in_place(&mut self, buffer: &Arc<PooledBuffer>, bytes: usize) -> Result<(), Error> {
        self.append(&buffer[..bytes])
    }

    fn sync(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<(), Error> {
        Ok(())
    }

    fn counters(&self) -> WriteCounters {
        self.counters
    }
}
