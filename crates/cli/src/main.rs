//! The command line of Windlass: plain commands and T-SQL, both through the same sessions.
//!
//! | file | what |
//! |---|---|
//! | [`args`] | the command line as it is written |
//! | `command/` | one file per command: builds the statement that says the same, and runs it |
//! | `output/` | tables, JSON, progress |
//! | `demo/` | the self-contained demonstration |
//!
//! Results go to standard output, messages to standard error; the exit code is 0 only on success.
#![forbid(unsafe_code)]

mod args;
mod cancel;
mod command;
mod demo;
mod output;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Arguments, Command};
use command::Outcome;

fn main() -> ExitCode {
    let Arguments { command, common } = Arguments::parse();
    let outcome = match command {
        Command::Backup(arguments) => command::backup::run(&arguments, &common),
        Command::Restore(arguments) => command::restore::run(&arguments, &common),
        Command::Verify(arguments) => command::verify::run(&arguments, &common),
        Command::Header(arguments) => command::inspect::header(&arguments, &common),
        Command::Files(arguments) => command::inspect::files(&arguments, &common),
        Command::Label(arguments) => command::inspect::label(&arguments, &common),
        Command::Rekey(arguments) => command::rekey::run(&arguments, &common),
        Command::Sql(arguments) => command::sql::run(&arguments, &common),
        Command::Demo(arguments) => demo::run(&arguments, &common),
        Command::DemoWriter(arguments) => demo::writer::run(&arguments.database),
    };
    match outcome {
        Outcome::Succeeded => ExitCode::SUCCESS,
        Outcome::Failed => ExitCode::FAILURE,
        Outcome::Misused => ExitCode::from(2),
    }
}
