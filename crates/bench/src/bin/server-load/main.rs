//! A server under load: sessions move money between accounts while full, differential and compressed backups run in
//! turn; every restored copy must be a state that was committed. Beside it, the same load on stock SQLite in WAL mode.
//!
//! ```text
//! cargo run --release -p windlass-bench --bin server-load -- --folder /var/tmp --seconds 600
//! cargo run --release -p windlass-bench --bin server-load -- --folder /var/tmp --chart
//! ```
//!
//! - `tds`: a client that speaks as much TDS as the load needs.
//! - `load`: the sessions, and what they measured.
//! - `backups`: backups and restores in turn, and the checks of restored copies.
//! - `stock`: the same load without a server.
//! - `chart`: how long a client waits for a backup, by checkpoints and size of the pool.
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

mod backups;
mod chart;
mod load;
mod served;
mod stock;
mod tds;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::load::{Measured, Phase};

#[derive(Parser)]
struct Options {
    /// Where the databases and backups are made; the disk that is measured.
    #[arg(long, default_value = ".")]
    folder: PathBuf,
    /// How long the load lasts on each system.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Sessions.
    #[arg(long, default_value_t = 50)]
    sessions: usize,
    /// Point reads of a session between two transactions.
    #[arg(long, default_value_t = 4)]
    reads: u32,
    /// The measured program; built when it is not given.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Time backups from outside, with both kinds of checkpoints on pools of several sizes, instead.
    #[arg(long)]
    chart: bool,
    /// The pools of the chart, in MB.
    #[arg(long, value_delimiter = ',', default_values_t = [256, 16_384, 1_048_576])]
    pools: Vec<u64>,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let program = match &options.program {
        Some(program) => program.clone(),
        None => windlass_bench::windlass_program().map_err(anyhow::Error::msg)?,
    };
    let folder = tempfile::tempdir_in(&options.folder)?;
    if options.chart {
        return chart::run(&program, folder.path(), &options.pools);
    }
    let load = load::Load {
        sessions: options.sessions,
        reads: options.reads,
        lasts: Duration::from_secs(options.seconds),
    };
    println!(
        "{} sessions, {} s each; {} point reads between two transactions of three rows",
        options.sessions, options.seconds, options.reads
    );
    let (served, copies) = backups::run(&program, folder.path(), &load)?;
    report("Windlass server", &served);
    println!("{copies}");
    report("stock SQLite", &stock::run(folder.path(), &load)?);
    Ok(())
}

fn report(name: &str, measured: &Measured) {
    for phase in Phase::ALL {
        let figures = measured.figures(phase);
        println!(
            "{name:16} {phase:14} {:7.0} commits/s {:8.0} reads/s   commit p50 {:7.2} ms  p99 {:7.2} ms  worst {:8.2} ms   ({:.0} s)",
            figures.commits,
            figures.reads,
            figures.p50,
            figures.p99,
            figures.worst,
            figures.seconds
        );
    }
    println!("{name:16} {} transactions failed", measured.failed);
}
