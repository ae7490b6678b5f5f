//! Measures both kinds of checkpoints: `cargo run --release -p windlass-engine --example checkpoints -- FOLDER
//! [backups | latencies | recoveries]`.
//!
//! Prints the duration of a small database's backup on a small and on a very large pool, the latency of
//! commits under load, and the time recovery takes after a crash under load beside its target.
#![expect(clippy::print_stdout, reason = "a tool that talks to its caller")]
#![expect(
    clippy::unwrap_used,
    reason = "a measurement ends at the first failure"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_base::{Guid, PAGE_BYTES, PageNumber};
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{
    BackupMode, CreateDatabase, Database, FileSpec, Instance, InstanceOptions, OpenDatabase,
};
use windlass_io::AlignedBuffer;

/// Buffers of a server with 2 TB of memory.
const LARGE_POOL: u64 = 268_435_456;

/// Pages of a database of 10 MB.
const SMALL_DATABASE: u32 = 1280;

fn instance(pool_pages: u64) -> Arc<Instance> {
    let options = InstanceOptions {
        pool_pages,
        ..InstanceOptions::default()
    };
    Instance::new(options, Arc::new(RealFileSystem)).unwrap()
}

fn create(instance: &Instance, folder: &Path, name: &str, log_bytes: u64) -> Arc<Database> {
    let paths = ["mdf", "ldf"].map(|extension| folder.join(format!("{name}.{extension}")));
    for path in &paths {
        // A file left by an earlier run may or may not exist.
        let _absent = std::fs::remove_file(path);
    }
    let mut request = CreateDatabase::new(name, &paths[0], &paths[1]);
    request.log = FileSpec {
        size: log_bytes,
        ..request.log
    };
    instance.create_database(&request).unwrap()
}

fn write(database: &Arc<Database>, pages: impl Iterator<Item = u32>, fill: u64) {
    let mut writer = database.begin_write(&database.begin_read()).unwrap();
    let mut content = [0; PAGE_BYTES];
    for page in pages {
        for word in content.chunks_exact_mut(64) {
            word[..8].copy_from_slice(&(fill ^ u64::from(page)).to_le_bytes());
        }
        let page = PageNumber::from_sqlite(page).unwrap();
        writer.write_page(page, &content).unwrap();
    }
    writer.commit().unwrap();
}

fn backup(database: &Arc<Database>) -> (Duration, u64) {
    let start = Instant::now();
    let mut backup = database.begin_backup(BackupMode::Full).unwrap();
    let mut buffer = AlignedBuffer::new(1 << 20);
    for range in backup.ranges(1 << 20) {
        backup.read_range(&range, &mut buffer).unwrap();
    }
    backup.finish_data().unwrap();
    backup.read_log(|_| Ok(())).unwrap();
    let phases = backup.complete(Guid::random()).unwrap();
    (
        start.elapsed(),
        phases.iter().map(|phase| phase.visited).sum(),
    )
}

fn backups(folder: &Path) {
    println!("backup of 10 MB (100 pages dirty) without a device");
    println!("| pool, pages | checkpoints | best of 5, ms | buffers visited |");
    println!("|---|---|---|---|");
    for pool_pages in [LARGE_POOL / 1000, LARGE_POOL] {
        let instance = instance(pool_pages);
        instance.touch_descriptors();
        let database = create(&instance, folder, "small", 8 << 20);
        write(&database, 1..=SMALL_DATABASE, 1);
        for (kind, target) in [
            ("indirect", Some(Duration::from_secs(60))),
            ("automatic", None),
        ] {
            database.set_target_recovery_time(target).unwrap();
            let runs = (0..5).map(|run| {
                write(&database, (1..=SMALL_DATABASE).step_by(13), run);
                backup(&database)
            });
            let (best, visited) = runs.min().unwrap();
            let milliseconds = best.as_secs_f64() * 1000.0;
            println!("| {pool_pages} | {kind} | {milliseconds:.2} | {visited} |");
        }
    }
}

/// Runs commits of `count` random pages each for `seconds` and returns their durations.
fn load(database: &Arc<Database>, size: u32, seconds: u64, count: usize) -> Vec<Duration> {
    let (mut latencies, mut state) = (Vec::new(), 1_u64);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(seconds) {
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            1 + ((state >> 33) as u32) % size
        };
        let pages: Vec<u32> = (0..count).map(|_| next()).collect();
        let begin = Instant::now();
        write(database, pages.into_iter(), state);
        latencies.push(begin.elapsed());
    }
    latencies.sort_unstable();
    latencies
}

/// The two kinds alternate, because the speed of a disk changes from minute to minute.
const ROUNDS: u64 = 3;
const ROUND_SECONDS: u64 = 10;

fn latencies(folder: &Path) {
    println!(
        "\ncommit latency, 64 random pages of 256 MB in each, one writer, recovery target or interval 1 s"
    );
    println!("| checkpoints | commits/s | p50 ms | p99 ms | p99.9 ms | worst ms | run |");
    println!("|---|---|---|---|---|---|---|");
    let size = 32 * 1024;
    let wanted = Duration::from_secs(1);
    let kinds = [("indirect", Some(wanted)), ("automatic", None)];
    let mut found = [Vec::new(), Vec::new()];
    let mut checkpoints = [0, 0];
    for _ in 0..ROUNDS {
        for (index, (_, target)) in kinds.iter().enumerate() {
            let options = InstanceOptions {
                pool_pages: 2 * u64::from(size),
                recovery_interval: wanted,
                ..InstanceOptions::default()
            };
            let instance = Instance::new(options, Arc::new(RealFileSystem)).unwrap();
            let database = create(&instance, folder, "load", 1 << 30);
            database.set_target_recovery_time(*target).unwrap();
            write(&database, 1..=size, 1);
            database.checkpoint().unwrap();
            let before = database.counters().checkpoints;
            found[index].extend(load(&database, size, ROUND_SECONDS, 64));
            checkpoints[index] += database.counters().checkpoints - before;
        }
    }
    for (index, (kind, _)) in kinds.iter().enumerate() {
        let found = &mut found[index];
        found.sort_unstable();
        let at = |share: f64| {
            let latency = found[((found.len() - 1) as f64 * share) as usize];
            format!("{:.1}", latency.as_secs_f64() * 1000.0)
        };
        println!(
            "| {kind} | {} | {} | {} | {} | {} | {} |",
            found.len() as u64 / (ROUNDS * ROUND_SECONDS),
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0),
            checkpoints[index]
        );
    }
}

fn recoveries(folder: &Path) {
    println!("\nrecovery after a crash in the middle of 10 s of commits of 64 pages");
    println!("| target ms | log in use, MB | recovery ms |");
    println!("|---|---|---|");
    let size = 32 * 1024;
    for milliseconds in [200, 1000, 5000] {
        let target = Some(Duration::from_millis(milliseconds));
        let distance;
        {
            let instance = instance(2 * u64::from(size));
            let database = create(&instance, folder, "load", 1 << 30);
            database.set_target_recovery_time(target).unwrap();
            write(&database, 1..=size, 1);
            load(&database, size, 10, 64);
            distance = database.counters().log_used;
        }
        let instance = instance(2 * u64::from(size));
        let request = OpenDatabase::new("load", folder.join("load.ldf"));
        let database = instance.open_database(&request).unwrap();
        let recovery = database.counters().last_recovery.as_millis();
        println!("| {milliseconds} | {} | {recovery} |", distance >> 20);
    }
}

/// A part of the measurement, in a folder.
type Part = fn(&Path);

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let folder = Path::new(&folder);
    let only = std::env::args().nth(2);
    let parts: [(&str, Part); 3] = [
        ("backups", backups),
        ("latencies", latencies),
        ("recoveries", recoveries),
    ];
    for (name, run) in parts {
        if only.as_deref().is_none_or(|only| only == name) {
            run(folder);
        }
    }
}
