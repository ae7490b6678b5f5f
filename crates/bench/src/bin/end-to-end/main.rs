//! Whole backups, restores and verifications compared with common tools, in one run.
//!
//! `cargo run --release -p windlass-bench --bin end-to-end -- DATABASE...`
//!
//! Variants alternate, so that drift of the machine affects all alike; medians are shown. Every run
//! is a separate process from start to end, including the sync of what it wrote. The page cache has
//! the database for the other tools, which read through it; Windlass bypasses it. `--short` measures
//! only what the floors need.
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

mod floors;
mod ours;
mod peers;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use windlass_bench::{cpu_of_children, median, windlass_program};

const MB: f64 = 1_048_576.0;

#[derive(Debug, Parser)]
#[command(about = "Measures whole backups and restores, beside common tools")]
struct Arguments {
    /// SQLite databases; each gets a table of its own. Results are written beside each
    #[arg(required = true)]
    databases: Vec<PathBuf>,
    /// How often each variant runs; the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only what the floors need, three rounds
    #[arg(long, conflicts_with = "rounds")]
    short: bool,
    /// Only variants whose name contains this text
    #[arg(long)]
    only: Option<String>,
}

/// A row of the table.
struct Variant {
    name: String,
    /// Commands before each run that are not measured.
    before: Vec<Vec<String>>,
    /// Commands that are run in sequence and measured together.
    commands: Vec<Vec<String>>,
    /// File or folder of the result, whose size is shown.
    result: Option<PathBuf>,
    runs: Vec<Run>,
}

struct Run {
    elapsed: Duration,
    processor: Duration,
}

impl Variant {
    fn new(name: impl Into<String>, commands: Vec<Vec<String>>, result: Option<PathBuf>) -> Self {
        Self {
            name: name.into(),
            before: Vec::new(),
            commands,
            result,
            runs: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<(), anyhow::Error> {
        for command in &self.before {
            execute(command)?;
        }
        let processor_before = cpu_of_children();
        let begun = Instant::now();
        for command in &self.commands {
            execute(command)?;
        }
        self.runs.push(Run {
            elapsed: begun.elapsed(),
            processor: cpu_of_children().saturating_sub(processor_before),
        });
        Ok(())
    }

    fn seconds(&self) -> f64 {
        median(self.runs.iter().map(|run| run.elapsed.as_secs_f64()))
    }

    fn processor_seconds(&self) -> f64 {
        median(self.runs.iter().map(|run| run.processor.as_secs_f64()))
    }

    /// Bytes of the result; `None` if the variant keeps none.
    fn result_bytes(&self) -> Option<u64> {
        self.result.as_deref().and_then(|path| bytes_of(path).ok())
    }
}

fn main() -> Result<(), anyhow::Error> {
    let arguments = Arguments::parse();
    let windlass = windlass_program().map_err(anyhow::Error::msg)?;
    for database in &arguments.databases {
        let parent = database.parent().unwrap_or(Path::new("."));
        let folder = parent.join(format!("windlass-bench-{}", std::process::id()));
        std::fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
        let outcome = measure(&arguments, &windlass, database, &folder);
        std::fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
        outcome?;
    }
    Ok(())
}

fn measure(
    arguments: &Arguments,
    windlass: &Path,
    database: &Path,
    folder: &Path,
) -> Result<(), anyhow::Error> {
    let bytes = bytes_of(database)?;
    let kind = Kind::of(database)?;
    let mut variants = ours::variants(windlass, database, folder);
    if !kind.is_wal {
        variants.push(ours::without_temporary_copy(windlass, database, folder));
    }
    variants.extend(ours::encrypted(windlass, database, folder)?);
    variants.extend(peers::variants(database, folder));
    if arguments.short {
        variants.retain(|variant| floors::need(&variant.name));
    }
    if let Some(only) = &arguments.only {
        variants.retain(|variant| variant.name.contains(only.as_str()));
    }
    let rounds = match arguments.short {
        true => 3,
        false => arguments.rounds,
    };
    println!(
        "{}: {}, {} mode, {:.0} MB, {rounds} rounds, medians\n",
        database.display(),
        if kind.is_utf_16 { "UTF-16" } else { "UTF-8" },
        if kind.is_wal { "WAL" } else { "rollback" },
        bytes as f64 / MB
    );
    for _ in 0..rounds {
        for variant in &mut variants {
            variant.run()?;
        }
    }
    print_table(&variants, bytes);
    windlass_bench::floor::print(&floors::of(&variants, kind.is_utf_16));
    println!();
    Ok(())
}

fn print_table(variants: &[Variant], bytes: u64) {
    println!("| variant | seconds | MB/s | CPU s | size MB | ratio |");
    println!("|---|---|---|---|---|---|");
    for variant in variants {
        let seconds = variant.seconds();
        let (size, ratio) = match variant.result_bytes() {
            Some(size) => (
                format!("{:.1}", size as f64 / MB),
                format!("{:.2}", bytes as f64 / size as f64),
            ),
            None => ("-".to_owned(), "-".to_owned()),
        };
        println!(
            "| {} | {seconds:.2} | {:.0} | {:.2} | {size} | {ratio} |",
            variant.name,
            bytes as f64 / MB / seconds,
            variant.processor_seconds()
        );
    }
}

/// What the header of a SQLite database says of it.
struct Kind {
    /// Text is stored as UTF-16: bytes 56 to 59.
    is_utf_16: bool,
    /// Byte 18, the version for writing.
    is_wal: bool,
}

impl Kind {
    fn of(database: &Path) -> Result<Self, anyhow::Error> {
        let mut header = [0; 60];
        let read = std::fs::File::open(database)
            .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut header));
        read.with_context(|| database.display().to_string())?;
        ensure!(
            header.starts_with(b"SQLite format 3\0"),
            "{}: not a SQLite database",
            database.display()
        );
        Ok(Self {
            is_utf_16: matches!(header[56..], [0, 0, 0, 2 | 3]),
            is_wal: header[18] == 2,
        })
    }
}

/// Bytes of a file, or of all files of a folder.
fn bytes_of(path: &Path) -> Result<u64, anyhow::Error> {
    let metadata = std::fs::metadata(path).with_context(|| path.display().to_string())?;
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    let mut bytes = 0;
    for entry in std::fs::read_dir(path)? {
        bytes += bytes_of(&entry?.path())?;
    }
    Ok(bytes)
}

fn execute(words: &[String]) -> Result<(), anyhow::Error> {
    let (program, arguments) = words.split_first().context("a command has a program")?;
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .with_context(|| program.clone())?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        bail!("{}: {reason}", words.join(" "));
    }
    Ok(())
}
