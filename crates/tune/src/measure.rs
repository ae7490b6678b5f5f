//! One measurement: a request to the pipeline, and its cost.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use windlass_accelerator::{Accelerator, Offload};
use windlass_base::size::megabytes_per_second;
use windlass_codec::{Algorithm, Compression, DeflateProvider};
use windlass_device::DeviceAddress;
use windlass_pipeline::{
    BackupRequest, MediaSet, Observer, OnDamage, Overwrite, Probe, ProbeRequest, ReadKeys,
    ReadRequest, StageCounters, Stages, Tuning,
};
use windlass_source::Recovery;

use crate::database::{CachePolicy, Database, bytes_of};
use crate::error::Error;
use crate::raw;
use crate::sample::sample;
use crate::target;

/// Bytes per write without another setting: the default of backups.
const RAW_TRANSFER: u32 = 1 << 20;

/// How much of a backup is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Only reading (`NOCOMPRESSWRITE`).
    Read,
    /// Reading and compressing (`NOWRITE`).
    Transform,
    /// A whole backup to NUL.
    Nul,
    /// A whole backup to files.
    Disk,
    /// Only writing, to files: bytes from memory, without a backup around them.
    Write,
}

/// The measured settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) scope: Scope,
    pub(crate) compression: Compression,
    /// Media families.
    pub(crate) files: usize,
    /// Bytes; by default that of the plan.
    pub(crate) block_bytes: Option<u32>,
    /// Bytes; by default that of the plan.
    pub(crate) transfer_bytes: Option<u32>,
    /// By default one per core.
    pub(crate) threads: Option<u32>,
}

impl Setting {
    pub(crate) fn new(scope: Scope, compression: Compression) -> Self {
        Self {
            scope,
            compression,
            files: 1,
            block_bytes: None,
            transfer_bytes: None,
            threads: None,
        }
    }

    /// Bytes of the longest chunk, so that samples can be cut like chunks.
    fn frame_bytes(&self) -> u64 {
        let transfer_bytes = self.transfer_bytes.unwrap_or_default() as usize;
        self.compression.frame_bytes().max(transfer_bytes) as u64
    }
}

/// The cost of a run.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// From opening the database or the media to the last sync. For a sample, from when the
    /// database is open, because the opening cost is independent of the sample size.
    pub elapsed: Duration,
    /// Time for opening the database.
    pub opening: Duration,
    /// CPU time of this process during the run, user and system.
    pub cpu: Duration,
    /// Bytes of the database.
    pub processed_bytes: u64,
    /// Bytes on media.
    pub stored_bytes: u64,
    pub stages: Stages,
}

impl Measured {
    /// Megabytes (2^20) of the database per second.
    pub fn rate(&self) -> f64 {
        megabytes_per_second(self.processed_bytes, self.elapsed)
    }

    /// Share of all cores, in percent.
    pub fn cpu_percent(&self) -> f64 {
        let elapsed = self.elapsed.as_secs_f64() * processors() as f64;
        if elapsed > 0.0 {
            self.cpu.as_secs_f64() / elapsed * 100.0
        } else {
            0.0
        }
    }
}

/// Cores available to this process.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Stops a run when the flag is set.
struct Stop<'a>(&'a AtomicBool);

impl Observer for Stop<'_> {
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The environment of measurements.
#[derive(Debug)]
pub(crate) struct Laboratory<'a> {
    pub(crate) database: &'a Database,
    cache: CachePolicy,
    cancel: &'a AtomicBool,
    folders: Vec<TempDir>,
}

impl<'a> Laboratory<'a> {
    /// Creates a temporary folder in each of `folders`; they are removed with the value.
    pub(crate) fn new(
        database: &'a Database,
        folders: &[PathBuf],
        cache: CachePolicy,
        cancel: &'a AtomicBool,
    ) -> Result<Self, Error> {
        let made = folders.iter().map(|folder| temporary_folder(folder));
        Ok(Self {
            database,
            cache,
            cancel,
            folders: made.collect::<Result<_, Error>>()?,
        })
    }

    /// Backs up the database, or about `sample_bytes` of it, and removes the backup again.
    pub(crate) fn backup(
        &self,
        setting: &Setting,
        sample_bytes: Option<u64>,
    ) -> Result<Measured, Error> {
        let bytes = self.database.bytes();
        let needed = sample_bytes.map_or(bytes, |sample| sample.min(bytes));
        let devices = self.devices(setting, needed)?;
        let result = match setting.scope {
            Scope::Write => self.write_raw(&devices, setting, needed),
            _ => self.backup_to(&devices, setting, sample_bytes),
        };
        for file in devices.iter().filter_map(DeviceAddress::file) {
            // A missing file is fine.
            std::fs::remove_file(file).ok();
        }
        result
    }

    /// Backs up the database to media that exist until [`Media`] is dropped.
    pub(crate) fn keep_backup(&self, setting: &Setting, name: &str) -> Result<Media, Error> {
        let folder = self.folder(0)?;
        check_space(folder, self.database.bytes())?;
        let device = DeviceAddress::disk(folder.join(format!("{name}.bak")));
        let media = Media {
            devices: vec![device],
        };
        self.backup_to(&media.devices, setting, None)?;
        Ok(media)
    }

    /// Only writes, as many bytes as an uncompressed backup would.
    fn write_raw(
        &self,
        devices: &[DeviceAddress],
        setting: &Setting,
        bytes: u64,
    ) -> Result<Measured, Error> {
        let paths: Vec<PathBuf> = (devices.iter().filter_map(DeviceAddress::file))
            .map(Path::to_owned)
            .collect();
        let transfer_bytes = setting.transfer_bytes.unwrap_or(RAW_TRANSFER) as usize;
        let clock = Clock::start();
        let written = raw::write(&paths, bytes, transfer_bytes, self.cancel);
        let bytes = written.map_err(|source| match self.cancel.load(Ordering::Relaxed) {
            true => windlass_pipeline::Error::Cancelled.into(),
            false => Error::Folder {
                action: "write to",
                path: self
                    .folders
                    .first()
                    .map_or_else(PathBuf::new, |one| one.path().to_owned()),
                source,
            },
        })?;
        let (elapsed, cpu) = clock.stop();
        let counters = StageCounters {
            threads: setting.files as u32,
            bytes_out: bytes,
            calls: bytes.div_ceil(transfer_bytes as u64),
            busy: elapsed * setting.files as u32,
            ..StageCounters::default()
        };
        Ok(Measured {
            elapsed,
            opening: Duration::ZERO,
            cpu,
            processed_bytes: bytes,
            stored_bytes: bytes,
            stages: Stages {
                write: counters,
                ..Stages::default()
            },
        })
    }

    fn backup_to(
        &self,
        devices: &[DeviceAddress],
        setting: &Setting,
        sample_bytes: Option<u64>,
    ) -> Result<Measured, Error> {
        self.cache.prepare(self.database.paths())?;
        let mut clock = Clock::start();
        let mut snapshot = self.database.snapshot()?;
        let (opening, _) = clock.stop();
        if let Some(bytes) = sample_bytes {
            sample(&mut *snapshot, bytes, setting.frame_bytes());
            clock = Clock::start();
        }
        // Not the pipeline's figure, which includes the log; the log of a sample is as large as
        // that of the whole backup.
        let processed_bytes = bytes_of(&*snapshot);
        let stop = Stop(self.cancel);
        let (stored_bytes, stages) = match probe(setting) {
            Some(request) => {
                let report = windlass_pipeline::probe(&request, snapshot, &stop)?;
                (report.stored_bytes, report.stages)
            }
            None => {
                let request = request(setting, devices);
                let report = windlass_pipeline::backup(&request, snapshot, &stop)?;
                (report.set.stored_bytes, report.stages)
            }
        };
        let (elapsed, cpu) = clock.stop();
        Ok(Measured {
            elapsed,
            opening,
            cpu,
            processed_bytes,
            stored_bytes,
            stages,
        })
    }

    /// Reads media and checks them.
    pub(crate) fn verify(&self, media: &Media) -> Result<Measured, Error> {
        self.prepare_media(media)?;
        let clock = Clock::start();
        let set = MediaSet::open(&media.devices)?;
        let report = windlass_pipeline::verify(&set, 1, &read_request(), &Stop(self.cancel))?;
        let (elapsed, cpu) = clock.stop();
        Ok(Measured {
            elapsed,
            opening: Duration::ZERO,
            cpu,
            processed_bytes: report.processed_bytes,
            stored_bytes: report.stored_bytes,
            stages: report.stages,
        })
    }

    /// Restores media to new files, and removes them again.
    pub(crate) fn restore(&self, media: &Media) -> Result<Measured, Error> {
        self.prepare_media(media)?;
        let folder = self.folder(0)?;
        check_space(folder, self.database.restored_bytes())?;
        let place = temporary_folder(folder)?;
        let clock = Clock::start();
        let opened = MediaSet::open(&media.devices)?;
        let target = target::begin(self.database.source(), &opened.set(1)?, place.path())?;
        let stop = Stop(self.cancel);
        let report = windlass_pipeline::restore(&opened, 1, &read_request(), &*target, &stop)?;
        target.finish(Recovery::Recovery)?;
        let (elapsed, cpu) = clock.stop();
        Ok(Measured {
            elapsed,
            opening: Duration::ZERO,
            cpu,
            processed_bytes: report.processed_bytes,
            stored_bytes: report.stored_bytes,
            stages: report.stages,
        })
    }

    fn prepare_media(&self, media: &Media) -> Result<(), Error> {
        let devices = media.devices.iter();
        self.cache.prepare(devices.filter_map(DeviceAddress::file))
    }

    /// The devices of a run: files spread over the folders, or NUL.
    fn devices(&self, setting: &Setting, needed: u64) -> Result<Vec<DeviceAddress>, Error> {
        match setting.scope {
            Scope::Read | Scope::Transform => return Ok(Vec::new()),
            Scope::Nul => return Ok(vec![DeviceAddress::nul(); setting.files]),
            Scope::Disk | Scope::Write => {}
        }
        for folder in &self.folders {
            check_space(folder.path(), needed)?;
        }
        let device = |index: usize| {
            let folder = self.folder(index)?;
            Ok(DeviceAddress::disk(folder.join(format!("{index}.bak"))))
        };
        (0..setting.files).map(device).collect()
    }

    fn folder(&self, index: usize) -> Result<&Path, Error> {
        let folders = self.folders.len().max(1);
        let folder = self.folders.get(index % folders);
        folder.map(TempDir::path).ok_or_else(|| Error::Folder {
            action: "use",
            path: PathBuf::new(),
            source: std::io::ErrorKind::NotFound.into(),
        })
    }
}

/// A folder in `folder` that is removed with the value.
fn temporary_folder(folder: &Path) -> Result<TempDir, Error> {
    let made = tempfile::Builder::new()
        .prefix("windlass-bench-")
        .tempdir_in(folder);
    made.map_err(|source| Error::Folder {
        action: "make a folder in",
        path: folder.to_owned(),
        source,
    })
}

/// Refuses a folder without enough free space.
fn check_space(folder: &Path, needed: u64) -> Result<(), Error> {
    let path = folder.parent().unwrap_or(folder).to_owned();
    let free = windlass_io::directory::free_bytes(folder);
    let free = free.map_err(|source| Error::Folder {
        action: "examine",
        path: path.clone(),
        source,
    })?;
    match free.filter(|free| *free < needed) {
        None => Ok(()),
        Some(free) => Err(Error::NoSpace { path, needed, free }),
    }
}

/// Media that are removed with the value.
#[derive(Debug)]
pub(crate) struct Media {
    devices: Vec<DeviceAddress>,
}

impl Drop for Media {
    fn drop(&mut self) {
        for file in self.devices.iter().filter_map(DeviceAddress::file) {
            std::fs::remove_file(file).ok();
        }
    }
}

/// Checks everything and stops at any damage.
fn read_request() -> ReadRequest {
    ReadRequest {
        keys: ReadKeys::default(),
        on_damage: OnDamage::Stop,
        tuning: Tuning::default(),
    }
}

/// The measuring run for a setting; `None` if it is a backup.
fn probe(setting: &Setting) -> Option<ProbeRequest> {
    let probe = match setting.scope {
        Scope::Read => Probe::Read,
        Scope::Transform => Probe::Transform,
        Scope::Nul | Scope::Disk | Scope::Write => return None,
    };
    Some(ProbeRequest {
        probe,
        compression: setting.compression,
        deflate: deflate(setting),
        encryption: None,
        checksum: false,
        tuning: tuning(setting),
    })
}

pub(crate) fn request(setting: &Setting, devices: &[DeviceAddress]) -> BackupRequest {
    let mut request = BackupRequest::new(devices.to_vec(), setting.compression);
    request.media.overwrite = Overwrite::Format;
    request.media.skip_checks = true;
    request.media.block_bytes = setting.block_bytes;
    BackupRequest {
        copy_only: true,
        deflate: deflate(setting),
        tuning: tuning(setting),
        ..request
    }
}

/// Compresses `QAT_DEFLATE`: the software that a backup would use, detected once.
fn deflate(setting: &Setting) -> Option<Arc<dyn DeflateProvider>> {
    static ACCELERATOR: LazyLock<Arc<Accelerator>> =
        LazyLock::new(|| Arc::new(Accelerator::detect(None)));
    (setting.compression.algorithm == Algorithm::QatDeflate)
        .then(|| ACCELERATOR.provider(Offload::SoftwareOnly))
}

fn tuning(setting: &Setting) -> Tuning {
    Tuning {
        transfer_bytes: setting.transfer_bytes,
        threads: setting.threads,
        ..Tuning::default()
    }
}

/// Wall clock and CPU time since a moment.
pub(crate) struct Clock {
    begun: Instant,
    cpu: Duration,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            cpu: cpu_of_process(),
            begun: Instant::now(),
        }
    }

    pub(crate) fn stop(&self) -> (Duration, Duration) {
        let elapsed = self.begun.elapsed();
        (elapsed, cpu_of_process().saturating_sub(self.cpu))
    }
}

/// CPU time of this process, user and system, all threads.
fn cpu_of_process() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanoseconds)
}
