//! Last stage of a backup: writes each chunk to whichever media family is free.

use std::sync::Arc;

use crossbeam_channel::{Receiver, TryRecvError};
use windlass_codec::Algorithm;
use windlass_device::DeviceWriter;
use windlass_io::DIRECT_ALIGNMENT;
use windlass_media::{FamilyWriter, SetConfiguration};

use super::transform::Chunk;
use crate::control::{Control, timed};
use crate::error::Error;
use crate::fault::FaultPoint;
use crate::live::Meter;
use crate::plan::ChosenIoMethod;
use crate::report::{Stage, StageCounters};
use crate::throttle::Throttle;

/// Compressed chunks are packed as closely as the tape format allows.
const PACKED_ALIGNMENT: u32 = 4;

/// One media family being written, with its mirrors.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) writer: FamilyWriter,
    pub(super) number: u16,
    /// The device and its mirrors: all receive the same bytes.
    pub(super) devices: Vec<Box<dyn DeviceWriter>>,
    throttle: Option<Throttle>,
    /// Bytes in tape format on their way to the devices; reused.
    scratch: Vec<u8>,
    /// What [`Family::count_writes`] has added.
    counted: StageCounters,
}

impl Family {
    pub(super) fn new(
        writer: FamilyWriter,
        number: u16,
        devices: Vec<Box<dyn DeviceWriter>>,
        max_rate: Option<u64>,
    ) -> Self {
        Self {
            writer,
            number,
            devices,
            throttle: Throttle::new(max_rate),
            scratch: Vec::new(),
            counted: StageCounters::default(),
        }
    }

    /// Writes the start of the set.
    pub(super) fn begin(&mut self, set: &SetConfiguration) -> Result<(), Error> {
        let start = self
            .writer
            .begin_set(set)
            .map_err(|error| self.media_error(error))?;
        self.append(&start)
    }

    /// Appends blocks to every copy.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        for device in &mut self.devices {
            device.append_blocks(bytes)?;
        }
        Ok(())
    }

    /// The hash of all chunk headers of the set.
    pub(super) fn chunk_headers(&self) -> Result<[u8; 32], Error> {
        let hash = self.writer.chunk_headers();
        hash.map_err(|error| self.media_error(error))
    }

    fn media_error(&self, source: windlass_media::MediaError) -> Error {
        Error::Media {
            device: format!("media family {}", self.number),
            source,
        }
    }

    /// Writes chunks until the queue is closed.
    pub(super) fn run(
        &mut self,
        chunks: &Receiver<Chunk>,
        control: &Control<'_>,
    ) -> Result<StageCounters, Error> {
        let mut meter = Meter::begin(&control.live, Stage::Write);
        while !control.is_stopped() {
            let next = timed(&mut meter.counters.wait_input, || self.next(chunks))?;
            let Some(chunk) = next else {
                break;
            };
            if !control.goes_on(FaultPoint::BackupWrite)? {
                break;
            }
            let stored_bytes = u64::from(chunk.header.stored_bytes);
            if let Some(throttle) = &mut self.throttle {
                throttle.hold(control, &mut meter.counters);
                throttle.take(stored_bytes);
            }
            timed(&mut meter.counters.busy, || self.write(chunk, control))?;
            meter.counters.bytes_in += stored_bytes;
            self.count_writes(&mut meter.counters);
            meter.announce();
        }
        Ok(meter.end())
    }

    /// The next chunk; `None` when the queue is closed. Before blocking, returns the buffers of
    /// finished writes: the reader may need them to produce the next chunk.
    fn next(&mut self, chunks: &Receiver<Chunk>) -> Result<Option<Chunk>, Error> {
        loop {
            match chunks.try_recv() {
                Ok(chunk) => return Ok(Some(chunk)),
                Err(TryRecvError::Disconnected) => return Ok(None),
                Err(TryRecvError::Empty) => {}
            }
            let mut released = false;
            for device in &mut self.devices {
                released |= device.release()?;
            }
            if !released {
                return Ok(chunks.recv().ok());
            }
        }
    }

    /// Adds what the devices, mirrors included, have written since the last call.
    pub(super) fn count_writes(&mut self, counters: &mut StageCounters) {
        let mut written = StageCounters::default();
        for device in self.devices.iter().map(|device| device.counters()) {
            written.bytes_out += device.bytes;
            written.calls += device.calls;
            written.block_calls += device.block_calls;
            written.block_bytes += device.block_bytes;
            written.in_flight += device.in_flight;
        }
        counters.add(&written.since(&self.counted));
        self.counted = written;
    }

    /// The I/O method of the first copy.
    pub(super) fn io_method(&self) -> Option<ChosenIoMethod> {
        let (method, because) = self.devices.first()?.io_method()?;
        Some(ChosenIoMethod {
            method,
            because: because.to_owned(),
        })
    }

    /// Passes a chunk to the devices, then accounts for its content.
    fn write(&mut self, mut chunk: Chunk, control: &Control<'_>) -> Result<(), Error> {
        chunk.header.family = self.number;
        let stored_plain = chunk.header.codec == Algorithm::None.id();
        let alignment = if stored_plain {
            DIRECT_ALIGNMENT as u32
        } else {
            PACKED_ALIGNMENT
        };
        let stored_bytes = chunk.header.stored_bytes as usize;
        let payload = Arc::new(chunk.payload);
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        self.writer
            .chunk_header(&chunk.header, alignment, &mut scratch)
            .map_err(|error| self.media_error(error))?;
        for device in &mut self.devices {
            device.append_blocks(&scratch)?;
            if stored_plain {
                device.append_in_place(&payload, stored_bytes)?;
            } else {
                device.append(&payload[..stored_bytes])?;
            }
        }
        scratch.clear();
        self.writer.chunk_written(&mut scratch);
        self.append(&scratch)?;
        self.scratch = scratch;
        let header = &chunk.header;
        let held = control
            .coverage
            .hold(header.kind, header.file_id, &header.runs);
        held.map_err(|refusal| {
            let first = header.runs.first().map_or(0, |run| run.offset);
            let last = header.runs.last();
            let end = last.map_or(first, |run| run.offset + u64::from(run.bytes));
            (control.coverage).not_stored(header.file_id, first..end, refusal)
        })
    }

    /// Writes everything before the end of the set, so that it becomes durable first.
    pub(super) fn end_data(&mut self, set: &SetConfiguration) -> Result<(), Error> {
        let bytes = self
            .writer
            .end_of_data(set)
            .map_err(|error| self.media_error(error))?;
        self.append(&bytes)?;
        self.devices
            .iter_mut()
            .try_for_each(|device| Ok(device.barrier()?))
    }

    /// Writes the end of the set and waits until it is durable.
    pub(super) fn end_set(&mut self) -> Result<(), Error> {
        let bytes = self
            .writer
            .end_set()
            .map_err(|error| self.media_error(error))?;
        self.append(&bytes)?;
        self.devices
            .iter_mut()
            .try_for_each(|device| Ok(device.sync()?))
    }
}
