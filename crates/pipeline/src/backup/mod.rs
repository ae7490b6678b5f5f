//! Backup: snapshot to media.
//!
//! Order of events, each after the one before is done:
//! 1. media opened and examined; nothing is changed on a refusal;
//! 2. start of the set on every family;
//! 3. all chunks read, transformed and written, by all threads at once;
//! 4. the snapshot confirms that it held; end of data on every family, synced;
//! 5. end of set on every family, synced;
//! 6. files take their names; the digest file takes its name.

mod media;
mod read;
mod set;
mod transform;
mod write;

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Instant;

use crossbeam_channel::bounded;
use windlass_base::{Guid, Moment};
use windlass_io::BufferPool;
use windlass_media::{DatabaseFile, SetConfiguration};
use windlass_source::Snapshot;

use self::read::Schedule;
use self::transform::{Totals, Transform};
use self::write::Family;
use crate::control::Control;
use crate::digests::{DigestFile, DigestWriter, DigestedFile};
use crate::error::Error;
use crate::plan::Plan;
use crate::report::{BackupReport, FilePages, Observer, StageCounters, Stages};
use crate::request::{BackupKind, BackupRequest};
use crate::sealing;

/// Backs up one snapshot.
///
/// # Errors
/// The first thing that went wrong. Nothing is left then but what was on the media before.
pub fn backup(
    request: &BackupRequest,
    snapshot: Box<dyn Snapshot>,
    observer: &dyn Observer,
) -> Result<BackupReport, Error> {
    let begun = Instant::now();
    let plan = Plan::for_backup(
        request.compression,
        request.media.devices.len(),
        request.media.mirrors.len(),
        request.tuning,
    );
    observer.planned(&plan);
    let (mut media, header, position) = media::open(request, &plan)?;
    let mut configuration = set::configuration(request, &*snapshot, &plan, position);
    let key = sealing::begin(request.encryption.as_ref(), &mut configuration)?;
    for family in &mut media {
        family.begin(&configuration)?;
    }
    let digest_writer = digest_writer(request, &*snapshot, configuration.set_guid)?;
    let frames = BufferPool::new(plan.frame_buffers.value, plan.frame_bytes.value);
    let output = BufferPool::new(plan.output_buffers.value, plan.frame_bytes.value);
    let schedule = Schedule::new(&*snapshot, plan.frame_bytes.value);
    let control = Control::new(
        observer,
        schedule.total_bytes(),
        vec![frames.clone(), output.clone()],
    );
    let transform = Transform {
        snapshot: &*snapshot,
        plan: &plan,
        set_guid: configuration.set_guid,
        deflate: request.deflate.as_deref(),
        key: key.as_ref(),
        verify_pages: request.checksum,
        on_damage: request.on_damage,
        base: base_digests(request),
        digests_to: digest_writer.as_ref(),
        output: &output,
        totals: Totals::default(),
        damaged: Mutex::new(Vec::new()),
    };
    let movement = Movement {
        transform: &transform,
        schedule: &schedule,
        frames: &frames,
        control: &control,
    };
    let mut stages = movement.run(&mut media);
    control.finish()?;
    let Transform {
        totals, damaged, ..
    } = transform;
    let damaged = damaged.into_inner().unwrap_or_else(PoisonError::into_inner);
    set::complete(&mut configuration, &totals, !damaged.is_empty());
    sealing::authenticate(key.as_ref(), &mut configuration);
    snapshot.close()?;
    finish_media(media, &configuration, &mut stages.write)?;
    if let Some(writer) = digest_writer {
        writer.commit()?;
    }
    Ok(BackupReport {
        media: header,
        files: pages_by_file(&configuration),
        processed_bytes: configuration.backup_bytes,
        elapsed: begun.elapsed(),
        finished: configuration.finished.unwrap_or_else(|| Moment::now().0),
        set: configuration,
        plan,
        stages,
        damaged,
    })
}

fn pages_by_file(set: &SetConfiguration) -> Vec<FilePages> {
    let pages = |file: &DatabaseFile| FilePages {
        logical_name: file.logical_name.clone(),
        pages: file.backup_bytes.div_ceil(windlass_base::PAGE_BYTES),
    };
    set.files.iter().map(pages).collect()
}

fn base_digests(request: &BackupRequest) -> Option<&DigestFile> {
    match &request.kind {
        BackupKind::Full => None,
        BackupKind::Differential(base) => Some(&base.digests),
    }
}

/// Digests of a full backup that will be a base are kept beside the media where that was asked for.
fn digest_writer(
    request: &BackupRequest,
    snapshot: &dyn Snapshot,
    set_guid: Guid,
) -> Result<Option<DigestWriter>, Error> {
    let (Some(path), BackupKind::Full, false) =
        (&request.digests_to, &request.kind, request.copy_only)
    else {
        return Ok(None);
    };
    let file = |file: &windlass_source::SourceFile| DigestedFile {
        file_id: file.id,
        size_bytes: file.size_bytes,
    };
    let files: Vec<DigestedFile> = snapshot.files().iter().map(file).collect();
    let lsn = snapshot.position().checkpoint_lsn;
    Ok(Some(DigestWriter::create(path, set_guid, lsn, &files)?))
}

/// Everything is durable on every family before any of them says that the set is complete.
fn finish_media(
    mut media: Vec<Family>,
    set: &SetConfiguration,
    counters: &mut StageCounters,
) -> Result<(), Error> {
    for family in &mut media {
        family.end_data(set)?;
    }
    for family in &mut media {
        family.end_set()?;
        family.count_writes(counters);
    }
    for family in media {
        family.commit()?;
    }
    Ok(())
}

/// The threads of a run and what they pass on.
struct Movement<'a> {
    transform: &'a Transform<'a>,
    schedule: &'a Schedule,
    frames: &'a BufferPool,
    control: &'a Control<'a>,
}

impl Movement<'_> {
    /// Starts every thread of every stage and waits for all of them.
    fn run(&self, media: &mut [Family]) -> Stages {
        let (plan, control, transform) = (self.transform.plan, self.control, self.transform);
        let (frame_sender, frames) = bounded(plan.frame_buffers.value);
        let (chunk_sender, chunks) = bounded(plan.frame_buffers.value + plan.output_buffers.value);
        let mut stages = Stages::default();
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..plan.depth.value)
                .map(|_| {
                    let sender = frame_sender.clone();
                    let read = move || {
                        read::run(
                            transform.snapshot,
                            self.schedule,
                            self.frames,
                            &sender,
                            control,
                        )
                    };
                    scope.spawn(move || control.guard(read))
                })
                .collect();
            drop(frame_sender);
            let transforms: Vec<_> = (0..plan.threads.value)
                .map(|_| {
                    let (frames, chunks) = (frames.clone(), chunk_sender.clone());
                    scope.spawn(move || control.guard(|| transform.run(&frames, &chunks, control)))
                })
                .collect();
            drop((frames, chunk_sender));
            let writers: Vec<_> = media
                .iter_mut()
                .map(|family| {
                    let chunks = chunks.clone();
                    scope.spawn(move || control.guard(|| family.run(&chunks, control)))
                })
                .collect();
            drop(chunks);
            for reader in readers {
                stages.read.add(&reader.join().unwrap_or_default());
            }
            for transform in transforms {
                stages.transform.add(&transform.join().unwrap_or_default());
            }
            for writer in writers {
                stages.write.add(&writer.join().unwrap_or_default());
            }
        });
        stages
    }
}
