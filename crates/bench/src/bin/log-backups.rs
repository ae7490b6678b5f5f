//! What log backups of a page engine database cost, and how fast they are applied.
//!
//! 1. Commits a second of one writer, alone and while a log backup is made every second, in turn. Floor: 0.95. Other
//!    variants of the backup say what costs them: uncompressed, and to NUL, which writes nothing. Beside each is the rate
//!    while a backup runs, of that between two: both are of the same seconds, so that what else the machine does counts
//!    for both.
//! 2. A full backup, and log backups of what the writer did in the meantime; then the restore of all, by phases: the rate
//!    at which data are copied and log is applied, beside the rate at which the log was made. Floor: 3 times that.
//!
//! ```text
//! cargo run --release -p windlass-bench --bin log-backups -- --folder /var/tmp --size-mb 1024
//! ```
#![expect(clippy::print_stdout, reason = "a program that prints tables")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use windlass_base::page::{PAGE_BYTES, PageNumber};
use windlass_bench::median;
use windlass_bench::pages::{commit, fill, next};
use windlass_codec::Compression;
use windlass_device::DeviceAddress;
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{
    BackupMode, CreateDatabase, Database, FileSpec, Growth, Instance, InstanceOptions,
    OpenDatabase, RecoveryModel,
};
use windlass_pipeline::{
    BackupKind, BackupReport, BackupRequest, Goal, MediaSet, OnDamage, Overwrite, ReadKeys,
    ReadRequest, Tuning, Unobserved, backup, restore,
};
use windlass_source::engine::{
    EngineLogSnapshot, EngineLogTarget, EngineRestoreRequest, EngineSnapshot, EngineTarget,
    PlacedFile,
};
use windlass_source::sqlite::Existing;
use windlass_source::{Recovery, RestoreTarget, Snapshot};

const MB: f64 = (1 << 20) as f64;

#[derive(Parser)]
struct Options {
    /// Where databases and backups are made
    #[arg(long, default_value = ".")]
    folder: PathBuf,
    /// Size of the database
    #[arg(long, default_value_t = 1024)]
    size_mb: u32,
    /// Rounds of the first measurement
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Seconds of each interval
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Milliseconds between two log backups
    #[arg(long, default_value_t = 1000)]
    every_ms: u64,
    /// Log backups that are restored
    #[arg(long, default_value_t = 20)]
    logs: u32,
    /// Pages that a commit changes
    #[arg(long, default_value_t = 4)]
    pages: u32,
}

impl Options {
    fn database_pages(&self) -> u32 {
        self.size_mb * ((1 << 20) / PAGE_BYTES as u32)
    }
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let folder = tempfile::tempdir_in(&options.folder)?;
    let database = create(folder.path(), &options)?;
    begin_chain(&database, folder.path())?;
    every_second(&options, &database, folder.path())?;
    restored(&options, &database, folder.path())
}

fn create(folder: &Path, options: &Options) -> anyhow::Result<Arc<Database>> {
    let instance = Instance::new(InstanceOptions::default(), Arc::new(RealFileSystem))?;
    let mut request = CreateDatabase::new("a", folder.join("a.mdf"), folder.join("a.ldf"));
    request.log = FileSpec {
        size: 256 << 20,
        growth: Growth::Bytes(64 << 20),
        ..request.log
    };
    let database = instance.create_database(&request)?;
    fill(&database, options.database_pages())?;
    database.set_recovery_model(RecoveryModel::Full)?;
    Ok(database)
}

fn back_up(
    (device, variant): (DeviceAddress, Variant),
    kind: BackupKind,
    snapshot: Box<dyn Snapshot>,
) -> anyhow::Result<BackupReport> {
    let mut request = BackupRequest::new(vec![device], variant.compression);
    request.media.overwrite = Overwrite::Format;
    request.media.skip_checks = true;
    request.tuning.goal = variant.goal;
    request.tuning.threads = variant.threads;
    Ok(backup(
        &BackupRequest { kind, ..request },
        snapshot,
        &Unobserved,
    )?)
}

fn begin_chain(database: &Arc<Database>, folder: &Path) -> anyhow::Result<BackupReport> {
    let snapshot = EngineSnapshot::open(database, BackupMode::Full)?;
    let device = DeviceAddress::disk(folder.join("full.bak"));
    let how = (device, VARIANTS[0]);
    back_up(how, BackupKind::Full, Box::new(snapshot))
}

fn back_up_log(database: &Arc<Database>, path: &Path) -> anyhow::Result<BackupReport> {
    let snapshot = EngineLogSnapshot::open(database, true)?;
    let device = DeviceAddress::disk(path.to_owned());
    let how = (device, VARIANTS[0]);
    back_up(how, BackupKind::Log, Box::new(snapshot))
}

/// A kind of log backup to measure.
#[derive(Clone, Copy)]
struct Variant {
    name: &'static str,
    is_kept: bool,
    compression: Compression,
    goal: Goal,
    threads: Option<u32>,
}

const VARIANTS: [Variant; 5] = [
    Variant {
        name: "ZSTD LOW, to disk",
        is_kept: true,
        compression: Compression::ZSTD_LOW,
        goal: Goal::Fast,
        threads: None,
    },
    Variant {
        name: "ZSTD LOW, to disk, gentle",
        is_kept: true,
        compression: Compression::ZSTD_LOW,
        goal: Goal::Gentle,
        threads: None,
    },
    Variant {
        name: "ZSTD LOW, to disk, one thread",
        is_kept: true,
        compression: Compression::ZSTD_LOW,
        goal: Goal::Fast,
        threads: Some(1),
    },
    Variant {
        name: "uncompressed, to disk",
        is_kept: true,
        compression: Compression::NONE,
        goal: Goal::Fast,
        threads: None,
    },
    Variant {
        name: "ZSTD LOW, to NUL",
        is_kept: false,
        compression: Compression::ZSTD_LOW,
        goal: Goal::Fast,
        threads: None,
    },
];

/// What was committed while backups ran, or between them.
#[derive(Default, Clone, Copy)]
struct Share {
    commits: f64,
    seconds: f64,
}

impl Share {
    fn add(&mut self, commits: u64, since: Instant) {
        self.commits += commits as f64;
        self.seconds += since.elapsed().as_secs_f64();
    }

    fn rate(self) -> f64 {
        self.commits / self.seconds
    }
}

/// Commits while `beside` runs on the calling thread; commits a second.
fn interval(
    options: &Options,
    database: &Arc<Database>,
    mut beside: impl FnMut(&AtomicU64) -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    let pages = options.database_pages();
    let (stop, commits) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(options, database, pages, (&stop, &commits)));
        let begun = Instant::now();
        let outcome = beside(&commits);
        let rate = commits.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        outcome?;
        match writer.join() {
            Ok(written) => written.map(|()| rate),
            Err(_) => anyhow::bail!("the writer panicked"),
        }
    })
}

fn write(
    options: &Options,
    database: &Arc<Database>,
    pages: u32,
    (stop, commits): (&AtomicBool, &AtomicU64),
) -> anyhow::Result<()> {
    let mut state = 7;
    while !stop.load(Ordering::Relaxed) {
        let changed: Vec<u32> = (0..options.pages)
            .map(|_| {
                state = next(state);
                (state >> 33) as u32 % pages
            })
            .collect();
        let fill = changed.first().copied().unwrap_or_default();
        let written = changed.iter().copied().filter_map(PageNumber::from_index);
        commit(database, written, u64::from(fill) ^ state)?;
        commits.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn every_second(options: &Options, database: &Arc<Database>, folder: &Path) -> anyhow::Result<()> {
    println!(
        "one writer, {} pages a commit, {} MB, {} rounds of {} s in turn, medians\n",
        options.pages, options.size_mb, options.rounds, options.seconds
    );
    println!(
        "| a log backup every {} ms | commits/s | of those alone (floor 0.95) | ms for one backup | while one runs, \
         of those between |",
        options.every_ms
    );
    println!("|---|---:|---:|---:|---:|");
    let mut alone = Vec::new();
    for variant in VARIANTS {
        pairs(options, database, (folder, variant), &mut alone)?;
    }
    println!("| none | {:.0} | | | |\n", median(alone.into_iter()));
    Ok(())
}

/// Alone and beside log backups, in turn.
fn pairs(
    options: &Options,
    database: &Arc<Database>,
    (folder, variant): (&Path, Variant),
    alone: &mut Vec<f64>,
) -> anyhow::Result<()> {
    let until = Duration::from_secs(options.seconds);
    let every = Duration::from_millis(options.every_ms);
    let device = match variant.is_kept {
        true => DeviceAddress::disk(folder.join("log.trn")),
        false => DeviceAddress::nul(),
    };
    let one = || {
        let snapshot = EngineLogSnapshot::open(database, true)?;
        let how = (device.clone(), variant);
        back_up(how, BackupKind::Log, Box::new(snapshot))
    };
    let (mut beside, mut ratios, mut backups) = (Vec::new(), Vec::new(), 0_u32);
    let (mut during, mut between) = (Share::default(), Share::default());
    for _ in 0..options.rounds {
        // Immediately before: the speed of the disk changes from minute to minute.
        let before = interval(options, database, |_| {
            std::thread::sleep(until);
            Ok(())
        })?;
        one()?;
        let with = interval(options, database, |commits| {
            let begun = Instant::now();
            while begun.elapsed() < until {
                let count = || commits.load(Ordering::Relaxed);
                let (started, first) = (Instant::now(), count());
                one()?;
                backups += 1;
                during.add(count() - first, started);
                let (ended, first) = (Instant::now(), count());
                std::thread::sleep(every.saturating_sub(started.elapsed()));
                between.add(count() - first, ended);
            }
            Ok(())
        })?;
        one()?;
        alone.push(before);
        beside.push(with);
        ratios.push(with / before);
    }
    println!(
        "| {} | {:.0} | {:.3} | {:.1} | {:.3} |",
        variant.name,
        median(beside.into_iter()),
        median(ratios.into_iter()),
        1000.0 * during.seconds / f64::from(backups.max(1)),
        during.rate() / between.rate(),
    );
    Ok(())
}

/// A restore whose time is measured.
#[derive(Default)]
struct Phase {
    bytes: f64,
    /// Of the media.
    read_seconds: f64,
    /// Of what was read.
    apply_seconds: f64,
}

fn restored(options: &Options, database: &Arc<Database>, folder: &Path) -> anyhow::Result<()> {
    let full = begin_chain(database, folder)?;
    let each = Duration::from_secs(options.seconds) / options.logs.max(1);
    let made = Instant::now();
    let mut log_bytes = 0.0;
    let rate = interval(options, database, |_| {
        for number in 0..options.logs {
            std::thread::sleep(each);
            let report = back_up_log(database, &folder.join(format!("{number}.trn")))?;
            log_bytes += report.processed_bytes as f64;
        }
        Ok(())
    })?;
    let made_rate = log_bytes / made.elapsed().as_secs_f64();
    let place = folder.join("copy");
    std::fs::create_dir(&place)?;
    let data = restore_set(&folder.join("full.bak"), &place, Recovery::NoRecovery)?;
    let mut logs = Phase::default();
    let begun = Instant::now();
    for number in 0..options.logs {
        let recovery = match number + 1 == options.logs {
            true => Recovery::Recovery,
            false => Recovery::NoRecovery,
        };
        let one = restore_set(&folder.join(format!("{number}.trn")), &place, recovery)?;
        logs.bytes += one.bytes;
        logs.read_seconds += one.read_seconds;
        logs.apply_seconds += one.apply_seconds;
    }
    let whole = begun.elapsed().as_secs_f64();
    let opening = Instant::now();
    let instance = Instance::new(InstanceOptions::default(), Arc::new(RealFileSystem))?;
    instance.open_database(&OpenDatabase::new("copy", place.join("a_log.file")))?;
    let opened = opening.elapsed().as_secs_f64();
    println!(
        "full and {} log backups, {rate:.0} commits/s\n",
        options.logs
    );
    let full_bytes = full.processed_bytes as f64;
    print_phases(
        (log_bytes, made_rate),
        (full_bytes, &data),
        (&logs, whole),
        opened,
    );
    Ok(())
}

fn print_phases(
    (log_bytes, made_rate): (f64, f64),
    (full_bytes, data): (f64, &Phase),
    (logs, whole): (&Phase, f64),
    opened: f64,
) {
    println!("| phase | MB | s | MB/s | of the rate at which the log was made (floor 3) |");
    println!("|---|---:|---:|---:|---:|");
    let row = |name: &str, bytes: f64, seconds: f64, is_log: bool| {
        let ratio = match is_log {
            true => format!("{:.1}", bytes / seconds / made_rate),
            false => String::new(),
        };
        println!(
            "| {name} | {:.1} | {seconds:.3} | {:.0} | {ratio} |",
            bytes / MB,
            bytes / MB / seconds
        );
    };
    row("log, made", log_bytes, log_bytes / made_rate, false);
    row(
        "full, read and written",
        full_bytes,
        data.read_seconds,
        false,
    );
    row(
        "full, its own log applied",
        data.bytes,
        data.apply_seconds,
        false,
    );
    row("logs, read", logs.bytes, logs.read_seconds, true);
    row(
        "logs, looked at and applied",
        logs.bytes,
        logs.apply_seconds,
        true,
    );
    row("logs, all of it", logs.bytes, whole, true);
    println!("| opened | | {opened:.3} | | |");
}

fn restore_set(path: &Path, place: &Path, recovery: Recovery) -> anyhow::Result<Phase> {
    let media = MediaSet::open(&[DeviceAddress::disk(path.to_owned())])?;
    let set = media.set(1)?.configuration;
    let log = set.files.iter().find(|file| file.is_log);
    let wanted = EngineRestoreRequest {
        description: set.source_description.clone(),
        files: (set.files.iter())
            .map(|file| PlacedFile {
                file_id: file.file_id,
                path: place.join(format!("{}.file", file.logical_name)),
                mode: None,
            })
            .collect(),
        database_name: "copy".to_owned(),
        log_bytes: log.map_or(0, |log| log.size_bytes),
        redo_bytes: log.map_or(0, |log| log.backup_bytes),
        set_guid: set.set_guid,
        checkpoint_lsn: set.checkpoint_lsn,
        as_is: true,
        existing: Existing::Replace,
        ..EngineRestoreRequest::default()
    };
    let target: Box<dyn RestoreTarget> =
        match windlass_source::engine::describe(&set.source_description)?.is_log() {
            true => Box::new(EngineLogTarget::begin(&wanted)?),
            false => Box::new(EngineTarget::begin(&wanted)?),
        };
    let begun = Instant::now();
    restore(&media, 1, &read_request(), &*target, &Unobserved)?;
    let read_seconds = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    target.finish(recovery)?;
    Ok(Phase {
        bytes: log.map_or(0, |log| log.backup_bytes) as f64,
        read_seconds,
        apply_seconds: begun.elapsed().as_secs_f64(),
    })
}

fn read_request() -> ReadRequest {
    ReadRequest {
        keys: ReadKeys::default(),
        on_damage: OnDamage::Stop,
        tuning: Tuning::default(),
    }
}
