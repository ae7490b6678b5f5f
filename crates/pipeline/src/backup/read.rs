//! First stage of a backup: fills frames from the snapshot, with several reads in flight.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::Sender;
use windlass_io::queue::{Direction, Memory, Queue, Transfer};
use windlass_io::{BufferPool, PooledBuffer};
use windlass_media::ChunkKind;
use windlass_source::Snapshot;

use crate::control::{Control, timed};
use crate::error::Error;
use crate::fault::FaultPoint;
use crate::live::Meter;
use crate::report::{Stage, StageCounters};
use crate::throttle::Throttle;

/// A range of a database file, as of the snapshot.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: ChunkKind,
    pub(super) file_id: u16,
    /// First byte in the database file; a multiple of the extent size.
    pub(super) offset: u64,
    /// Bytes of `buffer` that are filled.
    pub(super) bytes: usize,
    pub(super) buffer: PooledBuffer,
}

/// What remains to be read, handed out frame by frame in file order.
pub(super) struct Schedule {
    frame_bytes: u64,
    rest: Mutex<Vec<(u16, Range<u64>)>>,
}

impl Schedule {
    pub(super) fn new(snapshot: &dyn Snapshot, frame_bytes: usize) -> Self {
        let mut rest: Vec<_> = snapshot
            .files()
            .iter()
            .flat_map(|file| {
                snapshot
                    .ranges(file.id)
                    .into_iter()
                    .map(|range| (file.id, range))
            })
            .collect();
        rest.reverse();
        Self {
            frame_bytes: frame_bytes as u64,
            rest: Mutex::new(rest),
        }
    }

    pub(super) fn total_bytes(&self) -> u64 {
        let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        rest.iter().map(|(_, range)| range.end - range.start).sum()
    }

    /// File, first byte and length of the next frame.
    fn next(&self) -> Option<(u16, u64, usize)> {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let (file_id, range) = rest.last_mut()?;
            let bytes = (range.end - range.start).min(self.frame_bytes);
            if bytes > 0 {
                let offset = range.start;
                range.start += bytes;
                return Some((*file_id, offset, bytes as usize));
            }
            rest.pop();
        }
    }
}

/// Reads frames until the schedule is empty, with up to `depth` reads in flight.
pub(super) struct Reader<'a> {
    snapshot: &'a dyn Snapshot,
    schedule: &'a Schedule,
    pool: &'a BufferPool,
    frames: Sender<Frame>,
    control: &'a Control<'a>,
    queue: Queue,
    throttle: Option<Throttle>,
    meter: Meter<'a>,
}

/// Result of an attempt to start a read.
enum Started {
    /// A read is in flight, or was completed immediately.
    Yes,
    /// No buffer is free, or the rate limit is reached.
    NotYet,
    /// Nothing is left to read, or no receiver is left.
    Finished,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        snapshot: &'a dyn Snapshot,
        schedule: &'a Schedule,
        pool: &'a BufferPool,
        frames: Sender<Frame>,
        control: &'a Control<'a>,
        queue: Queue,
    ) -> Self {
        Self {
            snapshot,
            schedule,
            pool,
            frames,
            control,
            queue,
            throttle: None,
            meter: Meter::begin(&control.live, Stage::Read),
        }
    }

    /// Limits the reads to `max_rate` bytes per second.
    pub(super) fn within(self, max_rate: Option<u64>) -> Self {
        Self {
            throttle: Throttle::new(max_rate),
            ..self
        }
    }

    pub(super) fn run(mut self) -> Result<StageCounters, Error> {
        let mut is_finished = false;
        while !self.control.is_stopped() {
            while !is_finished && self.queue.has_room() {
                match self.start()? {
                    Started::Yes => {}
                    Started::NotYet => break,
                    Started::Finished => is_finished = true,
                }
            }
            if !self.complete()? {
                break;
            }
        }
        if is_finished && !self.control.is_stopped() {
            self.read_log()?;
        }
        Ok(self.meter.end())
    }

    fn start(&mut self) -> Result<Started, Error> {
        if let Some(throttle) = &self.throttle
            && !throttle.is_open()
        {
            if self.queue.in_flight() > 0 {
                return Ok(Started::NotYet);
            }
            throttle.hold(self.control, &mut self.meter.counters);
        }
        // Only a reader with nothing in flight waits for a buffer; any other has completions to
        // collect.
        let buffer = match self.queue.in_flight() {
            0 => match timed(&mut self.meter.counters.wait_output, || self.pool.take()) {
                Some(buffer) => buffer,
                None => return Ok(Started::Finished),
            },
            _ => match self.pool.try_take() {
                Some(buffer) => buffer,
                None => return Ok(Started::NotYet),
            },
        };
        let Some((file_id, offset, bytes)) = self.schedule.next() else {
            return Ok(Started::Finished);
        };
        if let Some(throttle) = &mut self.throttle {
            throttle.take(bytes as u64);
        }
        let Some(file) = self.snapshot.located(file_id, offset, bytes)? else {
            return self.read_now(file_id, offset, bytes, buffer);
        };
        let transfer = Transfer {
            file,
            direction: Direction::Read,
            offset,
            memory: Memory::Pooled(buffer),
            range: 0..bytes,
            tag: u64::from(file_id),
        };
        match self.queue.submit(transfer) {
            Ok(()) => Ok(Started::Yes),
            Err(refused) => match refused.memory {
                Memory::Pooled(buffer) => self.read_now(file_id, offset, bytes, buffer),
                _ => {
                    let lost = std::io::Error::other("a read was refused without its buffer");
                    Err(self.failed_read(file_id, offset, &lost))
                }
            },
        }
    }

    /// Reads a range that is not contiguous in a file.
    fn read_now(
        &mut self,
        file_id: u16,
        offset: u64,
        bytes: usize,
        mut buffer: PooledBuffer,
    ) -> Result<Started, Error> {
        let mut taken = Duration::ZERO;
        timed(&mut taken, || {
            self.snapshot.read(file_id, offset, &mut buffer[..bytes])
        })?;
        self.meter.counters.busy += taken;
        self.meter.counters.in_flight += taken;
        match self.hand_on_data(data_frame(file_id, offset, bytes, buffer))? {
            true => Ok(Started::Yes),
            false => Ok(Started::Finished),
        }
    }

    /// Waits for a read and passes its frame on; `false` if none is in flight, or no receiver is
    /// left.
    fn complete(&mut self) -> Result<bool, Error> {
        let (mut waited, in_flight) = (Duration::ZERO, self.queue.in_flight() as u32);
        let done = timed(&mut waited, || self.queue.wait());
        let Some(done) = done.map_err(|error| self.failed_read(0, 0, &error))? else {
            return Ok(false);
        };
        self.meter.counters.busy += waited;
        self.meter.counters.in_flight += waited * in_flight;
        let Transfer {
            offset, range, tag, ..
        } = done.transfer;
        let Memory::Pooled(mut buffer) = done.transfer.memory else {
            let lost = std::io::Error::other("a read came back without its buffer");
            return Err(self.failed_read(tag as u16, offset, &lost));
        };
        let (file_id, bytes) = (tag as u16, range.len());
        timed(&mut self.meter.counters.busy, || {
            self.snapshot
                .amend(file_id, offset, &mut buffer[..bytes], done.result)
        })?;
        self.hand_on_data(data_frame(file_id, offset, bytes, buffer))
    }

    /// `false` if no receiver is left.
    fn hand_on_data(&mut self, frame: Frame) -> Result<bool, Error> {
        Ok(self.control.goes_on(FaultPoint::BackupRead)? && self.hand_on(frame))
    }

    /// All data are read: reads the log that makes the copy consistent, if there is any.
    fn read_log(&mut self) -> Result<(), Error> {
        timed(&mut self.meter.counters.busy, || {
            self.snapshot.finish_data()
        })?;
        let mut end = None;
        while !self.control.is_stopped() {
            if let Some(throttle) = &self.throttle {
                throttle.hold(self.control, &mut self.meter.counters);
            }
            let Some(mut buffer) = timed(&mut self.meter.counters.wait_output, || self.pool.take())
            else {
                break;
            };
            let limit = buffer.len().min(self.schedule.frame_bytes as usize);
            let piece = timed(&mut self.meter.counters.busy, || {
                self.snapshot.read_log(&mut buffer[..limit])
            })?;
            let Some(piece) = piece else {
                self.control.coverage.end_source(end);
                break;
            };
            end = Some((piece.file_id, piece.offset + piece.bytes as u64));
            if !self.control.goes_on(FaultPoint::BackupLog)? {
                break;
            }
            if let Some(throttle) = &mut self.throttle {
                throttle.take(piece.bytes as u64);
            }
            let is_wanted = self.hand_on(Frame {
                kind: ChunkKind::Log,
                file_id: piece.file_id,
                offset: piece.offset,
                bytes: piece.bytes,
                buffer,
            });
            if !is_wanted {
                break;
            }
        }
        Ok(())
    }

    /// A read without its frame would leave a hole in the backup.
    fn failed_read(&self, file_id: u16, offset: u64, source: &std::io::Error) -> Error {
        let files = self.snapshot.files();
        let file = files.iter().find(|file| file.id == file_id);
        let path = file.or_else(|| files.first()).map(|file| file.path.clone());
        windlass_source::Error::Io {
            action: "read",
            path: path.unwrap_or_default(),
            source: std::io::Error::other(format!("at {offset}: {source}")),
        }
        .into()
    }

    /// `false` if no receiver is left.
    fn hand_on(&mut self, frame: Frame) -> bool {
        self.meter.counters.calls += 1;
        self.meter.counters.bytes_in += frame.bytes as u64;
        self.meter.counters.bytes_out += frame.bytes as u64;
        let is_wanted = timed(&mut self.meter.counters.wait_output, || {
            self.frames.send(frame).is_ok()
        });
        self.meter.announce();
        is_wanted
    }
}

fn data_frame(file_id: u16, offset: u64, bytes: usize, buffer: PooledBuffer) -> Frame {
    Frame {
        kind: ChunkKind::Data,
        file_id,
        offset,
        bytes,
        buffer,
    }
}
