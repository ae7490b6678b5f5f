//! SQLite on the page engine compared with stock SQLite in WAL mode with synchronous=FULL.
//!
//! Rounds alternate between the two on the same machine and folder; medians are compared. Ratios above
//! 1.00 mean that the engine is faster.
//!
//! ```text
//! cargo run --release -p windlass-bench --bin engine -- --folder /var/tmp
//! ```
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use rusqlite::{Connection, OpenFlags};
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{Instance, InstanceOptions};
use windlass_vfs::{PathDatabases, linked};

/// Rows of the table that is read.
const ROWS: i64 = 50_000;

#[derive(Parser)]
struct Options {
    /// Where the databases are made; the disk that is measured.
    #[arg(long, default_value = ".")]
    folder: PathBuf,
    /// Rounds of each workload on each system.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Commits of one round of the first workload.
    #[arg(long, default_value_t = 300)]
    commits: i64,
    /// Seconds of one round with four readers and a writer.
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Rows of one bulk load.
    #[arg(long, default_value_t = 200_000)]
    load: i64,
    /// Only the workloads whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
}

#[derive(Clone, Copy)]
enum System {
    Stock,
    Engine,
}

impl System {
    fn open(self, path: &Path) -> anyhow::Result<Connection> {
        let connection = match self {
            Self::Stock => Connection::open(path)?,
            Self::Engine => {
                Connection::open_with_flags_and_vfs(path, OpenFlags::default(), "windlass")?
            }
        };
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.execute_batch("PRAGMA journal_mode = wal; PRAGMA synchronous = full")?;
        Ok(connection)
    }
}

/// Per second, or rows per second: higher is better.
type Figures = Vec<(&'static str, f64)>;

/// One workload on one of the systems.
type Workload = fn(System, &Path, &Options) -> anyhow::Result<Figures>;

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let instance = Instance::new(InstanceOptions::default(), Arc::new(RealFileSystem))?;
    linked::register("windlass", Box::new(PathDatabases::new(instance)))?;
    println!(
        "{:<44}{:>12}{:>12}{:>8}",
        "per second, median", "stock WAL", "engine", "ratio"
    );
    let workloads: [(&str, Workload); 4] = [
        ("commits", commits),
        ("reads", reads),
        ("mixed", mixed),
        ("load", load),
    ];
    for (name, workload) in workloads {
        if name.contains(&options.only) {
            compare(name, workload, &options)?;
        }
    }
    Ok(())
}

fn compare(
    name: &str,
    workload: fn(System, &Path, &Options) -> anyhow::Result<Figures>,
    options: &Options,
) -> anyhow::Result<()> {
    let mut results: [Vec<Figures>; 2] = Default::default();
    for round in 0..options.rounds {
        for (index, system) in [System::Stock, System::Engine].into_iter().enumerate() {
            let folder = tempfile::tempdir_in(&options.folder)?;
            let path = folder.path().join("a.db");
            let figures = workload(system, &path, options)
                .with_context(|| format!("{name}, round {round}"))?;
            results[index].push(figures);
        }
    }
    for (place, (label, _)) in results[0][0].iter().enumerate() {
        let median = |index: usize| {
            let mut all: Vec<f64> = results[index].iter().map(|round| round[place].1).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        let (stock, engine) = (median(0), median(1));
        println!(
            "{label:<44}{stock:>12.0}{engine:>12.0}{:>8.2}",
            engine / stock
        );
    }
    Ok(())
}

fn rate(count: i64, begun: Instant) -> f64 {
    count as f64 / begun.elapsed().as_secs_f64()
}

fn commits(system: System, path: &Path, options: &Options) -> anyhow::Result<Figures> {
    let connection = system.open(path)?;
    connection.execute_batch(
        "CREATE TABLE t(x INTEGER PRIMARY KEY, y TEXT, z INTEGER); CREATE INDEX i ON t(z)",
    )?;
    let mut insert = connection.prepare("INSERT INTO t VALUES (?1, ?2, ?3)")?;
    let text = "windlass".repeat(12);
    let begun = Instant::now();
    for x in 0..options.commits {
        insert.execute((x, &text, x.wrapping_mul(7919) % 1000))?;
    }
    Ok(vec![(
        "single-writer commits",
        rate(options.commits, begun),
    )])
}

fn fill(connection: &Connection, rows: i64) -> anyhow::Result<()> {
    connection.execute_batch(
        "BEGIN; CREATE TABLE t(x INTEGER PRIMARY KEY, y TEXT, z INTEGER); CREATE INDEX i ON t(z)",
    )?;
    let mut insert = connection.prepare("INSERT INTO t VALUES (?1, ?2, ?3)")?;
    for x in 0..rows {
        insert.execute((
            x,
            format!("row {x} {}", "windlass".repeat(8)),
            x * 7919 % 100_003,
        ))?;
    }
    connection.execute_batch("COMMIT")?;
    Ok(())
}

/// Point reads, each in its own transaction.
fn point_reads(connection: &Connection, count: i64) -> anyhow::Result<f64> {
    let mut read = connection.prepare("SELECT y FROM t WHERE x = ?1")?;
    let mut bytes = 0;
    let begun = Instant::now();
    for n in 0..count {
        let text: String = read.query_row([n.wrapping_mul(48_271) % ROWS], |row| row.get(0))?;
        bytes += text.len();
    }
    anyhow::ensure!(bytes > 0);
    Ok(rate(count, begun))
}

fn reads(system: System, path: &Path, _: &Options) -> anyhow::Result<Figures> {
    let connection = system.open(path)?;
    fill(&connection, ROWS)?;
    drop(connection);
    let connection = system.open(path)?;
    connection.execute_batch("PRAGMA cache_size = -100000")?;
    let scan = "SELECT sum(length(y)) FROM t";
    let _: i64 = connection.query_row(scan, [], |row| row.get(0))?;
    let cached = point_reads(&connection, 100_000)?;
    let begun = Instant::now();
    for _ in 0..10 {
        let _: i64 = connection.query_row(scan, [], |row| row.get(0))?;
    }
    let scans = rate(10 * ROWS, begun);
    connection.execute_batch("PRAGMA cache_size = 10")?;
    let uncached = point_reads(&connection, 30_000)?;
    Ok(vec![
        ("point reads, SQLite's page cache", cached),
        ("rows scanned, SQLite's page cache", scans),
        ("point reads, buffer pool / OS cache", uncached),
    ])
}

fn mixed(system: System, path: &Path, options: &Options) -> anyhow::Result<Figures> {
    let connection = system.open(path)?;
    fill(&connection, ROWS)?;
    let stop = AtomicBool::new(false);
    let reads = AtomicU64::new(0);
    let mut writes = 0;
    let begun = Instant::now();
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let mut readers = Vec::new();
        for reader in 0..4 {
            let (stop, reads) = (&stop, &reads);
            readers.push(scope.spawn(move || -> anyhow::Result<()> {
                let connection = system.open(path)?;
                let mut read =
                    connection.prepare("SELECT count(y) FROM t WHERE x BETWEEN ?1 AND ?1 + 20")?;
                let mut n: i64 = reader;
                while !stop.load(Ordering::Relaxed) {
                    n = n.wrapping_mul(48_271).wrapping_add(1) % ROWS;
                    let _: i64 = read.query_row([n], |row| row.get(0))?;
                    reads.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            }));
        }
        let mut update = connection.prepare("UPDATE t SET z = z + 1 WHERE x = ?1")?;
        while begun.elapsed() < Duration::from_secs(options.seconds) {
            update.execute([writes * 7919 % ROWS])?;
            writes += 1;
        }
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            reader
                .join()
                .map_err(|_| anyhow::anyhow!("a reader panicked"))??;
        }
        Ok(())
    })?;
    Ok(vec![
        ("4 readers + 1 writer: commits", rate(writes, begun)),
        (
            "4 readers + 1 writer: reads",
            rate(reads.into_inner() as i64, begun),
        ),
    ])
}

fn load(system: System, path: &Path, options: &Options) -> anyhow::Result<Figures> {
    let begun = Instant::now();
    let connection = system.open(path)?;
    fill(&connection, options.load)?;
    let committed = rate(options.load, begun);
    drop(connection);
    Ok(vec![
        ("rows of a bulk load, to its commit", committed),
        (
            "rows of a bulk load, to the closed file",
            rate(options.load, begun),
        ),
    ])
}
