//! Whole backups, restores and verifications compared with common tools, in one run.
//!
//! `cargo run --release -p windlass-bench --bin end-to-end -- DATABASE [ROUNDS]`
//!
//! Variants alternate, so that drift of the machine affects all alike; medians are shown. Every run
//! is a separate process from start to end, including syncs. The page cache has the database for
//! the other tools, which read through it; Windlass bypasses it.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that prints a table"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use windlass_bench::{cpu_of_children, median, windlass_program};
use windlass_crypt::Identity;

const ALGORITHMS: [&str; 6] = [
    "none",
    "ms_xpress",
    "zstd:low",
    "zstd:medium",
    "zstd:high",
    "qat_deflate",
];

/// A row of the table.
struct Variant {
    name: String,
    /// Commands that are run in sequence and measured together.
    commands: Vec<Vec<String>>,
    /// Path of the result, if it is kept long enough to measure its size.
    result: Option<PathBuf>,
    runs: Vec<(Duration, Duration)>,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(database) = arguments.next().map(PathBuf::from) else {
        eprintln!("usage: end-to-end DATABASE [ROUNDS]");
        return ExitCode::FAILURE;
    };
    let rounds = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(5);
    match measure(&database, rounds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn measure(database: &Path, rounds: usize) -> Result<(), String> {
    let bytes = std::fs::metadata(database)
        .map_err(|error| format!("{}: {error}", database.display()))?
        .len();
    let windlass = windlass_program()?;
    let parent = database.parent().unwrap_or(Path::new("."));
    let folder = parent.join(format!("windlass-bench-{}", std::process::id()));
    std::fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let outcome = run_all(&windlass, database, &folder, bytes, rounds);
    std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    outcome
}

fn run_all(
    windlass: &Path,
    database: &Path,
    folder: &Path,
    bytes: u64,
    rounds: usize,
) -> Result<(), String> {
    let mut variants = own_variants(windlass, database, folder);
    variants.extend(encrypted_variants(windlass, database, folder)?);
    variants.extend(peers(database, folder));
    println!(
        "{}: {:.0} MB, {rounds} rounds",
        database.display(),
        bytes as f64 / 1_048_576.0
    );
    for _ in 0..rounds {
        for variant in &mut variants {
            if let Some(result) = &variant.result
                && variant.name.starts_with("backup")
            {
                drop(std::fs::remove_file(result));
            }
            let cpu_before = cpu_of_children();
            let begun = Instant::now();
            for command in &variant.commands {
                execute(command)?;
            }
            variant.runs.push((
                begun.elapsed(),
                cpu_of_children().saturating_sub(cpu_before),
            ));
        }
    }
    println!(
        "{:<34}{:>9}{:>10}{:>8}{:>11}{:>8}",
        "variant", "seconds", "MB/s", "CPU s", "size MB", "ratio"
    );
    for variant in &variants {
        print_row(variant, bytes);
    }
    Ok(())
}

fn print_row(variant: &Variant, bytes: u64) {
    let seconds = median(variant.runs.iter().map(|run| run.0.as_secs_f64()));
    let cpu = median(variant.runs.iter().map(|run| run.1.as_secs_f64()));
    let rate = bytes as f64 / 1_048_576.0 / seconds;
    let size = variant
        .result
        .as_deref()
        .and_then(|path| std::fs::metadata(path).ok())
        .map(|metadata| metadata.len());
    let (size, ratio) = match size {
        Some(size) => (
            format!("{:.1}", size as f64 / 1_048_576.0),
            format!("{:.2}", bytes as f64 / size as f64),
        ),
        None => ("-".to_owned(), "-".to_owned()),
    };
    println!(
        "{:<34}{seconds:>9.2}{rate:>10.0}{cpu:>8.2}{size:>11}{ratio:>8}",
        variant.name
    );
}

fn own_variants(windlass: &Path, database: &Path, folder: &Path) -> Vec<Variant> {
    let windlass = windlass.display().to_string();
    let database = database.display().to_string();
    let command = |words: &[&str]| {
        std::iter::once(windlass.clone())
            .chain(words.iter().map(|word| (*word).to_owned()))
            .collect::<Vec<_>>()
    };
    let mut variants = Vec::new();
    for algorithm in ALGORITHMS {
        let media = folder.join(format!("{}.bak", algorithm.replace(':', "-")));
        let to = media.display().to_string();
        let restored = folder.join("restored.db").display().to_string();
        let mut add = |name: String, words: &[&str], result: Option<&Path>| {
            variants.push(Variant {
                name,
                commands: vec![command(words)],
                result: result.map(Path::to_owned),
                runs: Vec::new(),
            });
        };
        add(
            format!("nul {algorithm}"),
            &[
                "backup",
                &database,
                "--to",
                "NUL",
                "--copy-only",
                "--compress",
                algorithm,
            ],
            None,
        );
        add(
            format!("backup {algorithm}"),
            &[
                "backup",
                &database,
                "--to",
                &to,
                "--format",
                "--compress",
                algorithm,
            ],
            Some(&media),
        );
        add(
            format!("verify {algorithm}"),
            &["verify", &to],
            Some(&media),
        );
        add(
            format!("restore {algorithm}"),
            &["restore", &to, "--to", &restored, "--replace"],
            Some(&media),
        );
    }
    variants
}

/// The cost of AES-256: compare with the same without encryption.
fn encrypted_variants(
    windlass: &Path,
    database: &Path,
    folder: &Path,
) -> Result<Vec<Variant>, String> {
    let certificate = folder.join("certificate.pem");
    let pem = Identity::create("benchmark", 1)
        .and_then(|identity| identity.certificate().to_pem())
        .map_err(|error| error.to_string())?;
    std::fs::write(&certificate, pem).map_err(|error| error.to_string())?;
    let text = |path: &Path| path.display().to_string();
    let variant = |algorithm: &str| {
        let options = [
            "--to",
            "NUL",
            "--copy-only",
            "--compress",
            algorithm,
            "--encrypt-to",
        ];
        let mut command = vec![text(windlass), "backup".to_owned(), text(database)];
        command.extend(options.map(str::to_owned));
        command.push(text(&certificate));
        Variant {
            name: format!("nul {algorithm}, encrypted"),
            commands: vec![command],
            result: None,
            runs: Vec::new(),
        }
    };
    Ok(["none", "zstd:low"].map(variant).into_iter().collect())
}

/// Common tools, if installed.
fn peers(database: &Path, folder: &Path) -> Vec<Variant> {
    let database = database.display().to_string();
    let file = |name: &str| folder.join(name).display().to_string();
    let words = |text: &[&str]| {
        text.iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let mut peers: Vec<(&str, Vec<Vec<String>>, String)> = Vec::new();
    if is_installed("sqlite3") {
        let copy = file("peer.db");
        let remove = words(&["rm", "-f", &copy]);
        let backup = words(&["sqlite3", &database, &format!(".backup '{copy}'")]);
        let vacuum = words(&["sqlite3", &database, &format!("VACUUM INTO '{copy}'")]);
        peers.push((
            "peer sqlite3 .backup",
            vec![remove.clone(), backup.clone()],
            copy.clone(),
        ));
        peers.push((
            "peer VACUUM INTO",
            vec![remove.clone(), vacuum],
            copy.clone(),
        ));
        if is_installed("zstd") {
            let packed = file("peer.db.zst");
            let zstd = words(&["zstd", "-q", "-f", "-T0", "-1", &copy, "-o", &packed]);
            peers.push((
                "peer .backup + zstd -T0 -1",
                vec![remove, backup, zstd],
                packed,
            ));
        }
    } else {
        println!("SKIPPED: sqlite3 is not installed");
    }
    if is_installed("zstd") {
        let packed = file("direct.zst");
        let zstd = words(&["zstd", "-q", "-f", "-T0", "-1", &database, "-o", &packed]);
        peers.push(("peer zstd -T0 -1 of the file", vec![zstd], packed));
    } else {
        println!("SKIPPED: zstd is not installed");
    }
    peers
        .into_iter()
        .map(|(name, commands, result)| Variant {
            name: name.to_owned(),
            commands,
            result: Some(PathBuf::from(result)),
            runs: Vec::new(),
        })
        .collect()
}

fn is_installed(program: &str) -> bool {
    let mut command = Command::new(program);
    command
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn execute(words: &[String]) -> Result<(), String> {
    let (program, arguments) = words.split_first().ok_or("a command has a program")?;
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "{}: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr)
        )),
        Err(error) => Err(format!("{program}: {error}")),
    }
}
