//! Backup: snapshot to media.
//!
//! Order of events; each step starts after the previous one is complete:
//! 1. media opened and examined; nothing is changed on a refusal;
//! 2. start of the set written to every family;
//! 3. all chunks read, transformed and written, by all threads at once;
//! 4. the snapshot confirms that it stayed valid; end of data written to every family and synced;
//! 5. end of set written to every family and synced;
//! 6. files get their final names: from here on the backup exists, whatever follows;
//! 7. if the caller agrees ([`NewBase`]), the digest file gets its final name, and a database that
//!    tracks its own changes records the set as its differential base; after a log backup, the database
//!    may reuse that log.

mod accounts;
mod existing;
mod governor;
mod media;
mod movement;
mod priority;
mod probe;
mod proof;
mod read;
mod set;
mod stripes;
mod transform;
mod write;
mod written;

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use windlass_base::at_once::at_once;
use windlass_base::page::pages_of;
use windlass_base::panic::contained;
use windlass_base::{EXTENT_BYTES, Guid, Moment};
use windlass_crypt::SetKey;
use windlass_device::DeviceAddress;
use windlass_io::BufferPool;
use windlass_media::{DatabaseFile, MediaHeader, SetConfiguration};
use windlass_source::Snapshot;

pub use probe::probe;

use self::movement::{Movement, Sink};
use self::proof::Proof;
use self::read::Schedule;
use self::transform::Transform;
use self::write::Family;
use crate::control::Control;
use crate::digests::{self, DigestError, DigestFile, DigestWriter, DigestedFile};
use crate::error::Error;
use crate::fault::FaultPoint;
use crate::plan::{ChosenIoMethod, Plan, SourceSize};
use crate::report::{BackupReport, FilePages, Observer, StageCounters};
use crate::request::{BackupKind, BackupRequest, MediaRequest, Tuning};
use crate::sealing;
use crate::signing;
use crate::totals::Totals;

/// Backs up one snapshot and makes the set the differential base.
///
/// # Errors
/// The first error. The media then have their previous content, unless only making the set the base
/// failed, or somebody else changed them ([`Error::WrittenLost`]).
pub fn backup(
    request: &BackupRequest,
    snapshot: Box<dyn Snapshot>,
    observer: &dyn Observer,
) -> Result<BackupReport, Error> {
    let (report, base) = backup_undecided(request, snapshot, observer)?;
    base.take()?;
    Ok(report)
}

/// Backs up one snapshot. The caller decides whether the set becomes the differential base, because
/// it may know of a newer one.
///
/// # Errors
/// The first error. The media then have their previous content.
pub fn backup_undecided(
    request: &BackupRequest,
    snapshot: Box<dyn Snapshot>,
    observer: &dyn Observer,
) -> Result<(BackupReport, NewBase), Error> {
    let of = (request.tuning.goal, Some(&request.kind));
    priority::run(of, |priority| run(request, snapshot, observer, priority))
}

/// A finished backup that can become the differential base of its database. Dropping it changes
/// nothing.
#[derive(Debug)]
pub struct NewBase {
    set_guid: Guid,
    snapshot: Box<dyn Snapshot>,
    digests: Result<Option<DigestWriter>, DigestError>,
}

impl NewBase {
    fn of(
        set_guid: Guid,
        snapshot: Box<dyn Snapshot>,
        digests: Result<Option<DigestWriter>, DigestError>,
    ) -> Self {
        Self {
            set_guid,
            snapshot,
            digests,
        }
    }

    /// Makes the set the base, or frees the log that it holds.
    ///
    /// # Errors
    /// If the digests could not be stored, or the database could not record its base.
    pub fn take(self) -> Result<(), Error> {
        let kept = self
            .digests
            .and_then(|writer| writer.map_or(Ok(()), DigestWriter::commit));
        self.snapshot.complete(self.set_guid)?;
        kept.map_err(Error::from)
    }
}

fn run(
    request: &BackupRequest,
    snapshot: Box<dyn Snapshot>,
    observer: &dyn Observer,
    priority: Option<String>,
) -> Result<(BackupReport, NewBase), Error> {
    let begun = Instant::now();
    let mut plan = plan_of(request, &*snapshot, priority)?;
    let (mut media, header, position) = media::open(request, &plan, request.tuning.io_method)?;
    plan.writes_by = media.iter().find_map(Family::io_method);
    observer.planned(&plan);
    let mut configuration = set::configuration(request, &*snapshot, &plan, position);
    let key = sealing::begin(request.encryption.as_ref(), &mut configuration)?;
    begin_set(&mut media, &header, &mut configuration)?;
    let digest_writer = digest_writer(request, &*snapshot, configuration.set_guid);
    let (frames, output) = pools(&plan);
    let schedule = Schedule::new(&*snapshot, plan.frame_bytes.value);
    let accounts = accounts::open(&*snapshot);
    let pools = vec![frames.clone(), output.clone()];
    let control = Control::new(observer, schedule.total_bytes(), pools, accounts);
    let transform = Transform {
        snapshot: &*snapshot,
        plan: &plan,
        set_guid: configuration.set_guid,
        deflate: request.deflate.as_deref(),
        key: key.as_ref(),
        is_signed: request.signing.is_some(),
        verify_pages: request.checksum,
        on_damage: request.on_damage,
        digests: needs_digests(request, &*snapshot),
        base: base_digests(request),
        digests_to: digest_writer.as_ref().ok().and_then(Option::as_ref),
        output: &output,
        next_ordinal: AtomicU64::new(0),
        totals: Totals::default(),
        proof: Proof::of(&plan),
        damaged: Mutex::new(Vec::new()),
    };
    let movement = Movement {
        transform: &transform,
        schedule: &schedule,
        frames: &frames,
        control: &control,
    };
    let (mut stages, adapted) = movement.run(Sink::Media(&mut media));
    control.finish()?;
    accounts::check(&*snapshot, &control.coverage)?;
    let (totals, damaged) = transform.into_findings();
    configuration.is_damaged |= !damaged.is_empty();
    set::complete(&mut configuration, &totals, &control.coverage, &*snapshot)?;
    set::describe_copy(&mut configuration, request, &*snapshot);
    prove(request, &media, key.as_ref(), &mut configuration)?;
    snapshot.close()?;
    finish_media(media, &configuration, &control, &mut stages.write)?;
    written::check(&request.media, &configuration)?;
    let writers_held = snapshot.writers_held().map(|held| held.time);
    let base = NewBase::of(configuration.set_guid, snapshot, digest_writer);
    let report = BackupReport {
        media: header,
        files: pages_by_file(&configuration),
        processed_bytes: configuration.backup_bytes,
        elapsed: begun.elapsed(),
        finished: configuration.finished.unwrap_or_else(|| Moment::now().0),
        set: configuration,
        plan,
        stages,
        adapted,
        damaged,
        writers_held,
    };
    Ok((report, base))
}

/// The buffers between source and transform, and those between transform and media.
fn pools(plan: &Plan) -> (BufferPool, BufferPool) {
    let of = |count: usize| BufferPool::new(count, plan.frame_bytes.value);
    (of(plan.frame_buffers.value), of(plan.output_buffers.value))
}

/// Starts the set on every family, and binds it to the media header.
fn begin_set(
    media: &mut [Family],
    header: &MediaHeader,
    set: &mut SetConfiguration,
) -> Result<(), Error> {
    on_all(media, |family| family.begin(set))?;
    set.binding = header.binding(set).map_err(|source| Error::Media {
        device: "the media".to_owned(),
        source,
    })?;
    Ok(())
}

/// Authenticates the final configuration, and signs it together with all chunk headers.
fn prove(
    request: &BackupRequest,
    media: &[Family],
    key: Option<&SetKey>,
    set: &mut SetConfiguration,
) -> Result<(), Error> {
    if request.signing.is_some() {
        let mut families: Vec<&Family> = media.iter().collect();
        families.sort_by_key(|family| family.number);
        for family in families {
            set.chunk_headers.extend(family.chunk_headers()?);
        }
    }
    sealing::authenticate(key, set);
    signing::sign(request.signing.as_deref(), set)
}

fn plan_of(
    request: &BackupRequest,
    snapshot: &dyn Snapshot,
    priority: Option<String>,
) -> Result<Plan, Error> {
    let reads_by = read_method(snapshot, request.tuning)?;
    let plan = plan_for(request, size_of(snapshot), reads_by);
    let copied = snapshot.writers_held().map(|held| held.copied);
    Ok(Plan {
        temporary_copy: copied,
        priority,
        ..plan
    })
}

fn plan_for(request: &BackupRequest, source: SourceSize, reads_by: ChosenIoMethod) -> Plan {
    // The parts of objects have the size instead.
    let transfer_bytes = match request.media.is_in_objects() {
        true => None,
        false => request.tuning.transfer_bytes,
    };
    let plan = Plan::for_backup(
        request.compression,
        request.media.devices.len(),
        request.media.mirrors.len(),
        source,
        reads_by,
        Tuning {
            transfer_bytes,
            ..request.tuning
        },
    );
    let is_one = plan.families > 1 && on_one_device(&request.media);
    let plan = Plan {
        even: plan.even.or(is_one.then_some(ONE_DEVICE)),
        ..plan
    };
    match request.media.is_in_objects() {
        true => {
            let concurrency = request
                .media
                .devices
                .iter()
                .find_map(DeviceAddress::concurrency);
            plan.to_objects(source.bytes, request.tuning, concurrency)
        }
        false => plan,
    }
}

/// Why stripes are even without a request: none can be faster than the others for long.
const ONE_DEVICE: &str = "one device serves all stripes";

/// Whether the stripes, and each mirror's, are on the same device.
fn on_one_device(media: &MediaRequest) -> bool {
    let copies = std::iter::once(&media.devices).chain(&media.mirrors);
    copies.into_iter().all(|copy| {
        let mut devices = copy.iter().map(DeviceAddress::volume);
        let first = devices.next().flatten();
        first.is_some() && devices.all(|device| device == first)
    })
}

/// What a backup would do, without doing it.
#[derive(Debug, Clone)]
pub struct Rehearsed {
    pub plan: Plan,
    pub header: MediaHeader,
    pub position: u16,
    /// Whether new media are created, discarding their content.
    pub is_new: bool,
}

/// Examines the media and plans a backup of `source`. Changes nothing.
///
/// # Errors
/// Any reason to refuse the backup before it starts.
pub fn rehearse(request: &BackupRequest, source: SourceSize) -> Result<Rehearsed, Error> {
    let (header, position, is_new) = media::rehearse(request)?;
    let reads_by = ChosenIoMethod::chosen(request.tuning.io_method, true);
    let plan = plan_for(request, source, reads_by);
    Ok(Rehearsed {
        plan,
        header,
        position,
        is_new,
    })
}

fn size_of(snapshot: &dyn Snapshot) -> SourceSize {
    let files = snapshot.files().iter();
    let ranges: Vec<_> = files.flat_map(|file| snapshot.ranges(file.id)).collect();
    SourceSize {
        bytes: ranges.iter().map(|range| range.end - range.start).sum(),
        ranges: ranges.len() as u64,
    }
}

/// The I/O method for the reads of a snapshot, decided on the first range of its first file.
fn read_method(snapshot: &dyn Snapshot, tuning: Tuning) -> Result<ChosenIoMethod, Error> {
    let first = snapshot
        .files()
        .iter()
        .find_map(|file| Some((file.id, snapshot.ranges(file.id).into_iter().next()?)));
    let file = match first {
        Some((file_id, range)) => {
            let bytes = (range.end - range.start).min(EXTENT_BYTES as u64) as usize;
            snapshot.located(file_id, range.start, bytes)?
        }
        None => None,
    };
    Ok(ChosenIoMethod::chosen(
        tuning.io_method,
        file.is_none_or(|file| file.is_direct()),
    ))
}

/// What each file of a set contributed.
pub(crate) fn pages_by_file(set: &SetConfiguration) -> Vec<FilePages> {
    let pages = |file: &DatabaseFile| FilePages {
        logical_name: file.logical_name.clone(),
        pages: pages_of(file.backup_bytes),
    };
    // In SQL Server's order: data files, then the log.
    let (log, data): (Vec<_>, Vec<_>) = set.files.iter().partition(|file| file.is_log);
    data.into_iter().chain(log).map(pages).collect()
}

/// A differential compares the digests of its base with those of the database, unless the database
/// tracks its own changes. A copy-only full backup and a log backup are never a base, so they need no digests.
fn needs_digests(request: &BackupRequest, snapshot: &dyn Snapshot) -> bool {
    let is_no_base = match request.kind {
        BackupKind::Full => request.copy_only,
        BackupKind::Differential(_) => false,
        BackupKind::Log => true,
    };
    !snapshot.tracks_changes() && !is_no_base
}

fn base_digests(request: &BackupRequest) -> Option<&DigestFile> {
    match &request.kind {
        BackupKind::Full | BackupKind::Log => None,
        BackupKind::Differential(base) => base.digests.as_deref(),
    }
}

/// The digests of a full backup that will be a base are also kept apart from the media, if
/// requested. They are a cache: failing to store them does not stop a backup.
fn digest_writer(
    request: &BackupRequest,
    snapshot: &dyn Snapshot,
    set_guid: Guid,
) -> Result<Option<DigestWriter>, DigestError> {
    let (Some(folder), BackupKind::Full, true) = (
        &request.digests_to,
        &request.kind,
        needs_digests(request, snapshot),
    ) else {
        return Ok(None);
    };
    windlass_io::directory::create(folder).map_err(|source| DigestError::Io {
        path: folder.clone(),
        source,
    })?;
    let file = |file: &windlass_source::SourceFile| DigestedFile {
        file_id: file.id,
        size_bytes: file.size_bytes,
    };
    let files: Vec<DigestedFile> = snapshot.files().iter().map(file).collect();
    let lsn = snapshot.position().checkpoint_lsn;
    let path = digests::path(folder, set_guid);
    DigestWriter::create(&path, set_guid, lsn, &files).map(Some)
}

/// Everything is durable on every family before any family gets the end of the set.
fn finish_media(
    mut media: Vec<Family>,
    set: &SetConfiguration,
    control: &Control<'_>,
    counters: &mut StageCounters,
) -> Result<(), Error> {
    on_all(&mut media, |family| {
        control.goes_on(FaultPoint::BackupEndData)?;
        family.end_data(set)
    })?;
    on_all(&mut media, |family| {
        control.goes_on(FaultPoint::BackupEndSet)?;
        family.end_set()
    })?;
    for family in &mut media {
        family.count_writes(counters);
    }
    let devices = media.into_iter().flat_map(|family| family.devices);
    Ok(windlass_device::commit(devices.collect())?)
}

/// Does the same to all families in parallel, because each waits for its own disk. Returns the
/// first error.
fn on_all(
    media: &mut [Family],
    work: impl Fn(&mut Family) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let work = |family: &mut Family| {
        let worked = contained(movement::WRITER, || work(family));
        worked.unwrap_or_else(|panicked| Err(panicked.into()))
    };
    let several = media.len() > 1;
    at_once(media, several, work).into_iter().collect()
}
