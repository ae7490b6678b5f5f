//! Backup to and restore from an object store on this machine, beside a plain client of the store and other programs.
//!
//! The store is versitygw (`cargo xtask test` builds it). The plain client sends a file in parts, and reads it in ranges, with as
//! many requests in flight as Windlass has, and does nothing else. With toxiproxy, the same through 50 ms of added latency and with
//! 1 % of connections lost. Everything is a process of its own, and of others what is not given is left out. Medians of the
//! rounds are shown.
//!
//! ```text
//! cargo run --release -p windlass-bench --bin object-storage -- --folder /var/tmp --restic restic --rclone rclone --toxiproxy server
//! ```
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

mod plain;
mod server;
mod step;

use std::path::{Path, PathBuf};

use clap::Parser;
use server::{Proxy, Server};
use step::{Step, Who};
use windlass_bench::{load, median, windlass_program};

#[derive(Parser)]
struct Options {
    /// Where the database and the store are; the disk that is measured
    #[arg(long, default_value = ".")]
    folder: PathBuf,
    #[arg(long, default_value_t = 1024)]
    size_mb: u64,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// The store's program
    #[arg(long, default_value = "target/clients/versitygw")]
    versitygw: PathBuf,
    #[arg(long)]
    restic: Option<PathBuf>,
    #[arg(long)]
    rclone: Option<PathBuf>,
    #[arg(long)]
    litestream: Option<PathBuf>,
    /// toxiproxy's server
    #[arg(long)]
    toxiproxy: Option<PathBuf>,
    /// Sends or reads a file: which part of the measurement this process is
    #[arg(long, hide = true)]
    plain: Option<plain::Work>,
    #[arg(long, hide = true)]
    objects: Option<usize>,
    #[arg(long, hide = true)]
    endpoint: Option<String>,
    #[arg(long, hide = true)]
    file: Option<PathBuf>,
}

/// Stripes of a backup, and objects of the plain client.
const STRIPES: [usize; 2] = [1, 4];

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if let (Some(work), Some(endpoint), Some(file)) =
        (options.plain, &options.endpoint, &options.file)
    {
        return plain::run(work, endpoint, file, options.objects.unwrap_or(1));
    }
    let windlass = windlass_program().map_err(anyhow::Error::msg)?;
    let folder = tempfile::tempdir_in(&options.folder)?;
    let database = folder.path().join("app.db");
    load::create(&database, options.size_mb << 20)?;
    let bytes = std::fs::metadata(&database)?.len() as f64;
    let server = Server::start(&options.versitygw, folder.path())?;
    println!(
        "{:.0} MB, {} rounds, versitygw on this machine; MB of the database per second\n",
        bytes / 1e6,
        options.rounds
    );
    let all = everybody(&options, &windlass);
    measure(&options, &all, folder.path(), &server.endpoint(), bytes)?;
    let Some(program) = &options.toxiproxy else {
        println!("SKIPPED: latency and lost connections (--toxiproxy PROGRAM)");
        return Ok(());
    };
    let proxy = Proxy::start(program, server.port)?;
    let far = [Who::Plain(4), Who::Windlass(windlass.clone(), 4, true)];
    println!("\nThrough a proxy");
    measure(&options, &far, folder.path(), &proxy.endpoint(), bytes)?;
    proxy.delay(50)?;
    println!("\nThrough the proxy with 50 ms of latency");
    measure(&options, &far, folder.path(), &proxy.endpoint(), bytes)?;
    // That connections can be lost slows the proxy down by itself.
    for share in [0.0, 0.01] {
        proxy.lose_connections(share)?;
        let percent = share * 100.0;
        println!("\nThe same, and {percent} % of connections are lost");
        measure(&options, &far, folder.path(), &proxy.endpoint(), bytes)?;
    }
    Ok(())
}

fn everybody(options: &Options, windlass: &Path) -> Vec<Who> {
    let mut all = Vec::new();
    for stripes in STRIPES {
        all.push(Who::Plain(stripes));
        all.push(Who::Windlass(windlass.to_owned(), stripes, true));
    }
    all.push(Who::Windlass(windlass.to_owned(), 4, false));
    let others = [
        ("restic", &options.restic, Who::Restic as fn(PathBuf) -> Who),
        ("rclone", &options.rclone, Who::Rclone),
        ("litestream", &options.litestream, Who::Litestream),
    ];
    for (name, program, who) in others {
        match program {
            Some(program) => all.push(who(program.clone())),
            None => println!("SKIPPED: {name} (--{name} PROGRAM)"),
        }
    }
    all
}

/// Runs all steps of all in turn, and prints the medians.
fn measure(
    options: &Options,
    all: &[Who],
    folder: &Path,
    endpoint: &str,
    bytes: f64,
) -> anyhow::Result<()> {
    let mut seconds = vec![vec![Vec::new(); Step::ALL.len()]; all.len()];
    for _ in 0..options.rounds {
        for (who, of_who) in all.iter().zip(&mut seconds) {
            step::clean(folder)?;
            for (step, of_step) in Step::ALL.iter().zip(of_who) {
                of_step.extend(who.run(*step, folder, endpoint)?);
            }
        }
    }
    println!(
        "{:<34}{:>10}{:>10}{:>10}",
        "", "written", "verified", "restored"
    );
    for (who, of_who) in all.iter().zip(&seconds) {
        print!("{:<34}", who.name());
        for of_step in of_who {
            match of_step.is_empty() {
                true => print!("{:>10}", "-"),
                false => print!("{:>10.0}", bytes / 1e6 / median(of_step.iter().copied())),
            }
        }
        println!();
    }
    Ok(())
}
