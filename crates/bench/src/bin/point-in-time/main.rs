//! Back to any moment, beside Litestream: what it costs the program that commits, what is stored, what a crash loses, and
//! how long a restore takes.
//!
//! One program commits to a SQLite database; it is followed by nothing, by `windlass follow` with a log backup every
//! `--log-every`, or by `litestream replicate` to a folder, in turn. Half a second before it ends, the follower is killed, as with
//! its machine; what was stored by then is restored: to the latest commit, and to the middle of the time.
//! Everything is a process of its own. Medians of the rounds are shown.
//!
//! ```text
//! cargo run --release -p windlass-bench --bin point-in-time -- --folder /var/tmp --litestream litestream
//! ```
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

mod followers;
mod round;

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use followers::Who;
use round::Round;
use windlass_bench::load::{self, ROWS};
use windlass_bench::{median, windlass_program};

#[derive(Parser)]
struct Options {
    /// Where databases and backups are made; the disk that is measured.
    #[arg(long, default_value = ".")]
    folder: PathBuf,
    /// Size of the database at the beginning
    #[arg(long, default_value_t = 1024)]
    size_mb: u64,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of one round
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Commits per second of the paced program
    #[arg(long, default_value_t = 420)]
    pace: u64,
    /// Milliseconds between two log backups
    #[arg(long, default_value_t = 1000)]
    log_every: u64,
    /// The program; without it, it is left out
    #[arg(long)]
    litestream: Option<PathBuf>,
    /// Commits: which part of the measurement this process is
    #[arg(long, hide = true)]
    commits_to: Option<PathBuf>,
    #[arg(long, hide = true)]
    paced: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Pace {
    FlatOut,
    Paced,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if let Some(path) = &options.commits_to {
        let pace = options.paced.then_some(options.pace);
        let written = load::write(path, options.seconds, pace)?;
        println!(
            "{} {}",
            written.commits_per_second, written.p99_milliseconds
        );
        return Ok(());
    }
    let windlass = windlass_program().map_err(anyhow::Error::msg)?;
    let folder = tempfile::tempdir_in(&options.folder)?;
    let original = folder.path().join("original.db");
    load::create(&original, options.size_mb << 20)?;
    println!(
        "{ROWS} rows a commit, synchronous=FULL, {} MB, {} rounds of {} s each; a log backup every {} ms",
        options.size_mb, options.rounds, options.seconds, options.log_every
    );
    let mut all = vec![Who::Nobody, Who::Windlass(windlass)];
    match &options.litestream {
        Some(program) => all.push(Who::Litestream(program.clone())),
        None => println!("SKIPPED: Litestream (--litestream PROGRAM)"),
    }
    for pace in [Pace::FlatOut, Pace::Paced] {
        let mut rounds: Vec<Vec<Round>> = vec![Vec::new(); all.len()];
        for _ in 0..options.rounds {
            for (who, of) in all.iter().zip(&mut rounds) {
                of.push(round::run(&options, pace, who, &original)?);
            }
        }
        print(pace, &all, &rounds);
    }
    Ok(())
}

/// A figure of a round.
type Figure = fn(&Round) -> f64;

fn print(pace: Pace, all: &[Who], rounds: &[Vec<Round>]) {
    print!("\n{:<38}", format!("{pace:?}"));
    for who in all {
        print!("{:>14}", who.name());
    }
    println!();
    let of = |rounds: &[Round], figure: Figure| median(rounds.iter().map(figure));
    let rows: [(&str, Figure); 11] = [
        ("commits per second", |round| round.commits_per_second),
        ("p99 of a commit, ms", |round| round.p99_milliseconds),
        ("longest write-ahead log, MB", |round| round.log_bytes / 1e6),
        ("processor of the follower, s", |round| {
            round.processor_seconds
        }),
        ("first copy, MB", |round| round.first_bytes / 1e6),
        ("stored for the commits, MB", |round| {
            round.stored_bytes / 1e6
        }),
        ("lost with the machine, commits", |round| round.lost_commits),
        ("the same in seconds", |round| {
            round.lost_commits / round.commits_per_second
        }),
        ("restore to the latest, s", |round| round.latest_seconds),
        ("restore to the middle, s", |round| round.middle_seconds),
        ("its commits, of those in the latest", |round| {
            round.middle_share
        }),
    ];
    for (name, figure) in rows {
        print!("  {name:<36}");
        for of_who in rounds {
            print!("{:>14.2}", of(of_who, figure));
        }
        println!();
    }
    print!("  {:<36}", "commits kept");
    let commits = |of_who: &[Round]| of(of_who, |round| round.commits_per_second);
    for of_who in rounds {
        print!("{:>14.2}", commits(of_who) / commits(&rounds[0]));
    }
    println!();
}
