//! First stage of a restore or verification: reads the chunks of one media family in order.

use std::sync::Arc;

use crossbeam_channel::Sender;
use windlass_io::{BufferPool, PooledBuffer};
use windlass_media::{ChunkHeader, FamilyReader, ReadAt, SetListing, WalkedSet};

use super::transform::Seen;
use crate::control::{Control, timed};
use crate::error::media_error;
use crate::error::{Damage, Error};
use crate::fault::FaultPoint;
use crate::live::Meter;
use crate::media_set::Family;
use crate::plan::Plan;
use crate::report::{Stage, StageCounters};
use crate::signing::Signed;
use crate::window::Window;

/// A chunk as stored on the media, not yet verified.
#[derive(Debug)]
pub(super) struct StoredChunk {
    pub(super) header: ChunkHeader,
    pub(super) payload: PooledBuffer,
    /// Offset of the payload in its family.
    pub(super) offset: u64,
    pub(super) device: Arc<str>,
}

/// What the reading threads share.
pub(super) struct Read<'a> {
    pub(super) pool: &'a BufferPool,
    pub(super) plan: &'a Plan,
    /// Database files of the set: id and length.
    pub(super) files: &'a [(u16, u64)],
    /// What the chunk headers are compared with.
    pub(super) signed: Option<&'a Signed>,
    pub(super) seen: &'a Seen,
    pub(super) chunks: Sender<StoredChunk>,
    pub(super) control: &'a Control<'a>,
}

impl Read<'_> {
    /// Walks a set on one family and passes on its chunks. Every byte between them is checked.
    pub(super) fn run(&self, family: &Family, set: &SetListing) -> Result<StageCounters, Error> {
        let control = self.control;
        let mut meter = Meter::begin(&control.live, Stage::Read);
        let begun = std::time::Instant::now();
        let window = Window::reading_ahead(
            &*family.reader,
            self.plan.transfer_bytes.value,
            self.plan.depth.value,
            self.plan.reads_by.method,
        );
        let (reader, _) =
            FamilyReader::open(&window).map_err(|source| media_error(&family.device, source))?;
        let mut failure = None;
        let mut stopped = false;
        let announce = |meter: &mut Meter<'_>| {
            let counters = &mut meter.counters;
            counters.calls = window.reads().calls;
            counters.in_flight = window.reads().in_flight;
            counters.busy = begun.elapsed().saturating_sub(counters.wait_output);
            meter.announce();
        };
        let walked = reader.walk(set, &mut |header, offset| {
            let handed = self.hand_on(family, &window, header, offset, &mut meter.counters);
            announce(&mut meter);
            match handed {
                Ok(true) => !control.is_stopped(),
                Ok(false) => {
                    stopped = true;
                    false
                }
                Err(error) => {
                    failure = Some(error);
                    false
                }
            }
        });
        announce(&mut meter);
        match (failure, walked) {
            (Some(error), _) => Err(error),
            (None, Err(source)) if !stopped && !control.is_stopped() => {
                Err(media_error(&family.device, source))
            }
            (None, Ok(walked)) => {
                if let Some(signed) = self.signed {
                    check_headers(family, signed, &walked)?;
                    self.seen.note_signed_family();
                }
                Ok(meter.end())
            }
            (None, Err(_)) => Ok(meter.end()),
        }
    }

    /// Reads a payload and sends it on; `false` if no receiver is left.
    fn hand_on(
        &self,
        family: &Family,
        window: &Window<'_>,
        header: ChunkHeader,
        offset: u64,
        counters: &mut StageCounters,
    ) -> Result<bool, Error> {
        let frame_bytes = self.plan.frame_bytes.value;
        check(self.files, frame_bytes, &header, offset, family)?;
        let Some(mut payload) = timed(&mut counters.wait_output, || self.pool.take()) else {
            return Ok(false);
        };
        let stored = header.stored_bytes as usize;
        window
            .read_at(offset, &mut payload[..stored])
            .map_err(|error| media_error(&family.device, error.into()))?;
        if !self.control.goes_on(FaultPoint::RestoreRead)? {
            return Ok(false);
        }
        counters.bytes_in += stored as u64;
        counters.bytes_out += stored as u64;
        let chunk = StoredChunk {
            header,
            payload,
            offset,
            device: Arc::clone(&family.device),
        };
        Ok(timed(&mut counters.wait_output, || {
            self.chunks.send(chunk).is_ok()
        }))
    }
}

/// The chunk headers of a family must be those that were signed.
pub(super) fn check_headers(
    family: &Family,
    signed: &Signed,
    walked: &WalkedSet,
) -> Result<(), Error> {
    let number = family.number();
    if signed.chunk_headers(number) == Some(walked.chunk_headers) {
        return Ok(());
    }
    Err(Error::SetDamaged {
        device: family.device.to_string(),
        damage: Damage::OtherChunks { family: number },
    })
}

/// Checks that a chunk fits the buffers and the file it names. `files` are the files of the set
/// with their lengths.
pub(super) fn check(
    files: &[(u16, u64)],
    frame_bytes: usize,
    header: &ChunkHeader,
    offset: u64,
    family: &Family,
) -> Result<(), Error> {
    let size = files
        .iter()
        .find(|(id, _)| *id == header.file_id)
        .map_or(0, |(_, size)| *size);
    let fits_file = header.runs.iter().all(|run| {
        run.offset
            .checked_add(run.bytes.into())
            .is_some_and(|end| end <= size)
    });
    let longest = header.raw_bytes.max(header.stored_bytes) as usize;
    if fits_file && longest <= frame_bytes && header.family == family.number() {
        return Ok(());
    }
    let damage = Damage::ForeignChunk {
        ordinal: header.ordinal,
        offset,
    };
    Err(Error::SetDamaged {
        device: family.device.to_string(),
        damage,
    })
}
