//! SQL Server backups: their sizes on Windlass media, and how fast they are read.
//!
//! `cargo run --release -p windlass-bench --bin sql-server -- FOLDER [--mb 500] [--rounds 3]
//! [--only sizes|speed]`
//!
//! `FOLDER` has the backups, such as the samples of the shared data. Sizes: every backup is repacked
//! alone, with each level of ZSTD. Speed: the largest plain backups, and the compressed ones, are
//! processed again and again until they add up to the given amount of plain data; the files are in
//! the page cache, and rates count the plain data. Variants take turns; medians are shown.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that prints a table"
)]

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Parser, ValueEnum};
use windlass_bak::{Container, Outline, PlainStream, RECORD_HEADER_BYTES, Verifier};
use windlass_bench::{median, windlass_program};
use windlass_codec::xpress::BlockDecoder;
use windlass_device::DeviceAddress;
use windlass_sqlserver::{BackupInput, Format, Source, extract};

const LEVELS: [&str; 4] = ["ms_xpress", "zstd:low", "zstd:medium", "zstd:high"];

/// The number of plain backups whose reading is measured.
const PLAIN_MEASURED: usize = 4;

#[derive(Debug, Parser)]
struct Arguments {
    /// Folder with the backups
    folder: PathBuf,
    /// MB of plain data that are read in each round
    #[arg(long, default_value_t = 500)]
    mb: u64,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Both unless given
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// The program; built unless given
    #[arg(long)]
    program: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Sizes,
    Speed,
}

/// A backup file.
#[derive(Debug, Clone)]
struct Backup {
    path: PathBuf,
    container: Container,
    file_bytes: u64,
    plain_bytes: u64,
    /// Whether it can be read alone, without damage.
    is_whole: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let backups = backups(&arguments.folder)?;
    if arguments.only != Some(Part::Speed) {
        sizes(arguments, &backups)?;
    }
    if arguments.only != Some(Part::Sizes) {
        speed(arguments, &backups)?;
    }
    Ok(())
}

fn backups(folder: &Path) -> Result<Vec<Backup>> {
    let mut backups = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let extension = path.extension().unwrap_or_default();
        if extension != "bak" && extension != "trn" {
            continue;
        }
        let outline = Outline::read(BackupInput::open_file(&path)?)?;
        let mut verifier = Verifier::new(1);
        verifier.family(BackupInput::open_file(&path)?)?;
        backups.push(Backup {
            container: outline.container,
            file_bytes: std::fs::metadata(&path)?.len(),
            plain_bytes: outline.stream_bytes,
            is_whole: verifier.finish().is_valid() && outline.sets.len() == 1,
            path,
        });
    }
    ensure!(!backups.is_empty(), "{}: no backups", folder.display());
    backups.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(backups)
}

/// Repacks every backup alone with every level.
fn sizes(arguments: &Arguments, backups: &[Backup]) -> Result<()> {
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => windlass_program().map_err(anyhow::Error::msg)?,
    };
    let folder = tempfile::tempdir()?;
    println!(
        "| backup | plain | file | {} |\n|---|---|---|---|---|---|---|",
        LEVELS.join(" | ")
    );
    for container in [Container::Compressed, Container::Tape] {
        let name = match container {
            Container::Compressed => "compressed (MS_XPRESS)",
            Container::Tape => "plain",
        };
        let of_kind = backups
            .iter()
            .filter(|backup| backup.container == container);
        let (mut count, mut totals) = (0, [0; 2 + LEVELS.len()]);
        for backup in of_kind {
            let mut row = vec![backup.plain_bytes, backup.file_bytes];
            for level in LEVELS {
                row.push(repacked(&program, folder.path(), backup, level)?);
            }
            // Plain ones are many and alike.
            if container == Container::Compressed {
                let file = backup.path.file_stem().unwrap_or_default();
                print_sizes(&file.to_string_lossy(), &row);
            }
            count += 1;
            for (total, bytes) in totals.iter_mut().zip(row) {
                *total += bytes;
            }
        }
        print_sizes(&format!("**all {count} {name}**"), &totals);
    }
    Ok(())
}

fn print_sizes(name: &str, sizes: &[u64]) {
    let sizes: Vec<String> = sizes
        .iter()
        .map(|bytes| format!("{}", bytes.div_ceil(1024)))
        .collect();
    println!("| {name} | {} |", sizes.join(" | "));
}

/// The size of a backup on media of its own.
fn repacked(program: &Path, folder: &Path, backup: &Backup, level: &str) -> Result<u64> {
    let media = folder.join("media");
    let mut command = Command::new(program);
    command
        .arg("repack")
        .arg(&backup.path)
        .arg("--to")
        .arg(&media)
        .args(["--compress", level, "--continue-after-error"])
        .env_remove("WINDLASS_INSTANCE")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if !command.status()?.success() {
        bail!("repack of {} failed", backup.path.display());
    }
    let bytes = std::fs::metadata(&media)?.len();
    std::fs::remove_file(&media)?;
    Ok(bytes)
}

/// A way to process one backup; whether there was anything to do.
type Work = fn(&Backup, &Path) -> Result<bool>;

fn speed(arguments: &Arguments, backups: &[Backup]) -> Result<()> {
    let folder = tempfile::tempdir()?;
    println!("\n| what | plain MB/s | compressed MB/s |\n|---|---|---|");
    let ways: [(&str, Work); 6] = [
        ("read the file", read),
        ("the XPRESS decoder alone, one thread", decode),
        ("expand to the plain stream", expand),
        ("verify", verify),
        ("extract every table to SQLite", to_sqlite),
        ("extract every table to Parquet", to_parquet),
    ];
    let kinds = [Container::Tape, Container::Compressed].map(|container| {
        let of_kind = |backup: &&Backup| backup.container == container && backup.is_whole;
        let mut chosen: Vec<Backup> = backups.iter().filter(of_kind).cloned().collect();
        chosen.sort_by_key(|backup| std::cmp::Reverse(backup.plain_bytes));
        if container == Container::Tape {
            chosen.truncate(PLAIN_MEASURED);
        }
        chosen
    });
    let mut rates = vec![[Vec::new(), Vec::new()]; ways.len()];
    for _ in 0..arguments.rounds {
        for (rates, (_, work)) in rates.iter_mut().zip(&ways) {
            for (rates, chosen) in rates.iter_mut().zip(&kinds) {
                rates.push(rate(chosen, *work, folder.path(), arguments.mb << 20)?);
            }
        }
    }
    for (rates, (name, _)) in rates.into_iter().zip(ways) {
        let [plain, compressed] = rates.map(|rates| match median(rates) {
            rate if rate > 0.0 => format!("{rate:.0}"),
            _ => "-".to_owned(),
        });
        println!("| {name} | {plain} | {compressed} |");
    }
    Ok(())
}

/// MB of plain data per second; 0 if there is nothing to do.
fn rate(backups: &[Backup], work: Work, folder: &Path, wanted: u64) -> Result<f64> {
    let begun = Instant::now();
    let mut done = 0;
    while done < wanted {
        let before = done;
        for backup in backups {
            if work(backup, folder).with_context(|| backup.path.display().to_string())? {
                done += backup.plain_bytes;
            }
        }
        if done == before {
            return Ok(0.0);
        }
    }
    Ok(done as f64 / 1_048_576.0 / begun.elapsed().as_secs_f64())
}

fn read(backup: &Backup, _folder: &Path) -> Result<bool> {
    let mut file = File::open(&backup.path)?;
    let mut buffer = vec![0; 1 << 20];
    while file.read(&mut buffer)? > 0 {}
    Ok(true)
}

fn decode(backup: &Backup, _folder: &Path) -> Result<bool> {
    if backup.container == Container::Tape {
        return Ok(false);
    }
    let bytes = std::fs::read(&backup.path)?;
    let outline = Outline::read(&bytes[..])?;
    let mut decoder = BlockDecoder::default();
    let mut block = vec![0; 1 << 16];
    for (_, at) in outline.records {
        let record = &bytes[at as usize..];
        if record.starts_with(b"SFMB") {
            continue;
        }
        let length = usize::from(u16::from_le_bytes([record[2], record[3]]));
        let payload = &record[RECORD_HEADER_BYTES..RECORD_HEADER_BYTES + length];
        let room = &mut block[..usize::from(record[1]) * 512];
        if let Err(damage) = decoder.decode_block(payload, room) {
            bail!("{damage}");
        }
    }
    Ok(true)
}

fn expand(backup: &Backup, _folder: &Path) -> Result<bool> {
    let mut stream = PlainStream::open(BackupInput::open_file(&backup.path)?)?;
    stream.expect(u64::MAX);
    loop {
        let bytes = stream.peek(1 << 16)?.len();
        if bytes == 0 {
            return Ok(true);
        }
        stream.consume(bytes);
    }
}

fn verify(backup: &Backup, _folder: &Path) -> Result<bool> {
    let mut verifier = Verifier::new(1);
    verifier.family(BackupInput::open_file(&backup.path)?)?;
    ensure!(verifier.finish().is_valid(), "it is damaged");
    Ok(true)
}

fn to_sqlite(backup: &Backup, folder: &Path) -> Result<bool> {
    let to = folder.join("extracted.db");
    let is_done = extract_all(backup, &to, Format::Sqlite)?;
    if is_done {
        std::fs::remove_file(&to)?;
    }
    Ok(is_done)
}

fn to_parquet(backup: &Backup, folder: &Path) -> Result<bool> {
    let to = folder.join("extracted");
    let is_done = extract_all(backup, &to, Format::Parquet)?;
    if is_done {
        std::fs::remove_dir_all(&to)?;
    }
    Ok(is_done)
}

fn extract_all(backup: &Backup, to: &Path, format: Format) -> Result<bool> {
    // Logs and differentials have no tables of their own.
    let Ok(mut source) = Source::open(&[DeviceAddress::disk(&backup.path)], 1) else {
        return Ok(false);
    };
    extract(&mut source, to, format, &[])?;
    Ok(true)
}
