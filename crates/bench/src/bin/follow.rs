//! What a follower costs the program whose SQLite database it follows: commits per second, the time of a commit, and the
//! length of the write-ahead log, with and without it, flat out and paced.
//!
//! Writer and follower are processes of their own (this program again). Rounds alternate between the two; ratios are of
//! medians. A ratio of commits below 1.00 is what the follower costs.
//!
//! ```text
//! cargo run --release -p windlass-bench --bin follow -- --folder /var/tmp
//! ```
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, ValueEnum};
use windlass_bench::load::{self, ROWS};
use windlass_bench::median;
use windlass_source::sqlite::{FollowOptions, Follower, WhenFull};

/// How often the length of the log is looked at.
const LOOK: Duration = Duration::from_millis(5);

#[derive(Parser)]
struct Options {
    /// Where the databases and spools are made; the disk that is measured.
    #[arg(long, default_value = ".")]
    folder: PathBuf,
    /// Rounds with and without a follower, of each pace.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of one round.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Commits per second of the paced writer.
    #[arg(long, default_value_t = 420)]
    pace: u64,
    /// Milliseconds after which changes are durable in the spool.
    #[arg(long, default_value_t = 1000)]
    every: u64,
    /// Only this one.
    #[arg(long)]
    only: Option<Pace>,
    /// Which part of the measurement this process is.
    #[arg(long, hide = true)]
    role: Option<Role>,
    #[arg(long, hide = true, default_value_t = false)]
    paced: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    Writer,
    Follower,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Pace {
    FlatOut,
    Paced,
}

/// The result of one round.
#[derive(Debug, Clone, Copy, Default)]
struct Round {
    commits_per_second: f64,
    p99_milliseconds: f64,
    log_bytes: f64,
    follower: Followed,
}

/// A figure of a round.
type Figure = fn(&Round) -> f64;

/// What the follower says at its end.
#[derive(Debug, Clone, Copy, Default)]
struct Followed {
    let_goes: f64,
    proofs: f64,
    gaps: f64,
    spool_bytes: f64,
    frames: f64,
    processor_seconds: f64,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    match options.role {
        Some(Role::Writer) => {
            let pace = options.paced.then_some(options.pace);
            let written = load::write(&options.folder.join("app.db"), options.seconds, pace)?;
            println!(
                "{} {}",
                written.commits_per_second, written.p99_milliseconds
            );
            return Ok(());
        }
        Some(Role::Follower) => return follow(&options),
        None => {}
    }
    println!(
        "{ROWS} rows a commit, synchronous=FULL, {} rounds of {} s each; a moment every {} ms\n",
        options.rounds, options.seconds, options.every
    );
    for pace in [Pace::FlatOut, Pace::Paced] {
        if options.only.is_none_or(|only| only == pace) {
            compare(&options, pace)?;
        }
    }
    Ok(())
}

fn compare(options: &Options, pace: Pace) -> anyhow::Result<()> {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        without.push(round(options, pace, false)?);
        with.push(round(options, pace, true)?);
    }
    let of = |rounds: &[Round], value: Figure| median(rounds.iter().map(value));
    println!("{pace:?}{:>38}{:>12}{:>8}", "alone", "followed", "ratio");
    let rows: [(&str, Figure); 3] = [
        ("commits per second", |round| round.commits_per_second),
        ("p99 of a commit, ms", |round| round.p99_milliseconds),
        ("longest log, MB", |round| round.log_bytes / 1e6),
    ];
    for (name, value) in rows {
        let (alone, followed) = (of(&without, value), of(&with, value));
        println!(
            "  {name:<28}{alone:>12.2}{followed:>12.2}{:>8.2}",
            followed / alone
        );
    }
    let followed =
        |value: fn(&Followed) -> f64| median(with.iter().map(|round| value(&round.follower)));
    let gaps: f64 = with.iter().map(|round| round.follower.gaps).sum();
    println!(
        "  let go {}, proven {}, gaps in all rounds {gaps}; frames {}, spool {:.1} MB, processor {:.1} s of {}\n",
        followed(|end| end.let_goes),
        followed(|end| end.proofs),
        followed(|end| end.frames),
        followed(|end| end.spool_bytes) / 1e6,
        followed(|end| end.processor_seconds),
        options.seconds,
    );
    Ok(())
}

fn round(options: &Options, pace: Pace, is_followed: bool) -> anyhow::Result<Round> {
    let folder = tempfile::tempdir_in(&options.folder)?;
    load::create(&folder.path().join("app.db"), 0)?;
    let follower = match is_followed {
        true => Some(start(options, folder.path(), Role::Follower, pace)?),
        false => None,
    };
    std::thread::sleep(Duration::from_millis(300));
    let mut writer = start(options, folder.path(), Role::Writer, pace)?;
    let log = folder.path().join("app.db-wal");
    let mut log_bytes = 0;
    while writer.try_wait()?.is_none() {
        log_bytes = log_bytes.max(std::fs::metadata(&log).map_or(0, |log| log.len()));
        std::thread::sleep(LOOK);
    }
    let numbers = numbers(writer)?;
    let mut result = Round {
        commits_per_second: numbers[0],
        p99_milliseconds: numbers[1],
        log_bytes: log_bytes as f64,
        follower: Followed::default(),
    };
    if let Some(follower) = follower {
        std::fs::write(folder.path().join("stop"), "")?;
        let numbers = self::numbers(follower)?;
        result.follower = Followed {
            let_goes: numbers[0],
            proofs: numbers[1],
            gaps: numbers[2],
            spool_bytes: numbers[3],
            frames: numbers[4],
            processor_seconds: numbers[5],
        };
    }
    Ok(result)
}

fn start(options: &Options, folder: &Path, role: Role, pace: Pace) -> anyhow::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg("--role")
        .arg(match role {
            Role::Writer => "writer",
            Role::Follower => "follower",
        })
        .args(["--seconds", &options.seconds.to_string()])
        .args(["--pace", &options.pace.to_string()])
        .args(["--every", &options.every.to_string()])
        .arg("--folder")
        .arg(folder)
        .stdout(Stdio::piped());
    if pace == Pace::Paced {
        command.arg("--paced");
    }
    Ok(command.spawn()?)
}

/// The numbers that a part prints at its end.
fn numbers(mut child: Child) -> anyhow::Result<[f64; 6]> {
    let mut text = String::new();
    let mut output = child.stdout.take().context("no output")?;
    output.read_to_string(&mut text)?;
    anyhow::ensure!(child.wait()?.success(), "a part of the measurement failed");
    let mut numbers = [0.0; 6];
    for (place, number) in numbers.iter_mut().zip(text.split_whitespace()) {
        *place = number.parse()?;
    }
    Ok(numbers)
}

/// Follows until the measurement says that it is over.
fn follow(options: &Options) -> anyhow::Result<()> {
    let follow = FollowOptions {
        folder: options.folder.join("spool"),
        every: Duration::from_millis(options.every),
        each_commit: false,
        spool_bytes_max: None,
        when_full: WhenFull::Gap,
    };
    let mut follower = Follower::begin(&options.folder.join("app.db"), &follow)?;
    let end = options.folder.join("stop");
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    std::thread::spawn(move || {
        while !end.exists() {
            std::thread::sleep(Duration::from_millis(100));
        }
        flag.store(true, Ordering::Relaxed);
    });
    let end = follower.run(&stop, &mut |_| {})?;
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    println!(
        "{} {} {} {} {} {}",
        end.let_goes,
        end.proofs,
        end.gaps,
        end.spool_bytes,
        end.frames,
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    );
    Ok(())
}
