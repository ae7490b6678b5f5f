//! How close a backup comes to the limits of the machine: ratios to raw reads, raw copies and the
//! codecs alone, in one run.
//!
//! `cargo run --release -p windlass-bench --bin limits -- DATABASE [ROUNDS] [--short]`
//!
//! `--short` is two rounds: two minutes for 1 GB. Variants alternate; medians are compared. Windlass runs as a separate process and reports its
//! own time from the first read to the last sync, as the raw programs here do.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that prints a table"
)]

mod memory;
mod raw;
mod small;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use windlass_bench::{median, windlass_program};
use windlass_codec::Compression;

use crate::memory::Chunks;
use crate::raw::raw;

/// A measured variant: a name, and how to get the seconds of one run.
struct Variant<'a> {
    name: String,
    run: Box<dyn Fn() -> Result<f64, String> + 'a>,
    seconds: Vec<f64>,
}

impl<'a> Variant<'a> {
    fn new(name: String, run: impl Fn() -> Result<f64, String> + 'a) -> Self {
        Self {
            name,
            run: Box::new(run),
            seconds: Vec::new(),
        }
    }
}

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_short = arguments.iter().any(|argument| argument == "--short");
    arguments.retain(|argument| argument != "--short");
    let [database, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: limits DATABASE [ROUNDS] [--short]");
        return ExitCode::FAILURE;
    };
    let rounds = rest.first().and_then(|text| text.parse().ok());
    let rounds = rounds.unwrap_or(if is_short { 2 } else { 5 });
    match measure(Path::new(database), rounds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn measure(database: &Path, rounds: usize) -> Result<(), String> {
    let parent = database.parent().unwrap_or(Path::new("."));
    let folder = tempfile::tempdir_in(parent).map_err(|error| error.to_string())?;
    let windlass = windlass_program()?;
    let chunks = Chunks::read(database).map_err(|error| error.to_string())?;
    let mut variants = variants(&windlass, database, folder.path(), &chunks);
    for _ in 0..rounds {
        for variant in &mut variants {
            variant.seconds.push((variant.run)()?);
        }
    }
    let bytes = std::fs::metadata(database).map_or(0, |metadata| metadata.len());
    println!(
        "{}: {} MB, {rounds} rounds\n",
        database.display(),
        bytes >> 20
    );
    println!("| variant | seconds | MB/s |\n|---|---|---|");
    for variant in &variants {
        let seconds = median(variant.seconds.iter().copied());
        let rate = bytes as f64 / 1_048_576.0 / seconds;
        println!("| {} | {seconds:.3} | {rate:.0} |", variant.name);
    }
    print_ratios(&variants);
    small::measure(&windlass, folder.path(), rounds.max(11))
}

const ALGORITHMS: [(&str, Compression); 4] = [
    ("ms_xpress", Compression::MS_XPRESS),
    ("zstd:low", Compression::ZSTD_LOW),
    ("zstd:medium", Compression::ZSTD_MEDIUM),
    ("qat_deflate", Compression::QAT_DEFLATE),
];

fn variants<'a>(
    windlass: &'a Path,
    database: &'a Path,
    folder: &Path,
    chunks: &'a Chunks,
) -> Vec<Variant<'a>> {
    let text = |path: PathBuf| path.display().to_string();
    let source = database.display().to_string();
    let (one, copy) = (text(folder.join("one.bak")), folder.join("copy"));
    let restored = text(folder.join("restored.db"));
    let mut variants: Vec<Variant<'a>> = Vec::new();
    for (block, depth) in [(1 << 20, 4), (1 << 20, 16), (4 << 20, 4)] {
        let copy = copy.clone();
        let size = format!("{} MB x {depth}", block >> 20);
        variants.push(Variant::new(format!("raw read, {size}"), move || {
            raw(database, None, block, depth)
        }));
        variants.push(Variant::new(format!("raw copy, {size}"), move || {
            raw(database, Some(&copy), block, depth)
        }));
    }
    let mut own = |name: &str, words: Vec<String>| {
        let run = move || own_seconds(windlass, &words);
        variants.push(Variant::new(name.to_owned(), run));
    };
    let backup = |algorithm: &str, to: &[String]| {
        let fixed = [
            "backup",
            &source,
            "--copy-only",
            "--format",
            "--compress",
            algorithm,
        ];
        let mut words: Vec<String> = fixed.iter().map(|word| (*word).to_owned()).collect();
        for device in to {
            words.extend(["--to".to_owned(), device.clone()]);
        }
        words
    };
    own("NONE to NUL", backup("none", &["NUL".to_owned()]));
    own("NONE to 1 file", backup("none", std::slice::from_ref(&one)));
    for count in [2, 4] {
        let files: Vec<String> = (0..count)
            .map(|index| text(folder.join(format!("{count}-{index}.bak"))))
            .collect();
        own(&format!("NONE to {count} files"), backup("none", &files));
    }
    for (algorithm, _) in ALGORITHMS {
        own(
            &format!("{algorithm} to NUL"),
            backup(algorithm, &["NUL".to_owned()]),
        );
    }
    own(
        "zstd:low to 1 file",
        backup("zstd:low", std::slice::from_ref(&one)),
    );
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    own("verify zstd:low", words(&["verify", &one]));
    own(
        "restore zstd:low",
        words(&["restore", &one, "--to", &restored, "--replace"]),
    );
    variants.extend(in_memory(chunks));
    variants
}

/// Each codec on one thread and on all, in seconds for the whole database.
fn in_memory(chunks: &Chunks) -> impl Iterator<Item = Variant<'_>> {
    ALGORITHMS.into_iter().flat_map(move |(algorithm, codec)| {
        [1, processors()].map(|threads| {
            Variant::new(
                format!("{algorithm} in memory, {threads} threads"),
                move || Ok(chunks.compress(codec, threads)? * chunks.scale),
            )
        })
    })
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs the program and returns the time that it reports.
fn own_seconds(windlass: &Path, words: &[String]) -> Result<f64, String> {
    let output = Command::new(windlass).args(words).arg("--json").output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let after = text.split("\"elapsed_seconds\":").nth(1).unwrap_or("");
    let digits = after.trim_start().split([',', '}']).next().unwrap_or("");
    digits
        .trim()
        .parse()
        .map_err(|_| format!("no time in the answer of {}", words.join(" ")))
}

fn print_ratios(variants: &[Variant<'_>]) {
    let seconds = |name: &str| {
        let found = variants.iter().find(|variant| variant.name == name);
        found.map_or(f64::NAN, |variant| median(variant.seconds.iter().copied()))
    };
    let best = |start: &str| {
        variants
            .iter()
            .filter(|variant| variant.name.starts_with(start))
            .map(|variant| median(variant.seconds.iter().copied()))
            .fold(f64::INFINITY, f64::min)
    };
    let cores = processors();
    println!("\n| ratio of rates | bound | measured |\n|---|---|---|");
    let line = |name: &str, bound: &str, value: f64| println!("| {name} | {bound} | {value:.2} |");
    line(
        "NONE to NUL / best raw read",
        ">= 0.90",
        best("raw read") / seconds("NONE to NUL"),
    );
    line(
        "NONE to 1 file / best raw copy",
        ">= 0.90",
        best("raw copy") / seconds("NONE to 1 file"),
    );
    let striped = seconds("NONE to 2 files").min(seconds("NONE to 4 files"));
    line(
        "NONE to 1 file / best striped",
        ">= 0.95",
        striped / seconds("NONE to 1 file"),
    );
    for (algorithm, _) in ALGORITHMS {
        let all = seconds(&format!("{algorithm} to NUL"));
        let in_memory = |threads| seconds(&format!("{algorithm} in memory, {threads} threads"));
        let name = format!("{algorithm} to NUL / {cores} x one thread in memory");
        line(&name, ">= 0.95", in_memory(1) / cores as f64 / all);
        let name = format!("{algorithm} to NUL / {cores} threads in memory");
        line(&name, "", in_memory(cores) / all);
    }
    line(
        "QAT_DEFLATE / MS_XPRESS, to NUL",
        ">= 2.00 with ISA-L",
        seconds("ms_xpress to NUL") / seconds("qat_deflate to NUL"),
    );
    line(
        "restore / backup, ZSTD LOW",
        ">= 1.00",
        seconds("zstd:low to 1 file") / seconds("restore zstd:low"),
    );
    line(
        "verify / restore, ZSTD LOW",
        "> 1.00",
        seconds("restore zstd:low") / seconds("verify zstd:low"),
    );
}
