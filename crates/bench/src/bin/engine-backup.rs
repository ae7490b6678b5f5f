//! Backups of a page engine database in use, and differentials of few changes.
//!
//! 1. Transactions of one writer with four readers: alone, and during several kinds of full backups
//!    to disk and a plain copy of the data file, alternately.
//! 2. A full backup and a differential after 1 % of the extents changed: bytes and time.
//!
//! ```text
//! cargo run --release -p windlass-bench --bin engine-backup -- --folder /var/tmp --size-mb 2048
//! ```
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use windlass_base::page::{EXTENT_PAGES, PAGE_BYTES, PageNumber};
use windlass_bench::median;
use windlass_bench::pages::{commit, fill, next};
use windlass_bench::usage::{Shares, Usage};
use windlass_codec::Compression;
use windlass_device::DeviceAddress;
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{BackupMode, CreateDatabase, Database, FileSpec, Instance, InstanceOptions};
use windlass_pipeline::{
    BackupKind, BackupReport, BackupRequest, DifferentialBase, Goal, Limits, Overwrite, Tuning,
    Unobserved, backup,
};
use windlass_source::engine::EngineSnapshot;

/// Rate of the limited backup.
const LIMITED_BYTES_PER_SECOND: u64 = 50 << 20;

#[derive(Parser)]
struct Options {
    /// Where database and backups are made
    #[arg(long, default_value = ".")]
    folder: PathBuf,
    /// Size of the database
    #[arg(long, default_value_t = 2048)]
    size_mb: u32,
    /// Rounds of each measurement
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Seconds of each interval with and without backups
    #[arg(long, default_value_t = 5)]
    seconds: u64,
}

impl Options {
    fn pages(&self) -> u32 {
        self.size_mb * ((1 << 20) / PAGE_BYTES as u32)
    }
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let folder = tempfile::tempdir_in(&options.folder)?;
    let pages = options.pages();
    let database = create(folder.path(), pages)?;
    while_used(&options, &database, folder.path())?;
    differentials(&options, &database, folder.path(), pages)
}

fn create(folder: &Path, pages: u32) -> anyhow::Result<Arc<Database>> {
    let instance = Instance::new(InstanceOptions::default(), Arc::new(RealFileSystem))?;
    let mut request = CreateDatabase::new("a", folder.join("a.mdf"), folder.join("a.ldf"));
    request.log = FileSpec {
        size: 256 << 20,
        ..request.log
    };
    let database = instance.create_database(&request)?;
    fill(&database, pages)?;
    Ok(database)
}

fn request(folder: &Path, kind: BackupKind) -> BackupRequest {
    let device = DeviceAddress::disk(folder.join("a.bak"));
    let mut request = BackupRequest::new(vec![device], Compression::ZSTD_LOW);
    request.media.overwrite = Overwrite::Format;
    request.media.skip_checks = true;
    BackupRequest { kind, ..request }
}

fn back_up(
    database: &Arc<Database>,
    folder: &Path,
    kind: BackupMode,
) -> anyhow::Result<(BackupReport, f64)> {
    let begun = Instant::now();
    let snapshot = EngineSnapshot::open(database, kind)?;
    let (set_guid, lsn) = snapshot.base();
    let kind = match kind {
        BackupMode::Differential => BackupKind::Differential(DifferentialBase {
            set_guid,
            lsn,
            digests: None,
        }),
        _ => BackupKind::Full,
    };
    let report = backup(&request(folder, kind), Box::new(snapshot), &Unobserved)?;
    Ok((report, begun.elapsed().as_secs_f64()))
}

type Work<'a> = Box<dyn Fn() -> anyhow::Result<()> + 'a>;

/// What runs repeatedly during the transactions.
struct Load<'a> {
    name: &'static str,
    once: Work<'a>,
    rates: Vec<f64>,
    ratios: Vec<f64>,
    seconds: Vec<f64>,
    shares: Vec<Shares>,
}

impl<'a> Load<'a> {
    fn new(name: &'static str, once: impl Fn() -> anyhow::Result<()> + 'a) -> Self {
        Self {
            name,
            once: Box::new(once),
            rates: Vec::new(),
            ratios: Vec::new(),
            seconds: Vec::new(),
            shares: Vec::new(),
        }
    }

    fn add(&mut self, measured: &Interval, alone: f64) {
        self.rates.push(measured.rate);
        self.ratios.push(measured.rate / alone);
        self.seconds.push(measured.seconds);
        self.shares.push(measured.shares);
    }

    fn print(&self) {
        let middle = |of: fn(&Shares) -> f64| median(self.shares.iter().map(of));
        println!(
            "| {} | {:.0} | {:.2} | {:.1} | {:.0} % | {:.0} % | {:.2} |",
            self.name,
            median(self.rates.iter().copied()),
            median(self.ratios.iter().copied()),
            median(self.seconds.iter().copied()),
            100.0 * middle(|shares| shares.processors),
            100.0 * middle(|shares| shares.disk),
            middle(|shares| shares.flush_milliseconds),
        );
    }
}

/// The transactions during a load.
struct Interval {
    /// Commits a second.
    rate: f64,
    /// Duration of one run of the load.
    seconds: f64,
    shares: Shares,
}

fn loads<'a>(database: &'a Arc<Database>, folder: &'a Path) -> Vec<Load<'a>> {
    let fast = Tuning::default();
    let gentle = Tuning {
        goal: Goal::Gentle,
        ..fast
    };
    let limited = Tuning {
        limits: Limits {
            read: Some(LIMITED_BYTES_PER_SECOND),
            ..Limits::default()
        },
        ..gentle
    };
    let backup_to = move |nul: bool, compression, tuning| {
        move || {
            let snapshot = EngineSnapshot::open(database, BackupMode::CopyOnly)?;
            let mut request = BackupRequest {
                compression,
                tuning,
                ..request(folder, BackupKind::Full)
            };
            if nul {
                request.media.devices = vec![DeviceAddress::nul()];
            }
            backup(&request, Box::new(snapshot), &Unobserved)?;
            Ok(())
        }
    };
    let (none, low) = (Compression::NONE, Compression::ZSTD_LOW);
    let copy = folder.join("copy");
    vec![
        Load::new("a plain copy of the data file", move || {
            plain_copy(&folder.join("a.mdf"), &copy)
        }),
        Load::new("backup, ZSTD LOW", backup_to(false, low, fast)),
        Load::new("backup, ZSTD LOW, to NUL", backup_to(true, low, fast)),
        Load::new("backup, ZSTD LOW, gentle", backup_to(false, low, gentle)),
        Load::new(
            "backup, ZSTD LOW, gentle, 50 MB/s",
            backup_to(false, low, limited),
        ),
        Load::new("backup, NONE, gentle", backup_to(false, none, gentle)),
    ]
}

/// What any program that reads the file and writes as much must cost the disk.
fn plain_copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::copy(from, to)?;
    std::fs::File::open(to)?.sync_all()?;
    Ok(())
}

fn while_used(options: &Options, database: &Arc<Database>, folder: &Path) -> anyhow::Result<()> {
    let mut loads = loads(database, folder);
    let mut alone = Load::new("nothing", || {
        std::thread::sleep(Duration::from_millis(500));
        Ok(())
    });
    for _ in 0..options.rounds {
        for load in &mut loads {
            // Immediately before: the speed of the disk changes from minute to minute.
            let before = interval(options, database, folder, &alone.once)?;
            let rate = before.rate;
            alone.add(&before, rate);
            let beside = interval(options, database, folder, &load.once)?;
            load.add(&beside, rate);
        }
    }
    println!(
        "one writer, four readers, {} MB, {} rounds in turn, medians\n",
        options.size_mb, options.rounds
    );
    println!(
        "| beside | commits/s | of those alone (floor 0.80) | seconds for one | processors busy | disk busy | ms a flush |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|");
    alone.print();
    for load in loads {
        load.print();
    }
    println!();
    Ok(())
}

/// Transactions while a load runs repeatedly.
fn interval(
    options: &Options,
    database: &Arc<Database>,
    folder: &Path,
    once: &dyn Fn() -> anyhow::Result<()>,
) -> anyhow::Result<Interval> {
    let pages = options.pages();
    let (stop, commits) = (AtomicBool::new(false), AtomicU64::new(0));
    let until = Duration::from_secs(options.seconds);
    std::thread::scope(|scope| {
        for reader in 0..4 {
            let stop = &stop;
            scope.spawn(move || read(database, pages, reader, stop));
        }
        let writer = scope.spawn(|| write(database, pages, &stop, &commits));
        let (begun, before) = (Instant::now(), Usage::now(folder));
        let mut times = 0;
        let mut outcome = Ok(());
        while begun.elapsed() < until && outcome.is_ok() {
            outcome = once();
            times += 1;
        }
        let seconds = begun.elapsed().as_secs_f64();
        let measured = Interval {
            rate: commits.load(Ordering::Relaxed) as f64 / seconds,
            seconds: seconds / f64::from(times),
            shares: before.until(&Usage::now(folder)),
        };
        stop.store(true, Ordering::Relaxed);
        outcome?;
        match writer.join() {
            Ok(written) => written.map(|()| measured),
            Err(_) => anyhow::bail!("the writer panicked"),
        }
    })
}

/// A reader pauses between reads, as if it processed what it read.
fn read(database: &Arc<Database>, pages: u32, seed: u64, stop: &AtomicBool) {
    let (mut state, mut content) = (seed, vec![0; PAGE_BYTES]);
    while !stop.load(Ordering::Relaxed) {
        let snapshot = database.begin_read();
        for _ in 0..100 {
            state = next(state);
            let index = (state >> 33) as u32 % pages;
            let Some(page) = PageNumber::from_index(index) else {
                return;
            };
            if snapshot.read_page(page, &mut content).is_err() {
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn write(
    database: &Arc<Database>,
    pages: u32,
    stop: &AtomicBool,
    commits: &AtomicU64,
) -> anyhow::Result<()> {
    let mut state = 7;
    while !stop.load(Ordering::Relaxed) {
        let mut random = || {
            state = next(state);
            (state >> 33) as u32 % pages
        };
        let changed = [random(), random(), random(), random()];
        let written = changed.into_iter().filter_map(PageNumber::from_index);
        commit(database, written, u64::from(changed[0]))?;
        commits.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn differentials(
    options: &Options,
    database: &Arc<Database>,
    folder: &Path,
    pages: u32,
) -> anyhow::Result<()> {
    println!("| round | full, s | differential, s | time | read, MB | of the full |");
    println!("|---|---|---|---|---|---|");
    let (mut times, mut shares) = (Vec::new(), Vec::new());
    for round in 1..=options.rounds {
        let (full, full_seconds) = back_up(database, folder, BackupMode::Full)?;
        // One page in every hundredth extent.
        let step = EXTENT_PAGES as usize * 100;
        let changed = (round * EXTENT_PAGES..pages).step_by(step);
        let changed: Vec<_> = changed.filter_map(PageNumber::from_index).collect();
        for pages in changed.chunks(256) {
            commit(database, pages.iter().copied(), u64::from(round) + 50)?;
        }
        database.checkpoint()?;
        let (differential, seconds) = back_up(database, folder, BackupMode::Differential)?;
        let time = seconds / full_seconds;
        let share = differential.processed_bytes as f64 / full.processed_bytes as f64;
        println!(
            "| {round} | {:.2} | {:.3} | {time:.3} | {:.1} | {share:.4} |",
            full_seconds,
            seconds,
            differential.processed_bytes as f64 / f64::from(1 << 20),
        );
        times.push(time);
        shares.push(share);
    }
    println!(
        "\nmedians: time {:.3} of the full (floor 0.1), read {:.4} (floor 0.02)",
        median(times.into_iter()),
        median(shares.into_iter())
    );
    Ok(())
}
