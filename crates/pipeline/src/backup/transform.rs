//! Second stage of a backup: turns frames into chunks.
//!
//! Verifies page checksums, digests extents, skips the unchanged extents of a differential, and
//! compresses and checksums the rest. A chunk that would not shrink is stored uncompressed.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::Receiver;
use windlass_base::{Digest, EXTENT_BYTES, Guid, blake3, checksum, digest};
use windlass_codec::{Algorithm, BTreePages, DeflateProvider, Encoder, Filter, Stored};
use windlass_crypt::SetKey;
use windlass_io::{BufferPool, PooledBuffer};
use windlass_media::{ChunkHeader, ChunkKind, Run};
use windlass_source::{Snapshot, SourceFile};

use super::governor::Governor;
use super::proof::Proof;
use super::read::Frame;
use super::stripes::Stripes;
use crate::adapt::Work;
use crate::control::{Control, timed};
use crate::digests::{DigestFile, DigestWriter};
use crate::error::Error;
use crate::fault::FaultPoint;
use crate::live::Meter;
use crate::plan::Plan;
use crate::report::{DamagedPage, Stage, StageCounters};
use crate::request::OnDamage;
use crate::sealing;
use crate::totals::Totals;

/// Maximum number of damaged pages named in a report; beyond that, only the flag of the set records
/// damage.
const DAMAGED_PAGES_MAX: usize = 1000;

/// A chunk ready to write.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) header: ChunkHeader,
    pub(super) payload: PooledBuffer,
}

/// What the transform threads share.
pub(super) struct Transform<'a> {
    pub(super) snapshot: &'a dyn Snapshot,
    pub(super) plan: &'a Plan,
    pub(super) set_guid: Guid,
    /// What compresses `QAT_DEFLATE` instead of the bundled library.
    pub(super) deflate: Option<&'a dyn DeflateProvider>,
    /// The key of an encrypted set.
    pub(super) key: Option<&'a SetKey>,
    /// Whether chunks carry the digests of their payloads, because the set will be signed.
    pub(super) is_signed: bool,
    pub(super) verify_pages: bool,
    pub(super) on_damage: OnDamage,
    /// Whether chunks carry the digests of their extents.
    pub(super) digests: bool,
    /// Digests to compare with, for a differential.
    pub(super) base: Option<&'a DigestFile>,
    pub(super) digests_to: Option<&'a DigestWriter>,
    pub(super) output: &'a BufferPool,
    /// The ordinal of the next chunk.
    pub(super) next_ordinal: AtomicU64,
    pub(super) totals: Totals,
    pub(super) proof: Proof,
    pub(super) damaged: Mutex<Vec<DamagedPage>>,
}

impl Transform<'_> {
    /// Turns frames into chunks until the queue is closed. One call per thread.
    pub(super) fn run(
        &self,
        thread: usize,
        frames: &Receiver<Frame>,
        stripes: &Stripes<Chunk>,
        control: &Control<'_>,
        governor: &Governor<'_>,
    ) -> Result<StageCounters, Error> {
        let _leaving = Leaving(governor);
        let mut meter = Meter::begin(&control.live, Stage::Transform);
        let frame_bytes = self.plan.frame_bytes.value;
        let mut encoder = Encoder::with_provider(self.plan.compression, frame_bytes, self.deflate)?;
        let mut base_digests = Vec::new();
        let mut effort = None;
        while !control.is_stopped() {
            governor.wait_turn(thread, control);
            let Ok(frame) = timed(&mut meter.counters.wait_input, || frames.recv()) else {
                break;
            };
            if !control.goes_on(FaultPoint::BackupTransform)? {
                break;
            }
            meter.counters.calls += 1;
            let bytes = frame.bytes as u64;
            let output = match self.plan.compression.algorithm {
                Algorithm::None => None,
                _ => match timed(&mut meter.counters.wait_output, || self.output.take()) {
                    Some(buffer) => Some(buffer),
                    None => break,
                },
            };
            if let Some(next) = governor.next_effort()
                && effort.replace(next) != Some(next)
            {
                encoder.set_effort(next)?;
            }
            let mut encoding = Duration::ZERO;
            let chunk = timed(&mut meter.counters.busy, || {
                let frame = self.digest(frame, &mut base_digests, control)?;
                let chunk =
                    frame.map(|frame| self.transform(frame, &mut encoder, output, &mut encoding));
                chunk.transpose()
            })?;
            let stored = chunk
                .as_ref()
                .map_or(0, |chunk| u64::from(chunk.header.stored_bytes));
            meter.counters.bytes_in += bytes;
            meter.counters.bytes_out += stored;
            meter.announce();
            governor.done(effort.zip(chunk.as_ref()).map(|(effort, chunk)| {
                let work = Work {
                    chunks: 1,
                    raw_bytes: u64::from(chunk.header.raw_bytes),
                    stored_bytes: stored,
                    encoding,
                };
                (effort, work)
            }));
            control.advance(bytes, stored);
            if let Some(chunk) = chunk
                && timed(&mut meter.counters.wait_output, || {
                    !stripes.send(chunk, stored)
                })
            {
                break;
            }
        }
        Ok(meter.end())
    }

    /// Verifies and digests a frame, and drops the unchanged extents of a differential; `None` if
    /// nothing remains.
    fn digest(
        &self,
        mut frame: Frame,
        base_digests: &mut Vec<Digest>,
        control: &Control<'_>,
    ) -> Result<Option<Digested>, Error> {
        let is_data = frame.kind == ChunkKind::Data;
        if self.verify_pages && is_data {
            self.check_pages(&frame)?;
        }
        let mut digests: Vec<Digest> = Vec::new();
        if is_data && self.digests {
            let extents = frame.buffer[..frame.bytes].chunks(EXTENT_BYTES);
            digests.extend(extents.map(digest));
        }
        let first_extent = frame.offset / EXTENT_BYTES as u64;
        if let Some(writer) = self.digests_to {
            writer.write_or_note(frame.file_id, first_extent, &digests);
        }
        let mut runs = vec![Run {
            offset: frame.offset,
            bytes: frame.bytes as u32,
        }];
        if let Some(base) = self.base.filter(|_| is_data) {
            base.read(frame.file_id, first_extent, base_digests, digests.len())?;
            let whole = frame.offset..frame.offset + frame.bytes as u64;
            runs = keep_changed(&mut frame, &mut digests, base_digests);
            leave_out(control, frame.file_id, whole, &runs)?;
        }
        Ok((!runs.is_empty()).then_some(Digested {
            frame,
            runs,
            digests,
        }))
    }

    /// Turns one frame into one chunk.
    fn transform(
        &self,
        digested: Digested,
        encoder: &mut Encoder,
        output: Option<PooledBuffer>,
        encoding: &mut Duration,
    ) -> Result<Chunk, Error> {
        let Digested {
            frame,
            runs,
            digests,
        } = digested;
        let raw = &frame.buffer[..frame.bytes];
        let mut header = ChunkHeader {
            kind: frame.kind,
            codec: Algorithm::None.id(),
            filter: Filter::NONE.id(),
            file_id: frame.file_id,
            family: 0,
            set_guid: self.set_guid,
            ordinal: self.next_ordinal.fetch_add(1, Ordering::Relaxed),
            raw_bytes: frame.bytes as u32,
            stored_bytes: frame.bytes as u32,
            raw_checksum: checksum(raw),
            stored_checksum: 0,
            runs,
            digests,
            tag: None,
            payload_digest: None,
        };
        encoder.set_pages(self.pages(frame.kind, frame.file_id));
        let mut payload = frame.buffer;
        if let Some(mut output) = output
            && let Stored::Compressed { bytes, filter } = timed(encoding, || {
                encoder.encode(&payload[..frame.bytes], &mut output)
            })?
        {
            let ends_file = self.ends_file(&header);
            let raw = &payload[..frame.bytes];
            (self.proof).examine(filter, raw, &output[..bytes], ends_file)?;
            header.codec = self.plan.compression.algorithm.id();
            header.filter = filter.id();
            header.stored_bytes = bytes as u32;
            payload = output;
        }
        let stored = &mut payload[..header.stored_bytes as usize];
        match self.key {
            Some(key) => sealing::seal(key, &mut header, stored)?,
            None if header.codec == Algorithm::None.id() => {
                header.stored_checksum = header.raw_checksum;
            }
            None => header.stored_checksum = checksum(stored),
        }
        header.payload_digest = self.is_signed.then(|| blake3(stored));
        self.totals.count(&header);
        Ok(Chunk { header, payload })
    }

    fn file(&self, file_id: u16) -> Option<&SourceFile> {
        let files = self.snapshot.files();
        files.iter().find(|file| file.id == file_id)
    }

    /// What went through, and the damaged pages in it; called when all threads have finished.
    pub(super) fn into_findings(self) -> (Totals, Vec<DamagedPage>) {
        let damaged = self.damaged.into_inner();
        (self.totals, damaged.unwrap_or_else(PoisonError::into_inner))
    }

    fn ends_file(&self, header: &ChunkHeader) -> bool {
        let size_bytes = self.file(header.file_id).map(|file| file.size_bytes);
        let ends = header.runs.iter();
        let mut ends = ends.map(|run| run.offset + u64::from(run.bytes));
        header.kind == ChunkKind::Data && ends.any(|end| Some(end) == size_bytes)
    }

    /// The layout of the pages in the frames of a file, if they are of b-trees.
    fn pages(&self, kind: ChunkKind, file_id: u16) -> Option<BTreePages> {
        let file = self.file(file_id).filter(|_| kind == ChunkKind::Data)?;
        BTreePages::new(file.page_bytes, file.reserved_bytes?)
    }

    fn check_pages(&self, frame: &Frame) -> Result<(), Error> {
        let mut first = None;
        let file = self.file(frame.file_id);
        let bytes = &frame.buffer[..frame.bytes];
        self.snapshot
            .check_pages(frame.file_id, frame.offset, bytes, &mut |page| {
                let damaged = DamagedPage {
                    page,
                    offset: file.map_or(0, |file| page.byte_offset(file.page_bytes as usize)),
                    file: file.map_or_else(String::new, |file| file.physical_name.clone()),
                };
                let mut all = self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
                if all.len() < DAMAGED_PAGES_MAX {
                    all.push(damaged.clone());
                }
                first.get_or_insert(damaged);
            });
        match (first, self.on_damage) {
            (Some(page), OnDamage::Stop) => Err(Error::PageDamaged(page)),
            _ => Ok(()),
        }
    }
}

/// A frame and the extents of it that the backup stores.
struct Digested {
    frame: Frame,
    runs: Vec<Run>,
    digests: Vec<Digest>,
}

/// Accounts for the parts of `whole` that are not in `kept`.
fn leave_out(
    control: &Control<'_>,
    file_id: u16,
    whole: Range<u64>,
    kept: &[Run],
) -> Result<(), Error> {
    let coverage = &control.coverage;
    let mut at = whole.start;
    let ends = kept
        .iter()
        .map(|run| (run.offset, run.offset + u64::from(run.bytes)));
    for (start, end) in ends.chain([(whole.end, whole.end)]) {
        if at < start {
            let left_out = coverage.leave_out(file_id, at..start);
            left_out.map_err(|refusal| coverage.not_stored(file_id, at..start, refusal))?;
        }
        at = end;
    }
    Ok(())
}

/// When a thread exits, no work is left: wakes the paused ones.
struct Leaving<'a>(&'a Governor<'a>);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// Moves the changed extents of a frame together and returns their original ranges.
fn keep_changed(frame: &mut Frame, digests: &mut Vec<Digest>, base: &[Digest]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut kept_bytes = 0;
    let mut kept = Vec::with_capacity(digests.len());
    for (index, found) in digests.iter().enumerate() {
        if base.get(index) == Some(found) {
            continue;
        }
        let start = index * EXTENT_BYTES;
        let end = (start + EXTENT_BYTES).min(frame.bytes);
        frame.buffer.copy_within(start..end, kept_bytes);
        kept_bytes += end - start;
        kept.push(*found);
        let offset = frame.offset + start as u64;
        let bytes = (end - start) as u32;
        match runs.last_mut() {
            Some(run) if run.offset + u64::from(run.bytes) == offset => run.bytes += bytes,
            _ => runs.push(Run { offset, bytes }),
        }
    }
    frame.bytes = kept_bytes;
    *digests = kept;
    runs
}
