//! First stage of a backup: fills frames from the snapshot, several reads in flight.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crossbeam_channel::Sender;
use windlass_io::{BufferPool, PooledBuffer};
use windlass_source::Snapshot;

use crate::control::{Control, timed};
use crate::error::Error;
use crate::report::StageCounters;

/// A stretch of a database file, as of the snapshot.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) file_id: u16,
    /// First octet in the database file; a multiple of the extent size.
    pub(super) offset: u64,
    /// Octets of `buffer` that are filled.
    pub(super) bytes: usize,
    pub(super) buffer: PooledBuffer,
}

/// What is still to be read, handed out frame by frame in file order.
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

    /// File, first octet and octets of the next frame.
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

/// Reads frames until the schedule is empty. One call per thread.
pub(super) fn run(
    snapshot: &dyn Snapshot,
    schedule: &Schedule,
    pool: &BufferPool,
    frames: &Sender<Frame>,
    control: &Control<'_>,
) -> Result<StageCounters, Error> {
    let mut counters = StageCounters {
        threads: 1,
        ..StageCounters::default()
    };
    while !control.is_stopped() {
        let Some(mut buffer) = timed(&mut counters.wait_output, || pool.take()) else {
            break;
        };
        let Some((file_id, offset, bytes)) = schedule.next() else {
            break;
        };
        let octets = &mut buffer[..bytes];
        timed(&mut counters.busy, || {
            snapshot.read(file_id, offset, octets)
        })?;
        counters.calls += 1;
        counters.bytes_in += bytes as u64;
        counters.bytes_out += bytes as u64;
        let frame = Frame {
            file_id,
            offset,
            bytes,
            buffer,
        };
        if timed(&mut counters.wait_output, || frames.send(frame).is_err()) {
            break;
        }
    }
    Ok(counters)
}
