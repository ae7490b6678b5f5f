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

    fn append_blocks(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.counters.count(bytes.len() as u64, false);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.counters.count(bytes.len() as u64, true);
        Ok(())
    }

    fn append_in_place(&mut self, buffer: &Arc<PooledBuffer>, bytes: usize) -> Result<(), Error> {
        self.append(&buffer[..bytes])
    }

    fn sync(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn prepare(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn take_name(&mut self, _keeps_earlier: bool) -> Result<(), Error> {
        Ok(())
    }

    fn give_back_name(&mut self) -> bool {
        true
    }

    fn keep(self: Box<Self>) -> Option<String> {
        None
    }

    fn settle(self: Box<Self>) {}

    fn counters(&self) -> WriteCounters {
        self.counters
    }
}
