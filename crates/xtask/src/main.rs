//! The repository's own tasks: `cargo xtask test`, `tools`, `tidy`, `messages`, `options`, `supply`, `notices`, `dist`,
//! `docs`, `platforms`, `fuzz`, `bench`, `simulate`, `acceptance`, `mutants`.
//!
//! `test` is the complete continuous integration. The others are parts of it, or take too long for
//! it.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool that talks to its caller"
)]

mod acceptance;
mod clients;
mod dist;
mod docs;
mod fuzz;
mod messages;
mod mutants;
mod options;
mod page;
mod platforms;
mod run;
mod supply;
mod tidy;
mod tools;
mod words;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks of the Windlass repository")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Format check, lints, tidy, printed pages, all tests, documentation, a short fuzz run.
    Test,
    /// Installs the programs and drivers that the tests talk to, as `test` does.
    Tools,
    /// Checks file and function sizes, module docs, dependency direction, vocabulary.
    Tidy,
    /// Writes docs/messages.md from the message table.
    Messages {
        /// Only compare; fail when the file is stale.
        #[arg(long)]
        check: bool,
    },
    /// Writes docs/tsql-options.md from the option table.
    Options {
        /// Only compare; fail when the file is stale.
        #[arg(long)]
        check: bool,
    },
    /// Checks lock files, licences, sources and versions of everything that is linked, and the advisories.
    Supply,
    /// Writes THIRD-PARTY.md from the lock file.
    Notices {
        /// Only compare; fail when the file is stale.
        #[arg(long)]
        check: bool,
        /// Write the full texts of the licences to this file instead.
        #[arg(long, conflicts_with = "check")]
        texts: Option<std::path::PathBuf>,
    },
    /// Makes what is handed out: archives, packages, the wheel, debug information, bill of materials, checksums.
    Dist(dist::Options),
    /// Checks the links of all documents, and that the site's list of pages is complete.
    Docs {
        /// Also makes the site with mdbook, in target/book.
        #[arg(long)]
        build: bool,
    },
    /// Checks the crates without system calls for other systems, where Rust's standard library for them is installed.
    Platforms,
    /// Runs each fuzz target for a while.
    Fuzz {
        /// Seconds for each target.
        #[arg(long, default_value_t = 60)]
        seconds: u32,
        /// Only this target.
        #[arg(long)]
        target: Option<String>,
    },
    /// Runs the benchmarks on a database.
    Bench {
        /// The database; without it the StackOverflow-like one of the shared data is built.
        database: Option<std::path::PathBuf>,
    },
    /// Crashes the page engine on a simulated disk, once for each seed.
    Simulate {
        /// How many seeds.
        #[arg(long, default_value_t = 100_000)]
        seeds: u64,
        /// The first of them.
        #[arg(long, default_value_t = 0)]
        first: u64,
    },
    /// The acceptance runs that take longer than `test` allows, all or those that are named.
    Acceptance {
        /// Prints the parts and what each shows.
        #[arg(long)]
        list: bool,
        /// Parts to run.
        parts: Vec<String>,
    },
    /// Changes the files that decide about success in small ways, each of which must turn a test red.
    Mutants {
        /// Only this file; may be given several times.
        #[arg(long)]
        file: Vec<String>,
        /// Options of `cargo mutants`, as `-- --shard 1/8` or `-- --re 'replace .* with Ok'`.
        #[arg(last = true)]
        options: Vec<String>,
    },
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Test => test(),
        Task::Tools => {
            tools::install_missing();
            clients::install();
            Ok(())
        }
        Task::Tidy => tidy::check(),
        Task::Messages { check } => messages::write(check),
        Task::Options { check } => options::write(check),
        Task::Supply => supply::check(),
        Task::Notices {
            texts: Some(path), ..
        } => supply::notices::write_texts(&path),
        Task::Notices { check, .. } => supply::notices::write(check),
        Task::Dist(options) => dist::run(&options),
        Task::Docs { build } => docs::check(build),
        Task::Platforms => platforms::check(),
        Task::Fuzz { seconds, target } => fuzz::run(seconds, target.as_deref()),
        Task::Bench { database } => run::bench(database.as_deref()),
        Task::Simulate { seeds, first } => simulate(seeds, first),
        Task::Acceptance { list: true, .. } => {
            acceptance::list();
            Ok(())
        }
        Task::Acceptance { parts, .. } => acceptance::run(&parts),
        Task::Mutants { file, options } => mutants::run(&file, &options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("FAILED: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn simulate(seeds: u64, first: u64) -> Result<(), String> {
    let (seeds, first) = (seeds.to_string(), first.to_string());
    let arguments = [
        "run",
        "--release",
        "--quiet",
        "--package",
        "windlass-sim",
        "--",
    ];
    let options = ["--seeds", &seeds, "--first", &first];
    run::step("simulation", "cargo", &[&arguments[..], &options].concat())
}

fn test() -> Result<(), String> {
    run::tell_free_space("before");
    run::step("format", "cargo", &["fmt", "--all", "--check"])?;
    tidy::check()?;
    messages::write(true)?;
    options::write(true)?;
    docs::check(false)?;
    supply::check()?;
    run::step(
        "lints",
        "cargo",
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ],
    )?;
    run::documentation()?;
    platforms::check()?;
    fuzz::run(5, None)?;
    tools::install_missing();
    clients::install();
    run::step("model checks", "cargo", &run::MODEL_CHECKS)?;
    run::tell_free_space("before the tests");
    let tests = run::tests();
    run::tell_free_space("after the tests");
    tests.and_then(|()| dist::rehearse())
}
