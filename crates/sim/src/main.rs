//! `windlass-sim`: runs seeds of the simulation and reports their number.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a tool that talks to its caller")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use windlass_sim::{Outcome, Steps};

#[derive(Parser)]
#[command(name = "windlass-sim", about = "Simulates crashes of the page engine")]
struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Run only this one, and print its steps.
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (first, count, steps) = match arguments.seed {
        Some(seed) => (seed, 1, Steps::Printed),
        None => (arguments.first, arguments.seeds, Steps::Silent),
    };
    let start = Instant::now();
    let mut printed = Duration::ZERO;
    let (mut total, mut failed) = (Outcome::default(), Vec::new());
    for seed in first..first + count {
        match windlass_sim::run(seed, steps) {
            Ok(outcome) => total.add(&outcome),
            Err(reason) => {
                println!("seed {seed}: {reason}");
                failed.push(seed);
                if failed.len() >= 20 {
                    break;
                }
            }
        }
        if start.elapsed() > printed + Duration::from_secs(10) {
            printed = start.elapsed();
            println!("{} seeds after {} s", seed + 1 - first, printed.as_secs());
        }
    }
    println!("{total}");
    if failed.is_empty() {
        println!(
            "{count} seeds ran clean in {:.1} s",
            start.elapsed().as_secs_f64()
        );
        ExitCode::SUCCESS
    } else {
        println!("FAILED: seeds {failed:?}");
        ExitCode::FAILURE
    }
}
