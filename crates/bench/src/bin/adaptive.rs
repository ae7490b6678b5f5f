//! Compares backups that pick their levels with the best fixed level.
//!
//! `cargo run --release -p windlass-bench --bin adaptive -- DATABASE [--rounds 3] [--mb 512]
//! [--case plain] ...`
//!
//! Whole backups through the pipeline, to a file next to the database: on the unmodified machine,
//! with a device limited to a few MB per second, and with cores shared with other work. Variants
//! alternate; medians are compared.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that prints a table"
)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Parser, ValueEnum};
use windlass_bench::median;
use windlass_codec::Compression;
use windlass_device::DeviceAddress;
use windlass_pipeline::{
    BackupReport, BackupRequest, Goal, Limits, Overwrite, Tuning, Unobserved, backup,
};
use windlass_source::sqlite::{SnapshotOptions, SqliteSnapshot};
use windlass_source::{FileRanges, Snapshot, SourceFile};

/// The adaptive run may be slower than the best fixed one by this factor.
const FLOOR: f64 = 0.90;

#[derive(Debug, Parser)]
struct Arguments {
    /// SQLite file
    database: PathBuf,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How much of the database is backed up, from its start
    #[arg(long, default_value_t = 512)]
    mb: u64,
    /// All of them unless given
    #[arg(long, value_enum)]
    case: Vec<Case>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Case {
    /// The machine as it is
    Plain,
    /// A device that takes 60 MB in a second
    Device60,
    /// A device that takes 20 MB in a second
    Device20,
    /// Two busy threads of others on each processor
    Processors,
}

impl Case {
    fn write_rate(self) -> Option<u64> {
        match self {
            Self::Plain | Self::Processors => None,
            Self::Device60 => Some(60 << 20),
            Self::Device20 => Some(20 << 20),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain machine",
            Self::Device60 => "device of 60 MB/s",
            Self::Device20 => "device of 20 MB/s",
            Self::Processors => "busy processors",
        }
    }
}

/// A way to back up, and its cost.
struct Variant {
    name: &'static str,
    compression: Compression,
    tuning: Tuning,
    /// Whether it is a setting to compare with.
    is_fixed: bool,
    seconds: Vec<f64>,
    last: Option<BackupReport>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let cases = match arguments.case.as_slice() {
        [] => Case::value_variants(),
        some => some,
    };
    println!("| machine | variant | seconds | MB/s | stored MB | levels, threads |");
    println!("|---|---|---|---|---|---|");
    let mut summary = Vec::new();
    for case in cases {
        match measure(&arguments, *case) {
            Ok(ratio) => summary.push((case.name(), ratio)),
            Err(reason) => {
                eprintln!("{reason}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("\n| machine | best fixed / adaptive | floor |\n|---|---|---|");
    for (name, ratio) in &summary {
        println!("| {name} | {ratio:.2} | {FLOOR:.2} |");
    }
    match summary.iter().all(|(_, ratio)| *ratio >= FLOOR) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn variants(case: Case) -> Vec<Variant> {
    let tuning = Tuning {
        limits: Limits {
            write: case.write_rate(),
            ..Limits::default()
        },
        ..Tuning::default()
    };
    let variant = |name, compression, tuning, is_fixed| Variant {
        name,
        compression,
        tuning,
        is_fixed,
        seconds: Vec::new(),
        last: None,
    };
    let auto = |goal| Tuning {
        goal,
        adapts_level: true,
        ..tuning
    };
    let alone = Tuning {
        threads: Some(1),
        ..tuning
    };
    vec![
        variant("auto, fast", Compression::ZSTD_LOW, auto(Goal::Fast), false),
        variant("LOW", Compression::ZSTD_LOW, tuning, true),
        variant("LOW, 1 thread", Compression::ZSTD_LOW, alone, true),
        variant("MEDIUM", Compression::ZSTD_MEDIUM, tuning, true),
        variant("HIGH", Compression::ZSTD_HIGH, tuning, true),
        variant(
            "auto, small",
            Compression::ZSTD_LOW,
            auto(Goal::Small),
            false,
        ),
        variant("NONE", Compression::NONE, tuning, false),
    ]
}

/// Runs all variants of a case alternately; returns the time of the best fixed one divided by that
/// of the adaptive one.
fn measure(arguments: &Arguments, case: Case) -> Result<f64, String> {
    let parent = arguments.database.parent().unwrap_or(Path::new("."));
    let folder = tempfile::tempdir_in(parent).map_err(|error| error.to_string())?;
    let file = folder.path().join("measured.bak");
    let mut variants = variants(case);
    let stop = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        if case == Case::Processors {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            for _ in 0..2 * processors {
                scope.spawn(|| burn(&stop));
            }
        }
        let outcome = rounds(arguments, &mut variants, &file);
        stop.store(true, Ordering::Relaxed);
        outcome
    });
    outcome?;
    for variant in &variants {
        print_row(case, variant);
    }
    let seconds = |variant: &Variant| median(variant.seconds.iter().copied());
    let best = variants.iter().filter(|variant| variant.is_fixed);
    let best = best.map(seconds).fold(f64::INFINITY, f64::min);
    Ok(variants.first().map_or(0.0, |auto| best / seconds(auto)))
}

fn rounds(arguments: &Arguments, variants: &mut [Variant], file: &Path) -> Result<(), String> {
    for round in 0..arguments.rounds {
        for turn in 0..variants.len() {
            let index = (turn + round) % variants.len();
            let Some(variant) = variants.get_mut(index) else {
                continue;
            };
            let report = run(arguments, variant, file)?;
            variant.seconds.push(report.elapsed.as_secs_f64());
            variant.last = Some(report);
        }
    }
    Ok(())
}

fn print_row(case: Case, variant: &Variant) {
    let seconds = median(variant.seconds.iter().copied());
    let Some(report) = &variant.last else {
        return;
    };
    let rate = report.processed_bytes as f64 / 1_048_576.0 / seconds;
    let threads = match report.adapted.mean_threads > 0.0 {
        true => format!("{:.1} threads", report.adapted.mean_threads),
        false => String::new(),
    };
    let levels = report.adapted.to_string();
    let separator = if levels.is_empty() { "" } else { "; " };
    println!(
        "| {} | {} | {seconds:.2} | {rate:.0} | {} | {levels}{separator}{threads} |",
        case.name(),
        variant.name,
        report.set.stored_bytes >> 20,
    );
}

/// Keeps a processor busy.
fn burn(stop: &AtomicBool) {
    let mut value = 1_u64;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..10_000 {
            value = std::hint::black_box(value.wrapping_mul(6_364_136_223_846_793_005) + 1);
        }
    }
}

fn run(arguments: &Arguments, variant: &Variant, file: &Path) -> Result<BackupReport, String> {
    let snapshot = SqliteSnapshot::open(&arguments.database, &SnapshotOptions::default());
    let mut snapshot = snapshot.map_err(|error| error.to_string())?;
    let start = start_of(&snapshot, arguments.mb << 20);
    snapshot.narrow(start);
    let mut request = BackupRequest::new(vec![DeviceAddress::disk(file)], variant.compression);
    request.media.overwrite = Overwrite::Format;
    request.media.skip_checks = true;
    request.copy_only = true;
    request.tuning = variant.tuning;
    backup(&request, Box::new(snapshot), &Unobserved).map_err(|error| error.to_string())
}

/// The first bytes of each file: enough to measure, never to be restored.
fn start_of(snapshot: &dyn Snapshot, bytes: u64) -> FileRanges {
    let of_file = |file: &SourceFile| {
        let ranges = snapshot.ranges(file.id).into_iter();
        let start = ranges
            .filter(|range| range.start < bytes)
            .map(|range| range.start..range.end.min(bytes));
        (file.id, start.collect())
    };
    snapshot.files().iter().map(of_file).collect()
}
