//! Reads selected ranges of a set through its chunk index, and the log of the set, for a restore of
//! single pages or files.
//!
//! One thread reads, decodes and delivers; apart from the list of selected chunks, it needs only two
//! buffers. Data come first, ordered by file and offset, then the whole log, so that the pages are in
//! place before the log is replayed.
//!
//! Invariant: everything delivered was verified as in a full restore: the chunk's header, both its
//! checksums, its tag if it is encrypted, and that it is the chunk to which the index refers. The caller
//! detects chunks that are missing from the index.

use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_codec::{Algorithm, Decoder};
use windlass_io::BufferPool;
use windlass_media::{ChunkKind, FamilyReader, IndexEntry, ReadAt as _, SetListing};

use super::read::{StoredChunk, check, check_headers};
use super::transform::{Seen, Transform};
use super::{check_chunk_count, covered, plan};
use crate::control::Control;
use crate::error::media_error;
use crate::error::{Damage, Error};
use crate::fault::FaultPoint;
use crate::media_set::{Family, MediaSet};
use crate::report::Observer;
use crate::request::{OnDamage, ReadRequest};
use crate::sealing;
use crate::signing::{self, Signed};
use crate::window::Window;

/// Bytes per read while reading the index and looking up chunks.
const WINDOW_BYTES: usize = 256 << 10;

/// Name of the thread in errors.
const WORKER: &str = "reader of chosen pages";

/// What to read, and where it goes.
pub trait Selection {
    /// Whether any of these bytes of a data file are selected.
    fn wants(&self, file_id: u16, offset: u64, bytes: u64) -> bool;

    /// Receives the content of a chunk with selected bytes, or the next bytes of the log.
    ///
    /// # Errors
    /// Any error ends the run.
    fn take(
        &mut self,
        file_id: u16,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), windlass_source::Error>;
}

/// A selected chunk.
struct Place {
    is_log: bool,
    file_id: u16,
    /// File offset of its first byte.
    offset: u64,
    family: usize,
    ordinal: u64,
    stream_offset: u64,
    raw_bytes: u32,
    /// The digest of the header that was signed.
    signed: Option<[u8; 32]>,
}

/// Passes the ranges selected by `selection` from the set at `position` to it, then the whole log
/// of the set. Returns the bytes of the database in the chunks read, and the time taken.
///
/// Damage always stops the run, whatever `request` says: the pages go into an intact database.
///
/// # Errors
/// The first error.
pub fn restore_selected(
    media: &MediaSet,
    position: u16,
    request: &ReadRequest,
    selection: &mut dyn Selection,
    observer: &dyn Observer,
) -> Result<(u64, Duration), Error> {
    let begun = Instant::now();
    let complete = media.complete(position)?;
    let set = complete.configuration();
    check_chunk_count(media, set)?;
    let signed = signing::check(media, &complete, &request.keys, false)?;
    let key = sealing::unlock(media, &complete, &request.keys)?;
    let frame_bytes = plan(media, set, request).frame_bytes.value;
    let mut places = Vec::new();
    for (index, (family, listing)) in media.families.iter().zip(&complete.listings).enumerate() {
        let first = places.len();
        find(
            index,
            family,
            listing,
            set.chunk_count,
            selection,
            &mut places,
        )?;
        if let Some(signed) = &signed {
            prove(family, listing, signed, &mut places[first..])?;
        }
    }
    places.sort_unstable_by_key(|place| (place.is_log, place.file_id, place.offset));
    let total = places.iter().map(|place| u64::from(place.raw_bytes)).sum();
    let (payloads, frames) = (
        BufferPool::new(1, frame_bytes),
        BufferPool::new(1, frame_bytes),
    );
    let control = Control::new(
        observer,
        total,
        vec![payloads.clone(), frames.clone()],
        covered(set),
    );
    let files = set.files.iter().map(|file| (file.file_id, file.size_bytes));
    let walk = Walk {
        media,
        sets: &complete.listings,
        files: &files.collect::<Vec<_>>(),
        frame_bytes,
        payloads: &payloads,
        transform: Transform {
            output: &frames,
            key: key.as_ref(),
            is_sealed: false,
            is_signed: signed.is_some(),
            on_damage: OnDamage::Stop,
            seen: Seen::new(set.chunk_count),
        },
    };
    control.guard(WORKER, || walk.run(&places, selection, &control));
    control.finish()?;
    Ok((total, begun.elapsed()))
}

/// Collects the selected chunks of a family, and those of the log.
fn find(
    index: usize,
    family: &Family,
    set: &SetListing,
    chunk_count: u64,
    selection: &dyn Selection,
    places: &mut Vec<Place>,
) -> Result<(), Error> {
    let fail = |source| media_error(&family.device, source);
    let window = Window::new(&*family.reader, WINDOW_BYTES);
    let (reader, _) = FamilyReader::open(&window).map_err(fail)?;
    let is_wanted = |entry: &IndexEntry| {
        let wants = |run: &windlass_media::Run| {
            selection.wants(entry.file_id, run.offset, run.bytes.into())
        };
        entry.kind == ChunkKind::Log || entry.runs.iter().any(wants)
    };
    let read = reader.index(set, &mut |segment| {
        let wanted = segment.entries.iter().filter(|entry| is_wanted(entry));
        places.extend(wanted.map(|entry| Place {
            is_log: entry.kind == ChunkKind::Log,
            file_id: entry.file_id,
            offset: entry.runs.first().map_or(0, |run| run.offset),
            family: index,
            ordinal: entry.ordinal,
            stream_offset: entry.stream_offset,
            raw_bytes: entry.raw_bytes,
            signed: None,
        }));
        places.len() as u64 <= chunk_count
    });
    read.map_err(fail)?;
    match places.last() {
        Some(place) if places.len() as u64 > chunk_count => Err(Error::SetDamaged {
            device: family.device.to_string(),
            damage: Damage::UnexpectedChunk {
                ordinal: place.ordinal,
                count: chunk_count,
            },
        }),
        _ => Ok(()),
    }
}

/// Reads all chunk headers of a family, compares them with what was signed, and records those of
/// selected chunks: when they are read again, they must be the same.
fn prove(
    family: &Family,
    set: &SetListing,
    signed: &Signed,
    places: &mut [Place],
) -> Result<(), Error> {
    let fail = |source| media_error(&family.device, source);
    let window = Window::new(&*family.reader, WINDOW_BYTES);
    let (reader, _) = FamilyReader::open(&window).map_err(fail)?;
    places.sort_unstable_by_key(|place| place.ordinal);
    let walked = reader.walk(set, &mut |header, _| {
        let found = places.binary_search_by_key(&header.ordinal, |place| place.ordinal);
        if let Some(place) = found.ok().and_then(|index| places.get_mut(index)) {
            place.signed = Some(header.signed_digest());
        }
        true
    });
    check_headers(family, signed, &walked.map_err(fail)?)
}

/// What reading a chunk needs.
struct Walk<'a> {
    media: &'a MediaSet,
    sets: &'a [SetListing],
    files: &'a [(u16, u64)],
    frame_bytes: usize,
    payloads: &'a BufferPool,
    transform: Transform<'a>,
}

impl Walk<'_> {
    fn run(
        &self,
        places: &[Place],
        selection: &mut dyn Selection,
        control: &Control<'_>,
    ) -> Result<(), Error> {
        let families = &self.media.families;
        let windows: Vec<Window<'_>> = families
            .iter()
            .map(|family| Window::new(&*family.reader, WINDOW_BYTES))
            .collect();
        let mut readers = Vec::with_capacity(families.len());
        for (family, window) in families.iter().zip(&windows) {
            let opened = FamilyReader::open(window);
            readers.push(
                opened
                    .map_err(|source| media_error(&family.device, source))?
                    .0,
            );
        }
        let mut decoder = Decoder::new();
        let mut taken = 0;
        for place in places {
            if control.is_stopped() || !control.goes_on(FaultPoint::RestoreSelected)? {
                break;
            }
            let family = &families[place.family];
            let window = &windows[place.family];
            let Some(chunk) = self.read(place, family, window, &readers[place.family])? else {
                break;
            };
            let stored_bytes = chunk.header.stored_bytes;
            // Uncompressed chunks need no decoding buffer.
            let output = match chunk.header.codec == Algorithm::None.id() {
                true => None,
                false => self.transform.output.take(),
            };
            let StoredChunk {
                header,
                payload,
                offset,
                ..
            } = chunk;
            let transform = &self.transform;
            let decoded = transform.decode(&header, payload, offset, output, &mut decoder);
            let decoded = decoded.and_then(|bytes| {
                transform.account(&header, offset, &control.coverage)?;
                Ok(bytes)
            });
            let bytes = decoded.map_err(|damage| Error::SetDamaged {
                device: family.device.to_string(),
                damage,
            })?;
            let mut start = 0;
            for run in &header.runs {
                let end = start + run.bytes as usize;
                let bytes = bytes.get(start..end).unwrap_or_default();
                selection.take(header.file_id, run.offset, bytes)?;
                start = end;
            }
            taken += 1;
            control.advance(place.raw_bytes.into(), stored_bytes.into());
        }
        match taken == places.len() {
            true => Ok(()),
            false => Err(Error::EndedEarly { worker: WORKER }),
        }
    }

    /// Reads the chunk at a place; `None` if the run has stopped.
    fn read(
        &self,
        place: &Place,
        family: &Family,
        window: &Window<'_>,
        reader: &FamilyReader<'_>,
    ) -> Result<Option<StoredChunk>, Error> {
        let fail = |source| media_error(&family.device, source);
        let set = &self.sets[place.family];
        let (header, offset) = reader.chunk(set, place.stream_offset).map_err(fail)?;
        let is_log = header.kind == ChunkKind::Log;
        let begins = header.runs.first().map_or(0, |run| run.offset);
        let found = (
            is_log,
            header.file_id,
            begins,
            header.ordinal,
            header.raw_bytes,
        );
        let meant = (
            place.is_log,
            place.file_id,
            place.offset,
            place.ordinal,
            place.raw_bytes,
        );
        let is_signed = !self.transform.is_signed || place.signed == Some(header.signed_digest());
        if found != meant || !is_signed {
            return Err(Error::SetDamaged {
                device: family.device.to_string(),
                damage: Damage::ForeignChunk {
                    ordinal: header.ordinal,
                    offset,
                },
            });
        }
        check(self.files, self.frame_bytes, &header, offset, family)?;
        let Some(mut payload) = self.payloads.take() else {
            return Ok(None);
        };
        window
            .read_at(offset, &mut payload[..header.stored_bytes as usize])
            .map_err(|error| fail(error.into()))?;
        Ok(Some(StoredChunk {
            header,
            payload,
            offset,
            device: Arc::clone(&family.device),
        }))
    }
}
