//! How close a backup comes to what the machine gives: ratios against raw reads, raw copies and the
//! codecs alone, in one run.
//!
//! `cargo run --release -p windlass-bench --bin limits -- DATABASE [ROUNDS]`
//!
//! Variants take turns; medians are compared. Windlass runs as a process of its own and tells its own
//! time from the first read to the last sync, as the raw programs here do.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that prints a table"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Instant;

use windlass_bench::median;
use windlass_io::queue::{Direction, Engine, Memory, Queue, Transfer};
use windlass_io::{Access, AlignedBuffer, DirectFile};

/// One thing that is measured: a name, and how to get seconds from one run.
struct Variant<'a> {
    name: String,
    run: Box<dyn Fn() -> Result<f64, String> + 'a>,
    seconds: Vec<f64>,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(database) = arguments.next().map(PathBuf::from) else {
        eprintln!("usage: limits DATABASE [ROUNDS]");
        return ExitCode::FAILURE;
    };
    let rounds = arguments.next().and_then(|text| text.parse().ok());
    match measure(&database, rounds.unwrap_or(5)) {
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
    let windlass = windlass()?;
    let mut variants = variants(&windlass, database, folder.path());
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
    Ok(())
}

/// The program beside this one.
fn windlass() -> Result<PathBuf, String> {
    let status = Command::new("cargo")
        .args(["build", "--release", "--quiet", "--package", "windlass"])
        .status();
    if !status.is_ok_and(|status| status.success()) {
        return Err("cargo build --release --package windlass failed".to_owned());
    }
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(this.with_file_name("windlass"))
}

const ALGORITHMS: [&str; 4] = ["ms_xpress", "zstd:low", "zstd:medium", "qat_deflate"];

fn variants<'a>(windlass: &'a Path, database: &'a Path, folder: &Path) -> Vec<Variant<'a>> {
    let text = |path: PathBuf| path.display().to_string();
    let source = database.display().to_string();
    let (one, copy) = (text(folder.join("one.bak")), folder.join("copy"));
    let restored = text(folder.join("restored.db"));
    let mut variants: Vec<Variant<'a>> = Vec::new();
    for (block, depth) in [(1 << 20, 4), (1 << 20, 16), (4 << 20, 4)] {
        let copy = copy.clone();
        variants.push(Variant {
            name: format!("raw read, {} MB x {depth}", block >> 20),
            run: Box::new(move || raw(database, None, block, depth)),
            seconds: Vec::new(),
        });
        variants.push(Variant {
            name: format!("raw copy, {} MB x {depth}", block >> 20),
            run: Box::new(move || raw(database, Some(&copy), block, depth)),
            seconds: Vec::new(),
        });
    }
    let mut own = |name: &str, words: Vec<String>| {
        variants.push(Variant {
            name: name.to_owned(),
            run: Box::new(move || own_seconds(windlass, &words)),
            seconds: Vec::new(),
        });
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
    for algorithm in ALGORITHMS {
        own(
            &format!("{algorithm} to NUL"),
            backup(algorithm, &["NUL".to_owned()]),
        );
        let mut alone = backup(algorithm, &["NUL".to_owned()]);
        alone.extend(["--threads".to_owned(), "1".to_owned()]);
        own(&format!("{algorithm} to NUL, 1 thread"), alone);
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
    variants
}

/// Runs the program and takes the time that it tells.
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

/// Reads a file with `depth` reads of `block` octets in flight, and writes what it read to `to`.
fn raw(from: &Path, to: Option<&Path>, block: usize, depth: usize) -> Result<f64, String> {
    copy(from, to, block, depth).map_err(|error| error.to_string())
}

fn copy(from: &Path, to: Option<&Path>, block: usize, depth: usize) -> std::io::Result<f64> {
    let begun = Instant::now();
    let source = Arc::new(DirectFile::open(from, Access::Read)?);
    let length = source.len()?;
    let target = match to {
        Some(path) => {
            drop(std::fs::remove_file(path));
            let target = DirectFile::open(path, Access::CreateNew)?;
            target.reserve(0, length)?;
            Some(Arc::new(target))
        }
        None => None,
    };
    let mut queue = Queue::new(depth, Engine::Ring, &[]);
    let mut spare: Vec<_> = (0..depth).map(|_| AlignedBuffer::new(block)).collect();
    let mut next = 0;
    let submit = |queue: &mut Queue, file: &Arc<DirectFile>, direction, offset, memory, bytes| {
        let transfer = Transfer {
            file: Arc::clone(file),
            direction,
            offset,
            memory,
            range: 0..bytes,
            tag: 0,
        };
        queue
            .submit(transfer)
            .map_err(|_| std::io::Error::other("the queue is full"))
    };
    loop {
        while next < length
            && let Some(buffer) = spare.pop()
        {
            let bytes = (length - next).min(block as u64) as usize;
            submit(
                &mut queue,
                &source,
                Direction::Read,
                next,
                Memory::Own(buffer),
                bytes,
            )?;
            next += bytes as u64;
        }
        let Some(done) = queue.wait() else {
            break;
        };
        let bytes = done.result?;
        let (offset, direction) = (done.transfer.offset, done.transfer.direction);
        match (direction, &target) {
            (Direction::Read, Some(target)) => {
                submit(
                    &mut queue,
                    target,
                    Direction::Write,
                    offset,
                    done.transfer.memory,
                    bytes,
                )?;
            }
            _ => {
                if let Memory::Own(buffer) = done.transfer.memory {
                    spare.push(buffer);
                }
            }
        }
    }
    if let Some(target) = target {
        target.sync()?;
    }
    Ok(begun.elapsed().as_secs_f64())
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
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
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
    for algorithm in ALGORITHMS {
        let all = seconds(&format!("{algorithm} to NUL"));
        let one = seconds(&format!("{algorithm} to NUL, 1 thread"));
        let name = format!("{algorithm}, all {cores} processors / {cores} x one thread");
        line(&name, "", one / all / cores as f64);
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
