//! Restore and verification: the same stages, with and without a target.

mod digests;
mod read;
mod select;
mod totals;
mod transform;
mod write;

use std::time::Instant;

use crossbeam_channel::bounded;
use windlass_codec::{Algorithm, Compression, Level};
use windlass_crypt::SetKey;
use windlass_io::BufferPool;
use windlass_media::{CHUNK_BYTES_MAX, SetConfiguration};
use windlass_source::RestoreTarget;

pub use digests::extract_digests;
pub use select::{Selection, restore_selected};

use self::read::Read;
use self::transform::{Seen, Transform};
use crate::backup::pages_by_file;
use crate::control::Control;
use crate::coverage::{Coverage, CoveredFile};
use crate::error::{Damage, Error};
use crate::media_set::{CompleteSet, MediaSet};
use crate::plan::{ChosenIoMethod, Plan};
use crate::report::{Observer, ReadReport, Stages};
use crate::request::{OnDamage, ReadRequest};
use crate::sealing::{self, ReadKeys};
use crate::signing::{self, Signed};

/// Names of the threads in errors.
const READER: &str = "reader of the media";
const EXPANDER: &str = "stage that checks and expands";
const WRITER: &str = "writer of the database";

/// Restores a set to a target. The caller finishes the target if this succeeds.
///
/// # Errors
/// The first error; the target must then be abandoned.
pub fn restore(
    media: &MediaSet,
    position: u16,
    request: &ReadRequest,
    target: &dyn RestoreTarget,
    observer: &dyn Observer,
) -> Result<ReadReport, Error> {
    run(
        media,
        position,
        request,
        Some(target),
        Purpose::Restore,
        observer,
    )
}

/// What the chunks of a set are read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Restore,
    Verification,
}

/// Checks what can be known of a set without reading its chunks: that it is complete, that a required
/// signer signed its configuration, that one of the keys opens it, and that its configuration is
/// authentic.
///
/// # Errors
/// The first problem found.
pub fn check(media: &MediaSet, position: u16, keys: &ReadKeys) -> Result<(), Error> {
    let complete = media.complete(position)?;
    check_chunk_count(media, complete.configuration())?;
    signing::check(media, &complete, keys, false)?;
    sealing::unlock(media, &complete, keys).map(drop)
}

/// The plan of a restore or verification of a set; also does the checks of [`check`].
///
/// # Errors
/// If the set is incomplete, or no given key opens it.
pub fn plan_reading(media: &MediaSet, position: u16, request: &ReadRequest) -> Result<Plan, Error> {
    check(media, position, &request.keys)?;
    let complete = media.complete(position)?;
    Ok(plan(media, complete.configuration(), request))
}

/// Reads a set and checks every byte, writing nothing.
///
/// # Errors
/// The first damage found.
pub fn verify(
    media: &MediaSet,
    position: u16,
    request: &ReadRequest,
    observer: &dyn Observer,
) -> Result<ReadReport, Error> {
    run(
        media,
        position,
        request,
        None,
        Purpose::Verification,
        observer,
    )
}

/// The same; `check` gets the content as the target of a restore would. The caller finishes it if this succeeds
/// and nothing is damaged.
///
/// # Errors
/// Also those of `check`.
pub fn verify_content(
    media: &MediaSet,
    position: u16,
    request: &ReadRequest,
    check: &dyn RestoreTarget,
    observer: &dyn Observer,
) -> Result<ReadReport, Error> {
    run(
        media,
        position,
        request,
        Some(check),
        Purpose::Verification,
        observer,
    )
}

fn run(
    media: &MediaSet,
    position: u16,
    request: &ReadRequest,
    target: Option<&dyn RestoreTarget>,
    purpose: Purpose,
    observer: &dyn Observer,
) -> Result<ReadReport, Error> {
    let complete = media.complete(position)?;
    let set = complete.configuration();
    check_chunk_count(media, set)?;
    let is_verification = purpose == Purpose::Verification;
    let signed = signing::check(media, &complete, &request.keys, is_verification)?;
    let is_sealed = is_verification && request.keys.without_key && set.is_encrypted();
    // Without a key there is no content to pass on.
    let target = target.filter(|_| !is_sealed);
    let key = match is_sealed {
        true => None,
        false => sealing::unlock(media, &complete, &request.keys)?,
    };
    let plan = plan(media, set, request);
    observer.planned(&plan);
    let begun = Instant::now();
    let frames = BufferPool::new(plan.frame_buffers.value, plan.frame_bytes.value);
    let output = BufferPool::new(plan.output_buffers.value, plan.frame_bytes.value);
    let control = Control::new(
        observer,
        set.backup_bytes,
        vec![frames.clone(), output.clone()],
        covered(set),
    );
    let movement = Movement {
        media,
        complete: &complete,
        plan: &plan,
        key: key.as_ref(),
        signed: signed.as_ref(),
        is_sealed,
        target,
        frames: &frames,
        control: &control,
    };
    let (stages, seen) = movement.run(&output, request.on_damage);
    control.finish()?;
    if signed.is_some() && seen.signed_families() != media.families.len() {
        return Err(Error::EndedEarly { worker: READER });
    }
    let damaged = totals::check(set, &seen, &control.coverage, request.on_damage);
    let damaged = damaged.map_err(|damage| Error::SetDamaged {
        device: media.devices(),
        damage,
    })?;
    if target.is_some()
        && let Some((file, found, expected)) = control.coverage.unwritten()
    {
        return Err(Error::NotWritten {
            file,
            found,
            expected,
        });
    }
    Ok(ReadReport {
        files: pages_by_file(set),
        processed_bytes: seen.totals.raw_bytes(),
        stored_bytes: seen.totals.stored_bytes(),
        elapsed: begun.elapsed(),
        plan,
        stages,
        damaged,
        signer: signed.map(|signed| signed.signer),
    })
}

/// The threads of a run and the queues between them.
struct Movement<'a> {
    media: &'a MediaSet,
    complete: &'a CompleteSet,
    plan: &'a Plan,
    key: Option<&'a SetKey>,
    signed: Option<&'a Signed>,
    is_sealed: bool,
    target: Option<&'a dyn RestoreTarget>,
    frames: &'a BufferPool,
    control: &'a Control<'a>,
}

impl Movement<'_> {
    /// Starts all threads of all stages and waits for them.
    fn run(&self, output: &BufferPool, on_damage: OnDamage) -> (Stages, Seen) {
        let set = self.complete.configuration();
        let (plan, control) = (self.plan, self.control);
        let (chunk_sender, chunks) = bounded(plan.frame_buffers.value);
        let (restored_sender, restored) =
            bounded(plan.frame_buffers.value + plan.output_buffers.value);
        let files: Vec<(u16, u64)> = set
            .files
            .iter()
            .map(|file| (file.file_id, file.size_bytes))
            .collect();
        let transform = Transform {
            output,
            key: self.key,
            is_sealed: self.is_sealed,
            is_signed: self.signed.is_some(),
            on_damage,
            seen: Seen::new(set.chunk_count),
        };
        let wanted = self.target.map(|_| restored_sender);
        let mut stages = Stages::default();
        std::thread::scope(|scope| {
            let transform = &transform;
            let readers: Vec<_> = (self.media.families.iter().zip(&self.complete.listings))
                .map(|(family, set)| {
                    let read = Read {
                        pool: self.frames,
                        plan,
                        files: &files,
                        signed: self.signed,
                        seen: &transform.seen,
                        chunks: chunk_sender.clone(),
                        control,
                    };
                    control.spawn(scope, READER, move || read.run(family, set))
                })
                .collect();
            drop(chunk_sender);
            let transforms: Vec<_> = (0..plan.threads.value)
                .map(|_| {
                    let (chunks, wanted) = (chunks.clone(), wanted.clone());
                    control.spawn(scope, EXPANDER, move || {
                        transform.run(&chunks, wanted.as_ref(), control)
                    })
                })
                .collect();
            drop((chunks, wanted));
            let writers: Vec<_> = (self
                .target
                .into_iter()
                .flat_map(|target| (0..plan.write_depth.value).map(move |_| target)))
            .map(|target| {
                let restored = restored.clone();
                control.spawn(scope, WRITER, move || {
                    write::run(target, &restored, control)
                })
            })
            .collect();
            drop(restored);
            for reader in readers {
                stages.read.add(&control.join(reader));
            }
            for transform in transforms {
                stages.transform.add(&control.join(transform));
            }
            for writer in writers {
                stages.write.add(&control.join(writer));
            }
        });
        (stages, transform.seen)
    }
}

/// Plans the run. Values from the set are bounded before they determine an allocation.
fn plan(media: &MediaSet, set: &SetConfiguration, request: &ReadRequest) -> Plan {
    let algorithm = Algorithm::from_id(set.compression).unwrap_or(Algorithm::None);
    let level = Level::from_id(set.compression_level).ok().flatten();
    let frame_bytes = set.frame_bytes.clamp(64 << 10, CHUNK_BYTES_MAX) as usize;
    let plan = Plan::for_reading(
        Compression { algorithm, level },
        media.families.len(),
        frame_bytes,
        set.chunk_count,
        ChosenIoMethod::chosen(request.tuning.io_method, media.is_direct()),
        request.tuning,
    );
    match media.is_in_objects() {
        true => plan.from_objects(media.concurrency()),
        false => plan,
    }
}

/// A set cannot have more chunks than would fit its media with empty payloads.
fn check_chunk_count(media: &MediaSet, set: &SetConfiguration) -> Result<(), Error> {
    let bytes: u64 = media
        .families
        .iter()
        .map(|family| family.reader.len())
        .sum();
    let (found, expected) = (bytes / CHUNK_OVERHEAD_BYTES, set.chunk_count);
    if expected <= found {
        return Ok(());
    }
    Err(Error::SetDamaged {
        device: media.devices(),
        damage: Damage::MissingChunks { found, expected },
    })
}

/// Stream header and the fixed part of a chunk header.
const CHUNK_OVERHEAD_BYTES: u64 = 22 + 64;

/// The files of a set, to be accounted for.
fn covered(set: &SetConfiguration) -> Coverage {
    Coverage::new(set.files.iter().map(|file| CoveredFile {
        file_id: file.file_id,
        is_log: file.is_log,
        name: file.logical_name.clone(),
        size_bytes: file.size_bytes,
    }))
}

#[cfg(test)]
mod tests;
